"""Running and intended configurations → a plan. Pure: what was read is handed in."""

import hashlib
from collections.abc import Mapping, MutableMapping

from netkit import __version__
from netkit.design.fabric import Fabric, Host, Switch
from netkit.errors import ConfigError, PlanError, Problem
from netkit.plan import blast
from netkit.plan.group import grouped
from netkit.plan.shape import Blast, DevicePlan, Missed, Plan, Running, Unreachable
from netkit.platforms.change import NOTHING, Risk, Way
from netkit.platforms.compare import Comparison, ConfigModel, Situation, compare
from netkit.platforms.config import Files
from netkit.platforms.models import MODELS

Known = MutableMapping[str, str]
"""Pairs of texts already seen to be equal, and the digest of what they say: see netkit.plan.cache."""

NOT_ASKED = "its configuration was not read"
NOTHING_READ = "none of its files was read"


def make(
    fabric: Fabric,
    devices: Mapping[str, Running | Unreachable],
    intended: Mapping[str, Files],
    *,
    owner: Mapping[str, Files] | None = None,
    known: Known | None = None,
) -> Plan:
    """Return what has to change on each device that has intended files.

    A device nobody could read is listed, never taken for unchanged. `owner`: see netkit.platforms.compare.compare.
    """
    strange = sorted(set(devices) - set(intended)) or sorted(name for name in intended if fabric.device(name) is None)
    if strange:
        remedy = "plan with the files of the same fabric"
        raise PlanError(Problem(f"{strange[0]}: no device of fabric {fabric.name} with intended files", remedy))
    plans: list[DevicePlan] = []
    missed: list[Missed] = []
    for name, files in intended.items():
        read = devices.get(name, Unreachable(NOT_ASKED))
        if isinstance(read, Running):
            planned = _device(fabric, name, read, files, owner[name] if owner else None, known)
        else:
            planned = read
        if isinstance(planned, Unreachable):
            missed.append(Missed(name, planned.reason))
        else:
            plans.append(planned)
    groups = grouped(fabric, plans)
    return Plan(fabric.name, tuple(plans), tuple(missed), groups, __version__)


def rollback(
    fabric: Fabric, before: Mapping[str, Running], intended: Mapping[str, Files], *, known: Known | None = None
) -> Plan:
    """Return the way back from what is intended to what ran before: a plan with its sides swapped."""
    gone = {
        name: {file: text for file, text in running.files.items() if text is not None}
        for name, running in before.items()
    }
    there = {
        name: Running({file: intended[name].get(file) for file in running.files}, running.version)
        for name, running in before.items()
    }
    return make(fabric, there, gone, owner={name: intended[name] for name in before}, known=known)


def _device(
    fabric: Fabric, name: str, running: Running, intended: Files, owner: Files | None, known: Known | None
) -> DevicePlan | Unreachable:
    device = fabric.device(name)
    if device is None:
        raise PlanError(Problem(f"{name}: not in fabric {fabric.name}"))
    platform, version = (device.platform, device.version) if isinstance(device, Switch) else ("linux", "")
    pair = "" if known is None or owner is not None else _pair(platform, running, intended)
    warnings = _warnings(version, running)
    if known is not None and pair in known:
        return _unchanged(device, platform, version, known[pair], warnings)
    model = MODELS[platform]
    try:
        found = compare(model, running.files, intended, owner=owner)
    except ConfigError as error:
        raise ConfigError(Problem(f"{name}: {problem}") for problem in error.problems) from None
    if found.not_read and len(found.not_read) == sum(map(model.reads, intended)):
        return Unreachable(NOTHING_READ)
    if known is not None and pair and not found.changes and not found.not_read:
        known[pair] = found.running_digest
    return _planned(fabric, device, model, version, found, warnings)


def _planned(
    fabric: Fabric,
    device: Switch | Host,
    model: ConfigModel,
    version: str,
    found: Comparison,
    warnings: tuple[str, ...],
) -> DevicePlan:
    way = model.way(Situation(found.changes, found.running, found.intended, version)) if found.changes else Way(NOTHING)
    if isinstance(device, Switch):
        touched = blast.of_switch(fabric, device, found.changes, found.running, model.risks, way.risk)
    else:
        touched = blast.of_host(device, found.changes, found.running, model.risks)
    return DevicePlan(
        name=device.name,
        role=device.role if isinstance(device, Switch) else "host",
        platform=model.platform,
        version=version,
        changes=found.changes,
        risk=max([way.risk, *(change.risk for change in found.changes)]),
        way=way,
        blast=touched,
        running_digest=found.running_digest,
        intended_digest=found.intended_digest,
        not_read=found.not_read,
        warnings=warnings,
    )


def _unchanged(
    device: Switch | Host, platform: str, version: str, digest: str, warnings: tuple[str, ...]
) -> DevicePlan:
    role = device.role if isinstance(device, Switch) else "host"
    return DevicePlan(
        device.name, role, platform, version, (), Risk.NONE, Way(NOTHING), Blast(), digest, digest, (), warnings
    )


def _warnings(version: str, running: Running) -> tuple[str, ...]:
    if version and running.version and running.version != version:
        return (f"runs {running.version}; the files are for {version}",)
    return ()


def _pair(platform: str, running: Running, intended: Files) -> str:
    """Return a digest of two sets of files."""
    whole = hashlib.sha256(f"{__version__} {platform}".encode())
    for files in (running.files, intended):
        whole.update(b"\0\0")
        for name, text in sorted(files.items()):
            content = b"-" if text is None else b"+" + text.encode(errors="surrogatepass")
            whole.update(f"{name} {len(content)}\0".encode() + content)
    return whole.hexdigest()
