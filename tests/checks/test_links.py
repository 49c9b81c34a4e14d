from dataclasses import replace

import pytest

from netkit.facts import Facts
from netkit.facts.device import Interface, Neighbor
from netkit.facts.host import NicFacts
from netkit.judge import CheckContext, Verdict
from netkit.judge.cause import cause_groups
from tests.checks.judging import judge, said, shipped, skipped
from tests.judge.scenes import fabric, observation, scene

BUILT = fabric()
LEAF = BUILT.switch("leaf01")
GPU = BUILT.hosts[0]
UP = Interface(is_up=True, is_enabled=True, speed_gbps=400, mtu_bytes=9216, fec="rs")


def leaf(**changes: Interface | None) -> CheckContext:
    """Facts of one leaf whose ports are healthy except for this first one."""
    ports: dict[str, Interface] = {port.name: UP for port in LEAF.ports}
    for name, state in changes.items():
        ports.pop(name)
        ports |= {name: state} if state else {}
    return scene(BUILT, observation("leaf01", Facts(interfaces=ports)))


def test_ports_are_up_with_their_speed_and_mtu() -> None:
    assert said(leaf(), "links") == []
    assert said(leaf(swp1s0=replace(UP, is_up=False, is_enabled=False)), "links.up") == [
        ("fail", "leaf01", "swp1s0", "down, because it is disabled; gpu01:rail0 is at the other end")
    ]
    assert said(leaf(swp1s0=None), "links.up") == [("fail", "leaf01", "swp1s0", "the device has no such port")]
    assert said(leaf(swp1s0=replace(UP, speed_gbps=200)), "links.speed") == [
        ("fail", "leaf01", "swp1s0", "runs at 200G, not at 400G, towards gpu01:rail0")
    ]
    assert said(leaf(swp1s0=replace(UP, mtu_bytes=1500)), "links.mtu") == [
        ("fail", "leaf01", "swp1s0", "has an MTU of 1500, not of 9216, towards gpu01:rail0")
    ]
    assert said(leaf(swp1s0=replace(UP, link_up_s=45.0)), "links.link-up-time") == [
        ("warn", "leaf01", "swp1s0", "took 45 s to come up; gpu01:rail0 is at the other end")
    ]


@pytest.mark.parametrize(("is_up", "is_reached", "heads"), [(False, False, 1), (True, False, 1), (False, True, 2)])
def test_a_host_that_is_switched_off_is_one_incident(*, is_up: bool, is_reached: bool, heads: int) -> None:
    """Its second leaf sees it up or down too; a host that answers has individual cables down."""
    ends = {nic.leaf: nic.leaf_port for nic in GPU.nics}
    states = dict(zip(ends, (False, is_up), strict=True))
    seen = [
        observation(leaf, Facts(interfaces=dict.fromkeys(_names(leaf), UP) | {ends[leaf]: replace(UP, is_up=up)}))
        for leaf, up in states.items()
    ]
    host = [observation(GPU.name, Facts())] if is_reached else []
    judged = judge(scene(BUILT, *seen, *host), [shipped()["links.up"]])
    assert [one.head.verdict.word for one in cause_groups(judged.findings, {})] == ["fail"] * heads
    text = "down; gpu01:rail0 is at the other end, a host that was not reached and has no link anywhere"
    assert (text in {one.text for one in judged.findings}) == (not is_up and not is_reached)


def _names(leaf: str) -> list[str]:
    return [port.name for port in BUILT.switch(leaf).ports]


def test_unreported_values_are_skipped() -> None:
    found = leaf(swp1s0=Interface())
    assert ("leaf01", "swp1s0", "the device does not report whether it is up") in skipped(found, "links.up")
    assert ("leaf01", "swp1s0", "the device does not report its MTU") in skipped(found, "links.mtu")


def test_both_ends_use_the_same_fec() -> None:
    host = observation("gpu01", Facts(interfaces={"rail0": replace(UP, fec="fc"), "rail1": UP}))
    built = observation("leaf01", Facts(interfaces={"swp1s0": UP}))
    assert said(scene(BUILT, host, built), "links.fec") == [
        ("fail", "gpu01", "rail0", "FEC fc here, rs on leaf01:swp1s0")
    ]


def test_vendor_names_of_fec_are_not_compared() -> None:
    host = observation("gpu01", Facts(interfaces={"rail0": UP, "rail1": UP}))
    built = observation("leaf01", Facts(interfaces={"swp1s0": replace(UP, fec="auto")}))
    assert said(scene(BUILT, host, built), "links.fec") == []
    text = "FEC 'rs' here and 'auto' on leaf01:swp1s0 cannot be compared"
    assert ("gpu01", "rail0", text) in skipped(scene(BUILT, host, built), "links.fec")


def test_a_flapping_link_is_reported_with_its_window() -> None:
    seen = observation("leaf01", carrier_changes={"swp1s0": (4, 10), "swp1s1": (4, 4)})
    assert said(scene(BUILT, seen), "links.flaps") == [
        ("fail", "leaf01", "swp1s0", "went down or up 6 times in 10 s; gpu01:rail0 is at the other end")
    ]


def cabled(leaf_sees: dict[str, Neighbor], host_sees: dict[str, Neighbor]) -> CheckContext:
    host = Facts(
        neighbors={name: (one,) for name, one in host_sees.items()},
        nics={nic.interface: NicFacts(nic.interface, nic.pci) for nic in GPU.nics},
        interfaces={"rail0": Interface(mac="02:00:00:00:00:01"), "rail1": Interface(mac="02:00:00:00:00:02")},
    )
    switch = Facts(neighbors={name: (one,) for name, one in leaf_sees.items()})
    return scene(BUILT, observation("leaf01", switch), observation("gpu01", host))


