"""The design described by a running configuration: rendered ones give the whole design; no other one raises."""

import math
from dataclasses import replace
from functools import cache

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from netkit import design
from netkit.design import Fabric
from netkit.design.fabric import Port, Switch
from netkit.hardware import Catalog
from netkit.intent import Intent
from netkit.platforms import PLATFORMS
from netkit.platforms.compare import MODELS
from netkit.platforms.config import Config
from netkit.platforms.existing import (
    EXISTING,
    ExistingEcn,
    ExistingPort,
    ExistingQos,
    ExistingServices,
    ExistingSwitch,
    most,
    number,
)
from netkit.render import Engine, render
from tests import intents
from tests.lanes import examples
from tests.random_intents import Values
from tests.random_intents import intents as random_intents

CATALOG = Catalog()
ENGINE = Engine()
RELEASES = {
    "eos": ("4.32.3F", "4.33.0F", "4.33.2F", "4.35.1F"),
    "frr": ("8.4.4", "10.0.4", "10.3", "10.6.2"),
    "nvue": ("5.9", "5.11", "5.14.0", "5.16.1", "5.17"),
    "sonic": ("202305", "202311", "202405", "202411", "202505", "202511"),
}
READ = tuple(RELEASES)
VERSIONS = [(platform, version) for platform, versions in RELEASES.items() for version in versions]
SCENES: dict[str, Values] = {
    "p2p": {},
    "vlan": {"attachment": "vlan"},
    "sessions by address": {"pools": {"links": "10.8.0.0/14"}},
    "numbers": {
        "lossless": {
            "roce": {"priority": 4, "dscp": [34], "weight": 70},
            "best_effort": {"weight": 30},
            "cnp": {"priority": 5, "dscp": 40, "shape_percent": 20},
            "ecn": {400: {"min_bytes": 500_000, "max_bytes": 2_000_000, "probability_percent": 30}},
            "watchdog": {"poll_ms": 200, "detection_polls": 2, "restoration_polls": 4, "action": "forward"},
            "pool_percent": 80,
        },
        "routing": {"keepalive_s": 5, "hold_s": 15, "connect_s": 20, "bfd": {"interval_ms": 500, "multiplier": 4}},
        "services": {"timezone": "Asia/Tokyo"},
    },
    "priorities": {
        "lossless": {
            "roce": {"priority": 6, "dscp": [26, 27], "weight": 50},
            "cnp": {"priority": 0, "dscp": 48},
            "best_effort": {"priority": 2, "weight": 50},
        },
    },
    "one port in a cage": {
        "switches": {
            "leaf": {"host_breakout": "1x400G", "uplink_breakout": "1x400G"},
            "spine": {"breakout": "1x400G"},
        },
        "cables": {kind: {"media": "400G-DR4", "length_m": 30} for kind in ("host", "spine")},
    },
}
SN4700: Values = {
    **SCENES["one port in a cage"],
    "switches": {role: {**tier, "model": "SN4700"} for role, tier in SCENES["one port in a cage"]["switches"].items()},
}
SPECIAL = [
    ("eos", "4.35.1F", {"adaptive_routing": True}),
    ("nvue", "5.16.1", {"adaptive_routing": True}),
    ("nvue", "5.16.1", SN4700),
    ("sonic", "202411", SN4700),
]


