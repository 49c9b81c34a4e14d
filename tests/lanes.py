"""Which part of a test runs in each lane: all of it in the lane whole, some of it in the others."""

import os
from collections.abc import Iterable
from typing import Any

import pytest
from _pytest.mark import ParameterSet

LANE = "NETKIT_LANE"
"""Set by `--whole` before tests are imported."""


def is_whole() -> bool:
    return os.environ.get(LANE) == "whole"


def examples(count: int) -> int:
    """The number of examples of a property: all in the lane whole, a quarter in the others."""
    return count if is_whole() else max(count // 4, min(count, 5))


def daily(values: Iterable[Any], *kept: Any) -> list[ParameterSet]:
    """Values as parameters, of which the default lane runs the kept ones."""
    values = list(values)
    assert kept
    assert all(one in values for one in kept)
    return [pytest.param(value, marks=() if value in kept else pytest.mark.whole) for value in values]
