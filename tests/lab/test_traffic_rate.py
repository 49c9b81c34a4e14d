"""How a sender reacts to congestion notifications."""

from hypothesis import given
from hypothesis import strategies as st

from netkit.lab.traffic.nic import LEAST_SHARE, FlowRate

histories = st.lists(st.booleans(), max_size=200)


def after(history: list[bool]) -> FlowRate:
    rate = FlowRate()
    for is_cut in history:
        rate = rate.cut() if is_cut else rate.recover()
    return rate


@given(histories)
def test_a_rate_stays_between_minimum_and_line_rate(history: list[bool]) -> None:
    rate = after(history)
    assert LEAST_SHARE <= rate.current <= 1
    assert LEAST_SHARE <= rate.target <= 1
    assert 0 <= rate.congestion <= 1


@given(histories)
def test_a_notification_never_speeds_up_and_silence_never_slows_down(history: list[bool]) -> None:
    rate = after(history)
    assert rate.cut().current <= rate.current <= rate.recover().current


@given(histories)
def test_every_rate_recovers_completely_without_notifications(history: list[bool]) -> None:
    rate = after(history)
    for _ in range(50):
        rate = rate.recover()
    assert rate.is_full


def test_the_first_notification_halves_the_rate() -> None:
    assert FlowRate().cut().current == 0.5


def test_a_quiet_sender_is_cut_less_deeply() -> None:
    quiet = FlowRate()
    for _ in range(20):
        quiet = quiet.recover()
    assert quiet.cut().current > 0.8


def test_recovery_halves_the_gap_five_times_and_then_goes_in_steps() -> None:
    rate = FlowRate(current=0.2, target=0.6, congestion=1.0)
    shares = []
    for _ in range(7):
        rate = rate.recover()
        shares.append(round(rate.target, 4))
    assert shares == [0.6, 0.6, 0.6, 0.6, 0.6, 0.65, 0.7]
    assert 0.6 < rate.current < 0.7
