"""Frames as text; every screen fits whatever the terminal is."""

import unicodedata
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from netkit.watch.board import Board, BoardView, Outline
from netkit.watch.feed import Condition
from netkit.watch.frame import DETAIL_HEAD as HEAD
from netkit.watch.frame import detail, frame, unbounded
from netkit.watch.port_severity import Wire
from netkit.watch.span import ASCII, UNICODE, Glyphs, clean, fit, glyphs_for, percent, plain, short, sparkline
from netkit.watch.view_state import ViewState
from tests.watch.scene import BEGAN_S, OUTLINE, board, sample

GOLDEN = Path(__file__).parent.parent / "golden" / "watch"
CLOCK = "22:13:50"
SCREENS = {
    "quiet-80x24": (8, ViewState(), 80, 24),
    "storm-80x24": (14, ViewState(), 80, 24),
    "lossy-110x20": (30, ViewState(), 110, 20),
    "lossy-wide": (30, ViewState(), 170, 16),
    "rails": (30, ViewState(is_rails=True), 130, 16),
    "port": (30, ViewState(is_detail=True, chosen=("leaf01", "swp1s0")), 100, 30),
    "filtered": (30, ViewState(wanted="gpu rail0", is_typing=True), 80, 12),
    "chosen-and-stopped": (30, ViewState(chosen=("gpu01", "rail0"), is_paused=True, sort="name"), 80, 12),
    "tiny": (30, ViewState(), 20, 5),
}
looks = st.builds(
    ViewState,
    is_rails=st.booleans(),
    is_detail=st.booleans(),
    is_paused=st.booleans(),
    is_typing=st.booleans(),
    sort=st.sampled_from(["wrong", "traffic", "name"]),
    wanted=st.sampled_from(["", "gpu", "nothing like it", "leaf01 rail"]),
    chosen=st.none() | st.sampled_from([("leaf01", "swp1s0"), ("gone", "port")]),
)


def scene(seconds: int) -> BoardView:
    return board(seconds).view(BEGAN_S + seconds + 0.5, CLOCK)


@pytest.mark.parametrize("name", SCREENS)
def test_screens_equal_their_golden_files(name: str) -> None:
    seconds, look, width, height = SCREENS[name]
    text = plain(frame(scene(seconds), look, width, height, UNICODE))
    assert text == (GOLDEN / f"{name}.txt").read_text(encoding="utf-8")


def crowd() -> BoardView:
    """A fabric in which many devices are unreachable, slow, silent or not yet connected."""
    wires = tuple(Wire(f"leaf{number:02}", "swp1", "host", f"rail {number % 3}", 400, "", "") for number in range(40))
    watched = Board(Outline("big", wires))
    conditions = (Condition("gone", "no route to host", 1, 4), Condition("slow", "", 2.5), Condition("live", "partly"))
    for number, wire in enumerate(wires[:30]):
        watched.deliver(wire.device, sample(0, {"rx_bytes": {"swp1": 1}}), BEGAN_S)
        watched.report(wire.device, conditions[number % 3])
    return watched.view(BEGAN_S + 3, CLOCK)


SCENES = (scene(14), crowd())


@given(st.sampled_from(SCENES), looks, st.integers(0, 220), st.integers(0, 60), st.sampled_from([UNICODE, ASCII]))
def test_every_screen_fits(drawn: BoardView, look: ViewState, width: int, height: int, glyphs: Glyphs) -> None:
    lines = frame(drawn, look, width, height, glyphs)
    assert len(lines) == (height if height >= 6 and width >= 30 else min(1, height))
    assert all(sum(len(span.text) for span in line) <= width for line in lines)
    if glyphs is ASCII:
        assert plain(lines).isascii()


def test_device_texts_move_no_cursor() -> None:
    evil = "a\x1b[2J\n\t\u202e\u0301\x9b[red]宽[/red]" * 9
    watched = Board(replace(OUTLINE, fabric=evil, wires=(Wire(evil, evil, "host", evil, 1, evil, evil),)))
    watched.report(evil, Condition("gone", evil))
    watched.deliver(evil, sample(0, {"rx_bytes": {evil: 1}}), BEGAN_S)
    for look in (
        ViewState(),
        ViewState(is_rails=True),
        ViewState(is_detail=True, chosen=(evil, evil)),
        ViewState(wanted=evil),
    ):
        for line in frame(watched.view(BEGAN_S + 1, CLOCK), look, 120, 30, UNICODE):
            text = "".join(span.text for span in line)
            assert text.isprintable()
            assert not any(unicodedata.combining(char) or unicodedata.east_asian_width(char) in "WF" for char in text)
            assert len(text) <= 120


