"""Commands that inject and heal faults on a running node: single steps, swapped cables, and NIC settings."""

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple, Protocol

from netkit.design.fabric import Fabric, Host
from netkit.errors import LabError, Problem
from netkit.lab.faults.fault import Faults, InjectedFault, other_port, switch_end
from netkit.lab.model.wiring import NicSettings
from netkit.lab.node import Node, ProgramResult
from netkit.lab.traffic.flow import Loss
from netkit.lab.traffic.marking import TABLE

FOLDER = "/run/netkit/faults"


class Namespaces(Protocol):
    """The namespaces of a node."""

    @property
    def network(self) -> str:
        """The file of the network namespace."""


class RunningNode(Protocol):
    """The part of a node that faults act on."""

    name: str
    kernel_names: Mapping[str, str]

    @property
    def holder(self) -> Namespaces: ...

    def file(self, path: str) -> Path: ...

    def run(self, *command: str, stdin: str = "", timeout_s: float = 60) -> ProgramResult: ...

    def spawn(self, name: str, *command: str) -> None: ...

    def end(self, name: str) -> None: ...


class BreakStep(NamedTuple):
    """A command to run on a node, with its standard input."""

    command: tuple[str, ...]
    stdin: str = ""


def step(text: str) -> BreakStep:
    """Split a command line into a step without input."""
    return BreakStep(tuple(text.split()))


def do(node: RunningNode, steps: Iterable[BreakStep]) -> str:
    """Run steps on a node and return their output; raise LabError if one fails."""
    printed = ""
    for next_step in steps:
        done = node.run(*next_step.command, stdin=next_step.stdin)
        if done.exit_code != 0:
            what = f"{node.name}: {' '.join(next_step.command)} failed: {done.stderr.strip() or done.exit_code}"
            raise LabError(Problem(what, "see netkit lab logs"))
        printed += done.stdout
    return printed


def note(node: RunningNode, fault: InjectedFault, steps: Iterable[BreakStep]) -> None:
    """Save on the node the steps that heal a fault; a restart discards both."""
    file = _file(node, fault)
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(json.dumps(list(steps)), encoding="utf-8")


def noted(node: RunningNode, fault: InjectedFault) -> list[BreakStep]:
    """The saved steps that heal a fault, and delete them."""
    file = _file(node, fault)
    if not file.exists():
        return []
    steps = [BreakStep(tuple(command), stdin) for command, stdin in json.loads(file.read_text(encoding="utf-8"))]
    file.unlink()
    return steps


def label(fault: InjectedFault) -> str:
    """A name for a fault that is valid for files, processes and nftables."""
    words = f"fault_{fault.name}_{fault.device}_{fault.port}".lower()
    return "".join(char if char.isalnum() and char.isascii() else "_" for char in words).strip("_")


def _file(node: RunningNode, fault: InjectedFault) -> Path:
    return node.file(f"{FOLDER}/{label(fault)}")


ASIDE = "nkswap"
OUT_S = 2
"""How long the cables are unplugged: long enough for daemons to notice."""


@dataclass(frozen=True, slots=True)
class Jack:
    """A switch port whose cable is unplugged, with its kernel settings before."""

    node: RunningNode
    interface: str
    settings: Mapping[str, Any]
    aside: str


def swap(fault: InjectedFault, fabric: Fabric, nodes: Mapping[str, RunningNode]) -> None:
    """Swap the cables of the fault's two ports; doing it again restores them."""
    first, second = jacks = _jacks(fault, fabric, nodes)
    rulesets = {}
    for jack in jacks:
        # The ruleset that marks congestion is bound to the ports about to move.
        listed = jack.node.run("nft", "list", "table", "netdev", TABLE)
        delete = f"delete table netdev {TABLE}\n"
        rulesets[jack.node.name] = delete + listed.stdout if listed.exit_code == 0 else ""
    for jack in jacks:
        interface = jack.interface
        do(
            jack.node,
            [
                step(f"ip link set dev {interface} down"),
                step(f"ip link set dev {interface} nomaster"),
                step(f"ip addr flush dev {interface}"),
                step(f"ip link set dev {interface} name {jack.aside}"),
            ],
        )
    do(first.node, [step(f"sleep {OUT_S}")])
    for jack, source in ((first, second), (second, first)):
        move = "" if source.node is jack.node else f" netns {jack.node.holder.network}"
        do(source.node, [step(f"ip link set dev {source.aside}{move} name {jack.interface}")])
    for jack in jacks:
        do(jack.node, _restored(jack))
    for name, ruleset in rulesets.items():
        do(nodes[name], [BreakStep(("nft", "-f", "-"), ruleset)])


