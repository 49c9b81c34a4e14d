"""What a run changed, by cause: new, worse, better or gone. Pure.

`netkit check --changes` and notifications share the words and how they count.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from netkit.judge import Verdict
from netkit.judge.silence import REACHED
from netkit.store.open_cause import UNREACHED, OpenCause, OpenNow
from netkit.store.state import Key

Change = Literal["new", "worse", "better", "gone"]


@dataclass(frozen=True, slots=True)
class CauseTransition:
    """A cause that is not as it was."""

    word: Change | Literal["silenced"]
    cause: OpenCause
    """As it is now; of one that is over, as it was."""
    before: Verdict
    """Its verdict before; pass when it is new."""

    @property
    def is_over(self) -> bool:
        """Whether nothing of it counts any more."""
        return self.word in {"gone", "silenced"}


def change_of(pairs: Iterable[tuple[Verdict, Verdict]]) -> Change | None:
    """Return what became of a cause, by its verdicts before and now at each of its places; None when nothing did."""
    found = tuple(pairs)
    if not any(before for before, _ in found):
        return "new" if any(now for _, now in found) else None
    if not any(now for _, now in found):
        return "gone"
    if any(now > before for before, now in found):
        return "worse"
    return "better" if any(now < before for before, now in found) else None


def cause_changes(before: OpenNow, after: OpenNow) -> tuple[CauseTransition, ...]:
    """Return the causes that changed, what is to be repaired first before the others; those that are gone last."""
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
            yield CauseTransition("gone" if hidden.isdisjoint(one.keys) else "silenced", one, one.trouble.verdict)


def _verdicts(causes: Iterable[OpenCause]) -> Mapping[Key, Verdict]:
    return {key: verdict for one in causes for key, verdict in one.verdicts.items()}


def open_counts(states: Iterable[tuple[Key, str, Verdict]]) -> dict[str, int]:
    """Return how many causes are open by verdict, and how many devices were not reached; each state names its cause."""
    worst: dict[str, Verdict] = {}
    found: Counter[str] = Counter()
    for key, cause, verdict in states:
        if key.check == REACHED:
            found[UNREACHED] += 1
        else:
            worst[cause or key.id] = max(verdict, worst.get(cause or key.id, Verdict.PASS))
    found.update(verdict.word for verdict in worst.values())
    return dict(found)
