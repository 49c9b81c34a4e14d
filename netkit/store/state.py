"""The state of each check at each place, and since when; and the states of silences."""

import json
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import NamedTuple

from netkit.judge import Finding, Verdict
from netkit.judge.run import FABRIC, CheckResult, Judgement
from netkit.judge.silence import REACHED, Silence
from netkit.store.record import DamagedError, short, sound

GONE = "it is no longer part of the fabric"
UNCHECKED = "its check no longer exists"


class Key(NamedTuple):
    """The place of a state; the same in every run."""

    check: str
    device: str
    place: str = ""

    @property
    def id(self) -> str:
        """The key as people and files write it."""
        return f"{self.check}[{self.device}]" + (f" {self.place}" if self.place else "")


@dataclass(frozen=True, slots=True)
class CheckState:
    """The state of a check at a place. One exists for every place that was ever worse than skipped."""

    key: Key
    verdict: Verdict
    since_s: float
    """The time of the first run with this verdict."""
    seen_s: float
    """The time of the last run that judged it."""
    text: str = ""


States = Mapping[Key, CheckState]
Peers = Mapping[tuple[str, str], str]
"""The cabling by design: device and port → device."""


def key_of(finding: Finding) -> Key:
    """The place of a finding."""
    return Key(short(finding.check), short(finding.device or FABRIC), short(finding.place))


def reached_key(name: str) -> Key:
    """The place of a device's reachability."""
    return Key(REACHED, short(name))


def after(before: States, judgement: Judgement, names: Iterable[str], taken_s: float) -> States:
    """The states that a run adds or changes; what it did not judge keeps its state.

    A place passes again only if it was judged and nothing was found there.
    """
    next_states = NextStates(before)
    next_states.add(judgement, names)
    return next_states.at(taken_s)


class NextStates:
    """The states after a run that is judged in parts: of each, only what matters for a state is kept."""

    def __init__(self, before: States) -> None:
        self.before = before
        self._bad: dict[Key, tuple[Verdict, str]] = {}
        self._missed: dict[Key, tuple[Verdict, str]] = {}
        self._names: set[str] = set()
        self._unreached: set[str] = set()
        self._wanted = {(key.check, device) for key in before for device in (key.device, FABRIC)}
        self._judged: dict[tuple[str, str], _Judged] = {}

    def add(self, judgement: Judgement, names: Iterable[str]) -> None:
        """Add a part of the judgement, and the devices it is about."""
        for key, (verdict, text) in _bad(judgement).items():
            if key not in self._bad or verdict > self._bad[key][0]:
                self._bad[key] = (verdict, text)
        self._missed |= {reached_key(name): (Verdict.FAIL, why) for name, why in judgement.unreached}
        self._names.update(names)
        self._unreached.update(name for name, _ in judgement.unreached)
        for one in judgement.results:
            if (one.check, one.device) in self._wanted:
                self._judged[one.check, one.device] = _Judged.of(one)

    def at(self, taken_s: float) -> States:
        """The states that the run adds or changes."""
        found, reached = {**self._bad, **self._missed}, frozenset(self._names - self._unreached)
        for key in self.before:
            if key not in found and (verdict := _verdict(key, self._judged, reached)) is not None:
                found[key] = (verdict, "")
        return {key: _next(self.before.get(key), key, verdict, text, taken_s) for key, (verdict, text) in found.items()}


@dataclass(frozen=True, slots=True)
class Extent:
    """The devices and checks that exist; states of others are over."""

    devices: Collection[str]
    """All devices of the fabric."""
    checks: Collection[str] | None = None
    """All checks; None if only some were selected."""

    def lacks(self, key: Key) -> str:
        """Why a place will never be judged again; empty if it may be."""
        if key.device != FABRIC and key.device not in self.devices:
            return GONE
        return UNCHECKED if self.checks is not None and key.check not in {REACHED, *self.checks} else ""


def over(before: States, extent: Extent, taken_s: float) -> States:
    """The bad states of devices and checks that no longer exist, ended: no run would end them."""
    bad = ((key, one) for key, one in before.items() if one.verdict is not Verdict.PASS)
    return {key: _next(one, key, Verdict.PASS, why, taken_s) for key, one in bad if (why := extent.lacks(key))}


