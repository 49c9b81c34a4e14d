"""silences.yaml: its entries, and every mistake at its line, with what to do."""

import difflib
import fcntl
import hashlib
import os
import re
import shutil
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from datetime import datetime
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, ConfigDict, Field, ValidationError, WithJsonSchema, model_validator
from pydantic_core import ErrorDetails

from netkit.access.settings import AccessModel
from netkit.errors import IntentError, Problem, SilenceError
from netkit.errors import Path as EntryPath
from netkit.intent import complaint, document
from netkit.intent.list_edit import BY_HAND, ListEditError, Plain, block, with_entry, without_entry
from netkit.judge import Verdict
from netkit.judge.check import is_meant
from netkit.judge.run import FABRIC
from netkit.judge.silence import REACHED, Fault, Silence, Subject

FILE = "silences.yaml"
EXAMPLE = "2026-12-01T08:00:00Z"
ID_LENGTH = 6


ONE_OR_MORE = {"anyOf": [{"type": "string"}, {"type": "array", "items": {"type": "string"}, "minItems": 1}]}
HEAD = "# Findings that do not count, with author, reason and end: netkit silence adds, lists and ends them.\n"


def _moment(value: object) -> datetime:
    try:
        found = datetime.fromisoformat(value) if isinstance(value, str) else None
    except ValueError:
        found = None
    if found is None:
        raise ValueError(f"{{given}} is not a time; write it as {EXAMPLE}")
    if found.tzinfo is None:
        raise ValueError(f"{{given}} has no time zone; write it as {EXAMPLE}")
    return found


def _listed(value: object) -> object:
    return [value] if isinstance(value, str) else value


Moment = Annotated[
    datetime, BeforeValidator(_moment), WithJsonSchema({"type": "string", "format": "date-time"}, mode="validation")
]
Word = Annotated[str, Field(min_length=1, max_length=255)]
Words = Annotated[
    tuple[Word, ...],
    BeforeValidator(_listed),
    Field(min_length=1),
    WithJsonSchema(ONE_OR_MORE),
]
Text = Annotated[str, Field(min_length=1, max_length=1000)]
Texts = Annotated[tuple[Text, ...], BeforeValidator(_listed), Field(min_length=1), WithJsonSchema(ONE_OR_MORE)]


class Entry(AccessModel):
    """What a silence and an acknowledgement have in common."""

    model_config = ConfigDict(populate_by_name=True)

    by: Text = Field(description="author")
    why: Text = Field(description="the reason")
    ticket: Text | None = Field(None, description="the ticket")
    lab: Word | None = Field(None, description="for this lab of the fabric; without it, for the fabric itself")
    site: Word | None = Field(None, description="for the devices at this site of a fleet; without it, for all")
    id: Annotated[str, Field(pattern=r"^[\w.-]{1,64}$")] | None = Field(
        None, description="its ID; default: six digits derived from its content"
    )

    @model_validator(mode="after")
    def _ends_after_it_begins(self) -> "Entry":
        begins, ends = getattr(self, "begins", None), getattr(self, "until", None)
        if begins is not None and ends is not None and ends <= begins:
            raise ValueError("ends before it begins; give an until later than from")
        return self


class SilenceEntry(Entry):
    """Silences findings of checks at places, until a time."""

    check: Words = Field(description="checks: a name, a file or a glob; a list of them")
    where: Words = Field(description="DEVICE or DEVICE:PLACE, names or globs; `fabric` is the whole; a list of them")
    until: Moment = Field(description=f"when it ends, as {EXAMPLE}")
    begins: Moment | None = Field(None, alias="from", description="when it begins; without it, at once")
    everything: bool = Field(False, description="confirms that it covers every check on every device")

    def silence(self) -> Silence:
        return Silence(
            self.id or digest("silence", self.lab, self.check, self.where, self.site),
            self.check,
            tuple(map(Subject.of, self.where)),
            self.by,
            self.why,
            0.0 if self.begins is None else self.begins.timestamp(),
            self.until.timestamp(),
            self.ticket or "",
            site=self.site or "",
        )


class AcknowledgementEntry(Entry):
    """Silences one finding as it was found, until it clears; a worse or different fault counts again."""

    check: Word = Field(description="the check")
    where: Word = Field(description="DEVICE or DEVICE:PLACE, `fabric` or `fabric:PLACE`")
    verdict: Literal["warn", "fail"] = Field(description="the worst verdict that it covers")
    begins: Moment = Field(alias="from", description=f"when it was acknowledged, as {EXAMPLE}")
    until: Moment | None = Field(None, description="the latest end; default: when the finding passes")
    fault: Texts | None = Field(
        None, description="text of the finding, or a list of them; default: only the verdict matters"
    )
    cause: Text | None = Field(None, description="its cause, as CHECK[DEVICE] PLACE")

    def silence(self) -> Silence:
        return Silence(
            self.id or digest("acknowledgement", self.lab, [self.check], [self.where], self.site),
            (self.check,),
            (Subject.of(self.where),),
            self.by,
            self.why,
            self.begins.timestamp(),
            None if self.until is None else self.until.timestamp(),
            self.ticket or "",
            Fault(Verdict[self.verdict.upper()], self.fault or (), self.cause or ""),
            self.site or "",
        )