def _jacks(fault: InjectedFault, fabric: Fabric, nodes: Mapping[str, RunningNode]) -> list[Jack]:
    names = (fault.port, other_port(fabric, fault))
    ends = [switch_end(fabric, fault.device, name) for name in names]
    jacks = []
    for index, (switch, port) in enumerate(ends):
        node = nodes[switch]
        interface = node.kernel_names[port]
        (settings,) = json.loads(do(node, [step(f"ip -j addr show dev {interface}")]))
        jacks.append(Jack(node, interface, settings, f"{ASIDE}{index}"))
    return jacks


def _restored(jack: Jack) -> Iterable[BreakStep]:
    name, settings = jack.interface, jack.settings
    yield step(f"ip link set dev {name} address {settings['address']}")
    yield step(f"ip link set dev {name} mtu {settings['mtu']}")
    if "master" in settings:
        yield step(f"ip link set dev {name} master {settings['master']}")
    if "UP" in settings["flags"]:
        yield step(f"ip link set dev {name} up")
    for address in settings["addr_info"]:
        if address["scope"] != "link":
            yield step(f"ip addr replace {address['local']}/{address['prefixlen']} dev {name}")


PRIORITIES = 8
LOSSES: dict[str, Loss] = {"sent": "sent", "received": "received"}


def loss(faults: Faults, host: str, interface: str) -> Loss:
    """Which CNPs a NIC loses."""
    fault = faults.of("cnp-loss", host, interface)
    return LOSSES[fault.text("direction")] if fault else ""


def commands(fault: InjectedFault, fabric: Fabric, host: Host) -> Iterator[tuple[str, ...]]:
    """Yield the commands that change a NIC's settings for a fault."""
    for nic in host.nics:
        if fault.port in {"", nic.interface}:
            if fault.name == "pfc-off":
                yield "mlnx_qos", "-i", nic.interface, "--pfc", _bits(frozenset())
            elif fault.name == "wrong-dscp-map":
                dscp, priority = fabric.lossless.data_dscp, int(fault.number("priority"))
                yield "mlnx_qos", "-i", nic.interface, "--dscp2prio", f"set,{dscp},{priority}"


def remedies(
    fault: InjectedFault, fabric: Fabric, host: Host, settings: Mapping[str, NicSettings]
) -> Iterator[tuple[str, ...]]:
    """Yield the commands that restore a NIC's settings."""
    for nic in host.nics:
        before = settings[nic.interface]
        if fault.port in {"", nic.interface}:
            if fault.name == "pfc-off":
                yield "mlnx_qos", "-i", nic.interface, "--pfc", _bits(before.pfc_priorities)
            elif fault.name == "wrong-dscp-map" and before.priority_of_dscp:
                dscp = fabric.lossless.data_dscp
                yield "mlnx_qos", "-i", nic.interface, "--dscp2prio", f"set,{dscp},{before.priority_of_dscp[dscp]}"


def run(node: Node, words: tuple[str, ...]) -> None:
    """Run a NIC tool on a host; raise LabError if it fails."""
    done = node.run(*words)
    if done.exit_code != 0:
        raise LabError(Problem(f"{node.name}: {' '.join(words)}: {(done.stderr or done.stdout).strip()}"))


def _bits(priorities: frozenset[int]) -> str:
    return ",".join("1" if number in priorities else "0" for number in range(PRIORITIES))
