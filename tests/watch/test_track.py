"""The history of a port: bounded, with a gap where nothing was measured."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from netkit.watch.board import KEPT, Point, Track
from netkit.watch.feed import PortReading


def track(*intervals: tuple[float, float, float | None]) -> Track:
    found = Track()
    for from_s, to_s, marks in intervals:
        found.add(Point(from_s, to_s, PortReading(marks=marks)), {})
    return found


def test_each_second_is_a_column_and_a_missing_one_a_gap() -> None:
    reported = track((0, 1, 5), (1, 2, 0), (4, 5, 7))
    assert reported.peaks("marks", 5, 6, 1.0) == [None, 5, 0, None, None, 7]
    assert reported.peaks("loss", 5, 6, 1.0) == [None] * 6


def test_a_rate_over_a_long_interval_fills_all_of_it() -> None:
    assert track((0, 3, 5), (3, 4, 1)).peaks("marks", 4, 4, 1.0) == [5, 5, 5, 1]


def test_a_burst_shorter_than_a_column_is_visible() -> None:
    assert track((0, 0.2, 0), (0.2, 0.4, 9), (0.4, 1.0, 0)).peaks("marks", 1, 1, 1.0) == [9]


def test_partial_updates_make_one_interval() -> None:
    reported = Track()
    reported.add(Point(0, 1, PortReading(rx_bps=8)), {})
    reported.add(Point(0.1, 1.1, PortReading(marks=3)), {})
    assert len(reported.since(0)) == 1
    assert (reported.latest.rx_bps, reported.latest.marks) == (8, 3)


def test_a_clock_that_is_set_back_restarts_a_history() -> None:
    assert [point.to_s for point in track((10, 11, 1), (11, 12, 1), (5, 6, 2)).since(0)] == [6]


@given(st.lists(st.floats(0.5, 1.9), min_size=70, max_size=120))
def test_steady_samples_leave_no_gap_and_no_more_than_is_kept(steps: list[float]) -> None:
    reported, at_s = Track(), 0.0
    for step_s in steps:
        reported.add(Point(at_s, at_s + step_s, PortReading(marks=1)), {})
        at_s += step_s
    assert len(reported.since(0)) == KEPT
    assert reported.peaks("marks", at_s, 30, 1.0) == [1] * 30


@pytest.mark.parametrize("columns", [0, 1])
def test_any_number_of_columns_can_be_asked_for(columns: int) -> None:
    assert track((0, 1, 5)).peaks("marks", 1, columns, 1.0) == [5][:columns]
