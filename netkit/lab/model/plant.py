"""The cables of a fabric in operation: the settings of both ends, the traffic in each direction, and its counters."""

from collections.abc import Iterable, Mapping
from dataclasses import replace

from netkit.design.fabric import Fabric
from netkit.lab.faults.fault import InjectedFault
from netkit.lab.model.counters import CounterMeter, Pressure, flow, quiet
from netkit.lab.model.optics import HEALTHY, Ailment, error_rate, module, of_module, places
from netkit.lab.model.port import FecReceiver
from netkit.lab.model.storm import Watch, Weather, merged
from netkit.lab.model.wiring import CableDirection, FabricWiring, LinkEnd, LinkSide, between
from netkit.lab.reading import TransceiverReading

LINK_UP_S = (2.2, 5.8)
OF_THE_WHOLE_MODULE = frozenset({"hot-optic", "mixed-optic-firmware"})


class Plant:
    """All cables and modules. Only events change them; reading does not."""

    def __init__(self, fabric: Fabric, started_s: float) -> None:
        self.wiring = FabricWiring(fabric)
        self.places = places(fabric, self.wiring)
        self.meters = [CounterMeter(started_s) for _ in self.wiring.directions]
        self.lines = [FecReceiver(direction.speed_gbps, started_s) for direction in self.wiring.directions]
        self.watches: dict[LinkEnd, Watch] = {}
        self._sides: dict[LinkEnd, LinkSide] = {}
        self._down: dict[int, float] = {}
        """Cables without carrier, by the index of their first direction, and when that was last seen."""
        self._avoided: frozenset[LinkEnd] = frozenset()
        """Ends that traffic avoids."""
        self._is_loaded = True
        self._crowded: frozenset[LinkEnd] = frozenset()
        """Targets of incasts."""
        self._active: tuple[InjectedFault, ...] = ()
        self._weather = Weather(fabric, self.wiring, self.side)
        self._pressure: Mapping[int, Pressure] = {}
        self._modules: dict[LinkEnd, TransceiverReading] = {}
        self._mates: dict[tuple[str, str], list[LinkEnd]] = {}
        for end, place in self.places.items():
            self._mates.setdefault((place.device, place.cage), []).append(end)
        switches = {switch.name for switch in fabric.switches}
        self._every_other = frozenset(
            end
            for name in switches
            for end in [end for end in self.wiring.ends[name] if self.wiring.peer(end).device in switches][::2]
        )
        self._link_up_s = {end: round(between(*LINK_UP_S, "link-up", str(end)), 2) for end in self.wiring.outgoing}
        for direction in self.wiring.directions:
            self._refresh(direction, started_s)

    def side(self, end: LinkEnd) -> LinkSide | None:
        """How an end is set, or None if it is not configured yet."""
        side = self._sides.get(end)
        if side is None or not self._active:
            return side
        for fault in self._active:
            if fault.device == end.device and fault.port in {"", end.port}:
                side = self._altered(side, fault, end)
        return side

    def _altered(self, side: LinkSide, fault: InjectedFault, end: LinkEnd) -> LinkSide:
        if fault.name == "pfc-off":
            return replace(side, pfc_priorities=frozenset())
        if fault.name == "adaptive-routing-half-on" and (fault.port or end in self._every_other):
            return replace(side, adaptive_routing=not side.adaptive_routing)
        if fault.name == "ecn-unmarked":
            return replace(side, is_marking=False)
        return side

    def link_up_s(self, end: LinkEnd) -> float:
        """How long the last link-up took; both ends wait for the slower one."""
        near = [*self._faults_at(end), *self._faults_at(self.wiring.peer(end))]
        slow = next((fault for fault in near if fault.name == "slow-link-up"), None)
        return slow.number("seconds") if slow else self._link_up_s[end]

    def configure(self, sides: Mapping[LinkEnd, LinkSide | None], now_s: float) -> None:
        """Change the configuration of ends; None discards it."""
        changed = [end for end, side in sides.items() if self._sides.get(end) != side]
        for end in changed:
            side = sides[end]
            if side is None:
                self._sides.pop(end, None)
            else:
                self._sides[end] = side
        if changed:
            self._turn(changed, now_s)

    def suffer(self, active: tuple[InjectedFault, ...], now_s: float) -> None:
        """Replace the active faults."""
        before, self._active = self._active, active
        differing = [fault for fault in (*before, *active) if (fault in before) != (fault in active)]
        ends: list[LinkEnd] = []
        for fault in differing:
            end = LinkEnd(fault.device, fault.port)
            if not fault.port:
                ends += self.wiring.ends.get(fault.device, ())
            elif end in self.wiring.outgoing:
                ends.append(end)
        self._turn(ends, now_s)

    def carry(self, end: LinkEnd, now_s: float, *, is_up: bool) -> None:
        """Set whether a cable has carrier. One that is back came back when it was last seen down."""
        direction = self.wiring.outgoing[end]
        cable = min(direction.index, direction.opposite)
        if not is_up:
            was_down = cable in self._down
            self._down[cable] = now_s
            if not was_down:
                self._turn([end], now_s)
        elif cable in self._down:
            self._turn([end], self._down.pop(cable))

    def avoid(self, device: str, ports: frozenset[str], now_s: float) -> None:
        """Set the ports of a device that traffic avoids."""
        before = frozenset(end for end in self._avoided if end.device == device)
        after = frozenset(end for end in self.wiring.ends[device] if end.port in ports)
        if before != after:
            self._avoided = self._avoided - before | after
            self._turn(before ^ after, now_s)

    def set_load(self, now_s: float, *, is_on: bool) -> None:
        """Start or stop the job; without it nothing moves, and nothing is paused."""
        if is_on != self._is_loaded:
            self._is_loaded = is_on
            self._turn(self.places, now_s)

    def crowd(self, targets: frozenset[LinkEnd], now_s: float) -> None:
        """Set the NICs that are targets of an incast."""
        if targets != self._crowded:
            self._crowded = targets
            self._turn((), now_s)

    def clear(self, end: LinkEnd, now_s: float) -> None:
        """Reset the peak values of an end, and what its line corrected."""
        direction = self.wiring.outgoing[end]
        sent, received = self.meters[direction.index], self.meters[direction.opposite]
        sent.queue_peak, received.headroom_peak = sent.flow.queue_fill, received.flow.headroom_fill
        self.lines[direction.opposite].clear(now_s)

    def module(self, end: LinkEnd) -> TransceiverReading | None:
        """The module or cable at an end."""
        if end not in self.places:
            return None
        if end not in self._modules:
            peer = self.wiring.peer(end)
            self._modules[end] = module(
                end,
                self.places[end],
                peer,
                (self._ailment(end), self._ailment(peer)),
                is_sending=self._is_enabled(end),
                is_receiving=self._is_enabled(peer),
            )
        return self._modules[end]

    def _turn(self, ends: Iterable[LinkEnd], now_s: float) -> None:
        """Recompute the flows after a change at some ends; storms may carry it far."""
        self._modules.clear()
        before, self._pressure = self._pressure, self._weather.under(self._active, self._crowded)
        indices = {
            direction
            for direction in (*before, *self._pressure)
            if before.get(direction) != self._pressure.get(direction)
        }
        for end in ends:
            direction = self.wiring.outgoing[end]
            indices |= {direction.index, direction.opposite}
        for index in sorted(indices):
            self._refresh(self.wiring.directions[index], now_s)

    def _refresh(self, direction: CableDirection, now_s: float) -> None:
        sender = self.side(direction.sender)
        is_up = min(direction.index, direction.opposite) not in self._down
        pressure = merged(self._pressure.get(direction.index), quiet(direction))
        is_taken = (
            is_up
            and direction.is_of_rails
            and self._is_loaded
            and not self._avoided & {direction.sender, direction.receiver}
        )
        moving = flow(direction, sender, self.side(direction.receiver), pressure, is_up=is_taken)
        self.meters[direction.index].turn(moving, now_s)
        is_lit = is_up and self._is_enabled(direction.sender) and self._is_enabled(direction.receiver)
        own, far = self._ailment(direction.receiver), self._ailment(direction.sender)
        kind = self.places[direction.receiver].part.kind
        self.lines[direction.index].turn(
            error_rate(direction.receiver, kind, own, far) if is_lit else 0.0, own.rx_lane, now_s
        )
        if moving.has_tripped or direction.sender in self.watches:
            times = sender.watchdog if sender and moving.has_tripped else None
            self.watches.setdefault(direction.sender, Watch()).note(times, now_s)

    def _is_enabled(self, end: LinkEnd) -> bool:
        side = self._sides.get(end)
        return side is None or side.is_enabled

    def _faults_at(self, end: LinkEnd) -> list[InjectedFault]:
        return [fault for fault in self._active if (fault.device, fault.port) == (end.device, end.port)]

    def nic_firmware(self, end: LinkEnd) -> str:
        """A NIC's firmware if a fault changes it, else an empty string."""
        found = (fault.text("firmware") for fault in self._faults_at(end) if fault.name == "mixed-nic-firmware")
        return next(found, "")

    def _ailment(self, end: LinkEnd) -> Ailment:
        if not self._active:
            return HEALTHY
        place = self.places[end]
        shared = [
            fault
            for mate in self._mates[place.device, place.cage]
            for fault in self._faults_at(mate)
            if mate != end and fault.name in OF_THE_WHOLE_MODULE
        ]
        return of_module((*shared, *self._faults_at(end)))
