"""`netkit watch` of a recording: in a terminal, and without one."""

import json
import signal
import sys
from pathlib import Path

import pytest

from netkit.cli.requests import WatchRequest
from netkit.cli.watch import _of_fabric
from netkit.errors import AccessError
from netkit.watch.session import Record
from tests.cli.terminal import terminal
from tests.command import NETKIT, assert_refused, run
from tests.intents import values
from tests.lab.running import write_fabric
from tests.watch.scene import OUTLINE, storm

FAST = ("--speed", "1000")
LEAVE = "\x1b[?25h\x1b[?1049l"


@pytest.fixture(name="file", scope="module")
def record_of_a_storm(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("watch") / "storm.jsonl.gz"
    record = Record(path, OUTLINE)
    for event in storm(30):
        record.add(event)
    record.close()
    return path


def test_a_recording_is_printed_as_text(file: Path) -> None:
    done = run("watch", "--replay", file, "--once")
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert lines[1] == " 6 ports:  1 loses  1 source  2 pauses  1 paused"
    assert [line.split()[:2] for line in lines[-6:]][:2] == [["spine01", "swp1s0"], ["gpu01", "rail0"]]


def test_a_part_of_a_recording_is_printed_as_json(file: Path) -> None:
    done = run("watch", "--replay", file, "--for", "15s", "--format", "json")
    assert done.returncode == 0, done.stderr
    reported = json.loads(done.stdout)
    first = reported["ports"][0]
    assert (first["device"], first["port"], first["what"], first["level"]) == ("gpu01", "rail0", "source", "source")
    assert (first["last"]["pause_out"], first["highest"]["pause_out"], first["last"]["errors"]) == (0.6, 0.6, None)
    assert {one["device"]: one["state"] for one in reported["devices"]}["gpu02"] == "gone"


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--once"], "give --fabric, or a record with --replay"),
        (["--replay", "FILE"], "the output is not a terminal; give --for 10s or --once"),
        (["--replay", "FILE", "--once", "--limit", "leaf01"], "drop them"),
        (["--replay", "FILE", "--for", "soon"], "write it like 10s, 5m or 1h"),
        (["--replay", "FILE", "--format", "json"], "give --for 10s or --once"),
        (["--replay", "FILE", "--once", "--format", "xml"], "use one of text, json"),
        (["--replay", "/nowhere", "--once"], "/nowhere: cannot be read"),
        (["--replay", "README.md", "--once"], "README.md: is not a record of netkit watch"),
    ],
)
def test_a_file_that_cannot_be_shown_is_refused_in_one_line(file: Path, words: list[str], said: str) -> None:
    assert_refused(run("watch", *[str(file) if word == "FILE" else word for word in words]), said)


def test_a_recording_without_samples_exits_as_if_no_device_was_reached(tmp_path: Path) -> None:
    Record(tmp_path / "empty", OUTLINE).close()
    assert run("watch", "--replay", tmp_path / "empty", "--once").returncode == 4


def test_a_terminal_is_drawn_on_and_restored(file: Path) -> None:
    with terminal([*NETKIT, "watch", "--replay", file, *FAST], 110, 20) as shown:
        golden = (Path(__file__).parent.parent / "golden" / "watch" / "lossy-110x20.txt").read_text(encoding="utf-8")
        assert shown.until(golden.splitlines()[4])[4:10] == golden.splitlines()[4:10]
        shown.press("\t")
        assert any(line.split()[:3] == ["rail", "0", "5"] for line in shown.until("WORST PORT"))
        shown.press("\t/gpu02 nic\r")
        assert any(line.startswith(" gpu02 rail0") for line in shown.until("1 ports match"))
        shown.press("\x1b[B\r")
        assert any(line.startswith(" pauses the other end") for line in shown.until("gpu02 rail0 → leaf01 swp1s1"))
        shown.resize(60, 12)
        until_small = shown.until("LAST 24 s")
        assert len(until_small) == 12
        assert max(map(len, until_small)) <= 60
        shown.press("q")
        assert shown.ended() == 0
        assert shown.shown.endswith(LEAVE)
        assert shown.settings() == shown.before


@pytest.mark.parametrize("how", ["key", "term"])
def test_an_interrupt_restores_the_terminal(file: Path, how: str) -> None:
    with terminal([*NETKIT, "watch", "--replay", file, *FAST]) as shown:
        shown.until("1 loses")
        if how == "key":
            shown.press("\x03")
        else:
            shown.process.send_signal(signal.SIGTERM)
        assert shown.ended() == 130
        assert LEAVE in shown.shown
        assert shown.settings() == shown.before


@pytest.mark.parametrize("how", ["key", "term", "q"])
def test_a_watch_started_with_sigint_ignored_can_be_ended(file: Path, how: str) -> None:
    deaf = ["sh", "-c", 'trap "" INT; exec "$@"', "sh"]
    with terminal([*deaf, *NETKIT, "watch", "--replay", file, *FAST]) as shown:
        shown.until("1 loses")
        if how == "term":
            shown.process.send_signal(signal.SIGTERM)
        else:
            shown.press("\x03" if how == "key" else "q")
        assert shown.ended() == (0 if how == "q" else 130)
        assert shown.settings() == shown.before


def test_streams_without_the_library_are_refused_before_connecting(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = write_fabric(tmp_path / "f", values())
    monkeypatch.setitem(sys.modules, "grpc", None)
    with pytest.raises(AccessError, match="leaf01: gNMI needs a library that is not installed") as refused:
        _of_fabric(WatchRequest(folder, source="gnmi"))
    assert "pip install" in str(refused.value)


def test_a_terminal_without_colour_or_arrows_is_supported(file: Path) -> None:
    with terminal([*NETKIT, "watch", "--replay", file, *FAST], NO_COLOR="1", PYTHONIOENCODING="ascii") as shown:
        assert shown.until("1 loses")[-1].startswith(" q quit")
        assert shown.shown.isascii()
        assert not any(f"\x1b[{code}m" in shown.shown for code in ("31", "1;31", "32", "33"))
        shown.press("q")
        assert shown.ended() == 0


def test_a_dumb_terminal_is_refused(file: Path) -> None:
    with terminal([*NETKIT, "watch", "--replay", file], TERM="dumb") as shown:
        assert shown.ended() == 3
        assert "the output is not a terminal" in shown.shown