def described(fabric: Fabric, switch: Switch) -> ExistingSwitch:
    """The description of the design that a configuration gives."""
    lossless, services, routing = fabric.lossless, fabric.services, fabric.routing
    management = switch.management
    return ExistingSwitch(
        hostname=switch.name,
        models=(switch.model.name,),
        routing_mode=switch.routing_mode,
        system_mac=switch.system_mac,
        management=f"{management.address}/{management.prefix_length}" if management else "",
        management_gateway=management.gateway if management else "",
        allow=(),
        ports=tuple(described_port(switch, port) for port in switch.ports),
        vlans={switch.vlan.number: f"Vlan{switch.vlan.number}"} if switch.vlan else {},
        qos=ExistingQos(
            dscp_to_priority={
                dscp: lossless.priority_to_class[priority] for dscp, priority in enumerate(lossless.dscp_to_priority)
            },
            lossless=lossless.lossless_priorities,
            strict=(lossless.cnp.priority,),
            weights={one.priority: max(1, one.weight) for one in (lossless.best_effort, lossless.roce)},
            cnp_shape_percent=lossless.cnp.shape_percent,
            watchdog_poll_ms=lossless.watchdog.poll_ms,
            watchdog_detection_ms=lossless.watchdog.detection_ms,
            watchdog_restoration_ms=lossless.watchdog.restoration_ms,
            watchdog_action=lossless.watchdog.action,
            pool_percent=lossless.pool_percent,
        )
        if switch.ports
        else ExistingQos(),
        services=ExistingServices(
            ntp=services.ntp,
            dns=services.dns,
            syslog=tuple((one.address, one.port, one.protocol) for one in services.syslog),
            snmp_users=tuple(one.user for one in services.snmp if one.auth_secret and one.priv_secret),
            snmp_location="".join(one.location for one in services.snmp),
            snmp_contact="".join(one.contact for one in services.snmp),
            users=tuple(one.user for one in services.login if one.password_hash_secret),
            timezone=services.timezone,
        ),
        keepalive_s=routing.keepalive_s,
        hold_s=routing.hold_s,
        connect_s=routing.connect_s,
        bfd_interval_ms=routing.bfd.interval_ms,
        bfd_multiplier=routing.bfd.multiplier,
        with_bfd=frozenset(port.peer_address for port in switch.fabric_ports if port.peer_address),
        adaptive_routing=switch.adaptive_routing,
    )


def described_port(switch: Switch, port: Port) -> ExistingPort:
    ecn, units = port.profile.ecn, ("bytes", "bytes") if switch.platform == "eos" else None
    return ExistingPort(
        name=port.name,
        description=port.description,
        split=port.profile.split.mode,
        lanes=port.profile.split.lanes_per_port,
        speed_gbps=port.speed_gbps,
        mtu_bytes=switch.mtu_bytes,
        vlan=switch.vlan.number if switch.vlan and port.role == "host" else None,
        is_lossless=True,
        ecn=ExistingEcn(ecn.min_bytes, ecn.max_bytes, ecn.probability_percent, units),
    )


def parsed(fabric: Fabric, switch: Switch) -> Config:
    (files,) = render(fabric, [switch], ENGINE)
    model = MODELS[switch.platform]
    return model.parse({name: text for name, text in files.files.items() if model.reads(name)})


def read(fabric: Fabric, switch: Switch) -> ExistingSwitch:
    """Parse rendered files, without unused ports, and without what a configuration cannot express exactly.

    A cable length is rounded up to a row of the vendor's table, and explicit headroom follows from it. EOS has only the
    headroom, and Linux neither. IPv6 is compared where it is adopted.
    """
    found = replace(EXISTING[switch.platform](parsed(fabric, switch)), addresses_v6={}, gateways_v6=())
    if not switch.ports:  # each NOS keeps other parts of classes that nothing uses
        found = replace(found, qos=ExistingQos())
    used = {port.name for port in switch.ports}
    assert used <= {port.name for port in found.ports}
    assert not any(port.is_lossless for port in found.ports if port.name not in used)
    assert all(has_room(switch, port) for port in found.ports if port.name in used)
    assert all(bool(port.alias) == (switch.platform == "sonic") for port in found.ports)
    ports = tuple(replace(port, cable_m=None, xoff_bytes=None, alias="") for port in found.ports if port.name in used)
    return replace(found, ports=tuple(sorted(ports, key=lambda port: port.name)))


def has_room(switch: Switch, port: ExistingPort) -> bool:
    """Whether a port has headroom for its cable: on NVUE and EOS that of the switch's longest, none on FRR."""
    if switch.platform == "eos":
        return port.xoff_bytes == max(one.profile.headroom.xoff_bytes for one in switch.ports if one.profile.headroom)
    if switch.platform == "frr":
        return port.cable_m is port.xoff_bytes is None
    if switch.platform == "nvue":
        return port.cable_m == math.ceil(max(one.profile.cable.length_m for one in switch.ports))
    return bool(port.cable_m)


