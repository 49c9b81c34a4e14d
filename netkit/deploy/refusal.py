"""Reasons to refuse a plan, known before any device is contacted."""

import math
from collections.abc import Iterable, Iterator, Mapping

from netkit.deploy.device_rollout import POLICY, POLICY_DELAY_S, RESERVED_SHARE
from netkit.deploy.job import is_disruptive
from netkit.deploy.model import Options
from netkit.deploy.preflight import Task
from netkit.design.fabric import Fabric, Switch
from netkit.errors import DeployError, Problem
from netkit.plan import DevicePlan, Plan
from netkit.plan.model import Partial, ReachabilityLoss, Step
from netkit.plan.order import is_drained_first
from netkit.platforms.change import Risk
from netkit.platforms.config import Files
from netkit.platforms.ownership import SEPARATOR

MOST_NAMED = 8


def check(
    plan: Plan,
    fabric: Fabric,
    intended: Mapping[str, Files],
    tasks: Mapping[str, Task],
    options: Options,
    *,
    is_resumed: bool = False,
) -> None:
    """Raise DeployError with everything that speaks against a deploy; a run goes on with the options it began with."""
    problems = list(_problems(plan, fabric, intended, tasks, options))
    if not is_resumed:
        problems += [*_at_once(plan, tasks, options), *_too_short(tasks, fabric, options)]
    if problems:
        raise DeployError(problems)


def _problems(
    plan: Plan, fabric: Fabric, intended: Mapping[str, Files], tasks: Mapping[str, Task], options: Options
) -> Iterator[Problem]:
    again = "make the plan again"
    if plan.fabric != fabric.name:
        yield Problem(f"the plan is for fabric {plan.fabric}, not for {fabric.name}", again)
    known = {device.name for device in plan.devices} | {missed.name for missed in plan.unreachable}
    for name in options.limit or ():
        if name not in known:
            yield Problem(f"{name}: not in the plan", again)
    for device in plan.changed:
        if fabric.device(device.name) is None or device.name not in intended:
            yield Problem(f"{device.name}: in the plan, but not in the current intent of fabric {fabric.name}", again)
    if not plan.is_taking_over:
        yield from (_unexplained(device) for device in plan.unexplained if device.name in tasks)
    if plan.partial is not None and not (plan.partial.is_unread and options.is_disruptive_allowed):
        yield _partial(plan.partial)
    if plan.unknown and not options.is_disruptive_allowed:
        what = f"{_some(plan.unknown)}: not read, and no run tells what runs there: other routing may cut off hosts"
        yield Problem(what, "restore access, or deploy with --disruptive")
    if not options.is_disruptive_allowed:
        yield from _outages(plan, tasks)
    for task in tasks.values():
        if fabric.device(task.name) is not None:
            yield from _of_task(task, fabric, options)


def _too_short(tasks: Mapping[str, Task], fabric: Fabric, options: Options) -> Iterator[Problem]:
    """Yield a problem if every change would be reverted before it can be confirmed."""
    switches = [task.plan for name, task in tasks.items() if isinstance(fabric.device(name), Switch)]
    is_watched = options.has_drain and any(is_drained_first(planned, fabric) for planned in switches)
    is_filtering = any(POLICY.search(" ".join(change.path)) for planned in switches for change in planned.changes)
    needed_s = (POLICY_DELAY_S if is_filtering else 0) + (options.watch_s if is_watched else 0)
    least = math.ceil(needed_s / (1 - RESERVED_SHARE))
    if options.revert_s < least:
        what = f"devices would revert within {options.revert_s} s, before "
        what += (
            f"they have been watched for {options.watch_s:g} s"
            if is_watched
            else "their filters of routes are in force"
        )
        yield Problem(what, f"use --confirm-within {least}{' or a shorter --watch' * is_watched}")


