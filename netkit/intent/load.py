"""A fabric folder → Intent, or every problem in it at once."""

import difflib
import typing
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path as FilePath
from typing import Any

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from netkit.errors import IntentError, Path, Problem
from netkit.intent import document
from netkit.intent.model import Intent

FABRIC_FILE = "fabric.yaml"
OVERRIDES_FILE = "overrides.yaml"
SEVERAL_NAMES = 3


@dataclass(frozen=True, slots=True)
class Places:
    """Where each path of an intent stands, over all the files it was read from."""

    file: str
    lines: Mapping[Path, int]
    files: Mapping[Path, str]

    def locate(self, problem: Problem) -> Problem:
        """Return the problem with the file and line of its path, or of the nearest parent that has one."""
        if problem.file:
            return problem
        for length in range(len(problem.path), 0, -1):
            head = problem.path[:length]
            if head in self.lines:
                return replace(problem, file=self.files.get(head[:2], self.file), line=self.lines[head])
        return replace(problem, file=self.file)


@dataclass(frozen=True, slots=True)
class Loaded:
    """An intent and the places its values came from, so that later stages can point at lines."""

    intent: Intent
    places: Places
    folder: FilePath


def load(folder: FilePath) -> Loaded:
    """Read and check the intent in a fabric folder (or the fabric.yaml itself)."""
    file = folder / FABRIC_FILE if folder.is_dir() else folder
    if not folder.is_dir() and not folder.exists():
        raise IntentError(Problem(f"no fabric folder {folder}", "check --fabric, or start one with `netkit init`"))
    fabric = document.read(file)
    values = fabric.value
    if not isinstance(values, dict):
        raise IntentError(Problem("holds no fabric", "start from `netkit init`", file=str(file), line=1))
    places = Places(str(file), dict(fabric.lines), {})
    beside = file.parent / OVERRIDES_FILE
    if beside.exists():
        places = _merge_overrides(values, places, document.read(beside))
    try:
        intent = Intent.model_validate(values)
    except ValidationError as error:
        problems = [places.locate(problem) for problem in _problems(error, values)]
        raise IntentError(_unique(problems)) from None
    return Loaded(intent, places, file.parent)


def _merge_overrides(values: dict[Any, Any], places: Places, extra: document.Document) -> Places:
    overrides = values.setdefault("overrides", {})
    if not isinstance(extra.value, dict) or not isinstance(overrides, dict):
        raise IntentError(Problem("must map device names to overrides", "see docs/intent.md", file=extra.file, line=1))
    lines, files = dict(places.lines), {}
    for name, override in extra.value.items():
        if name in overrides:
            where = ("overrides", name)
            message = f"stands in {FABRIC_FILE} too (line {places.lines.get(where, 1)})"
            raise IntentError(Problem(message, "keep one", where, extra.file, extra.lines[(name,)]))
        overrides[name] = override
        files[("overrides", name)] = extra.file
    lines.update({("overrides", *path): line for path, line in extra.lines.items() if path})
    return Places(places.file, lines, files)


def _problems(error: ValidationError, values: Mapping[Any, Any]) -> Iterable[Problem]:
    for detail in error.errors(include_url=False):
        yield _problem(detail, _real_path(detail["loc"], values))


def _real_path(loc: Iterable[str | int], values: Any) -> Path:
    """Return pydantic's location without the markers it adds for dictionary keys."""
    return tuple(part for part in loc if part != "[key]")


def _problem(detail: ErrorDetails, path: Path) -> Problem:
    kind, context = detail["type"], detail.get("ctx", {})
    name = str(path[-1]) if path else ""
    if kind == "extra_forbidden":
        return Problem(f"unknown key '{name}'", _suggestion(name, path), path)
    if kind == "missing":
        return Problem(f"'{name}' is missing", f"add {name}", path)
    if kind == "value_error":
        return Problem(str(context["error"]), "", path)
    if kind == "literal_error":
        guess = difflib.get_close_matches(str(detail["input"]), str(context["expected"]).replace("'", "").split(" or "), 1)
        return Problem(f"{_shown(detail['input'])} is not {context['expected']}", f"did you mean {guess[0]}?" if guess else "", path)
    message = detail["msg"].replace("Input should be", "must be").replace("a valid dictionary or instance of", "a mapping for")
    return Problem(f"{message[:1].lower()}{message[1:]} (found {_shown(detail['input'])})", "", path)


def _suggestion(name: str, path: Path) -> str:
    known = list(_keys_at(path[:-1]))
    close = difflib.get_close_matches(name, known, 1, 0.6)
    if close:
        return f"did you mean '{close[0]}'?"
    return f"known keys here: {', '.join(sorted(known))}"


def _keys_at(path: Path) -> Iterable[str]:
    """Return the keys the intent knows at a path, by walking the models."""
    model: Any = Intent
    for part in path:
        fields = getattr(model, "model_fields", {})
        annotation = fields[part].annotation if part in fields else model
        model = _inner_model(annotation)
    return getattr(model, "model_fields", {})


def _inner_model(annotation: Any) -> Any:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return annotation
    for inner in typing.get_args(annotation):
        found = _inner_model(inner)
        if found is not None:
            return found
    return None


def _shown(value: object) -> str:
    text = repr(value) if isinstance(value, str) else "a mapping" if isinstance(value, dict) else "a list" if isinstance(value, list) else str(value)
    return text if len(text) <= 60 else text[:57] + "..."


def _unique(problems: Iterable[Problem]) -> list[Problem]:
    return sorted(dict.fromkeys(problems), key=lambda problem: (problem.file, problem.line))