def expressed(fabric: Fabric, switch: Switch) -> ExistingSwitch:
    """The design without what the configuration of the NOS does not hold."""
    whole = described(fabric, switch)
    found = EXPRESSED[switch.platform](fabric, switch, whole)
    if not switch.fabric_ports:  # timers belong to peer groups, which are not rendered without neighbors
        found = replace(found, keepalive_s=None, hold_s=None, connect_s=None, bfd_interval_ms=None, bfd_multiplier=None)
    return replace(found, ports=tuple(sorted(found.ports, key=lambda port: port.name)))


def expressed_by_sonic(_fabric: Fabric, switch: Switch, whole: ExistingSwitch) -> ExistingSwitch:
    has_sizes_only = switch.version < "202405"  # pools have sizes there, and no share
    return replace(
        whole,
        qos=replace(whole.qos, pool_percent=None) if has_sizes_only else whole.qos,
        adaptive_routing=None,  # not supported by community SONiC
        asn=switch.asn,
        services=replace(whole.services, users=()),  # accounts are those of Linux
    )


def expressed_by_nvue(fabric: Fabric, switch: Switch, whole: ExistingSwitch) -> ExistingSwitch:
    roce, cnp, others = fabric.lossless.roce, fabric.lossless.cnp, fabric.lossless.best_effort
    # The RoCE mode has one class for all but RoCE and CNP; its lowest priority stands for it, whatever the intent has.
    rest = {others.priority: min(set(range(8)) - {roce.priority, cnp.priority})}
    return replace(
        whole,
        models=(),
        system_mac="",  # that of the switch
        ports=tuple(
            replace(port, lanes=None)
            if has_speed(switch, port)
            else replace(port, lanes=None, speed_gbps=None, split=port.split.partition("x")[0] + "x")
            for port in whole.ports
        ),
        vlans={vlan: name.lower() for vlan, name in whole.vlans.items()},
        vlan_names={switch.vlan.number: switch.vlan.name} if switch.vlan else {},
        vlan_mtu_bytes=switch.mtu_bytes if switch.vlan else None,
        qos=replace(
            whole.qos,
            dscp_to_priority={dscp: rest.get(one, one) for dscp, one in whole.qos.dscp_to_priority.items()},
            weights={rest.get(one, one): weight for one, weight in whole.qos.weights.items()},
            cnp_shape_percent=None,  # a strict class has no shaper
            watchdog_restoration_ms=None,  # one poll without pauses
            watchdog_action="",  # always drop
        ),
    )


def has_speed(switch: Switch, port: ExistingPort) -> bool:
    """Whether NVUE sets the speed of a port, which otherwise follows from the model and the breakout."""
    fastest = max(split.ports * split.speed_gbps for split in switch.model.splits)
    split = switch.model.split(port.split)
    is_fastest = split is not None and split.ports * split.speed_gbps == fastest
    return bool(switch.model.platforms["nvue"].get("force_speed")) or not is_fastest


def expressed_by_eos(_fabric: Fabric, switch: Switch, whole: ExistingSwitch) -> ExistingSwitch:
    has_split = any(port.lane_port + 1 == port.profile.split.ports for port in switch.ports)
    return replace(
        whole,
        models=(),
        system_mac="",  # that of the switch
        # The number of lanes of a cage is visible only where the last one is in use.
        ports=whole.ports if has_split else tuple(replace(port, split="") for port in whole.ports),
        connect_s=None,  # no such timer
        vlan_names={switch.vlan.number: switch.vlan.name} if switch.vlan else {},
        vlan_mtu_bytes=switch.mtu_bytes if switch.vlan else None,
    )


def expressed_by_frr(_fabric: Fabric, switch: Switch, whole: ExistingSwitch) -> ExistingSwitch:
    has_timers = bool(switch.fabric_ports)
    services = whole.services
    return replace(
        whole,
        models=(),
        system_mac="",  # that of the switch
        allow=None,
        ports=tuple(
            replace(port, split="", lanes=None, speed_gbps=None, is_lossless=False, ecn=None) for port in whole.ports
        ),
        vlans={vlan: name.lower() for vlan, name in whole.vlans.items()},
        qos=ExistingQos(),
        # Accounts and timezone are set at the first boot; name servers are those of the management port.
        services=replace(services, users=(), timezone="", dns=services.dns if switch.management else ()),
        keepalive_s=whole.keepalive_s if has_timers else None,
        hold_s=whole.hold_s if has_timers else None,
        connect_s=whole.connect_s if has_timers else None,
        bfd_interval_ms=whole.bfd_interval_ms if has_timers else None,
        bfd_multiplier=whole.bfd_multiplier if has_timers else None,
        adaptive_routing=None,
    )


