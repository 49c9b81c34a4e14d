from collections.abc import Mapping
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from netkit.facts import Observation, Sample
from netkit.judge import DeviceContext
from netkit.judge.delta import CounterState, Delta, deltas
from tests.judge.scenes import fabric, observation, scene

COUNT = st.integers(0, 2**64 - 1)


def between(earlier: int, later: int, name: str = "rx_bytes") -> Delta:
    samples = (Sample(5.0, {name: {"p": earlier}}), Sample(15.0, {name: {"p": later}}))
    return deltas(name, samples)["p"]


@pytest.mark.parametrize(
    ("name", "earlier", "later", "expected"),
    [
        ("rx_bytes", 7, 7, Delta(CounterState.DELTA, 0, 10.0)),
        ("rx_bytes", 7, 107, Delta(CounterState.DELTA, 100, 10.0)),
        ("rx_bytes", 2**32 - 20, 5, Delta(CounterState.DELTA, 25, 10.0)),
        ("rx_bytes", 2**64 - 1, 1, Delta(CounterState.DELTA, 2, 10.0)),
        ("rx_bytes", 2**33, 5, Delta(CounterState.RESET, 0, 10.0)),
        ("rx_bytes", 2**31, 5, Delta(CounterState.RESET, 0, 10.0)),
        ("rx_bytes", 1000, 999, Delta(CounterState.RESET, 0, 10.0)),
        ("out_of_sequence", 2**32 - 2**29, 2**28, Delta(CounterState.DELTA, 2**29 + 2**28, 10.0)),
        ("out_of_sequence", 2**32 - 2**29, 2**31 + 2**29, Delta(CounterState.RESET, 0, 10.0)),
        ("out_of_sequence", 2**30, 3, Delta(CounterState.RESET, 0, 10.0)),
        ("a counter of the user's own", 1, 4, Delta(CounterState.DELTA, 3, 10.0)),
    ],
)
def test_the_delta_of_a_counter(name: str, earlier: int, later: int, expected: Delta) -> None:
    assert between(earlier, later, name) == expected


def test_one_sample_is_a_baseline() -> None:
    assert deltas("rx_bytes", (Sample(5.0, {"rx_bytes": {"p": 3}}),)) == {"p": Delta(CounterState.BASELINE)}


def test_a_counter_missing_first_is_a_baseline_and_one_missing_last_has_failed() -> None:
    samples = (Sample(5.0, {"rx_bytes": {"gone": 3}}), Sample(15.0, {"rx_bytes": {"come": 4}}))
    assert deltas("rx_bytes", samples) == {
        "come": Delta(CounterState.BASELINE, 0, 10.0),
        "gone": Delta(CounterState.FAILED, 0, 10.0),
    }


def test_counters_that_count_nothing_share_their_deltas() -> None:
    """Most counters count errors: a device of 64 ports has thousands of them."""
    same, more = {"swp1s0": 3, "swp1s1": 5}, {"swp1s0": 4, "swp1s1": 5}
    first = Sample(5.0, {"rx_errors": same, "tx_errors": same, "rx_bytes": same, "rx_drops": {"swp1s0": 3}})
    last = Sample(15.0, {"rx_errors": dict(same), "tx_errors": same, "rx_bytes": more, "rx_drops": {"swp1s0": 3}})
    device = seen(replace(observation("leaf01"), samples=(first, last)))
    still, counted = Delta(CounterState.DELTA, 0, 10.0), Delta(CounterState.DELTA, 1, 10.0)
    assert device.deltas("rx_errors") == {"swp1s0": still, "swp1s1": still}
    assert device.deltas("tx_errors") is device.deltas("rx_errors")
    assert device.deltas("rx_bytes") == {"swp1s0": counted, "swp1s1": still}
    assert device.deltas("rx_drops") == {"swp1s0": still}


def test_counters_of_a_lost_device_have_failed_and_are_neither_missing_nor_a_baseline() -> None:
    first = Sample(5.0, {"rx_bytes": {"swp1s0": 3}})
    broken_off = observation("leaf01")
    for samples in ((first,), ()):
        lost = replace(broken_off, samples=samples, failure="the connection was lost")
        assert seen(lost).delta("rx_bytes", "swp1s0") == Delta(CounterState.FAILED)
        assert seen(replace(lost, failure="")).delta("rx_bytes", "swp1s0").state is not CounterState.FAILED