def without_half_seen(states: States, judgement: Judgement, names: Iterable[str], peers: Peers) -> States:
    """Drop states that pass only because the other end of their cable was not seen.

    Checks of the fabric compare both ends, and find nothing if one of them is missing.
    """
    seen = {"", *_reached(names, judgement)}
    by_device = {(one.check, one.device) for one in judgement.results}
    return {
        key: one
        for key, one in states.items()
        if one.verdict is not Verdict.PASS or (key.check, key.device) in by_device or _far(key, peers) in seen
    }


def _reached(names: Iterable[str], judgement: Judgement) -> frozenset[str]:
    return frozenset(names) - {name for name, _ in judgement.unreached}


def _far(key: Key, peers: Peers) -> str:
    """The device at the other end of a port, given the port, its priority or its lane; empty without a cable."""
    return peers.get((key.device, key.place)) or peers.get((key.device, _port(key.place)), "")


def _port(place: str) -> str:
    return place.rpartition("/")[0]


class _Judged(NamedTuple):
    """The meaning of a result for places without a bad finding."""

    is_whole: bool
    """Something was judged, and nothing left out."""
    unknown: frozenset[tuple[str, str]]
    """Device and place of what could not be judged; without a place, the whole device."""

    @classmethod
    def of(cls, result: CheckResult) -> "_Judged":
        unknown = [one for one in result.findings if one.verdict in {Verdict.SKIPPED, Verdict.ERROR}]
        is_whole = bool(result.examined) and not result.left_out
        return cls(is_whole, frozenset((one.device or FABRIC, one.place) for one in unknown))

    def passes(self, key: Key) -> bool:
        """Whether a place without a finding passes."""
        around = {(key.device, key.place), (key.device, _port(key.place)), (key.device, "")}
        is_known = not around & self.unknown and all(device != FABRIC for device, _ in self.unknown)
        return self.is_whole and is_known


def _bad(judgement: Judgement) -> dict[Key, tuple[Verdict, str]]:
    found: dict[Key, tuple[Verdict, str]] = {}
    for finding in judgement.findings:
        key = key_of(finding)
        if finding.verdict > Verdict.SKIPPED and (key not in found or finding.verdict > found[key][0]):
            found[key] = (finding.verdict, finding.text)
    return found


def _verdict(key: Key, judged: Mapping[tuple[str, str], _Judged], reached: frozenset[str]) -> Verdict | None:
    """The verdict of a place without a bad finding; None if the run does not cover it."""
    if key.check == REACHED:
        return Verdict.PASS if key.device in reached else None
    result = judged.get((key.check, key.device)) or judged.get((key.check, FABRIC))
    is_reached = key.device == FABRIC or key.device in reached
    return Verdict.PASS if is_reached and result is not None and result.passes(key) else None


def _next(before: CheckState | None, key: Key, verdict: Verdict, text: str, taken_s: float) -> CheckState:
    if before is not None and before.verdict is verdict:
        return replace(before, seen_s=taken_s, text=text)
    return CheckState(key, verdict, taken_s, taken_s, text)


MOST_KEYS = 1000
"""The limit of places remembered for one silence."""
StoredSilence = tuple[str, tuple[str, ...], tuple[str, ...], str, tuple[tuple[str, str, str], ...]]


@dataclass(frozen=True, slots=True)
class KnownSilence:
    """A silence or an acknowledgement as of the last run."""

    kind: str
    checks: tuple[str, ...]
    places: tuple[str, ...]
    """Devices, and `DEVICE:PLACE`."""
    by: str
    keys: tuple[Key, ...] = ()
    """The places it silenced."""
    ended_s: float | None = None

    @property
    def about(self) -> str:
        """What it covers, in a few words."""
        return f"{', '.join(self.checks)} on {', '.join(self.places)}"


@dataclass(frozen=True, slots=True)
class SilenceEnd:
    """A silence or an acknowledgement that ended with a run."""

    id: str
    known: KnownSilence
    why: str
    again: tuple[CheckState, ...] = ()
    """The states it silenced before that count now."""

    @property
    def text(self) -> str:
        """The end in one line."""
        one = self.known
        again = f"; {len(self.again)} {'finding counts' if len(self.again) == 1 else 'findings count'} again"
        return f"{one.kind} {self.id} of {one.about} by {one.by}: {self.why}{again * bool(self.again)}"


@dataclass(frozen=True, slots=True)
class SilenceMemory:
    """What a run remembers for the next one, and what ended with it."""

    known: Mapping[str, KnownSilence]
    ends: tuple[SilenceEnd, ...] = ()


@dataclass(frozen=True, slots=True)
class SavedRun:
    """The result of saving a run."""

    changes: tuple[CheckState, ...] = ()
    """The states that changed since the run before, silenced or not."""
    ends: tuple[SilenceEnd, ...] = ()


