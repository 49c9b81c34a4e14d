"""`show` commands on the configuration itself."""

import json

from netkit.lab.personalities.sonic.command import Command, Commands, Line
from netkit.lab.personalities.sonic.system import System
from netkit.lab.personalities.sonic.tables import ordered
from netkit.lab.personality import Call


def _all(system: System, call: Call, line: Line) -> None:  # noqa: ARG001
    routing = system.node.run("vtysh", "-c", "show running-config").stdout
    call.out(json.dumps({**ordered(system.running), "bgpraw": routing}, indent=4) + "\n")


def _bgp(system: System, call: Call, line: Line) -> None:  # noqa: ARG001
    call.out(system.node.run("vtysh", "-c", "show running-config").stdout)


def _ports(system: System, call: Call, line: Line) -> None:
    rows = ordered(system.running).get("PORT", {})
    found = {name: rows[name] for name in line.arguments if name in rows} if line.arguments else rows
    call.out(json.dumps(found, indent=4) + "\n")


COMMANDS: Commands = {
    ("runningconfiguration", "all"): Command(_all),
    ("runningconfiguration", "bgp"): Command(_bgp),
    ("runningconfiguration", "ports"): Command(_ports, 1),
}
