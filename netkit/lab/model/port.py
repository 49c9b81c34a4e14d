"""The readings of a switch port: its FEC, its counters, its queues and buffers."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import TypeVar

from netkit.lab.model.counters import CounterMeter, Totals
from netkit.lab.model.wiring import KernelPort, LinkSide
from netkit.lab.reading import BufferReading, FecReading, PriorityReading, QueueReading, TrafficReading, WatchdogReading
from netkit.lab.state import PRIORITIES

SYMBOLS = 544
SYMBOL_BITS = 10
CORRECTABLE = 15
CODEWORDS_PER_GBPS_S = 1e9 * 544 / 514 * 257 / 256 / (SYMBOLS * SYMBOL_BITS)
GIGA = 1e9
FAULTY_SHARE = 0.97
"""The share of bit errors on a faulty lane."""
WITHOUT = frozenset({"", "off", "none", "disabled"})


class FecReceiver:
    """The receiver of a line: how long it was up at which bit error rate."""

    __slots__ = ("_ber", "_lane", "_since_s", "_spans", "_speed_gbps")

    def __init__(self, speed_gbps: int, started_s: float) -> None:
        self._speed_gbps = speed_gbps
        self._since_s = started_s
        self._ber = 0.0
        self._lane = 0
        self._spans: dict[tuple[float, int], float] = {}

    def turn(self, ber: float, lane: int, now_s: float) -> None:
        """Continue at another bit error rate, on one lane or, as lane 0, on all; a rate of 0 is a dead line."""
        now_s = max(now_s, self._since_s)
        self._spans = dict(self._seconds(now_s))
        self._since_s = now_s
        self._ber, self._lane = ber, lane

    def clear(self, now_s: float) -> None:
        self._spans = {}
        self._since_s = max(now_s, self._since_s)

    def reading(self, mode: str, now_s: float) -> FecReading:
        if mode in WITHOUT:
            return FecReading(mode=mode)
        bins = [0.0] * (CORRECTABLE + 2)
        for (ber, _), seconds in self._seconds(now_s).items():
            codewords = seconds * self._speed_gbps * CODEWORDS_PER_GBPS_S
            bins = [so_far + codewords * share for so_far, share in zip(bins, probabilities(ber), strict=True)]
        whole = tuple(map(int, bins))
        return FecReading(
            mode=mode,
            corrected_codewords=sum(whole[1 : CORRECTABLE + 1]),
            uncorrectable_codewords=whole[-1],
            pre_fec_ber=self._ber,
            effective_ber=effective(self._ber),
            histogram=whole[: CORRECTABLE + 1],
        )

    def bits(self, now_s: float) -> int:
        """The number of bits received."""
        return int(sum(self._seconds(now_s).values()) * self._speed_gbps * GIGA)

    def wrong_bits(self, lanes: int, now_s: float) -> tuple[int, ...]:
        """The number of bits corrected on each lane."""
        found = [0.0] * lanes
        for (ber, faulty), seconds in self._seconds(now_s).items():
            wrong = seconds * self._speed_gbps * GIGA * ber
            for lane in range(lanes):
                found[lane] += wrong * _share(lane + 1, faulty, lanes)
        return tuple(map(int, found))

    def _seconds(self, now_s: float) -> dict[tuple[float, int], float]:
        if not self._ber:
            return self._spans
        key = (self._ber, self._lane)
        return {**self._spans, key: self._spans.get(key, 0.0) + max(now_s - self._since_s, 0.0)}


@lru_cache(maxsize=4096)
def probabilities(ber: float) -> tuple[float, ...]:
    """The probability of 0, 1 … 15 wrong symbols in a codeword, and last of an uncorrectable one."""
    wrong = -math.expm1(SYMBOL_BITS * math.log1p(-ber))
    terms = [
        math.comb(SYMBOLS, count) * wrong**count * (1 - wrong) ** (SYMBOLS - count) for count in range(CORRECTABLE + 9)
    ]
    return (*terms[: CORRECTABLE + 1], sum(terms[CORRECTABLE + 1 :]))


@lru_cache(maxsize=4096)
def effective(ber: float) -> float:
    """The bit error rate after correction, 0 below what tools display."""
    if not ber:
        return 0.0
    left = probabilities(ber)[-1] * (CORRECTABLE + 1) / (SYMBOLS * SYMBOL_BITS)
    return left if left > 1e-20 else 0.0


WINDOW_PACKETS = 64
"""Packets that a queue pair retransmits for one lost packet."""


def goodput(lost: float) -> float:
    """The share of the line rate that is left where a share of packets is lost and sent again."""
    return (1 - lost) / (1 + WINDOW_PACKETS * lost)


def _share(lane: int, faulty: int, lanes: int) -> float:
    """The share of wrong bits that falls on a lane."""
    if not 1 <= faulty <= lanes or lanes == 1:
        return 1 / lanes
    return FAULTY_SHARE if lane == faulty else (1 - FAULTY_SHARE) / (lanes - 1)


QUEUE_BYTES = 4_000_000
"""The content of a congested egress queue."""
PEAK = 1.4
SWING_S = 7.0
Item = TypeVar("Item")
DATA_PACKETS, DATA_BYTES, DROPS, LOSSY_DROPS = 4, 5, 6, 7
WATCHDOG = slice(8, 11)
MARKED = 11
TRAFFIC = slice(12, 20)
TX_BYTES, TX_PACKETS = 16, 17
KERNEL_PACKETS, KERNEL_BYTES = slice(20, 28), slice(28, 36)
"""Positions in the row of counters."""
NONE = (0,) * PRIORITIES
NO_PRIORITIES = (PriorityReading(),) * PRIORITIES
NO_QUEUES = (QueueReading(),) * PRIORITIES
NO_BUFFERS = (BufferReading(),) * PRIORITIES
NO_WATCHDOGS = (WatchdogReading(),) * PRIORITIES


@dataclass(frozen=True, slots=True)
class Gauges:
    """Fill levels of the buffers of a port, now and at their peak."""

    queue_bytes: int
    queue_peak_bytes: int
    buffer_bytes: int
    buffer_peak_bytes: int
    headroom_bytes: int
    headroom_peak_bytes: int


def counts(out: Totals, in_: Totals, watched: tuple[int, int], kernel: KernelPort) -> list[int]:
    """Every counter of a port in one row."""
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
    """The fill levels; a healthy queue oscillates a little."""
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


def priorities(row: Sequence[int], rx_priority: int, tx_priority: int) -> tuple[PriorityReading, ...]:
    """The PFC counters: only the priority of RoCE data is ever paused."""
    rx_pause, tx_pause, rx_us, tx_us = row[:4]
    if rx_priority == tx_priority:
        return _at(NO_PRIORITIES, rx_priority, PriorityReading(rx_pause, tx_pause, rx_us, tx_us))
    received = _at(NO_PRIORITIES, rx_priority, PriorityReading(rx_pause=rx_pause, rx_pause_us=rx_us))
    return _at(received, tx_priority, PriorityReading(tx_pause=tx_pause, tx_pause_us=tx_us))


def queues(row: Sequence[int], side: LinkSide | None, best_effort: int, gauge: Gauges) -> tuple[QueueReading, ...]:
    """The egress queues: modelled RoCE in one, plus what the kernel sent."""
    classes = side.class_of_priority if side else tuple(range(PRIORITIES))
    packets, sizes = list(row[KERNEL_PACKETS]), list(row[KERNEL_BYTES])
    if not any(packets):
        packets[classes[best_effort]], sizes[classes[best_effort]] = row[TX_PACKETS], row[TX_BYTES]
    data = classes[side.data_priority if side else 0]
    found = [
        QueueReading(count, size) if count or size else NO_QUEUES[0] for count, size in zip(packets, sizes, strict=True)
    ]
    found[data] = QueueReading(
        tx_packets=packets[data] + row[DATA_PACKETS],
        tx_bytes=sizes[data] + row[DATA_BYTES],
        dropped_packets=row[LOSSY_DROPS],
        ecn_marked_packets=row[MARKED],
        occupancy_bytes=gauge.queue_bytes,
        peak_bytes=gauge.queue_peak_bytes,
    )
    return tuple(found)


def buffers(row: Sequence[int], side: LinkSide | None, gauge: Gauges) -> tuple[BufferReading, ...]:
    """The priority groups: RoCE data fills one of them, and only a lossless one uses its headroom."""
    headroom = (gauge.headroom_bytes, gauge.headroom_peak_bytes)
    reading = BufferReading(gauge.buffer_bytes, gauge.buffer_peak_bytes, *headroom, row[DROPS])
    return _at(NO_BUFFERS, side.data_priority if side else 0, reading)


def watchdogs(row: Sequence[int], side: LinkSide | None, *, is_stormed: bool) -> tuple[WatchdogReading, ...]:
    """The watchdog of every queue."""
    if not any(row[WATCHDOG]):
        return NO_WATCHDOGS
    return _at(NO_WATCHDOGS, side.data_priority if side else 0, WatchdogReading(is_stormed, *row[WATCHDOG]))


def traffic(row: Sequence[int]) -> TrafficReading:
    return TrafficReading(*row[TRAFFIC])


def _at(row: tuple[Item, ...], position: int, item: Item) -> tuple[Item, ...]:
    return (*row[:position], item, *row[position + 1 :])