EXPRESSED = {"eos": expressed_by_eos, "frr": expressed_by_frr, "nvue": expressed_by_nvue, "sonic": expressed_by_sonic}


@pytest.mark.parametrize("scene", SCENES)
@pytest.mark.parametrize(("platform", "version"), VERSIONS)
def test_a_rendered_configuration_describes_the_design(platform: str, version: str, scene: str) -> None:
    fabric = intents.fabric(intents.on_platform(platform, version, SCENES[scene]))
    for switch in fabric.switches:
        assert read(fabric, switch) == expressed(fabric, switch)


@pytest.mark.parametrize(("platform", "version", "changes"), SPECIAL)
def test_features_of_one_platform_are_read(platform: str, version: str, changes: Values) -> None:
    fabric = intents.fabric(intents.on_platform(platform, version, changes))
    for switch in fabric.switches:
        assert read(fabric, switch) == expressed(fabric, switch)


@settings(max_examples=examples(25), deadline=None)
@given(random_intents())
def test_any_rendered_configuration_says_what_is_designed(values: Values) -> None:
    fabric = design.build(Intent.model_validate(values), CATALOG)
    for switch in fabric.switches:
        if switch.platform in READ and switch.routing_mode == "split":
            assert read(fabric, switch) == expressed(fabric, switch)


WORDS = {
    "eos": """
hostname vlan 7 mtu speed 400g-4 on priority 3 no-drop 0-70 vrf MGMT 192.0.2.4/24 192.0.2.1 interface 10 percent drop
""",
    "frr": """
frr.conf netplan.yaml network ethernets bridges vrfs vlan7 mgmt eth0 swp1 interfaces addresses routes gateway4 mtu
hostname description chrony.conf rsyslog.conf snmpd.conf (text) nameservers
""",
    "sonic": """
PORT Ethernet0 QUEUE Ethernet0|3 Ethernet0,Ethernet4|0-2 pfc_enable WRED_PROFILE A speed PORT_QOS_MAP DSCP_TO_TC_MAP
SCHEDULER BUFFER_PG BREAKOUT_CFG brkout_mode VLAN CABLE_LENGTH frr.conf bfd MGMT_INTERFACE eth0|192.0.2.4/24
""",
    "nvue": """
interface swp1 swp1s0 eth0 ipv4 address 192.0.2.4/24 vrf mgmt default router bgp neighbor peer-group timers hold bfd
profile link breakout 2x speed 400G qos roce mode lossless pfc default-global switch-priority 3 0-70 rx off 9 mapping
trust l3 dscp egress-scheduler traffic-class bw-percent egress-queue-mapping congestion-control pfc-watchdog state on
traffic-pool roce-lossless memory-percent bridge domain br access vlan vlan7 system service ntp server enable
""",
}
LINES = {
    "eos": [
        "interface Ethernet1/1",
        "interface Vlan7",
        "interface Management1",
        "ip address 192.0.2.4/24",
        "ip route vrf MGMT 0.0.0.0/0 192.0.2.1",
        "service-profile",
        "qos profile A",
        "uc-tx-queue 3",
        "tx-queue 9",
        "no priority",
        "bandwidth percent",
        "shape rate",
        "priority-flow-control on",
        "priority-flow-control priority 3 no-drop",
        "priority-flow-control pause watchdog port timer timeout 0.2",
        "priority-flow-control pause watchdog default timeout",
        "qos map traffic-class 3 to tx-queue 9",
        "qos map dscp 77 to traffic-class 9",
        "router bgp",
        "neighbor A peer group",
        "neighbor interface Ethernet1/1",
        "neighbor A timers",
        "neighbor A bfd",
        "router bfd",
        "ntp server",
        "logging vrf",
        "ip name-server vrf A",
        "snmp-server user",
        "username",
    ],
    "frr": [
        "interface swp1",
        "interface ",
        "router bgp",
        "router bgp 65001 vrf RED",
        "neighbor swp1 interface peer-group A",
        "neighbor swp1 description",
        "- 192.0.2.4/24",
        "- to=default",
        '- {"192.0.2.4/24": {}}',
        "server",
        "rouser -s",
        "sysLocation",
        'action(type="omfwd" target="a" port="x")',
        "*.* @@[::1]:99999999999999999999",
        "timers bgp",
        "bfd",
        "profile x",
    ],
    "sonic": ["router bgp", "timers bgp", "neighbor A bfd", "profile x"],
    "nvue": [],
}
Entry = tuple[str, ...]


