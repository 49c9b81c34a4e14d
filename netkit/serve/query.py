"""The query of an API request: filters and paging; anything invalid is refused, not ignored."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import TypeVar
from urllib.parse import urlencode

from netkit.judge import Verdict
from netkit.store.partition import PlaceFilter, StoredPage

MOST_ITEMS = 500
USUAL_ITEMS = 100
LONGEST = 200
WORDS = {verdict.word: verdict for verdict in Verdict}
T = TypeVar("T")


class QueryError(ValueError):
    """An invalid query."""


@dataclass(frozen=True, slots=True)
class Query:
    """The parameters of a request."""

    values: Mapping[str, str]

    @classmethod
    def of(cls, given: Sequence[tuple[str, str]], *known: str) -> "Query":
        """Validate parameters: each at most once, and only known ones."""
        values = dict(given)
        if unknown := [key for key in values if key not in known]:
            raise QueryError(f"unknown parameter {unknown[0][:LONGEST]!r}; known are: {', '.join(known) or 'none'}")
        if len(values) < len(given):
            raise QueryError("a parameter is given twice")
        if any(len(value) > LONGEST for value in values.values()):
            raise QueryError(f"a parameter is longer than {LONGEST} characters")
        return cls(values)

    def text(self, name: str) -> str:
        """A parameter; empty if it is not given."""
        return self.values.get(name, "")

    def matches(self, name: str, text: str) -> bool:
        """Whether a text matches the name or glob in a parameter; without the parameter, everything does."""
        wanted = self.text(name)
        return not wanted or fnmatchcase(text, wanted)

    def places(self) -> PlaceFilter:
        return PlaceFilter(self.text("device"), self.text("check"), self.text("place"), self.verdict())

    def offset(self) -> int:
        return self.number("offset", 0, 0, 10**9)

    def verdict(self) -> Verdict | None:
        word = self.text("verdict")
        if word and word not in WORDS:
            raise QueryError(f"unknown verdict {word!r}; use one of {', '.join(WORDS)}")
        return WORDS.get(word)

    def number(self, name: str, usual: int, least: int, most: int) -> int:
        text = self.text(name)
        if not text:
            return usual
        if not text.isascii() or not text.isdigit() or not least <= int(text) <= most:
            raise QueryError(f"{name} must be a number from {least} to {most}")
        return int(text)

    def size(self) -> int:
        return self.number("limit", USUAL_ITEMS, 1, MOST_ITEMS)

    def pinned(self, **chosen: str) -> "Query":
        """The query with values that later pages keep."""
        return Query({**self.values, **chosen})

    def following(self, **changed: object) -> str:
        """The query string with other values, sorted by name."""
        values = {**self.values, **{name: str(value) for name, value in changed.items()}}
        return urlencode(sorted(values.items()))


@dataclass(frozen=True, slots=True)
class Slice:
    """One page of a list."""

    items: list[object]
    total: int
    following: str
    """The query of the next part; empty when this is the last."""


def sliced(query: Query, found: Sequence[T], shown: Callable[[T], object]) -> Slice:
    """The page at offset and limit."""
    begin = query.offset()
    return slice_of(query, StoredPage(tuple(found[begin : begin + query.size()]), len(found)), shown)


def slice_of(query: Query, part: StoredPage[T], shown: Callable[[T], object]) -> Slice:
    """The page that a store has cut at offset and limit."""
    end = query.offset() + query.size()
    following = query.following(offset=end) if end < part.total else ""
    return Slice([shown(one) for one in part.items], part.total, following)
