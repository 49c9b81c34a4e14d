"""A progress bar for whatever takes longer than a second; nothing when output is piped."""

import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import TypeVar

Item = TypeVar("Item")
PATIENCE_S = 1.0
WIDTH = 30


@contextmanager
def progress(title: str, total: int) -> Iterator[Callable[[Iterable[Item]], Iterator[Item]]]:
    """Yield a function that counts what passes through it, and shows how far it has come."""
    with counter(title, total) as count:

        def shown(items: Iterable[Item]) -> Iterator[Item]:
            for item in items:
                yield item
                count()

        yield shown


@contextmanager
def counter(title: str, total: int) -> Iterator[Callable[[], None]]:
    """Yield a function that is called for each thing done, from any thread."""
    started = time.monotonic()
    is_shown = sys.stderr.isatty()
    lock = threading.Lock()
    done = 0
    drawn = False

    def count() -> None:
        nonlocal done, drawn
        with lock:
            done += 1
            if is_shown and time.monotonic() - started > PATIENCE_S:
                bar = "━" * (WIDTH * done // max(total, 1))
                sys.stderr.write(f"\r{title} {bar:<{WIDTH}} {done}/{total}")
                sys.stderr.flush()
                drawn = True

    try:
        yield count
    finally:
        if drawn:
            sys.stderr.write("\r\x1b[K")
