from dataclasses import replace

import pytest

from netkit.facts import Facts
from netkit.facts.host import DefaultRoute, HostFacts, Lookup
from netkit.judge import CheckContext
from tests.checks.judging import judge, said, shipped, skipped
from tests.judge.scenes import fabric, observation, scene

BUILT = fabric()
BLOCKED = fabric(cross_rail="blocked")
GPU, OTHER = BUILT.hosts
NIC, FAR, ACROSS = GPU.nics[0], OTHER.nics[0], OTHER.nics[1]
UPS = tuple(port.name for port in BUILT.switch("leaf01").ports if port.role == "up")
PREFIX = BUILT.switch("leaf02").leaf_prefix


def leaf(ways: tuple[str, ...] | None) -> CheckContext:
    routes = {} if ways is None else {PREFIX: ways}
    return scene(BUILT, observation("leaf01", Facts(routes=routes)))


def test_every_leaf_is_reached_over_all_paths() -> None:
    assert said(leaf(UPS), "routes.paths") == []
    assert said(leaf(UPS[:1]), "routes.paths") == [
        ("fail", "leaf01", "", f"{PREFIX} of leaf02 is reached over 1 ports, not over {len(UPS)}")
    ]
    assert said(leaf(None), "routes.paths") == [("fail", "leaf01", "", f"no route to {PREFIX}, which leaf02 announces")]


def test_drained_paths_are_not_required_and_others_are() -> None:
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


def host(lookup: Lookup, built: object = BUILT) -> CheckContext:
    return scene(built, observation("gpu01", Facts(lookups=(lookup,))))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("out", "gateway", "failure", "text"),
    [
        (NIC.interface, NIC.gateway, "", ""),
        ("rail1", NIC.gateway, "", "leaves by rail1"),
        (NIC.interface, "", "", "goes to no gateway, as if it were on-link"),
        ("", "", "network is unreachable", "network is unreachable"),
    ],
)
def test_packets_leave_by_their_own_nic(out: str, gateway: str, failure: str, text: str) -> None:
    found = said(host(Lookup(NIC.address, NIC.interface, FAR.address, out, gateway, failure)), "routes.lookups")
    assert [(place, reported.partition(": ")[2].partition(",")[0]) for _, _, place, reported in found] == (
        [(NIC.interface, text.partition(",")[0])] if text else []
    )


@pytest.mark.parametrize(
    ("by_rule", "by_nic", "causes"),
    [
        ("", "", set()),
        ("rail1", "rail1", {f"a route of gpu01:{NIC.interface} leads elsewhere"}),
        ("rail1", "", {f"the rule for {NIC.address} leads elsewhere"}),
        ("", "rail1", set()),
    ],
    ids=["well", "route", "rule", "no rule by interface"],
)
def test_a_rule_for_another_table_is_distinguished_from_a_wrong_route(
    by_rule: str, by_nic: str, causes: set[str]
) -> None:
    asked = [
        Lookup(source, NIC.interface, FAR.address, out or NIC.interface, NIC.gateway)
        for source, out in ((NIC.address, by_rule), ("", by_nic))
    ]
    found = scene(BUILT, observation("gpu01", Facts(lookups=tuple(asked))))
    reported = judge(found, [shipped()["routes.lookups"]]).findings
    assert {one.cause for one in reported if one.cause} == causes


def test_isolated_rails_have_no_routes_to_each_other() -> None:
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


def defaults(*ways: DefaultRoute) -> list[tuple[str, str, str]]:
    """The finding on a host with these default routes."""
    seen = observation("gpu01", Facts(host=HostFacts(default_routes=ways)))
    return [(verdict, place, text) for verdict, _, place, text in said(scene(BUILT, seen), "routes.default")]


def test_the_default_route_uses_management_and_no_rail() -> None:
    own, waiting = DefaultRoute("eno1", "198.51.100.1", 100), DefaultRoute("rail1", NIC.gateway, 200)
    assert defaults() == defaults(own) == []
    assert defaults(own, DefaultRoute("rail0", NIC.gateway)) == [
        ("fail", "rail0", f"has the IPv4 default route to {NIC.gateway}")
    ]
    assert defaults(own, waiting) == [
        ("warn", "rail1", f"has an IPv4 default route to {NIC.gateway}, which waits behind another")
    ]


def test_default_routes_of_two_families_are_judged_independently() -> None:
    reported = defaults(DefaultRoute("eno1", "198.51.100.1", 100), DefaultRoute("rail0", "", 1024, 6))
    assert reported == [("fail", "rail0", "has the IPv6 default route")]


def test_unread_default_routes_are_skipped() -> None:
    seen = scene(BUILT, observation("gpu01", Facts(host=HostFacts())))
    assert skipped(seen, "routes.default") == [("gpu01", "", "its default routes were not read")]


def twice(**more: tuple[str, ...]) -> list[tuple[str, str, str, str]]:
    """The finding on two hosts of which the first has extra addresses."""
    own, other = ({nic.interface: (f"{nic.address}/31",) for nic in host.nics} for host in (GPU, OTHER))
    reported = {**own, "lo": ("127.0.0.1/8",), "docker0": ("172.17.0.1/16",), **more}
    seen = [observation("gpu01", Facts(host=HostFacts(addresses=reported)))]
    seen.append(observation("gpu02", Facts(host=HostFacts(addresses={**other, "docker0": ("172.17.0.1/16",)}))))
    return said(scene(BUILT, *seen), "routes.duplicates")


def test_an_address_of_the_fabric_is_on_one_interface_only() -> None:
    assert twice() == []
    loopback = BUILT.switch("leaf01").loopback
    taken = [
        ({"eno1": (f"{FAR.address}/24",)}, "eno1", FAR.address, "gpu02, rail0"),
        ({"br0": (f"{NIC.address}/31",)}, "br0", NIC.address, "gpu01, rail0"),
        ({"rail0": (f"{NIC.gateway}/31",)}, "rail0", NIC.gateway, f"leaf01, {NIC.leaf_port}"),
        ({"lo": (f"{loopback}/32",)}, "lo", loopback, "leaf01, its loopback"),
    ]
    for more, place, address, owner in taken:
        assert twice(**more) == [("fail", "gpu01", place, f"has {address}, the address of {owner}")]


def test_an_address_that_moved_within_its_host_counts_once() -> None:
    assert twice(enp24s0np0=(f"{NIC.address}/31",), rail0=()) == []
