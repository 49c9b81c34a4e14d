"""Problems where a pull request shows them: at their line, in the words GitHub Actions reads from a log."""

import os
import sys
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

from netkit.errors import Problem

LEVELS = {"error": "error", "warning": "warning", "note": "notice"}
IN_VALUES = {"%": "%25", "\r": "%0D", "\n": "%0A"}
IN_PROPERTIES = {**IN_VALUES, ":": "%3A", ",": "%2C"}


def annotate(problems: Iterable[Problem]) -> None:
    """Say problems that have a place once more for GitHub Actions; elsewhere, nothing."""
    if os.environ.get("GITHUB_ACTIONS") != "true":
        return
    for problem in problems:
        if problem.file:
            sys.stderr.write(f"{command(replace(problem, file=_as_github_calls_it(problem.file)))}\n")


def _as_github_calls_it(file: str) -> str:
    """Return a file as the repository calls it, wherever in it netkit is run."""
    path, root = Path(file).resolve(), os.environ.get("GITHUB_WORKSPACE", "")
    return str(path.relative_to(Path(root).resolve())) if root and path.is_relative_to(Path(root).resolve()) else file


def command(problem: Problem) -> str:
    """Return the workflow command that puts a problem at its line."""
    text = f"{problem.message}; {problem.remedy}" if problem.remedy else problem.message
    line = f",line={problem.line}" if problem.line else ""
    level = LEVELS.get(problem.severity, "warning")
    return f"::{level} file={_escaped(problem.file, IN_PROPERTIES)}{line}::{_escaped(text, IN_VALUES)}"


def _escaped(text: str, marks: dict[str, str]) -> str:
    return "".join(marks.get(char, char) for char in text)
