"""Real lldpd on both ends of real cables: each end receives what the other announces."""

import json
import os
import shutil
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from netkit.design.fabric import Fabric
from netkit.lab.agents.lldp_daemon import CLIENT, STAND_IN, Lldpd, LldpNeighbor
from netkit.lab.state import PortState, SwitchState
from tests import intents
from tests.lab.agent_node import ScratchNode, needs_namespaces, scratch_node
from tests.lab.running import until

pytestmark = [needs_namespaces, pytest.mark.skipif(not shutil.which("lldpd"), reason="lldpd is not installed")]

needs_client = pytest.mark.skipif(not os.access(CLIENT, os.X_OK), reason="only one account may run lldpcli here")
EOS_PORTS = {"Ethernet1/1": "et1_1", "Ethernet1/5": "et1_5"}
LEAF = SwitchState("leaf-a", (PortState("Ethernet1/1", description="to 'gpu' \"one\" \\ 1"),))


@pytest.fixture
def pair(tmp_path: Path) -> Iterator[tuple[ScratchNode, ScratchNode]]:
    """An EOS leaf and a host with two cables between them, the rails crossed."""
    fabric = intents.fabric(intents.on_platform("eos", "4.33.1F"))
    leaf, host = fabric.tier("leaf")[0], fabric.hosts[0]
    rails = {"rail0": "rail0", "rail1": "rail1"}
    with ExitStack() as opened:
        left = opened.enter_context(scratch_node(leaf, EOS_PORTS, tmp_path / "leaf"))
        right = opened.enter_context(scratch_node(host, rails, tmp_path / "host"))
        for here, there in (("et1_1", "rail1"), ("et1_5", "rail0")):
            left.ip([f"link add {here} type veth peer name {there} netns {right.pid}", f"link set {here} up"])
            right.ip([f"link set {there} up"])
        left.ip(["link add br100 type bridge", "link set br100 up"])
        yield left, right


def heard(daemon: Lldpd) -> dict[str, LldpNeighbor]:
    return {neighbor.interface: neighbor for neighbor in daemon.neighbors()}


@pytest.mark.parametrize("client", [pytest.param(CLIENT, marks=needs_client), STAND_IN])
def test_each_end_receives_the_names_that_the_other_announces(
    pair: tuple[ScratchNode, ScratchNode], client: str
) -> None:
    leaf, host = pair
    switch, server = Lldpd(leaf, 1, client), Lldpd(host, 1, client)
    switch.apply(LEAF)
    server.apply()
    until(lambda: set(heard(server)) == {"rail0", "rail1"}, "the host hears the switch on both rails")
    until(lambda: set(heard(switch)) == {"et1_1", "et1_5"}, "the switch hears the host on both ports, and on no bridge")
    crossed = heard(server)["rail1"]
    assert (crossed.chassis.name, crossed.port_kind, crossed.port) == ("leaf-a", "local", "Ethernet1/1")
    assert crossed.port_description == LEAF.ports[0].description
    assert "Arista" in crossed.chassis.description
    nic = heard(switch)["et1_1"]
    assert (nic.chassis.name, nic.port_kind, nic.port_description) == (host.name, "mac", "rail1")
    assert f'"address":"{nic.port}"' in host.ip(["link show rail1"])
    assert switch.chassis().name == "leaf-a"
    assert switch.state().chassis.kind == "mac"


@pytest.mark.parametrize("client", [pytest.param(CLIENT, marks=needs_client), STAND_IN])
def test_a_change_is_announced_without_a_restart_and_the_end_of_a_node_is_noticed(
    pair: tuple[ScratchNode, ScratchNode], client: str
) -> None:
    leaf, host = pair
    switch, server = Lldpd(leaf, 1, client), Lldpd(host, 1, client)
    server.apply()
    switch.apply(LEAF)
    switch.apply(SwitchState("leaf-b", (PortState("Ethernet1/1", description="new"),)))
    until(
        lambda: (
            [(one.chassis.name, one.port_description) for one in server.neighbors() if one.interface == "rail1"]
            == [("leaf-b", "new")]
        ),
        "the new name and description are heard",
    )
    switch.apply(SwitchState("leaf-b", has_lldp=False))
    assert not leaf.is_running("lldpd")
    until(lambda: server.neighbors() == (), "the host forgets a switch that says goodbye")
    assert switch.state().neighbors == ()


