import pytest

from netkit.facts import Facts, Observation, Sample, Snapshot
from netkit.facts.device import System
from netkit.judge.delta import CounterState, Delta, Earlier, since
from tests.judge import scenes

BUILT = scenes.fabric()
HOUR_S = 3600.0


def counted(at_s: float, count: int) -> Sample:
    return Sample(at_s, {"rx_errors": {"swp1s0": count}})


def seen(*samples: Sample, boot: str = "", uptime_s: float | None = None) -> Snapshot:
    facts = Facts(system=System("leaf01", boot=boot, uptime_s=uptime_s), counters=samples[-1].counters)
    return Snapshot(BUILT.name, samples[-1].at_s, {"leaf01": Observation("leaf01", "nvue", facts, samples)})


def delta(snapshot: Snapshot) -> tuple[float, Delta]:
    device = scenes.scene(BUILT, snapshot.devices["leaf01"]).devices["leaf01"]
    return device.window_s, device.delta("rx_errors", "swp1s0")


def test_the_window_begins_with_the_earlier_run() -> None:
    now = seen(counted(HOUR_S, 30), counted(HOUR_S + 10, 31), boot="b")
    found = since(now, {"leaf01": Earlier(counted(0, 5), "b")})
    assert delta(found) == (HOUR_S + 10, Delta(CounterState.DELTA, 26, HOUR_S + 10))


@pytest.mark.parametrize(
    ("boots", "uptime_s", "state"),
    [
        (("b", "b"), 5.0, CounterState.DELTA),
        (("b", "c"), 9 * HOUR_S, CounterState.RESET),
        (("", ""), 5.0, CounterState.RESET),
        (("b", ""), 5.0, CounterState.RESET),
        (("", ""), HOUR_S, CounterState.DELTA),
        (("", ""), HOUR_S - 30, CounterState.DELTA),
        (("", ""), None, CounterState.DELTA),
    ],
)
def test_a_restarted_device_has_no_delta_although_its_count_is_higher(
    boots: tuple[str, str], uptime_s: float | None, state: CounterState
) -> None:
    earlier, later = boots
    found = since(seen(counted(HOUR_S, 30), boot=later, uptime_s=uptime_s), {"leaf01": Earlier(counted(0, 5), earlier)})
    assert delta(found) == (HOUR_S, Delta(state, 25 if state is CounterState.DELTA else 0, HOUR_S))


def test_a_device_without_an_earlier_run_keeps_its_window() -> None:
    now = seen(counted(HOUR_S, 30), counted(HOUR_S + 10, 31))
    assert since(now, {"leaf02": Earlier(counted(0, 5))}) == now


def test_a_run_that_is_not_earlier_is_not_a_baseline() -> None:
    now = seen(counted(HOUR_S, 30))
    assert since(now, {"leaf01": Earlier(counted(HOUR_S, 5))}) == now
    assert since(now, {"leaf01": Earlier(counted(2 * HOUR_S, 5))}) == now


def test_over_a_long_window_a_lower_count_is_not_a_wrap() -> None:
    earlier = {"leaf01": Earlier(counted(0, 2**32 - 5))}
    assert delta(since(seen(counted(60, 5)), earlier))[1] == Delta(CounterState.DELTA, 10, 60)
    assert delta(since(seen(counted(2 * HOUR_S, 5)), earlier))[1] == Delta(CounterState.RESET, 0, 2 * HOUR_S)
