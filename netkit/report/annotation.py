"""Problems at their line in a pull request, as workflow commands of GitHub Actions."""

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
    """Print problems that have a file as annotations, if this runs in GitHub Actions."""
    if os.environ.get("GITHUB_ACTIONS") != "true":
        return
    workspace = os.environ.get("GITHUB_WORKSPACE", "")
    root = Path(workspace).resolve() if workspace else None
    for problem in problems:
        if not problem.file:
            continue
        path, file = Path(problem.file).resolve(), problem.file
        if root is not None and path.is_relative_to(root):
            file = str(path.relative_to(root))
        sys.stderr.write(f"{command(replace(problem, file=file))}\n")


def command(problem: Problem) -> str:
    """The workflow command that attaches a problem to its line."""
    text = f"{problem.message}; {problem.remedy}" if problem.remedy else problem.message
    line = f",line={problem.line}" if problem.line else ""
    level = LEVELS.get(problem.severity, "warning")
    return f"::{level} file={_escaped(problem.file, IN_PROPERTIES)}{line}::{_escaped(text, IN_VALUES)}"


def _escaped(text: str, marks: dict[str, str]) -> str:
    return "".join(marks.get(char, char) for char in text)
