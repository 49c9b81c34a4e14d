"""The cables of a fabric at work: how both ends are set, what moves on each way, and what it has counted."""

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
        self.meters = [CounterMeter(started_s) for _ in self.wiring.ways]
        self.lines = [FecReceiver(way.speed_gbps, started_s) for way in self.wiring.ways]
        self.watches: dict[LinkEnd, Watch] = {}
        self._sides: dict[LinkEnd, LinkSide] = {}
        self._down: dict[int, float] = {}
        """Cables without a carrier, by the index of their first way, and when that was last seen."""
        self._avoided: frozenset[LinkEnd] = frozenset()
        """Ends that traffic goes around."""
        self._is_loaded = True
        self._crowded: frozenset[LinkEnd] = frozenset()
        """NICs that several others send to at line rate."""
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
        self._link_up_s = {end: round(between(*LINK_UP_S, "link-up", str(end)), 2) for end in self.wiring.way_out}
        for way in self.wiring.ways:
            self._refresh(way, started_s)

    def side(self, end: LinkEnd) -> LinkSide | None:
        """Return how an end is set, or None if it is not configured yet."""
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
        """Return how long the last link-up took; both ends wait for the slower one."""
        near = [*self._faults_at(end), *self._faults_at(self.wiring.peer(end))]
        slow = next((fault for fault in near if fault.name == "slow-link-up"), None)
        return slow.number("seconds") if slow else self._link_up_s[end]

    def tell(self, sides: Mapping[LinkEnd, LinkSide | None], now_s: float) -> None:
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
        self._turn([end for fault in differing for end in self._ends_of(fault)], now_s)

    def carry(self, end: LinkEnd, now_s: float, *, is_up: bool) -> None:
        """Set whether a cable has carrier. One that is back came back when it was last seen down."""
        way = self.wiring.way_out[end]
        cable = min(way.index, way.opposite)
        if not is_up:
            was_down = cable in self._down
            self._down[cable] = now_s
            if not was_down:
                self._turn([end], now_s)
        elif cable in self._down:
            self._turn([end], self._down.pop(cable))

    def avoid(self, device: str, ports: frozenset[str], now_s: float) -> None:
        """Set the ports of a device that traffic avoids."""
        was = frozenset(end for end in self._avoided if end.device == device)
        now = frozenset(end for end in self.wiring.ends[device] if end.port in ports)
        if was != now:
            self._avoided = self._avoided - was | now
            self._turn(was ^ now, now_s)

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
        way = self.wiring.way_out[end]
        sent, received = self.meters[way.index], self.meters[way.opposite]
        sent.queue_peak, received.headroom_peak = sent.flow.queue_fill, received.flow.headroom_fill
        self.lines[way.opposite].clear(now_s)

    def module(self, end: LinkEnd) -> TransceiverReading | None:
        """Return what is plugged in at an end."""
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
        indices = {way for way in (*before, *self._pressure) if before.get(way) != self._pressure.get(way)}
        for end in ends:
            way = self.wiring.way_out[end]
            indices |= {way.index, way.opposite}
        for index in sorted(indices):
            self._refresh(self.wiring.ways[index], now_s)

    def _refresh(self, way: CableDirection, now_s: float) -> None:
        sender = self.side(way.sender)
        is_up = min(way.index, way.opposite) not in self._down
        pressure = merged(self._pressure.get(way.index), quiet(way))
        is_taken = is_up and self._is_loaded and not self._avoided & {way.sender, way.receiver}
        moving = flow(way, sender, self.side(way.receiver), pressure, is_up=is_taken)
        self.meters[way.index].turn(moving, now_s)
        is_lit = is_up and self._is_enabled(way.sender) and self._is_enabled(way.receiver)
        own, far = self._ailment(way.receiver), self._ailment(way.sender)
        kind = self.places[way.receiver].part.kind
        self.lines[way.index].turn(error_rate(way.receiver, kind, own, far) if is_lit else 0.0, own.rx_lane, now_s)
        if moving.has_tripped or way.sender in self.watches:
            times = sender.watchdog if sender and moving.has_tripped else None
            self.watches.setdefault(way.sender, Watch()).note(times, now_s)

    def _is_enabled(self, end: LinkEnd) -> bool:
        side = self._sides.get(end)
        return side is None or side.is_enabled

    def _faults_at(self, end: LinkEnd) -> list[InjectedFault]:
        return [fault for fault in self._active if (fault.device, fault.port) == (end.device, end.port)]

    def nic_firmware(self, end: LinkEnd) -> str:
        """Return a NIC's firmware if a fault changes it, else an empty string."""
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

    def _ends_of(self, fault: InjectedFault) -> tuple[LinkEnd, ...]:
        end = LinkEnd(fault.device, fault.port)
        if fault.port:
            return (end,) if end in self.wiring.way_out else ()
        return self.wiring.ends.get(fault.device, ())
