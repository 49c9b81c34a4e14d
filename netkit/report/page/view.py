"""The parts of a report."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from netkit.design import Fabric
from netkit.judge import CheckContext, Finding, Verdict
from netkit.judge.run import FABRIC, Judgement
from netkit.report.judgement_view import Judged
from netkit.report.page.trend import NO_TRENDS, Trends


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
    """Return the states of ports with something wrong, by device and port."""
    worst: dict[tuple[str, str], Verdict] = {}
    for finding in judgement.findings:
        if finding.verdict > Verdict.SKIPPED and finding.silenced is None:
            for place in places(finding):
                worst[finding.device, place] = max(finding.verdict, worst.get((finding.device, place), Verdict.PASS))
    return {place: OF_VERDICT[verdict] for place, verdict in worst.items()}


def places(finding: Finding) -> tuple[str, ...]:
    """Return the possible ports of a finding: its place, or the part before a priority or lane."""
    return tuple(dict.fromkeys(part for part in (finding.place, finding.place.rpartition("/")[0]) if part))
