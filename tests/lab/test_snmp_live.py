"""The real snmpd of a switch, queried over its loopback address with an operator's tools."""

import re
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from netkit.lab.agents import snmp_mibs
from netkit.lab.agents.lldp_daemon import LldpChassis, LldpState
from netkit.lab.agents.snmp_agent import SnmpAgent
from netkit.lab.node import ConfigRefusedError
from netkit.lab.state import PortState, SnmpState, SnmpV3User, SwitchState
from tests import intents
from tests.lab.agent_node import ScratchNode, needs_namespaces, port, scratch_node

pytestmark = [
    needs_namespaces,
    pytest.mark.skipif(not shutil.which("snmpd") or not shutil.which("snmpwalk"), reason="snmpd is not installed"),
]

ADDRESS = "127.93.11.1"
USER = SnmpV3User("watcher", "auth 'se\"cret\\1", "privacy-secret")
SNMP = SnmpState(users=(USER,), communities=("fabric-ro",), location="row 3", contact="noc")
PATIENCE = ["-t", "20", "-r", "3"]
V2C = ["-v2c", "-c", "fabric-ro", *PATIENCE]
V3 = [
    "-v3",
    "-u",
    "watcher",
    "-l",
    "authPriv",
    "-a",
    "SHA",
    "-x",
    "AES",
    "-A",
    USER.auth_secret,
    "-X",
    USER.priv_secret,
]
IF_NAMES, HC_IN = ".1.3.6.1.2.1.31.1.1.1.1", ".1.3.6.1.2.1.31.1.1.1.6"
ENGINE_BOOTS = ".1.3.6.1.6.3.10.2.1.2.0"
SYS_NAME = ".1.3.6.1.2.1.1.5.0"


@pytest.fixture
def node(tmp_path: Path) -> Iterator[ScratchNode]:
    leaf = intents.fabric(intents.values()).tier("leaf")[0]
    names = ("swp1s0", "swp1s1")
    with scratch_node(leaf, {name: name for name in names}, tmp_path / "node") as made:
        made.readings = tuple(port(name, seed) for seed, name in enumerate(names, 1))
        yield made


@pytest.fixture
def agent(node: ScratchNode) -> Iterator[SnmpAgent]:
    made = SnmpAgent(node, ADDRESS, 0, lambda: LldpState(node.kernel_names, LldpChassis(), ()))
    yield made
    made.close()


def state(snmp: SnmpState | None = SNMP, hostname: str = "leaf-7") -> SwitchState:
    return SwitchState(hostname, (PortState("swp1s0", description="to gpu01"), PortState("swp1s1")), snmp=snmp)


def ask(agent: SnmpAgent, program: str, *words: str, who: list[str] = V2C) -> str:
    command = [program, *who, "-m", "", "-On", f"{ADDRESS}:{agent.port}", *words]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=300)
    return done.stdout + done.stderr


def values(output: str) -> dict[str, str]:
    return dict(re.findall(r"^(\.[\d.]+) = (.*?)\s*$", output, re.MULTILINE))


def names(output: str) -> list[tuple[int, ...]]:
    return [tuple(map(int, oid[1:].split("."))) for oid in values(output)]


def command_lines() -> Iterator[bytes]:
    for file in Path("/proc").glob("[0-9]*/cmdline"):
        with suppress(OSError):  # it may have ended
            yield file.read_bytes()


def test_system_values_come_from_the_state_of_the_switch(agent: SnmpAgent) -> None:
    agent.apply(state())
    reported = values(ask(agent, "snmpwalk", ".1.3.6.1.2.1.1"))
    assert reported[SYS_NAME] == 'STRING: "leaf-7"'
    assert reported[".1.3.6.1.2.1.1.6.0"] == 'STRING: "row 3"'
    assert reported[".1.3.6.1.2.1.1.4.0"] == 'STRING: "noc"'
    assert "Cumulus" in reported[".1.3.6.1.2.1.1.1.0"]


def test_the_counters_of_all_ports_are_served_in_64_bits(agent: SnmpAgent) -> None:
    agent.apply(state())
    reported = values(ask(agent, "snmpwalk", IF_NAMES)) | values(ask(agent, "snmpbulkwalk", HC_IN))
    assert reported == {
        f"{IF_NAMES}.3": 'STRING: "swp1s0"',
        f"{IF_NAMES}.4": 'STRING: "swp1s1"',
        f"{HC_IN}.3": f"Counter64: {2**33 + 1}",
        f"{HC_IN}.4": f"Counter64: {2**33 + 2}",
    }


def test_a_walk_and_a_bulk_walk_of_everything_agree_and_never_go_back(agent: SnmpAgent) -> None:
    agent.apply(state())
    hardware = [".1.3.6.1.2.1.2", ".1.3.6.1.2.1.31", ".1.3.6.1.2.1.47", ".1.3.6.1.2.1.99", ".1.3.6.1.4.1.40310"]
    for root in [*hardware, ".1.3.111", ".1.0.8802"]:
        bulk, plain = ask(agent, "snmpbulkwalk", root), ask(agent, "snmpwalk", root)
        assert values(bulk) == values(plain), root
        assert len(values(plain)) > 3, root
    everything = names(ask(agent, "snmpbulkwalk", ".1"))
    assert everything == sorted(everything)
    assert snmp_mibs.NUMBER in everything


