"""Changes below the places of the configuration they stand at, those that are the same at many places told once."""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import groupby

from netkit.platforms.change import Change, Risk

Path = tuple[str, ...]
MOST_PLACES = 6
"""So many places are named; of more, the first ones and the last."""


@dataclass(frozen=True, slots=True)
class ReportLine:
    """One change, ready to be shown below its heading."""

    sign: str
    text: str
    risk: Risk


@dataclass(frozen=True, slots=True)
class Section:
    """Changes that stand at one place of the configuration, or alike at several."""

    path: Path
    lines: tuple[ReportLine, ...]
    at: int = 0
    """Which word of the path differs between the places."""
    places: tuple[str, ...] = ()
    """What that word is at each of them."""

    @property
    def heading(self) -> str:
        """Return the path as one line, with all places in it."""
        shown = ", ".join(self.places)
        if len(self.places) > MOST_PLACES:
            shown = f"{', '.join(self.places[:2])} … {self.places[-1]} ({len(self.places)})"
        return " ".join((*self.path[: self.at], *((shown,) if shown else ()), *self.path[self.at + 1 :]))


Shape = tuple[int, Path, tuple[ReportLine, ...]]
"""Which word of a path is left open, the path without it, and what stands below."""


def sections(changes: Iterable[tuple[Change, tuple[ReportLine, ...]]]) -> Iterator[Section]:
    """Yield changes below their headings, in the order in which each heading comes first."""
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
    """Return the ways to leave one word of a heading open; an empty heading has one."""
    path, lines = section.path, section.lines
    return [(at, (*path[:at], "", *path[at + 1 :]), lines) for at in range(len(path))] or [(0, (), lines)]
