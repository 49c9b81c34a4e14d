"""Edits of `leave` and `own` in fabric.yaml: what a device has becomes left, or netkit's."""

import re
from collections.abc import Iterable
from dataclasses import dataclass, replace
from difflib import unified_diff
from pathlib import Path
from typing import Any

from netkit import design
from netkit.design.select import select
from netkit.errors import Problem, UsageError
from netkit.intent import document
from netkit.intent.list_edit import block, with_entry, without_entry
from netkit.intent.load import FABRIC_FILE
from netkit.intent.model import PathRuleIntent
from netkit.plan import Plan
from netkit.platforms import HOSTS
from netkit.platforms.compare import MODELS
from netkit.platforms.ownership import SEPARATOR
from netkit.project.project import Project

LEAVE, OWN = "leave", "own"
SPECIAL = re.compile(r"([*?\[])")


@dataclass(frozen=True, slots=True)
class OwnershipEdit:
    """fabric.yaml before and after, and the entries that were added or removed."""

    file: Path
    before: str
    after: str
    added: tuple[PathRuleIntent, ...] = ()
    removed: tuple[PathRuleIntent, ...] = ()

    def diff(self) -> str:
        name, before, after = str(self.file), self.before.splitlines(), self.after.splitlines()
        return "".join(f"{line}\n" for line in unified_diff(before, after, name, name, lineterm=""))


def left(project: Project, rules: Iterable[PathRuleIntent]) -> OwnershipEdit:
    """Add entries to `leave`; those that are there already stay."""
    return _edited(project, LEAVE, [rule for rule in rules if rule not in project.intent.leave])


def owned(project: Project, rule: PathRuleIntent) -> OwnershipEdit:
    """Make a path netkit's: remove it from `leave`, and add it to `own` unless netkit owns it anyway."""
    gone = tuple(one for one in project.intent.leave if one == rule)
    is_new = rule not in project.intent.own and not _is_netkits(project, rule)
    return _edited(project, OWN, [rule] if is_new else [], gone)


def rules_of(project: Project, plan: Plan) -> tuple[PathRuleIntent, ...]:
    """The entries of `leave` for all that a plan lists as unexplained."""
    devices: dict[str, list[str]] = {}
    for device in plan.unexplained:
        for path in device.unexplained:
            devices.setdefault(SPECIAL.sub(r"[\1]", SEPARATOR.join(path)), []).append(device.name)
    return tuple(PathRuleIntent(path=path, devices=_expression(project, names)) for path, names in devices.items())


def _expression(project: Project, names: list[str]) -> str:
    """The shortest expression for some devices: nothing for all, a role, a platform, or their names."""
    found = project.devices()
    for key in ("role", "platform"):
        values = dict.fromkeys(getattr(device, key, "host") for device in found)
        for value in values:
            chosen = {device.name for device in select(project.fabric, f"{key}={value}")}
            if len(chosen) > 1 and chosen == set(names):
                return f"{key}={value}"
    return "" if {device.name for device in found} == set(names) else ",".join(names)


def _is_netkits(project: Project, rule: PathRuleIntent) -> bool:
    """Whether netkit owns a path without `own` on some of these devices: those of other platforms do not have it."""
    path = tuple(rule.path.split(SEPARATOR))
    platforms = {getattr(device, "platform", HOSTS) for device in select(project.fabric, rule.devices)}
    return any(MODELS[platform].ownership.precedence(path) == 0 for platform in platforms)


def _edited(
    project: Project, key: str, added: Iterable[PathRuleIntent], removed: tuple[PathRuleIntent, ...] = ()
) -> OwnershipEdit:
    file = project.folder / FABRIC_FILE
    before = after = file.read_bytes().decode("utf-8-sig")
    added = tuple(added)
    try:
        for rule in removed:
            after = without_entry(after, LEAVE, _listed(after, file, LEAVE).index(rule))
        for rule in added:
            after = with_entry(after, key, _entry(rule))
    except UsageError as error:
        raise UsageError(replace(one, file=str(file)) for one in error.problems) from None
    _check(project, before, after, key, added, removed)
    return OwnershipEdit(file, before, after, added, removed)


def _entry(rule: PathRuleIntent) -> str:
    values = {"path": rule.path, "devices": rule.devices}
    return block(values if rule.devices else {"path": rule.path})


def _check(
    project: Project,
    before: str,
    after: str,
    key: str,
    added: tuple[PathRuleIntent, ...],
    removed: tuple[PathRuleIntent, ...],
) -> None:
    """Refuse an edit that changes anything else, or that the design refuses."""
    file = project.folder / FABRIC_FILE
    wanted = {name: _listed(before, file, name) for name in (LEAVE, OWN)}
    wanted[LEAVE] = [rule for rule in wanted[LEAVE] if rule not in removed]
    wanted[key] += added
    found = {name: _listed(after, file, name) for name in (LEAVE, OWN)}
    if found != wanted or _others(before, file) != _others(after, file):
        raise UsageError(
            Problem("cannot be edited without changing other parts of it", "edit it by hand", file=str(file))
        )
    rules = {name: tuple(listed) for name, listed in found.items()}
    design.build(project.intent.model_copy(update=rules), project.catalog)


def _listed(text: str, file: Path, key: str) -> list[PathRuleIntent]:
    entries = _values(text, file).get(key) or []
    return [PathRuleIntent.model_validate({"path": one} if isinstance(one, str) else one) for one in entries]


def _others(text: str, file: Path) -> dict[str, Any]:
    return {key: value for key, value in _values(text, file).items() if key not in {LEAVE, OWN}}


def _values(text: str, file: Path) -> dict[str, Any]:
    values: Any = document.parse(text, str(file)).value
    return dict(values)
