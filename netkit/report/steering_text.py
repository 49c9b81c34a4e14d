"""Which nodes of a cluster get no new jobs, why, and the commands for it."""

import shlex
from collections.abc import Iterator, Mapping

from netkit.judge.steering import Steering, commands
from netkit.report.plan_view import counted

NOTHING: Mapping[str, str] = {}


def steering_text(
    steering: Steering, label_prefix: str, failed: Mapping[str, str] | None, left: Mapping[str, str] = NOTHING
) -> str:
    """Format a round; with `failed`, its commands were run, for these nodes in vain, and others were left alone."""
    return "".join(f"{line}\n" for line in (*_lines(steering), *_commands(steering, label_prefix, failed, left)))


def _lines(steering: Steering) -> Iterator[str]:
    out = steering.out
    nodes = counted(steering.of, "node")
    yield f"{steering.kind}: {len(out)} of {nodes} out" if out else f"{steering.kind}: all {nodes} take jobs"
    for name in out:
        one, is_new = steering.health[name], name in steering.taken
        yield f"  {'taken out' if is_new else 'stays out'}  {name}: {one.check} at {one.reason}"
    yield from (f"  back       {name}" for name in steering.returned)
    for name in steering.over_budget:
        one = steering.health[name]
        yield f"  not taken out, since the budget is used up: {name}: {one.check} at {one.reason}"
    for name in (name for name, one in steering.health.items() if not one.is_out and name not in steering.over_budget):
        one = steering.health[name]
        yield f"  watched    {name}: {one.check} at {one.reason}"


def _commands(
    steering: Steering, label_prefix: str, failed: Mapping[str, str] | None, left: Mapping[str, str]
) -> Iterator[str]:
    if failed is None:
        yield from (f"  {shlex.join(command)}" for _, command in commands(steering, label_prefix))
        return
    yield from (f"  left alone: {name}: {why}" for name, why in left.items())
    yield from (f"  failed, and tried again in the next round: {name}: {why}" for name, why in failed.items())
