"""The hardware model: what namespaces lack, computed from the design, the configuration and the faults."""

import math
import threading
from collections.abc import Mapping, Sequence
from dataclasses import replace

from netkit.design.fabric import AccessPort, Fabric, Host, Nic, Port
from netkit.lab.faults.fault import Faults, InjectedFault
from netkit.lab.model import nic as nics
from netkit.lab.model import port as ports
from netkit.lab.model.counters import STALL_SHARE, EndCounters
from netkit.lab.model.plant import Plant
from netkit.lab.model.storm import Watch
from netkit.lab.model.wiring import KernelPort, LinkEnd, NicSettings, NicTraffic, of_nic, of_port
from netkit.lab.reading import NicReading, SwitchPortReading
from netkit.lab.state import SwitchState

UNWATCHED = Watch()
NIC_FEC = "rs"
LANES = 4
PACKET_BITS = 8 * 4096
STORM_SHARE = 0.95


def port_reading(
    plant: Plant,
    end: LinkEnd,
    port: Port | AccessPort,
    best_effort: int,
    kernel: KernelPort,
    account: EndCounters[SwitchPortReading] | None,
    now_s: float,
) -> SwitchPortReading:
    """A switch port's reading, before faults that freeze its counters."""
    direction = plant.wiring.outgoing[end]
    out, in_ = plant.meters[direction.index], plant.meters[direction.opposite]
    side = plant.side(end)
    watched = plant.watches.get(end, UNWATCHED).counts(now_s)
    row: Sequence[int] = ports.counts(out.at(now_s), in_.at(now_s), watched, kernel)
    if account is not None:
        row = _displayed(plant, end, account, row, now_s)
    headroom = port.profile.headroom if isinstance(port, Port) else None
    xoff_bytes = headroom.xoff_bytes if headroom else 0
    if kernel.is_crowded:
        out.queue_peak = max(out.queue_peak, 1.0)
    gauge = ports.gauges(out, in_, xoff_bytes, now_s, is_crowded=kernel.is_crowded)
    fec = side.fec if side and side.fec else port.fec
    return SwitchPortReading(
        name=port.name,
        is_enabled=side.is_enabled if side else kernel.is_enabled,
        is_up=kernel.is_up,
        speed_gbps=side.speed_gbps if side and side.speed_gbps else port.speed_gbps,
        mtu_bytes=kernel.mtu_bytes,
        carrier_changes=kernel.carrier_changes,
        link_up_s=plant.link_up_s(end),
        traffic=ports.traffic(row),
        priorities=ports.priorities(row, out.priority, in_.priority),
        queues=ports.queues(row, side, best_effort, gauge),
        buffers=ports.buffers(row, side, gauge),
        watchdogs=ports.watchdogs(row, side, is_stormed=watched[0] > watched[1]),
        fec=plant.lines[direction.opposite].reading(fec, now_s),
        module=plant.module(end),
        adaptive_routing=side.adaptive_routing if side else False,
        mac=kernel.mac,
    )


def stuck_port(account: EndCounters[SwitchPortReading], reading: SwitchPortReading) -> SwitchPortReading:
    """A reading with the counters of the moment they froze."""
    kept = account.kept = account.kept or reading
    return replace(
        reading,
        traffic=kept.traffic,
        priorities=kept.priorities,
        queues=kept.queues,
        buffers=kept.buffers,
        watchdogs=kept.watchdogs,
        fec=kept.fec,
    )


def nic_reading(
    plant: Plant,
    end: LinkEnd,
    nic: Nic | None,
    kernel: KernelPort,
    traffic: NicTraffic,
    account: EndCounters[NicReading] | None,
    now_s: float,
) -> NicReading:
    direction = plant.wiring.outgoing[end]
    if account is not None and account.is_to_reset:
        plant.clear(end, now_s)  # before reading the line, or its counters would be subtracted twice
    state = _nic_state(plant, end, kernel, traffic, now_s)
    groups = [nics.hw_counters(state), nics.port_counters(state), nics.ethtool(state)]
    if account is not None:
        row = [count for group in groups for count in group.values()]
        values = iter(_displayed(plant, end, account, row, now_s))
        groups = [dict(zip(group, values, strict=False)) for group in groups]
    pfc = state.side.pfc_priorities if state.side else frozenset()
    return NicReading(
        interface=end.port,
        rdma=nic.rdma if nic else "",
        pci=nic.pci if nic else "",
        mac=kernel.mac or (nic.mac if nic else ""),
        is_up=kernel.is_up,
        speed_gbps=direction.speed_gbps,
        mtu_bytes=kernel.mtu_bytes,
        carrier_changes=kernel.carrier_changes,
        link_up_s=plant.link_up_s(end),
        firmware=plant.nic_firmware(end) or nics.FIRMWARE,
        driver=nics.DRIVER,
        part=nics.PART,
        traffic=kernel.traffic,
        hw_counters=groups[0],
        port_counters=groups[1],
        ethtool=nics.without_idle_pauses(groups[2], pfc),
        fec=state.fec,
        module=plant.module(end),
    )


