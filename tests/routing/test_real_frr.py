"""Configurations by hand, as the model predicts them and as real FRR routes by them."""

from collections.abc import Mapping, Sequence

from netkit.design import Fabric
from netkit.design.hosts import RoutePlan
from netkit.platforms.compare import MODELS
from netkit.platforms.routing import Router
from netkit.routing import Cabling, NetworkState
from netkit.routing.designed import host_of
from netkit.routing.network import FamilyNetwork
from tests.frr_daemons import RunningFabric, needs_frr, until
from tests.frr_routes import observed
from tests.test_convergence import designed, files

SHARED = "4200010000"
LAST_AS = "\nroute-map LAST permit 10\n set as-path prepend last-as 2\nexit\n!\nbfd\n"
FAMILY = "address-family ipv4 unicast\n"
EDITS: Mapping[str, Sequence[tuple[str, str]]] = {
    # The AS of leaf01 and leaf02 is the same, and in the path of leaf02 it is there twice.
    "leaf01": [(FAMILY, f"{FAMILY}  neighbor SPINES allowas-in 1\n")],
    "leaf02": [
        ("4200010001", SHARED),
        (FAMILY, f"{FAMILY}  neighbor SPINES allowas-in 1\n"),
        ("route-map TO-SPINES permit 10\n", f"route-map TO-SPINES permit 10\n set as-path prepend {SHARED}\n"),
    ],
    # Only what comes from another one has a last AS.
    "leaf03": [(FAMILY, f"{FAMILY}  neighbor swp33s0 route-map LAST out\n"), ("\nbfd\n", LAST_AS)],
    "spine01": [
        ("4200010001", SHARED),
        (FAMILY, f"{FAMILY}  neighbor swp2s0 route-map LAST out\n"),
        ("\nbfd\n", LAST_AS),
    ],
    "spine02": [("4200010001", SHARED)],
}
STATIC = {
    # Neither the address nor what would lead to it is there.
    "leaf03": [
        "ip route 10.128.0.0/29 10.99.0.1",
        "ip route 10.128.128.8/29 10.98.0.1",
        "ip route 10.98.0.0/24 nowhere",
    ],
    # The first is connected, the second behind a route whose next hop is.
    "leaf04": [
        "ip route 10.128.0.0/29 10.128.128.9",
        "ip route 10.97.0.0/24 10.128.128.9",
        "ip route 10.128.0.8/29 10.97.0.1",
    ],
}
Widths = dict[tuple[str, str], int]
"""By two leaves, over how many ports the first sends to the hosts of the second."""


@needs_frr
def test_own_as_numbers_prepended_paths_and_static_routes_are_those_of_frr() -> None:
    fabric = designed()
    by_hand = {name: {**found, "frr.conf": edited(name, found["frr.conf"])} for name, found in files(fabric).items()}
    wanted = predicted(fabric, by_hand)
    with RunningFabric(fabric, by_hand) as running:
        for name, lines in STATIC.items():
            running.boxes[name].start(["staticd"])
            running.boxes[name].vtysh("-c", "configure", *(word for line in lines for word in ("-c", line)))
        until(lambda: routed(running) == wanted, lambda: f"{wanted} is predicted, and {routed(running)} is there")
    differing = {pair: width for pair, width in wanted.items() if width != 2}
    assert differing == {
        ("leaf01", "leaf02"): 0,
        ("leaf03", "leaf01"): 1,
        ("leaf03", "leaf02"): 1,
        ("leaf03", "leaf04"): 1,
        ("leaf04", "leaf01"): 0,
        ("leaf04", "leaf03"): 0,
    }


def edited(name: str, text: str) -> str:
    for old, new in EDITS.get(name, ()):
        assert old in text
        text = text.replace(old, new)
    return text


def predicted(fabric: Fabric, by_hand: Mapping[str, Mapping[str, str]]) -> Widths:
    """The widths by the model."""
    routers = {}
    for name, found in by_hand.items():
        text = found["frr.conf"] + "".join(f"{line}\n" for line in STATIC.get(name, ()))
        routers[name] = (router({**found, "frr.conf": text}),)
    plan, plan_v6 = RoutePlan(fabric), RoutePlan(fabric, 6)
    hosts = {one.name: (host_of(plan, plan_v6, one),) for one in fabric.hosts}
    network = FamilyNetwork(Cabling.of([fabric]), routers, hosts)
    leaves = [leaf.name for leaf in fabric.tier("leaf")]
    paths = network.paths(NetworkState(), leaves)
    at = {leaf: network.at(leaf) for leaf in leaves}
    return {
        (leaf, other): sum(mask & at[other] == at[other] for _, mask in paths[leaf])
        for leaf in leaves
        for other in leaves
        if leaf != other
    }


def router(found: Mapping[str, str]) -> Router:
    model = MODELS["frr"]
    assert model.router is not None
    return model.router(model.parse(found))


def routed(running: RunningFabric) -> Widths:
    """The widths by the routes of BGP that the switches have installed."""
    found, leaves = observed(running), running.fabric.tier("leaf")
    return {
        (leaf.name, other.name): len(found[leaf.name].get(other.leaf_prefix, ()))
        for leaf in leaves
        for other in leaves
        if leaf is not other
    }
