"""A comparison as text for a terminal, as Markdown for a ticket, and as JSON."""

import json
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import islice
from typing import Any, Literal, get_args

from netkit.facts import Snapshot
from netkit.judge.cause import CauseGroup, Layers, cause_groups, cause_name
from netkit.judge.difference import ORDER, Difference, Uncompared
from netkit.judge.finding import Finding, Verdict
from netkit.judge.run import FABRIC, Judgement
from netkit.report.judgement_json import finding_document
from netkit.report.judgement_view import place_text, symptom_texts, where
from netkit.report.plan_text import plain
from netkit.report.plan_view import counted, listed, shown
from netkit.store.state import Key, Peers, after, key_of, without_half_seen

Fate = Literal["came", "worse", "unknown", "better", "went"]
FATES: tuple[Fate, ...] = get_args(Fate)
"""How a cause changed, in the order of the report."""
WORDS: Mapping[Fate, str] = {
    "came": "new",
    "worse": "worse",
    "unknown": "no longer known",
    "better": "better",
    "went": "gone",
}
WORSE: tuple[Fate, ...] = ("came", "worse")
MOST_PLACES = 4


@dataclass(frozen=True, slots=True)
class Side:
    """One of the two states."""

    name: str
    """The name of a file or a stored run."""
    taken_s: float
    window_s: float
    judgement: Judgement
    layers: Layers
    snapshot: Snapshot | None = None
    """None for a stored run: a store keeps no facts."""

    @property
    def devices(self) -> frozenset[str]:
        """The devices that were judged."""
        return frozenset(result.device for result in self.judgement.results if result.device != FABRIC)


@dataclass(frozen=True, slots=True)
class ComparedCause:
    """A cause and how it changed."""

    fate: Fate
    group: CauseGroup
    was: str = ""
    """Its state before, if that differs."""
    differences: tuple[Difference, ...] = ()
    """The differences at the places of its findings."""


@dataclass(frozen=True, slots=True)
class Alike:
    """The same difference at several places, the largest first if it has an amount."""

    members: tuple[Difference, ...]

    @property
    def first(self) -> Difference:
        return self.members[0]