def stuck_nic(account: EndCounters[NicReading], reading: NicReading) -> NicReading:
    """A reading with the counters of the moment they froze."""
    kept = account.kept = account.kept or reading
    return replace(
        reading,
        traffic=kept.traffic,
        hw_counters=kept.hw_counters,
        port_counters=kept.port_counters,
        ethtool=kept.ethtool,
        fec=kept.fec,
    )


def _nic_state(
    plant: Plant, end: LinkEnd, kernel: KernelPort, traffic: NicTraffic, now_s: float
) -> nics.NicCounterInputs:
    direction = plant.wiring.outgoing[end]
    out, in_, line = plant.meters[direction.index], plant.meters[direction.opposite], plant.lines[direction.opposite]
    received = in_.at(now_s)
    share = in_.flow.asked_share
    return nics.NicCounterInputs(
        kernel=kernel,
        traffic=traffic,
        out=out.at(now_s),
        in_=received,
        side=plant.side(end),
        rx_priority=out.priority,
        tx_priority=in_.priority,
        fec=line.reading(NIC_FEC, now_s),
        lane_errors=line.wrong_bits(LANES, now_s),
        received_bits=line.bits(now_s),
        stalled_percent=int(share * 100) if share > STALL_SHARE else 0,
        stalled_s=int(received.stalled_s),
        is_storming=share > STORM_SHARE,
    )


def _displayed(
    plant: Plant,
    end: LinkEnd,
    account: EndCounters[SwitchPortReading] | EndCounters[NicReading],
    row: Sequence[int],
    now_s: float,
) -> Sequence[int]:
    if account.is_to_reset:
        plant.clear(end, now_s)
    return account.displayed(row)


ABSENT = KernelPort(is_enabled=False, is_up=False)
TAMPERING = frozenset({"counter-reset", "counter-wrap", "counter-stuck"})
IDLE = NicTraffic()


