"""Ctrl-C during a deploy: once to end in order, twice to leave."""

import os
import signal
import subprocess
import sys

from netkit.cli.terminal.interrupt import Interrupt
from tests.command import ROOT, environment

TWICE = """
import os, signal
from netkit.cli.terminal.interrupt import Interrupt
with Interrupt("netkit deploy --resume R", 90):
    os.kill(os.getpid(), signal.{first})
    os.kill(os.getpid(), signal.SIGINT)
print("still here")
"""


def test_the_first_asks_to_end_and_handlers_come_back() -> None:
    before = signal.getsignal(signal.SIGINT)
    with Interrupt("netkit deploy --resume R", 90) as is_stopping:
        assert not is_stopping()
        os.kill(os.getpid(), signal.SIGINT)
        assert is_stopping()
    assert signal.getsignal(signal.SIGINT) is before


def test_the_second_leaves_and_says_how_to_go_on() -> None:
    for first in ("SIGINT", "SIGTERM"):
        program = [sys.executable, "-c", TWICE.format(first=first)]
        done = subprocess.run(
            program, cwd=ROOT, env=environment(), capture_output=True, text=True, timeout=180, check=False
        )
        assert (done.returncode, done.stdout) == (130, "")
        assert done.stderr.splitlines() == [
            "interrupted: no other device is begun, those begun end in order; again to leave at once",
            "left: devices take back by themselves what is not confirmed within 90 s",
            "to go on: netkit deploy --resume R",
        ]
