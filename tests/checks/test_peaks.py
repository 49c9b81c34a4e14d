"""Queue peaks between two readings: only those of the window count, and no watermark is cleared."""

from dataclasses import replace

import pytest

from netkit.facts import Facts, Observation, Sample
from netkit.facts.counter import place
from netkit.facts.qos import Buffer
from netkit.judge import CheckContext
from tests.checks.judging import said, skipped
from tests.judge.scenes import fabric, scene

BUILT = fabric()
PORT = BUILT.switch("leaf01").fabric_ports[0]
ECN, HEADROOM = PORT.profile.ecn, PORT.profile.headroom
AT = place(PORT.name, BUILT.lossless.roce.priority)
LONG, SHORT = ECN.max_bytes + 1, ECN.min_bytes - 1
assert HEADROOM is not None
FULL, HALF = HEADROOM.xoff_bytes, HEADROOM.xoff_bytes // 2


def looks(first: Buffer | None, last: Buffer, boots: tuple[str, str] = ("", "")) -> CheckContext:
    """A leaf whose queue was read twice; the other queues are not reported."""
    output = [{} if one is None else {AT: one} for one in (first, last)]
    samples = tuple(
        Sample(at_s, {"rx_bytes": {PORT.name: int(at_s)}}, boot, buffers)
        for at_s, boot, buffers in zip((100.0, 110.0), boots, output, strict=True)
    )
    facts = Facts(counters=samples[1].counters, buffers={AT: last})
    return scene(BUILT, Observation("leaf01", "sonic", facts, samples))


def burst(first: Buffer | None, last: Buffer, boots: tuple[str, str] = ("", "")) -> tuple[list[str], list[str]]:
    """The finding on the queue, and why it could not be judged."""
    seen = looks(first, last, boots)
    warned = [
        text
        for verdict, device, at, text in said(seen, "pfc.bursts")
        if (verdict, device, at) == ("warn", "leaf01", AT)
    ]
    return warned, [text for device, at, text in skipped(seen, "pfc.bursts") if at == AT]


TEXT = (
    f"its RoCE queue held {LONG:,} bytes in between, {SHORT:,} at most at both readings; "
    f"all is marked from {ECN.max_bytes:,}"
)
OLD = "its watermark is older than the window, and hides peaks within it; clear it on the device"


def test_a_watermark_that_rose_between_two_calm_readings_is_a_burst() -> None:
    assert burst(Buffer(SHORT, SHORT), Buffer(SHORT, LONG)) == ([TEXT], [])


def test_a_watermark_cleared_within_the_window_that_rose_again_is_a_burst() -> None:
    assert burst(Buffer(SHORT, LONG + 9), Buffer(SHORT, LONG)) == ([TEXT], [])


@pytest.mark.parametrize(
    ("first", "boots"),
    [(Buffer(SHORT, LONG), ("", "")), (None, ("", "")), (Buffer(SHORT, SHORT), ("before", "after"))],
)
def test_a_watermark_that_may_be_older_is_not_judged(first: Buffer | None, boots: tuple[str, str]) -> None:
    assert burst(first, Buffer(SHORT, LONG), boots) == ([], [OLD])


def test_a_queue_that_is_long_now_is_not_a_burst_and_a_short_one_passes() -> None:
    assert burst(Buffer(LONG, LONG), Buffer(SHORT, LONG + 1)) == ([], [])
    assert burst(Buffer(SHORT, SHORT), Buffer(SHORT, ECN.max_bytes)) == ([], [])
    assert burst(Buffer(SHORT, ECN.max_bytes), Buffer(SHORT, ECN.max_bytes)) == ([], [])


def test_current_occupancy_is_optional() -> None:
    text = f"its RoCE queue held {LONG:,} bytes in between; all is marked from {ECN.max_bytes:,}"
    assert burst(Buffer(peak_bytes=0), Buffer(peak_bytes=LONG)) == ([text], [])
    assert burst(Buffer(), Buffer()) == ([], ["the device keeps no watermark of its queue"])


def test_filling_headroom_warns_before_it_is_full() -> None:
    rose = looks(Buffer(headroom_peak_bytes=0), Buffer(headroom_peak_bytes=HALF + 1))
    text = f"{HALF + 1:,} of {FULL:,} bytes of its headroom were full, 50 %"
    assert said(rose, "pfc.headroom") == [("warn", "leaf01", AT, text)]
    less = looks(Buffer(headroom_peak_bytes=0), Buffer(headroom_peak_bytes=HALF))
    assert said(less, "pfc.headroom") == []
    tight = replace(rose, limits=rose.limits.model_copy(update={"headroom_warn_percent": 60}))
    assert said(tight, "pfc.headroom") == []
    old = looks(Buffer(headroom_peak_bytes=FULL), Buffer(headroom_peak_bytes=FULL))
    assert (said(old, "pfc.headroom"), ("leaf01", AT, OLD) in skipped(old, "pfc.headroom")) == ([], True)
    untold = looks(Buffer(SHORT, SHORT), Buffer(SHORT, SHORT))
    assert ("leaf01", AT, "the device does not report how full its headroom was") in skipped(untold, "pfc.headroom")