def test_cables_are_verified_by_name_by_address_and_by_alias() -> None:
    found = cabled(
        {"swp1s0": Neighbor("gpu01", "02:00:00:00:00:01", "rail0")},
        {"rail0": Neighbor("leaf01.example", "swp1s0"), "rail1": Neighbor("leaf02", "swp1s0")},
    )
    assert said(found, "links.cabling") == []
    assert said(found, "links.rails") == []


@pytest.mark.parametrize("domain", ["", ".example", ".dc1.example.com"])
def test_names_with_dots_are_not_cut(domain: str) -> None:
    rows = [{"role": "leaf", "unit": 1, "rail": rail, "name": f"RZ1.leaf{rail}"} for rail in (0, 1)]
    built = fabric(tables={"devices": rows})
    seen = {f"rail{rail}": (Neighbor(f"RZ1.leaf{rail}{domain}", "swp1s0"),) for rail in (0, 1)}
    cards = {nic.interface: NicFacts(nic.interface, nic.pci) for nic in GPU.nics}
    found = scene(built, observation("gpu01", Facts(neighbors=seen, nics=cards, interfaces={})))
    assert said(found, "links.cabling") == []
    assert said(found, "links.rails") == []


def test_a_second_lldp_agent_hides_no_neighbor_and_one_without_a_name_is_not_a_fault() -> None:
    agent = Neighbor("", "b8:3f:d2:00:00:01")
    leaf = {"swp1s0": (agent, Neighbor("gpu01", "02:00:00:00:00:01", "rail0")), "swp1s1": (agent,)}
    host = {"rail0": (Neighbor("sw-mgmt", "1"), Neighbor("leaf01", "swp1s0")), "rail1": (Neighbor("leaf02", "swp1s0"),)}
    cards = {nic.interface: NicFacts(nic.interface, nic.pci) for nic in GPU.nics}
    macs = {"rail0": Interface(mac="02:00:00:00:00:01")}
    seen = observation("gpu01", Facts(neighbors=host, nics=cards, interfaces=macs))
    found = scene(BUILT, observation("leaf01", Facts(neighbors=leaf)), seen)
    assert said(found, "links.cabling") == []
    assert said(found, "links.rails") == []
    words = "a neighbour announces port 'b8:3f:d2:00:00:01' there, but no system name"
    assert ("leaf01", "swp1s1", words) in skipped(found, "links.cabling")


def test_an_unresolvable_port_name_is_not_a_fault() -> None:
    found = cabled({}, {"rail0": Neighbor("leaf01", "etp1a")})
    assert said(found, "links.cabling") == []
    assert ("gpu01", "rail0", "leaf01 announces this port as 'etp1a', a name that is not in the design") in skipped(
        found, "links.cabling"
    )


def test_a_port_of_another_device_that_hears_the_same_end_resolves_no_name() -> None:
    heard = Neighbor("gpu01", "02:00:00:00:00:01", "rail0")
    found = cabled({"swp1s0": heard}, {"rail0": Neighbor("leaf02", "etp1a")})
    assert said(found, "links.cabling") == [
        ("fail", "gpu01", "rail0", "is plugged into leaf02:etp1a, not into leaf01:swp1s0")
    ]


def test_an_unresolvable_name_is_the_port_that_hears_the_other_end() -> None:
    macs = {"rail0": "02:00:00:00:00:01", "rail1": "02:00:00:00:00:02"}
    right = cabled({"swp1s0": Neighbor("gpu01", macs["rail0"])}, {"rail0": Neighbor("leaf01", "etp1a")})
    assert said(right, "links.cabling") == []
    assert {text for _, _, text in skipped(right, "links.cabling")} == {"no neighbour announces itself there"}
    swapped = cabled(
        {"swp1s0": Neighbor("gpu01", macs["rail1"])},
        {"rail0": Neighbor("leaf02", "x"), "rail1": Neighbor("leaf01", "x")},
    )
    found = [one for one in judge(swapped, tuple(shipped().values())).findings if one.check == "links.cabling"]
    causes = {(one.device, one.place): one.cause for one in found if one.verdict > Verdict.SKIPPED}
    assert causes["leaf01", "swp1s0"] == causes["gpu01", "rail1"]


def test_a_misplaced_cable_is_reported_with_where_to_move_it() -> None:
    found = cabled(
        {"swp1s0": Neighbor("gpu01", "02:00:00:00:00:02", "rail1")},
        {"rail0": Neighbor("leaf02", "swp1s0"), "rail1": Neighbor("leaf01", "swp1s0")},
    )
    assert said(found, "links.cabling") == [
        ("fail", "gpu01", "rail0", "is plugged into leaf02:swp1s0, not into leaf01:swp1s0"),
        ("fail", "gpu01", "rail1", "is plugged into leaf01:swp1s0, not into leaf02:swp1s0"),
        ("fail", "leaf01", "swp1s0", "is plugged into gpu01:rail1, not into gpu01:rail0"),
    ]
    assert [text for _, _, _, text in said(found, "links.rails")] == [
        "rail 0 is cabled to leaf02 of rail 1, not to leaf01",
        "rail 1 is cabled to leaf01 of rail 0, not to leaf02",
    ]
