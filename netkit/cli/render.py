"""`netkit render`."""

import sys
from pathlib import Path

from netkit.cli.fabric import open_project, warn
from netkit.design.select import select
from netkit.errors import Problem, UsageError
from netkit.platforms import HOSTS, PLATFORMS
from netkit.project.rendering import bounded, each_in_time
from netkit.render import Engine, manifest_head, render, write
from netkit.terminal.progress import progress


def run(folder: Path, out: Path, *, limit: str, platform: str, ztp: bool) -> None:
    """Render the selected devices into a folder."""
    if platform and platform not in {*PLATFORMS, HOSTS}:
        raise UsageError(Problem(f"unknown platform {platform!r}", f"use one of {', '.join(PLATFORMS)} or {HOSTS}"))
    project = open_project(folder)
    warn(project)
    devices = tuple(device for device in select(project.fabric, limit) if platform in {"", device.platform})
    if not devices:
        raise UsageError(Problem("no device is left to render", "check --limit and --platform"))
    rendered = render(project.fabric, devices, Engine(project.template_folders), ztp=ztp, extra=True)
    with progress("rendering", len(devices)) as shown, bounded():
        done = write(
            out, shown(each_in_time(rendered)), manifest_head(project.fabric), is_complete=not limit and not platform
        )
    parts = [f"{len(done.changed)} changed", f"{done.unchanged} unchanged"]
    if done.removed:
        parts.append(f"{len(done.removed)} removed")
    total = len(done.changed) + done.unchanged
    noun = "device" if len(devices) == 1 else "devices"
    sys.stdout.write(f"{total} files of {len(devices)} {noun} in {out}: {', '.join(parts)}\n")
