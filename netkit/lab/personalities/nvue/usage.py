"""The words of a command line, told apart: what stands by its place, flags, and options with a value."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from netkit.lab.personalities.nvue.system import CommandError

USAGE_EXIT = 2


@dataclass(frozen=True, slots=True)
class Words:
    """One command line."""

    places: tuple[str, ...]
    flags: frozenset[str]
    options: Mapping[str, str]

    def flag(self, *names: str) -> bool:
        """Whether one of some flags was given."""
        return bool(self.flags & set(names))

    def option(self, *names: str, default: str = "") -> str:
        """Return the value of an option by any of its names."""
        return next((self.options[name] for name in names if name in self.options), default)


def words(given: Sequence[str], flags: Collection[str], options: Collection[str], maybe: str = "") -> Words:
    """Return a command line; `maybe` is an option whose value may be left out."""
    places, seen, values = [], set(), {}
    rest = list(given)
    while rest:
        name, equals, value = rest.pop(0).partition("=")
        if not name.startswith("-"):
            places.append(name + equals + value)
        elif name in flags:
            seen.add(name)
        elif name == maybe:
            is_next = bool(rest) and rest[0][:1].isdigit()
            values[name] = value or (rest.pop(0) if is_next else "")
        elif name in options:
            if not equals and not rest:
                raise CommandError(f"Error: argument {name}: expected one argument\n", USAGE_EXIT)
            values[name] = value if equals else rest.pop(0)
        else:
            raise CommandError(f"Error: unrecognized arguments: {name}\n", USAGE_EXIT)
    return Words(tuple(places), frozenset(seen), values)
