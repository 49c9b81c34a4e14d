"""`netkit render`."""

import sys
from collections.abc import Sequence
from itertools import chain
from pathlib import Path

from netkit.cli.fabric import open_project, warn
from netkit.design.select import select, select_clusters
from netkit.errors import Problem, UsageError
from netkit.platforms import HOSTS, PLATFORMS
from netkit.project.rendering import bounded, each_in_time, rendered
from netkit.render import Engine, manifest_head, render_clusters, write


def run(folder: Path, out: Path, *, limit: str, platform: str, ztp: bool) -> None:
    """Render the selected devices into a folder."""
    if platform and platform not in {*PLATFORMS, HOSTS}:
        raise UsageError(Problem(f"unknown platform {platform!r}", f"use one of {', '.join(PLATFORMS)} or {HOSTS}"))
    project = open_project(folder)
    warn(project)
    clusters, rest = select_clusters(project.fabric, limit)
    chosen = () if clusters and not rest and limit else select(project.fabric, rest)
    devices = tuple(device for device in chosen if platform in {"", device.platform})
    if platform:
        clusters = ()
    if not devices and not clusters:
        raise UsageError(Problem("no device is left to render", "check --limit and --platform"))
    is_complete, engine = not limit and not platform, Engine(project.template_folders)
    of_clusters = render_clusters(project.fabric, clusters, engine, extra=True, jobs=True)
    of_devices = rendered(project, devices, ztp=ztp, has_extra=True) if devices else ()
    with bounded():
        found = chain(of_devices, each_in_time(of_clusters))
        done = write(out, found, manifest_head(project.fabric), is_complete=is_complete)
    parts = [f"{len(done.changed)} changed", f"{done.unchanged} unchanged"]
    if done.removed:
        parts.append(f"{len(done.removed)} removed")
    total = len(done.changed) + done.unchanged
    whose = [f"{len(devices)} device{'s' * (len(devices) != 1)}"] if devices else []
    whose += [one.kind for one in clusters]
    sys.stdout.write(f"{total} files of {_enumerated(whose)} in {out}: {', '.join(parts)}\n")


def _enumerated(names: Sequence[str]) -> str:
    *first, last = names
    return f"{', '.join(first)} and {last}" if first else last
