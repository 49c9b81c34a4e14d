"""Which devices change together. Pure: plan and fabric → waves."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from netkit.deploy.model import Options
from netkit.design.fabric import Fabric
from netkit.plan import DevicePlan, Plan
from netkit.plan.model import Stage, Step
from netkit.plan.order import ROLES, depends_on, weight
from netkit.platforms.compare import natural

MOST_HOSTS = 16
"""Hosts that change together: as many as Ansible works on at once, since their timers keep running."""

Group = tuple[Stage, list[DevicePlan]]


@dataclass(frozen=True, slots=True)
class Wave:
    """Devices that change at the same time."""

    number: int
    devices: tuple[str, ...]
    is_canary: bool = False
    stage: Stage = ""


def waves(plan: Plan, fabric: Fabric, options: Options) -> tuple[Wave, ...]:
    """The devices to change, in order.

    The order is that of the plan's steps; a plan without steps goes tier by tier.
    """
    todo = [one for one in plan.changed if options.limit is None or one.name in options.limit]
    devices = {one.name: one for one in todo}
    found: list[tuple[Stage, tuple[str, ...]]] = []
    groups = [
        (step.stage, here)
        for step in plan.steps
        if (here := [devices[name] for name in step.devices if name in devices])
    ]
    has_canary = options.has_canary and bool(todo) and not options.is_backward
    if has_canary:
        stage, first_group = groups[0] if groups else ("", todo)
        first = min(first_group, key=weight)
        found.append((stage, (first.name,)))
        first_group.remove(first)
    elif not options.has_canary and len(groups) > 1 and _may_join(groups[0], groups[1], fabric):
        groups[0][1].extend(groups.pop(1)[1])
    if not plan.steps:
        groups = [("", [devices[name] for name in step.devices]) for step in _tiers(todo, fabric)]
    for stage, todo in _joined(groups) if options.is_together else groups:
        most = min(options.parallel, MOST_HOSTS) if any(one.role == "host" for one in todo) else options.parallel
        names = [one.name for one in todo]
        found += [(stage, tuple(names[start : start + most])) for start in range(0, len(names), most)]
    return tuple(
        Wave(number, names, has_canary and number == 1, stage) for number, (stage, names) in enumerate(found, 1)
    )


def _may_join(canary: Group, others: Group, fabric: Fabric) -> bool:
    """Whether a plan's canary may change with the step after it: same tier, and nothing depends on both.

    Above the leaves only the plan's model knows: a spine may be the other path for leaves of another spine's pod.
    """
    (stage, first), (other_stage, rest) = canary, others
    if len(first) != 1 or stage != other_stage or first[0].role != rest[0].role or first[0].role in {"spine", "core"}:
        return False
    served = depends_on(first[0], fabric)
    return not any(served & depends_on(one, fabric) for one in rest)


def _joined(groups: list[Group]) -> Iterator[Group]:
    """Yield groups as large as possible, whatever depends on them; hosts still wait for all switches."""
    for is_last in (False, True):
        for is_host in (False, True):
            chosen = {
                one.name: (stage, one)
                for stage, todo in groups
                for one in todo
                if (stage == "finish", one.role == "host") == (is_last, is_host)
            }
            if chosen:
                names = sorted(chosen, key=lambda name: (ROLES.index(chosen[name][1].role), natural((name,))))
                yield chosen[names[0]][0], [chosen[name][1] for name in names]


def _tiers(todo: Iterable[DevicePlan], fabric: Fabric) -> Iterator[Step]:
    """Yield steps of one tier in which nothing depends on two devices."""
    for role in ROLES:
        groups: list[tuple[list[str], set[str]]] = []
        for device in sorted((device for device in todo if device.role == role), key=lambda one: natural((one.name,))):
            served = depends_on(device, fabric)
            group = next((group for group in groups if not group[1] & served), None)
            if group is None:
                group = [], set()
                groups.append(group)
            group[0].append(device.name)
            group[1].update(served)
        yield from (Step(0, tuple(names)) for names, _ in groups)
