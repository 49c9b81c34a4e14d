"""A progress bar for whatever takes longer than a second; a line every two seconds where output is piped."""

import os
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TypeVar

from netkit.terminal.output import say

Item = TypeVar("Item")
PATIENCE_S = 1.0
LINE_S = 2.0
QUIET = threading.Event()
"""Set for runs without an audience: cron mails whatever is printed."""
WIDTH = 30


@contextmanager
def counter(title: str, total: int) -> Iterator[Callable[[], None]]:
    """Yield a function to call for each item done, from any thread."""
    started = time.monotonic()
    is_terminal = sys.stderr.isatty()
    lock = threading.Lock()
    done = 0
    drawn = False

    def count() -> None:
        nonlocal done, drawn
        with lock:
            done += 1
            if is_terminal and time.monotonic() - started > PATIENCE_S:
                bar = "━" * (WIDTH * done // max(total, 1))
                sys.stderr.write(f"\r{title} {bar:<{WIDTH}} {done}/{total}")
                sys.stderr.flush()
                drawn = True

    try:
        with lines(lambda: f"{title} {done}/{total}, {time.monotonic() - started:.0f} s"):
            yield count
    finally:
        if drawn:
            sys.stderr.write("\r\x1b[K")


@contextmanager
def lines(line: Callable[[], str]) -> Iterator[None]:
    """Print the progress every two seconds where no terminal shows it."""
    ended = threading.Event()

    def write() -> None:
        while not ended.wait(LINE_S):
            say(sys.stderr, f"{line()}\n")

    writer = threading.Thread(target=write, daemon=True)
    if sys.stderr.isatty() or QUIET.is_set() or os.environ.get("NETKIT_PROGRESS") == "off":
        yield
        return
    writer.start()
    try:
        yield
    finally:
        ended.set()
        writer.join()