def seen(one: Observation) -> DeviceContext:
    """One device of a snapshot."""
    return scene(fabric(), one).devices[one.device]


@given(COUNT, COUNT)
def test_a_delta_is_never_negative_and_unknown_ones_are_zero(earlier: int, later: int) -> None:
    found = between(earlier, later)
    assert found.value >= 0
    assert found.is_known or found.value == 0
    assert found.is_known or later < earlier


@given(COUNT, st.integers(0, 2**20))
def test_a_counter_that_wraps_loses_nothing(earlier: int, added: int) -> None:
    found = between(earlier, (earlier + added) % 2**64)
    assert found == Delta(CounterState.DELTA, added, 10.0)


COUNTED = ("rx_bytes", "tx_bytes", "rx_drops", "out_of_buffer", "rx_pause", "queue_drops", "fec_bin")
SMALL = st.integers(0, 2**20)
JUST_BELOW = st.integers(2**32 - 2**27, 2**32 - 1)


def at(name: str) -> str:
    return "swp1/3" if name in {"rx_pause", "queue_drops", "fec_bin"} else "swp1"


def window(counts: Mapping[str, tuple[int, int]]) -> tuple[Sample, Sample]:
    first, last = ({name: {at(name): both[end]} for name, both in counts.items()} for end in (0, 1))
    return Sample(5.0, first), Sample(15.0, last)


@given(st.sampled_from(COUNTED), JUST_BELOW, st.dictionaries(st.sampled_from(COUNTED), SMALL, min_size=2), SMALL)
def test_counters_of_a_port_cleared_together_have_counted_nothing(
    name: str, high: int, others: Mapping[str, int], since: int
) -> None:
    cleared = {other: (since + 1 + count, since) for other, count in others.items()} | {name: (high, since)}
    samples = window(cleared)
    assert {deltas(one, samples)[at(one)].state for one in cleared} == {CounterState.RESET}


@given(st.sampled_from(COUNTED), JUST_BELOW, st.dictionaries(st.sampled_from(COUNTED), SMALL), SMALL)
def test_a_32_bit_counter_that_wraps_beside_others_that_count_on_loses_nothing(
    name: str, high: int, others: Mapping[str, int], added: int
) -> None:
    counting = {other: (count, count + added) for other, count in others.items()}
    samples = window(counting | {name: (high, (high + added) % 2**32)})
    assert deltas(name, samples)[at(name)] == Delta(CounterState.DELTA, added, 10.0)


def test_two_counters_of_a_port_that_wrap_together_lose_nothing() -> None:
    wide = {"swp1": 2**64 - 20}
    first = {"tx_bytes": wide, "rx_bytes": wide, "rx_drops": {"swp1": 4}}
    last = {"tx_bytes": {"swp1": 80}, "rx_bytes": {"swp1": 30}, "rx_drops": {"swp1": 4}}
    samples = (Sample(0.0, first), Sample(10.0, last))
    assert [deltas(name, samples)["swp1"].value for name in ("tx_bytes", "rx_bytes")] == [100, 50]
    cleared = (Sample(0.0, first), Sample(10.0, {**last, "rx_drops": {"swp1": 0}}))
    assert deltas("tx_bytes", cleared)["swp1"].state is CounterState.RESET


@pytest.mark.parametrize(
    ("name", "beside", "state"),
    [
        ("rx_drops", {}, CounterState.DELTA),
        ("rx_drops", {"rx_bytes": {"swp1": 2**33}}, CounterState.RESET),
        ("rx_drops", {"rx_bytes": {"swp2": 2**33}}, CounterState.DELTA),
        ("out_of_buffer", {"rx_bytes": {"swp1": 2**33}}, CounterState.DELTA),
    ],
)
def test_a_counter_among_64_bit_ones_does_not_wrap_at_32_bits(
    name: str, beside: Mapping[str, Mapping[str, int]], state: CounterState
) -> None:
    first, last = ({**beside, name: {"swp1": count}} for count in (2**32 - 5, 7))
    assert deltas(name, (Sample(5.0, first), Sample(15.0, last)))["swp1"].state is state