@pytest.mark.parametrize("platform", READ)
@settings(max_examples=examples(200), deadline=None)
@given(data=st.data())
def test_no_configuration_raises(platform: str, data: st.DataObject) -> None:
    words = st.sampled_from([*WORDS[platform].split(), *LINES[platform]]) | st.text(max_size=12)
    paths = st.lists(words, min_size=1, max_size=9).map(tuple)
    config = data.draw(st.dictionaries(paths, words | st.integers().map(str), max_size=30))
    assert isinstance(EXISTING[platform](config), ExistingSwitch)


@pytest.mark.parametrize("platform", READ)
@settings(max_examples=examples(200), deadline=None)
@given(data=st.data())
def test_no_damaged_configuration_raises(platform: str, data: st.DataObject) -> None:
    config = dict(rendered(platform))
    words = st.sampled_from([*WORDS[platform].split(), *LINES[platform]]) | st.text(max_size=12)
    for path in data.draw(st.lists(st.sampled_from(sorted(config)), max_size=30)):
        value = config.pop(path, "")
        place = data.draw(st.integers(0, len(path) - 1))
        word = data.draw(words)
        changed: list[tuple[Entry, str]] = [
            ((*path[:place], word, *path[place + 1 :]), value),
            (path[: place + 1], value),
            (path, word),
            ((*path, word), value),
        ]
        config.update(data.draw(st.lists(st.sampled_from(changed), max_size=2)))
    assert isinstance(EXISTING[platform](config), ExistingSwitch)


NAMES = {
    "eos": ("ROCE-400G", "LOSSLESS", "SPINES", "MGMT", "NETKIT", "ALL", "PL-", "RM-"),
    "nvue": ("ecn-400g", "underlay", "br_default", "PL-", "RM-"),
    "sonic": (),
}


@pytest.mark.parametrize("platform", NAMES)
@settings(max_examples=examples(40), deadline=None)
@given(data=st.data())
def test_names_and_order_do_not_matter(platform: str, data: st.DataObject) -> None:
    config = rendered(platform)
    new = {name: f"x{place}" for place, name in enumerate(data.draw(st.permutations(NAMES[platform])))}

    def renamed(text: str) -> str:
        for name, other in new.items():
            text = text.replace(name, other)
        return text

    order = data.draw(st.permutations(list(config)))
    found = EXISTING[platform]({tuple(map(renamed, path)): renamed(config[path]) for path in order})
    assert in_order(found) == in_order(EXISTING[platform](config))


def in_order(found: ExistingSwitch) -> ExistingSwitch:
    """The result without the order of servers and ports, which is that of the configuration."""
    services = found.services
    return replace(
        found,
        ports=tuple(sorted(found.ports, key=lambda port: port.name)),
        services=replace(services, syslog=tuple(sorted(services.syslog))),
    )


@cache
def rendered(platform: str) -> Config:
    """The configuration of a leaf with most of what is parsed."""
    fabric = intents.fabric(
        intents.on_platform(platform, PLATFORMS[platform].newest_version, {**SCENES["numbers"], "attachment": "vlan"})
    )
    return parsed(fabric, fabric.switches[0])


def test_the_most_frequent_numbers_are_used() -> None:
    assert [number(text) for text in ("12", " 7 ", "-1", "1.5", "", None, "9" * 5000, "\u0663")] == [12, 7, *[None] * 6]
    assert [most([None, 2, 1, 1]), most([3, 4]), most([None])] == [1, 3, None]
