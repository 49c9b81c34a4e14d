"""A plan as plain text and as Markdown."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace

from netkit.plan.model import Partial, Plan, ReachabilityLoss, Step
from netkit.platforms.config import Path
from netkit.platforms.ownership import SEPARATOR
from netkit.platforms.routing import PrefixListEntry
from netkit.report.plan_view import (
    MOST_LINES,
    GroupView,
    counted,
    groups,
    headline,
    left_lines,
    listed,
    shown,
    touched,
    unexplained_heading,
    unexplained_lines,
    unowned_line,
    why_not,
)

MOST_STEPS = 24
MOST_KEPT = 4
STAGES = {"both": "the new beside the old", "finish": "only the new", "": ""}


def step_lines(plan: Plan, *, most: int = MOST_STEPS) -> Iterator[str]:
    """Yield the losses during the deploy, and the steps with their cost; nothing if no step costs a path."""
    yield from _outages(plan)
    if not any(step.stage or step.during or step.after or step.paths < step.paths_before for step in plan.steps):
        return
    yield f"{counted(len(plan.steps), 'step')}, in the order with the least loss by the routing model:"
    if plan.bridges:
        yield "  no single order is safe: each device first takes the new beside the old, and the old goes last"
        yield from _kept(plan)
    shown = [step for step in plan.steps[:most] if len(plan.steps) <= most or step.number < most // 2]
    shown += plan.steps[-(most // 2) :] if len(plan.steps) > most else []
    for before, step in zip((None, *shown), shown, strict=False):
        if before is not None and step.number != before.number + 1:
            yield f"  … {counted(step.number - before.number - 1, 'step')}"
        yield f"  {step.number}. {_step(step)}"


def worst_state(plan: Plan) -> str:
    """Describe the worst state in one line."""
    if plan.worst:
        step = next((one for one in plan.steps if plan.worst in (one.during, one.after)), None)
        if step is None:
            return f"outage: {_cut_off(plan.worst)}, also after the deploy"
        return f"outage in step {step.number} ({listed(step.devices)}): {loss(plan.worst)}"
    if plan.partial:
        return f"worse than before: {_worse(plan.partial)}"
    narrow = [step for step in plan.steps if step.paths < step.paths_before]
    others = "no other pair of hosts" if plan.gone else "no pair of hosts"
    if narrow:
        step = min(narrow, key=lambda one: one.paths)
        return f"{others} loses its last path; step {step.number} leaves {_paths(step)}"
    return f"{others} loses a path" if plan.steps else ""


def loss(lost: ReachabilityLoss) -> str:
    """Describe a loss: the hosts, how many pairs of NICs, and for how long."""
    when = f"for about {lost.seconds} s" if lost.seconds else "until a later step"
    rails = f" on {listed(lost.rails)}" if lost.rails else ""
    return f"{counted(lost.pairs, 'pair')} of NICs of {listed(lost.hosts)}{rails}{lost.family} {when}"


def _cut_off(lost: ReachabilityLoss) -> str:
    return f"{counted(lost.pairs, 'pair')} of NICs of {listed(lost.hosts)} no longer reach each other{lost.family}"


def _worse(partial: Partial) -> str:
    lost = [_cut_off(partial.loss)] if partial.loss else []
    narrowed = [f"fewer equal paths from {listed(partial.narrowed)}"] if partial.narrowed else []
    moved = [f"{listed(partial.moved)} cut off from a network beside the rails"] if partial.moved else []
    return "; ".join([*lost, *narrowed, *moved])


def _outages(plan: Plan) -> Iterator[str]:
    for step in plan.steps:
        for lost in (step.during, step.after):
            if lost:
                yield f"outage in step {step.number}, {listed(step.devices)}: {loss(lost)}"
    if plan.gone:
        yield f"ends by intent: {_cut_off(plan.gone)}"
    if plan.partial is not None:
        missing = listed(plan.partial.missing)
        yield f"worse than before: {_worse(plan.partial)}"
        yield f"  {missing} could not be read" if plan.partial.is_unread else f"  change these with it: {missing}"
    if plan.unknown:
        yield f"not read, and no run tells what runs there: {listed(plan.unknown)}; taken to carry nothing"


def _step(step: Step) -> str:
    parts = [listed(step.devices)]
    if step.stage:
        parts.append(STAGES[step.stage])
    if step.paths < step.paths_before:
        parts.append(_paths(step))
    parts += [f"outage: {loss(lost)}" for lost in (step.during, step.after) if lost]
    return "; ".join(parts)


def _kept(plan: Plan) -> Iterator[str]:
    """Yield how devices differ from the intended configuration until the last stage, for one of each group."""
    bridges = {bridge.device: bridge.kept for bridge in plan.bridges}
    for group in plan.groups:
        if names := [name for name in group if name in bridges]:
            kept = bridges[names[0]]
            parts = [f"{name} permits {_range(rule)}" for name, rule in kept.rules]
            parts += [f"summary {one.prefix}" for one in kept.aggregates]
            parts += [_entry(path, value) for path, value in kept.entries]
            more = [f"{len(parts) - MOST_KEPT} more"] if len(parts) > MOST_KEPT else []
            alike = f" (as on {names[0]})" if len(names) > 1 else ""
            yield f"  until then on {listed(names)}{alike}: {'; '.join([*parts[:MOST_KEPT], *more])}"


def _range(rule: PrefixListEntry) -> str:
    return f"{rule.prefix} ge {rule.shortest} le {rule.longest}"


def _entry(path: Path, value: str | None) -> str:
    name = SEPARATOR.join(path)
    return f"without {name}" if value is None else f"{name}: {value}" if value else name


def _paths(step: Step) -> str:
    return f"{step.paths} of {counted(step.paths_before, 'path')}"


def text(plan: Plan, *, most_lines: int = MOST_LINES) -> str:
    return "\n".join(map(shown, _lines(plan, most_lines))) + "\n"


def devices_text(plan: Plan, names: Sequence[str], *, most_lines: int = MOST_LINES) -> str:
    """Format the changes of some devices, each by itself."""
    alone = replace(plan, groups=tuple((name,) for name in names))
    found = (line for group in groups(alone, most_lines) for line in ("", *_group(group)))
    return "".join(f"{shown(line)}\n" for line in found)


def _lines(plan: Plan, most_lines: int) -> Iterator[str]:
    yield headline(plan)
    for group in groups(plan, most_lines):
        yield ""
        yield from _group(group)
    for device in plan.devices:
        if not device.changes and (device.warnings or device.not_read):
            yield ""
            yield from (f"! {device.name}: {warning}" for warning in device.warnings)
            if device.not_read:
                yield f"! {device.name}: not compared, because not read: {', '.join(device.not_read)}"
    if plan.warnings:
        yield ""
        yield from (f"! {warning}" for warning in plan.warnings)
    if plan.unexplained:
        yield ""
        yield unexplained_heading(plan)
        yield from (f"  {line}" for line in unexplained_lines(plan))
    if left := left_lines(plan):
        yield ""
        yield "Left unchanged, by leave of the intent:"
        yield from (f"  {line}" for line in left)
    if line := unowned_line(plan):
        yield ""
        yield line
    if plan.unreachable:
        yield ""
        yield "Not in this plan, because they could not be read:"
        yield from (f"  {missed.name}: {missed.reason}" for missed in plan.unreachable)
    if len(plan.groups) > 1 and touched(plan.blast):
        yield ""
        yield f"Touched in all: {touched(plan.blast)}"
    if order := list(step_lines(plan)):
        yield ""
        yield from order


def _group(group: GroupView) -> Iterator[str]:
    strategy = group.first.way
    yield f"{listed(group.names)}: risk {group.first.risk.word}, method {strategy.method}"
    if len(group.names) > 1:
        yield f"  as on {group.first.name}; names, addresses, VLANs and descriptions of the others are their own"
    for section in group.sections:
        if section.heading:
            yield f"    {section.heading}"
        for line in section.lines:
            yield f"  {line.sign}   {line.text}  [{line.risk.word}]"
    if group.hidden:
        yield f"    … and {group.hidden} more" if group.sections else f"    {counted(group.hidden, 'change')}"
    yield from (f"  {note}" for note in group.notes)
    if group.touched:
        yield f"  touches {group.touched}"
    if group.disruption:
        yield f"  {group.disruption}; takes --disruptive, and --busy unless idle"
    yield from (f"  {why_not(strategy)}: {reason}" for reason in strategy.reasons)
    yield from (f"  costs: {cost}" for cost in strategy.costs)
    if len(strategy.steps) > 1:
        yield from (f"  step {number}: {step}" for number, step in enumerate(strategy.steps, 1))
    yield from (f"  ! {warning}" for warning in group.warnings)


SPECIAL = re.compile(r"([\\`*_{}\[\]<>#|~])")
FENCE = "```"
HEADS = ("| devices | risk | method | touches | disruptive |", "|---|---|---|---|---|")


def markdown(plan: Plan, *, most_lines: int = MOST_LINES) -> str:
    """Format a plan: a table of groups, each with folded details."""
    return "\n".join(map(shown, _markdown_lines(plan, most_lines))) + "\n"


def _markdown_lines(plan: Plan, most_lines: int) -> Iterator[str]:
    found = list(groups(plan, most_lines))
    yield f"## {plain(headline(plan))}"
    if found:
        yield ""
        yield from HEADS
        yield from (row(group) for group in found)
    yield from steps(plan)
    for group in found:
        yield ""
        yield from unfolded(group)
    notes = [(device, warning) for device in plan.devices if not device.changes for warning in device.warnings]
    if notes:
        yield ""
        yield from (f"- ⚠ {plain(device.name)}: {plain(warning)}" for device, warning in notes)
    if plan.warnings:
        yield ""
        yield from (f"- ⚠ {plain(warning)}" for warning in plan.warnings)
    if plan.unexplained:
        yield ""
        yield f"{'' if plan.is_taking_over else '⚠ '}{plain(unexplained_heading(plan))}"
        yield ""
        yield from (f"- {plain(line)}" for line in unexplained_lines(plan))
    if left := left_lines(plan):
        yield ""
        yield "Left unchanged, by `leave` of the intent:"
        yield ""
        yield from (f"- {plain(line)}" for line in left)
    if line := unowned_line(plan):
        yield ""
        yield f"{plain(line)}."
    if plan.unreachable:
        yield ""
        yield "Not in this plan, because they could not be read:"
        yield ""
        yield from (f"- {plain(one.name)}: {plain(one.reason)}" for one in plan.unreachable)


def steps(plan: Plan) -> Iterator[str]:
    """Yield the worst state during the deploy, and the order of the devices, folded."""
    worst, lines = worst_state(plan), list(step_lines(plan))
    if plan.gone:
        yield ""
        yield f"⚠ Ends by intent: {plain(_cut_off(plan.gone))}."
    if worst:
        yield ""
        yield f"{'⚠ ' if plan.worst or plan.partial else ''}During the deploy: {plain(worst)}."
    if lines:
        yield ""
        yield "<details>"
        yield f"<summary>{counted(len(plan.steps), 'step')}</summary>"
        yield ""
        yield FENCE
        yield from map(_fenced, lines)
        yield FENCE
        yield "</details>"


def plain(text: str) -> str:
    """Escape all markup."""
    return SPECIAL.sub(r"\\\1", shown(text))


def row(group: GroupView) -> str:
    strategy = group.first.way
    cells = (
        listed(group.names),
        group.first.risk.word,
        strategy.method,
        group.touched or "–",
        group.disruption.removeprefix("disruptive: ") or "no",
    )
    return f"| {' | '.join(map(plain, cells))} |"


def unfolded(group: GroupView) -> Iterator[str]:
    """Yield the details of a group, folded."""
    strategy = group.first.way
    yield "<details>"
    yield f"<summary>{plain(listed(group.names))}: what changes</summary>"
    yield ""
    if len(group.names) > 1:
        yield f"As on {plain(group.first.name)}; names, addresses, VLANs and descriptions of the others are their own."
        yield ""
    yield f"{FENCE}diff"
    for section in group.sections:
        if section.heading:
            yield _fenced(f"  {section.heading}")
        for line in section.lines:
            yield _fenced(f"{line.sign.replace('~', '!')}   {line.text}  [{line.risk.word}]")
    if group.hidden:
        yield f"  … and {group.hidden} more"
    yield FENCE
    yield ""
    yield from (f"- {plain(note)}" for note in group.notes)
    yield from (f"- {why_not(strategy)}: {plain(reason)}" for reason in strategy.reasons)
    yield from (f"- costs: {plain(cost)}" for cost in strategy.costs)
    if len(strategy.steps) > 1:
        yield from (f"- step {number}: {plain(step)}" for number, step in enumerate(strategy.steps, 1))
    yield from (f"- ⚠ {plain(warning)}" for warning in group.warnings)
    yield "</details>"


def _fenced(line: str) -> str:
    """Keep a line from ending its fence."""
    return line.replace(FENCE, "'''")