@needs_client
def test_the_stand_in_prints_the_same_as_the_real_client(pair: tuple[ScratchNode, ScratchNode]) -> None:
    leaf, host = pair
    server, switch = Lldpd(host, 1, STAND_IN), Lldpd(leaf, 1)
    server.apply()
    switch.apply(LEAF)
    until(lambda: set(heard(server)) == {"rail0", "rail1"}, "the host hears the switch")
    until(lambda: set(heard(switch)) == {"et1_1", "et1_5"}, "the switch hears the host")
    for what in ("neighbors", "chassis"):
        real, own = (json.loads(host.run(client, "-f", "json0", "show", what).stdout) for client in (CLIENT, STAND_IN))
        assert said(own) == said(real)
        assert said(own)


def said(shown: object, path: str = "") -> set[tuple[str, object]]:
    """All values with their paths, except those only the real client prints and those that change with time."""
    if isinstance(shown, list):
        return {leaf for item in shown for leaf in said(item, path)}
    if isinstance(shown, dict):
        return {leaf for key, item in shown.items() for leaf in said(item, f"{path}/{key}")}
    return set() if path.endswith(("/rid", "/age", "/mgmt-iface/value")) else {(path, shown)}


def test_the_stand_in_reports_unsupported_commands(pair: tuple[ScratchNode, ScratchNode]) -> None:
    host = pair[1]
    server = Lldpd(host, 1, STAND_IN)
    server.apply()
    until(lambda: server.chassis().name == host.name, "lldpd answers")
    for words in (["show", "weather"], ["configure", "ports", "rail9", "lldp", "portdescription", "x"]):
        done = host.run(STAND_IN, *words)
        assert done.exit_code == 1
        assert done.stderr.startswith("lldpcli: ")
    server.end()
    assert host.run(STAND_IN, "-u", "/run/none", "show", "chassis").exit_code == 1


@pytest.mark.parametrize(("platform", "version"), [("nvue", "5.16.1"), ("sonic", "202411"), ("frr", "10.2")])
def test_every_platform_starts_with_its_own_system_description(platform: str, version: str, tmp_path: Path) -> None:
    fabric: Fabric = intents.fabric(intents.on_platform(platform, version))
    leaf = fabric.tier("leaf")[0]
    name = leaf.ports[0].name
    with scratch_node(leaf, {name: name}, tmp_path / "leaf") as node:
        node.ip([f"link add {name} type veth peer name far", f"link set {name} up"])
        daemon = Lldpd(node, 1)
        daemon.apply(SwitchState(leaf.name))
        until(lambda: daemon.chassis().name == leaf.name, "lldpd answers with the name of the switch")
        assert version in daemon.chassis().description


def test_a_switch_announces_kernel_port_names_where_its_nos_does(tmp_path: Path) -> None:
    fabric = intents.fabric(intents.values())
    leaf, spine = fabric.tier("leaf")[0], fabric.tier("spine")[0]
    with ExitStack() as opened:
        left = opened.enter_context(scratch_node(leaf, {"swp1s0": "swp1s0"}, tmp_path / "leaf"))
        right = opened.enter_context(scratch_node(spine, {"swp9s0": "swp9s0"}, tmp_path / "spine"))
        left.ip([f"link add swp1s0 type veth peer name swp9s0 netns {right.pid}", "link set swp1s0 up"])
        right.ip(["link set swp9s0 up"])
        near, far = Lldpd(left, 1), Lldpd(right, 1)
        near.apply(SwitchState(leaf.name))
        far.apply(SwitchState(spine.name))
        until(lambda: set(heard(near)) == {"swp1s0"}, "the leaf hears the spine")
        beside = heard(near)["swp1s0"]
        assert (beside.port_kind, beside.port, beside.chassis.name) == ("ifname", "swp9s0", spine.name)
