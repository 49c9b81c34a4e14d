"""Which leaves the gate takes to depend on the sessions that a change interrupts."""

from collections.abc import Iterable, Mapping

import pytest

from netkit.deploy.live_paths import Sessions, cut_off
from netkit.design import Fabric
from tests import intents

PLANES, ONE_CORE, ONE_SPINE = (
    intents.fabric(intents.on_platform("frr", "8.4.4", intents.three_tiers(**given)))
    for given in ({}, {"planes": 1}, {"planes": 1, "spines": 1})
)
LEAVES_OF_1 = ("p1r0", "p1r1")
EVERY_LEAF = (*LEAVES_OF_1, "p2r0", "p2r1")


def said(
    design: Fabric, device: str, *peers: str, down: Iterable[tuple[str, str]] = (), more: Mapping[str, Sessions] = {}
) -> list[str]:
    """The complaints about a change that restarts a device's sessions with these peers, or with all of them."""
    lost = {frozenset(pair) for pair in down}
    sessions: dict[str, Sessions] = {
        switch.name: {
            **{port.name: 5 for port in switch.fabric_ports if frozenset({switch.name, port.peer}) not in lost},
            **more.get(switch.name, {}),
        }
        for switch in design.switches
    }
    ports = {port.name for port in design.switch(device).fabric_ports if not peers or port.peer in peers}
    asked: list[str] = []

    def read(names: Iterable[str]) -> Mapping[str, Sessions]:
        asked.extend(names)
        return {name: sessions[name] for name in names}

    found = list(cut_off(design, device, ports, read))
    assert len(asked) == len(set(asked)), "each is read once"
    return found


def no_route(*leaves: str) -> list[str]:
    line = "it has routes from no other switch: the change would cut it off"
    return [f"{leaf}: {line}; --disruptive goes on" for leaf in leaves]


def no_core(*leaves: str) -> list[str]:
    line = "it has no other way to a core: the change would cut it off from there"
    return [f"{leaf}: {line}; --disruptive goes on" for leaf in leaves]


NO_CORE_IN_PLANE_1 = [("c1x1", "p1s2"), ("c1x1", "p2s2")]
NO_CORE = [*NO_CORE_IN_PLANE_1, ("c0x1", "p1s1"), ("c0x1", "p2s1")]


@pytest.mark.parametrize(
    ("device", "peers", "down", "expected"),
    [
        ("c0x1", (), [], []),
        ("c0x1", (), NO_CORE_IN_PLANE_1, no_core(*EVERY_LEAF)),
        ("c0x1", ("p1s1",), NO_CORE_IN_PLANE_1, no_core(*LEAVES_OF_1)),
        ("c0x1", (), [("p1s2", "p1r0")], no_core("p1r0")),
        ("p1s1", (), [], []),
        ("p1s1", (), NO_CORE_IN_PLANE_1, no_core(*LEAVES_OF_1)),
        ("p1s1", ("c0x1",), [], []),
        ("p1s1", ("c0x1",), NO_CORE_IN_PLANE_1, no_core(*LEAVES_OF_1)),
        ("p1s1", (), [("p1s2", "p1r1")], no_route("p1r1")),
        # Without any core, traffic inside of a pod still needs a spine.
        ("p1s1", (), NO_CORE, []),
        ("p1s1", (), [*NO_CORE, ("p1s2", "p1r1")], no_route("p1r1")),
        ("p1r0", ("p1s1",), [], []),
        ("p1r0", ("p1s1",), [("p1s2", "p1r0")], no_route("p1r0")),
        ("p1r0", (), [], []),  # the plan names it
        ("p1s1", (), [("p1s1", "p1r0"), ("p1s2", "p1r0")], []),  # it has no routes before either
    ],
)
def test_a_leaf_needs_another_way_over_live_sessions(
    device: str, peers: tuple[str, ...], down: list[tuple[str, str]], expected: list[str]
) -> None:
    assert said(PLANES, device, *peers, down=down) == expected


@pytest.mark.parametrize(("design", "device"), [(ONE_CORE, "c0x1"), (ONE_SPINE, "p1s1"), (ONE_SPINE, "c0x1")])
def test_where_the_design_has_no_other_way_the_plan_names_the_loss(design: Fabric, device: str) -> None:
    assert said(design, device) == []


def test_a_switch_that_leaves_the_design_still_carries() -> None:
    down = [("p1s2", "p1r0")]
    assert said(PLANES, "p1s1", down=down) == no_route("p1r0")
    assert said(PLANES, "p1s1", down=down, more={"p1r0": {"swp63s0": 3}}) == []
    assert said(PLANES, "p1s1", down=down, more={"p1r0": {"swp63s0": 0}}) == no_route("p1r0")
    for address in ("203.0.113.9", "2001:db8::9", "fe80::1%swp1"):  # a host or a route server
        assert said(PLANES, "p1s1", down=down, more={"p1r0": {address: 3}}) == no_route("p1r0")
