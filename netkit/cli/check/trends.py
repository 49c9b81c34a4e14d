"""How things went from run to run, from the store: the small charts of a report."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from netkit.facts import Snapshot
from netkit.judge.run import Judgement
from netkit.report.page import Tally, Trends, trend
from netkit.store import CheckRun
from netkit.store.measurement import StoredHistory

if TYPE_CHECKING:
    from netkit.store.store import Store

MOST_RUNS = 200


def trends_of(store: "Store", run: CheckRun, judgement: Judgement) -> Trends:
    """Return how runs went up to a stored one, and what they and it have measured."""
    source = run.source
    known = [one for one in store.runs(source) if one.taken_s <= run.taken_s]
    just_after = Snapshot(source.fabric, run.taken_s + 1, {})
    history = StoredHistory(lambda *about: store.readings(source, *about), just_after)
    return Trends(tallies(known[:MOST_RUNS]), trend.series(judgement, history))


def tallies(runs: Sequence[CheckRun]) -> tuple[Tally, ...]:
    """Return how runs came out, the earliest first."""
    return tuple(
        Tally(
            one.name,
            one.taken_s,
            one.verdict,
            one.counts.failures,
            one.counts.warnings,
            one.counts.errors,
            one.counts.examined,
            one.counts.unreached,
        )
        for one in reversed(runs)
    )
