"""Damping: every state that lasts is notified exactly once, and none is lost."""

from collections.abc import Sequence
from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from netkit.judge import Verdict
from netkit.notify.event import FlapLimits, Kind, NotifiedState, step

VERDICTS = st.sampled_from([Verdict.PASS, Verdict.WARN, Verdict.FAIL])
LIMITS = st.builds(
    FlapLimits,
    changes=st.integers(1, 4),
    window_s=st.sampled_from([600.0, 3600.0]),
    calm_s=st.sampled_from([300.0, 900.0]),
)
ROUNDS = st.lists(st.tuples(VERDICTS, st.integers(1, 900)), max_size=60)
"""The verdict of each run, and the seconds since the previous one."""
News = list[tuple[Kind, Verdict, float]]


def reported(rounds: Sequence[tuple[Verdict, int]], limits: FlapLimits) -> tuple[News, NotifiedState, float]:
    """The notifications of rounds, the state after them, and the time of the last one."""
    known, news, at_s = NotifiedState(), News(), 0.0
    for verdict, after_s in rounds:
        at_s += after_s
        known, kind = step(known, verdict, at_s, limits)
        news += [(kind, verdict, at_s)] if kind else []
    return news, known, at_s


@given(ROUNDS, LIMITS)
def test_a_state_that_lasts_is_notified_exactly_once(rounds: Sequence[tuple[Verdict, int]], limits: FlapLimits) -> None:
    last = rounds[-1][0] if rounds else Verdict.PASS
    lasting = [*rounds, *[(last, 300)] * 12]
    news, known, _ = reported(lasting, limits)
    assert (known.verdict, known.now, known.is_flapping) == (last, last, False)
    final = [verdict for kind, verdict, _ in news if kind != "flapping"]
    assert (final[-1] if final else Verdict.PASS) is last
    assert reported([*lasting, *[(last, 300)] * 50], limits)[0] == news


@given(ROUNDS, LIMITS)
def test_the_same_state_is_never_notified_twice_in_a_row(
    rounds: Sequence[tuple[Verdict, int]], limits: FlapLimits
) -> None:
    news = [("changed", Verdict.PASS, 0.0), *reported(rounds, limits)[0]]
    for (before, verdict, _), (kind, now, _) in pairwise(news):
        assert (before == "flapping") is (kind == "settled" or (kind == "flapping" and before == "flapping"))
        assert kind != "changed" or verdict is not now


@given(ROUNDS)
def test_without_flapping_each_change_is_notified_immediately(rounds: Sequence[tuple[Verdict, int]]) -> None:
    found = [Verdict.PASS, *(verdict for verdict, _ in rounds)]
    changes = [now for before, now in pairwise(found) if before is not now]
    news = reported(rounds, FlapLimits(changes=1000))[0]
    assert [verdict for _, verdict, _ in news] == changes
    assert {kind for kind, _, _ in news} <= {"changed"}


@given(ROUNDS, st.integers(1, 4))
def test_no_window_has_more_notifications_than_allowed(rounds: Sequence[tuple[Verdict, int]], most: int) -> None:
    limits = FlapLimits(changes=most, window_s=900, calm_s=900)
    changed = [at_s for kind, _, at_s in reported(rounds, limits)[0] if kind == "changed"]
    for at_s in changed:
        assert sum(at_s - limits.window_s < one <= at_s for one in changed) <= limits.changes


def test_too_many_changes_are_flapping_until_the_state_is_stable() -> None:
    limits = FlapLimits(changes=2, window_s=3600, calm_s=900)
    bad, well = Verdict.FAIL, Verdict.PASS
    news, _, _ = reported(
        [(bad, 300), (well, 300), (bad, 300), (well, 300), (bad, 300), (bad, 600), (bad, 300)], limits
    )
    assert news == [
        ("changed", bad, 300.0),
        ("changed", well, 600.0),
        ("flapping", bad, 900.0),
        ("settled", bad, 2400.0),
    ]


def test_a_worse_state_is_notified_at_once_while_flapping() -> None:
    limits = FlapLimits(changes=2, window_s=3600, calm_s=900)
    dim, bad, well = Verdict.WARN, Verdict.FAIL, Verdict.PASS
    found = [(dim, 300), (well, 300), (dim, 300), (bad, 300), (dim, 300), (bad, 300), (bad, 900)]
    news, known, _ = reported(found, limits)
    assert news == [
        ("changed", dim, 300.0),
        ("changed", well, 600.0),
        ("flapping", dim, 900.0),
        ("flapping", bad, 1200.0),
        ("settled", bad, 2700.0),
    ]
    assert known == NotifiedState(bad, bad, bad)


def test_a_change_from_the_future_does_not_keep_a_state_flapping() -> None:
    limits, ahead_s = FlapLimits(changes=1, window_s=600, calm_s=300), 1e6
    known = NotifiedState()
    for at_s, verdict in ((0, Verdict.FAIL), (ahead_s, Verdict.PASS), (ahead_s, Verdict.FAIL)):
        known, kind = step(known, verdict, at_s, limits)
    assert (known.is_flapping, kind) == (True, "flapping")
    found = [step(known, Verdict.FAIL, 100, limits)]
    found += [step(found[0][0], Verdict.FAIL, at_s, limits) for at_s in (399, 400)]
    assert [kind for _, kind in found] == [None, None, "settled"]
