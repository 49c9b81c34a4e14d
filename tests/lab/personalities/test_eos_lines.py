"""EOS: every rendered line has an effect: without it the switch refuses, or its state or output changes."""

import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from netkit.design import Fabric
from netkit.lab.node import ConfigRefusedError
from netkit.lab.personalities.eos import Eos, Terminal, show
from netkit.lab.personalities.eos.reply import EosCommandError
from netkit.lab.state import SwitchState
from tests.lab.personalities.eos_node import RecordedNode, config_of, eos_fabric

COSMETIC: Mapping[str, str] = {
    r"!.*": "a mark or a comment",
    r"end": "the end of the file, which ends by itself",
    r"exit": "the next line is no line of this mode and ends it",
    r"vlan internal order ascending range 1006 1999": "the lab gives routed ports no VLAN of their own",
    r"service routing protocols model multi-agent": "the only model of these releases that is left",
    r"lldp (timer 30|hold-time 120)": "the default",
    r"logging trap informational": "the default",
    r"clock timezone UTC": "the default",
    r"protocol https|no protocol http": "the default of the API",
    r"priority-flow-control pause watchdog": "the watchdog of a port is on by default",
    r"priority strict": "queues are strict by default",
    r"switchport": "the default of a port",
    r"no ip routing vrf MGMT": "the default of a VRF other than the first",
    r"qos map dscp (24 .* 31 to traffic-class 3|48 .* 55 to traffic-class 6)": "the default",
    r"qos map traffic-class (\d) to (priority-group|uc-tx-queue) \1": "the default",
    r"router bfd|interval 300 min-rx 300 multiplier 3 default": "the default",
    r"no bgp default ipv4-unicast": "the neighbours are activated one by one",
    r"neighbor \w+ missing-policy address-family all direction (in|out) action deny": "guards against a lost route map",
    r"mtu 9214": "a switched port carries frames of any length the chip takes",
    r"maintenance profile bgp GSHUT": "the default profile of the same file",
    r"profile bgp GSHUT default": "the groups name the profile themselves",
    r"spanning-tree portfast edge|storm-control .*": "the lab has no loops and floods nothing",
    r"(arp aging timeout|mac address-table aging-time) \d+": "the kernel ages its tables itself",
    r"ip name-server .*|logging (format|vrf) .*": "a node resolves no names and sends no logs",
    r"ip route vrf MGMT .*|lldp management-address vrf MGMT|snmp-server vrf MGMT local-.*": "a node has no VRF",
    r"management ssh / .*": "a node runs its own sshd",
    r"no snmp-server vrf default": "the agent answers in the VRF of management",
    r"qos trust dscp": "the default of a routed port",
    r"bandwidth guaranteed percent 1|shape rate 10 percent": "the model of queues has neither",
}
"""Lines that may have no effect, and why."""
# A line without effect in one section has one in another: it is only excused where it has none.
ONLY_SWITCHED = {r"mtu 9214"}
ONLY_ROUTED = {r"qos trust dscp"}
ONLY_NAMED_GROUPS = {r"profile bgp GSHUT default"}
MOVING = re.compile(
    r'"(?:uptime|bootupTimestamp|counterRefreshTime|lastUpdateTimestamp|updateTime)": [\d.e+-]+'
    r'|"(?:tablesLastChangeTime|lastChange|lastStatusChangeTimestamp|upDownTime)": [\d.e+-]+'
    r'|"(?:size|free)": \d+|\d+ +\d+ +flash |Uptime: \d+ seconds|\w{3} \w{3} [ \d]\d \d\d:\d\d:\d\d \d{4}'
)
"""Output that changes with the clock, or with the disk of the machine."""
CONFIGURATION = ("running-config", "startup-config", "configuration")

CASES = [
    ("vlan", False, "leaf01"),
    ("p2p", True, "leaf01"),
    pytest.param("p2p", True, "spine01", marks=pytest.mark.whole),
]


