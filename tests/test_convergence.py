"""Fabrics as netkit renders them, converging in real FRR: nothing missing, nothing extra, and never a valley.

The fabrics run in parallel, because a fabric spends its time waiting; each test takes its own result.
"""

import ctypes
import os
import socket
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import replace
from functools import partial
from ipaddress import IPv4Interface
from itertools import permutations
from typing import Any

import pytest

from netkit.design.external import valleys
from netkit.design.fabric import Fabric, Host, Nic, Switch
from netkit.render import Engine, render
from tests import intents
from tests.frr_daemons import RunningFabric, needs_frr, until
from tests.frr_routes import Routes, as_paths, expected, observed, own_prefixes, settle, valley_paths
from tests.lanes import daily

pytestmark = needs_frr

CLONE_NEWNET = 0x40000000
IP_MTU_DISCOVER, DO_NOT_FRAGMENT = 10, 2  # from linux/in.h; Python has no names for them
UDP_HEADERS = 28
TIMERS = {"routing": {"keepalive_s": 1, "hold_s": 3, "connect_s": 1}}
RAIL_ONLY = {
    "topology": "rail-only",
    "cross_rail": "blocked",
    "switches": {"spine": None},
    "units": [{"unit": 1, "hosts": 2}],
}
FABRICS: dict[str, dict[str, Any]] = {
    "two-tier p2p": {},
    "two-tier vlan": {"attachment": "vlan"},
    "three-tier": {
        "topology": "three-tier",
        "ceilings": {"pods": 2, "cores": 2},
        "switches": {
            "spine": {"uplink_breakout": "2x400G"},
            "core": {"model": "SN5600", "platform": "frr", "version": "8.4.4", "breakout": "2x400G", "slots": 2},
        },
        "units": [{"pod": "1-2", "unit": 1, "hosts": 1}],
        "cables": {"core": {"media": "800G-2xSR4", "length_m": 20}},
        "names": {
            "leaf": "leaf{number:02}",
            "spine": "spine{pod}{slot}",
            "core": "core{slot}",
            "host": "gpu{number:02}",
        },
    },
}


def designed(changes: Mapping[str, Any] | None = None) -> Fabric:
    return intents.fabric(intents.on_platform("frr", "8.4.4", {**TIMERS, **(changes or {})}))


def files(fabric: Fabric) -> dict[str, Mapping[str, str]]:
    return {rendered.device: rendered.files for rendered in render(fabric, fabric.switches, Engine())}


def failures(fabric: Fabric) -> Iterator[tuple[str, str, list[str]]]:
    """Every single link and every single switch above the leaves, as ports that go down on one device."""
    for link in fabric.links():
        if link.kind != "host":
            yield f"{link.device}:{link.port} down", link.device, [link.port]
    for switch in fabric.switches:
        if switch.role != "leaf":
            yield f"{switch.name} down", switch.name, [port.name for port in switch.ports]


def assert_leaves_miss_nothing(fabric: Fabric, found: Routes, when: str) -> None:
    for leaf in fabric.tier("leaf"):
        others = {prefix for other in fabric.tier("leaf") if other is not leaf for prefix in own_prefixes(other)}
        assert others <= found[leaf.name].keys(), (
            f"{when}: {leaf.name} misses {sorted(others - found[leaf.name].keys())}"
        )


def failures_survived(kind: str) -> int:
    """How many single failures a fabric survived, one after the other."""
    fabric = designed(FABRICS[kind])
    whole, events = expected(fabric), list(failures(fabric))
    with RunningFabric(fabric, files(fabric)) as running:
        settle(running, whole, "after boot")
        assert_every_uplink_is_used(fabric, observed(running))
        assert_rails_carry_full_size_packets(running)
        for when, device, ports in events:
            running.set_links(device, ports, "down")
            wanted = expected(fabric, ((device, port) for port in ports))
            settle(running, wanted, when)
            assert_leaves_miss_nothing(fabric, wanted, when)
            assert valley_paths(running) == [], when
            running.set_links(device, ports, "up")
            settle(running, whole, f"after {when}")
        assert valley_paths(running) == []
        assert_rails_carry_full_size_packets(running)
    return len(events)


