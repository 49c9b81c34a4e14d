"""Confidence bounds of shares and rates contain the true values."""

import random

import pytest

from netkit.judge.bound import least, least_rate, most, surely_more

TRIALS = 4000


@pytest.mark.parametrize("share", [0.01, 0.05, 0.3, 0.9])
@pytest.mark.parametrize("whole", [10, 100, 3000])
def test_the_true_share_lies_between_its_bounds(share: float, whole: int) -> None:
    drawn = random.Random(whole)  # noqa: S311  # nobody is to be surprised
    parts = [sum(drawn.random() < share for _ in range(whole)) for _ in range(TRIALS // whole * 10)]
    assert all(least(part, whole) <= share <= most(part, whole) for part in parts)


def test_more_counts_narrow_the_bounds_and_uncertainty_widens_them() -> None:
    widths = [most(whole // 5, whole) - least(whole // 5, whole) for whole in (10, 100, 1000, 10_000)]
    assert widths == sorted(widths, reverse=True)
    assert least(670, 796) > least(670, 796, 0.1) > 0.5
    assert (least(0, 0), most(0, 0)) == (0.0, 1.0)


def test_packets_possibly_in_flight_are_not_a_loss() -> None:
    assert least(2, 2) == 0
    assert least(200, 1000, 0.2) == 0


@pytest.mark.parametrize(("count", "is_more"), [(3, False), (9, False), (40, True)])
def test_a_rate_needs_more_than_a_few_events(count: int, *, is_more: bool) -> None:
    assert (least_rate(count, 10) > 1) == is_more


def test_one_share_is_surely_more_than_another_only_beyond_their_scatter() -> None:
    assert surely_more(370, 1000, 300, 1000)
    assert not surely_more(37, 100, 30, 100)
    assert not surely_more(5, 10, 0, 0)
