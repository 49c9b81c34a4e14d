"""Slurm's notation for names that end in numbers: `gpu[01-04,07]` is gpu01 to gpu04, and gpu07."""

import re
from collections.abc import Iterable, Iterator
from itertools import groupby, product

NUMBERED = re.compile(r"(.*[^0-9])([0-9]{1,9})")


def fold(names: Iterable[str]) -> str:
    """Write names as a hostlist, in their order. Slurm allows a number in brackets only at the end of a name."""
    split = (NUMBERED.fullmatch(name) or (name, name, "") for name in names)
    return ",".join(
        prefix if is_plain else _bracketed(prefix, [found[2] for found in group])
        for (prefix, is_plain), group in groupby(split, lambda found: (found[1], not found[2]))
    )


def _bracketed(prefix: str, numbers: Iterable[str]) -> str:
    ranges: list[tuple[str, str]] = []
    for number in numbers:
        if ranges and number == _after(*ranges[-1]):
            ranges[-1] = ranges[-1][0], number
        else:
            ranges.append((number, number))
    parts = [first if first == last else f"{first}-{last}" for first, last in ranges]
    return f"{prefix}{parts[0]}" if parts == [ranges[0][0]] else f"{prefix}[{','.join(parts)}]"


def _after(first: str, last: str) -> str:
    """Return the number that continues a range; the width of its first number holds for all."""
    return f"{int(last) + 1:0{len(first)}}"


def expand(text: str) -> Iterator[str]:
    """Yield the names of a hostlist."""
    for name in re.findall(r"(?:[^,\[]|\[[^\]]*\])+", text):
        parts = re.split(r"\[([^\]]*)\]", name)
        choices = [[*_numbers(part)] if place % 2 else [part] for place, part in enumerate(parts)]
        yield from map("".join, product(*choices))


def _numbers(ranges: str) -> Iterator[str]:
    for part in ranges.split(","):
        first, _, last = part.partition("-")
        yield from (f"{number:0{len(first)}}" for number in range(int(first), int(last or first) + 1))
