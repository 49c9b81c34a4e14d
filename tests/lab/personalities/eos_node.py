"""An EOS switch without a lab: its states are recorded, its hardware readings are constant."""

import json
from collections.abc import Iterable, Mapping
from functools import cache
from pathlib import Path
from typing import Any

from netkit.design import Fabric
from netkit.design.fabric import Host, Switch
from netkit.lab.layout import kernel_name
from netkit.lab.node import ConfigRefusedError, ProgramResult
from netkit.lab.personalities.eos import Eos
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

LIMITS = ModuleThresholds(-10.0, -8.0, 4.0, 5.0)
MODULE = TransceiverReading(
    kind="optic",
    identifier="OSFP",
    vendor="ACME",
    part="OSFP-800G-2xDR4",
    serial="AC0001",
    firmware="2.1",
    revision="A",
    media="800G-2xDR4",
    length_m=0,
    temperature_c=41.5,
    voltage_v=3.3,
    lanes=tuple(LaneReading(-1.0 - lane / 10, 0.5, 7.1) for lane in range(4)),
    temperature_limits=ModuleThresholds(-5, 0, 70, 75),
    voltage_limits=ModuleThresholds(2.97, 3.135, 3.465, 3.63),
    rx_limits=LIMITS,
    tx_limits=LIMITS,
    bias_limits=ModuleThresholds(1, 2, 12, 14),
)
EIGHT = range(8)


class RecordedNode:
    """A node that records the states it is given."""

    def __init__(self, switch: Switch, saved: Path) -> None:
        self.name = switch.name
        self.device: Switch | Host = switch
        self.kernel_names: Mapping[str, str] = {port.name: kernel_name(port.name) for port in switch.ports}
        self.saved = saved
        self.file("/tmp").mkdir(exist_ok=True)  # noqa: S108 - the switch's own
        self.states: list[SwitchState] = []
        self.spawned: dict[str, tuple[str, ...]] = {}
        self.logged: list[str] = []
        self.cleared: list[str] = []
        self.answers: dict[str, str] = {}
        self.refuses = ""

    @property
    def state(self) -> SwitchState:
        return self.states[-1]

    def file(self, path: str) -> Path:
        return self.saved / path.lstrip("/")

    def run(self, *command: str, stdin: str = "", timeout_s: float = 60) -> ProgramResult:
        del stdin, timeout_s
        return ProgramResult(0, self.answers.get(" ".join(command), "{}"), "")

    def spawn(self, name: str, *command: str) -> None:
        self.spawned[name] = command

    def end(self, name: str) -> None:
        self.spawned.pop(name, None)

    def is_running(self, name: str) -> bool:
        return name in self.spawned

    def ip(self, commands: Iterable[str]) -> str:
        del commands
        return ""

    def vty(self, command: str, daemon: str = "bgpd") -> str:
        return self.answers.get(f"{daemon}: {command}", "{}")

    def realise(self, state: SwitchState) -> None:
        if self.refuses and state.hostname != "localhost":
            raise ConfigRefusedError(self.refuses)
        self.states.append(state)

    def ports(self) -> tuple[SwitchPortReading, ...]:
        reported = {port.name: port for port in self.state.ports}
        return tuple(reading(name, reported[name].mtu_bytes, reported[name].is_enabled) for name in self.kernel_names)

    def port(self, name: str) -> SwitchPortReading | None:
        return next((port for port in self.ports() if port.name == name), None)

    def nics(self, only: str = "") -> tuple[NicReading, ...]:
        raise NotImplementedError(only)

    def clear_counters(self, port: str = "") -> None:
        self.cleared.append(port)

    def log(self, line: str) -> None:
        self.logged.append(line)


def reading(name: str, mtu_bytes: int = 9214, is_enabled: bool = True) -> SwitchPortReading:
    """A port's readings, with values that differ per priority and queue."""
    return SwitchPortReading(
        name=name,
        is_enabled=is_enabled,
        is_up=is_enabled,
        speed_gbps=400,
        mtu_bytes=mtu_bytes,
        carrier_changes=2,
        link_up_s=12.0,
        traffic=TrafficReading(1000, 10, 1, 0, 2000, 20, 0, 0),
        priorities=tuple(PriorityReading(number * 10, number, 5, 6) for number in EIGHT),
        queues=tuple(QueueReading(number, number * 100, 0, number * 3, 0, 0) for number in EIGHT),
        buffers=tuple(BufferReading() for _ in EIGHT),
        watchdogs=tuple(WatchdogReading(storms_detected=number, storms_restored=number) for number in EIGHT),
        fec=FecReading("rs", 120, 0, 1e-9, 0.0, (1000, 20, 3)),
        module=MODULE,
        adaptive_routing=False,
        mac="02:00:00:00:00:01",
    )


@cache
def eos_fabric(attachment: str = "p2p", version: str = "4.35.1F", drained: bool = False) -> Fabric:
    changes: dict[str, Any] = {"attachment": attachment, "host_routes": "per-leaf"}
    if drained:
        changes["overrides"] = {"spine01": {"drain": True}, "leaf01": {"drain_neighbors": ["spine02"]}}
    return intents.fabric(intents.on_platform("eos", version, changes))


def config_of(fabric: Fabric, name: str) -> str:
    (device,) = render(fabric, [fabric.switch(name)], Engine())
    return device.files["eos.cfg"]


def switch_on(folder: Path, name: str = "leaf01", fabric: Fabric | None = None) -> tuple[Eos, RecordedNode]:
    """A booted switch with its rendered configuration."""
    chosen = fabric or eos_fabric()
    node = RecordedNode(chosen.switch(name), folder)
    eos = Eos(node)
    eos.provision({"eos.cfg": config_of(chosen, name)})
    eos.boot()
    return eos, node


def ask(eos: Eos, *commands: str | dict[str, Any], form: str = "json", version: int | str = 1) -> dict[str, Any]:
    """The whole eAPI response."""
    params = {"version": version, "cmds": list(commands), "format": form}
    body = {"jsonrpc": "2.0", "method": "runCmds", "params": params, "id": "7"}
    found: dict[str, Any] = json.loads(eos.eapi(json.dumps(body).encode()))
    return found


def result(eos: Eos, *commands: str | dict[str, Any], form: str = "json") -> list[dict[str, Any]]:
    """The results of commands that must succeed."""
    found = ask(eos, "enable", *commands, form=form)
    assert "error" not in found, found["error"]
    results: list[dict[str, Any]] = found["result"][1:]
    return results


def texts(eos: Eos, *commands: str) -> list[str]:
    return [one["output"] for one in result(eos, *commands, form="text")]


def errors(eos: Eos, *commands: str) -> tuple[int, list[str]]:
    """The error code and the messages of the failed command."""
    found = ask(eos, "enable", *commands)["error"]
    return found["code"], found["data"][-1]["errors"]
