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

from netkit.errors import Interrupted
from netkit.watch.board import Board, BoardView
from netkit.watch.frame import frame
from netkit.watch.span import Line, Style, glyphs_for
from netkit.watch.view_state import ViewState, pressed, shown

ENTER, LEAVE = "\x1b[?1049h\x1b[?25l\x1b[?7l", "\x1b[?7h\x1b[?25h\x1b[?1049l"
"""Switch to the alternate screen without cursor and wrapping; and back."""
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
    """Whether there is a terminal to draw on."""
    has_terminal = sys.stdin.isatty() and sys.stdout.isatty()
    return has_terminal and os.environ.get("TERM", "dumb") not in {"", "dumb"}


def show(board: Board, now_s: Callable[[], float], has_ended: Callable[[], bool], length_s: float) -> None:
    """Draw until the user quits, the time is up, or `has_ended` returns true."""
    ends_s = time.monotonic() + length_s
    with _terminal():
        _Screen(board, now_s).run(lambda: has_ended() or time.monotonic() >= ends_s)


def clock(now_s: float) -> str:
    """Format the local time of day."""
    return datetime.fromtimestamp(now_s).astimezone().strftime("%H:%M:%S")


class _Screen:
    """The screen, and the effect of keys on it."""

    def __init__(self, board: Board, now_s: Callable[[], float]) -> None:
        self._board, self._now_s = board, now_s
        self._look = ViewState()
        self._view = self._current()
        self._styles = PLAIN if os.environ.get("NO_COLOR") else COLORED
        self._glyphs = glyphs_for(sys.stdout.encoding)

    def _current(self) -> BoardView:
        now_s = self._now_s()
        return self._board.view(now_s, clock(now_s) if now_s else "")

    def run(self, has_ended: Callable[[], bool]) -> None:
        """Draw every second, and at once after a key."""
        next_s = time.monotonic()
        while not has_ended():
            if not self._look.is_paused:
                self._view = self._current()
            self._draw()
            next_s = max(next_s + DRAW_S, time.monotonic())
            while (left_s := next_s - time.monotonic()) > 0:
                if not self._handle_keys(left_s):
                    return

    def _handle_keys(self, timeout_s: float) -> bool:
        """Wait for keys and apply them; false to quit."""
        for name in keys(timeout_s):
            if name == "q" and not self._look.is_typing:
                return False
            was_paused = self._look.is_paused
            rows = shown(self._view, self._look)
            self._look = pressed(self._look, name, rows, shutil.get_terminal_size().lines - 4)
            if was_paused and not self._look.is_paused:
                self._view = self._current()
            self._draw()
        return True

    def _draw(self) -> None:
        size = shutil.get_terminal_size()
        lines = frame(self._view, self._look, size.columns, size.lines, self._glyphs)
        text = HOME + f"{TO_END_OF_LINE}\r\n".join(painted(line, self._styles) for line in lines) + TO_END
        sys.stdout.write(text)
        sys.stdout.flush()


def painted(line: Line, styles: Mapping[Style, str]) -> str:
    """A line with its escape sequences."""
    codes = [styles.get(span.style) for span in line]
    return "".join(
        f"\x1b[{code}m{span.text}\x1b[0m" if code else span.text for span, code in zip(line, codes, strict=True)
    )


def keys(timeout_s: float) -> Iterator[str]:
    """Yield the keys pressed: characters, or the names of special keys; nothing if the time is up."""
    descriptor = sys.stdin.fileno()
    try:
        if not select.select([descriptor], [], [], timeout_s)[0]:
            return
        data = os.read(descriptor, MOST_KEYS_BYTES)
    except InterruptedError:
        return
    if not data:
        raise Interrupted  # the terminal is gone
    yield from named(data.decode("utf-8", "replace"))


def named(text: str) -> Iterator[str]:
    """Parse the keys in a text; unknown escape sequences are dropped."""
    while text:
        found = next((code for code in sorted(NAMED, key=len, reverse=True) if text.startswith(code)), "")
        if found == "\x1b" and text[1:2] in {"[", "O"}:
            text = text[2:].lstrip("0123456789;?")[1:]  # a key without a function
            continue
        yield NAMED.get(found, text[0])
        text = text[len(found) or 1 :]


@contextlib.contextmanager
def _terminal() -> Iterator[None]:
    """Set the terminal up, and restore it however the block ends."""
    descriptor = sys.stdin.fileno()
    before = termios.tcgetattr(descriptor)
    signals = _Signals()
    try:
        signals.take()
        tty.setcbreak(descriptor)
        # Disable Ctrl-Z: a shell would get the terminal in its drawing state.
        settings = termios.tcgetattr(descriptor)
        settings[6][termios.VSUSP] = b"\x00"
        termios.tcsetattr(descriptor, termios.TCSANOW, settings)
        sys.stdout.write(ENTER)
        yield
    finally:
        signals.is_restoring = True
        try:
            with contextlib.suppress(OSError, termios.error):
                termios.tcsetattr(descriptor, termios.TCSANOW, before)  # NOW: draining would block on stopped output
            with contextlib.suppress(OSError):
                sys.stdout.write(LEAVE)
                sys.stdout.flush()
        finally:
            signals.restore()


class _Signals:
    """Signals that end a live screen. One that comes while the terminal is being restored is deferred, once."""

    def __init__(self) -> None:
        numbers = [signal.SIGINT]  # also if the shell ignores it: here Ctrl-C is a key
        numbers += [one for one in (signal.SIGTERM, signal.SIGHUP) if signal.getsignal(one) is not signal.SIG_IGN]
        self._before = {number: signal.getsignal(number) for number in (*numbers, signal.SIGWINCH)}
        self._is_waiting = False
        self.is_restoring = False

    def take(self) -> None:
        for number in self._before:
            signal.signal(number, self._leave)
        signal.signal(signal.SIGWINCH, lambda *_: None)

    def restore(self) -> None:
        """Restore the handlers, and raise a deferred signal."""
        for number, handler in self._before.items():
            signal.signal(number, handler)
        if self._is_waiting:
            raise Interrupted

    def _leave(self, number: int, frame: FrameType | None) -> None:
        if self.is_restoring and not self._is_waiting:
            self._is_waiting = True
            return
        before = self._before[signal.Signals(number)]
        if number == signal.SIGINT and callable(before):
            before(number, frame)  # it records the interrupt, and raises
        raise Interrupted
