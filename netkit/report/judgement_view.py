"""What checks said, in the words and the order in which it is shown, whatever the format."""

import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from netkit.judge.cause import CauseGroup, Layers, cause_groups
from netkit.judge.finding import Finding, Silenced, Verdict
from netkit.judge.run import Judgement
from netkit.judge.silence import SilenceState
from netkit.report.plan_view import counted, listed

MOST_REASONS = 12
MOST_UNREACHED = 50
LONGEST_REASON = 160
TIDY = {
    "expired": "is over",
    "healed": "is over: its finding was well since",
    "unmatched": "silences nothing that is found now",
}
"""States of an entry of silences.yaml that is there for nothing."""


@dataclass(frozen=True, slots=True)
class Judged:
    """A judgement, and what there was to judge."""

    fabric: str
    devices: int
    window_s: float
    taken_s: float
    judgement: Judgement
    layers: Layers
    exit_code: int = 0
    silences: tuple[SilenceState, ...] = ()
    """How each silence and acknowledgement stands; none for a stored run, whose findings say by themselves."""

    @property
    def troubles(self) -> tuple[CauseGroup, ...]:
        """Return what is wrong by cause, the worst first."""
        return cause_groups(self.judgement.findings, self.layers)


def headline(judged: Judged) -> str:
    """Return the verdict, and how much was looked at to reach it."""
    found = judged.judgement
    return f"{judged.fabric}: {verdict_text(judged)}: {examined_text(judged)}{_beside(found)}"


def verdict_text(judged: Judged) -> str:
    """Return the verdict in words; what nobody judged is never called clean."""
    found = judged.judgement
    if not found.examined:
        return "nothing could be judged"
    counts = [(found.count(verdict), verdict.word) for verdict in (Verdict.ERROR, Verdict.FAIL, Verdict.WARN)]
    parts = ", ".join(f"{number} {word}" for number, word in counts if number)
    silenced = f"{number:,} silenced" if (number := len(found.silenced) + len(found.excused)) else ""
    if parts:
        causes = sum(not trouble.is_silenced for trouble in judged.troubles)
        return f"{parts} of {counted(causes, 'cause')}" + f"; {silenced}" * bool(silenced)
    clean = "not known to be clean" if found.unreached else "clean"
    return f"{clean} but for {silenced}" if silenced else clean


def examined_text(judged: Judged) -> str:
    """Return how much was looked at."""
    found = judged.judgement
    reached = judged.devices - len(found.unreached)
    checks = len({result.check for result in found.results})
    window = f", counters over {judged.window_s:.0f} s" if judged.window_s else ""
    devices = f"{reached} of {counted(judged.devices, 'device')}"
    return f"{found.examined:,} things examined on {devices} by {counted(checks, 'check')}{window}"


def _beside(found: Judgement) -> str:
    skipped = found.count(Verdict.SKIPPED)
    left_out = sum(result.left_out for result in found.results)
    parts = f"; {skipped:,} could not be judged" * bool(skipped)
    return parts + f"; {left_out:,} more findings, none worse, are left out" * bool(left_out)


def silence_text(mark: Silenced) -> str:
    """Return by whom, why and until when something is silenced."""
    until = "" if mark.until_s is None else f" until {moment(mark.until_s)}"
    ticket = f" ({mark.ticket})" if mark.ticket else ""
    return f"{'silenced' if mark.kind == 'silence' else 'acknowledged'}{until} by {mark.by}: {mark.why}{ticket}"


def missed_texts(judgement: Judgement) -> Iterator[tuple[str, str]]:
    """Yield the devices that were not reached, or not to the end, with the reason and who silenced that."""
    excused = dict(judgement.excused)
    for name, reason in judgement.unreached:
        yield name, f"{reason[:LONGEST_REASON]}{f' ({silence_text(excused[name])})' if name in excused else ''}"


def moment(at_s: float) -> str:
    """Return a time as people read it; a second more or less is of no interest here."""
    return time.strftime("%Y-%m-%d %H:%M UTC", time.gmtime(at_s))


def silence_notes(silences: Iterable[SilenceState]) -> Iterator[str]:
    """Yield what is to be tidied in silences.yaml."""
    for one in silences:
        if why := TIDY.get(one.state):
            yield f"{one.silence.kind} {one.silence.id} of {one.silence.about} by {one.silence.by} {why}"


def trouble_silences(trouble: CauseGroup) -> Iterator[str]:
    """Yield by whom, why and until when findings of a cause are silenced."""
    marks = [one.silenced for one in trouble.findings if one.silenced is not None]
    for mark in dict.fromkeys(marks):
        number = marks.count(mark)
        of = "" if number == len(trouble.findings) else f"{number} of {len(trouble.findings)} findings "
        yield f"{of}{silence_text(mark)}"


def place_text(finding: Finding) -> str:
    """Return where a finding is."""
    return ":".join(part for part in (finding.device, finding.place) if part) or "fabric"


def where(trouble: CauseGroup) -> str:
    """Return where a trouble is: its place, and the cable when that says more."""
    head = trouble.head
    if trouble.places > 1:
        devices = tuple(dict.fromkeys(one.device for one in (head, *trouble.symptoms) if one.check == head.check))
        return f"{counted(trouble.places, 'place')} on {listed(devices)}"
    cable = head.cause.partition(" (")[0] if " — " in head.cause or " → " in head.cause else ""
    return cable or place_text(head)


def symptom_texts(trouble: CauseGroup) -> Iterator[str]:
    """Yield what follows from a cause, alike things together."""
    by_check: dict[str, list[str]] = {}
    for finding in trouble.symptoms:
        by_check.setdefault(finding.check, []).append(place_text(finding))
    for check, places in by_check.items():
        yield f"{check}: {listed(tuple(dict.fromkeys(places)))}"


def skipped_reasons(judgement: Judgement) -> Iterator[tuple[str, int, str]]:
    """Yield why things could not be judged: check, how many, reason; the most frequent first."""
    counts: dict[tuple[str, str], int] = {}
    for finding in judgement.findings:
        if finding.verdict is Verdict.SKIPPED and not finding.text.startswith("not reached"):
            key = finding.check, finding.text[:LONGEST_REASON]
            counts[key] = counts.get(key, 0) + 1
    for (check, reason), number in sorted(counts.items(), key=lambda item: (-item[1], item[0])):
        yield check, number, reason
