"""What follows a `|`: the filters of the command line."""

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence

from netkit.lab.personalities.eos.reply import InvalidCommandError, NoJsonError, Reply

Filter = Callable[[Sequence[str], re.Pattern[str]], Iterator[str]]


def through(reply: Reply, filters: Sequence[str]) -> Reply:
    """Return an answer after its filters; a filtered answer is text."""
    for words in filters:
        name, _, pattern = words.partition(" ")
        if name == "json":
            if reply.data is None:
                raise NoJsonError("This is an unconverted command")
            reply = Reply(None, f"{json.dumps(reply.data, indent=4)}\n")
        elif name == "no-more":
            continue
        elif name in FILTERS:
            kept = FILTERS[name](reply.text.splitlines(), _compiled(pattern))
            reply = Reply(None, "".join(f"{line}\n" for line in kept))
        else:
            raise InvalidCommandError(f"Invalid input (at token 0: '{name}')")
    return reply


def section(lines: Sequence[str], pattern: re.Pattern[str]) -> Iterator[str]:
    """Yield the lines that match, each with what is indented under it."""
    depth = -1
    for line in lines:
        indent = len(line) - len(line.lstrip())
        if depth >= 0 and indent > depth:
            yield line
            continue
        depth = -1
        if pattern.search(line):
            depth = indent
            yield line


def _compiled(pattern: str) -> re.Pattern[str]:
    try:
        return re.compile(pattern.strip('"'), re.IGNORECASE)
    except re.error as error:
        raise InvalidCommandError(f"Invalid regular expression: {error}") from error


def _include(lines: Sequence[str], pattern: re.Pattern[str]) -> Iterator[str]:
    return (line for line in lines if pattern.search(line))


def _exclude(lines: Sequence[str], pattern: re.Pattern[str]) -> Iterator[str]:
    return (line for line in lines if not pattern.search(line))


def _begin(lines: Sequence[str], pattern: re.Pattern[str]) -> Iterator[str]:
    start = next((index for index, line in enumerate(lines) if pattern.search(line)), len(lines))
    return iter(lines[start:])


FILTERS: Mapping[str, Filter] = {
    "include": _include,
    "grep": _include,
    "exclude": _exclude,
    "begin": _begin,
    "section": section,
}
