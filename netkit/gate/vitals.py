"""The vital signs of a device: what it loses, pauses and reaches at one moment."""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from ipaddress import IPv4Network

from netkit.facts import Absent, Facts, Sample
from netkit.judge.delta import deltas

LOSSES = ("buffer_drops", "queue_drops")
TRIPS = "watchdog_detected"
PAUSES = ("rx_pause", "tx_pause")
DAMAGE = "rx_errors"
UNWANTED = frozenset({*LOSSES, TRIPS, DAMAGE})
"""Any of these is worse where there was none before."""
IDLE_BYTES_PER_S = 100_000
"""Traffic on an idle lossless queue: less than a millionth of a port."""
MANY_PAUSES_PER_S = 100
STEADY = 1.25
"""A loss that was there before varies up to this many times its rate."""
WORSE_BY = 2.0
"""Pauses are worse from this many times the earlier rate."""
Rates = Mapping[str, float]
"""Counter and place → counts per second; unknown ones are missing."""


@dataclass(frozen=True, slots=True)
class Vitals:
    """The vital signs of one device."""

    rates: Rates = field(default_factory=dict)
    widths: Mapping[str, int] | None = None
    """Prefix → ports it is reached over; None when the device does not report."""
    light: Mapping[str, float] | None = None
    """Port → received light of its weakest lane; None when no module reports."""


def vitals(facts: Facts, samples: Sequence[Sample], prefixes: frozenset[str], lossless: tuple[int, ...]) -> Vitals:
    """Extract the vitals from facts and samples; only leaf prefixes count."""
    routes, modules = facts.routes, facts.modules
    light: dict[str, float] = {}
    if not isinstance(modules, Absent):
        for port, module in modules.items():
            values = [lane.rx_dbm for lane in module.lanes.values() if lane.rx_dbm is not None]
            light |= {port: min(values)} if values else {}
    return Vitals(
        dict(_rates(tuple(samples), lossless)),
        None if isinstance(routes, Absent) else dict(_widths(routes, prefixes)),
        light or None,
    )


def _widths(routes: Mapping[str, Collection[object]], prefixes: Iterable[str]) -> Iterator[tuple[str, int]]:
    """Yield the number of ports for each prefix; by a route of another length while lengths are being changed."""
    known: dict[IPv4Network, int] | None = None
    for prefix in prefixes:
        if prefix in routes:
            yield prefix, len(routes[prefix])
            continue
        if known is None:
            known = {IPv4Network(one): len(ways) for one, ways in routes.items() if "." in one}
        wanted = IPv4Network(prefix)
        wider = [one for one in known if one.prefixlen and wanted.subnet_of(one)]
        inside = [width for one, width in known.items() if one.subnet_of(wanted)]
        if wider or inside:
            yield prefix, known[max(wider, key=lambda one: one.prefixlen)] if wider else min(inside)


def _rates(samples: tuple[Sample, ...], lossless: tuple[int, ...]) -> Iterator[tuple[str, float]]:
    marks = tuple(f"/{priority}" for priority in lossless)
    for name in (*LOSSES, *PAUSES, TRIPS, DAMAGE, "queue_tx_bytes", "rdma_tx_bytes"):
        for place, delta in deltas(name, samples).items():
            if delta.is_known and (name in {DAMAGE, "rdma_tx_bytes"} or place.endswith(marks)):
                yield f"{name} {place}", delta.per_s


def busy(now: Vitals) -> tuple[str, ...] | None:
    """Return where lossless traffic flows; None if the device does not report it."""
    moving = {key: rate for key, rate in now.rates.items() if key.startswith(("queue_tx_bytes", "rdma_tx_bytes"))}
    if not moving:
        return None
    return tuple(
        f"{key.partition(' ')[2]} sends {rate * 8 / 1e9:.1f} Gb/s of the lossless class"
        for key, rate in moving.items()
        if rate > IDLE_BYTES_PER_S
    )


def moving_bytes_per_s(now: Vitals) -> float:
    """Return how much lossless traffic a device sends."""
    return sum(rate for key, rate in now.rates.items() if key.startswith(("queue_tx_bytes", "rdma_tx_bytes")))


def worse(before: Vitals, after: Vitals, ending: frozenset[str], trend_db: float) -> Iterator[str]:
    """Yield how a device is worse than before."""
    for key, rate in after.rates.items():
        name, _, place = key.partition(" ")
        was = before.rates.get(key, 0.0)
        most = STEADY * was if name in UNWANTED else max(MANY_PAUSES_PER_S, WORSE_BY * was)
        if name in WORDS and rate > most:
            yield f"{place}: {WORDS[name]}, {rate:.0f} a second, {was:.0f} before"
    if not ending and after.widths is not None:
        for prefix, width in (before.widths or {}).items():
            now = after.widths.get(prefix, 0)
            if now < width:
                lost = f"reaches {prefix} over {now} ports, {width} before"
                yield lost if now else f"does not reach {prefix} any more"
    for port, dbm in (after.light or {}).items():
        loss_db = (before.light or {}).get(port, dbm) - dbm
        if loss_db > trend_db:
            yield f"{port}: receives {loss_db:.1f} dB less optical power than before"


WORDS = {
    "buffer_drops": "loses lossless packets for lack of buffer",
    "queue_drops": "drops lossless packets",
    TRIPS: "its PFC watchdog trips",
    DAMAGE: "packets arrive damaged",
    "rx_pause": "is paused",
    "tx_pause": "pauses its neighbour",
}


def unreported(before: Vitals, after: Vitals) -> Iterator[str]:
    """Yield what a device no longer reports: that is not a sign of health."""
    for name in (*LOSSES, TRIPS, *PAUSES):
        if _has(before, name) and not _has(after, name):
            yield f"does not report {name.replace('_', ' ')} any more"
    if before.widths and after.widths is None:
        yield "does not report its routes any more"


def _has(vital: Vitals, name: str) -> bool:
    return any(key.startswith(f"{name} ") for key in vital.rates)
