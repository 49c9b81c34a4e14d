from dataclasses import replace

from netkit.facts import Facts, Observation
from netkit.facts.device import System
from tests.checks.judging import results, said, skipped
from tests.judge.scenes import fabric, moved, observation, scene

BUILT = fabric()
BUSY = {"swp1s0": (0, 1_000_000)}


def leaf(facts: Facts | None = None) -> Observation:
    """A leaf: one counter of its first port was reset, one wrapped, one counts on."""
    return observation(
        "leaf01",
        facts,
        rx_bytes={"swp1s0": (5_000_000_000_000, 40), "swp1s1": (2**64 - 5, 12)},
        tx_bytes={"swp1s0": (7, 8)},
        rx_pause={"swp1s0/3": (900, 2)},
    )


def test_reset_counters_are_reported_by_port_and_wrapped_ones_are_not() -> None:
    assert said(scene(BUILT, leaf()), "counters.resets") == [
        ("warn", "leaf01", "swp1s0", "2 of its counters were reset within 10 s")
    ]
    assert results(scene(BUILT, leaf()), "counters.resets")["leaf01"].examined == 2


def test_narrow_counters_that_wrap_between_two_readings_are_not_reset() -> None:
    """Byte counters of 32 bits wrap several times a second at line rate; packets of the same port count on."""
    narrow = observation(
        "leaf01",
        rx_bytes={"swp1s0": (2_000_000_000, 900_000_000)},
        tx_bytes={"swp1s0": (1_700_000_000, 40)},
        rx_packets={"swp1s0": (5_000_000, 6_000_000)},
        tx_packets={"swp1s0": (5_000_000, 6_000_000)},
        rx_pause={"swp1s0/3": (900, 902)},
    )
    assert said(scene(BUILT, narrow), "counters.resets") == []
    text = "2 of its counters wrap between two readings; the others continue"
    assert ("leaf01", "swp1s0", text) in skipped(scene(BUILT, narrow), "counters.resets")


def test_a_reboot_within_the_window_is_reported_once_and_an_earlier_one_not_at_all() -> None:
    rebooted = Facts(system=System(uptime_s=4.0))
    assert said(scene(BUILT, leaf(rebooted)), "counters.resets") == [
        ("warn", "leaf01", "", "started 4 s ago, within the window: its counters cannot be used")
    ]
    long_ago = observation("leaf01", Facts(system=System(uptime_s=400.0)), rx_bytes=BUSY)
    assert said(scene(BUILT, long_ago), "counters.resets") == []


def test_counters_from_different_boots_give_no_deltas() -> None:
    seen = observation("leaf01", rx_bytes=BUSY)
    first, last = seen.samples
    assert said(scene(BUILT, replace(seen, samples=(first, replace(last, boot="b")))), "counters.resets") == [
        ("warn", "leaf01", "swp1s0", "1 of its counters were reset within 10 s")
    ]


def test_counters_that_stand_still_while_the_other_end_counts_are_a_warning() -> None:
    still = {"rail0": (7, 7), "rail1": (7, 7)}
    host = observation("gpu01", rx_bytes=still, tx_bytes=still)
    built = observation("leaf01", rx_bytes=BUSY, tx_bytes=BUSY)
    assert said(scene(BUILT, host, built), "counters.stuck") == [
        ("warn", "gpu01", "rail0", "its counters stand still while leaf01:swp1s0 counts")
    ]


def test_nearly_idle_or_reset_counters_are_not_stuck() -> None:
    still = {"rail0": (7, 7)}
    host = observation("gpu01", rx_bytes=still, tx_bytes=still)
    idle = {"swp1s0": (0, 5_000)}
    assert said(scene(BUILT, host, observation("leaf01", rx_bytes=idle, tx_bytes=idle)), "counters.stuck") == []
    anew = {"rail0": (7_000_000_000_000, 3)}
    reset = observation("gpu01", rx_bytes=anew, tx_bytes=anew)
    assert said(scene(BUILT, reset, observation("leaf01", rx_bytes=BUSY, tx_bytes=BUSY)), "counters.stuck") == []


def test_a_short_window_at_one_end_is_not_stuck_beside_a_long_one_at_the_other() -> None:
    still = {"rail0": (7, 7), "rail1": (7, 7)}
    host = observation("gpu01", rx_bytes=still, tx_bytes=still)
    built = moved(observation("leaf01", rx_bytes=BUSY, tx_bytes=BUSY), -3_600, 0)
    assert said(scene(BUILT, host, built), "counters.stuck") == []
