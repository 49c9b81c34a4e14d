"""A real snmpd with the tables of one switch, in its own namespaces."""

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from netkit.facts import Facts
from netkit.lab.agents.lldp_daemon import LldpChassis, LldpNeighbor, LldpState
from netkit.lab.agents.snmp_agent import SnmpAgent
from netkit.lab.state import PortState, SnmpState, SnmpV3User, SwitchState
from netkit.observe import assemble
from netkit.platforms.snmp import Community, Credential, User
from netkit.platforms.snmp.driver import SnmpViewer
from netkit.platforms.snmp.facts import views
from netkit.platforms.snmp.transport import SnmpTarget
from tests import intents
from tests.facts.snmp.case import ALIAS, NAMES, VERSIONS, subject
from tests.lab.agent_node import ScratchNode, needs_namespaces, port, scratch_node

needs_snmpd = [needs_namespaces, pytest.mark.skipif(not shutil.which("snmpd"), reason="snmpd is not installed")]
ADDRESS = "127.93.11.2"
PATIENCE_S = 120
WATCHER = SnmpV3User("watcher", "auth 'se\"cret\\1", "privacy-secret")
COMMUNITY = Community("fabric-ro")
USER = User(WATCHER.name, WATCHER.auth_secret, priv=WATCHER.priv_secret)
SNMP = SnmpState(users=(WATCHER,), communities=(COMMUNITY.word,))


@contextmanager
def serving(platform: str, folder: Path) -> Iterator[SnmpAgent]:
    """Run the agent of a leaf: two optics that share a module, and copper that is down."""
    first, second, third = NAMES[platform]
    kernel = {name: f"k{number}" for number, name in enumerate(NAMES[platform])}
    leaf = intents.fabric(intents.on_platform(platform, VERSIONS[platform])).tier("leaf")[0]
    with scratch_node(leaf, kernel, folder / "node") as node:
        node.readings = (port(first, 1), port(second, 3, first_lane=5), port(third, 2, kind="copper"))
        agent = SnmpAgent(node, ADDRESS, 0, lambda: surroundings(node))
        try:
            agent.apply(state(platform))
            yield agent
        finally:
            agent.close()


def surroundings(node: ScratchNode) -> LldpState:
    host = LldpChassis("mac", "02:00:00:00:00:09", "gpu01", "linux")
    beside = LldpNeighbor("k1", host, "mac", "02:00:00:00:00:0a", "rail0")
    return LldpState(node.kernel_names, LldpChassis("mac", "02:00:00:00:00:01", "leaf", "a switch"), (beside,))


def state(platform: str) -> SwitchState:
    first, second, third = NAMES[platform]
    parsed = PortState(first, description="to gpu01", alias=ALIAS.get(platform, ""))
    return SwitchState("leaf-7", (parsed, PortState(second), PortState(third)), snmp=SNMP)


def viewer(agent: SnmpAgent, *credentials: Credential, patience_s: float = PATIENCE_S) -> SnmpViewer:
    return SnmpViewer("leaf-7", SnmpTarget(ADDRESS, agent.port, patience_s), credentials)


def look(opened: SnmpViewer, platform: str) -> Facts:
    asked = tuple(dict.fromkeys(command for view in views(subject(platform)) for command in view.commands))
    return assemble.facts(views(subject(platform)), dict(zip(asked, opened.ask(asked), strict=True)))
