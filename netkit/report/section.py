"""Changes grouped by their place in the configuration; those equal at many places are shown once."""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import groupby

from netkit.platforms.change import Change, Risk

Path = tuple[str, ...]
MOST_PLACES = 6
"""The limit of places to list; of more, the first two and the last are shown."""


@dataclass(frozen=True, slots=True)
class ReportLine:
    """One change, to be shown below its heading."""

    sign: str
    text: str
    risk: Risk


@dataclass(frozen=True, slots=True)
class Section:
    """The changes at one place of the configuration, or alike at several."""

    path: Path
    lines: tuple[ReportLine, ...]
    at: int = 0
    """The index of the word of the path that differs between the places."""
    places: tuple[str, ...] = ()
    """That word at each place."""

    @property
    def heading(self) -> str:
        """The path as one line, with all places."""
        shown = ", ".join(self.places)
        if len(self.places) > MOST_PLACES:
            shown = f"{', '.join(self.places[:2])} … {self.places[-1]} ({len(self.places)})"
        return " ".join((*self.path[: self.at], *((shown,) if shown else ()), *self.path[self.at + 1 :]))


Shape = tuple[int, Path, tuple[ReportLine, ...]]
"""The index of the open word of a path, the path without it, and the lines below."""


def sections(changes: Iterable[tuple[Change, tuple[ReportLine, ...]]]) -> Iterator[Section]:
    """Group changes by heading, in order of first appearance."""
    found = [
        Section(path, tuple(line for _, lines in within for line in lines))
        for path, within in groupby(changes, key=lambda pair: pair[0].path[:-1])
    ]
    shapes = Counter(shape for section in found for shape in _shapes(section))
    merged: dict[Shape, Section] = {}
    for section in found:
        shape = max(_shapes(section), key=lambda shape: (shapes[shape], -shape[0]))
        at = shape[0]
        known = merged.get(shape, replace(section, at=at))
        merged[shape] = replace(known, places=(*known.places, *section.path[at : at + 1]))
    yield from merged.values()


def _shapes(section: Section) -> Sequence[Shape]:
    """The variants of a heading with one word left open; an empty heading has one."""
    path, lines = section.path, section.lines
    return [(at, (*path[:at], "", *path[at + 1 :]), lines) for at in range(len(path))] or [(0, (), lines)]
