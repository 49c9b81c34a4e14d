"""How long judging may take: a check that never ends must not keep the verdicts of all others."""

from types import TracebackType
from typing import Self


class OverdueError(BaseException):
    """The time is over while a check runs; a check that catches every Exception does not catch it."""


class CheckDeadline:
    """What is being judged, and whether there is time for it; here there always is."""

    running = ""
    """What is being judged; empty between two checks."""
    has_told = False
    """Whether a check has been broken off: one that was not begun after it is no news."""
    why = ""
    """What is said of checks that were not begun."""

    @property
    def is_over(self) -> bool:
        """Whether the time has come."""
        return False

    def __enter__(self) -> Self:
        """Begin to break off what takes too long."""
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        """Break off nothing any more."""
