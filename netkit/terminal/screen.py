"""The live screen of a watch: redrawn each second and on each key; the terminal is restored at the end."""

import contextlib
import os
import select
import shutil
import signal
import sys
import termios
import time
import tty
from collections.abc import Callable, Iterator, Mapping
from datetime import datetime
from types import FrameType
from typing import Any

from netkit.errors import Interrupted
from netkit.watch.board import Board, BoardView
from netkit.watch.frame import frame
from netkit.watch.span import Line, Span, Style, glyphs_for
from netkit.watch.view_state import ViewState, pressed, shown

ENTER, LEAVE = "\x1b[?1049h\x1b[?25l\x1b[?7l", "\x1b[?7h\x1b[?25h\x1b[?1049l"
"""To a screen of its own, without a cursor and without wrapping; and back."""
HOME, TO_END_OF_LINE, TO_END = "\x1b[H", "\x1b[K", "\x1b[J"
COLORED: Mapping[Style, str] = {
    "bold": "1",
    "dim": "2",
    "bad": "1;31",
    "warn": "33",
    "good": "32",
    "title": "7",
    "chosen": "1;7",
}
PLAIN: Mapping[Style, str] = {"bold": "1", "bad": "1", "title": "7", "chosen": "1;7"}
NAMED = {
    "\x1b[A": "up",
    "\x1b[B": "down",
    "\x1bOA": "up",
    "\x1bOB": "down",
    "\x1b[5~": "page up",
    "\x1b[6~": "page down",
    "\x1b[H": "home",
    "\x1b[F": "end",
    "\x1b[1~": "home",
    "\x1b[4~": "end",
    "\r": "enter",
    "\n": "enter",
    "\t": "tab",
    "\x1b": "escape",
    "\x7f": "backspace",
    "\x08": "backspace",
}
DRAW_S, KEY_S = 1.0, 0.05
MOST_KEYS_BYTES = 1024


def is_possible() -> bool:
    """Whether there is a terminal that can be drawn on."""
    has_terminal = sys.stdin.isatty() and sys.stdout.isatty()
    return has_terminal and os.environ.get("TERM", "dumb") not in {"", "dumb"}


def show(board: Board, now_s: Callable[[], float], has_ended: Callable[[], bool], length_s: float) -> None:
    """Draw until the user quits, the time is up, or there is nothing more to see."""
    ends_s = time.monotonic() + length_s
    with _terminal():
        _Screen(board, now_s).run(lambda: has_ended() or time.monotonic() >= ends_s)


def clock(now_s: float) -> str:
    """Return the time of day."""
    return datetime.fromtimestamp(now_s).astimezone().strftime("%H:%M:%S")


class _Screen:
    """What is drawn, and what keys make of it."""

    def __init__(self, board: Board, now_s: Callable[[], float]) -> None:
        self._board, self._now_s = board, now_s
        self._look = ViewState()
        self._scene = self._taken()
        self._drawn = ""
        self._styles = PLAIN if os.environ.get("NO_COLOR") else COLORED
        self._glyphs = glyphs_for(sys.stdout.encoding)

    def _taken(self) -> BoardView:
        now_s = self._now_s()
        return self._board.view(now_s, clock(now_s) if now_s else "")

    def run(self, has_ended: Callable[[], bool]) -> None:
        """Draw each second, and at once after a key."""
        next_s = time.monotonic()
        while not has_ended():
            if not self._look.is_paused:
                self._scene = self._taken()
            self._draw()
            next_s = max(next_s + DRAW_S, time.monotonic())
            while (left_s := next_s - time.monotonic()) > 0:
                if not self._heed(left_s):
                    return

    def _heed(self, patience_s: float) -> bool:
        """Wait for keys and do what they say; false when that is to quit."""
        for name in keys(patience_s):
            if name == "q" and not self._look.is_typing:
                return False
            was_paused = self._look.is_paused
            self._look = pressed(self._look, name, shown(self._scene, self._look), self._size()[1] - 4)
            if was_paused and not self._look.is_paused:
                self._scene = self._taken()
            self._draw()
        return True

    def _draw(self) -> None:
        width, height = self._size()
        lines = frame(self._scene, self._look, width, height, self._glyphs)
        text = HOME + f"{TO_END_OF_LINE}\r\n".join(painted(line, self._styles) for line in lines) + TO_END
        sys.stdout.write(text)
        sys.stdout.flush()

    def _size(self) -> tuple[int, int]:
        size = shutil.get_terminal_size()
        return size.columns, size.lines


