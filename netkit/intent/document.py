"""YAML text → plain values, with the place of every key; built for files people write by hand.

Numbers with a decimal point stay text (so that `version: 5.10` keeps its zero); pydantic turns them into
floats where a float is wanted. Aliases are refused: they hide repetition and can explode.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path as FilePath
from typing import Any

import yaml

from netkit.errors import IntentError, Path, Problem

LARGEST_BYTES = 4 * 1024 * 1024
DEEPEST = 32
_INTEGER = re.compile(r"[-+]?[0-9]{1,20}")

Value = str | int | bool | None | list["Value"] | dict[str | int, "Value"]
Loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


@dataclass(slots=True)
class Document:
    """The values of one file, and the line of each path."""

    file: str
    value: Value = None
    lines: dict[Path, int] = field(default_factory=dict)
    problems: list[Problem] = field(default_factory=list)


def read(file: FilePath) -> Document:
    """Read a YAML file; raise IntentError with one line if that fails."""
    shown = str(file)
    try:
        size = file.stat().st_size
        if file.is_dir():
            raise _refusal(shown, "is a folder", "put a file in its place")
        if not file.is_file():
            raise _refusal(shown, "is not a regular file", "put a file in its place")
        if size > LARGEST_BYTES:
            raise _refusal(shown, f"has {size:,} bytes", f"an intent file has at most {LARGEST_BYTES:,}")
        text = file.read_bytes().decode("utf-8-sig")
    except FileNotFoundError:
        raise _refusal(shown, "does not exist", "check the path, or start with `netkit init`") from None
    except UnicodeDecodeError as error:
        raise _refusal(shown, f"is not UTF-8 (byte {error.start})", "save it as UTF-8") from None
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else str(error)
        raise _refusal(shown, f"cannot be read: {reason}", "check the path and its permissions") from None
    return parse(text, shown)


def parse(text: str, file: str) -> Document:
    """Parse YAML; refuse syntax errors, aliases and tags, and note repeated keys in the document."""
    document = Document(file)
    try:
        events = yaml.parse(text, Loader=Loader)
        builder = _Builder(document, events)
        document.value = builder.build()
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        raise _refusal(
            file, _plain(error.problem or error.context or "not YAML"), _remedy(text, mark), _line(mark)
        ) from None
    except yaml.YAMLError as error:
        raise _refusal(file, _plain(str(error).splitlines()[0]), "remove the character") from None
    return document


def _refusal(file: str, message: str, remedy: str, line: int = 0) -> IntentError:
    return IntentError(Problem(message, remedy, file=file, line=line))


def _line(mark: Any) -> int:
    return mark.line + 1 if mark else 0


def _plain(problem: str) -> str:
    return problem.strip().rstrip(".") or "not YAML"


def _remedy(text: str, mark: Any) -> str:
    lines = text.splitlines()
    line = lines[mark.line] if mark and mark.line < len(lines) else ""
    if "\t" in line[: len(line) - len(line.lstrip())]:
        return "indent with spaces, not tabs"
    return "check the indentation, colons and quotes around this line"


class _Builder:
    """Builds values from parser events, so that nothing is expanded before it is checked."""

    def __init__(self, document: Document, events: Iterator[yaml.Event]) -> None:
        self.document = document
        self.events = events

    def build(self) -> Value:
        value: Value = None
        seen = 0
        for event in self.events:
            if isinstance(event, yaml.DocumentStartEvent):
                seen += 1
                if seen > 1:
                    raise _refusal(
                        self.document.file, "holds a second document", "remove the line ---", _line(event.start_mark)
                    )
            elif isinstance(event, yaml.NodeEvent):
                value = self.node(event, ())
        return value

    def node(self, event: yaml.Event, path: Path) -> Value:
        line = _line(event.start_mark)
        self.document.lines.setdefault(path, line)
        if len(path) > DEEPEST:
            raise _refusal(self.document.file, f"is nested more than {DEEPEST} levels deep", "flatten it", line)
        if isinstance(event, yaml.AliasEvent) or getattr(event, "anchor", None):
            raise _refusal(self.document.file, "uses an anchor or alias", "write the value out", line)
        if isinstance(event, yaml.ScalarEvent):
            if event.tag and not event.tag.startswith("tag:yaml.org,2002:str"):
                raise _refusal(self.document.file, f"uses the tag {event.tag}", "remove it", line)
            return _scalar(event)
        if isinstance(event, yaml.SequenceStartEvent):
            return self.sequence(path)
        return self.mapping(path)

    def sequence(self, path: Path) -> list[Value]:
        values: list[Value] = []
        while not isinstance(event := next(self.events), yaml.SequenceEndEvent):
            values.append(self.node(event, (*path, len(values))))
        return values

    def mapping(self, path: Path) -> dict[str | int, Value]:
        values: dict[str | int, Value] = {}
        while not isinstance(event := next(self.events), yaml.MappingEndEvent):
            line = _line(event.start_mark)
            key = _scalar(event) if isinstance(event, yaml.ScalarEvent) and not event.anchor else None
            if not isinstance(key, str | int) or isinstance(key, bool):
                raise _refusal(self.document.file, "has a key that is not a word or number", "quote the key", line)
            here = (*path, key)
            if key in values:
                first = self.document.lines[here]
                self.document.problems.append(
                    Problem(f"duplicate key (first on line {first})", "keep one", here, self.document.file, line)
                )
            self.document.lines.setdefault(here, line)
            values[key] = self.node(next(self.events), here)
        return values


def _scalar(event: yaml.ScalarEvent) -> Value:
    text: str = event.value
    if event.style in {"'", '"', "|", ">"}:
        return text
    if text in {"", "~", "null", "Null", "NULL"}:
        return None
    if text in {"true", "True", "TRUE"}:
        return True
    if text in {"false", "False", "FALSE"}:
        return False
    return int(text) if _INTEGER.fullmatch(text) else text
