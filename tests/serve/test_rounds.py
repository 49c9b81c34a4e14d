"""The schedule of a real server: rounds that are slow, fail or are killed; the test controls when each ends.

A round judges input from a named pipe: it waits there until a snapshot is written into it.
"""

import os
import re
import shutil
import signal
import socket
import sqlite3
import subprocess
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest

from bench.measure import free_port
from netkit.serve.rounds import KILLED, STOPPED
from netkit.serve.schedule import ORPHAN
from tests.command import ROOT, Done, assert_refused, run
from tests.lab.running import until
from tests.serve.server import TOKEN, Running, serving

pytestmark = pytest.mark.daemon


@pytest.fixture
def pipe(tmp_path: Path) -> Path:
    found = tmp_path / "pipe"
    os.mkfifo(found)
    return found


def feed(pipe: Path, snapshot: Path) -> None:
    """Let the round that waits at the pipe continue."""
    writer = threading.Thread(target=pipe.write_bytes, args=(snapshot.read_bytes(),), daemon=True)
    writer.start()
    writer.join(120)
    assert not writer.is_alive(), "no round waits"


def running_rounds(server: Running) -> list[Any]:
    return [one for one in server.diary["rounds"] if one["ended_s"] is None]


def test_rounds_never_overlap_and_missed_ones_are_recorded(
    places: tuple[Path, Path], pipe: Path, tmp_path: Path
) -> None:
    with serving(places[0], tmp_path / "state", "--from", pipe, "--every=2s") as server:
        until(lambda: len(running_rounds(server)) == 1, "the first round runs")
        begun_s = running_rounds(server)[0]["begun_s"]
        until(lambda: server.get("status")["next_s"] >= begun_s + 6, "more rounds are due meanwhile")
        assert server.diary["rounds_total"] == 1
        assert "no run yet" in server.ask("/").text
        assert server.ask("/report").code == 404
        feed(pipe, places[1])
        until(lambda: server.diary["missed_total"] >= 2, "missed rounds are noted")
        (missed, *_) = server.diary["missed"]
        assert missed["reason"] == "the check before was still running"
        assert server.diary["rounds"][0]["run"] == server.get("runs")["items"][0]["run"]
        assert f'netkit_serve_rounds_missed_total{{fabric="small"}} {missed["count"]}' in server.ask("/metrics").text
        assert "the check before was still running" in server.ask("/").text


def test_a_server_ends_cleanly_in_the_middle_of_a_round(places: tuple[Path, Path], pipe: Path, tmp_path: Path) -> None:
    state = tmp_path / "state"
    with serving(places[0], state, "--from", pipe, "--every=1d") as server:
        until(lambda: len(running_rounds(server)) == 1, "a round runs")
        assert server.end(signal.SIGTERM) == 0
        (cut,) = server.diary["rounds"]
        assert (cut["text"], cut["exit_code"], server.diary["failed_total"]) == (STOPPED, None, 0)
    with serving(places[0], state, "--from", places[1], "--every=1d") as server:
        server.await_run()
        assert (server.diary["rounds_total"], server.diary["missed_total"]) == (2, 0)
        assert server.end(signal.SIGINT) == 0
    with serving(places[0], state, "--from", places[1], "--every=1d") as server:
        assert len(server.get("runs")["items"]) == 1
        assert server.diary["rounds_total"] == 2, "it is done for today"


def test_a_killed_server_leaves_one_round_that_no_other_collides_with(
    places: tuple[Path, Path], pipe: Path, tmp_path: Path
) -> None:
    state = tmp_path / "state"
    with serving(places[0], state, "--from", pipe, "--every=1d") as server:
        until(lambda: bool(server.forks()), "a round runs")
        server.end(signal.SIGKILL)
    with serving(places[0], state, "--from", places[1], "--every=1d") as server:
        until(lambda: server.diary["missed_total"] == 1, "its orphan is noted")
        assert server.diary["missed"][0]["reason"] == ORPHAN
        assert server.diary["rounds"][0]["text"] == KILLED
        assert server.get("runs")["items"] == []
        feed(pipe, places[1])
        until(lambda: len(server.get("runs")["items"]) == 1, "the orphan keeps its run")
        assert server.ask("/report").code == 200, "its report is made when it is asked for"
        assert len(server.diary["rounds"]) == 1
    with sqlite3.connect(state / "store.db") as opened:
        assert opened.execute("PRAGMA integrity_check").fetchone() == ("ok",)


def test_a_round_that_cannot_run_is_reported_and_retried(places: tuple[Path, Path], tmp_path: Path) -> None:
    fabric = Path(shutil.copytree(places[0], tmp_path / "fabric"))
    file = fabric / "fabric.yaml"
    good = file.read_text(encoding="utf-8")
    with serving(fabric, tmp_path / "state", "--from", places[1], "--every=2s") as server:
        server.await_run()
        file.write_text(good + "nonsense: 1\n", encoding="utf-8")
        until(lambda: server.diary["failed_total"] > 0, "a round cannot run")
        assert "it could not run" in server.ask("/").text
        assert "nonsense" in server.ask("/").text
        assert 'netkit_serve_round_exit_code{fabric="small"} 3\n' in server.ask("/metrics").text
        assert server.ask("/report").code == 200
        file.write_text(good, encoding="utf-8")
        runs = len(server.get("runs")["items"])
        until(lambda: len(server.get("runs")["items"]) > runs, "it goes on by itself")
        assert "Traceback" not in server.output()


FULL_DISK = 'mount -t tmpfs -o size=4m none "$1" && shift && exec "$@"'


