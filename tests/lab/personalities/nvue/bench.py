"""A switch that records the states it is given, and a terminal to type at it: for tests that need no kernel."""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from netkit.design.fabric import Fabric, Host, Switch
from netkit.lab.node import ConfigRefusedError, ProgramResult
from netkit.lab.personalities.nvue import Nvue
from netkit.lab.reading import (
    BufferReading,
    FecReading,
    LaneReading,
    ModuleThresholds,
    NicReading,
    PriorityReading,
    QueueReading,
    SwitchPortReading,
    TrafficReading,
    TransceiverReading,
    WatchdogReading,
)
from netkit.lab.state import SwitchState
from netkit.render import Engine, render
from tests import intents

VERSIONS = ("5.9.2", "5.12.0", "5.14.0", "5.16.1", "5.17.0")
ENGINE = Engine()


def rendered(fabric: Fabric, name: str) -> Mapping[str, str]:
    (device,) = render(fabric, [fabric.switch(name)], ENGINE)
    return device.files


@dataclass
class RecordingNode:
    """A node that records the states it is given."""

    device: Switch | Host
    saved: Path
    kernel_names: Mapping[str, str] = field(default_factory=dict)
    reported: list[SwitchState] = field(default_factory=list)
    lines: list[str] = field(default_factory=list)
    answers: dict[str, str] = field(default_factory=dict)
    cleared: list[str] = field(default_factory=list)
    refusal: str = ""
    name: str = ""

    def __post_init__(self) -> None:
        self.name = self.device.name
        if isinstance(self.device, Switch):
            self.kernel_names = {port.name: port.name for port in self.device.ports}

    def realise(self, state: SwitchState) -> None:
        if self.refusal and state.frr != self.reported[-1].frr:
            raise ConfigRefusedError(self.refusal)
        self.reported.append(state)

    def ports(self) -> tuple[SwitchPortReading, ...]:
        states = {port.name: port for port in self.reported[-1].ports} if self.reported else {}
        return tuple(
            reading(name, seed, is_enabled=name in states and states[name].is_enabled)
            for seed, name in enumerate(self.kernel_names, 1)
        )

    def port(self, name: str) -> SwitchPortReading | None:
        return next((port for port in self.ports() if port.name == name), None)

    def nics(self, only: str = "") -> tuple[NicReading, ...]:
        raise NotImplementedError(only)

    def vty(self, command: str, daemon: str = "bgpd") -> str:
        return self.answers.get(f"{daemon}: {command}", "{}")

    def run(self, *command: str, stdin: str = "", timeout_s: float = 60) -> ProgramResult:  # noqa: ARG002
        return ProgramResult(0, self.answers.get(" ".join(command), ""), "")

    def clear_counters(self, port: str = "") -> None:
        self.cleared.append(port)

    def log(self, line: str) -> None:
        self.lines.append(line)

    def file(self, path: str) -> Path:
        return self.saved / "root" / path.lstrip("/")

    def spawn(self, name: str, *command: str) -> None:
        raise AssertionError(f"nothing is to be started, not {name}: {command}")

    def end(self, name: str) -> None:
        raise AssertionError(f"nothing is to be ended, not {name}")

    def is_running(self, name: str) -> bool:  # noqa: ARG002
        return False

    def ip(self, commands: Iterable[str]) -> str:
        raise AssertionError(f"links are the node's own business: {list(commands)}")


def reading(name: str, seed: int, *, is_enabled: bool = True) -> SwitchPortReading:
    """A port's readings, which differ per seed and field."""
    return SwitchPortReading(
        name=name,
        is_enabled=is_enabled,
        is_up=is_enabled,
        speed_gbps=400,
        mtu_bytes=9216,
        carrier_changes=3,
        link_up_s=2.0,
        traffic=TrafficReading(*(1000 * seed + at for at in range(8))),
        priorities=tuple(PriorityReading(seed + at, seed + at + 10, seed + at + 20, seed + at + 30) for at in range(8)),
        queues=tuple(QueueReading(*(100 * seed + 10 * at + part for part in range(6))) for at in range(8)),
        buffers=tuple(BufferReading(seed + at, seed + at + 1, 2, 3, at) for at in range(8)),
        watchdogs=tuple(WatchdogReading(at == 3, seed + at, at) for at in range(8)),
        fec=FecReading("rs", 5, 7, 2.4e-9, 0.0),
        module=module(),
        adaptive_routing=False,
        mac=f"02:00:00:00:00:{seed:02x}",
    )


def module(first_lane: int = 5) -> TransceiverReading:
    """One half of a twin-port module, its second lane dim."""
    return TransceiverReading(
        kind="optic",
        identifier="OSFP",
        vendor="Lightworks",
        part="LW-800",
        serial="S0001",
        firmware="1.2.3",
        revision="A1",
        media="DR4",
        length_m=30,
        temperature_c=45.5,
        voltage_v=3.3,
        lanes=(LaneReading(-2.0, 1.0, 75.25), LaneReading(-8.5, 1.0, 75.25)),
        temperature_limits=ModuleThresholds(-5.0, 0.0, 70.0, 75.0),
        voltage_limits=ModuleThresholds(3.0, 3.1, 3.5, 3.6),
        rx_limits=ModuleThresholds(-10.0, -8.0, 4.0, 5.0),
        tx_limits=ModuleThresholds(-10.0, -8.0, 4.0, 5.0),
        bias_limits=ModuleThresholds(30.0, 40.0, 100.0, 110.0),
        first_lane=first_lane,
    )


@dataclass
class TypedCall:
    """A command line and its output, with prepared answers to prompts."""

    arguments: tuple[str, ...]
    folder_seen: Path
    user: str = "cumulus"
    replies: list[str] = field(default_factory=list)
    text: str = ""
    program: str = "nv"
    folder: str = "/home/cumulus"
    printed: str = ""

    def out(self, text: str) -> None:
        self.printed += text

    def err(self, text: str) -> None:
        self.printed += text

    def ask(self, prompt: str) -> str:
        self.printed += prompt + "\n"
        return self.replies.pop(0) if self.replies else ""

    def stdin(self) -> str:
        return self.text

    def file(self, path: str) -> Path:
        return self.folder_seen / path


@dataclass
class Desk:
    """A switch and a terminal."""

    node: RecordingNode
    switch: Nvue
    files: Path

    def type(self, line: str, *, user: str = "cumulus", reply: str = "") -> tuple[int, str]:
        """Type one line and return its exit code and output."""
        call = TypedCall(tuple(line.split()[1:]), self.files, user, [reply] if reply else [])
        return self.switch.run(call), call.printed

    def show(self, path: str) -> Any:
        """The JSON of `nv show`."""
        code, printed = self.type(f"nv show {path} -o json")
        assert code == 0, printed
        return json.loads(printed)

    def restart(self) -> None:
        """Power-cycle the switch."""
        self.switch.stop()
        self.switch = Nvue(self.node)
        self.switch.boot()


def desk(folder: Path, version: str = "5.16.1", name: str = "leaf01", **changes: Any) -> Desk:
    """A booted switch of the small fabric with its rendered configuration."""
    fabric = intents.fabric(intents.on_platform("nvue", version, changes))
    node = RecordingNode(fabric.switch(name), folder / "saved")
    switch = Nvue(node)
    switch.provision(rendered(fabric, name))
    switch.boot()
    return Desk(node, switch, folder)
