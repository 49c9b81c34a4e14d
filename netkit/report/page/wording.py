"""Text of devices as a report may hold it: no longer than a person reads, and nothing in it that hides the rest."""

from netkit.report.plan_view import shown

LONGEST_NAME = 80
LONGEST_TEXT = 400


def name(text: str) -> str:
    """Return a name, cut where it is longer than any name should be."""
    return cut(text, LONGEST_NAME)


def cut(text: str, longest: int = LONGEST_TEXT) -> str:
    """Return text that is safe to show and not too long; an ellipsis tells that there was more."""
    plain = shown(text[: longest + 1])
    return plain if len(plain) <= longest else f"{plain[: longest - 1]}…"
