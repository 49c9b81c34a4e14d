"""What one interval says about one port; what the device did not tell is None, never 0."""

from collections.abc import Callable, Iterable, Mapping
from functools import lru_cache
from typing import NamedTuple

from netkit.facts.counter import COUNTERS, parts
from netkit.judge.delta import Delta

Rates = Mapping[str, Mapping[str, Delta]]
"""Counter → place → what it added."""
PER_PORT = (
    *("rx_bytes", "tx_bytes", "rx_drops", "tx_drops", "rx_errors", "tx_errors", "link_downs", "carrier_changes"),
    *("port_rx_pause", "port_tx_pause", "port_buffer_drops", "ecn_marked", "ecn_received", "fec_uncorrectable"),
    *("icrc_errors", "packet_seq_err", "local_ack_timeout", "out_of_buffer"),
)
PER_PRIORITY = (
    *("rx_pause", "tx_pause", "rx_pause_us", "tx_pause_us", "buffer_drops", "watchdog_drops", "watchdog_detected"),
    *("queue_tx_bytes", "queue_drops", "queue_ecn_marked"),
)
WATCHED = frozenset((*PER_PORT, *PER_PRIORITY))
"""The counters that are shown; a record holds no others."""
DAMAGE = ("rx_errors", "tx_errors", "fec_uncorrectable", "icrc_errors", "packet_seq_err", "local_ack_timeout")


class Reading(NamedTuple):
    """A port over one interval."""

    rx_bps: float | None = None
    tx_bps: float | None = None
    pause_in: float | None = None
    """The part of the time the other end held it up; of its lossless priorities the worst."""
    pause_out: float | None = None
    """The part of the time it held up the other end."""
    pauses_in: float | None = None
    """Pause frames received a second."""
    pauses_out: float | None = None
    marks: float | None = None
    """Packets marked with CE a second; at a NIC, those that arrived so."""
    loss: float | None = None
    """Packets of the lossless class lost a second."""
    drops: float | None = None
    """Other packets thrown away a second."""
    errors: float | None = None
    """Packets damaged, beyond repair, or sent anew a second."""
    flaps: float | None = None
    """Times its link went down a second."""


def by_port(rates: Rates) -> Mapping[str, Rates]:
    """Return rates sorted by the ports they belong to, each at its own places."""
    found: dict[str, dict[str, dict[str, Delta]]] = {}
    for name, places in rates.items():
        is_numbered = COUNTERS[name].scope != "port"
        for place, delta in places.items():
            port = _parts(place)[0] if is_numbered else place
            found.setdefault(port, {}).setdefault(name, {})[place] = delta
    return found


def reading(rates: Rates, lossless: frozenset[int]) -> Reading:
    """Return what the counters of one port say."""

    def total(*names: str, wanted: Callable[[str], bool] = lambda _place: True) -> float | None:
        return _sum(delta for name in names for place, delta in rates.get(name, {}).items() if wanted(place))

    def is_lossless(place: str) -> bool:
        return _parts(place)[1] in lossless

    return Reading(
        rx_bps=_times(total("rx_bytes"), 8),
        tx_bps=_times(total("tx_bytes"), 8),
        pause_in=_worst(rates.get("rx_pause_us", {}).values()),
        pause_out=_worst(rates.get("tx_pause_us", {}).values()),
        pauses_in=_first(total("rx_pause"), total("port_rx_pause")),
        pauses_out=_first(total("tx_pause"), total("port_tx_pause")),
        marks=_first(total("ecn_marked"), total("queue_ecn_marked"), total("ecn_received")),
        loss=total("buffer_drops", "queue_drops", "watchdog_drops", wanted=is_lossless),
        drops=total("rx_drops", "tx_drops", "port_buffer_drops", "out_of_buffer"),
        errors=total(*DAMAGE),
        flaps=_first(total("link_downs"), total("carrier_changes")),
    )


@lru_cache(maxsize=1 << 17)
def _parts(place: str) -> tuple[str, int]:
    return parts(place)


def _sum(deltas: Iterable[Delta]) -> float | None:
    known = [delta.per_s for delta in deltas if delta.is_known]
    return sum(known) or 0.0 if known else None  # one zero for all ports, not one for each


def _worst(deltas: Iterable[Delta]) -> float | None:
    known = [delta.per_s for delta in deltas if delta.is_known]
    return min(1.0, max(known) / 1e6) or 0.0 if known else None


def _first(*values: float | None) -> float | None:
    return next((value for value in values if value is not None), None)


def _times(value: float | None, factor: float) -> float | None:
    return None if value is None else value * factor or 0.0