def assert_every_uplink_is_used(fabric: Fabric, found: Routes) -> None:
    for leaf in fabric.tier("leaf"):
        uplinks = frozenset(port.name for port in leaf.fabric_ports)
        for other in fabric.tier("leaf"):
            if other is not leaf:
                assert found[leaf.name][other.leaf_prefix] == uplinks


def socket_in(namespace: str) -> socket.socket:
    """A UDP socket of a namespace; a thread enters the namespace, so that nothing else does."""
    opened: list[socket.socket] = []

    def enter() -> None:
        with open(f"/run/netns/{namespace}", "rb") as file:  # noqa: PTH123 (a descriptor is wanted)
            assert ctypes.CDLL(None, use_errno=True).setns(file.fileno(), CLONE_NEWNET) == 0, os.strerror(
                ctypes.get_errno()
            )
        opened.append(socket.socket(socket.AF_INET, socket.SOCK_DGRAM))

    thread = threading.Thread(target=enter)
    thread.start()
    thread.join()
    return opened[0]


def assert_rails_carry_full_size_packets(running: RunningFabric) -> None:
    """Send one packet of the hosts' full MTU from each NIC to every other NIC of its rail, without fragmentation."""
    for rail in running.fabric.rails:
        ends = [(host, nic) for host in running.fabric.hosts for nic in host.nics if nic.rail == rail.number]
        assert len(ends) > 1
        for (sender, source), (receiver, target) in permutations(ends, 2):
            _send(running, sender, source, receiver, target)


def _send(running: RunningFabric, sender: Host, source: Nic, receiver: Host, target: Nic) -> None:
    payload = os.urandom(sender.mtu_bytes - UDP_HEADERS)
    with socket_in(running.namespace(sender.name)) as outgoing, socket_in(running.namespace(receiver.name)) as incoming:
        # Different ports each time: a program that starts now holds the last ones open for a moment.
        incoming.bind((target.address, 0))
        incoming.settimeout(0.5)
        outgoing.setsockopt(socket.IPPROTO_IP, IP_MTU_DISCOVER, DO_NOT_FRAGMENT)
        outgoing.bind((source.address, 0))

        def arrives() -> bool:
            outgoing.sendto(payload, incoming.getsockname())
            try:
                return incoming.recv(1 << 16) == payload
            except TimeoutError:
                return False

        until(arrives, lambda: f"{sender.name} {source.interface} does not reach {receiver.name}")


def rail_only_leaves_carry_their_rail() -> dict[str, dict[str, list[str]]]:
    """For each attachment, the daemons of each leaf."""
    ran = {}
    for attachment in ("p2p", "vlan"):
        fabric = designed({**RAIL_ONLY, "attachment": attachment})
        with RunningFabric(fabric, files(fabric)) as running:
            assert_rails_carry_full_size_packets(running)
            ran[attachment] = {name: list(box.daemons) for name, box in running.boxes.items()}
    return ran


def leaf_announces_only_its_own() -> dict[str, set[str]]:
    """What a leaf with p2p hosts advertises, and what it suppresses."""
    fabric = designed()
    with RunningFabric(fabric, files(fabric)) as running:
        settle(running, expected(fabric), "after boot")
        leaf, line = fabric.switch("leaf01"), running.boxes["leaf01"]
        uplink = leaf.fabric_ports[0].name
        sent = line.json("bgpd", f"show bgp ipv4 unicast neighbors {uplink} advertised-routes json")
        table = line.json("bgpd", "show bgp ipv4 unicast json")["routes"]
        suppressed = {prefix for prefix, paths in table.items() if any(path.get("suppressed") for path in paths)}
        _wrong_neighbor_stays_down(running, leaf, uplink)
        return {"announced": set(sent["advertisedRoutes"]), "suppressed": suppressed}


