from dataclasses import replace

import pytest

from netkit.facts import Facts
from netkit.facts.host import HostFacts
from netkit.facts.routing import Lookup
from netkit.judge import Scene
from tests.checks.judging import said, skipped
from tests.judge.scenes import fabric, observation, scene

BUILT = fabric()
BLOCKED = fabric(cross_rail="blocked")
GPU, OTHER = BUILT.hosts
NIC, FAR, ACROSS = GPU.nics[0], OTHER.nics[0], OTHER.nics[1]
UPS = tuple(port.name for port in BUILT.switch("leaf01").ports if port.role == "up")
PREFIX = BUILT.switch("leaf02").leaf_prefix


def leaf(ways: tuple[str, ...] | None) -> Scene:
    routes = {} if ways is None else {PREFIX: ways}
    return scene(BUILT, observation("leaf01", Facts(routes=routes)))


def test_every_leaf_is_reached_over_all_paths() -> None:
    assert said(leaf(UPS), "routes.paths") == []
    assert said(leaf(UPS[:1]), "routes.paths") == [
        ("fail", "leaf01", "", f"{PREFIX} of leaf02 is reached over 1 ports, not over {len(UPS)}")
    ]
    assert said(leaf(None), "routes.paths") == [("fail", "leaf01", "", f"no route to {PREFIX}, which leaf02 announces")]


def test_paths_that_are_drained_are_not_asked_for_and_others_are() -> None:
    spine = next(port.peer for port in BUILT.switch("leaf01").ports if port.name == UPS[0])
    built = replace(BUILT, switches=tuple(replace(one, drain=one.name == spine) for one in BUILT.switches))
    left = tuple(port.name for port in BUILT.switch("leaf01").ports if port.role == "up" and port.peer != spine)
    for ways, is_told in ((UPS, False), (left, False), (left[1:], True)):
        seen = observation("leaf01", Facts(routes={PREFIX: ways}))
        assert bool(said(scene(built, seen), "routes.paths")) == is_told
    drained = scene(built, observation(spine, Facts(routes={})))
    assert said(drained, "routes.paths") == []
    text = "by design it reaches no other leaf over what is not drained"
    assert (spine, "", text) in skipped(drained, "routes.paths")


def host(lookup: Lookup, built: object = BUILT) -> Scene:
    return scene(built, observation("gpu01", Facts(lookups=(lookup,))))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("out", "gateway", "failure", "text"),
    [
        (NIC.interface, NIC.gateway, "", ""),
        ("rail1", NIC.gateway, "", "leaves by rail1"),
        (NIC.interface, "", "", "goes to nobody, as if it were on the same link"),
        ("", "", "network is unreachable", "network is unreachable"),
    ],
)
def test_packets_leave_by_their_own_nic(out: str, gateway: str, failure: str, text: str) -> None:
    found = said(host(Lookup(NIC.address, NIC.interface, FAR.address, out, gateway, failure)), "routes.lookups")
    assert [(place, told.partition(": ")[2].partition(",")[0]) for _, _, place, told in found] == (
        [(NIC.interface, text.partition(",")[0])] if text else []
    )


def test_rails_that_are_kept_apart_are() -> None:
    way = Lookup(NIC.address, NIC.interface, ACROSS.address, NIC.interface, NIC.gateway)
    assert said(host(way), "routes.lookups") == []
    assert said(host(way, BLOCKED), "routes.lookups") == [
        (
            "fail",
            "gpu01",
            NIC.interface,
            f"to {ACROSS.address} of rail 1: goes to {NIC.gateway}, though rails are kept apart",
        )
    ]
    none = Lookup(NIC.address, NIC.interface, ACROSS.address, failure="no route to host")
    assert said(host(none, BLOCKED), "routes.lookups") == []


def test_a_nic_has_its_own_address_and_no_other() -> None:
    mine = {nic.interface: (f"{nic.address}/{nic.prefix_length}", "fe80::1/64") for nic in GPU.nics}
    assert said(scene(BUILT, observation("gpu01", Facts(host=HostFacts(addresses=mine)))), "routes.addresses") == []
    twice = {**mine, "rail0": (*mine["rail0"], mine["rail1"][0])}
    found = said(scene(BUILT, observation("gpu01", Facts(host=HostFacts(addresses=twice)))), "routes.addresses")
    assert [(verdict, place) for verdict, _, place, _ in found] == [("fail", "rail0")]