def test_get_answers_each_of_several_names_and_marks_unknown_ones(agent: SnmpAgent) -> None:
    agent.apply(state())
    reported = values(ask(agent, "snmpget", SYS_NAME, f"{IF_NAMES}.3", f"{IF_NAMES}.99"))
    assert reported[SYS_NAME] == 'STRING: "leaf-7"'
    assert reported[f"{IF_NAMES}.3"] == 'STRING: "swp1s0"'
    assert "No Such" in reported[f"{IF_NAMES}.99"]


def test_nothing_can_be_set(agent: SnmpAgent) -> None:
    agent.apply(state())
    assert "Reason" in ask(agent, "snmpset", f"{IF_NAMES}.3", "s", "other")
    assert values(ask(agent, "snmpget", f"{IF_NAMES}.3"))[f"{IF_NAMES}.3"] == 'STRING: "swp1s0"'


def test_the_user_of_version_3_is_answered(agent: SnmpAgent) -> None:
    agent.apply(state())
    assert values(ask(agent, "snmpget", SYS_NAME, who=[*V3, *PATIENCE])) == {SYS_NAME: 'STRING: "leaf-7"'}


@pytest.mark.parametrize(
    ("option", "wrong", "patience_s", "complaint"),
    [
        ("-u", "stranger", 60, "Unknown user name"),
        ("-A", "wrong-secret", 60, "Authentication failure"),
        ("-X", "wrong-secret", 1, "Timeout"),
        ("-l", "authNoPriv", 60, "authorizationError"),
    ],
)
def test_wrong_credentials_of_version_3_get_nothing(
    agent: SnmpAgent, option: str, wrong: str, patience_s: int, complaint: str
) -> None:
    agent.apply(state())
    who = [*V3, "-t", str(patience_s), "-r", "1"]
    who[who.index(option) + 1] = wrong
    answer = ask(agent, "snmpget", SYS_NAME, who=who)
    assert values(answer) == {}
    assert complaint in answer


def test_a_wrong_community_gets_no_answer(agent: SnmpAgent) -> None:
    agent.apply(state())
    assert "Timeout" in ask(agent, "snmpget", SYS_NAME, who=["-v2c", "-c", "public", "-t", "1", "-r", "0"])


def test_a_switch_without_snmp_does_not_answer(agent: SnmpAgent, node: ScratchNode) -> None:
    agent.apply(state())
    agent.apply(state(snmp=None))
    assert not node.is_running("snmpd")
    assert "Timeout" in ask(agent, "snmpget", SYS_NAME, who=["-v2c", "-c", "fabric-ro", "-t", "1", "-r", "0"])


def test_changed_users_and_names_take_effect_at_once_and_counters_do_not_restart_the_agent(
    agent: SnmpAgent, node: ScratchNode
) -> None:
    agent.apply(state())
    first = boots(agent)
    node.readings = (port("swp1s0", 9), *node.readings[1:])
    agent.apply(state())
    assert values(ask(agent, "snmpget", f"{HC_IN}.3")) == {f"{HC_IN}.3": f"Counter64: {2**33 + 9}"}
    assert boots(agent) == first
    agent.apply(state(SnmpState(communities=("other",)), "leaf-8"))
    other = ["-v2c", "-c", "other", *PATIENCE]
    assert values(ask(agent, "snmpget", SYS_NAME, who=other)) == {SYS_NAME: 'STRING: "leaf-8"'}
    assert boots(agent, other) == first + 1
    assert values(ask(agent, "snmpget", SYS_NAME, who=[*V3, "-t", "1", "-r", "1"])) == {}


def boots(agent: SnmpAgent, who: list[str] = V2C) -> int:
    """snmpEngineBoots, which must never decrease."""
    return int(ask(agent, "snmpget", ENGINE_BOOTS, who=who).rpartition(" ")[2])


def test_an_agent_whose_program_died_answers_after_the_next_state(agent: SnmpAgent, node: ScratchNode) -> None:
    agent.apply(state())
    node.end("snmpd")
    agent.apply(state())
    assert len(values(ask(agent, "snmpwalk", IF_NAMES))) == 2


def test_unreadable_ports_fail_one_request_and_not_the_agent(agent: SnmpAgent, node: ScratchNode) -> None:
    agent.apply(state())
    node.failure = "no such switch"
    assert values(ask(agent, "snmpget", "-Cf", f"{IF_NAMES}.3")) == {}
    node.failure = ""
    assert any("no such switch" in line for line in node.lines)
    assert values(ask(agent, "snmpget", f"{IF_NAMES}.3")) == {f"{IF_NAMES}.3": 'STRING: "swp1s0"'}


def test_secrets_are_neither_in_the_command_nor_readable_by_others(agent: SnmpAgent, node: ScratchNode) -> None:
    agent.apply(state())
    commands = list(command_lines())
    assert any(b"/usr/sbin/snmpd" in command for command in commands)
    assert not any(USER.priv_secret.encode() in command for command in commands)
    assert node.file("/run/netkit/snmp/private").stat().st_mode & 0o077 == 0
    assert USER.auth_secret not in node.file("/run/netkit/snmp/snmpd.conf").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    "snmp",
    [
        SnmpState(users=(SnmpV3User("watcher", "short", "long-enough"),)),
        SnmpState(communities=("two\nlines",)),
        SnmpState(communities=("",)),
    ],
)
def test_configuration_that_snmpd_would_reject_is_refused(agent: SnmpAgent, node: ScratchNode, snmp: SnmpState) -> None:
    with pytest.raises(ConfigRefusedError):
        agent.apply(state(snmp))
    assert not node.is_running("snmpd")
