"""What a request of the API asks for: filters and pages; anything that means nothing is refused, not ignored. Pure."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import TypeVar
from urllib.parse import urlencode

from netkit.judge import Verdict

MOST_ITEMS = 500
USUAL_ITEMS = 100
LONGEST = 200
WORDS = {verdict.word: verdict for verdict in Verdict}
T = TypeVar("T")


class QueryError(ValueError):
    """A query that means nothing."""


@dataclass(frozen=True, slots=True)
class Query:
    """The parameters of a request."""

    values: Mapping[str, str]

    @classmethod
    def of(cls, given: Sequence[tuple[str, str]], *known: str) -> "Query":
        """Read parameters; each at most once, and only those that are known."""
        values = dict(given)
        if unknown := [key for key in values if key not in known]:
            raise QueryError(f"no parameter {unknown[0][:LONGEST]!r}; there is {', '.join(known) or 'none'}")
        if len(values) < len(given):
            raise QueryError("a parameter is given twice")
        if any(len(value) > LONGEST for value in values.values()):
            raise QueryError(f"a parameter is longer than {LONGEST} characters")
        return cls(values)

    def text(self, name: str) -> str:
        """Return a parameter; empty when it is not given."""
        return self.values.get(name, "")

    def matches(self, name: str, text: str) -> bool:
        """Whether something is what a parameter asks for: a name or a glob; without it, everything is."""
        wanted = self.text(name)
        return not wanted or fnmatchcase(text, wanted)

    def verdict(self) -> Verdict | None:
        """Return the verdict that is asked for."""
        word = self.text("verdict")
        if word and word not in WORDS:
            raise QueryError(f"no verdict {word!r}; use one of {', '.join(WORDS)}")
        return WORDS.get(word)

    def number(self, name: str, usual: int, least: int, most: int) -> int:
        """Return a number within bounds."""
        text = self.text(name)
        if not text:
            return usual
        if not text.isascii() or not text.isdigit() or not least <= int(text) <= most:
            raise QueryError(f"{name} is a number from {least} to {most}")
        return int(text)

    def size(self) -> int:
        """Return how many items a page has at most."""
        return self.number("limit", USUAL_ITEMS, 1, MOST_ITEMS)

    def pinned(self, **chosen: str) -> "Query":
        """Return the query with values that its following parts keep."""
        return Query({**self.values, **chosen})

    def following(self, **changed: object) -> str:
        """Return the query with other values, in the order of names."""
        values = {**self.values, **{name: str(value) for name, value in changed.items()}}
        return urlencode(sorted(values.items()))


@dataclass(frozen=True, slots=True)
class Slice:
    """A part of many things."""

    items: list[object]
    total: int
    following: str
    """The query of the next part; empty when this is the last."""


def sliced(query: Query, found: Sequence[T], shown: Callable[[T], object]) -> Slice:
    """Return the part of things that is asked for by offset and limit."""
    begin = query.number("offset", 0, 0, 10**9)
    end = begin + query.size()
    following = query.following(offset=end) if end < len(found) else ""
    return Slice([shown(one) for one in found[begin:end]], len(found), following)


def after(query: Query, found: Sequence[T], name_of: Callable[[T], str], shown: Callable[[T], object]) -> Slice:
    """Return the part of things that comes after a named one: things that are added in front move nothing."""
    before = query.text("before")
    names = list(_names(found, name_of))
    if before and before not in names:
        raise QueryError(f"no run {before!r} to go on after")
    begin = names.index(before) + 1 if before else 0
    end = begin + query.size()
    following = query.following(before=names[end - 1]) if end < len(found) else ""
    return Slice([shown(one) for one in found[begin:end]], len(found), following)


def _names(found: Sequence[T], name_of: Callable[[T], str]) -> Iterator[str]:
    return map(name_of, found)
