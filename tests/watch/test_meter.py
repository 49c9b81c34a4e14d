"""From counts to rates: unknown ones are omitted, and a stream with partial updates gives the same."""

from hypothesis import given
from hypothesis import strategies as st

from netkit.facts import Sample
from netkit.watch.board import Meter
from netkit.watch.feed import by_port, reading

PLACES = ("swp1", "swp2", "swp3")
counts = st.dictionaries(st.sampled_from(PLACES), st.integers(0, 2**64 - 1), min_size=1)
samples = st.lists(st.tuples(st.floats(0.1, 10), counts), min_size=1, max_size=8)


def test_rates_are_per_second_of_the_samples_own_clock() -> None:
    meter = Meter()
    meter.rates(Sample(10.0, {"rx_bytes": {"swp1": 1000}, "rx_pause_us": {"swp1/3": 0}}))
    found = meter.rates(Sample(12.0, {"rx_bytes": {"swp1": 3000}, "rx_pause_us": {"swp1/3": 500_000}}))
    reported = reading(by_port(found)["swp1"], frozenset({3}))
    assert (reported.rx_bps, reported.pause_in) == (8000, 0.25)
    assert (reported.tx_bps, reported.pause_out, reported.loss) == (None, None, None)


def test_a_counter_that_wraps_continues_and_one_that_was_reset_is_unknown() -> None:
    meter = Meter()
    meter.rates(Sample(1.0, {"port_rx_pause": {"swp1": 2**32 - 10, "swp2": 5000}}))
    found = meter.rates(Sample(2.0, {"port_rx_pause": {"swp1": 20, "swp2": 3}}))["port_rx_pause"]
    assert (found["swp1"].value, found["swp2"].is_known) == (30, False)
    after = meter.rates(Sample(3.0, {"port_rx_pause": {"swp2": 8}}))["port_rx_pause"]["swp2"]
    assert (after.is_known, after.value) == (True, 5)


def test_counters_cleared_together_are_unknown_even_near_the_end_of_32_bits() -> None:
    meter = Meter()
    meter.rates(Sample(1.0, {"rx_bytes": {"swp1": 2**32 - 10}, "tx_bytes": {"swp1": 5000}}))
    found = meter.rates(Sample(2.0, {"rx_bytes": {"swp1": 20}, "tx_bytes": {"swp1": 3}}))
    assert [found[name]["swp1"].is_known for name in ("rx_bytes", "tx_bytes")] == [False, False]


def test_there_is_no_rate_across_a_reboot_or_a_clock_that_is_set_back() -> None:
    meter = Meter()
    meter.rates(Sample(1.0, {"rx_bytes": {"swp1": 5}}, "first"))
    assert meter.rates(Sample(2.0, {"rx_bytes": {"swp1": 50}}, "second"))["rx_bytes"] == {}
    assert not meter.rates(Sample(1.5, {"rx_bytes": {"swp1": 60}}, "second"))["rx_bytes"]["swp1"].is_known


def test_a_port_that_was_missing_has_a_rate_over_the_whole_gap() -> None:
    meter = Meter()
    meter.rates(Sample(0.0, {"rx_bytes": {"swp1": 0, "swp2": 0}}))
    meter.rates(Sample(1.0, {"rx_bytes": {"swp1": 10}}))
    found = meter.rates(Sample(2.0, {"rx_bytes": {"swp1": 20, "swp2": 30}}))["rx_bytes"]
    assert {place: (delta.value, delta.seconds) for place, delta in found.items()} == {"swp1": (10, 1), "swp2": (30, 2)}


@given(samples)
def test_samples_with_one_port_each_give_the_same(steps: list[tuple[float, dict[str, int]]]) -> None:
    at_once, piecewise, at_s = Meter(), Meter(), 0.0
    for step_s, reported in steps:
        at_s += step_s
        whole = at_once.rates(Sample(at_s, {"rx_bytes": reported}))["rx_bytes"]
        parts = [piecewise.rates(Sample(at_s, {"rx_bytes": {place: reported[place]}})) for place in reported]
        assert {place: delta for part in parts for place, delta in part["rx_bytes"].items()} == whole


@given(samples)
def test_no_rate_is_ever_negative(steps: list[tuple[float, dict[str, int]]]) -> None:
    meter, at_s = Meter(), 0.0
    for step_s, reported in steps:
        at_s += step_s
        assert all(delta.value >= 0 for delta in meter.rates(Sample(at_s, {"rx_bytes": reported}))["rx_bytes"].values())
