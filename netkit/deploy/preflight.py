"""Reads a device before and after its change and compares it with the plan; nothing here can change a device."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass

from netkit.design.fabric import Fabric
from netkit.errors import AccessError, ConfigError, DeviceError, PlanError, Problem
from netkit.plan import DevicePlan, Plan, Running, keeping
from netkit.plan.blast import words
from netkit.platforms.change import Change
from netkit.platforms.compare import MODELS, ConfigComparison, Situation, compare, diff
from netkit.platforms.config import Config, Files
from netkit.platforms.driver import Reader

MOST_SHOWN = 5
NEIGHBOR = "neighbor"
IN_STEPS = "change it in steps"


@dataclass(frozen=True, slots=True)
class Task:
    """One device's part of a plan, and its files."""

    plan: DevicePlan
    intended: Files
    owner: Files | None = None
    """See netkit.platforms.compare.compare: for a rollback, what the undone run intended."""
    is_finish: bool = False
    """Whether the run changed the device in its first stage too; a rollback goes to what ran before that."""

    @property
    def name(self) -> str:
        return self.plan.name

    @property
    def addresses(self) -> frozenset[str] | None:
        """The addresses of a switch after its change; None for a host."""
        model = MODELS[self.plan.platform]
        if model.router is None:
            return None
        files = {name: text for name, text in self.intended.items() if model.reads(name)}
        router = model.router(MODELS[self.plan.platform].parse(files))
        families = (router, router.v6) if router.v6 else (router,)
        return frozenset(str(address.ip) for family in families for _, address in family.addresses)


@dataclass(frozen=True, slots=True)
class Preflight:
    """What a device runs, compared with what is intended."""

    running: Running
    comparison: ConfigComparison
    apart: tuple[Change, ...] = ()
    """Changes that are left out, and hinder no other."""

    def is_intended(self) -> bool:
        """Whether the device runs what is intended, in every file that was read."""
        return len(self.comparison.changes) == len(self.apart) and not self.comparison.not_read

    def is_as_before(self, task: Task) -> bool:
        """Whether the device still runs what the plan was made from."""
        return self.comparison.running_digest == task.plan.running_digest


def stages_of(
    plan: Plan,
    intended: Mapping[str, Files],
    owner: Mapping[str, Files] | None,
    limit: Collection[str] | None,
    fabric: Fabric,
) -> tuple[dict[str, Task], ...]:
    """The tasks of each stage: one stage, or two where devices change twice.

    A device that already runs both configurations, such as after a run that stopped, has a task in the second only.
    """
    bridges = {bridge.device: bridge for bridge in plan.bridges}
    in_first = {name for step in plan.steps if step.stage != "finish" for name in step.devices}
    first: dict[str, Task] = {}
    then: dict[str, Task] = {}
    for device in plan.changed:
        name, files = device.name, intended.get(device.name, {})
        if limit is not None and name not in limit:
            continue
        own = None if owner is None else owner.get(name)
        if name in bridges and fabric.device(name) is not None:
            both = keeping(fabric, name, files, bridges[name].kept)
            if name in in_first:
                first[name] = Task(bridges[name].first, both, own)
            then[name] = Task(bridges[name].then, files, own or both, is_finish=name in in_first)
        else:
            first[name] = Task(device, files, own)
    return (first, then) if then else (first,)


def first_tasks(stages: Sequence[Mapping[str, Task]]) -> dict[str, Task]:
    """What happens to each device first."""
    return {**stages[-1], **stages[0]}


def read_device(reader: Reader, task: Task) -> Preflight:
    """Read what a device runs; raise AccessError if it cannot be read or parsed."""
    return compared(Running(reader.running_files(), task.plan.version), task)


def compared(running: Running, task: Task) -> Preflight:
    """Compare what was read with what is intended."""
    model = MODELS[task.plan.platform]
    try:
        found = compare(model, running.files, task.intended, owner=task.owner)
    except ConfigError as error:
        problems = (Problem(f"{task.name}: its configuration cannot be parsed: {one}") for one in error.problems)
        raise AccessError(problems) from None
    apart = tuple(change for change in found.changes if model.is_apart(change.path))
    return Preflight(running, found, apart)


def check(found: Preflight, task: Task, *, is_back: bool = False) -> None:
    """Refuse a device that differs from the plan, or whose change could not be rolled back.

    A rollback is planned from what the run left, so that planning it again does not help.
    """
    name = task.name
    if found.comparison.not_read:
        unread = ", ".join(found.comparison.not_read)
        raise DeviceError(Problem(f"{name}: not read: {unread}; whether a change works cannot be verified"))
    if not found.is_as_before(task):
        shown = "; ".join(_limited(_moved(found, task)))
        since, remedy = "the plan was made", "make the plan again"
        if is_back:
            since, remedy = "the run", f"remove that change, or leave the device out: --limit '!{name}'"
        raise PlanError(Problem(f"{name}: changed since {since}: {shown}", remedy))
    if found.comparison.intended_digest != task.plan.intended_digest:
        message = f"{name}: the intended configuration is not the one the plan was made for"
        raise PlanError(Problem(message, "make the plan again"))
    model, running, intended = MODELS[task.plan.platform], found.comparison.running, found.comparison.intended
    changes = diff(model, intended, running)
    way = model.strategy(Situation(changes, intended, running, task.plan.version))
    if changes and way.is_refused:
        raise DeviceError(Problem(f"{name}: the change could not be rolled back: {'; '.join(way.reasons)}", IN_STEPS))


def ending(found: Preflight) -> frozenset[str]:
    """The words that name a BGP neighbor in the running configuration and no longer in the intended one."""
    gone = (change.path for change in found.comparison.changes if change.is_removal)
    if not any(NEIGHBOR in words(path) for path in gone):
        return frozenset()
    return _neighbors(found.comparison.running) - _neighbors(found.comparison.intended)


def _neighbors(config: Config) -> frozenset[str]:
    return frozenset(word for named in map(tuple, map(words, config)) if NEIGHBOR in named for word in named)


def differences(found: Preflight) -> str:
    """Describe what differs from the intended configuration."""
    unread = [f"{name} was not read" for name in found.comparison.not_read]
    wrong = [
        f"{' '.join(change.path)} is {_value(change.running)}, not {_value(change.intended)}"
        for change in found.comparison.changes
    ]
    return "; ".join(_limited([*unread, *wrong]))


def _moved(found: Preflight, task: Task) -> Iterator[str]:
    """Yield how a device differs from what it was when the plan was made."""
    planned = {change.path: change for change in task.plan.changes}
    current = {change.path: change for change in found.comparison.changes}
    for path in dict.fromkeys((*planned, *current)):
        was, now = planned.get(path), current.get(path)
        if was is None and now is not None:
            yield _moved_entry(path, now.intended, now.running)
        elif was is not None and (now is None or now.running != was.running):
            yield _moved_entry(path, was.running, was.intended if now is None else now.running)


def _moved_entry(path: tuple[str, ...], was: str | None, now: str | None) -> str:
    return f"{' '.join(path)} was {_value(was)}, is {_value(now)}"


def _value(value: str | None) -> str:
    return "missing" if value is None else value or "there"


def _limited(entries: Iterator[str] | list[str]) -> list[str]:
    found = list(entries)
    rest = [f"and {len(found) - MOST_SHOWN} more"] if len(found) > MOST_SHOWN else []
    return [*found[:MOST_SHOWN], *rest]
