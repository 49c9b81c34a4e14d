"""Static routes of switches: rendered, parsed, owned or left, and prefixes of the fabric that they shadow."""

from dataclasses import replace
from ipaddress import IPv4Network
from typing import Any

import pytest

from netkit.design import Fabric
from netkit.design.hosts import RoutePlan
from netkit.facts import Facts
from netkit.platforms.compare import MODELS, compare
from netkit.platforms.routing import Router, RouterRoute
from netkit.render import Engine, render
from netkit.routing import Cabling, Network, NetworkState
from netkit.routing.designed import host_of, router_of
from tests import intents
from tests.checks.judging import said
from tests.judge.scenes import observation, scene
from tests.platforms.test_routing import check_all
from tests.schema import eos, nvue
from tests.test_external import RELEASES

ROUTES: list[dict[str, Any]] = [
    {"prefix": "198.18.0.0/16", "via": "10.128.0.1", "devices": "leaf01"},
    {"prefix": "198.18.0.0/16", "via": "10.128.0.3", "devices": "leaf01"},
    {"prefix": "0.0.0.0/0", "via": "10.128.0.1", "devices": "leaf01"},
    {"prefix": "198.19.0.0/16", "discard": True},
]
NO_ROUTE = "no route to 198.18.0.0/16 by 10.128.0.1 and 10.128.0.3"
MANAGED = {"prefix": "203.0.113.0/24", "via": "192.0.2.254", "vrf": "management"}
ONE = {
    "nvue": "            198.18.0.0/16:\n              address-family: ipv4-unicast\n              via:\n"
    "                10.128.0.1:\n                  type: ipv4-address\n",
    "eos": "ip route 198.18.0.0/16 10.128.0.1\n",
    "frr": "ip route 198.18.0.0/16 10.128.0.1\n",
    "sonic": "ip route 198.18.0.0/16 10.128.0.1\n",
}


def fabric(name: str, static: list[dict[str, Any]] | None = None) -> Fabric:
    platform = name.partition("-")[0]
    changes: dict[str, Any] = {} if static is None else {"routing": {"static": static}}
    if name.endswith("unified"):
        tier = {"routing_mode": "unified"}
        changes["switches"] = {"leaf": tier, "spine": tier}
    return intents.fabric(intents.on_platform(platform, RELEASES[name][0], changes))


def files(of: Fabric, name: str = "leaf01") -> dict[str, str]:
    (rendered,) = render(of, [of.switch(name)], Engine())
    return dict(rendered.files)


@pytest.mark.parametrize("name", RELEASES)
def test_parsed_static_routes_equal_the_design(name: str) -> None:
    of = fabric(name, ROUTES)
    check_all(of)
    assert [(route.prefix, route.vias) for route in of.switch("leaf01").static] == [
        ("0.0.0.0/0", ("10.128.0.1",)),
        ("198.18.0.0/16", ("10.128.0.1", "10.128.0.3")),
        ("198.19.0.0/16", ()),
    ]
    assert [route.prefix for route in of.switch("spine01").static] == ["198.19.0.0/16"]


def test_a_nos_accepts_files_with_static_routes() -> None:
    assert eos.problems(files(fabric("eos", [*ROUTES, MANAGED]))["eos.cfg"], "4.35.1F") == []
    for name in ("nvue", "nvue-new"):
        text = files(fabric(name, [*ROUTES, MANAGED]))["startup.yaml"]
        assert nvue.problems(text, is_new=name == "nvue-new") == []


@pytest.mark.parametrize("name", ["nvue", "eos", "frr", "sonic"])
def test_routes_outside_the_intent_are_removed_only_if_it_has_a_list(name: str) -> None:
    with_one, without, plain = files(fabric(name, ROUTES[:1])), files(fabric(name, [])), files(fabric(name))
    assert ONE[name] in "".join(with_one.values())
    assert compare(MODELS[name], with_one, plain).changes == ()
    removed = compare(MODELS[name], with_one, without).changes
    assert removed
    assert all(change.is_removal and change.risk.word == "low" for change in removed), removed
    assert compare(MODELS[name], without, with_one).changes
    assert compare(MODELS[name], with_one, with_one).changes == ()


def routers(of: Fabric, **changed: Router) -> Network:
    plan, plan_v6 = RoutePlan(of), RoutePlan(of, 6)
    known = {switch.name: changed.get(switch.name, router_of(of, switch)) for switch in of.switches}
    hosts = {host.name: [host_of(plan, plan_v6, host)] for host in of.hosts}
    return Network(Cabling.of([of]), {name: [router] for name, router in known.items()}, hosts)


@pytest.mark.parametrize(
    ("prefix", "is_lost"), [("10.128.128.0/17", False), ("10.128.0.8/29", True), ("198.18.0.0/16", False)]
)
def test_a_static_route_shadows_the_prefixes_it_covers(prefix: str, *, is_lost: bool) -> None:
    of = fabric("nvue")
    leaf = router_of(of, of.switch("leaf01"))
    astray = replace(leaf, static=(RouterRoute(IPv4Network(prefix)),))
    usual, now = (routers(of, leaf01=one).outlook(NetworkState()).rows for one in (leaf, astray))
    assert (usual != now) == is_lost


@pytest.mark.parametrize(
    ("routes", "reported"),
    [
        ({"198.18.0.0/16": ("swp1s0",), "0.0.0.0/0": ("swp1s0",)}, []),
        ({"198.18.0.0/16": ()}, ["no route to 0.0.0.0/0 by 10.128.0.1", NO_ROUTE]),
        ({"0.0.0.0/0": ("swp1s0",)}, [NO_ROUTE]),
    ],
)
def test_a_static_route_that_is_not_installed_is_found(routes: dict[str, tuple[str, ...]], reported: list[str]) -> None:
    seen = scene(fabric("nvue", ROUTES), observation("leaf01", Facts(routes=routes)))
    assert said(seen, "routes.static") == [("fail", "leaf01", "", text) for text in reported]
