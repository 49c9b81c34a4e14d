"""What a device told: values at paths, as text for those that read answers, one to a line."""

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from netkit.platforms.gnmi.path import Path, Step
from netkit.platforms.shown import parsed, table

DEEPEST = 16
"""Trees that go deeper are none of those that are asked for."""


@dataclass(frozen=True, slots=True)
class Update:
    """A value at a path: a number, a word, or a whole tree as JSON."""

    path: Path
    value: object


def written(updates: Iterable[Update]) -> str:
    """Return updates as text."""
    return "".join(f"{json.dumps([_shown(one.path), one.value])}\n" for one in updates)


def read(text: str) -> Iterator[Update]:
    """Yield the updates of a text; whatever the text, what cannot be read is left out."""
    for line in text.splitlines():
        found = parsed(line)
        if isinstance(found, list) and len(found) == 2 and isinstance(found[0], list):
            steps = tuple(_steps(found[0]))
            if len(steps) == len(found[0]):
                yield Update(steps, found[1])


def leaves(update: Update) -> Iterator[tuple[Path, object]]:
    """Yield the single values of an update. A list in a tree has the keys that its entries name themselves by."""
    yield from _leaves(update.path, update.value, DEEPEST)


def _leaves(path: Path, value: object, deeper: int) -> Iterator[tuple[Path, object]]:
    if not isinstance(value, dict | list):
        yield path, value
    elif isinstance(value, dict) and deeper:
        for name, one in value.items():
            yield from _below(path, str(name), one, deeper - 1)


def _below(path: Path, name: str, value: object, deeper: int) -> Iterator[tuple[Path, object]]:
    if not isinstance(value, list):
        yield from _leaves((*path, Step(name)), value, deeper)
        return
    for entry in value:
        if isinstance(entry, dict):
            yield from _leaves((*path, Step(name, _keys(entry))), entry, deeper)


def _keys(entry: Mapping[str, object]) -> Mapping[str, str]:
    return {name.rpartition(":")[2]: one for name, one in entry.items() if isinstance(one, str)}


def _shown(path: Path) -> list[object]:
    return [[one.name, dict(one.keys)] if one.keys else one.name for one in path]


def _steps(shown: list[object]) -> Iterator[Step]:
    for one in shown:
        if isinstance(one, str):
            yield Step(one)
        elif isinstance(one, list) and len(one) == 2 and isinstance(one[0], str):
            yield Step(one[0], {key: value for key, value in table(one[1]).items() if isinstance(value, str)})
