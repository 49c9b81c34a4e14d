"""`netkit backup`: what devices run, without secrets, in one file each that changes only when the device does."""

import sys
from collections.abc import Iterator, Mapping, Sequence
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
    """Save what devices run; return 4 when not all of them could be read."""
    from netkit.project.fleet import fleet  # noqa: PLC0415 (what connects is slow to import)
    from netkit.project.reading import read  # noqa: PLC0415

    project = open_project(folder, lab)
    warn(project)
    devices = {device.name: device for device in select(project.fabric, limit)}
    _make(out)
    found = read(fleet(project), tuple(devices), project.feedback)
    texts, missed = _texts(devices, found, intended(project, tuple(devices.values())))
    changed = [name for name, text in texts.items() if write_whole(out / f"{name}{SUFFIX}", text)]
    strange = sorted(file.stem for file in out.glob(f"*{SUFFIX}") if project.fabric.device(file.stem) is None)
    sys.stdout.write("".join(f"{line}\n" for line in _said(project.fabric.name, len(texts), changed, strange)))
    for name, reason in missed.items():
        sys.stderr.write(f"not saved: {name}: {reason}; what was saved before stays\n")
    return UNREACHED if missed else 0


def _texts(
    devices: Mapping[str, Device], found: Mapping[str, Running | Unreachable], wanted: Mapping[str, Files]
) -> tuple[dict[str, str], dict[str, str]]:
    """Return the text to save of each device, and of which there is none, and why."""
    texts, missed = {}, {}
    for name, one in found.items():
        if isinstance(one, Unreachable):
            missed[name] = one.reason
            continue
        device = devices[name]
        try:
            model = MODELS[device.platform]
            files = without_secrets(model, one.files, wanted[name])
        except ConfigError as error:  # what cannot be read cannot be freed of secrets
            missed[name] = f"what it says it runs cannot be read: {error.problems[0]}"
        else:
            texts[name] = joined(files)
    return texts, missed


def _said(fabric: str, count: int, changed: Sequence[str], strange: Sequence[str]) -> Iterator[str]:
    news = f"{counted(len(changed), 'file')} changed: {listed(changed)}" if changed else "nothing changed"
    yield f"{fabric}: {counted(count, 'device')} saved, {news}"
    if strange:
        yield f"not of this fabric, and left as they are: {listed(strange)}"


def _make(folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise OutputError(Problem(f"{folder} cannot be made: {error.strerror}", "name another folder")) from None
