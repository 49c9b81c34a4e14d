"""The lines typed into a configuration session, applied by the lab's switch, which shares no code with the driver."""

import random
from functools import cache
from pathlib import Path

import pytest

from netkit.lab.personalities.eos import Eos
from netkit.platforms.change import Change
from netkit.platforms.compare import compare
from netkit.platforms.eos import session
from netkit.platforms.eos.model import MODEL
from tests import intents
from tests.lab.personalities import eos_node
from tests.platforms.samples import files_of


@cache
def text(attachment: str, version: str, drained: bool, name: str) -> str:
    return eos_node.config_of(eos_node.eos_fabric(attachment, version, drained), name)


def typed(eos: Eos, lines: list[str]) -> None:
    eos_node.result(eos, "configure session s", *lines, "end", "configure session s commit")


def shown(eos: Eos) -> str:
    return eos_node.texts(eos, "show running-config")[0]


def changes_to(running: str, intended: str) -> tuple[Change, ...]:
    return compare(MODEL, {"eos.cfg": running}, {"eos.cfg": intended}).changes


def switched(folder: Path, before: str, after: str) -> tuple[str, str]:
    """The running configuration after going from one to another, and that of the other alone."""
    eos, _ = eos_node.switch_on(folder / "one", "leaf01", eos_node.eos_fabric())
    eos.machine.load_startup(before)
    eos.boot()
    running = shown(eos)
    typed(eos, session.commands(changes_to(running, after), running, after))
    other, _ = eos_node.switch_on(folder / "other", "leaf01", eos_node.eos_fabric())
    other.machine.load_startup(after)
    other.boot()
    return shown(eos), shown(other)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name in ("one", "other"):
        (tmp_path / name).mkdir()
    return tmp_path


WHOLE = ("p2p", "4.35.1F", False, "leaf01"), ("vlan", "4.35.1F", False, "leaf01"), ("vlan", "4.35.1F", True, "leaf01")


@pytest.mark.parametrize("before", WHOLE)
@pytest.mark.parametrize("after", WHOLE)
def test_any_configuration_becomes_any_other(
    folder: Path, before: tuple[str, str, bool, str], after: tuple[str, str, bool, str]
) -> None:
    runs, wanted = switched(folder, text(*before), text(*after))
    assert changes_to(runs, wanted) == ()


def pruned(whole: str, chance: random.Random) -> str:
    """A configuration without some of its sections, and with changed values in others."""
    sections = whole.split("\n!\n")
    kept = [one for one in sections if chance.random() > 0.2 or one.startswith(("router bgp", "ip routing"))]
    changed = [one.replace("mtu 9214", f"mtu {chance.choice((1500, 9000, 9214))}") for one in kept]
    lines = "\n!\n".join(changed).splitlines(keepends=True)
    quiet = ("   description ", "   service-profile ", "logging ", "   seq 1", "   redistribute ")
    return "".join(line for line in lines if not (line.startswith(quiet) and chance.random() < 0.3))


@pytest.mark.parametrize("seed", range(12))
def test_any_lines_are_removed_and_added_and_nothing_else(folder: Path, seed: int) -> None:
    chance = random.Random(seed)  # noqa: S311 (a test's own)
    whole = text("vlan", "4.35.1F", True, "leaf01")
    runs, wanted = switched(folder, pruned(whole, chance), pruned(whole, chance))
    assert changes_to(runs, wanted) == ()


def test_without_a_difference_nothing_is_typed() -> None:
    whole = text("p2p", "4.35.1F", False, "leaf01")
    assert session.commands(changes_to(whole, whole), whole, whole) == []


def test_another_as_number_replaces_the_whole_section(folder: Path) -> None:
    whole = text("p2p", "4.35.1F", False, "leaf01")
    other = whole.replace("router bgp 4200010000", "router bgp 64999")
    assert other != whole
    runs, wanted = switched(folder, whole, other)
    assert changes_to(runs, wanted) == ()


def test_a_removed_line_of_a_list_keeps_the_others() -> None:
    whole = "qos map dscp 24 25 26 to traffic-class 3\n"
    lines = session.commands(
        changes_to(whole, "qos map dscp 24 26 to traffic-class 3\n"), whole, "qos map dscp 24 26 to traffic-class 3\n"
    )
    assert lines == ["no qos map dscp 25 to traffic-class 3"]


def test_a_secret_is_removed_by_its_name() -> None:
    running = "snmp-server user watcher NETKIT v3 localized 8000 auth sha ABC priv aes DEF\nsnmp-server contact noc\n"
    intended = "snmp-server contact noc\n"
    lines = session.commands(changes_to(running, intended), running, intended)
    assert lines == ["no snmp-server user watcher NETKIT v3"]


def test_a_port_is_reset_because_it_cannot_be_removed() -> None:
    running = "interface Ethernet1/1\n   description gone\ninterface Vlan7\n   mtu 9000\n"
    lines = session.commands(changes_to(running, "hostname a\n"), running, "hostname a\n")
    assert lines == ["no interface Vlan7", "default interface Ethernet1/1", "hostname a"]


@pytest.mark.parametrize("drained", [False, True])
@pytest.mark.parametrize("attachment", ["p2p", "vlan"])
def test_a_drain_ends_without_a_trace(tmp_path: Path, attachment: str, drained: bool) -> None:
    eos, _ = eos_node.switch_on(tmp_path, "leaf01", eos_node.eos_fabric(attachment, "4.35.1F", drained))
    before = shown(eos)
    typed(eos, session.drain_lines(MODEL.parse({"eos.cfg": before})))
    during = shown(eos)
    assert session.is_own_drain(during)
    assert session.without_drain(during) == before
    eos_node.result(eos, "configure session t", *session.undrain_lines(during), "end", "configure session t commit")
    assert shown(eos) == before


def test_neighbors_by_address_drain_with_their_ports() -> None:
    links = {"pools": {"links": "10.9.0.0/24"}}
    spine = files_of(intents.fabric(intents.on_platform("eos", "4.35.1F", links)))["spine01"]
    running = MODEL.parse(spine)
    lines = session.drain_lines(running)
    assert lines[1:3] == ["interface Ethernet1/1", "interface Ethernet2/1"]
    assert not session.deaf_groups(running)
    silent = {file: text.replace("   neighbor LEAVES send-community\n", "") for file, text in spine.items()}
    assert session.deaf_groups(MODEL.parse(silent)) == ["LEAVES"]


@pytest.mark.parametrize(
    ("sent", "deaf"),
    [
        ("send-community", []),
        ("send-community standard", []),
        ("send-community standard extended", []),
        ("send-community link-bandwidth extended", ["SPINES"]),
        ("send-community extended", ["SPINES"]),
        ("", ["SPINES"]),
    ],
)
def test_a_drain_reaches_peer_groups_that_send_communities(sent: str, deaf: list[str]) -> None:
    line = "   neighbor SPINES send-community\n"
    before = text("p2p", "4.35.1F", False, "leaf01")
    assert line in before
    changed = before.replace(line, f"   neighbor SPINES {sent}\n" if sent else "")
    assert session.deaf_groups(MODEL.parse({"eos.cfg": changed})) == deaf
