"""Faults: their kinds, where each applies, and which have been active when."""

import threading
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple

from netkit.design.fabric import AccessPort, Cable, Fabric, Host, Port, Switch
from netkit.errors import Problem
from netkit.hardware import Catalog

Value = str | int | float


@dataclass(frozen=True, slots=True)
class InjectedFault:
    """One fault in one place. Without a port it applies to the whole device."""

    name: str
    device: str
    port: str = ""
    since_s: float = 0
    options: Mapping[str, Value] = field(default_factory=dict)

    @property
    def place(self) -> str:
        return f"{self.device}:{self.port}" if self.port else self.device

    def number(self, option: str) -> float:
        """A numeric option; a checked fault has every option."""
        return float(self.options[option])

    def text(self, option: str) -> str:
        return str(self.options[option])

    @classmethod
    def from_json(cls, given: Mapping[str, Any]) -> "InjectedFault":
        return cls(given["name"], given["device"], given["port"], given["since_s"], dict(given["options"]))

    def to_json(self) -> dict[str, object]:
        return {
            "name": self.name,
            "device": self.device,
            "port": self.port,
            "since_s": self.since_s,
            "options": dict(self.options),
        }


class FaultChange(NamedTuple):
    """The faults active from a moment on."""

    at_s: float
    active: tuple[InjectedFault, ...]


class Faults:
    """The active faults of a lab, with their history: the model counts what each did while it lasted."""

    def __init__(self, active: Iterable[InjectedFault] = ()) -> None:
        self._lock = threading.Lock()
        self._active = tuple(active)
        self._history: tuple[FaultChange, ...] = ()
        for fault in sorted(self._active, key=lambda fault: fault.since_s):
            before = self._history[-1].active if self._history else ()
            self._history = (*self._history, FaultChange(fault.since_s, (*before, fault)))

    @property
    def active(self) -> tuple[InjectedFault, ...]:
        return self._active

    @property
    def history(self) -> tuple[FaultChange, ...]:
        """Every change so far; it only grows."""
        return self._history

    def of(self, name: str, device: str, port: str = "") -> InjectedFault | None:
        """An active fault by name and place; one of a whole device applies to all its ports."""
        return next(
            (
                fault
                for fault in self._active
                if fault.name == name and fault.device == device and fault.port in {"", port}
            ),
            None,
        )

    def add(self, fault: InjectedFault) -> None:
        """Activate a fault; it replaces one of the same name in the same place."""
        with self._lock:
            kept = tuple(other for other in self._active if (other.name, other.place) != (fault.name, fault.place))
            self._note(fault.since_s, (*kept, fault))

    def heal(self, name: str, device: str, port: str = "", *, now_s: float) -> tuple[InjectedFault, ...]:
        """End faults and return them; without a name all of the device's, without a port those of every port."""
        with self._lock:
            healed = tuple(
                fault
                for fault in self._active
                if fault.device == device and name in {"", fault.name} and port in {"", fault.port}
            )
            if healed:
                self._note(now_s, tuple(fault for fault in self._active if fault not in healed))
            return healed

    def _note(self, at_s: float, active: tuple[InjectedFault, ...]) -> None:
        self._active = active
        self._history = (*self._history, FaultChange(at_s, active))

    def to_json(self) -> list[dict[str, object]]:
        return [fault.to_json() for fault in self._active]


Target = Literal["switch", "switch port", "host", "host NIC"]
Maker = Literal["model", "kernel", "nic", "management"]
"""What implements it: the hardware model, the node's kernel, the NIC and its traffic, or the management access."""
SWITCH: Target = "switch"
SWITCH_PORT: Target = "switch port"
HOST: Target = "host"
HOST_NIC: Target = "host NIC"
PORTS = (SWITCH_PORT, HOST_NIC)
DEVICES = (SWITCH, HOST)


@dataclass(frozen=True, slots=True)
class Option:
    """A parameter of a fault. Its default determines its type."""

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
    """What it simulates, and its symptoms."""
    options: tuple[Option, ...] = ()


