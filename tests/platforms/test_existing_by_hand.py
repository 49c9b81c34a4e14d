"""Configurations not written by netkit: other names, another order, forms of other releases."""

import textwrap
from dataclasses import replace

import pytest

from netkit.platforms.compare import MODELS
from netkit.platforms.existing import (
    EXISTING,
    ExistingEcn,
    ExistingHeading,
    ExistingPort,
    ExistingQos,
    ExistingServices,
    ExistingSwitch,
    heading,
    models_named,
)

BLOCKS = {dscp: dscp // 8 for dscp in range(64)}


def read(platform: str, text: str) -> ExistingSwitch:
    model = MODELS[platform]
    return EXISTING[platform](model.parse({model.files[0]: textwrap.dedent(text).lstrip("\n")}))


def roce_blocks(lossless: int, strict: int, *others: int) -> dict[int, int]:
    """The DSCP map in blocks of eight where all but two priorities share a class with the first of them."""
    return {dscp: one if one in {lossless, strict} else others[0] for dscp, one in BLOCKS.items()}


NVUE_PROFILES = """
    - header:
        model: MSN4700
        nvue-api-version: nvue_v1
        rev-id: 1.0
        version: Cumulus Linux 5.16.1
    - set:
        vrf:
          mgmt:
            router:
              static:
                0.0.0.0/0:
                  via:
                    198.51.100.254:
                      type: ipv4-address
          default:
            router:
              bgp:
                state: enabled
                peer-group:
                  FABRIC:
                    bfd:
                      profile: quick
                    remote-as: external
                    timers:
                      hold: 30
                neighbor:
                  swp31-32:
                    peer-group: FABRIC
                    type: unnumbered
                  192.0.2.77:
                    remote-as: 65000
                    timers:
                      hold: 180
                      keepalive: 60
        router:
          bfd:
            profile:
              quick:
                min-tx-interval: 150
                min-rx-interval: 200
        qos:
          traffic-pool:
            default-lossless:
              memory-percent: 60
            default-lossy:
              memory-percent: 40
          mapping:
            by-dscp:
              trust: l3
              dscp:
                26,30-31:
                  switch-priority: 5
                '34':
                  switch-priority: 2
            unused:
              trust: l2
          egress-queue-mapping:
            default-global:
              switch-priority:
                '5':
                  traffic-class: 4
                0-3:
                  traffic-class: 1
                '4':
                  traffic-class: 1
          egress-scheduler:
            weights:
              traffic-class:
                1,4:
                  mode: dwrr
                  bw-percent: 45
                '7':
                  mode: strict
                '0':
                  mode: dwrr
                  bw-percent: 5
          pfc:
            storage:
              switch-priority: 5
              rx: enable
              tx: enable
              cable-length: 20
            nothing:
              switch-priority:
                '5': {}
              rx: disable
              tx: disable
          congestion-control:
            marks:
              traffic-class:
                '4':
                  min-threshold: 200000
                  max-threshold: 900000
                  probability: 50
                '1':
                  min-threshold: 1
                  max-threshold: 2
            silent:
              traffic-class:
                '4':
                  ecn: disable
                  red: enable
        bridge:
          domain:
            fabric:
              vlan:
                10-11: {}
        interface:
          swp1-2:
            link:
              mtu: 9000
              speed: 400G
              state: up
            qos:
              congestion-control:
                profile: marks
              egress-scheduler:
                profile: weights
              mapping:
                profile: by-dscp
              pfc:
                profile: storage
              pfc-watchdog:
                state: enabled
            bridge:
              domain:
                fabric:
                  untagged: 10
          swp1:
            description: node-a
          swp3:
            link:
              breakout:
                4x:
                  lanes-per-port: 2
          swp3s1:
            link:
              speed: 100G
            qos:
              pfc:
                profile: nothing
              mapping:
                profile: by-dscp
          swp4:
            link:
              breakout: disabled
          swp31:
            qos:
              congestion-control:
                profile: silent
              pfc:
                profile: storage
          swp31.7:
            type: sub
            base-interface: swp31
            vlan: 7
          vlan10:
            ipv4:
              address:
                10.0.0.1/24: {}
          users:
            type: svi
            vlan: 12
          eth0:
            ipv4:
              address:
                198.51.100.7/24: {}
            vrf: mgmt
        system:
          hostname: tor-7
          timezone: Europe/Berlin
          ntp:
            server:
              ntp.example.com: {}
          syslog:
            server:
              192.0.2.9: {}
          aaa:
            user:
              cumulus:
                hashed-password: $6$x
                role: system-admin
    """

NVUE_OLD = """
    {"service": {"ntp": {"mgmt": {"server": {"192.0.2.2": {"iburst": "on"}}}},
                 "dns": {"default": {"server": {"192.0.2.3": {}}}, "mgmt": {"server": {"192.0.2.4": {}}}},
                 "syslog": {"mgmt": {"server": {"192.0.2.5": {"port": 1514, "protocol": "tcp"}}}},
                 "snmp-server": {"enable": "on", "system-contact": "noc",
                                 "username": {"poll": {"auth-sha": {"x": {}}}}}},
     "system": {"hostname": "old"},
     "router": {"adaptive-routing": {"enable": "on"}, "bgp": {"enable": "on", "autonomous-system": 65001}},
     "vrf": {"default": {"router": {"bgp": {"enable": "on", "neighbor": {
         "swp9": {"remote-as": "external", "bfd": {"enable": "on", "min-tx-interval": 400, "detect-multiplier": 5}},
         "swp10": {"remote-as": "external", "bfd": {"enable": "on", "min-tx-interval": 400, "detect-multiplier": 5}},
         "192.0.2.77": {"remote-as": 65009, "peer-group": "OUT"},
         "swp11": {"remote-as": "external", "timers": {"keepalive": 1, "hold": 3}}},
         "peer-group": {"OUT": {"bfd": {"enable": "on"}, "address-family": {"ipv4-unicast": {
             "prefix-limits": {"inbound": {"maximum": 500}}}}}}}}}},
     "qos": {"roce": {"enable": "on"},
             "pfc": {"default-global": {"port-buffer": 363000, "xoff-threshold": 75000, "xon-threshold": 75000,
                                        "switch-priority": {"3": {}}}},
             "traffic-pool": {"default-lossy": {"memory-percent": 10}, "roce-lossless": {"memory-percent": 90}}},
     "interface": {"eth0": {"ip": {"address": {"192.0.2.7/24": {}}, "gateway": {"192.0.2.1": {}}, "vrf": "mgmt"}},
                   "swp9": {"link": {"mtu": 9216, "breakout": {"1x": {}}},
                            "qos": {"pfc-watchdog": {"state": "enable"}}},
                   "swp12": {"link": {"breakout": "2x100G"}},
                   "swp12s0": {"bridge": {"domain": {"br_default": {"access": 100}}}},
                   "vlan100": {"type": "svi", "vlan": 100}}}
    """


def test_nvue_without_the_roce_mode_is_read_from_its_profiles() -> None:
    marked = ExistingPort(
        "swp1",
        split="1x400G",
        speed_gbps=400,
        mtu_bytes=9000,
        vlan=10,
        cable_m=20.0,
        is_lossless=True,
        ecn=ExistingEcn(200_000, 900_000, 50),
    )
    assert read("nvue", NVUE_PROFILES) == ExistingSwitch(
        allow=(),
        hostname="tor-7",
        management="198.51.100.7/24",
        management_gateway="198.51.100.254",
        ports=(
            replace(marked, description="node-a"),
            replace(marked, name="swp2"),
            ExistingPort("swp3s1", split="4x100G", lanes=2, speed_gbps=100),
            ExistingPort("swp31", split="1x", cable_m=20.0, is_lossless=True),
        ),
        vlans={10: "vlan10", 11: "vlan11", 12: "users"},
        # Priority 5 has class 4 of its own; 0 to 4 share class 1, which 6 and 7 do not.
        qos=ExistingQos(
            dscp_to_priority={
                dscp: 5 if dscp in {26, 30, 31} else 1 if one < 5 or dscp == 34 else one for dscp, one in BLOCKS.items()
            },
            lossless=(5,),
            strict=(7,),
            weights={1: 45, 5: 45},
            watchdog_poll_ms=100,
            watchdog_detection_ms=300,
            pool_percent=60,
        ),
        services=ExistingServices(
            ntp=("ntp.example.com",),
            syslog=(("192.0.2.9", 514, "udp"),),
            users=("cumulus",),
            timezone="Europe/Berlin",
        ),
        keepalive_s=3,
        hold_s=30,
        connect_s=10,
        bfd_interval_ms=150,
        bfd_multiplier=3,
        adaptive_routing=False,
    )


def test_nvue_of_older_releases_is_read() -> None:
    lossless = ExistingPort("", cable_m=100.0, is_lossless=True, ecn=ExistingEcn(150_000, 1_500_000, 100))
    assert read("nvue", NVUE_OLD) == ExistingSwitch(
        allow=(),
        hostname="old",
        management="192.0.2.7/24",
        management_gateway="192.0.2.1",
        ports=(
            replace(lossless, name="swp9", split="1x", mtu_bytes=9216),
            replace(lossless, name="swp12s0", split="2x100G", speed_gbps=100, vlan=100),
        ),
        vlans={100: "vlan100"},
        qos=ExistingQos(
            dscp_to_priority=roce_blocks(3, 6, 0),
            lossless=(3,),
            strict=(6,),
            weights={0: 50, 3: 50},
            watchdog_poll_ms=100,
            watchdog_detection_ms=300,
            pool_percent=90,
        ),
        services=ExistingServices(
            ntp=("192.0.2.2",),
            dns=("192.0.2.3", "192.0.2.4"),
            syslog=(("192.0.2.5", 1514, "tcp"),),
            snmp_users=("poll",),
            snmp_contact="noc",
        ),
        keepalive_s=3,
        hold_s=9,
        connect_s=10,
        bfd_interval_ms=400,
        bfd_multiplier=5,
        limits={"192.0.2.77": 500},
        with_bfd=frozenset({"192.0.2.77"}),
        adaptive_routing=True,
    )


TWO_HELD = "pfc: {default-global: {switch-priority: {'2': {}}}}"
TWO_IN_CLASS_3 = "egress-queue-mapping: {default-global: {switch-priority: {'2': {traffic-class: 3}}}}"


@pytest.mark.parametrize(
    ("qos", "lossless", "weights", "pool_percent"),
    [
        ("{roce: {}}", (3,), {0: 50, 3: 50}, 50),
        ("{roce: {state: enabled, mode: lossless-single-ipool}}", (3,), {0: 50, 3: 50}, None),
        ("{roce: {state: enabled, mode: lossy}}", (), {0: 50, 3: 50}, None),
        ("{roce: {state: enabled, mode: lossy-multi-tc}}", (), {}, None),
        ("{roce: {state: disabled}}", (), {}, None),
        (f"{{roce: {{state: enabled}}, {TWO_HELD}}}", (2,), {2: 50, 3: 50}, 50),
        (f"{{roce: {{state: enabled}}, {TWO_HELD}, {TWO_IN_CLASS_3}}}", (2,), {0: 50, 2: 50}, 50),
    ],
)
def test_modes_of_roce_are_read(
    qos: str, lossless: tuple[int, ...], weights: dict[int, int], pool_percent: int | None
) -> None:
    found = read("nvue", f"- set: {{interface: {{swp1: {{type: swp}}}}, qos: {qos}}}")
    assert (found.qos.lossless, found.qos.weights, found.qos.pool_percent) == (lossless, weights, pool_percent)
    assert found.qos.strict == ((6,) if weights else ())
    assert bool(found.qos.dscp_to_priority) == bool(weights)
    assert [port.is_lossless for port in found.ports] == [bool(lossless)]


def test_a_pfc_profile_without_priorities_replaces_that_of_the_roce_mode() -> None:
    ports = "{swp1: {qos: {pfc: {profile: lossy}}}, swp2: {}}"
    found = read("nvue", f"- set: {{interface: {ports}, qos: {{roce: {{}}, pfc: {{lossy: {{rx: enable}}}}}}}}")
    assert [port.is_lossless for port in found.ports] == [False, True]


EOS_ON_INTERFACES = """
    ! Command: show running-config
    ! device: edge-3 (DCS-7260CX3-64, EOS-4.32.3F)
    hostname edge-3
    ip name-server vrf OOB 192.0.2.3 192.0.2.4
    ntp server vrf OOB 192.0.2.11
    ntp server vrf OOB 192.0.2.10 prefer version 4
    logging host 192.0.2.5
    logging vrf OOB host 192.0.2.6 1514 protocol tcp
    snmp-server location hall 2
    snmp-server user old public v2c
    snmp-server user poll ops v3 localized f5717f00 auth sha256 aa priv aes bb
    clock timezone Europe/Berlin
    username admin privilege 15 role network-admin secret sha512 $6$x
    username guest nopassword
    vlan 10,20-21
    !
    vrf instance OOB
    !
    interface Ethernet1/1
       description node-a
       mtu 9000
       speed forced 100gfull
       switchport mode trunk
       switchport trunk native vlan 20
       qos trust dscp
       priority-flow-control mode on
       priority-flow-control priority 4 no-drop
       priority-flow-control pause watchdog port timer timeout 0.2 polling-interval auto recovery-time 0.4
       priority-flow-control pause watchdog port action notify-only
       !
       tx-queue 5
          no priority
          bandwidth percent 60
          random-detect ecn minimum-threshold 150 kbytes maximum-threshold 2 mbytes max-mark-probability 20 weight 0
       !
       tx-queue 1
          no priority
          bandwidth percent 40
       !
       tx-queue 6
          priority strict
          shape rate 25000000 kbps
    !
    interface Ethernet2/1
       speed 100g-4
       switchport access vlan 10
       service-profile ANY
    !
    interface Ethernet3/1
       speed 100g-4
       no switchport
       service-profile ANY
       !
       tx-queue 5
          random-detect ecn minimum-threshold 320 segments maximum-threshold 320 segments
    !
    interface Ethernet31/1
       bfd interval 100 min-rx 100 multiplier 4
       no switchport
       ipv6 enable
    !
    interface Ethernet32/1
       no switchport
       ipv6 enable
    !
    interface Ethernet65
       speed 10g
    !
    interface Management1
       vrf forwarding OOB
       ip address 192.0.2.7/24
    !
    interface Vlan30
       ip address 10.0.30.1/24
    !
    ip route vrf OOB 0.0.0.0/0 Management1 192.0.2.1
    ip route vrf OOB 10.0.0.0/8 192.0.2.2
    !
    qos profile ANY
       qos trust dscp
       priority-flow-control on
       priority-flow-control priority 4 no-drop
       !
       tx-queue 6
          priority strict
       !
       tx-queue 5
          no priority
          bandwidth percent 60
          random-detect ecn minimum-threshold 300000 bytes maximum-threshold 400000 bytes
       !
       tx-queue 1
          no priority
          bandwidth percent 40
    !
    qos map dscp 24-31,34 to traffic-class 4
    qos map dscp 0-7 to traffic-class 1
    qos map traffic-class 4 to tx-queue 5
    qos map traffic-class 0 2 3 5 to tx-queue 1
    !
    priority-flow-control pause watchdog default timeout 1.5
    priority-flow-control pause watchdog default polling-interval 0.05
    priority-flow-control pause watchdog default recovery-time 3
    priority-flow-control pause watchdog action errdisable
    !
    bfd interval 250 min_rx 250 multiplier 3 default
    !
    router bgp 65001
       timers bgp 5 15
       neighbor UP peer-group
       neighbor UP bfd
       neighbor UP timers 2 6
       neighbor interface Et31/1,32/1 peer-group UP remote-as 65100
       neighbor 192.0.2.99 remote-as 65200
       neighbor 192.0.2.99 maximum-routes 30 warning-only
       neighbor UP maximum-routes 700
       neighbor 192.0.2.98 peer-group UP
    !
    ip hardware fib load-balance distribution dynamic
    !
    platform trident mmu queue profile BIG
       ingress headroom bytes 165100
       egress unicast queue 1 threshold 1/2
    !
    platform trident mmu queue profile UNUSED
       ingress headroom bytes 1
    !
    platform trident mmu queue profile BIG apply
    !
    end
    """


def test_eos_with_lines_on_interfaces_is_read() -> None:
    lossless = ExistingPort("", speed_gbps=100, is_lossless=True, xoff_bytes=165_100)
    assert read("eos", EOS_ON_INTERFACES) == ExistingSwitch(
        allow=(),
        hostname="edge-3",
        management="192.0.2.7/24",
        management_gateway="192.0.2.1",
        ports=(
            replace(
                lossless,
                name="Ethernet1/1",
                description="node-a",
                mtu_bytes=9000,
                vlan=20,
                ecn=ExistingEcn(150_000, 2_000_000, 20, ("kbytes", "mbytes")),
            ),
            replace(
                lossless,
                name="Ethernet2/1",
                lanes=4,
                vlan=10,
                ecn=ExistingEcn(300_000, 400_000, 100, ("bytes", "bytes")),
            ),
            replace(lossless, name="Ethernet3/1", lanes=4),
            ExistingPort("Ethernet31/1"),
            ExistingPort("Ethernet32/1"),
            ExistingPort("Ethernet65", split="1x10G", speed_gbps=10),
        ),
        vlans={10: "Vlan10", 20: "Vlan20", 21: "Vlan21", 30: "Vlan30"},
        qos=ExistingQos(
            dscp_to_priority={
                # Blocks 1 to 6 by default, of which 8-15 are class 0; queue 1 serves classes 0 to 3 and 5.
                dscp: 4 if dscp in {*range(24, 32), *range(32, 40)} else 1 if dscp < 48 else dscp // 8
                for dscp in range(64)
            },
            lossless=(4,),
            strict=(6,),
            weights={1: 40, 4: 60},
            cnp_shape_percent=25,
            watchdog_poll_ms=50,
            watchdog_detection_ms=200,
            watchdog_restoration_ms=400,
            watchdog_action="forward",
            pool_percent=60,
        ),
        services=ExistingServices(
            ntp=("192.0.2.10", "192.0.2.11"),
            dns=("192.0.2.3", "192.0.2.4"),
            syslog=(("192.0.2.5", 514, "udp"), ("192.0.2.6", 1514, "tcp")),
            snmp_users=("poll",),
            snmp_location="hall 2",
            users=("admin", "guest"),
            timezone="Europe/Berlin",
        ),
        keepalive_s=2,
        hold_s=6,
        bfd_interval_ms=250,
        bfd_multiplier=3,
        limits={"192.0.2.98": 700, "192.0.2.99": 30},
        with_bfd=frozenset({"192.0.2.98"}),
        adaptive_routing=True,
    )


def test_eos_without_timers_has_its_defaults() -> None:
    found = read("eos", "router bgp 65001\n   neighbor interface Et1/1 peer-group UP remote-as 65002\n")
    assert (found.keepalive_s, found.hold_s, found.bfd_interval_ms) == (60, 180, None)


def test_eos_with_pfc_off_everywhere_has_no_lossless_port() -> None:
    found = read("eos", EOS_ON_INTERFACES.replace("    vlan 10,", "    priority-flow-control all off\n    vlan 10,"))
    assert found.qos.lossless == ()
    assert not any(port.is_lossless for port in found.ports)


def test_eos_with_all_lanes_in_use_reveals_the_breakouts() -> None:
    found = read("eos", "interface Ethernet1/1\n   speed 200g-2\ninterface Ethernet2/5\n   speed 400g-4\n")
    assert [port.split for port in found.ports] == ["4x200G", "2x400G"]


HEADER_AS_JSON = (
    """[{"header": {"model": "SN5600", "rev-id": "1.0", "version": "Cumulus Linux 5.14.0"}}, {"set": {}}]"""
)
HEADINGS = [
    ("nvue", NVUE_PROFILES, "MSN4700", "5.16.1"),
    ("nvue", HEADER_AS_JSON, "SN5600", "5.14.0"),
    ("nvue", "- set:\n    system:\n      model: x\n      version: Cumulus Linux 5.1\n", "", ""),
    ("nvue", "- header:\n    rev-id: 1.0\n- set:\n    system:\n      model: x\n", "", ""),
    ("eos", EOS_ON_INTERFACES, "DCS-7260CX3-64", "4.32.3F"),
    ("eos", "! leaf01: leaf of small, DCS-7060X6-64PE, EOS 4.35.1F\n", "", ""),
    ("frr", "! FRR\nfrr version 8.4.4-1.1~deb12u1\nfrr defaults datacenter\n", "", "8.4.4"),
    ("sonic", "{}", "", ""),
]


@pytest.mark.parametrize(("platform", "text", "model", "version"), HEADINGS)
def test_headers_name_model_and_release(platform: str, text: str, model: str, version: str) -> None:
    files = {MODELS[platform].files[0]: textwrap.dedent(text)}
    assert heading(platform, files) == ExistingHeading(model, version)


def test_models_are_found_by_their_vendors_names() -> None:
    names = ("SN5600", "MSN4700", "DCS-7060X6-64PE-F", "DCS-7060X6-64PE-B-R", "DCS-7260CX3-64", "SN56", "")
    found = [models_named(name) for name in names]
    assert found == [("SN5600",), ("SN4700",), ("DCS-7060X6-64PE",), ("DCS-7060X6-64PE-B",), (), (), ()]