def healed(known: Mapping[str, KnownSilence], silences: Iterable[Silence]) -> frozenset[str]:
    """The acknowledgements whose finding has passed since they were made: they no longer cover anything."""
    found = ((one, known.get(one.id)) for one in silences if one.fault is not None)
    return frozenset(
        one.id for one, before in found if before and before.ended_s is not None and one.begins_s <= before.ended_s
    )


def remembered(
    before: Mapping[str, KnownSilence],
    silences: Iterable[Silence],
    judgement: Judgement,
    judged: States,
    now_s: float,
) -> SilenceMemory:
    """The memory after a run, from the states it judged."""
    open_now = open_states(judgement, judged)
    keys = _silenced_keys(judgement)
    over = healed(before, silences := tuple(silences))
    after, ends = dict[str, KnownSilence](), []

    def end(name: str, known: KnownSilence, why: str) -> None:
        again = tuple(open_now[key] for key in known.keys if key in open_now)
        ends.append(SilenceEnd(name, known, why, again))

    for one in silences:
        was = before.get(one.id)
        now = KnownSilence(one.kind, one.checks, tuple(map(str, one.subjects)), one.by)
        if one.id in over and was is not None:
            after[one.id] = was
        elif one.is_over(now_s):
            if was is not None and was.ended_s is None:
                end(one.id, was, "its time is over")
            after[one.id] = replace(now, ended_s=now_s)
        elif one.fault is not None and _is_well(one, judged):
            end(one.id, was or now, "its finding is gone")
            after[one.id] = replace(now, ended_s=now_s)
        elif one.is_active(now_s):
            unseen = () if was is None or was.ended_s is not None else (key for key in was.keys if key not in judged)
            after[one.id] = replace(now, keys=tuple(sorted({*keys.get(one.id, ()), *unseen}))[:MOST_KEYS])
    for name in before.keys() - after.keys():
        if before[name].ended_s is None:
            end(name, before[name], "it was removed or moved")
    return SilenceMemory(after, tuple(sorted(ends, key=lambda one: one.id)))


def open_states(judgement: Judgement, judged: States) -> Mapping[Key, CheckState]:
    """The states without what is silenced, where anything is left."""
    found: dict[Key, CheckState] = {}
    for finding in judgement.findings:
        key = key_of(finding)
        is_worst = key not in found or finding.verdict > found[key].verdict
        if finding.verdict > Verdict.SKIPPED and finding.silenced is None and key in judged and is_worst:
            found[key] = replace(judged[key], verdict=finding.verdict, text=finding.text)
    excused = {name for name, _ in judgement.excused}
    missed = (reached_key(name) for name, _ in judgement.unreached if name not in excused)
    return {**found, **{key: judged[key] for key in missed if key in judged}}


def silenced_states(judgement: Judgement, judged: States) -> Mapping[Key, CheckState]:
    """The states a silence touches: as they are without what is silenced, or as passed."""
    open_now = open_states(judgement, judged)
    keys = {key for found in _silenced_keys(judgement).values() for key in found if key in judged}
    return {key: open_now.get(key, replace(judged[key], verdict=Verdict.PASS)) for key in keys}


def _silenced_keys(judgement: Judgement) -> Mapping[str, set[Key]]:
    found: dict[str, set[Key]] = {}
    for finding in judgement.silenced:
        if finding.silenced is not None:
            found.setdefault(finding.silenced.id, set()).add(key_of(finding))
    for name, mark in judgement.excused:
        found.setdefault(mark.id, set()).add(reached_key(name))
    return found


def _is_well(one: Silence, judged: States) -> bool:
    """Whether the acknowledged finding was looked for and is gone."""
    subject = one.subjects[0]
    state = judged.get(Key(one.checks[0], subject.device, subject.place))
    return state is not None and state.verdict is Verdict.PASS


def silence_data(known: KnownSilence) -> str:
    """Encode what is remembered."""
    return json.dumps([known.kind, known.checks, known.places, known.by, known.keys])


def silence_of(data: str, ended_s: float | None) -> KnownSilence:
    """Decode what is remembered."""
    what = "row of a silence"
    try:
        plain = json.loads(data)
    except (ValueError, RecursionError):
        raise DamagedError(f"the {what} is damaged") from None
    kind, checks, places, by, keys = sound(plain, StoredSilence, what)
    return KnownSilence(kind, checks, places, by, tuple(Key(*key) for key in keys), ended_s)
