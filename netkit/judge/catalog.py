"""The catalogue of checks: the files under `checks/`, the user's own before those that come with netkit."""

import importlib.util
import sys
from collections.abc import Mapping, Sequence
from contextlib import redirect_stdout
from dataclasses import replace
from pathlib import Path

from netkit.errors import CheckError, NetkitError, Problem
from netkit.judge.check import Check, is_meant

Catalog = Mapping[str, Check]
NO_CHECKS = ("_", "test_", "conftest")
"""Prefixes of file names without checks."""


def shipped_checks() -> Path:
    """The folder of the checks that come with netkit: in the wheel, or at the top of a checkout."""
    inside = Path(__file__).parent.parent / "shipped" / "checks"
    return inside if inside.is_dir() else Path(__file__).parent.parent.parent / "checks"


def load(folders: Sequence[Path] = ()) -> Catalog:
    """All checks by name. A file in an earlier folder replaces one of the same name in a later folder."""
    files: dict[str, Path] = {}
    for folder in (*folders, shipped_checks()):
        for file in sorted(folder.glob("*.py")):
            if not file.name.startswith(NO_CHECKS):
                files.setdefault(file.stem, file)
    found = {check.name: check for stem in sorted(files) for check in of_file(files[stem])}
    if not found:
        raise CheckError(Problem("there are no checks", "install netkit again: its checks folder is empty"))
    return found


def of_file(file: Path) -> Sequence[Check]:
    """The checks in a file; what it prints goes to stderr, since stdout belongs to the result."""
    module = f"netkit_checks.{file.stem}"
    spec = importlib.util.spec_from_file_location(module, file)
    if spec is None or spec.loader is None:
        raise CheckError(Problem("is not Python", "name it NAME.py", file=str(file)))
    loaded = importlib.util.module_from_spec(spec)
    sys.modules[module] = loaded  # dataclasses look up their module
    try:
        with redirect_stdout(sys.stderr):
            spec.loader.exec_module(loaded)
    except NetkitError as error:
        raise CheckError(replace(problem, file=str(file)) for problem in error.problems) from None
    except (Exception, SystemExit) as error:  # exit() in a file would end the run with success
        line = _line_of(error, file)
        raise CheckError(
            Problem(f"cannot be loaded: {type(error).__name__}: {error}", "fix it", file=str(file), line=line)
        ) from None
    stem = file.stem.replace("_", "-")
    found = {one.name: one for one in vars(loaded).values() if isinstance(one, Check)}
    if not found:
        raise CheckError(Problem("holds no check", "decorate a function with @device_check", file=str(file)))
    return [replace(check, name=f"{stem}.{check.name}") for check in found.values()]


def _line_of(error: BaseException, file: Path) -> int:
    if isinstance(error, SyntaxError):
        return error.lineno or 0
    line, trace = 0, error.__traceback__
    while trace is not None:
        line = trace.tb_lineno if trace.tb_frame.f_code.co_filename == str(file) else line
        trace = trace.tb_next
    return line


def select(catalog: Catalog, names: Sequence[str]) -> tuple[Check, ...]:
    """The checks chosen by names, file names or globs; choosing nothing is an error."""
    if not names:
        return tuple(catalog.values())
    chosen: dict[str, Check] = {}
    for name in names:
        known_one = catalog.get(name)  # a job names all of its checks
        found = {name: known_one} if known_one else {key: one for key, one in catalog.items() if is_meant(key, name)}
        if not found:
            known = ", ".join(sorted({key.partition(".")[0] for key in catalog}))
            raise CheckError(
                Problem(f"no check {name!r}", f"use one of {known}, or a name that netkit check --list shows")
            )
        chosen.update(found)
    return tuple(chosen.values())
