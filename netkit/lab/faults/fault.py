"""Which faults are active where, and since when."""

import threading
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple

Value = str | int | float


@dataclass(frozen=True, slots=True)
class InjectedFault:
    """One fault in one place. Without a port it belongs to the whole device."""

    name: str
    device: str
    port: str = ""
    since_s: float = 0
    options: Mapping[str, Value] = field(default_factory=dict)

    @property
    def place(self) -> str:
        """Return where it is, as people write it."""
        return f"{self.device}:{self.port}" if self.port else self.device

    def number(self, option: str) -> float:
        """Return an option that is a number; every option is given once a fault was checked."""
        return float(self.options[option])

    def text(self, option: str) -> str:
        """Return an option as text."""
        return str(self.options[option])

    @classmethod
    def from_json(cls, given: Mapping[str, Any]) -> "InjectedFault":
        """Return the fault that `to_json` wrote."""
        return cls(given["name"], given["device"], given["port"], given["since_s"], dict(given["options"]))

    def to_json(self) -> dict[str, object]:
        """Return what JSON can hold."""
        return {
            "name": self.name,
            "device": self.device,
            "port": self.port,
            "since_s": self.since_s,
            "options": dict(self.options),
        }


class FaultChange(NamedTuple):
    """From some moment on, these faults were active."""

    at_s: float
    active: tuple[InjectedFault, ...]


class Faults:
    """The active faults of a lab, and how they became so: the model counts what each did while it lasted."""

    def __init__(self, active: Iterable[InjectedFault] = ()) -> None:
        self._lock = threading.Lock()
        self._active = tuple(active)
        self._history: tuple[FaultChange, ...] = ()
        for fault in sorted(self._active, key=lambda fault: fault.since_s):
            before = self._history[-1].active if self._history else ()
            self._history = (*self._history, FaultChange(fault.since_s, (*before, fault)))

    @property
    def active(self) -> tuple[InjectedFault, ...]:
        """Return the faults that are active now."""
        return self._active

    @property
    def history(self) -> tuple[FaultChange, ...]:
        """Return every change so far; it only ever grows."""
        return self._history

    def of(self, name: str, device: str, port: str = "") -> InjectedFault | None:
        """Return an active fault by name and place; one of a whole device holds for all its ports."""
        return next(
            (
                fault
                for fault in self._active
                if fault.name == name and fault.device == device and fault.port in {"", port}
            ),
            None,
        )

    def add(self, fault: InjectedFault) -> None:
        """Make a fault active; one of the same name in the same place is replaced."""
        with self._lock:
            kept = tuple(other for other in self._active if (other.name, other.place) != (fault.name, fault.place))
            self._note(fault.since_s, (*kept, fault))

    def heal(self, name: str, device: str, port: str = "", *, now_s: float) -> tuple[InjectedFault, ...]:
        """End faults and return them; without a name all of the device's, without a port those of every port."""
        with self._lock:
            gone = tuple(
                fault
                for fault in self._active
                if fault.device == device and name in {"", fault.name} and port in {"", fault.port}
            )
            if gone:
                self._note(now_s, tuple(fault for fault in self._active if fault not in gone))
            return gone

    def _note(self, at_s: float, active: tuple[InjectedFault, ...]) -> None:
        self._active = active
        self._history = (*self._history, FaultChange(at_s, active))

    def to_json(self) -> list[dict[str, object]]:
        """Return the active faults as JSON can hold them."""
        return [fault.to_json() for fault in self._active]


Target = Literal["switch", "switch port", "host", "host NIC"]
Maker = Literal["model", "kernel", "nic", "management"]
"""Who acts it out: the hardware model, the node's kernel, the NIC and its traffic, or the way in to the device."""
SWITCH: Target = "switch"
SWITCH_PORT: Target = "switch port"
HOST: Target = "host"
HOST_NIC: Target = "host NIC"
PORTS = (SWITCH_PORT, HOST_NIC)
DEVICES = (SWITCH, HOST)


@dataclass(frozen=True, slots=True)
class Option:
    """One thing to set about a fault. Its type is that of its default."""

    name: str
    default: Value
    meaning: str
    low: float = 0
    high: float = float("inf")
    choices: tuple[Value, ...] = ()


@dataclass(frozen=True, slots=True)
class FaultKind:
    """One fault of the catalogue."""

    name: str
    maker: Maker
    targets: tuple[Target, ...]
    text: str
    """What it stands for, and what one sees."""
    options: tuple[Option, ...] = ()
