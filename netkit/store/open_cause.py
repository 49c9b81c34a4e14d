"""Open problems by cause, and how a run changed them.

The newest run may not cover everything: devices were unreachable, or a user selected a few checks. What it did not
judge keeps its last state, with the time of that.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, NamedTuple

from netkit.judge import Finding, Silenced, Verdict
from netkit.judge.cause import CauseGroup, cause_groups
from netkit.judge.check import Layer
from netkit.judge.run import FABRIC
from netkit.judge.silence import REACHED
from netkit.store.record import CheckRun, short
from netkit.store.state import CheckState, Key, key_of

UNREACHED = "unreached"
SILENCED = "silenced"
"""The keys of unreached devices and silenced findings in counts by verdict."""


@dataclass(frozen=True, slots=True)
class OpenCause:
    """An open cause and its symptoms."""

    group: CauseGroup
    layer: str
    since_s: float
    """The first run that found it this bad."""
    seen_s: float
    """The last run that judged it."""
    run: str
    """The name of that run; empty if it is no longer stored."""

    @property
    def keys(self) -> tuple[Key, ...]:
        """The places of the cause and its symptoms, its own first."""
        return tuple(dict.fromkeys(map(key_of, (self.group.head, *self.group.symptoms))))

    @property
    def verdicts(self) -> Mapping[Key, Verdict]:
        """The verdict at each of these places, without what is silenced."""
        found: dict[Key, Verdict] = {}
        for one in (self.group.head, *self.group.symptoms):
            if one.silenced is None:
                found[key_of(one)] = max(one.verdict, found.get(key_of(one), Verdict.PASS))
        return found


@dataclass(frozen=True, slots=True)
class OpenNow:
    """Everything that is not healthy."""

    causes: tuple[OpenCause, ...] = ()
    """In order of repair."""
    unreached: tuple[CheckState, ...] = ()
    """Devices that the last run which included them did not reach."""
    excused: Mapping[str, Silenced] = field(default_factory=dict)
    """Those of them for which this is silenced."""
    left_out: int = 0
    """Bad places, none worse than these, that were not read, since there are too many."""

    @property
    def counted(self) -> tuple[OpenCause, ...]:
        """The causes that are not completely silenced."""
        return tuple(one for one in self.causes if not one.group.is_silenced)

    @property
    def everything(self) -> tuple[OpenCause, ...]:
        """The causes that count, including unreached devices."""
        states = {one.key: one for one in self.unreached if one.key.device not in self.excused}
        missed = missed_groups((key.device, one.text) for key, one in states.items())
        return (*self.counted, *(_open_cause(one, states, {}, {}) for one in missed))

    @property
    def hidden(self) -> frozenset[Key]:
        """The places where something is wrong and silenced."""
        findings = (one for cause in self.causes for one in (cause.group.head, *cause.group.symptoms))
        excused = (one.key for one in self.unreached if one.key.device in self.excused)
        return frozenset((*(key_of(one) for one in findings if one.silenced is not None), *excused))

    @property
    def counts(self) -> Mapping[str, int]:
        """The number of open causes by verdict, of unreached devices, and of silenced problems."""
        found = Counter(one.group.verdict.word for one in self.counted)
        return {
            **{word: found[word] for word in ("error", "fail", "warn")},
            UNREACHED: len(self.unreached) - len(self.excused),
            SILENCED: len(self.causes) - len(self.counted) + len(self.excused),
        }


def missed_groups(missed: Iterable[tuple[str, str]]) -> tuple[CauseGroup, ...]:
    """Group unreached devices, given as name and reason, into causes: many with one reason are one cause."""
    return cause_groups((Finding(Verdict.FAIL, text=why, device=name, check=REACHED) for name, why in missed), {})


class FoundByRun(NamedTuple):
    """What is stored of a run about what is not healthy."""

    run: CheckRun
    findings: Sequence[Finding]
    excused: Sequence[tuple[str, Silenced]]


def open_now(states: Iterable[CheckState], runs: Iterable[FoundByRun], left_out: int = 0) -> OpenNow:
    """Group bad states into causes; `runs`, newest first, are those that judged them last, if still stored."""
    bad = {one.key: one for one in states if one.verdict > Verdict.SKIPPED}
    unreached = tuple(bad.pop(key) for key in sorted(bad) if key.check == REACHED)
    missed_s = {one.key.device: one.seen_s for one in unreached}
    excused: dict[str, Silenced] = {}
    found: dict[Key, list[Finding]] = {}
    named: dict[Key, str] = {}
    layers: dict[str, Layer] = {}
    for run, findings, marks in runs:
        layers = {**run.layers, **layers}
        excused.update((name, mark) for name, mark in marks if missed_s.get(short(name)) == run.taken_s)
        here: dict[Key, list[Finding]] = {}
        for one in findings:
            state = bad.get(key_of(one)) if one.verdict > Verdict.SKIPPED else None
            if state is not None and state.seen_s == run.taken_s and state.key not in found:
                here.setdefault(state.key, []).append(one)
        found.update(here)
        named.update(dict.fromkeys(here, run.name))
    lost = [_of_state(one) for key, one in bad.items() if key not in found]
    grouped = cause_groups((*lost, *(one for some in found.values() for one in some)), layers)
    causes = tuple(_open_cause(one, bad, named, layers) for one in grouped)
    return OpenNow(causes, unreached, excused, left_out)


def _of_state(state: CheckState) -> Finding:
    """Rebuild a finding whose run is no longer stored."""
    check, device, place = state.key
    return Finding(state.verdict, place, state.text, device="" if device == FABRIC else device, check=check)


def _open_cause(
    group: CauseGroup, bad: Mapping[Key, CheckState], named: Mapping[Key, str], layers: Mapping[str, Layer]
) -> OpenCause:
    states = [bad[key] for key in dict.fromkeys(map(key_of, (group.head, *group.symptoms)))]
    worst = max(one.verdict for one in states)
    since_s = min(one.since_s for one in states if one.verdict is worst)
    head = states[0]
    return OpenCause(group, layers.get(head.key.check, ""), since_s, head.seen_s, named.get(head.key, ""))


Change = Literal["new", "worse", "better", "gone"]


@dataclass(frozen=True, slots=True)
class CauseTransition:
    """A cause that has changed."""

    word: Change | Literal["silenced"]
    cause: OpenCause
    """Its current form; for one that is over, its last form."""
    before: Verdict
    """Its verdict before; pass if it is new."""

    @property
    def is_over(self) -> bool:
        """Whether none of it counts any more."""
        return self.word in {"gone", "silenced"}


def change_of(pairs: Iterable[tuple[Verdict, Verdict]]) -> Change | None:
    """How a cause changed, from its verdicts before and now at each place; None if it did not."""
    found = tuple(pairs)
    if not any(before for before, _ in found):
        return "new" if any(now for _, now in found) else None
    if not any(now for _, now in found):
        return "gone"
    if any(now > before for before, now in found):
        return "worse"
    return "better" if any(now < before for before, now in found) else None


def cause_changes(before: OpenNow, after: OpenNow) -> tuple[CauseTransition, ...]:
    """The causes that changed, in order of repair; those that are gone last."""
    return tuple(_changes(before.everything, after.everything, after.hidden))


def _changes(
    before: Sequence[OpenCause], after: Sequence[OpenCause], hidden: frozenset[Key]
) -> Iterator[CauseTransition]:
    was, now = _verdicts(before), _verdicts(after)
    owners: dict[Key, list[OpenCause]] = {}
    for one in before:
        for key in one.keys:
            owners.setdefault(key, []).append(one)
    for one in after:
        earlier = [other for key in one.keys for other in owners.get(key, ())]
        keys = {*one.verdicts, *(key for other in earlier for key in other.verdicts if key not in now)}
        word = change_of((was.get(key, Verdict.PASS), now.get(key, Verdict.PASS)) for key in keys)
        if word is not None:
            yield CauseTransition(word, one, max((was[key] for key in keys if key in was), default=Verdict.PASS))
    for one in before:
        if not any(key in now for key in one.keys):
            yield CauseTransition("gone" if hidden.isdisjoint(one.keys) else "silenced", one, one.group.verdict)


def _verdicts(causes: Iterable[OpenCause]) -> Mapping[Key, Verdict]:
    return {key: verdict for one in causes for key, verdict in one.verdicts.items()}


def open_counts(states: Iterable[tuple[Key, str, Verdict]]) -> dict[str, int]:
    """Count open causes by verdict, and unreached devices; each state names its cause."""
    worst: dict[str, Verdict] = {}
    found: Counter[str] = Counter()
    for key, cause, verdict in states:
        if key.check == REACHED:
            found[UNREACHED] += 1
        else:
            worst[cause or key.id] = max(verdict, worst.get(cause or key.id, Verdict.PASS))
    found.update(verdict.word for verdict in worst.values())
    return dict(found)
