"""Differences between two snapshots: each kind of facts, and none where one of them has no value."""

from dataclasses import replace
from typing import Any

import pytest

from netkit.facts import Absent, Facts, Observation, Sample, Snapshot
from netkit.facts.device import KINDS, Interface, Neighbor, System
from netkit.facts.host import BgpSession, DefaultRoute, HostFacts, NicFacts
from netkit.facts.optic import Lane, Line, Module
from netkit.facts.qos import Ecn, PortQos, Watchdog
from netkit.judge.difference import Difference, differences

HOUR_S = 3600.0


def found(was: Facts | Observation, now: Facts | Observation, light_db: float = 2.0) -> list[tuple[Any, ...]]:
    """The differences between two states of one device that are an hour apart."""
    sides = [one if isinstance(one, Observation) else Observation("leaf01", "nvue", one) for one in (was, now)]
    before, after = (Snapshot("small", at_s, {"leaf01": one}) for at_s, one in zip((0.0, HOUR_S), sides, strict=True))
    both = differences(before, after, ["leaf01"], KINDS, light_db)
    return [reported(one) for one in both.found]


def reported(one: Difference) -> tuple[Any, ...]:
    return one.kind, one.place, one.what, one.was, one.now, one.is_worse


UP = Interface(is_up=True, is_enabled=True, speed_gbps=400.0, fec="rs", mtu_bytes=9216)
WELL = BgpSession(True, "Established", 65001, 10, 10, 7200.0, is_bfd_up=True)
OPTIC = Module(vendor="ACME", part="O-800", serial="A1", firmware="1.0", lanes={1: Lane(-1.0, 1.0)})
NIC = NicFacts("eth0", "18:00.0", psid="MT_1", firmware="28.43.1014", pci_gt_s=32.0, pci_width=16)
CASES: dict[str, tuple[Facts, Facts, list[tuple[Any, ...]]]] = {
    "a link that went down says nothing of its speed": (
        Facts(interfaces={"swp1": UP}),
        Facts(interfaces={"swp1": replace(UP, is_up=False, speed_gbps=None, fec="none")}),
        [("link", "swp1", "link", "up", "down", True)],
    ),
    "speed, FEC and MTU": (
        Facts(interfaces={"swp1": UP}),
        Facts(interfaces={"swp1": replace(UP, speed_gbps=200.0, fec="fc", mtu_bytes=1500)}),
        [
            ("link", "swp1", "speed in Gbit/s", "400", "200", True),
            ("link", "swp1", "FEC", "rs", "fc", None),
            ("link", "swp1", "MTU", "9216", "1500", None),
        ],
    ),
    "a port that came back": (
        Facts(interfaces={"swp1": replace(UP, is_up=False, is_enabled=False)}),
        Facts(interfaces={"swp1": UP}),
        [("link", "swp1", "link", "down", "up", False), ("link", "swp1", "port", "disabled", "enabled", None)],
    ),
    "a session lost, one new, one restarted in between": (
        Facts(sessions={"swp1": WELL, "swp2": WELL}),
        Facts(
            sessions={
                "swp1": replace(WELL, is_established=False, state="Active"),
                "swp2": replace(WELL, uptime_s=60.0),
                "swp3": WELL,
            }
        ),
        [
            ("session", "swp3", "BGP session", "", "established", None),
            ("session", "swp1", "BGP session", "established", "Active", True),
            ("session", "swp2", "BGP session was down in between", "", "yes", None),
        ],
    ),
    "routes": (
        Facts(routes={"10.0.0.0/24": ("swp1", "swp2"), "10.0.1.0/24": ("swp1",), "10.0.2.0/24": ("swp1",)}),
        Facts(routes={"10.0.0.0/24": ("swp1",), "10.0.1.0/24": ("swp2",), "10.0.3.0/24": ("swp1",)}),
        [
            ("route", "10.0.2.0/24", "route", "there", "", True),
            ("route", "10.0.3.0/24", "route", "", "there", None),
            ("route", "10.0.0.0/24", "equal paths", "2", "1", True),
            ("route", "10.0.1.0/24", "next hops", "swp1", "swp2", None),
        ],
    ),
    "cables": (
        Facts(neighbors={"swp1": (Neighbor("gpu01", "eth0"),), "swp2": (Neighbor("gpu02", "eth0"),)}),
        Facts(neighbors={"swp1": (Neighbor("gpu03", "eth0"),)}),
        [
            ("neighbor", "swp1", "neighbour", "gpu01 eth0", "gpu03 eth0", None),
            ("neighbor", "swp2", "neighbour", "gpu02 eth0", "", True),
        ],
    ),
    "a module swapped for one with other firmware, and less light": (
        Facts(modules={"swp1": OPTIC}),
        Facts(modules={"swp1": replace(OPTIC, serial="B2", firmware="1.1", lanes={1: Lane(-3.5, 1.5)})}),
        [
            ("module", "swp1", "module swapped", "ACME O-800 A1", "ACME O-800 B2", None),
            ("module", "swp1", "module firmware", "1.0", "1.1", None),
            ("light", "swp1/1", "received power", "-1.0 dBm", "-3.5 dBm", True),
        ],
    ),
    "a module pulled": (
        Facts(modules={"swp1": OPTIC}),
        Facts(modules={"swp1": Module(is_present=False)}),
        [("module", "swp1", "module", "ACME O-800 A1", "", True)],
    ),
    "bits": (
        Facts(lines={"swp1": Line(ber=1e-9), "swp2": Line(ber=1e-8), "swp3": Line(ber=1e-12)}),
        Facts(lines={"swp1": Line(ber=1e-6), "swp2": Line(ber=5e-8), "swp3": Line(ber=1e-10)}),
        [("bits", "swp1", "bit error rate before FEC", "1.0e-09", "1.0e-06", True)],
    ),
    "versions and a restart": (
        Facts(system=System(version="5.13.0", boot="a", uptime_s=9000.0)),
        Facts(system=System(version="5.14.0", boot="b", uptime_s=100.0)),
        [
            ("device", "", "restarted in between", "", "yes", None),
            ("version", "", "version", "5.13.0", "5.14.0", None),
        ],
    ),
    "a NIC with other firmware that trained half of its lanes": (
        Facts(nics={"eth0": NIC}),
        Facts(nics={"eth0": replace(NIC, firmware="28.44.1036", pci_width=8, settings={"A": "1"})}),
        [
            ("version", "eth0", "NIC firmware", "28.43.1014", "28.44.1036", None),
            ("host", "eth0", "PCIe lanes", "16", "8", True),
            ("host", "eth0", "setting A", "", "1", None),
        ],
    ),
    "a host": (
        Facts(host=HostFacts({"rp_filter": "2"}, tools={"ofed": "24.10", "mft": "4.34"}, default_routes=())),
        Facts(
            host=HostFacts(
                {"rp_filter": "1"},
                tools={"ofed": "24.10", "mft": "", "libnccl": ""},
                default_routes=(DefaultRoute("eth0"),),
            )
        ),
        [
            ("host", "", "sysctl rp_filter", "2", "1", None),
            ("host", "", "default routes", "none", "on link over eth0", None),
        ],
    ),
    "QoS": (
        Facts(qos={"swp1": PortQos("dscp", pfc_rx=frozenset({3}), ecn={3: Ecn(True, 1, 2, 3.0)})}),
        Facts(qos={"swp1": PortQos("pcp", pfc_rx=frozenset(), ecn={3: Ecn(False)}, weights={0: 50})}),
        [
            ("qos", "swp1", "trust", "dscp", "pcp", None),
            ("qos", "swp1", "pfc rx", "3", "none", None),
            ("qos", "swp1", "ecn 3", "1 to 2 bytes, 3.0 %", "off", None),
        ],
    ),
    "a watchdog and adaptive routing": (
        Facts(watchdogs={"swp1/3": Watchdog(True, action="drop")}, adaptive_routing={"swp1": True}),
        Facts(watchdogs={"swp1/3": Watchdog(False, True, action="forward")}, adaptive_routing={"swp1": False}),
        [
            ("qos", "swp1/3", "PFC watchdog", "on", "off", True),
            ("qos", "swp1/3", "PFC watchdog sees", "no storm", "storm", True),
            ("qos", "swp1/3", "PFC watchdog action", "drop", "forward", None),
            ("qos", "swp1", "adaptive routing", "on", "off", True),
        ],
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_differences(name: str) -> None:
    was, now, wanted = CASES[name]
    assert found(was, now) == wanted
    assert found(was, was) == found(now, now) == []


def test_the_reverse_of_worse_is_better() -> None:
    for was, now, wanted in CASES.values():
        back = {one[1:3]: one[5] for one in found(now, was)}
        for _, place, what, _, _, is_worse in wanted:
            if is_worse is not None and (place, what) in back and "gone" not in what:
                assert back[place, what] is not is_worse, (place, what)


def test_optical_power_that_moved_less_than_the_threshold_is_not_different() -> None:
    was = Facts(modules={"swp1": OPTIC})
    now = Facts(modules={"swp1": replace(OPTIC, lanes={1: Lane(-3.5, 1.5)})})
    assert found(was, now, light_db=2.5) == []
    assert len(found(was, now, light_db=2.4)) == 1


def test_only_values_in_both_are_compared() -> None:
    was = Observation("leaf01", "nvue", Facts(routes={"10.0.0.0/24": ("swp1",)}, sessions=Absent("bgpd is down")))
    now = Observation("leaf01", "nvue", Facts(routes=Absent("no such command"), sessions=Absent("bgpd is down")))
    both = differences(Snapshot("s", 0.0, {"leaf01": was}), Snapshot("s", 1.0, {"leaf01": now}), ["leaf01"], KINDS, 2.0)
    assert both.found == ()
    assert [(one.kind, one.reason) for one in both.uncompared] == [("routes", "after: no such command")]


def test_a_device_that_became_unreachable_is_one_difference() -> None:
    was = Observation("leaf01", "nvue", Facts(sessions={"swp1": WELL}))
    now = Observation("leaf01", "nvue", failure="connection refused")
    assert found(was, now) == [("device", "", "reached", "reached", "connection refused", True)]
    assert found(now, was) == [("device", "", "reached", "connection refused", "reached", False)]
    gone = differences(Snapshot("s", 0.0, {"leaf01": was}), Snapshot("s", 1.0, {}), ["leaf01", "leaf09"], KINDS, 2.0)
    assert [reported(one) for one in gone.found] == [("device", "", "in the snapshot", "seen", "", None)]


def counted(drops: int, pauses: int, seconds: float = 10.0) -> Observation:
    """A device whose counters increased by this much."""
    samples = tuple(
        Sample(at_s, {"queue_drops": {"swp1/3": end * drops}, "rx_pause": {"swp1/3": end * pauses}})
        for end, at_s in ((0, 0.0), (1, seconds))
    )
    return Observation("leaf01", "nvue", Facts(counters=samples[1].counters), samples)


def test_rates_that_surely_changed() -> None:
    assert found(counted(0, 1000), counted(3, 5000)) == [
        ("counter", "swp1/3", "queue drops", "0/s", "0.3/s", True),
        ("counter", "swp1/3", "rx pause", "100/s", "500/s", None),
    ]
    assert found(counted(3, 1000), counted(5, 1500)) == []
    assert found(counted(10, 0), counted(0, 0)) == [("counter", "swp1/3", "queue drops", "1/s", "0/s", False)]
    once = replace(counted(0, 0), samples=counted(0, 0).samples[:1])
    assert found(once, counted(9, 9)) == []
