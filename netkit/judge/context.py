"""The input of checks: the fabric as designed, its facts, its counters over the window, and its thresholds."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import chain
from typing import TYPE_CHECKING, Protocol

from netkit.design import Fabric, Host, Nic, Port, Switch
from netkit.design.expectation import Expectation, expectations, without_drains
from netkit.design.fabric import AccessPort, CableEnd, Link
from netkit.facts import Facts, Observation, Sample, Snapshot
from netkit.intent.model import Thresholds
from netkit.judge.delta import FAILED, MISSING, STUCK, CounterState, Delta, Unchanged, deltas
from netkit.judge.parity import skew_s
from netkit.plan import Plan

if TYPE_CHECKING:
    from netkit.judge.run import ShardResult

LIVELY_BYTES = 10_000
"""What one end must have counted in the window before a stuck counter of the other end is significant."""
CROSSED = (("rx_bytes", "tx_bytes"), ("tx_bytes", "rx_bytes"))
End = tuple[tuple[Sample, ...], str]
"""The samples of a device, and a port of it."""
Deltas = Callable[[str], Mapping[str, Delta]]


def still(near_deltas: Deltas, far_deltas: Deltas, near: End, far: End) -> bool | None:
    """Whether the counters of one end stand still while the other end counts; None if that is unknown."""
    (samples, port), (others, other) = near, far
    pairs = [(near_deltas(one).get(port), far_deltas(another).get(other)) for one, another in CROSSED]
    known = [(one, another) for one, another in pairs if one and another and one.is_known and another.is_known]
    if not known:
        return None
    windows = [(found[0].at_s, found[-1].at_s) for found in (samples, others)]
    if skew_s(windows) > min(ended_s - began_s for began_s, ended_s in windows):
        return None
    return not any(one.value for one, _ in known) and any(another.value > LIVELY_BYTES for _, another in known)


Device = Switch | Host


class History(Protocol):
    """Values of earlier runs."""

    def readings(self, device: str, place: str, quantity: str) -> Sequence[tuple[float, float]]:
        """Earlier values of a quantity with their times, oldest first."""


class NoHistory:
    """There were no earlier runs."""

    def readings(self, device: str, place: str, quantity: str) -> Sequence[tuple[float, float]]:
        del device, place, quantity
        return ()


@dataclass(frozen=True)
class DeviceContext:
    """One device as designed and as observed."""

    device: Device
    observation: Observation
    still: set[str] = field(default_factory=set, repr=False, compare=False)
    """Ports and NICs with stuck counters: the other end of their cable counts."""
    _deltas: dict[str, Mapping[str, Delta]] = field(default_factory=dict, repr=False, compare=False)
    _unchanged: Unchanged = field(default_factory=dict, repr=False, compare=False)

    @property
    def name(self) -> str:
        return self.device.name

    @property
    def facts(self) -> Facts:
        return self.observation.facts

    @property
    def is_reached(self) -> bool:
        """Whether anything of it was observed."""
        return not self.observation.failure or self.observation.facts != Facts()

    @cached_property
    def ports(self) -> Mapping[str, Port]:
        """The ports of a switch by name; a host has none."""
        return {port.name: port for port in self.device.ports} if isinstance(self.device, Switch) else {}

    @cached_property
    def nics(self) -> Mapping[str, Nic]:
        """The NICs of a host by interface; a switch has none."""
        return {nic.interface: nic for nic in self.device.nics} if isinstance(self.device, Host) else {}

    @cached_property
    def cabled_ports(self) -> Mapping[str, Port | AccessPort]:
        """The ports of a switch that the design cables, by name: of rails, and of networks beside them."""
        return {port.name: port for port in self.device.cabled} if isinstance(self.device, Switch) else {}

    @cached_property
    def cabled(self) -> tuple[str, ...]:
        """The ports or NICs that the design cables."""
        return self.device.cabled if isinstance(self.device, Host) else tuple(self.cabled_ports)

    @property
    def window(self) -> tuple[float, float]:
        """The times of the first and the last sample of its counters."""
        samples = self.observation.samples
        return (samples[0].at_s, samples[-1].at_s) if len(samples) > 1 else (0.0, 0.0)

    @property
    def window_s(self) -> float:
        began_s, ended_s = self.window
        return ended_s - began_s

    def deltas(self, name: str) -> Mapping[str, Delta]:
        """What a counter added in the window, by place."""
        found = self._deltas.get(name)
        if found is None:
            found = self._deltas[name] = deltas(name, self.observation.samples, self._unchanged)
        return found

    def delta(self, name: str, place: str) -> Delta:
        """What a counter added at one place; on a device that broke off, absence is a failure.

        A port whose counters are stuck is unknown, although each of them shows no increase.
        """
        if self.still and (place in self.still or place.rpartition("/")[0] in self.still):
            return STUCK
        known = self._deltas.get(name)
        found = (self.deltas(name) if known is None else known).get(place)
        if self.observation.failure:
            return FAILED if found is None or found.state is CounterState.BASELINE else found
        return MISSING if found is None else found


JudgedLink = tuple[DeviceContext, str, DeviceContext, str]
"""The lower end of a cable and its port, and the upper end and its port."""


def _counts(device: DeviceContext, port: str) -> bool:
    """Whether a port counted bytes in both directions, as nearly all do; then it does not stand still."""
    counted = (device.deltas(name).get(port) for name, _ in CROSSED)
    return all(delta is not None and delta.value for delta in counted)


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
    """What differs between running and intended configuration; None if that was not compared."""
    shards: "tuple[ShardResult, ...]" = ()
    """What was judged where the devices were read."""

    @cached_property
    def devices(self) -> Mapping[str, DeviceContext]:
        """Every device to judge, reached or not."""
        wanted = (name for name in self.fabric.names if self.names is None or name in self.names)
        found = {name: self._context_of(name) for name in wanted}
        for near in found.values():
            for port in near.cabled:
                end = self.far(near.name, port)
                far = found.get(end.device) if end else None
                if end and far and not (_counts(near, port) and _counts(far, end.port)):
                    ends = (near.observation.samples, port), (far.observation.samples, end.port)
                    near.still.update([port] if still(near.deltas, far.deltas, *ends) else [])
        for device in found.values():
            if device.still:  # all counters of a device are read together, so silent ports are suspect too
                counts = [device.deltas(name) for name in ("rx_bytes", "tx_bytes")]
                counting = {port for deltas_of in counts for port, delta in deltas_of.items() if delta.value}
                device.still.update({*device.cabled} - counting)
        return found

    @cached_property
    def switches(self) -> tuple[DeviceContext, ...]:
        return tuple(device for device in self.devices.values() if isinstance(device.device, Switch))

    @cached_property
    def hosts(self) -> tuple[DeviceContext, ...]:
        return tuple(device for device in self.devices.values() if isinstance(device.device, Host))

    @cached_property
    def expected(self) -> Mapping[str, Expectation]:
        """What each switch must reach, and over how many ports, by design; drained paths do not count."""
        return expectations(without_drains(self.fabric))

    @cached_property
    def nics_by_address(self) -> Mapping[str, Nic]:
        """Each NIC of the fabric, by its addresses."""
        return {one: nic for host in self.fabric.hosts for nic in host.nics for one in nic.addresses}

    def _context_of(self, name: str) -> DeviceContext:
        device = self.fabric.device(name)
        if device is None:
            raise KeyError(name)
        unseen = Observation(name, "", failure="is not in the snapshot")
        return DeviceContext(device, self.snapshot.devices.get(name, unseen))

    def far(self, device: str, port: str) -> CableEnd | None:
        """What a port is cabled to by design."""
        return self.fabric.far_ends.get((device, port))

    def cable(self, device: str, port: str) -> str:
        """The name of a cable, the same from both ends; empty if there is none by design."""
        far = self.far(device, port)
        return "" if far is None else " — ".join(sorted((f"{device}:{port}", str(far))))

    def way(self, sender: str, port: str) -> str:
        """The name of one direction of a cable; empty if there is none by design."""
        far = self.far(sender, port)
        return "" if far is None else f"{sender}:{port} → {far}"

    def way_in(self, receiver: str, port: str) -> str:
        """The same for what arrives at a port."""
        far = self.far(receiver, port)
        return "" if far is None else f"{far} → {receiver}:{port}"

    def links(self) -> Iterator[JudgedLink]:
        """Yield every cable of the rails with both ends judged: lower end and its port, upper end and its port."""
        return iter(self._links)

    def cables(self) -> Iterator[JudgedLink]:
        """Yield the same of every cable, those of networks beside the rails too."""
        return chain(self._links, self._access_links)

    @cached_property
    def _links(self) -> Sequence[JudgedLink]:
        """Several checks go through them: to make them takes longer than to judge one."""
        return tuple(self._judged(self.fabric.links()))

    @cached_property
    def _access_links(self) -> Sequence[JudgedLink]:
        return tuple(self._judged(self.fabric.access_links()))

    def _judged(self, links: Iterable[Link]) -> Iterator[JudgedLink]:
        for link in links:
            near, far = self.devices.get(link.device), self.devices.get(link.peer)
            if near is not None and far is not None:
                yield near, link.port, far, link.peer_port