NO_PFC = "a Linux switch has no PFC"
NO_OPTICS = "a Linux switch exposes no optics"
OWN_COUNTERS = "a Linux switch shows the kernel's own counters"
NO_MARKS = "a Linux switch marks no congestion in a lab"
UNSEEN: Mapping[str, Mapping[str, str]] = {
    "frr": {
        "pause-storm": NO_PFC,
        "watchdog-trip": NO_PFC,
        "pfc-off": NO_PFC,
        "dim-optic": NO_OPTICS,
        "dirty-lane": NO_OPTICS,
        "hot-optic": NO_OPTICS,
        "mixed-optic-firmware": NO_OPTICS,
        "counter-reset": OWN_COUNTERS,
        "counter-wrap": OWN_COUNTERS,
        "counter-stuck": OWN_COUNTERS,
        "adaptive-routing-half-on": "a Linux switch has no adaptive routing",
        "ecn-unmarked": NO_MARKS,
        "cnp-remarked": NO_MARKS,
        "cnp-loss": NO_MARKS,
    },
    "sonic": {"adaptive-routing-half-on": "SONiC does not expose on which ports adaptive routing works"},
}
"""Why a fault is invisible, by the platform of the switch."""
OF_LEAVES = frozenset({"cnp-loss"})
"""Faults of hosts that are visible only through their leaves."""
BESIDE = frozenset(
    {
        *("dim-optic", "hot-optic", "dirty-lane", "mixed-optic-firmware", "counter-reset", "counter-wrap"),
        *("counter-stuck", "link-flap", "slow-link-up", "wrong-mtu", "wrong-cable"),
    }
)
"""Faults of ports of networks beside the rails; the others belong to RoCE, routes and sessions."""
OF_BOTH_ENDS = frozenset({"dim-optic", "dirty-lane"})
"""Faults that the far end reports, too."""


def unfit(fabric: Fabric, fault: InjectedFault) -> Problem | None:
    """Why a fault would have no effect, or None."""
    if fault.name not in BESIDE and is_beside(fabric, fault.device, fault.port):
        message = f"{fault.place} is at a network beside the rails: {fault.name} would not show"
        return Problem(message, f"use one of: {', '.join(sorted(BESIDE))}")
    if reason := _unseen(fabric, fault):
        return Problem(f"{reason}: {fault.name} at {fault.place} would not show", "see docs/faults.md for what does")
    requirement = REQUIREMENTS.get(fault.name)
    return requirement(fabric, fault) if requirement else None


def _unseen(fabric: Fabric, fault: InjectedFault) -> str:
    """Why a fault at this switch, or behind this leaf, would be invisible; empty if it is visible."""
    device = fabric.device(fault.device)
    if isinstance(device, Host):
        leaves = {nic.leaf for nic in device.nics if fault.port in {"", nic.interface}}
        platforms = {fabric.switch(leaf).platform for leaf in leaves} if fault.name in OF_LEAVES else set()
    else:
        platforms = {fabric.switch(fault.device).platform}
        if fault.name in OF_BOTH_ENDS:
            far = fabric.device(port_of(fabric, fault).peer)
            platforms.add(far.platform if isinstance(far, Switch) else "")
    reasons = [UNSEEN.get(platform, {}).get(fault.name, "") for platform in sorted(platforms)]
    return reasons[0] if reasons and all(reasons) else ""


def port_of(fabric: Fabric, fault: InjectedFault) -> Port | AccessPort:
    """The switch port of a fault's cable: the fault's own port, or the one at the other end of a host's NIC."""
    device, name = switch_end(fabric, fault.device, fault.port)
    return next(port for port in fabric.switch(device).cabled if port.name == name)


def switch_end(fabric: Fabric, device: str, port: str) -> tuple[str, str]:
    """The end of a cable that is at a switch: the given one, or the other one of a host's NIC."""
    if isinstance(fabric.device(device), Switch):
        return device, port
    return next((one.peer, one.peer_port) for one in fabric.cables() if (one.device, one.port) == (device, port))