def _wrong_neighbor_stays_down(running: RunningFabric, leaf: Switch, uplink: str) -> None:
    line = running.boxes[leaf.name]
    commands = ("configure terminal", f"router bgp {leaf.asn}", f"neighbor {uplink} remote-as 4200009999", "end")
    for command in commands:
        line.vty["bgpd"].ask(command)

    def state() -> str:
        return str(line.json("bgpd", f"show bgp neighbors {uplink} json")[uplink]["bgpState"])

    until(lambda: state() != "Established", lambda: "a neighbour with the wrong AS number was not dropped")
    # Both ends retry every second: a session that could establish would be up by then.
    for _ in range(20):
        time.sleep(0.25)
        assert state() != "Established"


def drains_move_traffic_without_ending_a_session() -> tuple[dict[str, int], dict[str, int]]:
    """How many sessions each switch has, and how many never went down while it and others were drained."""
    fabric = designed()
    with RunningFabric(fabric, files(fabric)) as running:
        settle(running, expected(fabric), "after boot")
        _drain(running, "leaf02", {"drain_neighbors": ["spine01"]})
        settle(
            running,
            _drained(fabric, lambda ends: {"spine02"} if "leaf02" in ends else {"spine01", "spine02"}),
            "leaf02 drained",
        )
        _drain(running, "spine02", {"drain": True})
        # To and from leaf02 both spines are drained now: equal again, and still there.
        settle(
            running,
            _drained(fabric, lambda ends: {"spine01", "spine02"} if "leaf02" in ends else {"spine01"}),
            "spine02 drained",
        )
        return {switch.name: len(switch.fabric_ports) for switch in fabric.switches}, _never_down(running)


def _drain(running: RunningFabric, name: str, override: Mapping[str, Any]) -> None:
    drained = designed({"overrides": {name: override}})
    running.boxes[name].load(files(drained)[name]["frr.conf"])


def _drained(fabric: Fabric, spines_between: Callable[[set[str]], set[str]]) -> Routes:
    """The expected routes, with those between two leaves through the given spines only."""
    wanted = {name: dict(routes) for name, routes in expected(fabric).items()}
    for leaf, origin in permutations(fabric.tier("leaf"), 2):
        spines = spines_between({leaf.name, origin.name})
        ports = frozenset(port.name for port in leaf.fabric_ports if port.peer in spines)
        wanted[leaf.name] |= dict.fromkeys(own_prefixes(origin), ports)
    return wanted


def _never_down(running: RunningFabric) -> dict[str, int]:
    """How many sessions of each switch are up and have been since they first came up."""
    counts = {}
    for name, box in running.boxes.items():
        peers = box.json("bgpd", "show bgp ipv4 unicast summary json")["peers"].values()
        counts[name] = sum(peer["state"] == "Established" and peer["connectionsDropped"] == 0 for peer in peers)
    return counts


def bfd_finds_a_frozen_spine() -> float:
    """How long it took the leaves to abandon a spine whose links stay up."""
    fabric = designed({"routing": {"keepalive_s": 20, "hold_s": 60, "connect_s": 1}})
    with RunningFabric(fabric, files(fabric)) as running:
        settle(running, expected(fabric), "after boot")
        until(lambda: _bfd_up(running), lambda: "BFD sessions are not up")
        spine = running.boxes.pop("spine01")
        dead = [(spine.name, port.name) for port in fabric.switch(spine.name).ports]
        wanted = {name: routes for name, routes in expected(fabric, dead).items() if name != spine.name}
        spine.freeze()
        try:
            return settle(running, wanted, "spine01 frozen")
        finally:
            spine.thaw()


def _bfd_up(running: RunningFabric) -> bool:
    for switch in running.fabric.switches:
        peers = running.boxes[switch.name].json("bfdd", "show bfd peers json")
        if [peer["status"] for peer in peers] != ["up"] * len(switch.fabric_ports):
            return False
    return True


