"""Ctrl-C during a deploy: once to stop in order, twice to leave at once."""

import os
import pty
import signal
import subprocess
import sys
from contextlib import nullcontext
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from netkit.cli import deploy
from netkit.cli.requests import RollbackRequest
from netkit.cli.rollout import DECLINED
from netkit.deploy import Outcome
from netkit.project.deploying import Deploying
from netkit.terminal.interrupt import Interrupt
from tests.command import ROOT, environment

HUNG_UP = """
import sys, time
from pathlib import Path
from netkit.terminal.display import display
from netkit.terminal.interrupt import Interrupt
from netkit.terminal.output import say
from netkit.deploy import ConfigState, DeployEvent, DeviceOutcome, DeviceResult, Phase
end = Path(sys.argv[1])
with Interrupt("netkit deploy --resume R", 90) as is_stopping, display(1, is_stopping) as on_event:
    on_event(DeployEvent(Phase.LOAD, "leaf01", 1, 1, 0.0))
    print("begun", flush=True)
    while not is_stopping():
        time.sleep(0.05)
    time.sleep(1)  # the table is drawn a few times more
    outcome = DeviceOutcome("leaf01", DeviceResult.DONE, ConfigState.INTENDED)
    on_event(DeployEvent(Phase.END, "leaf01", 1, 1, 1.0, outcome))
say(sys.stdout, "all done")
end.write_text("in order", encoding="utf-8")
"""
TWICE = """
import os, signal
from netkit.terminal.interrupt import Interrupt
with Interrupt("netkit deploy --resume R", 90):
    os.kill(os.getpid(), signal.{first})
    os.kill(os.getpid(), signal.SIGINT)
print("still here")
"""


def test_the_first_requests_a_stop_and_handlers_are_restored() -> None:
    before = signal.getsignal(signal.SIGINT)
    with Interrupt("netkit deploy --resume R", 90) as is_stopping:
        assert not is_stopping()
        os.kill(os.getpid(), signal.SIGINT)
        assert is_stopping()
    assert signal.getsignal(signal.SIGINT) is before


def test_the_second_leaves_and_prints_how_to_resume() -> None:
    for first in ("SIGINT", "SIGTERM"):
        program = [sys.executable, "-c", TWICE.format(first=first)]
        done = subprocess.run(
            program, cwd=ROOT, env=environment(), capture_output=True, text=True, timeout=180, check=False
        )
        assert (done.returncode, done.stdout) == (130, "")
        assert done.stderr.splitlines() == [
            "interrupted: no further device starts, running ones finish; Ctrl-C or SIGTERM again leaves at once",
            "left: devices revert by themselves what is not confirmed within 90 s",
            "to continue: netkit deploy --resume R",
        ]


def test_a_closed_terminal_requests_a_stop_and_is_not_written_to_again(tmp_path: Path) -> None:
    near, far = pty.openpty()
    end = tmp_path / "end"
    words = ["setsid", "--ctty", sys.executable, "-c", HUNG_UP, str(end)]
    with subprocess.Popen(words, cwd=ROOT, env=environment(), stdin=far, stdout=far, stderr=far) as started:
        os.close(far)
        said = b""
        while b"begun" not in said:
            said += os.read(near, 4096)
        os.close(near)
        assert started.wait(timeout=120) == 0
    assert end.read_text(encoding="utf-8") == "in order"


def test_a_terminal_closed_twice_is_not_a_second_ctrl_c_and_nohup_continues() -> None:
    before = signal.getsignal(signal.SIGHUP)
    with Interrupt("netkit deploy --resume R", 90) as is_stopping:
        os.kill(os.getpid(), signal.SIGHUP)
        os.kill(os.getpid(), signal.SIGHUP)
        assert is_stopping()
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        with Interrupt("netkit deploy --resume R", 90) as is_stopping:
            os.kill(os.getpid(), signal.SIGHUP)
            assert not is_stopping()
    finally:
        signal.signal(signal.SIGHUP, before)


def test_a_rollback_ends_the_run_before_it_in_order_and_then_stops(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    ended = list[str]()

    def end(*_: object) -> Outcome:
        os.kill(os.getpid(), signal.SIGINT)
        ended.append("in order")
        return Outcome("R", "ai1", ())

    def anything(*_: object) -> Any:
        return None

    orders = SimpleNamespace(plan=None, options=SimpleNamespace(settle_s=30.0))
    undone = SimpleNamespace(run="R", outcome=anything, orders=lambda: orders, entries=tuple)
    control = SimpleNamespace(begun=anything, permitted=anything)
    stub = SimpleNamespace(runs=tmp_path, control=control, end=end, locked=lambda _: nullcontext())
    monkeypatch.setattr(deploy, "open_project", anything)
    monkeypatch.setattr(deploy, "found_run", lambda *_: undone)
    monkeypatch.setattr(Deploying, "of", lambda *_: stub)
    assert deploy.rollback(RollbackRequest(tmp_path, run="R", yes=True)) == DECLINED
    assert ended == ["in order"]
    again = f"netkit rollback R --fabric {tmp_path}"
    assert capsys.readouterr().err.endswith(f"not rolled back; to continue: {again}\n")