@pytest.mark.skipif(os.geteuid() != 0 or shutil.which("unshare") is None, reason="a small disk takes root and unshare")
def test_a_full_disk_is_reported_and_nothing_is_lost(places: tuple[Path, Path], tmp_path: Path) -> None:
    state = tmp_path / "state"
    state.mkdir()
    small = ("unshare", "-m", "bash", "-c", FULL_DISK, "small", str(state))
    with serving(places[0], state, "--from", places[1], "--every=2s", above=small) as server:
        until(lambda: any(map(_is_done, _rounds(server))), "a round is kept")
        first = next(filter(_is_done, _rounds(server)))["run"]
        inside = Path(f"/proc/{server.process.pid}/root{state}")
        filler = inside / "filler"
        _fill(filler)
        until(lambda: server.get("status")["failed_total"] > 0, "a round cannot keep its run")
        assert "it could not run" in server.ask("/").text
        assert server.ask(f"/runs/{first}").code == 200
        begun_s = time.time()
        filler.unlink()
        until(lambda: _rounds(server)[0]["begun_s"] > begun_s and _is_done(_rounds(server)[0]), "it goes on by itself")
        with sqlite3.connect(inside / "store.db") as opened:
            assert opened.execute("PRAGMA integrity_check").fetchone() == ("ok",)
        assert "Traceback" not in server.output()


def _rounds(server: Running) -> list[Any]:
    """The finished rounds, the latest first, from the API: its files are visible to the server only."""
    return [one for one in server.get("status")["rounds"] if one["ended_s"] is not None]


def _is_done(one: Any) -> bool:
    return bool(one["run"])


def _fill(file: Path) -> None:
    """Write until the disk is full."""
    with file.open("wb", buffering=0) as stream, suppress(OSError):
        for size in (4096, 1):
            with suppress(OSError):
                while True:
                    stream.write(bytes(size))


@contextmanager
def listening() -> Iterator[int]:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        yield taken.getsockname()[1]


def refused(fabric: Path, *options: str | Path) -> Done:
    return run("serve", "--fabric", fabric, f"--listen=127.0.0.1:{free_port()}", *options)


def test_an_unservable_request_is_refused_in_one_line(
    places: tuple[Path, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fabric = places[0]
    monkeypatch.setenv("NETKIT_STATE_DIR", str(tmp_path / "state"))
    monkeypatch.delenv("NETKIT_STORE", raising=False)
    monkeypatch.delenv("NETKIT_SECRET_SERVE_TOKEN", raising=False)
    with listening() as port:
        assert_refused(
            run("serve", "--fabric", fabric, f"--listen=127.0.0.1:{port}"), f"cannot listen on 127.0.0.1:{port}"
        )
    assert_refused(refused(tmp_path / "nowhere"), "no fabric folder")
    for place in ("8400", "127.0.0.1:", "127.0.0.1:99999", "nonsense"):
        assert_refused(run("serve", "--fabric", fabric, "--listen", place), "is not an address")
    assert_refused(refused(fabric, "--every=5"), "--every '5' is not a duration")
    assert_refused(refused(fabric, "--fabric", fabric), "two folders have a fabric called small")
    assert_refused(refused(fabric, "--fabric", fabric, "--lab=mine"), "--from and a named lab apply to one fabric")
    assert_refused(refused(fabric, "--profile=most"), "unknown profile 'most'")
    assert_refused(refused(fabric, "--source=hearsay"), "no source of facts 'hearsay'")
    assert_refused(refused(fabric, "--from", tmp_path / "none"), "there is no snapshot")
    assert_refused(refused(fabric, "--from", places[1], "--lab=x"), "facts come either from the lab or from a snapshot")
    assert_refused(refused(fabric, "--backup", tmp_path / "none" / "saved"), "there is no folder")
    assert_refused(refused(fabric, "--token-file", tmp_path / "none"), "the token cannot be read")
    assert_refused(refused(fabric, "--certificate", tmp_path / "none"), "the certificate cannot be used")
    assert_refused(refused(fabric, "--key", tmp_path / "none"), "--key needs a certificate")
    monkeypatch.setenv("NETKIT_STATE_DIR", str(fabric / "fabric.yaml"))
    assert_refused(refused(fabric), "cannot be created")


def test_a_store_of_a_newer_netkit_is_refused(
    places: tuple[Path, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NETKIT_STATE_DIR", str(tmp_path / "state"))
    monkeypatch.delenv("NETKIT_STORE", raising=False)
    run("check", "--fabric", places[0], "--from", places[1], "--store")
    with sqlite3.connect(tmp_path / "state" / "store.db") as opened:
        opened.execute("UPDATE netkit_version SET version_num = '9999'")
    assert_refused(refused(places[0]), "the store was written by a newer netkit")


def test_two_servers_of_one_fabric_do_not_collide(
    places: tuple[Path, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NETKIT_STATE_DIR", str(tmp_path / "state"))
    monkeypatch.setenv("NETKIT_SECRET_SERVE_TOKEN", TOKEN)
    with serving(places[0], tmp_path / "state", "--from", places[1], "--every=1d"):
        assert_refused(refused(places[0]), "another netkit serve already serves small")


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="systemd-analyze is not installed")
def test_the_unit_in_the_docs_is_valid(tmp_path: Path) -> None:
    text = (ROOT / "docs" / "serve.md").read_text(encoding="utf-8")
    (unit,) = re.findall(r"```ini\n(.*?)```", text, re.DOTALL)
    here = tmp_path / "netkit-serve.service"
    here.write_text(unit.replace("/usr/local/bin/netkit", "/bin/true").replace("User=netkit\n", ""), encoding="utf-8")
    done = subprocess.run(["systemd-analyze", "verify", str(here)], capture_output=True, text=True, check=False)
    own = [line for line in (done.stdout + done.stderr).splitlines() if "netkit" in line]
    assert (done.returncode, own) == (0, [])
