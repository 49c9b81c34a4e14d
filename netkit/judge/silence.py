"""Silences and acknowledgements applied to a judgement: silenced findings do not count. Pure: the time is an argument.

A silence covers checks and places until it ends. An acknowledgement covers one finding as it was found: a worse one,
another fault, or one with another cause counts again. Either also covers the symptoms of the finding, unless they are
worse than the finding itself. Broken checks and skipped judgements are never silenced.
"""

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from typing import Literal

from netkit.judge.cause import Layers, cause_name, heads
from netkit.judge.check import is_meant
from netkit.judge.finding import Finding, Silenced, Verdict
from netkit.judge.run import FABRIC, Judgement

REACHED = "reached"
"""The check name for a device that was not reached."""
NUMBER = re.compile(r"(?<!\w)[-+]?\d[\d.,]*+(?:e[-+]?\d+)?(?!\w)")
BGP_STATE = re.compile(r"\b(?:Idle|Connect|Active|OpenSent|OpenConfirm)\b")
"""The states a session that does not come up cycles through."""
KINDS = frozenset({Verdict.WARN, Verdict.FAIL})
EntryState = Literal["active", "later", "unmatched", "healed", "expired"]
"""In effect; begins later; silences nothing now; its finding has cleared since; past its end."""


@dataclass(frozen=True, slots=True)
class Subject:
    """Where a finding may be, as names or globs: a device, or one of its places; `fabric` is the whole."""

    device: str
    place: str = ""
    """A port, which covers its priorities and lanes too; empty for the whole device."""

    @classmethod
    def of(cls, text: str) -> "Subject":
        """Parse `DEVICE` or `DEVICE:PLACE`."""
        device, _, place = text.partition(":")
        return cls(device, place)

    def has(self, device: str, place: str) -> bool:
        if not fnmatchcase(device or FABRIC, self.device):
            return False
        return not self.place or fnmatchcase(place, self.place) or fnmatchcase(place, f"{self.place}/*")

    def __str__(self) -> str:
        return f"{self.device}:{self.place}" if self.place else self.device


@dataclass(frozen=True, slots=True)
class Fault:
    """An acknowledged finding, as it was found."""

    verdict: Verdict
    texts: tuple[str, ...] = ()
    """Empty: any fault there, as long as it is not worse."""
    cause: str = ""
    """The finding it followed from; empty when it was a cause itself."""

    def is_still(self, finding: Finding, cause: str) -> bool:
        """Whether a finding is the same fault, and no worse; other numbers in its text do not matter."""
        if finding.verdict > self.verdict:
            return False
        return not self.texts or (cause == self.cause and kind_of(finding.text) in map(kind_of, self.texts))


@dataclass(frozen=True, slots=True)
class Silence:
    """One entry of the file."""

    id: str
    checks: tuple[str, ...]
    """Names, files or globs."""
    subjects: tuple[Subject, ...]
    by: str
    why: str
    begins_s: float = 0.0
    until_s: float | None = None
    ticket: str = ""
    fault: Fault | None = None
    """Only of an acknowledgement."""
    site: str = ""
    """The only site of a fleet that it is for; empty: for each."""
    devices: frozenset[str] | None = None
    """The only devices that it is for, those of its site; None: all."""

    def at(self, sites: Mapping[str, Collection[str]]) -> "Silence | None":
        """What it is for a fabric whose devices are at sites; None if its site is none of them."""
        if not self.site:
            return self
        return replace(self, devices=frozenset(sites[self.site])) if self.site in sites else None

    @property
    def kind(self) -> str:
        return "silence" if self.fault is None else "acknowledgement"

    @property
    def mark(self) -> Silenced:
        """What it puts on a finding."""
        return Silenced(self.id, self.kind, self.by, self.why, self.until_s, self.ticket)

    @property
    def about(self) -> str:
        """What it is about, in a few words."""
        found = f"{', '.join(self.checks)} on {', '.join(map(str, self.subjects))}"
        return f"{found} at {self.site}" if self.site else found

    def is_over(self, now_s: float) -> bool:
        return self.until_s is not None and now_s >= self.until_s

    def is_active(self, now_s: float) -> bool:
        """Whether it covers anything at a time."""
        return self.begins_s <= now_s and not self.is_over(now_s)

    def is_about(self, check: str, device: str, place: str) -> bool:
        """Whether it names a check at a place."""
        if self.devices is not None and device not in self.devices:
            return False
        return any(is_meant(check, one) for one in self.checks) and any(one.has(device, place) for one in self.subjects)

    def covers(self, finding: Finding, cause: str) -> bool:
        if not self.is_about(finding.check, finding.device, finding.place):
            return False
        return self.fault is None or self.fault.is_still(finding, cause)


