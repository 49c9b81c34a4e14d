"""The worst ports come first, and stay in place for a while."""

from collections.abc import Mapping

from hypothesis import given
from hypothesis import strategies as st

from netkit.watch.board import Board, Row
from netkit.watch.feed import PortReading
from netkit.watch.port_severity import Level, PauseLimits, Wire, judged, natural, pauses_of, sources
from netkit.watch.session import take
from netkit.watch.view_state import key
from tests.watch.scene import BEGAN_S, OUTLINE, WIRES, board, ports, sample, storm, storm_at

rates = st.none() | st.just(0.0) | st.floats(0, 1e12)


def named(rows: tuple[Row, ...]) -> list[tuple[str, str]]:
    return [(" ".join(key(row)), row.severity.level.name.lower()) for row in rows]


def test_losses_come_before_pauses_before_marks_before_traffic() -> None:
    assert named(board(30).rows(BEGAN_S + 30.5)) == [
        ("spine01 swp1s0", "loses"),
        ("gpu01 rail0", "source"),
        ("leaf01 swp1s1", "pausing"),
        ("leaf01 swp33s0", "pausing"),
        ("leaf01 swp1s0", "paused"),
        ("gpu02 rail0", "quiet"),
    ]


def test_the_nic_that_pauses_is_first_after_one_sample() -> None:
    assert named(board(11).rows(BEGAN_S + 11.5))[0] == ("gpu01 rail0", "source")


def test_rows_stay_in_place_between_bursts() -> None:
    seen, watched = set(), Board(OUTLINE)
    for second in range(10):
        for event in storm_at(second):
            take(watched, event)
        if second > 1:
            seen.add(tuple(named(watched.rows(BEGAN_S + second + 0.5))))
    assert len(seen) <= 2, "each port may rise once"


def test_past_problems_are_forgotten_after_a_while() -> None:
    watched = Board(OUTLINE)
    for second in range(30):
        for device in OUTLINE.devices:
            lost = {f"{port}/3": min(second, 5) for port in ports(device)}
            watched.deliver(device, sample(second, {"queue_drops": lost}), BEGAN_S + second)
        if second in {5, 12}:
            assert {row.severity.level for row in watched.rows(BEGAN_S + second + 0.5)} == {Level.LOSES}
    assert {row.severity.level for row in watched.rows(BEGAN_S + 29.5)} == {Level.QUIET}


def test_a_device_without_data_is_not_called_quiet() -> None:
    rows = board(0).rows(BEGAN_S + 1)
    assert {row.severity.level for row in rows} == {Level.UNKNOWN}
    late = board(9).rows(BEGAN_S + 100)
    assert {row.reading for row in late} == {PortReading()}
    assert {row.severity.level for row in late} == {Level.UNKNOWN}


def levels(reported: Mapping[Wire, PortReading]) -> list[str]:
    limits = PauseLimits()
    found = sources({wire: (judged(one, 400, limits), pauses_of(one, limits)) for wire, one in reported.items()})
    return [one.level.name for one in found.values()]


def test_pauses_originate_where_nothing_is_paused() -> None:
    pausing, paused = PortReading(pause_out=0.3), PortReading(pause_in=0.3)
    leaf_host, _, leaf_up, spine, gpu, _ = WIRES
    found = levels({leaf_host: paused, leaf_up: pausing, spine: pausing, gpu: pausing})
    assert found == ["PAUSED", "PAUSING", "SOURCE", "SOURCE"]


def test_other_errors_of_a_paused_port_do_not_make_it_a_source() -> None:
    leaf_host, leaf_other, leaf_up, spine, gpu, _ = WIRES
    found = levels(
        {
            leaf_host: PortReading(pause_in=0.3, loss=5.0),
            leaf_other: PortReading(pause_out=0.3),
            leaf_up: PortReading(pause_out=0.3, flaps=0.1),
            spine: PortReading(pause_in=0.02, errors=1.0),
            gpu: PortReading(pause_in=0.3, pause_out=0.3),
        }
    )
    assert found == ["LOSES", "PAUSING", "FLAPS", "DAMAGED", "PAUSING"]


def test_a_flapping_link_is_not_hidden_by_pauses_but_a_source_stays_the_source() -> None:
    *_, gpu, other = WIRES
    assert levels({other: PortReading(pause_in=1.0, flaps=0.1)}) == ["FLAPS"]
    assert levels({gpu: PortReading(pause_out=1.0, flaps=0.1)}) == ["SOURCE"]


def test_pauses_are_judged_by_rate_where_no_time_is_reported() -> None:
    limits = PauseLimits()
    assert judged(PortReading(pauses_in=2000), 400, limits).level is Level.PAUSED
    assert judged(PortReading(pauses_in=200), 400, limits).level is Level.SLIGHTLY_PAUSED
    assert judged(PortReading(pauses_in=2000, pause_in=0.001), 400, limits).level is Level.QUIET


@given(
    st.lists(rates, min_size=len(PortReading._fields), max_size=len(PortReading._fields)), st.sampled_from([0, 1, 800])
)
def test_more_of_anything_is_never_better(values: list[float | None], speed_gbps: float) -> None:
    reading = PortReading(*values)
    for name in ("rx_bps", "marks", "loss", "drops", "errors", "flaps"):
        more = reading._replace(**{name: (getattr(reading, name) or 0) * 2 + 1})
        assert judged(more, speed_gbps, PauseLimits()) >= judged(reading, speed_gbps, PauseLimits())


def test_names_are_in_natural_order() -> None:
    assert sorted(["swp10", "swp2", "swp1s1", "swp1"], key=natural) == ["swp1", "swp1s1", "swp2", "swp10"]


def test_memory_does_not_grow_with_time() -> None:
    watched = Board(OUTLINE)
    for event in storm(2000):
        take(watched, event)
    row = watched.rows(BEGAN_S + 2000)[0]
    assert len(row.track.since(0)) == 64