def test_group_names_move_no_cursor() -> None:
    watched = Board(replace(OUTLINE, wires=(Wire("leaf01", "swp1", "host", "rail \x1b[2J", 1, "", ""),)))
    (row,) = watched.rows(BEGAN_S)
    lines = detail(watched.view(BEGAN_S), row, 120, UNICODE)
    assert all(span.text.isprintable() for line in lines for span in line)


@pytest.mark.parametrize("now_s", [BEGAN_S + 60, BEGAN_S - 60])
def test_a_port_of_an_unreachable_device_or_one_ahead_of_the_clock_shows_no_priorities(now_s: float) -> None:
    watched = board(14)
    for moment_s, is_shown in ((BEGAN_S + 14.5, True), (now_s, False)):
        seen = watched.view(moment_s)
        row = next(one for one in seen.rows if (one.wire.device, one.wire.port) == ("leaf01", "swp1s0"))
        shown = {span.text for line in detail(seen, row, 120, UNICODE) for span in line}
        assert (HEAD in shown) is is_shown


def test_a_screen_without_a_terminal_has_every_port() -> None:
    wires = tuple(Wire("leaf01", f"swp{number}", "host", "rail 0", 400, "", "") for number in range(500))
    watched = Board(Outline("big", wires))
    assert len(unbounded(watched.view(BEGAN_S, CLOCK), ViewState(), 80, UNICODE)) == 2 + 1 + 1 + 500


def test_ports_without_data_are_not_called_healthy() -> None:
    watched = board(0)
    for second in (1, 2):
        watched.deliver("gpu01", sample(second, {"rx_bytes": {"rail0": second}}), BEGAN_S + second)
    lines = plain(frame(watched.view(BEGAN_S + 2, CLOCK), ViewState(), 80, 24, UNICODE)).splitlines()
    assert lines[1] == " 6 ports:  nothing is wrong  5 not known"


def test_many_unreachable_or_slow_devices_leave_room_for_ports() -> None:
    lines = plain(frame(crowd(), ViewState(), 80, 24, UNICODE)).splitlines()
    assert [line[:40] for line in lines[2:8]] == [
        " leaf00  gone, retried after 4 s: no rou",
        " leaf03  gone, retried after 4 s: no rou",
        " leaf06  gone, retried after 4 s: no rou",
        " … and 17 more: leaf09, leaf12, leaf15, ",
        " connecting: leaf30, leaf31, leaf32, lea",
        " polled less often, slow to answer: leaf",
    ]
    assert lines[8].startswith(" PORT")


@pytest.mark.parametrize(
    ("value", "text"),
    [(None, "–"), (0, "0"), (0.01, "<0.1"), (0.34, "0.3"), (0.96, "1"), (42.4, "42"), (999.4, "999"), (999.6, "1.00k")],
)
def test_small_numbers(value: float | None, text: str) -> None:
    assert short(value, "–") == text


@given(st.floats(0, 1e19))
def test_no_number_takes_more_than_its_cells(value: float) -> None:
    assert len(short(value, "–")) <= 5
    assert len(percent(min(1.0, value), "–")) <= 5


def test_none_little_and_much_look_different() -> None:
    assert sparkline([None, 0, 0.001, 0.5, 1, 2], 1, UNICODE) == " ▁▂▅██"
    assert sparkline([None, 0, 0.001, 1], 1, ASCII) == " _.#"


@pytest.mark.parametrize(("encoding", "glyphs"), [("utf-8", UNICODE), ("latin-1", ASCII), (None, ASCII), ("?", ASCII)])
def test_a_terminal_gets_only_what_it_supports(encoding: str | None, glyphs: Glyphs) -> None:
    assert glyphs_for(encoding) is glyphs


def test_text_is_truncated_to_its_cells() -> None:
    assert (fit("leaf01", 4), fit("x", 3), fit("x", 3, is_right=True), fit("long", 0)) == ("lea…", "x  ", "  x", "")
    assert clean("ok\x07é") == "ok?é"
