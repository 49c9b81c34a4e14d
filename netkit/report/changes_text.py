"""What changed since the run before: the worst first, then what is well again, then silences that ended."""

from collections.abc import Iterator, Sequence

from netkit.judge import Verdict
from netkit.report.judgement_view import Judged
from netkit.report.plan_view import counted, shown
from netkit.store import CheckState
from netkit.store.silence import SilenceEnd, silenced_keys

MOST = 100
"""So many changes are named; the others are counted."""


def changes_text(judged: Judged, changes: Sequence[CheckState], ends: Sequence[SilenceEnd] = ()) -> str:
    """Return what changed as text; nothing when nothing did but what is silenced."""
    silenced = silenced_keys(judged.judgement)
    again = {one.key: one for end in ends for one in end.again}
    heard = [one for one in changes if one.key not in {*silenced, *again} and not _is_quiet(one, judged)]
    heard += again.values()
    if not heard and not ends:
        return ""
    hidden = sum(one.key in silenced for one in changes)
    return "".join(f"{shown(line)}\n" for line in _lines(judged.fabric, heard, ends, hidden))


def _is_quiet(change: CheckState, judged: Judged) -> bool:
    """Whether something is well that nobody was to hear of."""
    silences = (one.silence for one in judged.silences if one.state in {"active", "unmatched"})
    return change.verdict is Verdict.PASS and any(one.fault is None and one.is_about(*change.key) for one in silences)


def _lines(fabric: str, changes: Sequence[CheckState], ends: Sequence[SilenceEnd], hidden: int) -> Iterator[str]:
    well = [one for one in changes if one.verdict is Verdict.PASS]
    bad = sorted((one for one in changes if one.verdict is not Verdict.PASS), key=lambda one: -one.verdict)
    parts = [f"{counted(len(bad), 'thing')} worse or otherwise" * bool(bad), f"{len(well)} well again" * bool(well)]
    parts += [f"{counted(len(ends), 'silence')} ended" * bool(ends), f"{hidden} silenced" * bool(hidden)]
    yield f"{fabric}: {', '.join(filter(None, parts))} since the last run"
    for one in (*bad, *well)[:MOST]:
        word = "well" if one.verdict is Verdict.PASS else one.verdict.word
        yield f"  {word:<5}  {one.key.id}" + (f": {one.text}" if one.text else "")
    if len(changes) > MOST:
        yield f"  … and {len(changes) - MOST} more: netkit history --checks last"
    yield from (f"  ended  {one.text}" for one in ends)
