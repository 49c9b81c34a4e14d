"""What a running configuration says about the design: rendered ones say what was designed; others raise nothing."""

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from netkit import design
from netkit.design import Fabric
from netkit.design.fabric import Port, Switch
from netkit.hardware import Catalog
from netkit.intent import Intent
from netkit.platforms.compare import MODELS
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
VERSIONS = [("sonic", version) for version in ("202305", "202311", "202405", "202411", "202505", "202511")]
SCENES: dict[str, Values] = {
    "p2p": {},
    "vlan": {"attachment": "vlan"},
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
}


def described(fabric: Fabric, switch: Switch) -> ExistingSwitch:
    """Return what a configuration has to say that expresses the whole design."""
    lossless, services, routing = fabric.lossless, fabric.services, fabric.routing
    management = switch.management
    return ExistingSwitch(
        hostname=switch.name,
        models=(switch.model.name,),
        routing_mode=switch.routing_mode,
        system_mac=switch.system_mac,
        management=f"{management.address}/{management.prefix_length}" if management else "",
        management_gateway=management.gateway if management else "",
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
        adaptive_routing=switch.adaptive_routing,
    )


def described_port(switch: Switch, port: Port) -> ExistingPort:
    ecn = port.profile.ecn
    return ExistingPort(
        name=port.name,
        description=port.description,
        split=port.profile.split.mode,
        speed_gbps=port.speed_gbps,
        mtu_bytes=switch.mtu_bytes,
        vlan=switch.vlan.number if switch.vlan and port.role == "host" else None,
        is_lossless=True,
        ecn=ExistingEcn(ecn.min_bytes, ecn.max_bytes, ecn.probability_percent),
    )


def read(fabric: Fabric, switch: Switch) -> ExistingSwitch:
    """Read what is rendered, without ports that are not in use, and without what the design does not decide alone.

    A cable length is rounded up to a row of the vendor's table, and explicit headroom follows from it.
    """
    (rendered,) = render(fabric, [switch], ENGINE)
    model = MODELS[switch.platform]
    found = EXISTING[switch.platform](
        model.parse({name: text for name, text in rendered.files.items() if model.reads(name)})
    )
    used = {port.name for port in switch.ports}
    assert used <= {port.name for port in found.ports}
    assert not any(port.is_lossless for port in found.ports if port.name not in used)
    assert all(port.cable_m and port.cable_m > 0 for port in found.ports if port.name in used)
    ports = tuple(replace(port, cable_m=None, xoff_bytes=None) for port in found.ports if port.name in used)
    return replace(found, ports=tuple(sorted(ports, key=lambda port: port.name)))


def expressed(fabric: Fabric, switch: Switch) -> ExistingSwitch:
    """Return what is designed, without what SONiC's configuration does not hold."""
    whole = described(fabric, switch)
    has_sizes_only = switch.version < "202405"  # pools have sizes there, and no share
    return replace(
        whole,
        qos=replace(whole.qos, pool_percent=None) if has_sizes_only else whole.qos,
        ports=tuple(sorted(whole.ports, key=lambda port: port.name)),
        adaptive_routing=None,  # community SONiC has none
        services=replace(whole.services, users=()),  # accounts are those of Linux
    )


@pytest.mark.parametrize("scene", SCENES)
@pytest.mark.parametrize(("platform", "version"), VERSIONS)
def test_a_rendered_configuration_says_what_is_designed(platform: str, version: str, scene: str) -> None:
    fabric = intents.fabric(intents.on_platform(platform, version, SCENES[scene]))
    for switch in fabric.switches:
        assert read(fabric, switch) == expressed(fabric, switch)


@settings(max_examples=examples(25), deadline=None)
@given(random_intents())
def test_any_rendered_configuration_says_what_is_designed(values: Values) -> None:
    fabric = design.build(Intent.model_validate(values), CATALOG)
    for switch in fabric.switches:
        if switch.platform == "sonic" and switch.routing_mode == "split":
            assert read(fabric, switch) == expressed(fabric, switch)


WORDS = """
PORT Ethernet0 QUEUE Ethernet0|3 Ethernet0,Ethernet4|0-2 pfc_enable WRED_PROFILE A speed PORT_QOS_MAP DSCP_TO_TC_MAP
SCHEDULER BUFFER_PG BREAKOUT_CFG brkout_mode VLAN CABLE_LENGTH frr.conf bfd MGMT_INTERFACE eth0|192.0.2.4/24
"""
NAMES = st.sampled_from([*WORDS.split(), "router bgp", "timers bgp", "neighbor A bfd", "profile x"])
KEYS = NAMES | st.text(max_size=12)


@settings(max_examples=examples(200), deadline=None)
@given(st.dictionaries(st.lists(KEYS, min_size=1, max_size=4).map(tuple), KEYS | st.integers().map(str), max_size=30))
def test_no_configuration_raises(config: dict[Any, str]) -> None:
    assert isinstance(EXISTING["sonic"](config), ExistingSwitch)


def test_numbers_and_majorities() -> None:
    assert [number(text) for text in ("12", " 7 ", "-1", "1.5", "", None, "9" * 5000, "\u0663")] == [12, 7, *[None] * 6]
    assert [most([None, 2, 1, 1]), most([3, 4]), most([None])] == [1, 3, None]
