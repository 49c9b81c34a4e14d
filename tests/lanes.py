"""What of a test runs in each lane: all of it in the lane whole, a part of it in the others."""

import os
from collections.abc import Iterable
from typing import Any

import pytest
from _pytest.mark import ParameterSet

LANE = "NETKIT_LANE"
"""Set by `--whole` before tests are imported."""


def examples(count: int) -> int:
    """Return how many examples of a property are drawn: all in the lane whole, a quarter in the others."""
    return count if os.environ.get(LANE) == "whole" else max(count // 4, min(count, 10))


def daily(values: Iterable[Any], *kept: Any) -> list[ParameterSet]:
    """Return values as parameters, of which the default lane runs those that are kept."""
    values = list(values)
    assert kept
    assert all(one in values for one in kept)
    return [pytest.param(value, marks=() if value in kept else pytest.mark.whole) for value in values]
