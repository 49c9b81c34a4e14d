"""A SONiC switch whose node only records files and states, and a command line to type at it."""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from netkit.design import Fabric
from netkit.design.fabric import Host, Switch
from netkit.lab.node import ProgramResult
from netkit.lab.personalities.sonic import PERSONALITY
from netkit.lab.reading import NicReading, SwitchPortReading
from netkit.lab.state import SwitchState
from netkit.render import Engine, render
from tests import intents
from tests.lab.personalities.sonic.hardware import readings

ENGINE = Engine()
UNIFIED = {"switches": {"leaf": {"routing_mode": "unified"}, "spine": {"routing_mode": "unified"}}}
DRAINED = {"overrides": {"spine01": {"drain": True}, "leaf01": {"drain_neighbors": ["spine02"]}}}
TRADITIONAL = {"switches": {"leaf": {"model": "DCS-7060X6-64PE"}, "spine": {"model": "DCS-7060X6-64PE"}}}


@dataclass
class Recorder:
    """A node without a kernel that records files and states."""

    folder: Path
    device: Switch | Host
    readings: tuple[SwitchPortReading, ...] = ()
    states: list[SwitchState] = field(default_factory=list)
    commands: list[tuple[str, ...]] = field(default_factory=list)
    cleared: list[str] = field(default_factory=list)
    answers: dict[tuple[str, ...], ProgramResult] = field(default_factory=dict)

    def __post_init__(self) -> None:
        assert isinstance(self.device, Switch)
        self.name = self.device.name
        self.kernel_names: Mapping[str, str] = {port.name: port.name for port in self.device.ports}
        self.saved = self.folder / "saved"
        self.saved.mkdir()

    def file(self, path: str) -> Path:
        return self.folder / "root" / path.lstrip("/")

    def run(self, *command: str, stdin: str = "", timeout_s: float = 60) -> ProgramResult:  # noqa: ARG002
        self.commands.append(command)
        return self.answers.get(command, ProgramResult(0, "", ""))

    def spawn(self, name: str, *command: str) -> None:
        self.commands.append((name, *command))

    def end(self, name: str) -> None:
        self.commands.append(("end", name))

    def is_running(self, name: str) -> bool:  # noqa: ARG002
        return False

    def ip(self, commands: Iterable[str]) -> str:
        raise NotImplementedError

    def vty(self, command: str, daemon: str = "bgpd") -> str:
        raise ConnectionRefusedError(f"{daemon} does not run: {command}")

    def realise(self, state: SwitchState) -> None:
        self.states.append(state)

    def ports(self) -> tuple[SwitchPortReading, ...]:
        return self.readings

    def port(self, name: str) -> SwitchPortReading | None:
        return next((reading for reading in self.readings if reading.name == name), None)

    def nics(self, only: str = "") -> tuple[NicReading, ...]:
        raise NotImplementedError(only)

    def clear_counters(self, port: str = "") -> None:
        self.cleared.append(port)

    def log(self, line: str) -> None:
        raise NotImplementedError


@dataclass
class Typed:
    """A command line and its output."""

    program: str
    arguments: tuple[str, ...]
    root: Path
    piped: str = ""
    user: str = "admin"
    folder: str = "/home/admin"
    stdout: str = ""
    stderr: str = ""

    def out(self, text: str) -> None:
        self.stdout += text

    def err(self, text: str) -> None:
        self.stderr += text

    def ask(self, prompt: str) -> str:
        self.stdout += prompt
        return self.piped

    def stdin(self) -> str:
        return self.piped

    def file(self, path: str) -> Path:
        return self.root / path.lstrip("/")


class Bench:
    """One provisioned and booted switch."""

    def __init__(self, folder: Path, fabric: Fabric, name: str = "leaf01", *, is_new: bool = False) -> None:
        self.folder = folder
        self.node = Recorder(folder, fabric.switch(name))
        self.node.readings = readings(fabric.switch(name))
        self.sonic = PERSONALITY(self.node)
        self.node.file("/home/admin").mkdir(parents=True)
        if not is_new:
            self.sonic.provision(files(fabric, name))
        self.sonic.boot()

    def type(self, line: str, piped: str = "", user: str = "admin") -> tuple[int, str, str]:
        """Type a line; return exit code, output and errors."""
        return self.call(*line.split(), piped=piped, user=user)

    def call(self, program: str, *words: str, piped: str = "", user: str = "admin") -> tuple[int, str, str]:
        """Run a program with arbitrary arguments; return exit code, output and errors."""
        typed = Typed(program, words, self.folder / "root", piped, user)
        return self.sonic.run(typed), typed.stdout, typed.stderr

    def patch(self, *operations: Mapping[str, object], options: str = "") -> tuple[int, str, str]:
        """Apply a patch from standard input."""
        return self.type(f"config apply-patch /dev/stdin {options}", json.dumps(operations))


def fabric(version: str = "202411", *changes: Mapping[str, Any]) -> Fabric:
    together: dict[str, Any] = {}
    for change in changes:
        for key, value in change.items():
            together[key] = {**together.get(key, {}), **value} if isinstance(value, dict) else value
    return intents.fabric(intents.on_platform("sonic", version, together))


def files(designed: Fabric, name: str) -> dict[str, str]:
    (device,) = render(designed, [designed.switch(name)], ENGINE)
    return dict(device.files)
