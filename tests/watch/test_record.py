"""A recording has everything that was drawn, however it ended."""

import gzip
import json
import resource
import zlib
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from netkit.errors import NetkitError
from netkit.terminal.screen import clock
from netkit.watch.board import Board
from netkit.watch.feed import Condition
from netkit.watch.frame import frame
from netkit.watch.session import Desk, Record, RecordedEvent, RecordError, Replay, read, take
from netkit.watch.span import UNICODE
from netkit.watch.view_state import ViewState
from tests.watch.scene import BEGAN_S, OUTLINE, storm, storm_at

NAMES = ("watch.jsonl", "watch.jsonl.gz")
EVENTS = list(storm(4))


def written(path: Path, events: list[RecordedEvent]) -> bytes:
    record = Record(path, OUTLINE)
    for event in events:
        record.add(event)
    record.close()
    return path.read_bytes()


@pytest.fixture(name="folder", scope="module")
def folder_of_module(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("records")


@pytest.fixture(name="whole", scope="module", params=NAMES)
def whole_record(request: pytest.FixtureRequest, folder: Path) -> tuple[str, bytes]:
    return request.param, written(folder / f"whole-{request.param}", EVENTS)


@pytest.mark.parametrize("name", NAMES)
def test_a_recording_survives_a_round_trip(tmp_path: Path, name: str) -> None:
    written(tmp_path / name, EVENTS)
    outline, events = read(tmp_path / name)
    assert outline == OUTLINE
    assert list(events) == EVENTS


def head_bytes(name: str, content: bytes) -> int:
    """The length of the first line of a recording."""
    if not name.endswith(".gz"):
        return content.index(b"\n") + 1
    return next(kept for kept in range(len(content)) if b"\n" in zlib.decompressobj(31).decompress(content[:kept]))


@given(data=st.data())
def test_a_recording_truncated_anywhere_is_read_up_to_there(
    data: st.DataObject, whole: tuple[str, bytes], folder: Path
) -> None:
    name, content = whole
    kept = data.draw(st.integers(0, len(content)))
    path = folder / f"cut-{name}"
    path.write_bytes(content[:kept])
    if kept < head_bytes(name, content):
        with pytest.raises(NetkitError, match="is not a record of netkit watch"):
            read(path)
        return
    _, events = read(path)
    reported = list(events)
    assert reported == EVENTS[: len(reported)]
    assert len(reported) == len(EVENTS) or kept < len(content)


@pytest.mark.parametrize("name", NAMES)
def test_lines_are_written_before_the_recording_is_closed(tmp_path: Path, name: str) -> None:
    record = Record(tmp_path / name, OUTLINE)
    record.add(EVENTS[0])
    assert list(read(tmp_path / name)[1]) == EVENTS[:1]
    record.close()


def test_an_existing_file_is_never_overwritten(tmp_path: Path) -> None:
    path = tmp_path / "watch.jsonl"
    path.write_text("mine")
    with pytest.raises(NetkitError, match="exists already"):
        Record(path, OUTLINE)
    assert path.read_text() == "mine"


@pytest.mark.parametrize(
    ("content", "what"),
    [
        (b"", "is not a record"),
        (b"[]\n", "is not a record"),
        (b"{}\n", "is not a record"),
        (b"\xff\xfe\n", "is not a record"),
        (b'{"netkit_watch": 9}\n', "format 9"),
        (b"\x1f\x8b" + b"nothing" * 9, "is damaged"),
        (gzip.compress(b"[[]]\n", mtime=0), "is not a record"),
    ],
)
def test_a_malformed_recording_is_refused(tmp_path: Path, content: bytes, what: str) -> None:
    path = tmp_path / "watch.jsonl"
    path.write_bytes(content)
    with pytest.raises(NetkitError, match=what):
        read(path)


def test_a_malformed_line_is_reported_with_its_number(tmp_path: Path) -> None:
    path = tmp_path / "watch.jsonl"
    path.write_bytes(written(tmp_path / "good.jsonl", EVENTS[:1]) + b'{"device": 1}\n')
    with pytest.raises(NetkitError, match=r"watch\.jsonl:3: cannot be read"):
        list(read(path)[1])


GOOD: dict[str, Any] = {"heard_s": BEGAN_S, "device": "leaf01", "at_s": BEGAN_S}


@pytest.mark.parametrize(
    "reported",
    [
        GOOD | {"heard_s": float("inf"), "counters": {}},
        GOOD | {"heard_s": 10**400, "counters": {}},
        GOOD | {"at_s": float("nan"), "counters": {}},
        GOOD | {"at_s": 1e15, "counters": {}},
        GOOD | {"counters": {"rx_bytes": {"swp1s0": -1}}},
        GOOD | {"counters": {"rx_bytes": {"swp1s0": 1 << 64}}},
        GOOD | {"counters": {"rx_pause": {"swp1s0": 1}}},
        GOOD | {"condition": {"state": "lost", "why": "", "every_s": 1, "again_s": 0}},
        GOOD | {"condition": {"state": "gone", "why": 1, "every_s": [], "again_s": 0}},
        GOOD | {"condition": {"state": "gone", "why": "", "every_s": 1, "again_s": 10**400}},
    ],
)
def test_impossible_values_are_refused(tmp_path: Path, reported: dict[str, Any]) -> None:
    path = tmp_path / "watch.jsonl"
    path.write_bytes(written(tmp_path / "good.jsonl", []) + json.dumps(reported).encode() + b"\n")
    with pytest.raises(NetkitError, match=r"watch\.jsonl:2: cannot be read"):
        list(read(path)[1])


NUMBERS = st.one_of(st.integers(-5, 5), st.floats(), st.sampled_from([10**400, -1, 1 << 64, BEGAN_S, 1e15]))
ANYTHING = st.recursive(
    st.one_of(st.none(), st.booleans(), NUMBERS, st.text(max_size=5)),
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(st.text(max_size=5), inner, max_size=3)),
    max_leaves=6,
)
PLACES = st.dictionaries(st.sampled_from(["swp1s0", "swp1s0/3", "swp1s0/x", "/", ""]), NUMBERS | ANYTHING, max_size=3)
LINES = ANYTHING | st.fixed_dictionaries(
    {"heard_s": NUMBERS | ANYTHING, "device": st.just("leaf01") | ANYTHING},
    optional={
        "at_s": NUMBERS | ANYTHING,
        "boot": ANYTHING,
        "counters": st.dictionaries(st.sampled_from(["rx_bytes", "rx_pause", "queue_drops", "x"]), PLACES) | ANYTHING,
        "condition": ANYTHING
        | st.fixed_dictionaries(
            {
                "state": st.sampled_from(["live", "gone", "x"]) | ANYTHING,
                "why": ANYTHING,
                "every_s": NUMBERS | ANYTHING,
                "again_s": NUMBERS | ANYTHING,
            }
        ),
    },
)


