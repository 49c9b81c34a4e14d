"""What faults need of a running node to strike there, and how each notes what will heal it."""

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import NamedTuple, Protocol

from netkit.errors import LabError, Problem
from netkit.lab.faults.fault import InjectedFault
from netkit.lab.node import ProgramResult

FOLDER = "/run/netkit/faults"


class Namespaces(Protocol):
    """Where a node lives."""

    @property
    def network(self) -> str:
        """Return the file of its network namespace."""


class RunningNode(Protocol):
    """A running node."""

    name: str
    kernel_names: Mapping[str, str]

    @property
    def holder(self) -> Namespaces: ...  # noqa: D102

    def file(self, path: str) -> Path: ...  # noqa: D102

    def run(self, *command: str, stdin: str = "", timeout_s: float = 60) -> ProgramResult: ...  # noqa: D102

    def spawn(self, name: str, *command: str) -> None: ...  # noqa: D102

    def end(self, name: str) -> None: ...  # noqa: D102


class BreakStep(NamedTuple):
    """A command on a node, and what it reads."""

    command: tuple[str, ...]
    stdin: str = ""


def step(text: str) -> BreakStep:
    """Return a step of plain words."""
    return BreakStep(tuple(text.split()))


def do(node: RunningNode, steps: Iterable[BreakStep]) -> str:
    """Take steps on a node and return what they printed; raises LabError when one fails."""
    printed = ""
    for one in steps:
        done = node.run(*one.command, stdin=one.stdin)
        if done.exit_code != 0:
            what = f"{node.name}: {' '.join(one.command)} failed: {done.stderr.strip() or done.exit_code}"
            raise LabError(Problem(what, "see netkit lab logs"))
        printed += done.stdout
    return printed


def note(node: RunningNode, fault: InjectedFault, steps: Iterable[BreakStep]) -> None:
    """Note on the node what will heal a fault; a node that restarts forgets both."""
    file = _file(node, fault)
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(json.dumps([list(one) for one in steps]), encoding="utf-8")


def noted(node: RunningNode, fault: InjectedFault) -> list[BreakStep]:
    """Return what will heal a fault, and forget it."""
    file = _file(node, fault)
    if not file.exists():
        return []
    steps = [BreakStep(tuple(command), stdin) for command, stdin in json.loads(file.read_text(encoding="utf-8"))]
    file.unlink()
    return steps


def label(fault: InjectedFault) -> str:
    """Return a fault's name as file, process and nftables may be called."""
    words = f"fault_{fault.name}_{fault.device}_{fault.port}".lower()
    return "".join(char if char.isalnum() and char.isascii() else "_" for char in words).strip("_")


def _file(node: RunningNode, fault: InjectedFault) -> Path:
    return node.file(f"{FOLDER}/{label(fault)}")