class SilenceFile(AccessModel):
    """All of silences.yaml."""

    silences: tuple[SilenceEntry, ...] | None = Field(None, description="findings that are muted until a time")
    acknowledgements: tuple[AcknowledgementEntry, ...] | None = Field(
        None, description="known findings, until they pass"
    )

    @property
    def entries(self) -> tuple[SilenceEntry | AcknowledgementEntry, ...]:
        """All entries, in the order of the file."""
        return *(self.silences or ()), *(self.acknowledgements or ())


def digest(kind: str, lab: str | None, checks: Iterable[str], places: Iterable[str], site: str | None = None) -> str:
    """The id of an entry that gives none: the same when its end or its reason is changed."""
    content = "\n".join((kind, lab or "", *sorted(checks), "", *sorted(places), *(("", site) if site else ())))
    return hashlib.sha256(content.encode()).hexdigest()[:ID_LENGTH]


def of_lab(entries: Iterable[SilenceEntry | AcknowledgementEntry], lab: str) -> tuple[Silence, ...]:
    """The silences of a lab of a fabric, or without a name of the fabric itself."""
    return tuple(one.silence() for one in entries if (one.lab or "") == lab)


def schema() -> dict[str, Any]:
    return SilenceFile.model_json_schema(by_alias=True)


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
        """The silences of a lab of the fabric, or without a name of the fabric itself."""
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
        remedy = "name checks or devices, or set `everything: true`"
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
    """A problem with its line; a value that is written without a list has no number."""
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


def add(folder: Path, name: str, values: Mapping[str, Plain], known: Known, now_s: float) -> AnyEntry:
    """Add an entry to the list `silences` or `acknowledgements`, replacing one of the same name; return it."""
    with _exclusive(folder):
        before = load(folder)
        text = _text(before.file)
        entry = _checked(name, values, known, now_s)
        if same := _places(before).get(entry.silence().id):
            text = _edited(before.file, without_entry, text, *same)
        text = _edited(before.file, with_entry, text, name, block(values))
        wanted = [one for one in before.found.entries if one.silence().id != entry.silence().id]
        _write(before.file, text, [*wanted, entry])
        return entry


def end(folder: Path, name: str) -> AnyEntry:
    """Remove an entry by its name or the start of its name, and return it."""
    with _exclusive(folder):
        before = load(folder)
        names = [one.silence().id for one in before.found.entries]
        found = [one for one in names if one == name] or [one for one in names if one.startswith(name)]
        if len(found) != 1:
            what = f"{len(found)} entries begin with {name!r}" if found else f"no silence or acknowledgement {name!r}"
            raise SilenceError(Problem(what, "netkit silence list shows them", file=str(before.file)))
        gone = before.found.entries[names.index(found[0])]
        text = _edited(before.file, without_entry, _text(before.file), *_places(before)[found[0]])
        _write(before.file, text, [one for one in before.found.entries if one is not gone])
        return gone


def _checked(name: str, values: Mapping[str, Plain], known: Known, now_s: float) -> AnyEntry:
    """Validate an entry before it is added; its problems have no line yet."""
    try:
        found = _read(f"{name}:\n{block(values)}", Path(FILE))
        check(found, known, now_s)
    except SilenceError as error:
        raise SilenceError(Problem(one.message, one.remedy, one.path[2:3]) for one in error.problems) from None
    (entry,) = found.found.entries
    if entry.silence().is_over(now_s):
        raise SilenceError(Problem("would end before it begins: its time is over", "give a later time"))
    return entry


@contextmanager
def _exclusive(folder: Path) -> Iterator[None]:
    """Serialise writers; the lock ends with its process."""
    try:
        handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    except OSError as error:
        raise SilenceError(Problem(f"{folder}: {error.strerror}", "name the folder with --fabric")) from None
    try:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield
    finally:
        os.close(handle)


def _text(file: Path) -> str:
    return file.read_bytes().decode("utf-8-sig") if file.exists() else HEAD


def _read(text: str, file: Path) -> Silences:
    return checked_document(document.parse(text, str(file)), file)


def _edited(file: Path, edit: Callable[..., str], *given: object) -> str:
    """Edit a text; SilenceError with the file if that needs a person."""
    try:
        return edit(*given)
    except ListEditError as error:
        raise SilenceError(replace(one, file=str(file)) for one in error.problems) from None


def _places(silences: Silences) -> Mapping[str, tuple[str, int]]:
    """Where each entry is: its list, and its number there."""
    lists: Mapping[str, tuple[AnyEntry, ...]] = {
        "silences": silences.found.silences or (),
        "acknowledgements": silences.found.acknowledgements or (),
    }
    return {one.silence().id: (key, number) for key, listed in lists.items() for number, one in enumerate(listed)}


def _write(file: Path, text: str, wanted: list[AnyEntry]) -> None:
    """Write a file atomically, after checking that it holds exactly the wanted entries."""
    found = _read(text, file).found.entries
    if sorted(map(repr, found)) != sorted(map(repr, wanted)):
        raise SilenceError(Problem("cannot be edited without changing other parts of it", BY_HAND, file=str(file)))
    target = file.resolve()
    draft = target.with_name(f".{FILE}.{os.getpid()}")
    try:
        with draft.open("w", encoding="utf-8") as stream:
            stream.write(text)
            stream.flush()
            os.fsync(stream.fileno())
        if target.exists():
            shutil.copymode(target, draft)
        draft.replace(target)
    except OSError as error:
        with suppress(OSError):
            draft.unlink(missing_ok=True)
        what = f"cannot be written: {error.strerror}"
        raise SilenceError(Problem(what, "check permissions of the fabric's folder", file=str(file))) from None
