"""What a device did not tell, and why: never a zero, never a guess."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Absent:
    """A fact that is not there."""

    reason: str


NOT_ASKED = Absent("nobody asked for it")
