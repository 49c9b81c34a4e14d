"""A progress bar for whatever takes longer than a second; nothing when output is piped."""

import sys
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
    started = time.monotonic()
    is_shown = sys.stderr.isatty()
    drawn = False

    def shown(items: Iterable[Item]) -> Iterator[Item]:
        nonlocal drawn
        for count, item in enumerate(items, start=1):
            yield item
            if is_shown and time.monotonic() - started > PATIENCE_S:
                bar = "━" * (WIDTH * count // max(total, 1))
                sys.stderr.write(f"\r{title} {bar:<{WIDTH}} {count}/{total}")
                drawn = True

    try:
        yield shown
    finally:
        if drawn:
            sys.stderr.write("\r\x1b[K")
