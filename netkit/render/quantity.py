"""Quantities of Kubernetes, such as 64Ti or 1500m: the API stores each in one form, whatever was applied."""

import re
from fractions import Fraction
from typing import Any

SUFFIXES = {
    "": Fraction(1),
    **{
        suffix: Fraction(1000) ** power
        for power, suffix in enumerate(("n", "u", "m", "", "k", "M", "G", "T", "P", "E"), -3)
    },
    **{suffix: Fraction(1024) ** power for power, suffix in enumerate(("Ki", "Mi", "Gi", "Ti", "Pi", "Ei"), 1)},
}
QUANTITY = re.compile(
    r"([+-]?(?:\d{1,40}\.?\d{0,40}|\.\d{1,40}))(?:([eE][+-]?\d{1,2})|([numkMGTPE]?|[KMGTPE]i))", re.ASCII
)


def parse_quantity(value: Any) -> Fraction | None:
    """Return the amount; None if it is not a quantity."""
    found = QUANTITY.fullmatch(str(value))
    if found is None or isinstance(value, bool):
        return None
    number, exponent, suffix = found.groups()
    return Fraction(f"{number}{exponent or ''}") * SUFFIXES[suffix or ""]


def canonical(number: int, unit: str = "") -> str:
    """Format an amount as the API stores it: with the largest suffix that leaves a whole number."""
    if not number:
        return "0"
    known = [suffix for suffix in SUFFIXES if suffix.endswith("i") == unit.endswith("i")]
    amount = number * SUFFIXES[unit]
    whole = [suffix for suffix in known if (amount / SUFFIXES[suffix]).denominator == 1]
    best = max(whole, key=lambda suffix: SUFFIXES[suffix])
    return f"{amount / SUFFIXES[best]}{best}"