@dataclass(frozen=True, slots=True)
class Comparison:
    """All differences between two states of a fabric."""

    fabric: str
    before: Side
    after: Side
    causes: tuple[ComparedCause, ...] = ()
    differences: tuple[Difference, ...] = ()
    """The differences at places without a changed cause."""
    uncompared: tuple[Uncompared, ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def is_worse(self) -> bool:
        has_worse = any(one.is_worse for one in self.differences)
        return has_worse or any(one.fate in WORSE for one in self.causes)


def headline(found: Comparison) -> str:
    """Summarise a comparison in one line."""
    fates = [one.fate for one in found.causes]
    causes = [(fates.count(fate), WORDS[fate]) for fate in FATES]
    parts = [f"{counted(number, 'cause')} {word}" for number, word in causes if number]
    kinds = ((True, "worse"), (None, "neither worse nor better"), (False, "better"))
    numbers = [(sum(one.is_worse is kind for one in found.differences), word) for kind, word in kinds]
    others = ", ".join(f"{number:,} {word}" for number, word in numbers if number)
    parts += [f"other differences: {others}"] * bool(others)
    verdict = "worse" if found.is_worse else "nothing worse" if parts else "no difference"
    devices = counted(len(found.before.devices & found.after.devices), "device")
    return f"{found.fabric}: {verdict}, {devices} compared{': ' * bool(parts)}{'; '.join(parts)}"


def causes(before: Side, after_: Side, peers: Peers) -> tuple[ComparedCause, ...]:
    """How each cause changed; unknown if it could not be judged again."""
    return tuple(_Fates(before, after_, peers).all())


class _Fates:
    """The findings of both states, and the state of each place in the other."""

    def __init__(self, before: Side, after_: Side, peers: Peers) -> None:
        self._before, self._after = before, after_
        self._was = after({}, before.judgement, before.devices, before.taken_s)
        judged = without_half_seen(
            after(self._was, after_.judgement, after_.devices, after_.taken_s), after_.judgement, after_.devices, peers
        )
        self._well = {key for key, one in judged.items() if one.verdict is Verdict.PASS}
        self._old = {cause_name(one[0]): one for one in _groups(before.judgement)}
        self._old_of = {key_of(finding): group for group in self._old.values() for finding in group}
        self._is_bad = {key_of(finding) for group in _groups(after_.judgement) for finding in group}

    def all(self) -> Iterator[ComparedCause]:
        found: dict[Fate, list[Finding]] = {fate: [] for fate in FATES}
        was: dict[Key, str] = {}
        for group in _groups(self._after.judgement):
            fate, before = self._fate(group)
            if fate is not None:
                found[fate] += group
                was[key_of(group[0])] = before
        for group in self._old.values():
            head = key_of(group[0])
            if head not in self._is_bad:
                gone = [one for one in group if key_of(one) not in self._is_bad]
                found["went" if head in self._well else "unknown"] += gone
        for fate in FATES:
            layers = self._before.layers if fate in {"went", "unknown"} else self._after.layers
            for cause in cause_groups(found[fate], layers):
                yield ComparedCause(fate, cause, was.get(key_of(cause.head), ""))

    def _fate(self, group: Sequence[Finding]) -> tuple[Fate | None, str]:
        """How a present cause changed, and its state before."""
        head = key_of(group[0])
        if head not in self._was:
            return "came", ""
        old = self._old_of[head]
        if key_of(old[0]) in self._well:  # its cause is gone, but it remains itself
            old = [one for one in old if key_of(one) in {key_of(one) for one in group}]
        verdicts = max(one.verdict for one in old), max(one.verdict for one in group)
        if verdicts[0] is not verdicts[1]:
            return "worse" if verdicts[1] > verdicts[0] else "better", f"was {verdicts[0].word}"
        if len(old) != len(group):
            return "worse" if len(group) > len(old) else "better", f"was {counted(len(old), 'finding')}"
        return None, ""


def _groups(judgement: Judgement) -> list[list[Finding]]:
    """Group bad findings by cause, the finding that names it first."""
    groups: dict[str, list[Finding]] = {}
    for finding in judgement.findings:
        if finding.verdict > Verdict.SKIPPED:
            groups.setdefault(cause_name(finding), []).append(finding)
    return [sorted(group, key=lambda one: (one.is_symptom, -one.verdict)) for group in groups.values()]


def attached(
    changes: Sequence[ComparedCause], found: Iterable[Difference], cable: Callable[[str, str], str]
) -> tuple[tuple[ComparedCause, ...], tuple[Difference, ...]]:
    """Attach differences to causes at the same place or the other end of its cable; return also the rest."""
    owners: dict[tuple[str, str], int] = {}
    for number, change in enumerate(changes):
        for finding in (change.group.head, *change.group.symptoms):
            owners.setdefault(_spot(finding.device, finding.place, cable), number)
    taken: dict[int, list[Difference]] = {}
    rest: list[Difference] = []
    for one in found:
        owner = owners.get(_spot(one.device, one.place, cable))
        (rest if owner is None else taken.setdefault(owner, [])).append(one)
    causes = (replace(change, differences=tuple(taken.get(number, ()))) for number, change in enumerate(changes))
    return tuple(causes), tuple(rest)


def _spot(device: str, place: str, cable: Callable[[str, str], str]) -> tuple[str, str]:
    for port in (place, place.rpartition("/")[0]):
        if found := cable(device, port):
            return "", found
    return device, place


def alike(found: Iterable[Difference]) -> list[Alike]:
    """Group equal differences: worse ones first, then by weight, then by number."""
    groups: dict[tuple[object, ...], list[Difference]] = {}
    for one in found:
        values = (one.was, one.now) if one.amount is None else ()
        groups.setdefault((one.kind, one.what, one.is_worse, *values), []).append(one)
    result = [Alike(tuple(sorted(group, key=lambda one: -(one.amount or 0.0)))) for group in groups.values()]
    return sorted(result, key=_weight)


def _weight(group: Alike) -> tuple[int, int, int]:
    worse = {True: 0, None: 1, False: 2}[group.first.is_worse]
    return worse, ORDER.index(group.first.kind), -len(group.members)


def change_text(one: Difference) -> str:
    """Describe a difference without its place."""
    if not one.was and one.now == "yes":
        return one.what
    if not one.was:
        return f"{one.what}: new" + (f", {one.now}" if one.now not in {"there", "seen"} else "")
    if not one.now:
        return f"{one.what}: gone" + (f", was {one.was}" if one.was not in {"there", "seen"} else "")
    return f"{one.what}: {one.was} → {one.now}"


def alike_text(group: Alike) -> str:
    """Describe a group of differences and its places."""
    first, number = group.first, len(group.members)
    text = change_text(first)
    if number == 1:
        return f"{text}, {_place(first)}"
    devices = tuple(dict.fromkeys(one.device for one in group.members))
    places = tuple(dict.fromkeys(one.place for one in group.members))
    if first.amount is not None:
        return f"{text}, {_place(first)}; {counted(number - 1, 'more place')} on {listed(devices)}"
    if places == ("",):
        return f"{text}, {listed(devices)}"
    if len(devices) == 1 or len(places) == 1:
        return f"{text}, {listed(places)} of {listed(devices)}"
    return f"{text}, {number:,} places on {listed(devices)}"


def _place(one: Difference) -> str:
    return ":".join(filter(None, (one.device, one.place)))


def uncompared_text(found: Iterable[Uncompared]) -> Iterator[str]:
    """Yield what could not be compared and why, the most frequent first."""
    devices: dict[tuple[str, str], list[str]] = {}
    for one in found:
        devices.setdefault((one.kind.replace("_", " "), one.reason), []).append(one.device)
    for (kind, reason), names in sorted(devices.items(), key=lambda item: (-len(item[1]), item[0])):
        yield f"{kind}, {listed(tuple(names))}: {reason}"


MOST_CAUSES = 50
MOST_GROUPS = 60
MOST_BESIDE = 6
MOST_REASONS = 12
SIGNS = {True: "worse", None: "", False: "better"}
LARGEST = 60_000
"""GitHub refuses comments of more than 65,536 characters."""
ROOM = (100, 50, 20, 10, 5, 0)


def comparison_text(found: Comparison) -> str:
    return "\n".join(map(shown, _lines(found))) + "\n"


def _lines(found: Comparison) -> Iterator[str]:
    yield headline(found)
    yield f"  before: {_side(found.before)}"
    yield f"  after:  {_side(found.after)}"
    yield from (f"  {note}" for note in found.notes)
    room = MOST_CAUSES
    for fate in FATES:
        changes = [one for one in found.causes if one.fate == fate]
        if not changes:
            continue
        yield ""
        yield f"{counted(len(changes), 'cause')} {WORDS[fate]}:"
        for change in changes[:room]:
            yield from _cause(change)
        if len(changes) > room:
            yield f"  … and {len(changes) - room} more; --format json shows all"
        room = max(0, room - len(changes))
    groups = alike(found.differences)
    if groups:
        yield ""
        yield "Other differences:" if found.causes else "Differences:"
    for group in groups[:MOST_GROUPS]:
        yield f"  {SIGNS[group.first.is_worse]:6}  {alike_text(group)}"
    if len(groups) > MOST_GROUPS:
        yield f"  … and {len(groups) - MOST_GROUPS} more; --format json shows all"
    reasons = list(uncompared_text(found.uncompared))
    if reasons:
        yield ""
        yield "Not compared:"
        yield from (f"  {reason}" for reason in islice(reasons, MOST_REASONS))
    if len(reasons) > MOST_REASONS:
        yield f"  … and {counted(len(reasons) - MOST_REASONS, 'more reason')}"


def _side(side: Side) -> str:
    taken = time.strftime("%Y-%m-%d %H:%M:%S UTC", time.gmtime(side.taken_s))
    window = f", counters over {side.window_s:.0f} s" if side.window_s else ", counters seen once"
    return f"{side.name}, {taken}, {counted(len(side.devices), 'device')}{window}"


def _cause(change: ComparedCause) -> Iterator[str]:
    group, head = change.group, change.group.head
    yield f"  {group.verdict.word.upper():5} {where(group)}" + (f" ({change.was})" if change.was else "")
    yield f"        {place_text(head)}: {head.text}  [{head.check}]"
    if head.remedy and change.fate in {"came", "worse"}:
        yield f"        do: {head.remedy}"
    yield from (f"        also {symptom}" for symptom in symptom_texts(group))
    yield from (f"        {text}" for text in _beside(change.differences))


def _beside(found: Sequence[Difference]) -> Iterator[str]:
    groups = alike(found)
    yield from (f"changed there: {alike_text(group)}" for group in groups[:MOST_BESIDE])
    if len(groups) > MOST_BESIDE:
        yield f"changed there: {len(groups) - MOST_BESIDE} more"


def comparison_markdown(found: Comparison) -> str:
    """Format a comparison as Markdown, cut to the size of a comment."""
    drafts = ("\n".join(_markdown(found, most)) + "\n" for most in ROOM)
    return next(draft for most, draft in zip(ROOM, drafts, strict=True) if len(draft) <= LARGEST or not most)


def _markdown(found: Comparison, most: int) -> Iterator[str]:
    yield f"## {plain(headline(found))}"
    yield ""
    yield f"- before: {plain(_side(found.before))}"
    yield f"- after: {plain(_side(found.after))}"
    yield from (f"- {plain(note)}" for note in found.notes)
    if found.causes[:most]:
        yield ""
        yield "| cause | verdict | where | what |"
        yield "|---|---|---|---|"
    for change in found.causes[:most]:
        head = change.group.head
        fate = WORDS[change.fate] + (f" ({change.was})" if change.was else "")
        cells = fate, change.group.verdict.word, where(change.group), f"{head.check}: {head.text}"
        yield f"| {' | '.join(map(plain, cells))} |"
    if len(found.causes) > most:
        yield ""
        yield f"… and {counted(len(found.causes) - most, 'more cause')}."
    for change in found.causes[:most]:
        lines = [*symptom_texts(change.group), *_beside(change.differences)]
        if lines:
            yield ""
            yield f"<details><summary>{plain(where(change.group))}</summary>"
            yield ""
            yield from (f"- {plain(line)}" for line in lines)
            yield ""
            yield "</details>"
    groups = alike(found.differences)
    if groups[:most]:
        yield ""
        yield "| | difference |"
        yield "|---|---|"
        yield from (f"| {SIGNS[group.first.is_worse]} | {plain(alike_text(group))} |" for group in groups[:most])
    if len(groups) > most:
        yield ""
        yield f"… and {len(groups) - most} more differences."
    reasons = list(uncompared_text(found.uncompared))[:most]
    if reasons:
        yield ""
        yield "<details><summary>Not compared</summary>"
        yield ""
        yield from (f"- {plain(reason)}" for reason in reasons)
        yield ""
        yield "</details>"


def comparison_json(found: Comparison) -> str:
    document = {
        "fabric": found.fabric,
        "is_worse": found.is_worse,
        "exit_code": int(found.is_worse),
        "before": _side_document(found.before),
        "after": _side_document(found.after),
        "notes": found.notes,
        "causes": [
            {
                "fate": change.fate,
                "was": change.was,
                "verdict": change.group.verdict.word,
                "head": finding_document(change.group.head),
                "symptoms": [finding_document(one) for one in change.group.symptoms],
                "differences": [_difference_document(one) for one in change.differences],
            }
            for change in found.causes
        ],
        "differences": [_difference_document(one) for one in found.differences],
        "uncompared": [asdict(one) for one in found.uncompared],
    }
    return json.dumps(document, indent=1, allow_nan=False) + "\n"


def _side_document(side: Side) -> dict[str, Any]:
    named = {"name": side.name, "taken_s": side.taken_s, "window_s": side.window_s}
    return {**named, "devices": sorted(side.devices), "has_facts": side.snapshot is not None}


def _difference_document(one: Difference) -> dict[str, Any]:
    names = ("kind", "device", "place", "what", "was", "now", "is_worse")
    return {name: getattr(one, name) for name in names}
