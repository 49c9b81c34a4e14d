"""Reading silences.yaml: every mistake at its line, with what to do."""

import difflib
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from pathlib import Path

from pydantic import ValidationError
from pydantic_core import ErrorDetails

from netkit.errors import IntentError, Problem, SilenceError
from netkit.errors import Path as EntryPath
from netkit.intent import complaint, document
from netkit.judge.check import is_meant
from netkit.judge.run import FABRIC
from netkit.judge.silence import REACHED, Silence
from netkit.silence.entry import FILE, AcknowledgementEntry, Entry, SilenceEntry, SilenceFile, of_lab

LISTS: Mapping[str, type[Entry]] = {"silences": SilenceEntry, "acknowledgements": AcknowledgementEntry}
AnyEntry = SilenceEntry | AcknowledgementEntry
PATTERN = re.compile(r"(?:^|[\[,:-])\s*\*")


@dataclass(frozen=True, slots=True)
class Known:
    """The checks and devices that can be silenced."""

    checks: Collection[str]
    devices: Collection[str]


@dataclass(frozen=True, slots=True)
class Silences:
    """The content of the file with its line numbers."""

    file: Path
    found: SilenceFile
    lines: Mapping[EntryPath, int]

    def of_lab(self, lab: str) -> tuple[Silence, ...]:
        """Return the silences of a lab of the fabric, or without a name of the fabric itself."""
        return of_lab(self.found.entries, lab)


def load(folder: Path) -> Silences:
    """Read silences.yaml in a fabric folder, if it exists. SilenceError lists every problem."""
    file = folder / FILE
    if not file.exists():
        return Silences(file, SilenceFile(), {})
    try:
        read = document.read(file)
    except IntentError as error:
        problems = [_quoted(problem, file) for problem in error.problems]
        raise SilenceError(problems) from None
    return checked_document(read, file)


def checked_document(read: document.Document, file: Path) -> Silences:
    """Validate a parsed document; SilenceError lists every problem."""
    if read.value is None:
        return Silences(file, SilenceFile(), {})
    if not isinstance(read.value, dict):
        what = "holds no lists"
        raise SilenceError(
            Problem(what, "write silences: or acknowledgements: and a list below", file=read.file, line=1)
        )
    found, problems = SilenceFile(), list(read.problems)
    try:
        found = SilenceFile.model_validate(read.value)
    except ValidationError as error:
        problems += [_located(problem, read.file, read.lines) for problem in _problems(error.errors(include_url=False))]
    problems += _repeated(found, read)
    if problems:
        raise SilenceError(sorted(problems, key=lambda problem: problem.line))
    return Silences(file, found, read.lines)


def check(silences: Silences, known: Known, now_s: float) -> None:
    """Refuse entries about unknown things, or about everything; expired ones are ignored."""
    problems = [
        _located(one, str(silences.file), silences.lines)
        for path, entry in _placed_entries(silences.found)
        if not entry.silence().is_over(now_s)
        for one in _unknown_names(path, entry, known)
    ]
    if problems:
        raise SilenceError(sorted(problems, key=lambda problem: problem.line))


def _placed_entries(found: SilenceFile) -> Iterator[tuple[EntryPath, AnyEntry]]:
    yield from ((("silences", number), one) for number, one in enumerate(found.silences or ()))
    yield from ((("acknowledgements", number), one) for number, one in enumerate(found.acknowledgements or ()))


