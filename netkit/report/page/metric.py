"""The metrics of a port that the heatmap can show."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Literal

from netkit.facts import Absent, Facts
from netkit.facts.counter import place
from netkit.facts.optic import Limits, Module
from netkit.judge import DeviceContext
from netkit.judge.delta import Delta
from netkit.judge.peak import Watermark, peaks
from netkit.report.page.table import Row, Value, rounded

QUEUES = range(8)
PAUSES = ("rx_pause", "tx_pause")
ALL_PAUSES = ("port_rx_pause", "port_tx_pause")


@dataclass(frozen=True, slots=True)
class Metric:
    """A metric of every port."""

    name: str
    title: str
    unit: str
    text: str
    scale: Literal["log", "linear", "margin"]
    """The mapping of values to colours; for a margin, small values are bad."""
    most: float
    """The value of the strongest colour; for a margin, of the weakest."""


METRICS = (
    Metric("pause", "Pause rate", "/s", "pause frames sent and received, all lossless priorities", "log", 1e5),
    Metric("ecn", "ECN marks", "/s", "packets marked with CE; at a NIC, marked packets received", "log", 1e6),
    Metric("load", "Utilisation", "%", "of the port's speed, in the busier direction", "linear", 100.0),
    Metric(
        "queue",
        "Queue peak",
        "%",
        "longest lossless queue in the window, relative to the ECN maximum threshold",
        "linear",
        100.0,
    ),
    Metric(
        "headroom", "Headroom peak", "%", "most headroom of a lossless priority used in the window", "linear", 100.0
    ),
    Metric("margin", "Optic margin", "dB", "weakest lane's optical power above the module's low alarm", "margin", 8.0),
)


def metrics(seen: DeviceContext, port: str, speed_gbps: float | None, lossless: tuple[int, ...]) -> Row:
    """Return the metrics of a port, None where the device does not report, and its peaks in bytes."""
    return {
        "pause": rounded(_pauses(seen, port, lossless), 3),
        "ecn": rounded(_marks(seen, port), 3),
        "load": rounded(_load(seen, port, speed_gbps), 3),
        **_filled(seen, port, lossless),
        "margin": rounded(margin_db(seen.facts, port), 3),
    }


def _pauses(seen: DeviceContext, port: str, lossless: tuple[int, ...]) -> float | None:
    by_priority = _rate(seen.delta(name, place(port, number)) for name in PAUSES for number in lossless)
    return by_priority if by_priority is not None else _rate(seen.delta(name, port) for name in ALL_PAUSES)


def _marks(seen: DeviceContext, port: str) -> float | None:
    by_queue = _rate(seen.delta("queue_ecn_marked", place(port, number)) for number in QUEUES)
    if by_queue is not None:
        return by_queue
    of_port = _rate([seen.delta("ecn_marked", port)])
    return of_port if of_port is not None else _rate([seen.delta("ecn_received", port)])


def _load(seen: DeviceContext, port: str, speed_gbps: float | None) -> float | None:
    known = [one for one in (seen.delta(name, port) for name in ("rx_bytes", "tx_bytes")) if one.is_known]
    if not known or not speed_gbps:
        return None
    return max(one.per_s for one in known) * 8 / (speed_gbps * 1e9) * 100


def _filled(seen: DeviceContext, port: str, lossless: tuple[int, ...]) -> Row:
    """Return the peaks within the window: in bytes by priority, and the worst as a share of its limit."""
    if port not in seen.ports:
        return {}
    profile, row = seen.ports[port].profile, dict[str, Value]()
    limits: tuple[tuple[str, Watermark, int | None], ...] = (
        ("queue", "peak_bytes", profile.ecn.max_bytes),
        ("headroom", "headroom_peak_bytes", profile.headroom.xoff_bytes if profile.headroom else None),
    )
    for name, watermark, limit in limits:
        found = peaks(seen, port, lossless, watermark)
        if found and limit:
            row[name] = rounded(100 * max(found.values()) / limit, 3)
        row.update({f"{name}_peak_bytes/{number}": value for number, value in found.items()})
    return row


def _rate(deltas: "Iterator[Delta] | list[Delta]") -> float | None:
    known = [one.per_s for one in deltas if one.is_known]
    return sum(known) if known else None


def margin_db(facts: Facts, port: str) -> float | None:
    """Return how far the weakest lane is above its module's low alarm; None if unknown."""
    module = None if isinstance(facts.modules, Absent) else facts.modules.get(port)
    return min(_margins(module), default=None) if module is not None and module.is_present else None


def _margins(module: Module) -> Iterator[float]:
    for lane in module.lanes.values():
        readings: Mapping[str, float | None] = {"rx_dbm": lane.rx_dbm, "tx_dbm": lane.tx_dbm}
        for name in ("rx_dbm", "tx_dbm"):
            value, least = readings[name], module.limits.get(name, Limits()).low_alarm
            if value is not None and least is not None:
                yield value - least
