"""Runs a command in the module that holds it, imported only then, so that `--help` stays quick."""

import importlib
from typing import Any

import typer


def run(command: str, *arguments: Any, verb: str = "run", **options: Any) -> None:
    """Run a function of a command's module; what it returns, when anything, is the exit code."""
    code = getattr(importlib.import_module(f"netkit.cli.{command}"), verb)(*arguments, **options)
    if code:
        raise typer.Exit(code)
