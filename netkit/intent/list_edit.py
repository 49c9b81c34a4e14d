"""Edits of the lists in a YAML file: whole lines are added or removed, and the rest of the file is unchanged."""

import json
from collections.abc import Iterator, Mapping
from contextlib import suppress

import yaml

from netkit.errors import Problem, UsageError
from netkit.intent import document

BY_HAND = "edit it by hand: a list with one entry below the other can be edited by netkit"
Plain = str | bool | list[str]


class ListEditError(UsageError):
    """A list that cannot be edited by lines."""


def block(values: Mapping[str, Plain]) -> str:
    """Format an entry as lines of a list; JSON strings are also valid YAML."""
    lines = [f"{key}: {scalar(value)}" for key, value in values.items()]
    return "".join(f"  {'-' if not number else ' '} {line}\n" for number, line in enumerate(lines))


def scalar(value: Plain) -> str:
    if isinstance(value, list):
        return f"[{', '.join(map(scalar, value))}]"
    if isinstance(value, bool):
        return str(value).lower()
    # Some invisible characters would end the line of a quoted text.
    chars = json.dumps(value, ensure_ascii=False)
    quoted = "".join(char if char.isprintable() else f"\\U{ord(char):08x}" for char in chars)
    with suppress(Exception):  # what does not survive a round trip is quoted
        is_plain = value.isprintable() and document.parse(f"- k: {value}\n", "").value == [{"k": value}]
        in_list = yaml.safe_load(f"[{value}]") == [value]  # other parsers read `on` or a time differently
        return value if is_plain and in_list and " #" not in value else quoted
    return quoted


def _nodes(text: str, key: str) -> Iterator[tuple[yaml.Node, yaml.Node]]:
    """Yield the nodes of a key of the file and of its value."""
    root = yaml.compose(text, Loader=yaml.SafeLoader)
    yield from ((one, value) for one, value in (root.value if root else ()) if one.value == key)


def without_entry(text: str, key: str, number: int) -> str:
    """The file without an entry; an empty list is removed too."""
    ((name, listed),) = _nodes(text, key)
    _check_block(listed)
    lines = text.splitlines(keepends=True)
    begin, stop = _span(lines, listed.value[number])
    if len(listed.value) == 1:
        begin = name.start_mark.line
    return "".join((*lines[:begin], *lines[stop:]))


def _span(lines: list[str], node: yaml.Node) -> tuple[int, int]:
    """The lines of an entry, from its dash to its last value."""
    begin = node.start_mark.line
    while not lines[begin].lstrip().startswith("-"):
        begin -= 1
    is_within = bool(node.end_mark.column) and (_ends_in_line(node) or node.end_mark.line == len(lines) - 1)
    stop = node.end_mark.line + is_within
    while stop > begin + 1 and (not lines[stop - 1].strip() or lines[stop - 1].lstrip().startswith("#")):
        stop -= 1
    return begin, stop


def with_entry(text: str, key: str, entry: str) -> str:
    """The file with an entry at the end of a list."""
    text = text if text.endswith("\n") or not text else f"{text}\n"
    found = list(_nodes(text, key))
    if not found:
        return f"{text}{key}:\n{entry}"
    ((name, listed),) = found
    lines = text.splitlines(keepends=True)
    if not listed.value:
        at = name.start_mark.line
        return "".join((*lines[:at], f"{key}:\n", entry, *lines[listed.end_mark.line + 1 :]))
    _check_block(listed)
    begin, stop = _span(lines, listed.value[-1])
    dash = len(lines[begin]) - len(lines[begin].lstrip())
    moved = "".join(f"{' ' * dash}{line.removeprefix('  ')}" for line in entry.splitlines(keepends=True))
    head = lines[:stop]
    head[-1] = head[-1] if head[-1].endswith("\n") else f"{head[-1]}\n"
    return "".join((*head, moved, *lines[stop:]))


def _ends_in_line(node: yaml.Node) -> bool:
    """Whether the end of a node is on its last line; a block ends where the next token begins."""
    return _is_flow(node) or isinstance(node, yaml.ScalarNode)


def _is_flow(node: yaml.Node) -> bool:
    """Whether a node is written in brackets or braces."""
    return isinstance(node, yaml.CollectionNode) and bool(node.flow_style)


def _check_block(listed: yaml.Node) -> None:
    if _is_flow(listed):
        raise ListEditError(Problem("is a list in brackets", BY_HAND, line=listed.start_mark.line + 1))
