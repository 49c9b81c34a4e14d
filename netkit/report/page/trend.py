"""Trends from run to run, from the store."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from netkit.facts import Facts, Snapshot
from netkit.judge import Finding, Verdict
from netkit.judge.context import History
from netkit.judge.run import Judgement
from netkit.report.page import table
from netkit.store.record import Measured, measured

MOST_RUNS = 200
MOST_POINTS = 120
MOST_SERIES = 24
QUANTITIES = {
    "rx_dbm": ("received power", "dBm"),
    "tx_dbm": ("transmitted power", "dBm"),
    "temperature_c": ("temperature", "°C"),
}
LANES = range(1, 9)
Points = tuple[tuple[float, float], ...]


@dataclass(frozen=True, slots=True)
class Tally:
    """The result of one run."""

    run: str
    taken_s: float
    verdict: Verdict
    failures: int
    warnings: int
    errors: int
    examined: int
    unreached: int


@dataclass(frozen=True, slots=True)
class Series:
    """A quantity of one place over time, earliest first."""

    device: str
    place: str
    quantity: str
    points: Points


@dataclass(frozen=True, slots=True)
class Trends:
    """Earlier runs and measurements, earliest first."""

    runs: tuple[Tally, ...] = ()
    series: tuple[Series, ...] = ()


NO_TRENDS = Trends()


class UpToNow:
    """The measurements of earlier runs and of this one."""

    def __init__(self, earlier: History, snapshot: Snapshot) -> None:
        self._earlier, self._snapshot = earlier, snapshot
        self._now: dict[str, Measured] = {}

    def readings(self, device: str, place: str, quantity: str) -> Sequence[tuple[float, float]]:
        """Return the values of a quantity with their times, earliest first."""
        now = self._measured(device).values.get(place, {}).get(quantity)
        earlier = self._earlier.readings(device, place, quantity)
        return earlier if now is None else [*earlier, (self._snapshot.taken_s, now)]

    def _measured(self, device: str) -> Measured:
        if device not in self._now:
            one = self._snapshot.devices.get(device)
            self._now[device] = measured(self._snapshot.taken_s, Facts() if one is None else one.facts)
        return self._now[device]


def series(judgement: Judgement, history: History) -> tuple[Series, ...]:
    """Return the measurements of modules with something wrong."""
    found: list[Series] = []
    for device, place in dict.fromkeys(_optical(judgement.findings)):
        found += _of_port(history, device, place)
        if len(found) >= MOST_SERIES:
            break
    return tuple(found[:MOST_SERIES])


def _optical(findings: Sequence[Finding]) -> Iterator[tuple[str, str]]:
    for finding in sorted(findings, key=lambda finding: -finding.verdict):
        is_about_a_module = finding.check.startswith("optics.") and finding.verdict > Verdict.SKIPPED
        if is_about_a_module and finding.device and finding.place:
            yield finding.device, finding.place


def _of_port(history: History, device: str, port: str) -> Iterator[Series]:
    for place in (port, *(f"{port}/{lane}" for lane in LANES)):
        for quantity in QUANTITIES:
            points = thinned(tuple(history.readings(device, place, quantity)))
            if len(points) > 1:
                yield Series(device, place, quantity, points)


def thinned(points: Points) -> Points:
    """Thin points out to what a small chart can show, keeping the last."""
    step = max(1, -(-len(points) // MOST_POINTS))
    return points[::-1][::step][::-1]


def document(trends: Trends) -> dict[str, Any]:
    """Return trends as plain values."""
    return {
        "runs": [
            {
                "run": table.name(one.run),
                "taken_s": one.taken_s,
                "verdict": one.verdict.word,
                "fail": one.failures,
                "warn": one.warnings,
                "error": one.errors,
                "examined": one.examined,
                "unreached": one.unreached,
            }
            for one in trends.runs[-MOST_RUNS:]
        ],
        "series": [
            {
                "device": table.name(one.device),
                "place": table.name(one.place),
                "quantity": QUANTITIES[one.quantity][0],
                "unit": QUANTITIES[one.quantity][1],
                "points": [[round(at_s), table.rounded(value)] for at_s, value in one.points],
            }
            for one in trends.series
        ],
    }
