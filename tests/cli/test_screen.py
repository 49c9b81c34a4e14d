"""The terminal is restored after a live screen, also when a signal arrives during the restore."""

import sys

import pytest

from tests.cli.terminal import terminal

SHOW = """
import os, signal, sys, termios
from netkit.terminal import screen
from netkit.errors import Interrupted
from netkit.watch.board import Board, Outline

def settings():
    set_now = termios.tcsetattr
    termios.tcsetattr = lambda *how: (os.kill(os.getpid(), signal.{name}), set_now(*how))

def text():
    class Out:
        def __getattr__(self, name):
            return getattr(sys.__stdout__, name)
        def write(self, text):
            for part in (text[:3], text[3:]):
                os.kill(os.getpid(), signal.{name})
                sys.__stdout__.write(part)
    sys.stdout = Out()

def has_ended():
    {where}()
    return True

before = signal.getsignal(signal.{name})
try:
    screen.show(Board(Outline("small", ())), lambda: 0.0, has_ended, 60.0)
except Interrupted:
    sys.exit(130 if signal.getsignal(signal.{name}) is before else 1)
"""


@pytest.mark.parametrize("name", ["SIGINT", "SIGTERM", "SIGHUP"])
def test_a_signal_during_the_restore_ends_the_program_after_it(name: str) -> None:
    with terminal([sys.executable, "-c", SHOW.format(name=name, where="settings")]) as shown:
        assert shown.ended() == 130
        assert shown.settings() == shown.before
        assert shown.shown.endswith("\x1b[?7h\x1b[?25h\x1b[?1049l")


def test_a_second_signal_is_not_delayed() -> None:
    with terminal([sys.executable, "-c", SHOW.format(name="SIGTERM", where="text")]) as shown:
        assert shown.ended() == 130
        assert shown.settings() == shown.before
