"""What an end makes of its counts before it shows them: since when it counts, whether it wraps, whether it is stuck."""

from collections.abc import Sequence
from typing import Generic, TypeVar

Reading = TypeVar("Reading")


class Account(Generic[Reading]):
    """One end's way of showing counts. A reset takes effect when the end is next read."""

    __slots__ = ("_bits", "_left", "_offsets", "is_stuck", "is_to_reset", "is_to_wrap", "kept")

    def __init__(self) -> None:
        self._offsets: tuple[int, ...] = ()
        self._bits = 0
        self._left = 0
        self.is_to_reset = False
        self.is_to_wrap = False
        self.is_stuck = False
        self.kept: Reading | None = None
        """What a stuck end showed when it got stuck."""

    def wrap(self, bits: int, left: int) -> None:
        """Put every counter that ever counted a little below the end of its range, when next read."""
        self._bits, self._left, self.is_to_wrap = bits, left, True

    def shown(self, counts: Sequence[int]) -> Sequence[int]:
        """Return the counts as they are shown."""
        if self.is_to_wrap:
            start = 2**self._bits - self._left
            self._offsets = tuple(count - start if count else 0 for count in counts)
            self.is_to_wrap = False
        elif self.is_to_reset:
            self._offsets, self._bits = tuple(counts), 0
        self.is_to_reset = False
        if not self._offsets:
            return counts
        limit = 2 ** (self._bits or 64)
        return [(count - offset) % limit for count, offset in zip(counts, self._offsets, strict=True)]
