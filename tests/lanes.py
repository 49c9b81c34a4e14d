"""Which part of a test runs in each lane: all of it in the lane whole, some of it in the others."""

import os
from collections.abc import Iterable
from typing import Any

import pytest
from _pytest.mark import ParameterSet

LANE = "NETKIT_LANE"
"""Set before tests are imported."""


def is_whole() -> bool:
    return os.environ.get(LANE) == "whole"


def examples(count: int) -> int:
    """The number of examples of a property: all in the lane whole, a tenth by default, a few in the lane quick."""
    shares = {"whole": 1, "quick": 50}
    return max(count // shares.get(os.environ.get(LANE, ""), 10), min(count, 5))


def daily(values: Iterable[Any], *kept: Any) -> list[ParameterSet]:
    """Values as parameters, of which the default lane runs the kept ones."""
    values = list(values)
    assert kept
    assert all(one in values for one in kept)
    return [pytest.param(value, marks=() if value in kept else pytest.mark.whole) for value in values]


def is_left_out(item: pytest.Item) -> bool:
    """Whether the default lane leaves out a test: one marked `whole`, or `in_turn(NAME)` with another value of NAME.

    Each case of a test that is marked `in_turn` runs with one of these values, the next case with the next of them.
    """
    if item.get_closest_marker("whole"):
        return True
    mark = item.get_closest_marker("in_turn")
    if mark is None:
        return False
    assert isinstance(item, pytest.Function)
    place, positions = next(iter(item.callspec.indices.values())), {}
    axes = [(_first(one.args[0]), len(one.args[1])) for one in item.iter_markers("parametrize")]
    for name, size in reversed(axes):  # the last one changes first
        place, positions[name] = divmod(place, size)
    own = positions.pop(mark.args[0])
    return sum(positions.values()) % dict(axes)[mark.args[0]] != own


def _first(names: str | Iterable[str]) -> str:
    return names.partition(",")[0] if isinstance(names, str) else next(iter(names))