def unsafe_routing_shows_its_valley() -> int:
    """How many valleys netkit predicts for a routing it refuses; FRR must use each once its link is down."""
    safe = designed({"routing": {**TIMERS["routing"], "spine_asn": "unique"}})
    fabric = replace(safe, routing=replace(safe.routing, leaf_exports_all=True))
    assert list(valleys(safe)) == []
    predicted = list(valleys(fabric))
    with RunningFabric(fabric, files(fabric)) as running:
        until(lambda: len(valley_paths(running)) > 0, lambda: "no valley in any table")
        for valley in predicted:
            assert valley.failed_link is not None
            upper, target = valley.failed_link
            ports = [port.name for port in fabric.switch(upper).ports if port.peer == target]
            running.set_links(upper, ports, "down")
            wanted = (
                fabric.switch(target).leaf_prefix,
                tuple(fabric.switch(name).asn for name in valley.path[2:]),
                True,
            )
            until(partial(_has_path, running, upper, wanted), partial("FRR does not take {}".format, valley))
            running.set_links(upper, ports, "up")
    return len(predicted)


def _has_path(running: RunningFabric, name: str, wanted: tuple[str, tuple[int, ...], bool]) -> bool:
    return wanted in as_paths(running, name)


JOBS: dict[str, Callable[[], Any]] = {
    **{f"test_no_single_failure_loses_a_route[{kind}]": partial(failures_survived, kind) for kind in FABRICS},
    "test_rail_only_leaves_carry_their_rail_without_bgp": rail_only_leaves_carry_their_rail,
    "test_a_leaf_announces_its_loopback_and_prefix_only": leaf_announces_only_its_own,
    "test_drains_move_traffic_without_ending_a_session": drains_move_traffic_without_ending_a_session,
    "test_bfd_finds_a_frozen_spine_long_before_the_hold_timer": bfd_finds_a_frozen_spine,
    "test_frr_uses_the_valleys_netkit_refuses": unsafe_routing_shows_its_valley,
}


@pytest.fixture(scope="module")
def jobs(request: pytest.FixtureRequest) -> Iterator[Mapping[str, Future[Any]]]:
    """Start all fabrics that the selected tests need."""
    selected = {item.name for item in request.session.items}
    with ThreadPoolExecutor(len(JOBS)) as pool:
        yield {name: pool.submit(job) for name, job in JOBS.items() if name in selected}


@pytest.fixture
def outcome(request: pytest.FixtureRequest, jobs: Mapping[str, Future[Any]]) -> Any:
    """The result of the fabric of this test."""
    return jobs[request.node.name].result()


@pytest.mark.parametrize("kind", daily(FABRICS, "two-tier p2p", "three-tier"))
def test_no_single_failure_loses_a_route(outcome: int, kind: str) -> None:
    links_spines_and_cores = {"two-tier p2p": 8 + 2, "two-tier vlan": 8 + 2, "three-tier": 8 + 8 + 4 + 2}
    assert outcome == links_spines_and_cores[kind]


def test_rail_only_leaves_carry_their_rail_without_bgp(outcome: dict[str, dict[str, list[str]]]) -> None:
    leaves = {"leaf01": ["zebra"], "leaf02": ["zebra"]}
    assert outcome == {"p2p": leaves, "vlan": leaves}


def test_a_leaf_announces_its_loopback_and_prefix_only(outcome: dict[str, set[str]]) -> None:
    leaf = designed().switch("leaf01")
    assert outcome["announced"] == {f"{leaf.loopback}/32", leaf.leaf_prefix}
    assert outcome["suppressed"] == {str(IPv4Interface(port.address).network) for port in leaf.host_ports}


def test_drains_move_traffic_without_ending_a_session(outcome: tuple[dict[str, int], dict[str, int]]) -> None:
    sessions, never_down = outcome
    assert never_down == sessions


def test_bfd_finds_a_frozen_spine_long_before_the_hold_timer(outcome: float) -> None:
    assert outcome < 10  # BFD needs 0.9 s; the hold timer is 60 s


def test_frr_uses_the_valleys_netkit_refuses(outcome: int) -> None:
    assert outcome == len(designed().tier("leaf"))
