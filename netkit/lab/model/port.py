"""What a switch port shows: the kernel's counts as they are, and the rest as the model has it."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeVar

from netkit.lab.model.counters import CounterMeter, Totals
from netkit.lab.model.inputs import KernelPort
from netkit.lab.model.wiring import LinkSide
from netkit.lab.reading import BufferReading, PriorityReading, QueueReading, TrafficReading, WatchdogReading
from netkit.lab.state import PRIORITIES

QUEUE_BYTES = 4_000_000
"""What a congested egress queue holds."""
PEAK = 1.4
SWING_S = 7.0
Item = TypeVar("Item")
DATA_PACKETS, DATA_BYTES, DROPS, LOSSY_DROPS = 4, 5, 6, 7
WATCHDOG = slice(8, 11)
MARKED = 11
TRAFFIC = slice(12, 20)
TX_BYTES, TX_PACKETS = 16, 17
KERNEL_PACKETS, KERNEL_BYTES = slice(20, 28), slice(28, 36)
"""Where in the row of counts what stands."""
NONE = (0,) * PRIORITIES
NO_PRIORITIES = (PriorityReading(),) * PRIORITIES
NO_QUEUES = (QueueReading(),) * PRIORITIES
NO_BUFFERS = (BufferReading(),) * PRIORITIES
NO_WATCHDOGS = (WatchdogReading(),) * PRIORITIES


@dataclass(frozen=True, slots=True)
class Gauges:
    """How full the buffers of a port are, now and at most."""

    queue_bytes: int
    queue_peak_bytes: int
    buffer_bytes: int
    buffer_peak_bytes: int
    headroom_bytes: int
    headroom_peak_bytes: int


def counts(out: Totals, in_: Totals, watched: tuple[int, int], kernel: KernelPort) -> list[int]:
    """Return every counter of a port in one row."""
    traffic = kernel.traffic
    return [
        int(out.pauses),
        int(in_.pauses),
        int(out.held_us),
        int(in_.asked_us),
        int(out.packets),
        int(out.bytes),
        int(in_.drops),
        int(in_.lossy_drops),
        *watched,
        int(out.watchdog_drops),
        kernel.ecn_marked_packets + int(out.marks),
        traffic.rx_bytes,
        traffic.rx_packets,
        traffic.rx_dropped,
        traffic.rx_errors,
        traffic.tx_bytes,
        traffic.tx_packets,
        traffic.tx_dropped,
        traffic.tx_errors,
        *(kernel.queue_packets or NONE),
        *(kernel.queue_bytes or NONE),
    ]


def gauges(out: CounterMeter, in_: CounterMeter, xoff_bytes: int, now_s: float, *, is_crowded: bool = False) -> Gauges:
    """Return how full the buffers are; what a healthy queue holds swings a little."""
    swing = 0.8 + 0.2 * math.sin(now_s / SWING_S + in_.flow.pauses_ps)
    shared = (1.0 if is_crowded else out.flow.queue_fill) * QUEUE_BYTES
    ingress = in_.flow.headroom_fill * QUEUE_BYTES / 4
    is_congested = in_.flow.headroom_fill > 0.1
    return Gauges(
        int(shared * swing),
        int(out.queue_peak * QUEUE_BYTES * PEAK),
        int(ingress * swing),
        int(in_.headroom_peak * QUEUE_BYTES / 4 * PEAK),
        int(in_.flow.headroom_fill * xoff_bytes * swing / 2) if is_congested else 0,
        int(min(in_.headroom_peak, 1.0) * xoff_bytes),
    )


def priorities(shown: Sequence[int], rx_priority: int, tx_priority: int) -> tuple[PriorityReading, ...]:
    """Return the PFC counts: only the priority of RoCE data is ever paused."""
    rx_pause, tx_pause, rx_us, tx_us = shown[:4]
    if rx_priority == tx_priority:
        return _at(NO_PRIORITIES, rx_priority, PriorityReading(rx_pause, tx_pause, rx_us, tx_us))
    received = _at(NO_PRIORITIES, rx_priority, PriorityReading(rx_pause=rx_pause, rx_pause_us=rx_us))
    return _at(received, tx_priority, PriorityReading(tx_pause=tx_pause, tx_pause_us=tx_us))


def queues(shown: Sequence[int], side: LinkSide | None, best_effort: int, gauge: Gauges) -> tuple[QueueReading, ...]:
    """Return the egress queues: modelled RoCE in one, and what the kernel sent."""
    classes = side.class_of_priority if side else tuple(range(PRIORITIES))
    packets, sizes = list(shown[KERNEL_PACKETS]), list(shown[KERNEL_BYTES])
    if not any(packets):
        packets[classes[best_effort]], sizes[classes[best_effort]] = shown[TX_PACKETS], shown[TX_BYTES]
    data = classes[side.data_priority if side else 0]
    found = [
        QueueReading(count, size) if count or size else NO_QUEUES[0] for count, size in zip(packets, sizes, strict=True)
    ]
    found[data] = QueueReading(
        tx_packets=packets[data] + shown[DATA_PACKETS],
        tx_bytes=sizes[data] + shown[DATA_BYTES],
        dropped_packets=shown[LOSSY_DROPS],
        ecn_marked_packets=shown[MARKED],
        occupancy_bytes=gauge.queue_bytes,
        peak_bytes=gauge.queue_peak_bytes,
    )
    return tuple(found)


def buffers(shown: Sequence[int], side: LinkSide | None, gauge: Gauges) -> tuple[BufferReading, ...]:
    """Return the priority groups: RoCE data fills one of them, and only a lossless one ever fills its headroom."""
    headroom = (gauge.headroom_bytes, gauge.headroom_peak_bytes)
    reading = BufferReading(gauge.buffer_bytes, gauge.buffer_peak_bytes, *headroom, shown[DROPS])
    return _at(NO_BUFFERS, side.data_priority if side else 0, reading)


def watchdogs(shown: Sequence[int], side: LinkSide | None, *, is_stormed: bool) -> tuple[WatchdogReading, ...]:
    """Return the watchdog of every queue."""
    if not any(shown[WATCHDOG]):
        return NO_WATCHDOGS
    return _at(NO_WATCHDOGS, side.data_priority if side else 0, WatchdogReading(is_stormed, *shown[WATCHDOG]))


def traffic(shown: Sequence[int]) -> TrafficReading:
    """Return the kernel's counts as they are shown."""
    return TrafficReading(*shown[TRAFFIC])


def _at(row: tuple[Item, ...], position: int, item: Item) -> tuple[Item, ...]:
    return (*row[:position], item, *row[position + 1 :])
