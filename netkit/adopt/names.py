"""Places derived from names: the numbers in them, and the pattern that all names of a role follow."""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

NUMBERS = re.compile(r"(\d+)")
LONGEST_NUMBER = 6
"""Digits that can be a unit or slot."""
Numbers = Mapping[str, int]


def natural(name: str) -> tuple[tuple[int, str], ...]:
    """Sort key that orders leaf2 before leaf10."""
    return tuple((int(part[:18]), "") if part.isdecimal() else (-1, part) for part in NUMBERS.split(name))


def some(names: Sequence[str]) -> str:
    """Name the first few in a message."""
    return ", ".join(names[:3]) + (" …" if len(names) > 3 else "")


@dataclass(frozen=True, slots=True)
class NumberColumns:
    """Names that differ in their numbers only."""

    literals: tuple[str, ...]
    """The text before each number, and after the last."""
    texts: Mapping[str, tuple[str, ...]]
    """Name → its numbers as written."""

    @classmethod
    def of(cls, names: Iterable[str]) -> "NumberColumns | None":
        """None if the names differ in more than numbers, or have none."""
        texts, literals = {}, set[tuple[str, ...]]()
        for name in names:
            parts = NUMBERS.split(name)
            literals.add(tuple(parts[0::2]))
            texts[name] = tuple(parts[1::2])
        if len(literals) != 1 or any(len(text) > LONGEST_NUMBER for found in texts.values() for text in found):
            return None
        (one,) = literals
        return cls(one, texts) if len(one) > 1 else None

    def values(self, column: int) -> dict[str, int]:
        return {name: int(found[column]) for name, found in self.texts.items()}

    @property
    def count(self) -> int:
        return len(self.literals) - 1

    def find(self, fits: Callable[[Numbers], bool], without: Iterable[int] = ()) -> int | None:
        """The first column whose numbers fit, other than some."""
        skipped = set(without)
        return next((one for one in range(self.count) if one not in skipped and fits(self.values(one))), None)


def separates(groups: Sequence[Iterable[str]], least: int = 1) -> Callable[[Numbers], bool]:
    """A test for a column: one number for each group, and another for each."""

    def fits(values: Numbers) -> bool:
        found = [{values[name] for name in group} for group in groups]
        firsts = {next(iter(numbers)) for numbers in found if numbers}
        return (
            all(len(numbers) == 1 for numbers in found)
            and len(firsts) == len(found)
            and all(number >= least for number in firsts)
        )

    return fits


def pattern(places: Mapping[str, Numbers], defaults: Sequence[str] = ()) -> str | None:
    """A pattern, such as leaf-u{unit:02}-r{rail}, that makes each name from its numbers.

    `places` is name → field → number. One of the defaults is preferred; None if no pattern makes all the names.
    """
    for candidate in defaults:
        if all(candidate.format(**numbers) == name for name, numbers in places.items()):
            return candidate
    columns = NumberColumns.of(places)
    if columns is None or any("{" in text or "}" in text for text in columns.literals):
        return None
    parts = [columns.literals[0]]
    for column, after in enumerate(columns.literals[1:]):
        texts = {name: columns.texts[name][column] for name in places}
        part = _field(places, texts)
        if part is None and len(set(texts.values())) > 1:
            return None
        parts += [part if part is not None else next(iter(texts.values())), after]
    found = "".join(parts)
    return found if all(found.format(**numbers) == name for name, numbers in places.items()) else None


def _field(places: Mapping[str, Numbers], texts: Mapping[str, str]) -> str | None:
    """The field whose number is written in one column, with its width."""
    fields = list(dict.fromkeys(key for numbers in places.values() for key in numbers))
    width = min(map(len, texts.values()))
    for key in fields:
        for form in dict.fromkeys((f"{{{key}}}", f"{{{key}:{width:02d}}}")):
            if all(form.format(**places[name]) == text for name, text in texts.items()):
                return form
    return None
