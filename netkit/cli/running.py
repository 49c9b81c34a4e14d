"""Runs a command in its module, imported on demand, so that `--help` stays fast."""

import importlib
from typing import Any

import typer


def run(command: str, *arguments: Any, verb: str = "run", **options: Any) -> None:
    """Call a function of a command's module; a return value is the exit code."""
    code = getattr(importlib.import_module(f"netkit.cli.{command}"), verb)(*arguments, **options)
    if code:
        raise typer.Exit(code)
