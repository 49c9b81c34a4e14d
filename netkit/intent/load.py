"""A fabric folder → Intent, or every problem in it at once."""

import copy
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path as FilePath
from typing import Any

from pydantic import ValidationError
from pydantic_core import ErrorDetails

from netkit.errors import IntentError, Path, Problem, RowIndex
from netkit.intent import complaint, csv_table, document
from netkit.intent.csv_table import CsvTable
from netkit.intent.model import Intent, Tables

FABRIC_FILE = "fabric.yaml"
OVERRIDES_FILE = "overrides.yaml"
REPAIRS = 3
MOST_ROWS = 20
"""Problems of one table that are printed."""


@dataclass(frozen=True, slots=True)
class Places:
    """The file and line of each path of an intent."""

    file: str
    lines: Mapping[Path, int]
    files: Mapping[Path, str]
    tables: Mapping[str, CsvTable] = field(default_factory=dict)

    def locate(self, problem: Problem) -> Problem:
        """The problem with the file and line of its path, or of the nearest parent that has one."""
        if problem.file:
            return problem
        match problem.path:
            case ("tables", str(name), int(row), *column) if name in self.tables:
                table, path = self.tables[name], ("tables", name, RowIndex(row), *column)
                return replace(problem, path=path, file=table.file, line=table.lines[row])
        for length in range(len(problem.path), 0, -1):
            head = problem.path[:length]
            if head in self.lines:
                return replace(problem, file=self.files.get(head[:2], self.file), line=self.lines[head])
        return replace(problem, file=self.file, line=1)

    def locate_all(self, problems: Iterable[Problem]) -> tuple[Problem, ...]:
        """The problems in the order of files and lines, of each table only the first ones."""
        located = dict.fromkeys(map(self.locate, problems))
        counts = Counter(problem.file for problem in located)
        tables = {table.file for table in self.tables.values()}
        kept = sorted(located, key=lambda problem: (problem.file, problem.line))
        for file in sorted(tables):
            if counts[file] > MOST_ROWS:
                rows = [problem for problem in kept if problem.file == file][MOST_ROWS:]
                rest = Problem(f"{len(rows)} more problems", "correct the ones above first", (), file, rows[0].line)
                kept = [problem for problem in kept if problem.file != file or problem not in set(rows)] + [rest]
        return tuple(kept)


@dataclass(frozen=True, slots=True)
class Loaded:
    """An intent and the places its values came from, so that later stages can point at lines."""

    intent: Intent
    places: Places
    folder: FilePath


def load(folder: FilePath) -> Loaded:
    """Read and check the intent in a fabric folder (or the fabric.yaml itself)."""
    values, places, problems = _read(folder)
    try:
        intent = Intent.model_validate(values)
    except ValidationError as error:
        problems += complaint.problems(error.errors(include_url=False))
    if problems:
        raise IntentError(places.locate_all(problems))
    return Loaded(intent, places, _home(folder))


def draft(folder: FilePath) -> Loaded | None:
    """Repair a refused intent as it was most likely meant, so that the design can find further problems."""
    values, places, _ = _read(folder)
    values = copy.deepcopy(values)
    for _ in range(REPAIRS):
        try:
            return Loaded(Intent.model_validate(values), places, _home(folder))
        except ValidationError as error:
            # Unknown keys first: a corrected key is no longer missing.
            details = error.errors(include_url=False)
            details.sort(key=lambda detail: detail["type"] not in complaint.UNKNOWN_KEY)
            repaired = [_repair(values, detail) for detail in details]
            if not all(repaired):
                return None
    return None


def _home(folder: FilePath) -> FilePath:
    return folder if folder.is_dir() else folder.parent


def _read(folder: FilePath) -> tuple[dict[str | int, document.Value], Places, list[Problem]]:
    if not folder.exists():
        raise IntentError(Problem(f"no fabric folder {folder}", "check --fabric, or start one with `netkit init`"))
    file = folder / FABRIC_FILE if folder.is_dir() else folder
    fabric = document.read(file)
    values = fabric.value
    if not isinstance(values, dict):
        raise IntentError(
            Problem("holds no fabric", "write `key: value` lines, or start from `netkit init`", file=str(file), line=1)
        )
    places, problems = Places(str(file), fabric.lines, {}), list(fabric.problems)
    beside = file.parent / OVERRIDES_FILE
    if beside.exists():
        places = _merge_overrides(values, places, document.read(beside), problems)
    places = replace(places, tables=dict(_read_tables(values, file, fabric.lines, problems)))
    return values, places, problems


def _read_tables(
    values: dict[str | int, document.Value], file: FilePath, lines: Mapping[Path, int], problems: list[Problem]
) -> Iterator[tuple[str, CsvTable]]:
    """Read the CSV files that the intent names, and put their rows in the place of the names."""
    named = values.get("tables")
    if not isinstance(named, dict):
        return
    for name, kind in Tables.columns().items():
        given = named.get(name)
        if not isinstance(given, str):
            continue
        named[name] = []
        try:
            table = csv_table.read(_beside(file, given, lines[("tables", name)]), kind)
        except IntentError as error:
            problems += error.problems
            continue
        problems += table.problems
        named[name] = [*table.rows]
        yield name, table


def _beside(file: FilePath, name: str, line: int) -> FilePath:
    """The path of a table, which must be within the fabric's folder, as in a revision or a copy of it."""
    path = FilePath(name)
    if path.is_absolute() or ".." in path.parts:
        what, remedy = f"{name!r} is outside the fabric's folder", "put it beside fabric.yaml"
        raise IntentError(Problem(what, remedy, ("tables",), str(file), line))
    return file.parent / path


def _merge_overrides(
    values: dict[str | int, document.Value], places: Places, extra: document.Document, problems: list[Problem]
) -> Places:
    if values.get("overrides") is None:
        values["overrides"] = {}
    overrides = values["overrides"]
    if extra.value is None:
        return places
    if not isinstance(extra.value, dict) or not isinstance(overrides, dict):
        raise IntentError(
            Problem(
                "must map device names to overrides", "write it as `leaf01: {drain: true}`", file=extra.file, line=1
            )
        )
    problems += extra.problems
    lines, files = dict(places.lines), dict(places.files)
    for name, override in extra.value.items():
        where: Path = ("overrides", name)
        if name in overrides:
            message = f"is also in {FABRIC_FILE} (line {places.lines.get(where, 1)})"
            problems.append(Problem(message, "keep one", where, extra.file, extra.lines[(name,)]))
            continue
        overrides[name] = override
        files[where] = extra.file
        lines.update({("overrides", *path): line for path, line in extra.lines.items() if path[:1] == (name,)})
    return Places(places.file, lines, files)


def _repair(values: Any, detail: ErrorDetails) -> bool:
    """Correct or remove one value the schema refuses; False if that is impossible."""
    path = tuple(part for part in detail["loc"] if part != "[key]")
    if not path:
        return False
    parents = [values]
    for part in path[:-1]:
        try:
            parents.append(parents[-1][part])
        except (KeyError, IndexError, TypeError):
            return False
    while not isinstance(parents[-1], dict):  # an entry of a list: the whole list goes
        parents.pop()
    parent, key, meant = parents[-1], path[len(parents) - 1], complaint.guess(detail)
    if detail["type"] == "missing":
        return key in parent  # the misspelt key was corrected
    if key not in parent:
        return True  # already removed
    value = parent.pop(key)
    if meant and detail["type"] == "literal_error":
        parent[key] = meant
    elif meant and meant not in parent:
        parent[meant] = value
    return True
