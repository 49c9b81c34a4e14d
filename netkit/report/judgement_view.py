"""Judgements in the words and order that all formats share."""

import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from netkit.judge.cause import CauseGroup, Layers, cause_groups
from netkit.judge.finding import Finding, Silenced, Verdict
from netkit.judge.run import Judgement
from netkit.judge.silence import SilenceState
from netkit.report.plan_view import counted, listed
from netkit.store import CheckRun

MOST_REASONS = 12
MOST_UNREACHED = 50
LONGEST_REASON = 160
TIDY = {
    "expired": "has expired",
    "healed": "has ended: its finding has passed since",
    "unmatched": "matches no current finding",
}
"""States of entries of silences.yaml that have no effect."""


@dataclass(frozen=True, slots=True)
class Judged:
    """A judgement, and what it covers."""

    fabric: str
    devices: int
    window_s: float
    taken_s: float
    judgement: Judgement
    layers: Layers
    exit_code: int = 0
    silences: tuple[SilenceState, ...] = ()
    """The state of each silence and acknowledgement; empty for a stored run, whose findings carry their own."""

    @property
    def causes(self) -> tuple[CauseGroup, ...]:
        """The causes, the worst first."""
        return cause_groups(self.judgement.findings, self.layers)


def judged_again(run: CheckRun, judgement: Judgement) -> Judged:
    """Rebuild the result of a stored run as it was printed."""
    return Judged(
        run.source.fabric, run.devices, run.window_s, run.taken_s, judgement, run.layers, exit_code=run.exit_code
    )


def headline(judged: Judged) -> str:
    """The verdict, and how much was examined."""
    found = judged.judgement
    skipped = found.count(Verdict.SKIPPED)
    left_out = sum(result.left_out for result in found.results)
    more = f"; {skipped:,} could not be judged" * bool(skipped)
    more += f"; {left_out:,} more findings, none worse, are left out" * bool(left_out)
    return f"{judged.fabric}: {verdict_text(judged)}: {examined_text(judged)}{more}"


def verdict_text(judged: Judged) -> str:
    """The verdict in words; never clean if nothing was judged."""
    found = judged.judgement
    if not found.examined:
        return "nothing could be judged"
    counts = [(found.count(verdict), verdict.word) for verdict in (Verdict.ERROR, Verdict.FAIL, Verdict.WARN)]
    parts = ", ".join(f"{number} {word}" for number, word in counts if number)
    silenced = f"{number:,} silenced" if (number := len(found.silenced) + len(found.excused)) else ""
    if parts:
        causes = sum(not group.is_silenced for group in judged.causes)
        return f"{parts} of {counted(causes, 'cause')}" + f"; {silenced}" * bool(silenced)
    clean = "not known to be clean" if found.unreached else "clean"
    return f"{clean} but for {silenced}" if silenced else clean


def examined_text(judged: Judged) -> str:
    """Describe how much was examined."""
    found = judged.judgement
    reached = judged.devices - len(found.unreached)
    checks = len({result.check for result in found.results})
    window = f", counters over {judged.window_s:.0f} s" if judged.window_s else ""
    devices = f"{reached} of {counted(judged.devices, 'device')}"
    return f"{found.examined:,} things examined on {devices} by {counted(checks, 'check')}{window}"


def silence_text(mark: Silenced) -> str:
    """Describe who silenced something, why and until when."""
    until = "" if mark.until_s is None else f" until {moment(mark.until_s)}"
    ticket = f" ({mark.ticket})" if mark.ticket else ""
    return f"{'silenced' if mark.kind == 'silence' else 'acknowledged'}{until} by {mark.by}: {mark.why}{ticket}"


def missed_texts(judgement: Judgement) -> Iterator[tuple[str, str]]:
    """Yield devices that were not reached or not read completely, the reason, and who silenced that."""
    excused = dict(judgement.excused)
    for name, reason in judgement.unreached:
        yield name, f"{reason[:LONGEST_REASON]}{f' ({silence_text(excused[name])})' if name in excused else ''}"


def moment(at_s: float) -> str:
    """Format a time to the minute."""
    return time.strftime("%Y-%m-%d %H:%M UTC", time.gmtime(at_s))


def silence_notes(silences: Iterable[SilenceState]) -> Iterator[str]:
    """Yield the entries of silences.yaml to clean up."""
    for one in silences:
        if why := TIDY.get(one.state):
            yield f"{one.silence.kind} {one.silence.id} of {one.silence.about} by {one.silence.by} {why}"


def trouble_silences(group: CauseGroup) -> Iterator[str]:
    """Yield who silenced findings of a cause, why and until when."""
    marks = [one.silenced for one in group.findings if one.silenced is not None]
    for mark in dict.fromkeys(marks):
        number = marks.count(mark)
        of = "" if number == len(group.findings) else f"{number} of {len(group.findings)} findings "
        yield f"{of}{silence_text(mark)}"


def place_text(finding: Finding) -> str:
    return ":".join(part for part in (finding.device, finding.place) if part) or "fabric"


def where(group: CauseGroup) -> str:
    """The place of a cause, or its cable if there is one."""
    head = group.head
    if group.places > 1:
        devices = tuple(dict.fromkeys(one.device for one in (head, *group.symptoms) if one.check == head.check))
        return f"{counted(group.places, 'place')} on {listed(devices)}"
    cable = head.cause.partition(" (")[0] if " — " in head.cause or " → " in head.cause else ""
    return cable or place_text(head)


def symptom_texts(group: CauseGroup) -> Iterator[str]:
    """Yield the symptoms of a cause, grouped by check."""
    by_check: dict[str, list[str]] = {}
    for finding in group.symptoms:
        by_check.setdefault(finding.check, []).append(place_text(finding))
    for check, places in by_check.items():
        yield f"{check}: {listed(tuple(dict.fromkeys(places)))}"


def skipped_reasons(judgement: Judgement) -> Iterator[tuple[str, int, str]]:
    """Yield why things could not be judged: check, count, reason; the most frequent first."""
    counts: dict[tuple[str, str], int] = {}
    for finding in judgement.findings:
        if finding.verdict is Verdict.SKIPPED and not finding.text.startswith("not reached"):
            key = finding.check, finding.text[:LONGEST_REASON]
            counts[key] = counts.get(key, 0) + 1
    for (check, reason), number in sorted(counts.items(), key=lambda item: (-item[1], item[0])):
        yield check, number, reason