def is_at_host(port: Port | AccessPort) -> bool:
    return (port.role if isinstance(port, Port) else port.kind) == "host"


def is_beside(fabric: Fabric, device: str, port: str) -> bool:
    """Whether a port or NIC is one of a network beside the rails."""
    found = fabric.device(device)
    names = (
        found.nics_beside
        if isinstance(found, Host)
        else [one.name for one in found.cabled if isinstance(one, AccessPort)]
        if found
        else ()
    )
    return port in names


def _needs_light(fabric: Fabric, fault: InjectedFault) -> Problem | None:
    cable = port_of(fabric, fault).cable
    if cable and cable.kind != "optical":
        return _wrong_media(fault, cable, "does not report optical power by lane", "with an optical module")
    return _needs_lane(fabric, fault)


def _needs_lane(fabric: Fabric, fault: InjectedFault) -> Problem | None:
    port = port_of(fabric, fault)
    media = Catalog().media().get(port.cable.media) if port.cable else None
    lanes = media.lanes if media and media.lanes else port.split.lanes_per_port
    if fault.number("lane") <= lanes:
        return None
    return Problem(f"{fault.place} has {lanes} lanes", f"give a lane from 1 to {lanes}")


def _needs_power(fabric: Fabric, fault: InjectedFault) -> Problem | None:
    cable = port_of(fabric, fault).cable
    return _wrong_media(fault, cable, "is passive", "with a module") if cable and cable.kind == "dac" else None


def _needs_session(fabric: Fabric, fault: InjectedFault) -> Problem | None:
    if not fault.port or not is_at_host(port_of(fabric, fault)):
        return None
    return Problem(f"{fault.place} leads to a host", "name a port to another switch")


SECOND_PORT: Mapping[str, tuple[str, str, str]] = {
    "wrong-cable": ("with", "cannot be swapped", "give with=PORT, another port of the same device"),
    "wrong-source-route": (
        "as",
        "cannot use another rail's table",
        "give as=INTERFACE, another NIC of the host",
    ),
}
"""Faults between two ports of a device: the option that names the second, and the error and remedy without one."""


def _needs_second_port(fabric: Fabric, fault: InjectedFault) -> Problem | None:
    option, what, remedy = SECOND_PORT[fault.name]
    if other_port(fabric, fault, option) not in {"", fault.port}:
        return None
    return Problem(f"{fault.place} {what}", remedy)


def other_port(fabric: Fabric, fault: InjectedFault, option: str = "with") -> str:
    """The port a fault's option names, else the next one of the same kind; empty if there is none."""
    device = fabric.device(fault.device)
    if isinstance(device, Switch):
        own = port_of(fabric, fault)
        known = [port.name for port in device.cabled]
        names = [port.name for port in device.cabled if _role(port) == _role(own)]
    else:
        is_own_beside = is_beside(fabric, fault.device, fault.port)
        every = device.cabled if device else ()
        names = known = [name for name in every if is_beside(fabric, fault.device, name) is is_own_beside]
    chosen = fault.text(option)
    if chosen:
        return chosen if chosen in known else ""
    return names[(names.index(fault.port) + 1) % len(names)]


def _role(port: Port | AccessPort) -> tuple[bool, str]:
    return (True, port.role) if isinstance(port, Port) else (False, port.kind)


def _wrong_media(fault: InjectedFault, cable: Cable, what: str, where: str) -> Problem:
    return Problem(
        f"{fault.place} has {cable.media}, which {what}: {fault.name} would not show", f"name a port {where}"
    )


REQUIREMENTS: Mapping[str, Callable[[Fabric, InjectedFault], Problem | None]] = {
    "dim-optic": _needs_light,
    "dirty-lane": _needs_lane,
    "hot-optic": _needs_power,
    "mixed-optic-firmware": _needs_power,
    "adaptive-routing-half-on": _needs_session,
    "bgp-session-down": _needs_session,
    "wrong-cable": _needs_second_port,
    "wrong-source-route": _needs_second_port,
}
