"""The order of a plan, and what each state on the way costs, in words."""

from collections.abc import Iterator

from netkit.plan.shape import Plan, ReachabilityLoss, Step
from netkit.report.plan_view import counted, listed

MOST_STEPS = 24
STAGES = {"both": "accept and announce both", "finish": "only the new", "": ""}


def lines(plan: Plan, *, most: int = MOST_STEPS) -> Iterator[str]:
    """Yield what is lost on the way, and the steps with their cost; nothing where no step costs a path."""
    yield from _outages(plan)
    if not any(step.stage or step.during or step.after or step.paths < step.paths_before for step in plan.steps):
        return
    yield f"{counted(len(plan.steps), 'step')}, in the order that loses least by the model of the routing:"
    if plan.bridges:
        yield "  no single order is safe: all devices first accept and announce both, what ran before goes last"
    shown = [step for step in plan.steps[:most] if len(plan.steps) <= most or step.number < most // 2]
    shown += plan.steps[-(most // 2) :] if len(plan.steps) > most else []
    for before, step in zip((None, *shown), shown, strict=False):
        if before is not None and step.number != before.number + 1:
            yield f"  … {counted(step.number - before.number - 1, 'step')}"
        yield f"  {step.number}. {_step(step)}"


def worst(plan: Plan) -> str:
    """Return the worst state of all in one line."""
    if plan.worst:
        step = next(one for one in plan.steps if plan.worst in (one.during, one.after))
        return f"outage in step {step.number} ({listed(step.devices)}): {loss(plan.worst)}"
    narrow = [step for step in plan.steps if step.paths < step.paths_before]
    if narrow:
        step = min(narrow, key=lambda one: one.paths)
        return f"no pair of hosts loses its last path; step {step.number} leaves {_paths(step)}"
    return "no pair of hosts loses a path" if plan.steps else ""


def loss(lost: ReachabilityLoss) -> str:
    """Return a loss in words: which hosts, how many pairs of addresses, and for how long."""
    when = f"for about {lost.seconds} s" if lost.seconds else "until a later step"
    rails = f" on {listed(lost.rails)}" if lost.rails else ""
    return f"{counted(lost.pairs, 'pair')} of addresses of {listed(lost.hosts)}{rails} {when}"


def _outages(plan: Plan) -> Iterator[str]:
    for step in plan.steps:
        for lost in (step.during, step.after):
            if lost:
                yield f"outage in step {step.number}, {listed(step.devices)}: {loss(lost)}"
    if plan.gone:
        hosts = listed(plan.gone.hosts)
        yield f"ends by intent: {counted(plan.gone.pairs, 'pair')} of addresses of {hosts} reach each other no more"
    if plan.partial is not None:
        pairs, hosts = counted(plan.partial.loss.pairs, "pair"), listed(plan.partial.loss.hosts)
        yield f"worse than before: {pairs} of addresses of {hosts} would lose each other"
        yield f"  change these with it: {listed(plan.partial.missing)}"


def _step(step: Step) -> str:
    parts = [listed(step.devices)]
    if step.stage:
        parts.append(STAGES[step.stage])
    if step.paths < step.paths_before:
        parts.append(_paths(step))
    parts += [f"outage: {loss(lost)}" for lost in (step.during, step.after) if lost]
    return "; ".join(parts)


def _paths(step: Step) -> str:
    return f"{step.paths} of {counted(step.paths_before, 'path')}"
