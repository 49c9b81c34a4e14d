"""What checks are given: the fabric as designed, its facts, its counters over the window, and its thresholds."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Protocol

from netkit.design import Fabric, Host, Nic, Port, Switch
from netkit.design.expectation import Expectation, expectations, without_drains
from netkit.facts import Facts, Observation, Sample, Snapshot
from netkit.intent.model import Thresholds
from netkit.judge.delta import FAILED, MISSING, STUCK, CounterState, Delta, deltas
from netkit.judge.parity import skew_s
from netkit.plan import Plan

LIVELY_BYTES = 10_000
"""What one end must have sent in the window before the other end's standing counter means anything."""
CROSSED = (("rx_bytes", "tx_bytes"), ("tx_bytes", "rx_bytes"))
End = tuple[tuple[Sample, ...], str]
"""The samples of a device, and a port of it."""
Deltas = Callable[[str], Mapping[str, Delta]]


def still(mine: Deltas, theirs: Deltas, near: End, far: End) -> bool | None:
    """Whether the counters of one end stand still while the other end counts; None when nobody can say."""
    (samples, port), (others, other) = near, far
    told = [(mine(one).get(port), theirs(another).get(other)) for one, another in CROSSED]
    known = [(one, another) for one, another in told if one and another and one.is_known and another.is_known]
    if not known:
        return None
    windows = [(found[0].at_s, found[-1].at_s) for found in (samples, others)]
    if skew_s(windows) > min(ended_s - began_s for began_s, ended_s in windows):
        return None
    return not any(one.value for one, _ in known) and any(another.value > LIVELY_BYTES for _, another in known)


Device = Switch | Host


class History(Protocol):
    """What earlier runs have seen."""

    def readings(self, device: str, place: str, quantity: str) -> Sequence[tuple[float, float]]:
        """Return earlier values of a quantity, with the time of each, earliest first."""


class NoHistory:
    """There were no earlier runs."""

    def readings(self, device: str, place: str, quantity: str) -> Sequence[tuple[float, float]]:
        """Return nothing."""
        del device, place, quantity
        return ()


@dataclass(frozen=True)
class DeviceContext:
    """One device: as designed and as seen."""

    device: Device
    observation: Observation
    still: set[str] = field(default_factory=set, repr=False, compare=False)
    """Ports and NICs whose counters stand still while the other end of their cable counts."""
    _deltas: dict[str, Mapping[str, Delta]] = field(default_factory=dict, repr=False, compare=False)

    @property
    def name(self) -> str:
        """Return the name of the device."""
        return self.device.name

    @property
    def facts(self) -> Facts:
        """Return what was seen of it."""
        return self.observation.facts

    @property
    def is_reached(self) -> bool:
        """Whether anything was seen of it."""
        return not self.observation.failure or self.observation.facts != Facts()

    @cached_property
    def ports(self) -> Mapping[str, Port]:
        """Return the ports of a switch by name; a host has none."""
        return {port.name: port for port in self.device.ports} if isinstance(self.device, Switch) else {}

    @cached_property
    def nics(self) -> Mapping[str, Nic]:
        """Return the NICs of a host by interface; a switch has none."""
        return {nic.interface: nic for nic in self.device.nics} if isinstance(self.device, Host) else {}

    @property
    def window(self) -> tuple[float, float]:
        """Return when the first and the last sample of its counters were taken."""
        samples = self.observation.samples
        return (samples[0].at_s, samples[-1].at_s) if len(samples) > 1 else (0.0, 0.0)

    @property
    def window_s(self) -> float:
        """Return the time between the first and the last sample of its counters."""
        began_s, ended_s = self.window
        return ended_s - began_s

    def deltas(self, name: str) -> Mapping[str, Delta]:
        """Return what a counter added in the window, by place."""
        found = self._deltas.get(name)
        if found is None:
            found = self._deltas[name] = deltas(name, self.observation.samples)
        return found

    def delta(self, name: str, place: str) -> Delta:
        """Return what a counter added at one place; nothing of a device that broke off is merely missing.

        Of a port whose counters stand still nothing is known, though all of them say that nothing was added.
        """
        if self.still and (place in self.still or place.rpartition("/")[0] in self.still):
            return STUCK
        found = self.deltas(name).get(place, FAILED if self.observation.failure else MISSING)
        return FAILED if self.observation.failure and found.state is CounterState.BASELINE else found