def _unknown_names(path: EntryPath, entry: AnyEntry, known: Known) -> Iterator[Problem]:
    """Yield what an entry names that does not exist; an acknowledgement names one finding, without patterns."""
    is_one = isinstance(entry, AcknowledgementEntry)
    silence = entry.silence()
    checks = [*known.checks, REACHED]
    for number, name in enumerate(silence.checks):
        if not (name in checks if is_one else any(is_meant(check, name) for check in checks)):
            files = () if is_one else (check.partition(".")[0] for check in known.checks)
            remedy = _meant(name, [*dict.fromkeys(files), *checks])
            yield Problem(f"no check {complaint.shown(name)}", remedy, (*path, "check", number))
    devices = (*known.devices, FABRIC)
    for number, subject in enumerate(silence.subjects):
        name = subject.device
        if not (name in devices if is_one else any(fnmatchcase(one, name) for one in devices)):
            yield Problem(f"no device {complaint.shown(name)}", _meant(name, devices), (*path, "where", number))
    if isinstance(entry, SilenceEntry) and not entry.everything and _is_everything(entry, known):
        remedy = "name checks or devices, or say `everything: true`"
        yield Problem("would silence every check on every device", remedy, path)


def _is_everything(entry: SilenceEntry, known: Known) -> bool:
    silence = entry.silence()
    return all(
        silence.is_about(check, device, "some/place") for check in known.checks for device in (*known.devices, FABRIC)
    )


def _meant(word: str, known: Sequence[str]) -> str:
    close = difflib.get_close_matches(word, known, 1, 0.6)
    if close:
        return f"did you mean {close[0]}?"
    return f"use one of {', '.join(known[:8])}{' and so on' if len(known) > 8 else ''}"


def _problems(details: Sequence[ErrorDetails]) -> Iterator[Problem]:
    misspelt = {(*one["loc"][:-1], _close(one)) for one in details if one["type"] == "extra_forbidden"}
    for detail in details:
        path = detail["loc"]
        if detail["type"] == "extra_forbidden":
            close = _close(detail)
            remedy = f"did you mean '{close}'?" if close else f"remove it; known keys here: {', '.join(_keys(path))}"
            yield Problem(f"unknown key {complaint.shown(str(path[-1]))}", remedy, path)
        elif detail["type"] != "missing":
            found = complaint.problem(detail)
            yield Problem(found.message, found.remedy, path)
        elif path not in misspelt:
            fields = LISTS[str(path[0])].model_fields
            meaning = next(one.description for name, one in fields.items() if path[-1] in {name, one.alias})
            yield Problem(f"has no {path[-1]}", f"add {path[-1]}: {meaning or ''}", path[:-1])


def _keys(path: EntryPath) -> list[str]:
    model = LISTS.get(str(path[0])) if len(path) > 1 else None
    fields = SilenceFile.model_fields if model is None else model.model_fields
    return sorted(field.alias or name for name, field in fields.items())


def _close(detail: ErrorDetails) -> str | None:
    return next(iter(difflib.get_close_matches(str(detail["loc"][-1]).lower(), _keys(detail["loc"]), 1, 0.6)), None)


def _located(problem: Problem, file: str, lines: Mapping[EntryPath, int]) -> Problem:
    """Return a problem with its line; a value that is written without a list has no number."""
    path = problem.path
    if path not in lines and len(path) > 3 and isinstance(path[-1], int):
        path = path[:-1]
    heads = (path[:length] for length in range(len(path), -1, -1))
    line = next((lines[head] for head in heads if head in lines), 1)
    return Problem(problem.message, problem.remedy, path, file, line)


def _repeated(found: SilenceFile, read: document.Document) -> Iterator[Problem]:
    first: dict[str, int] = {}
    for path, entry in _placed_entries(found):
        line = read.lines.get(path, 1)
        known = first.setdefault(entry.silence().id, line)
        if known != line:
            what = f"is about the same as the one on line {known}"
            yield Problem(what, "keep one, or give each an id", path, read.file, line)


def _quoted(problem: Problem, file: Path) -> Problem:
    """Explain an unquoted pattern, which YAML takes for an alias."""
    with suppress(OSError, UnicodeDecodeError, IndexError):
        if problem.line and PATTERN.search(file.read_text(encoding="utf-8").splitlines()[problem.line - 1]):
            return replace(
                problem, message="a pattern that begins with * is not in quotes", remedy='write it as "*.up"'
            )
    return problem