@given(st.lists(LINES, max_size=4), st.none() | st.tuples(st.sampled_from(["limits", "wires", "interval_s"]), ANYTHING))
def test_any_lines_are_drawn_or_refused(folder: Path, lines: list[Any], worse: tuple[str, Any] | None) -> None:
    path = folder / "any.jsonl"
    (folder / "head.jsonl").unlink(missing_ok=True)
    head = json.loads(written(folder / "head.jsonl", []))
    head |= dict([worse]) if worse else {}
    path.write_text("".join(json.dumps(line) + "\n" for line in [head, *lines]))
    with suppress(RecordError):
        outline, events = read(path)
        board = Board(outline)
        for event in events:
            take(board, event)
            scene = board.view(event.heard_s, clock(event.heard_s))
            for look in (ViewState(), ViewState(is_rails=True), ViewState(is_detail=True, chosen=("leaf01", "swp1s0"))):
                frame(scene, look, 100, 30, UNICODE)


def tell(desk: Desk, event: RecordedEvent) -> None:
    if isinstance(event.what, Condition):
        desk.report(event.device, event.what)
    else:
        desk.deliver(event.device, event.what)


@pytest.mark.parametrize("name", NAMES)
def test_a_replay_draws_the_same(tmp_path: Path, name: str) -> None:
    moment = [BEGAN_S]
    live, record = Board(OUTLINE), Record(tmp_path / name, OUTLINE)
    desk = Desk(live, record, lambda: moment[0])
    drawn = {}
    for second in range(25):
        for event in storm_at(second):
            moment[0] = event.heard_s
            tell(desk, event)
        now_s = BEGAN_S + second + 0.5
        drawn[now_s] = frame(live.view(now_s, "now"), ViewState(), 100, 30, UNICODE)
    record.close()
    again = Board(OUTLINE)
    replay = Replay(again, read(tmp_path / name)[1])
    for now_s, lines in drawn.items():
        replay.advance(now_s)
        assert frame(again.view(now_s, "now"), ViewState(), 100, 30, UNICODE) == lines
    assert replay.is_over


def test_a_full_disk_ends_only_the_recording(tmp_path: Path) -> None:
    live = Board(OUTLINE)
    desk = Desk(live, Record(tmp_path / "watch.jsonl", OUTLINE))
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (4096, hard))
    try:
        for event in EVENTS:
            tell(desk, event)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert "watch.jsonl: cannot be written: File too large" in str(desk.failure)
    assert [one.samples for one in live.health(BEGAN_S).values()] == [5, 5, 5, 5]
