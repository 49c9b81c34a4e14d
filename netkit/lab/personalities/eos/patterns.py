"""Forms of commands that are run rather than kept: words as they stand, and places for a word."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Protocol, TypeVar

Captured = Mapping[str, str]


class HasForm(Protocol):
    """Something known by the form of its command."""

    @property
    def form(self) -> str:
        """Return the form, such as `show interfaces <port> status`; `<rest…>` takes all that is left."""


Found = TypeVar("Found", bound=HasForm)


def closest(known: Iterable[Found], words: Sequence[str]) -> tuple[Found, Captured] | int:
    """Return the first whose form fits, with what its places took, or how many words were understood at best."""
    furthest = 0
    for one in known:
        found = fit(one.form, words)
        if not isinstance(found, int):
            return one, found
        furthest = max(furthest, found)
    return furthest


def fit(form: str, words: Sequence[str]) -> Captured | int:
    """Return what the places of a form took, or how many words fit."""
    captured: dict[str, str] = {}
    places = form.split()
    for index, place in enumerate(places):
        if place == "<rest…>" and words[index:]:
            captured["rest"] = " ".join(words[index:])
            return captured
        if index >= len(words):
            return index
        if place.startswith("<"):
            captured[place.strip("<>")] = words[index]
        elif place != words[index]:
            return index
    return captured if len(places) == len(words) else len(places)