def painted(line: Line, styles: Mapping[Style, str]) -> str:
    """Return a line as a terminal shows it."""
    return "".join(_painted(span, styles) for span in line)


def _painted(span: Span, styles: Mapping[Style, str]) -> str:
    code = styles.get(span.style)
    return f"\x1b[{code}m{span.text}\x1b[0m" if code else span.text


def keys(patience_s: float) -> Iterator[str]:
    """Yield what was pressed: a character, or the name of a key that is none; nothing when the time is up."""
    descriptor = sys.stdin.fileno()
    try:
        if not select.select([descriptor], [], [], patience_s)[0]:
            return
        data = os.read(descriptor, MOST_KEYS_BYTES)
    except InterruptedError:
        return
    if not data:
        raise Interrupted  # the terminal is gone
    yield from named(data.decode("utf-8", "replace"))


def named(text: str) -> Iterator[str]:
    """Yield the keys that sent a text; what no key here sends is left out."""
    while text:
        found = next((code for code in sorted(NAMED, key=len, reverse=True) if text.startswith(code)), "")
        if found == "\x1b" and text[1:2] in {"[", "O"}:
            text = text[2:].lstrip("0123456789;?")[1:]  # a key nothing is made of
            continue
        yield NAMED.get(found, text[0])
        text = text[len(found) or 1 :]


@contextlib.contextmanager
def _terminal() -> Iterator[None]:
    """Take the terminal, and give it back as it was however this ends."""
    descriptor = sys.stdin.fileno()
    before = termios.tcgetattr(descriptor)
    signals = _Signals()
    try:
        signals.take()
        tty.setcbreak(descriptor)
        _without_stopping(descriptor)
        sys.stdout.write(ENTER)
        yield
    finally:
        signals.is_giving_back = True
        try:
            _give_back(descriptor, before)
        finally:
            signals.give_back()


def _give_back(descriptor: int, before: list[Any]) -> None:
    with contextlib.suppress(OSError, termios.error):
        termios.tcsetattr(descriptor, termios.TCSANOW, before)  # at once: it would wait while output is stopped
    with contextlib.suppress(OSError):
        sys.stdout.write(LEAVE)
        sys.stdout.flush()


class _Signals:
    """What ends a live screen. A signal that comes while the terminal is given back waits until it is, once."""

    def __init__(self) -> None:
        numbers = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
        # A shell may have had what it starts ignore Ctrl-C; here it is a key, and the terminal is this program's own.
        heard = [number for number in numbers if number == signal.SIGINT or not _is_ignored(number)]
        self._before = {number: signal.getsignal(number) for number in (*heard, signal.SIGWINCH)}
        self._is_waiting = False
        self.is_giving_back = False

    def take(self) -> None:
        """Begin to hear."""
        for number in self._before:
            signal.signal(number, self._leave)
        signal.signal(signal.SIGWINCH, lambda *_: None)

    def give_back(self) -> None:
        """Let others hear again, and raise what has waited."""
        for number, handler in self._before.items():
            signal.signal(number, handler)
        if self._is_waiting:
            raise Interrupted

    def _leave(self, number: int, frame: FrameType | None) -> None:
        if self.is_giving_back and not self._is_waiting:
            self._is_waiting = True
            return
        before = self._before[signal.Signals(number)]
        if number == signal.SIGINT and callable(before):
            before(number, frame)  # it raises, and takes note of it
        raise Interrupted


def _is_ignored(number: signal.Signals) -> bool:
    return signal.getsignal(number) is signal.SIG_IGN


def _without_stopping(descriptor: int) -> None:
    """Let Ctrl-Z do nothing: a shell would find the terminal as it is drawn on."""
    now = termios.tcgetattr(descriptor)
    now[6][termios.VSUSP] = b"\x00"
    termios.tcsetattr(descriptor, termios.TCSANOW, now)