class Model:
    """The hardware of a whole lab. It has no clock: every call passes the time, in seconds that only grow."""

    def __init__(self, fabric: Fabric, faults: Faults, started_s: float) -> None:
        self._fabric = fabric
        self._faults = faults
        self._lock = threading.RLock()
        self._plant = Plant(fabric, started_s)
        self._ports: dict[LinkEnd, EndCounters[SwitchPortReading]] = {}
        self._nics: dict[LinkEnd, EndCounters[NicReading]] = {}
        self._active: tuple[InjectedFault, ...] = ()
        self._incasts: dict[LinkEnd, float] = {}
        """Targets of incasts, and when each ends."""
        self._replayed = 0

    def configure_switch(self, device: str, state: SwitchState, now_s: float) -> None:
        """Apply the configuration of a switch; ports missing from it take no part in PFC."""
        with self._lock:
            self._catch_up(now_s)
            sides = {LinkEnd(device, port.name): of_port(port, self._fabric.lossless) for port in state.ports}
            self._plant.configure({end: sides.get(end) for end in self._plant.wiring.ends[device]}, now_s)

    def configure_host(self, host: str, settings: Mapping[str, NicSettings], now_s: float) -> None:
        """Apply the settings of a host's NICs by interface; others keep theirs."""
        with self._lock:
            self._catch_up(now_s)
            sides = {LinkEnd(host, name): of_nic(setting, self._fabric.lossless) for name, setting in settings.items()}
            known = self._plant.wiring.ends[host]
            self._plant.configure({end: side for end, side in sides.items() if end in known}, now_s)

    def port_readings(
        self, device: str, kernel: Mapping[str, KernelPort], now_s: float
    ) -> tuple[SwitchPortReading, ...]:
        """Read the ports of a switch, given the kernel's view of each by its NOS name."""
        with self._lock:
            self._catch_up(now_s)
            ports = self._fabric.switch(device).cabled
            best_effort = self._fabric.lossless.best_effort.priority
            readings = []
            for end, port in zip(self._plant.wiring.ends[device], ports, strict=True):
                own, account = kernel.get(port.name, ABSENT), self._ports.get(end)
                self._plant.carry(end, now_s, is_up=own.is_up)
                reading = port_reading(self._plant, end, port, best_effort, own, account, now_s)
                readings.append(stuck_port(account, reading) if account and account.is_stuck else reading)
            return tuple(readings)

    def nic_readings(
        self,
        host: str,
        kernel: Mapping[str, KernelPort],
        traffic: Mapping[str, NicTraffic],
        now_s: float,
        only: str = "",
    ) -> tuple[NicReading, ...]:
        """Read the NICs of a host, or only one, given the counters of kernel and traffic process."""
        with self._lock:
            self._catch_up(now_s)
            device, readings = self._fabric.device(host), []
            if not isinstance(device, Host):
                raise TypeError(f"{host} is not a host")
            by_name = {nic.interface: nic for nic in device.nics}
            for end in self._plant.wiring.ends[host]:
                if only not in {"", end.port}:
                    continue
                own, account = kernel.get(end.port, ABSENT), self._nics.get(end)
                self._plant.carry(end, now_s, is_up=own.is_up)
                counted = traffic.get(end.port, IDLE)
                reading = nic_reading(self._plant, end, by_name.get(end.port), own, counted, account, now_s)
                readings.append(stuck_nic(account, reading) if account and account.is_stuck else reading)
            return tuple(readings)

    def transfer_share(self, source: LinkEnd, destination: LinkEnd, now_s: float) -> float:
        """The share of the line rate between two NICs that pauses and bit errors on their cables leave."""
        with self._lock:
            self._catch_up(now_s)
            wiring, share = self._plant.wiring, 1.0
            for direction in (wiring.outgoing[source], wiring.incoming(destination)):
                errors = self._plant.lines[direction.index].reading(NIC_FEC, now_s).effective_ber
                lost = -math.expm1(PACKET_BITS * math.log1p(-errors))
                share *= (1 - self._plant.meters[direction.index].flow.asked_share) * ports.goodput(lost)
            return share

    def avoid(self, device: str, ports: frozenset[str], now_s: float) -> None:
        """Set the ports of a switch that traffic avoids in both directions."""
        with self._lock:
            self._catch_up(now_s)
            self._plant.avoid(device, ports, now_s)

    def set_load(self, now_s: float, *, is_on: bool) -> None:
        """Start or stop the job that loads every cable."""
        with self._lock:
            self._catch_up(now_s)
            self._plant.set_load(now_s, is_on=is_on)

    def incast(self, host: str, interface: str, duration_s: float, now_s: float) -> None:
        """Start an incast of several NICs at line rate to one, for a while."""
        with self._lock:
            self._catch_up(now_s)
            self._incasts[LinkEnd(host, interface)] = now_s + duration_s
            self._plant.crowd(frozenset(self._incasts), now_s)

    def calm(self, now_s: float) -> None:
        """End every incast."""
        with self._lock:
            self._catch_up(now_s)
            self._incasts.clear()
            self._plant.crowd(frozenset(), now_s)

    def clear(self, device: str, port: str, now_s: float) -> None:
        """Reset the counters of a port, or of a whole device, at the next read."""
        with self._lock:
            self._catch_up(now_s)
            for account in self._accounts(device, port):
                account.is_to_reset = True

    def rebooted(self, device: str, now_s: float) -> None:
        """Discard the configuration and counters of a device."""
        with self._lock:
            self._catch_up(now_s)
            self._plant.configure(dict.fromkeys(self._plant.wiring.ends[device]), now_s)
            self.clear(device, "", now_s)

    def link_up_s(self, device: str, port: str, now_s: float) -> float:
        """How long a port takes from being enabled to being up."""
        with self._lock:
            self._catch_up(now_s)
            return self._plant.link_up_s(LinkEnd(device, port))

    def pfc_priorities(self, device: str, port: str, now_s: float) -> frozenset[int]:
        """The priorities actually paused at a port, which a fault may have changed."""
        with self._lock:
            self._catch_up(now_s)
            side = self._plant.side(LinkEnd(device, port))
            return side.pfc_priorities if side else frozenset()

    def _catch_up(self, now_s: float) -> None:
        """Replay faults and incasts up to now, each at its own moment."""
        history = self._faults.history
        while self._replayed < len(history) and history[self._replayed].at_s <= now_s:
            change = history[self._replayed]
            self._replayed += 1
            self._end_incasts(change.at_s)
            before, self._active = self._active, change.active
            self._plant.suffer(change.active, change.at_s)
            for fault in change.active:
                if fault not in before:
                    self._tamper(fault)
            for fault in before:
                if fault not in change.active and fault.name == "counter-stuck":
                    for account in self._accounts(fault.device, fault.port):
                        account.is_stuck, account.kept = False, None
        self._end_incasts(now_s)

    def _end_incasts(self, now_s: float) -> None:
        for target, end_s in sorted(self._incasts.items(), key=lambda incast: incast[1]):
            if end_s <= now_s:
                del self._incasts[target]
                self._plant.crowd(frozenset(self._incasts), end_s)

    def _tamper(self, fault: InjectedFault) -> None:
        if fault.name not in TAMPERING:
            return
        for account in self._accounts(fault.device, fault.port):
            match fault.name:
                case "counter-reset":
                    account.is_to_reset = True
                case "counter-wrap":
                    account.wrap(int(fault.number("bits")), int(fault.number("left")))
                case "counter-stuck":
                    account.is_stuck = True

    def _accounts(self, device: str, port: str) -> list[EndCounters[SwitchPortReading] | EndCounters[NicReading]]:
        ends = [end for end in self._plant.wiring.ends[device] if port in {"", end.port}]
        if isinstance(self._fabric.device(device), Host):
            return [self._nics.setdefault(end, EndCounters()) for end in ends]
        return [self._ports.setdefault(end, EndCounters()) for end in ends]
