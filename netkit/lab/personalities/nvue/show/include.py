"""Parts of an object, such as `/*/link/state`: what `--view include=` of the command line and REST's `include` name."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress

from netkit.lab.personalities.nvue.show.look import Look
from netkit.lab.personalities.nvue.show.views import find
from netkit.lab.personalities.nvue.system import CommandError, System

Steps = tuple[str, ...]


def included(system: System, path: Sequence[str], patterns: Sequence[str], whole: Callable[[], object]) -> object:
    """Return the parts of an object that some patterns name; a part of ports that has a view is told by that view."""
    look, result = Look(system), dict[str, object]()
    for steps in _steps(patterns):
        own = dict(_parts(look, steps[1:])) if tuple(path) == ("interface",) and steps[:1] == ("*",) else {}
        _add(result, own or _only(whole(), [steps]))
    return result


def _parts(look: Look, steps: Steps) -> Iterator[tuple[str, object]]:
    """Yield what each port tells by the view of one part, in its place in the tree."""
    found = find(("interface", "*", *steps), look.system.chassis.version)
    for name in look.interfaces if found else ():
        with suppress(CommandError):  # of what has no such part
            part: object = found[0](look.at(name)) if found else {}
            for word in reversed(steps):
                part = {word: part}
            yield name, part


def _add(result: dict[str, object], more: object) -> None:
    """Add parts to others."""
    for key, value in more.items() if isinstance(more, Mapping) else ():
        before = result.setdefault(key, value)
        if before is not value and isinstance(before, Mapping):
            result[key] = merged = dict(before)
            _add(merged, value)


def only(found: object, patterns: Sequence[str]) -> object:
    """Return the parts that one of some patterns names; all of it when there are none."""
    return _only(found, list(_steps(patterns)))


def _steps(patterns: Sequence[str]) -> Iterator[Steps]:
    yield from (tuple(filter(None, pattern.split("/"))) for one in patterns for pattern in one.split(","))


def _only(found: object, patterns: Sequence[Steps]) -> object:
    if not patterns or not isinstance(found, Mapping) or any(not pattern for pattern in patterns):
        return found
    result: dict[str, object] = {}
    for key, value in found.items():
        rest_of = [pattern[1:] for pattern in patterns if pattern[0] in {"*", key}]
        kept = _only(value, rest_of) if rest_of else {}
        if rest_of and (kept != {} or value == {}):
            result[key] = kept
    return result
