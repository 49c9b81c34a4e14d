"""The memory of silences from run to run: what each one covered, and which have ended."""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from netkit.judge import Verdict
from netkit.judge.run import Judgement
from netkit.judge.silence import Silence
from netkit.store.record import DamagedError, sound
from netkit.store.state import CheckState, Key, States, key_of, reached_key

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
    """Return the acknowledgements whose finding has passed since they were made: they no longer cover anything."""
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
    """Return the memory after a run, from the states it judged."""
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
    """Return the states without what is silenced, where anything is left."""
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
    """Return the states a silence touches: as they are without what is silenced, or as passed."""
    open_now = open_states(judgement, judged)
    keys = {key for found in _silenced_keys(judgement).values() for key in found if key in judged}
    return {key: open_now.get(key, replace(judged[key], verdict=Verdict.PASS)) for key in keys}


def silenced_keys(judgement: Judgement) -> frozenset[Key]:
    """Return the places where everything wrong is silenced."""
    counting = {key_of(one) for one in judgement.findings if one.verdict > Verdict.SKIPPED and one.silenced is None}
    return frozenset(key for found in _silenced_keys(judgement).values() for key in found) - counting


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
