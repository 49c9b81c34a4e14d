"""Shell completion; whatever cannot be read offers nothing."""

from collections.abc import Callable, Iterable
from contextlib import suppress
from pathlib import Path

import typer

from netkit.errors import NetkitError

# Imports are local: a shell waits for this at every Tab.
# ruff: noqa: PLC0415


def _completer(names: Callable[[typer.Context], Iterable[str]]) -> Callable[[typer.Context, str], list[str]]:
    def complete(ctx: typer.Context, incomplete: str) -> list[str]:
        with suppress(NetkitError, OSError):
            return [name for name in names(ctx) if name.startswith(incomplete)]
        return []

    return complete


def _devices(ctx: typer.Context) -> Iterable[str]:
    from netkit.cli.fabric import open_project
    from netkit.lab.folder import all_labs

    if folder := ctx.params.get("fabric"):
        return open_project(Path(folder)).fabric.names
    wanted = ctx.params.get("name")
    labs = [lab for lab in all_labs() if lab.name == wanted or not wanted]
    return labs[0].record().get("devices", {}) if len(labs) == 1 else ()


def _checks(ctx: typer.Context) -> Iterable[str]:
    from netkit.judge import catalog
    from netkit.project.project import CHECKS, beside

    found = catalog.load(beside(Path(ctx.params.get("fabric") or "."), CHECKS))
    return (*dict.fromkeys(name.partition(".")[0] for name in found), *found)


def _faults(_: typer.Context) -> Iterable[str]:
    from netkit.lab.faults import CATALOG

    return CATALOG


def _models(_: typer.Context) -> Iterable[str]:
    from netkit.hardware import Catalog
    from netkit.project.project import MODELS, beside

    return Catalog(beside(Path(), MODELS)).names("switches")


def _labs(_: typer.Context) -> Iterable[str]:
    from netkit.lab.folder import all_labs

    return [lab.name for lab in all_labs()]


def _runs(ctx: typer.Context) -> Iterable[str]:
    from netkit.cli.fabric import open_project
    from netkit.deploy import history
    from netkit.project.past import place_of, source_of
    from netkit.project.runs import LAST, runs_folder
    from netkit.store.store import open_store

    site = ctx.params.get("site") or ""
    project = open_project(Path(ctx.params.get("fabric") or "."), ctx.params.get("lab") or "", site=site)
    if ctx.command.name == "report" or ctx.params.get("checks") is True:
        with open_store(place_of(ctx.params.get("store") or "."), is_new_allowed=False) as store:
            return [LAST, *(run.name for run in store.runs(source_of(project)))]
    return [LAST, *(one.run for one in history(runs_folder(project.fabric.name, project.lab)))]


def _silences(ctx: typer.Context) -> Iterable[str]:
    from netkit.silence import load

    return [one.silence().id for one in load(Path(ctx.params.get("fabric") or ".")).found.entries]


devices, checks, faults = _completer(_devices), _completer(_checks), _completer(_faults)
models, labs, runs = _completer(_models), _completer(_labs), _completer(_runs)
silences = _completer(_silences)
