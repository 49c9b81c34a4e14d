"""Queue peaks between two samples: what a watermark proves, and what it cannot."""

import json
from collections.abc import Mapping
from pathlib import Path

import pytest

from netkit.facts import Sample
from netkit.facts.qos import Buffer
from netkit.watch.board import Board, Meter, Outline, Row
from netkit.watch.feed import NO_PEAKS, Peaks, PortReading
from netkit.watch.frame import unbounded
from netkit.watch.port_severity import Level, PauseLimits, Wire, judged, wires
from netkit.watch.session import Replay, read
from netkit.watch.span import UNICODE, plain
from netkit.watch.view_state import ViewState, result
from tests import intents
from tests.watch.scene import BEGAN_S, sample

AT = "swp1/3"
WIRE = Wire("leaf01", "swp1", "host", "rail 0", 400, "gpu01", "rail0", 150_000, 80_000)
UNLIMITED = WIRE._replace(ecn_min_bytes=None, headroom_bytes=None)


def after(*levels: Buffer, boots: tuple[str, ...] = ()) -> Peaks:
    """The result of a meter at the last of some samples."""
    meter = Meter()
    found: Mapping[str, Peaks] = {}
    for second, level in enumerate(levels):
        look = Sample(BEGAN_S + second, {"rx_bytes": {"swp1": second}}, (boots or ("",) * 9)[second], {AT: level})
        found = meter.peaks(look)
        meter.rates(look)
    return found[AT]


def test_a_watermark_that_rose_is_the_peak_since_the_previous_sample() -> None:
    assert after(Buffer(0, 1000, 50), Buffer(0, 5000, 70)) == Peaks(5000, 70)


def test_an_unchanged_watermark_is_undated_and_the_current_length_counts() -> None:
    assert after(Buffer(200, 5000, 70), Buffer(300, 5000, 70)) == Peaks(300, None)
    assert after(Buffer(None, 5000, 70), Buffer(None, 5000, 70)) == NO_PEAKS


def test_a_watermark_of_zero_is_never_old() -> None:
    assert after(Buffer(None, 0, 0)) == Peaks(0, 0)


def test_a_watermark_that_was_cleared_and_rose_again_is_current() -> None:
    assert after(Buffer(None, 5000, 70), Buffer(None, 800, 9)) == Peaks(800, 9)


def test_a_restart_clears_watermarks_and_gives_no_peak() -> None:
    assert after(Buffer(None, 900, 70), Buffer(None, 5000, 90), boots=("first", "second")) == NO_PEAKS


def board(*levels: Mapping[str, Buffer], wire: Wire = WIRE) -> Board:
    """A board of one port after samples a second apart."""
    watched = Board(Outline("small", (wire,), (3,)))
    for second, buffers in enumerate(levels):
        watched.deliver("leaf01", sample(second, {"rx_bytes": {"swp1": second}}, buffers), BEGAN_S + second)
    return watched


def row(*levels: Mapping[str, Buffer], wire: Wire = WIRE) -> Row:
    return board(*levels, wire=wire).rows(BEGAN_S + len(levels) - 0.5)[0]


def test_a_port_shows_its_highest_peaks_as_shares_of_ecn_minimum_and_headroom() -> None:
    found = row({AT: Buffer(0, 0, 0)}, {AT: Buffer(0, 300_000, 60_000), "swp1/0": Buffer(0, 9_000_000, 70_000)})
    assert (
        found.reading._asdict()
        == PortReading(
            rx_bps=8, queue_bytes=300_000, queue_share=2, headroom_bytes=60_000, headroom_share=0.75
        )._asdict()
    ), "another queue than a lossless one does not count"
    assert found.severity.level is Level.FILLS


