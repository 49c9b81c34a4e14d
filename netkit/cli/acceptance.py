"""`netkit acceptance`."""

import sys
from collections.abc import Sequence
from pathlib import Path

from netkit.cli.fabric import open_project, warn
from netkit.design import Host
from netkit.design.select import Device, select
from netkit.errors import OutputError, Problem, UsageError
from netkit.render.engine import Engine
from netkit.render.job import TEMPLATES, render_job


def emit(kind: str, folder: Path, *, out: Path | None, limit: str, image: str) -> None:
    """Write a job that tests the hosts of a fabric."""
    if kind not in TEMPLATES:
        raise UsageError(Problem(f"no kind of job {kind!r}", f"use {' or '.join(TEMPLATES)}"))
    project = open_project(folder)
    warn(project)
    hosts = several(select(project.fabric, limit))
    text = render_job(kind, project.fabric, hosts, Engine(project.template_folders), image)
    if out is None:
        sys.stdout.write(text)
        return
    try:
        out.write_text(text, encoding="utf-8")
    except OSError as error:
        raise OutputError(Problem(f"{out} cannot be written: {error.strerror}", "check its folder")) from None
    sys.stdout.write(f"{out}: {kind} for {len(hosts)} hosts of {project.fabric.name}\n")


def several(devices: Sequence[Device]) -> tuple[Host, ...]:
    """Return the hosts among devices; a test of the network needs two."""
    hosts = tuple(device for device in devices if isinstance(device, Host) and device.nics)
    if len(hosts) < 2:
        raise UsageError(Problem("a test of the network needs two hosts or more", "choose more with --limit"))
    return hosts
