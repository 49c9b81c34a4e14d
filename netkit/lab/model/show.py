"""From the plant and the kernel to what one port or NIC shows."""

from collections.abc import Sequence
from dataclasses import replace

from netkit.design.fabric import Nic, Port
from netkit.lab.model import nic as nics
from netkit.lab.model import port as ports
from netkit.lab.model.counters import STALL_SHARE, EndCounters
from netkit.lab.model.inputs import KernelPort, NicTraffic
from netkit.lab.model.plant import Plant
from netkit.lab.model.storm import Watch
from netkit.lab.model.wiring import CableEnd
from netkit.lab.reading import NicReading, PortReading

UNWATCHED = Watch()
NIC_FEC = "rs"
LANES = 4
STORM_SHARE = 0.95


def port_reading(
    plant: Plant,
    end: CableEnd,
    port: Port,
    best_effort: int,
    kernel: KernelPort,
    account: EndCounters[PortReading] | None,
    now_s: float,
) -> PortReading:
    """Return what a switch port shows, before what befalls it alone."""
    way = plant.wiring.way_out[end]
    out, in_ = plant.meters[way.index], plant.meters[way.opposite]
    side = plant.side(end)
    watched = plant.watches.get(end, UNWATCHED).counts(now_s)
    shown: Sequence[int] = ports.counts(out.at(now_s), in_.at(now_s), watched, kernel)
    if account is not None:
        shown = _accounted(plant, end, account, shown, now_s)
    headroom = port.profile.headroom
    xoff_bytes = headroom.xoff_bytes if headroom else 0
    if kernel.is_crowded:
        out.queue_peak = max(out.queue_peak, 1.0)
    gauge = ports.gauges(out, in_, xoff_bytes, now_s, is_crowded=kernel.is_crowded)
    fec = side.fec if side and side.fec else port.profile.fec
    return PortReading(
        name=port.name,
        is_enabled=side.is_enabled if side else kernel.is_enabled,
        is_up=kernel.is_up,
        speed_gbps=side.speed_gbps if side and side.speed_gbps else port.speed_gbps,
        mtu_bytes=kernel.mtu_bytes,
        carrier_changes=kernel.carrier_changes,
        link_up_s=plant.link_up_s(end),
        traffic=ports.traffic(shown),
        priorities=ports.priorities(shown, out.priority, in_.priority),
        queues=ports.queues(shown, side, best_effort, gauge),
        buffers=ports.buffers(shown, side, gauge),
        watchdogs=ports.watchdogs(shown, side, is_stormed=watched[0] > watched[1]),
        fec=plant.lines[way.opposite].reading(fec, now_s),
        module=plant.module(end),
        adaptive_routing=side.adaptive_routing if side else False,
        mac=kernel.mac,
    )


def stuck_port(account: EndCounters[PortReading], reading: PortReading) -> PortReading:
    """Return a reading whose counters are those of the moment they got stuck."""
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
    end: CableEnd,
    nic: Nic,
    kernel: KernelPort,
    traffic: NicTraffic,
    account: EndCounters[NicReading] | None,
    now_s: float,
) -> NicReading:
    """Return what a host NIC shows."""
    way = plant.wiring.way_out[end]
    if account is not None and account.is_to_reset:
        plant.clear(end, now_s)  # before its line is read, or what the line forgets would be taken off twice
    state = _nic_state(plant, end, kernel, traffic, now_s)
    groups = [nics.hw_counters(state), nics.port_counters(state), nics.ethtool(state)]
    if account is not None:
        row = [count for group in groups for count in group.values()]
        shown = iter(_accounted(plant, end, account, row, now_s))
        groups = [dict(zip(group, shown, strict=False)) for group in groups]
    pfc = state.side.pfc_priorities if state.side else frozenset()
    return NicReading(
        interface=nic.interface,
        rdma=nic.rdma,
        pci=nic.pci,
        mac=kernel.mac or nic.mac,
        is_up=kernel.is_up,
        speed_gbps=way.speed_gbps,
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
    """Return a reading whose counters are those of the moment they got stuck."""
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
    plant: Plant, end: CableEnd, kernel: KernelPort, traffic: NicTraffic, now_s: float
) -> nics.NicCounterInputs:
    way = plant.wiring.way_out[end]
    out, in_, line = plant.meters[way.index], plant.meters[way.opposite], plant.lines[way.opposite]
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


def _accounted(
    plant: Plant,
    end: CableEnd,
    account: EndCounters[PortReading] | EndCounters[NicReading],
    row: Sequence[int],
    now_s: float,
) -> Sequence[int]:
    if account.is_to_reset:
        plant.clear(end, now_s)
    return account.shown(row)
