"""What stands otherwise than after the run before: the worst first, then what is well again."""

from collections.abc import Iterator, Sequence

from netkit.judge import Verdict
from netkit.report.plan_view import counted, shown
from netkit.store import CheckState

MOST = 100
"""So many changes are named; the others are counted."""


def changes_text(fabric: str, changes: Sequence[CheckState]) -> str:
    """Return what changed as text; nothing when nothing did."""
    return "".join(f"{shown(line)}\n" for line in _lines(fabric, changes)) if changes else ""


def _lines(fabric: str, changes: Sequence[CheckState]) -> Iterator[str]:
    well = [one for one in changes if one.verdict is Verdict.PASS]
    bad = sorted((one for one in changes if one.verdict is not Verdict.PASS), key=lambda one: -one.verdict)
    parts = [f"{counted(len(bad), 'thing')} worse or otherwise" * bool(bad), f"{len(well)} well again" * bool(well)]
    yield f"{fabric}: {', '.join(filter(None, parts))} since the last run"
    for one in (*bad, *well)[:MOST]:
        word = "well" if one.verdict is Verdict.PASS else one.verdict.word
        yield f"  {word:<5}  {one.key.id}" + (f": {one.text}" if one.text else "")
    if len(changes) > MOST:
        yield f"  … and {len(changes) - MOST} more: netkit history --checks last"
