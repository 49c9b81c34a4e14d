from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from netkit.facts import Observation, Sample
from netkit.judge import Seen
from netkit.judge.delta import Delta, State, deltas
from tests.judge.scenes import fabric, observation, scene

COUNT = st.integers(0, 2**64 - 1)


def between(earlier: int, later: int, name: str = "rx_bytes") -> Delta:
    samples = (Sample(5.0, {name: {"p": earlier}}), Sample(15.0, {name: {"p": later}}))
    return deltas(name, samples)["p"]


@pytest.mark.parametrize(
    ("name", "earlier", "later", "expected"),
    [
        ("rx_bytes", 7, 7, Delta(State.DELTA, 0, 10.0)),
        ("rx_bytes", 7, 107, Delta(State.DELTA, 100, 10.0)),
        ("rx_bytes", 2**32 - 20, 5, Delta(State.DELTA, 25, 10.0)),
        ("rx_bytes", 2**64 - 1, 1, Delta(State.DELTA, 2, 10.0)),
        ("rx_bytes", 2**33, 5, Delta(State.RESET, 0, 10.0)),
        ("rx_bytes", 2**31, 5, Delta(State.RESET, 0, 10.0)),
        ("rx_bytes", 1000, 999, Delta(State.RESET, 0, 10.0)),
        ("out_of_sequence", 2**32 - 2**29, 2**28, Delta(State.DELTA, 2**29 + 2**28, 10.0)),
        ("out_of_sequence", 2**32 - 2**29, 2**31 + 2**29, Delta(State.RESET, 0, 10.0)),
        ("out_of_sequence", 2**30, 3, Delta(State.RESET, 0, 10.0)),
        ("a counter of the user's own", 1, 4, Delta(State.DELTA, 3, 10.0)),
    ],
)
def test_what_a_counter_added(name: str, earlier: int, later: int, expected: Delta) -> None:
    assert between(earlier, later, name) == expected


def test_one_sample_is_a_baseline() -> None:
    assert deltas("rx_bytes", (Sample(5.0, {"rx_bytes": {"p": 3}}),)) == {"p": Delta(State.BASELINE)}


def test_what_the_first_sample_lacked_is_a_baseline_and_what_the_last_one_lacks_has_failed() -> None:
    samples = (Sample(5.0, {"rx_bytes": {"gone": 3}}), Sample(15.0, {"rx_bytes": {"come": 4}}))
    assert deltas("rx_bytes", samples) == {
        "come": Delta(State.BASELINE, 0, 10.0),
        "gone": Delta(State.FAILED, 0, 10.0),
    }


def test_of_a_device_that_broke_off_counters_have_failed_and_are_neither_missing_nor_a_baseline() -> None:
    first = Sample(5.0, {"rx_bytes": {"swp1s0": 3}})
    broken_off = observation("leaf01")
    for samples in ((first,), ()):
        lost = replace(broken_off, samples=samples, failure="the connection was lost")
        assert seen(lost).delta("rx_bytes", "swp1s0") == Delta(State.FAILED)
        assert seen(replace(lost, failure="")).delta("rx_bytes", "swp1s0").state is not State.FAILED


def seen(one: Observation) -> Seen:
    """Return one device of a scene."""
    return scene(fabric(), one).devices[one.device]


@given(COUNT, COUNT)
def test_a_delta_is_never_negative_and_unknown_ones_are_zero(earlier: int, later: int) -> None:
    found = between(earlier, later)
    assert found.value >= 0
    assert found.is_known or found.value == 0
    assert found.is_known or later < earlier


@given(COUNT, st.integers(0, 2**20))
def test_a_counter_that_runs_over_its_end_loses_nothing(earlier: int, added: int) -> None:
    found = between(earlier, (earlier + added) % 2**64)
    assert found == Delta(State.DELTA, added, 10.0)