def _partial(partial: Partial) -> Problem:
    loss = partial.loss
    lost = f"{loss.pairs} pairs of NICs, of hosts {_some(loss.hosts)}, do not reach each other{loss.family} any more"
    worse = [lost] if loss else []
    worse += [f"fewer equal paths from {_some(partial.narrowed)}"] if partial.narrowed else []
    worse += [f"{_some(partial.moved)} cut off from a network beside the rails"] if partial.moved else []
    names = ",".join(partial.missing)
    unread = f"restore access to {names}, which could not be read, or deploy with --disruptive"
    what = f"this leaves the fabric worse than it was: {'; '.join(worse)}"
    return Problem(what, unread if partial.is_unread else f"change these with it: {names}")


def _unexplained(device: DevicePlan) -> Problem:
    """Say what the first contact with a device would remove."""
    paths = [SEPARATOR.join(path) for path in device.unexplained]
    more = f"; and {len(paths) - MOST_NAMED} more" if len(paths) > MOST_NAMED else ""
    what = f"{device.name}: first deploy to it, which would remove configuration that netkit cannot explain"
    remedy = "add it to leave or to the intent, or remove it with --take-over"
    return Problem(f"{what} ({len(paths)}): {'; '.join(paths[:MOST_NAMED])}{more}", remedy)


def _outages(plan: Plan, tasks: Mapping[str, Task]) -> Iterator[Problem]:
    """Yield the losses that no order of the devices avoids, beyond those reported for each device."""
    for step in plan.steps:
        named = [tasks[name] for name in step.devices if name in tasks]
        # What a device costs while it changes is reported for the device.
        lost = step.after or (ReachabilityLoss() if any(map(is_disruptive, named)) else step.during)
        if named and lost:
            when = f"for about {lost.seconds} s" if lost.seconds else "until a later step"
            what = f"{lost.pairs} pairs of NICs of {_some(lost.hosts)} do not reach each other{lost.family} {when}"
            yield Problem(f"step {step.number}, {_some(step.devices)}: outage: {what}", "deploy with --disruptive")


def _at_once(plan: Plan, tasks: Mapping[str, Task], options: Options) -> Iterator[Problem]:
    """Yield a problem if `--together` gives up the order of changes that traffic feels."""

    def is_felt(step: Step, name: str) -> bool:
        planned = tasks[name].plan if name in tasks else None
        is_ordered = step.during or step.after or step.stage or step.waiting or step.narrowed
        is_routed = plan.has_routing and (is_ordered or step.paths < step.paths_before)
        return planned is not None and planned.role != "host" and bool(is_routed or planned.risk >= Risk.SESSION)

    steps = [tuple(name for name in step.devices if is_felt(step, name)) for step in plan.steps if step.paths_before]
    names = [name for step in filter(None, steps) for name in step]
    is_free = options.is_disruptive_allowed or options.is_backward or not options.is_together
    if not is_free and len([step for step in steps if step]) > 1:
        what = f"--together changes {_some(names)} at once: hosts may lose each other meanwhile"
        yield Problem(what, "leave out --together, or deploy with --disruptive")


def _of_task(task: Task, fabric: Fabric, options: Options) -> Iterator[Problem]:
    planned = task.plan
    if planned.way.is_refused:
        yield Problem(f"{task.name}: cannot be changed: {'; '.join(planned.way.reasons)}", "change it in steps")
    if planned.not_read:
        yield Problem(f"{task.name}: not compared: {', '.join(planned.not_read)}", "make the plan again")
    if is_disruptive(task) and not options.is_disruptive_allowed:
        gpus = planned.blast.gpus
        device = fabric.device(task.name)
        ports = device.host_ports if isinstance(device, Switch) else ()
        hosts = planned.blast.hosts or tuple(dict.fromkeys(port.peer for port in ports))
        lost = f"hosts {_some(hosts)}" + (f", GPUs {_some(gpus)}" if gpus else "")
        message = f"{task.name}: disruptive ({planned.risk.word}), no other path for {lost}"
        # All options at once: --disruptive alone would be refused again while traffic flows.
        remedy = "deploy with --disruptive once they are idle, with --disruptive --busy while they are not"
        yield Problem(message, f"{remedy}, or leave it out: --limit '!{task.name}'")


def _some(names: Iterable[str]) -> str:
    found = tuple(names)
    more = f" and {len(found) - MOST_NAMED} more" if len(found) > MOST_NAMED else ""
    return ", ".join(found[:MOST_NAMED]) + more
