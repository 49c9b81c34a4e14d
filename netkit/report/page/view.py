"""The parts of a report, and trends from run to run, from the store."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from netkit.design import Fabric
from netkit.facts import Facts, Snapshot
from netkit.judge import CheckContext, Finding, Verdict
from netkit.judge.context import History
from netkit.judge.run import FABRIC, Judgement
from netkit.report.judgement_view import Judged
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
        """The values of a quantity with their times, earliest first."""
        now = self._measured(device).values.get(place, {}).get(quantity)
        earlier = self._earlier.readings(device, place, quantity)
        return earlier if now is None else [*earlier, (self._snapshot.taken_s, now)]

    def _measured(self, device: str) -> Measured:
        if device not in self._now:
            one = self._snapshot.devices.get(device)
            self._now[device] = measured(self._snapshot.taken_s, Facts() if one is None else one.facts)
        return self._now[device]


def series(judgement: Judgement, history: History) -> tuple[Series, ...]:
    """The measurements of modules with something wrong."""
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
    """Trends as plain values."""
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


class HealthState(StrEnum):
    """The state of a device or port, the best first."""

    PASS = "pass"  # noqa: S105 (a verdict)
    UNKNOWN = "unknown"
    """Nothing about it could be judged."""
    UNREACHED = "unreached"
    WARN = "warn"
    FAIL = "fail"
    ERROR = "error"


OF_VERDICT = {Verdict.WARN: HealthState.WARN, Verdict.FAIL: HealthState.FAIL, Verdict.ERROR: HealthState.ERROR}


@dataclass(frozen=True, slots=True)
class Reported:
    """A judged run, its fabric, and its facts."""

    judged: Judged
    fabric: Fabric
    context: CheckContext | None = None
    """The facts; None for a stored run, which keeps only verdicts."""
    absent: int = 0
    """The number of unreported facts of a stored run; else they are counted."""
    run: str = ""
    """The name of a stored run; empty if it is not stored."""
    trends: Trends = NO_TRENDS
    notes: tuple[str, ...] = ()
    """Notes to the reader."""

    @property
    def names(self) -> tuple[str, ...]:
        """The devices in the report, in design order."""
        return self.fabric.names if self.context is None else tuple(self.context.devices)


def device_states(reported: Reported) -> Mapping[str, HealthState]:
    found = reported.judged.judgement
    bad = _worst(found)
    unreached = {name for name, _ in found.unreached}
    judged = {result.device for result in found.results if result.examined and result.device != FABRIC}
    kinds = {**dict.fromkeys(judged, HealthState.PASS), **dict.fromkeys(unreached, HealthState.UNREACHED), **bad}
    return {name: kinds.get(name, HealthState.UNKNOWN) for name in reported.names}


def _worst(found: Judgement) -> Mapping[str, HealthState]:
    worst: dict[str, Verdict] = {}
    for finding in found.findings:
        if finding.verdict > Verdict.SKIPPED and finding.silenced is None:
            worst[finding.device] = max(finding.verdict, worst.get(finding.device, Verdict.PASS))
    return {name: OF_VERDICT[verdict] for name, verdict in worst.items()}


def port_states(judgement: Judgement) -> Mapping[tuple[str, str], HealthState]:
    """The states of ports with something wrong, by device and port."""
    worst: dict[tuple[str, str], Verdict] = {}
    for finding in judgement.findings:
        if finding.verdict > Verdict.SKIPPED and finding.silenced is None:
            for place in places(finding):
                worst[finding.device, place] = max(finding.verdict, worst.get((finding.device, place), Verdict.PASS))
    return {place: OF_VERDICT[verdict] for place, verdict in worst.items()}


def places(finding: Finding) -> tuple[str, ...]:
    """The possible ports of a finding: its place, or the part before a priority or lane."""
    return tuple(dict.fromkeys(part for part in (finding.place, finding.place.rpartition("/")[0]) if part))