def _moves(device: DeviceContext, port: str) -> bool:
    """Whether any byte was counted at a port."""
    return any((delta := device.deltas(name).get(port)) and delta.value for name in ("rx_bytes", "tx_bytes"))


@dataclass(frozen=True)
class CableEnd:
    """One end of a cable."""

    device: str
    port: str

    def __str__(self) -> str:
        return f"{self.device}:{self.port}"


@dataclass(frozen=True)
class CheckContext:
    """All that a check may look at. It cannot reach a device."""

    fabric: Fabric
    snapshot: Snapshot
    limits: Thresholds = field(default_factory=Thresholds)
    history: History = field(default_factory=NoHistory)
    names: frozenset[str] | None = None
    """The devices to judge; None for all of the fabric."""
    plan: Plan | None = None
    """What differs between running and intended configuration; None when that was not looked at."""

    @cached_property
    def devices(self) -> Mapping[str, DeviceContext]:
        """Return every device that is to be judged, reached or not."""
        wanted = (name for name in self.fabric.names if self.names is None or name in self.names)
        found = {name: self._seen(name) for name in wanted}
        for link in self.fabric.links():
            near, far = found.get(link.device), found.get(link.peer)
            if near is not None and far is not None:
                ends = (near.observation.samples, link.port), (far.observation.samples, link.peer_port)
                near.still.update([link.port] if still(near.deltas, far.deltas, *ends) else [])
                far.still.update([link.peer_port] if still(far.deltas, near.deltas, *reversed(ends)) else [])
        for device in found.values():
            if device.still:  # all counters of a device are read together: the other ports may merely be idle
                device.still.update(port for port in (*device.ports, *device.nics) if not _moves(device, port))
        return found

    @cached_property
    def switches(self) -> tuple[DeviceContext, ...]:
        """Return the switches."""
        return tuple(device for device in self.devices.values() if isinstance(device.device, Switch))

    @cached_property
    def hosts(self) -> tuple[DeviceContext, ...]:
        """Return the hosts."""
        return tuple(device for device in self.devices.values() if isinstance(device.device, Host))

    @cached_property
    def expected(self) -> Mapping[str, Expectation]:
        """Return what each switch must reach, and over how many ports, by design; nothing of what is drained."""
        return expectations(without_drains(self.fabric))

    def _seen(self, name: str) -> DeviceContext:
        device = self.fabric.device(name)
        if device is None:
            raise KeyError(name)
        unseen = Observation(name, "", failure="is not in the snapshot")
        return DeviceContext(device, self.snapshot.devices.get(name, unseen))

    @cached_property
    def far_ends(self) -> Mapping[CableEnd, CableEnd]:
        """Return the other end of each cable as designed, from both ends."""
        pairs = [(CableEnd(one.device, one.port), CableEnd(one.peer, one.peer_port)) for one in self.fabric.links()]
        return {**dict(pairs), **{far: near for near, far in pairs}}

    def far(self, device: str, port: str) -> CableEnd | None:
        """Return what a port is cabled to by design."""
        return self.far_ends.get(CableEnd(device, port))

    def cable(self, device: str, port: str) -> str:
        """Return one name for a cable, the same from both ends; empty where there is none by design."""
        far = self.far(device, port)
        return "" if far is None else " — ".join(sorted((f"{device}:{port}", str(far))))

    def way(self, sender: str, port: str) -> str:
        """Return one name for what goes along a cable in one direction; empty where there is none by design."""
        far = self.far(sender, port)
        return "" if far is None else f"{sender}:{port} → {far}"

    def way_in(self, receiver: str, port: str) -> str:
        """Return the same for what arrives at a port."""
        far = self.far(receiver, port)
        return "" if far is None else f"{far} → {receiver}:{port}"

    def links(self) -> Iterator[tuple[DeviceContext, str, DeviceContext, str]]:
        """Yield every cable whose both ends are judged: lower end and its port, upper end and its port."""
        for link in self.fabric.links():
            near, far = self.devices.get(link.device), self.devices.get(link.peer)
            if near is not None and far is not None:
                yield near, link.port, far, link.peer_port
