"""`netkit backup`: running configurations without secrets, one file per device that changes only with the device."""

import sys
from collections.abc import Mapping
from pathlib import Path

from netkit.cli.fabric import open_project, warn
from netkit.design.select import Device, select
from netkit.errors import ConfigError, OutputError, Problem
from netkit.plan import Running, Unreachable
from netkit.platforms.backup import joined, without_secrets
from netkit.platforms.compare import MODELS
from netkit.platforms.config import Files
from netkit.project.rendering import intended
from netkit.report.plan_view import counted, listed
from netkit.terminal.whole_file import write_whole

UNREACHED = 4
SUFFIX = ".conf"


def run(folder: Path, out: Path, *, limit: str, lab: str) -> int:
    """Save running configurations; return 4 if a device could not be read."""
    from netkit.project.connections import Connections  # noqa: PLC0415 (what connects is slow to import)
    from netkit.project.reading import read  # noqa: PLC0415

    project = open_project(folder, lab)
    warn(project)
    devices = {device.name: device for device in select(project.fabric, limit)}
    try:
        out.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise OutputError(Problem(f"{out} cannot be created: {error.strerror}", "name another folder")) from None
    found = read(Connections.of(project), tuple(devices), project.feedback)
    texts, missed = _texts(devices, found, intended(project, tuple(devices.values())))
    changed = [name for name, text in texts.items() if write_whole(out / f"{name}{SUFFIX}", text)]
    news = f"{counted(len(changed), 'file')} changed: {listed(changed)}" if changed else "nothing changed"
    sys.stdout.write(f"{project.fabric.name}: {counted(len(texts), 'device')} saved, {news}\n")
    others = sorted(file.stem for file in out.glob(f"*{SUFFIX}") if project.fabric.device(file.stem) is None)
    if others:
        sys.stdout.write(f"not of this fabric, and left as they are: {listed(others)}\n")
    for name, reason in missed.items():
        sys.stderr.write(f"not saved: {name}: {reason}; its earlier backup stays\n")
    return UNREACHED if missed else 0


def _texts(
    devices: Mapping[str, Device], found: Mapping[str, Running | Unreachable], wanted: Mapping[str, Files]
) -> tuple[dict[str, str], dict[str, str]]:
    """Return the text to save for each device, and the reason for each without one."""
    texts, missed = {}, {}
    for name, one in found.items():
        if isinstance(one, Unreachable):
            missed[name] = one.reason
            continue
        device = devices[name]
        try:
            model = MODELS[device.platform]
            files = without_secrets(model, one.files, wanted[name])
        except ConfigError as error:  # secrets can only be removed from what can be parsed
            missed[name] = f"its running configuration cannot be parsed: {error.problems[0]}"
        else:
            texts[name] = joined(files)
    return texts, missed