def test_a_port_without_limits_shows_bytes_and_is_not_judged_by_them() -> None:
    levels = {AT: Buffer(0, 0, 0)}, {AT: Buffer(0, 300_000, 60_000)}
    assert row(*levels, wire=UNLIMITED).severity.level is Level.QUIET
    for wire, shown in ((UNLIMITED, ["300k", "60.0k"]), (WIRE, ["200%", "75.0%"])):
        view = board(*levels, wire=wire).view(BEGAN_S + 1.5)
        head, line = plain(unbounded(view, ViewState(), 150, UNICODE)).splitlines()[2:4]
        assert head.split()[10:12] == ["QUEUE", "HEADRM"]
        assert line.split()[12:14] == shown


def test_a_selected_port_shows_the_peaks_of_each_of_its_queues() -> None:
    view = board({AT: Buffer(0, 0, 0)}, {AT: Buffer(0, 300_000, 60_000), "swp1/0": Buffer(0, 0)}).view(BEGAN_S + 1.5)
    lines = plain(unbounded(view, ViewState(is_detail=True, chosen=("leaf01", "swp1")), 100, UNICODE)).splitlines()
    assert [" ".join(line.split()) for line in lines if line[1:2].isdigit()][1:] == [
        "0 – – – – – 0 –",
        "3 lossless – – – – – 300k 60.0k",
    ]
    assert any(line.startswith(" queue, of ECN's minimum     200%") for line in lines)


def test_a_port_of_a_device_without_watermarks_has_no_lines_for_them() -> None:
    view = board({}, {}).view(BEGAN_S + 1.5)
    text = plain(unbounded(view, ViewState(is_detail=True, chosen=("leaf01", "swp1")), 100, UNICODE))
    assert "ECN's minimum" not in text


@pytest.mark.parametrize(
    ("reading", "level"),
    [
        (PortReading(queue_share=0.99, headroom_share=0.5), Level.QUIET),
        (PortReading(queue_share=1.0), Level.QUEUES),
        (PortReading(queue_share=8.0, marks=1.0), Level.MARKS),
        (PortReading(headroom_share=0.51, errors=5.0, pause_in=0.02), Level.FILLS),
        (PortReading(headroom_share=1.0, pause_in=0.3), Level.PAUSED),
    ],
)
def test_long_queues_rank_below_marks_and_used_headroom_above_errors(reading: PortReading, level: Level) -> None:
    assert judged(reading, 400, PauseLimits()).level is level


def test_the_limits_of_a_switch_port_are_those_of_its_design() -> None:
    fabric = intents.fabric(intents.values())
    ports = {(switch.name, port.name): port for switch in fabric.switches for port in switch.ports}
    for wire in wires(fabric, fabric.switches):
        profile = ports[wire.device, wire.port].profile
        assert wire.ecn_min_bytes == profile.ecn.min_bytes
        assert wire.headroom_bytes == (profile.headroom.xoff_bytes if profile.headroom else None)
    assert {wire.ecn_min_bytes for wire in wires(fabric, fabric.hosts)} == {None}


def test_json_has_peaks_and_their_limits() -> None:
    (port,) = result(board({AT: Buffer(0, 0, 0)}, {AT: Buffer(0, 300_000, 60_000)}), BEGAN_S + 1.5)["ports"]
    assert (port["ecn_min_bytes"], port["headroom_bytes"], port["what"]) == (150_000, 80_000, "fills")
    assert port["highest"]["queue_bytes"] == port["last"]["queue_bytes"] == 300_000


def test_a_recording_of_a_release_without_peaks_is_read(tmp_path: Path) -> None:
    head = {"netkit_watch": 1, "fabric": "small", "wires": [list(WIRE)[:7]], "lossless": [3], "limits": {}}
    head |= {"interval_s": 1, "lab": ""}
    lines = [{"heard_s": at, "device": "leaf01", "at_s": at, "counters": {"rx_bytes": {"swp1": at}}} for at in (1, 2)]
    path = tmp_path / "old.jsonl"
    path.write_text("".join(json.dumps(line) + "\n" for line in (head, *lines)), encoding="utf-8")
    outline, events = read(path)
    watched = Board(outline)
    Replay(watched, events).advance(3)
    (found,) = watched.rows(2.5)
    assert (found.wire, found.reading) == (UNLIMITED, PortReading(rx_bps=8))