def seen(eos: Eos) -> dict[str, Any]:
    """All output of a switch except its configuration."""
    shown: dict[str, Any] = {"https": eos.serves_https}
    terminal = Terminal(eos.machine, "netkit")
    shown["privileged"] = terminal.is_privileged
    for form in show.VIEWS:
        if "<" in form or form.split()[1] in CONFIGURATION:
            continue
        try:
            reply = terminal.run(form)
        except EosCommandError as error:
            shown[form] = str(error)
            continue
        shown[form] = MOVING.sub("", json.dumps(reply.data)) + MOVING.sub("", reply.text)
    return shown


def started(fabric: Fabric, name: str, text: str, folder: Path) -> tuple[Eos, SwitchState] | str:
    """A booted switch and its state, or why the configuration is refused."""
    node = RecordedNode(fabric.switch(name), folder)
    eos = Eos(node)
    try:
        eos.provision({"eos.cfg": text})
        eos.boot()
    except ConfigRefusedError as error:
        return str(error)
    return eos, node.state


def without(text: str) -> Iterator[tuple[str, str, str]]:
    """Yield each line with its section, and the file without it; a header is removed with its section."""
    lines = text.splitlines()
    header = ""
    for index, line in enumerate(lines):
        if not line.startswith(" "):
            header = line
        indent = len(line) - len(line.lstrip())
        end = index + 1
        while end < len(lines) and len(lines[end]) - len(lines[end].lstrip()) > indent and line.strip() != "!":
            end += 1
        yield line.strip(), header, "\n".join(lines[:index] + lines[end:]) + "\n"


def excuse(line: str, header: str, text: str) -> str:
    """Why a line may have no effect; empty if it must have one."""
    for pattern, reason in COSMETIC.items():
        if not (re.fullmatch(pattern, line) or re.fullmatch(pattern, f"{header} / {line}")):
            continue
        section = text.partition(f"{header}\n")[2].partition("\n!\n")[0]
        if pattern in ONLY_SWITCHED and "switchport access" not in section:
            continue
        if pattern in ONLY_ROUTED and "switchport access" in text:
            continue
        if pattern in ONLY_NAMED_GROUPS and "unit System" in text:
            continue
        return reason
    return ""


@pytest.mark.parametrize(("attachment", "is_drained", "name"), CASES)
def test_every_line_has_an_effect_or_an_excuse(tmp_path: Path, attachment: str, is_drained: bool, name: str) -> None:
    fabric = eos_fabric(attachment, "4.35.1F", is_drained)
    text = config_of(fabric, name)
    whole = started(fabric, name, text, tmp_path)
    assert not isinstance(whole, str), whole
    shown = seen(whole[0])
    swallowed, needless = [], []
    for number, (line, header, rest) in enumerate(without(text)):
        folder = tmp_path / str(number)
        folder.mkdir()
        found = started(fabric, name, rest, folder)
        is_same = not isinstance(found, str) and found[1] == whole[1] and seen(found[0]) == shown
        if is_same and not excuse(line, header, text):
            swallowed.append(f"{header} / {line}")
        if not is_same and excuse(line, header, text):
            needless.append(f"{header} / {line}")
    assert (swallowed, needless) == ([], [])


@pytest.mark.parametrize("direction", ["in", "out"])
def test_a_missing_route_map_is_caught_by_the_guard(tmp_path: Path, direction: str) -> None:
    fabric = eos_fabric()
    text = re.sub(rf".*route-map \S+ {direction}\n", "", config_of(fabric, "leaf01"))
    guarded = started(fabric, "leaf01", text, tmp_path)
    open_text = re.sub(rf".*missing-policy .* direction {direction} .*\n", "", text)
    unguarded = started(fabric, "leaf01", open_text, tmp_path)
    assert not isinstance(guarded, str)
    assert not isinstance(unguarded, str)
    assert f"neighbor SPINES route-map EOS-DENY {direction}" in guarded[1].frr
    assert f"neighbor SPINES route-map EOS-PERMIT {direction}" in unguarded[1].frr
