"""A parser for a plain subset of YAML, ten times as fast as a full one: nested mappings of words.

Anything beyond that subset, or invalid, is left to a full parser; what is parsed here gives the same result there.
"""

import re
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

Node = dict[str, Any] | list[Any]
Value = str | int | Node

# A word is a plain scalar in any position: no colon in it precedes a space. Quoted text is without escapes.
WORD = r"[A-Za-z0-9_/.](?:[A-Za-z0-9_/.@+=*()-]|:(?=[A-Za-z0-9_:]))*"
SINGLE, DOUBLE = r"'[ -&(-~]*'", r'"[ !#-\[\]-~]*"'
PAIR = rf"{WORD}: {WORD}"
SCALAR = rf"{WORD}(?: {WORD})*|{SINGLE}|{DOUBLE}"
VALUE = rf"{SCALAR}|\{{\}}|\[\]|\[{WORD}(?:, {WORD})*\]|\{{{PAIR}(?:, {PAIR})*\}}"
LINE = re.compile(rf"( *)(?:- ({VALUE})|({WORD}|{SINGLE}):(?: +({VALUE}))?)(?: *| +#.*)")
NOTHING = re.compile(r" *(?:#.*)?")
STRANGE = re.compile(r"[^\n -~]")
INTEGER = re.compile(r"-?(?:0|[1-9][0-9]{0,18})\Z")
LONGEST_LINE = 1000
ITEM = "- "


@dataclass(frozen=True, slots=True)
class _Line:
    """A line: its indentation, its key or None for a list item, and the value on the same line."""

    indent: int
    key: str | None
    value: Value | None = None
    number: Value | None = None
    """The value with unquoted integers as numbers."""

    def fresh(self, *, has_numbers: bool) -> Value:
        """A copy of the value; a key alone is empty unless lines below it follow."""
        value = self.number if has_numbers else self.value
        return "" if value is None else value if isinstance(value, str | int) else value.copy()


class _NotPlainError(Exception):
    """The text needs a full parser."""


def plain(text: str, *, has_numbers: bool = False) -> Value | None:
    """Parse plain YAML, every scalar as text; None if the text needs a full parser.

    With `has_numbers`, unquoted integers are numbers, except keys.
    """
    is_list = text.startswith(ITEM)  # one item, such as `- set:`, that holds all the rest
    try:
        tree = _tree(f"  {text.removeprefix(ITEM)}" if is_list else text, 2 if is_list else 0, has_numbers=has_numbers)
    except _NotPlainError:
        return None
    return [tree] if is_list else tree


def _tree(text: str, base: int, *, has_numbers: bool) -> Value:
    if STRANGE.search(text):
        raise _NotPlainError
    root: dict[str, Any] = {}
    above: list[tuple[int, Node]] = [(base, root)]
    heading: str | None = None
    """The key of the previous line if it has no value."""
    for raw in text.split("\n"):
        line = _line(raw)
        if line is None:
            continue
        while line.indent < above[-1][0] and len(above) > 1:
            above.pop()
            heading = None
        indent, node = above[-1]
        if line.indent > indent and heading is not None and isinstance(node, dict):
            inner: Node = [] if line.key is None else {}
            node[heading] = inner
            node = inner
            above.append((line.indent, inner))
        elif line.indent != indent:
            raise _NotPlainError
        value = line.fresh(has_numbers=has_numbers)
        if isinstance(node, list) and line.key is None:
            node.append(value)
        elif isinstance(node, dict) and line.key is not None:
            node[line.key] = value
        else:
            raise _NotPlainError
        heading = line.key if line.value is None else None
    if not root:
        raise _NotPlainError
    return root


@lru_cache(maxsize=10_000)
def _line(raw: str) -> _Line | None:
    """Parse a line; None if it is blank or a comment."""
    if NOTHING.fullmatch(raw):
        return None
    found = LINE.fullmatch(raw) if len(raw) < LONGEST_LINE else None
    if found is None:
        raise _NotPlainError
    item, key, value = found[2], found[3], found[4]
    if key is None:
        return _Line(len(found[1]), None, _value(item), _number(item))
    name = key.strip("'")
    return _Line(len(found[1]), name) if value is None else _Line(len(found[1]), name, _value(value), _number(value))


def _value(text: str) -> Value:
    if text[0] == "{":
        return dict(pair.split(": ") for pair in text[1:-1].split(", ")) if len(text) > 2 else {}
    if text[0] == "[":
        return list(text[1:-1].split(", ")) if len(text) > 2 else []
    return text[1:-1] if text[0] in "'\"" else text


def _number(text: str) -> Value:
    """Parse a value with unquoted integers as numbers."""
    value = _value(text)
    if isinstance(value, dict):
        return {key: _bare(word) for key, word in value.items()}
    if isinstance(value, list):
        return [_bare(word) for word in value]
    return _bare(text) if value == text else value


def _bare(word: str) -> Value:
    return int(word) if INTEGER.match(word) else word