def kind_of(text: str) -> str:
    """The text of a finding without what differs each time it is found."""
    return BGP_STATE.sub("#", NUMBER.sub("#", text))


def id_of(finding: Finding) -> str:
    """What and where a finding is, the same in every run."""
    return f"{finding.check}[{finding.device or FABRIC}]" + (f" {finding.place}" if finding.place else "")


def cause_of(finding: Finding, named: Mapping[str, Finding]) -> str:
    """What a symptom follows from; empty for a cause, or for the same check in the same place."""
    cause = id_of(named[cause_name(finding)]) if finding.is_symptom else ""
    return "" if cause == id_of(finding) else cause


def silenced(judgement: Judgement, silences: Iterable[Silence], now_s: float, layers: Layers) -> Judgement:
    """A judgement with silences applied to its findings."""
    active = [one for one in silences if one.is_active(now_s)]
    if not active:
        return judgement
    named = heads(judgement.findings, layers)
    marks = {name: _mark(head, "", active) for name, head in named.items()}

    def marked(finding: Finding) -> Finding:
        if finding.verdict not in KINDS:
            return finding
        mark = _mark(finding, cause_of(finding, named), active)
        if mark is None and finding.is_symptom and finding.verdict <= named[cause_name(finding)].verdict:
            mark = marks[cause_name(finding)]
        return finding._replace(silenced=mark)

    results = tuple(replace(one, findings=tuple(map(marked, one.findings))) for one in judgement.results)
    missed = [Finding(Verdict.FAIL, text=why, device=name, check=REACHED) for name, why in judgement.unreached]
    excused = tuple((one.device, mark) for one in missed if (mark := _mark(one, "", active)) is not None)
    return replace(judgement, results=results, excused=excused)


def _mark(finding: Finding, cause: str, active: Sequence[Silence]) -> Silenced | None:
    """The mark of the first entry that covers a finding itself."""
    if finding.verdict not in KINDS:
        return None
    return next((one.mark for one in active if one.covers(finding, cause)), None)


@dataclass(frozen=True, slots=True)
class SilenceState:
    """The state of an entry of the file after a run."""

    silence: Silence
    state: EntryState
    findings: int
    """How many findings and devices it silences."""


def states(
    silences: Iterable[Silence], judgement: Judgement, now_s: float, healed: Collection[str] = (), *, is_whole: bool
) -> tuple[SilenceState, ...]:
    """The state of each entry; only a complete run shows that an entry no longer silences anything."""
    found: dict[str, int] = {}
    for mark in (*(one.silenced for one in judgement.silenced), *(mark for _, mark in judgement.excused)):
        if mark is not None:
            found[mark.id] = found.get(mark.id, 0) + 1
    missed = {name for name, _ in judgement.unreached}

    def state(one: Silence) -> EntryState:
        if one.is_over(now_s):
            return "expired"
        if one.id in healed:
            return "healed"
        if not one.is_active(now_s):
            return "later"
        is_unseen = any(subject.has(name, "") for subject in one.subjects for name in missed)
        return "unmatched" if is_whole and not found.get(one.id) and not is_unseen else "active"

    return tuple(SilenceState(one, state(one), found.get(one.id, 0)) for one in silences)
