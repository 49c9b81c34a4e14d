"""A plan as Markdown, for a pull request or a change ticket."""

import re
from collections.abc import Iterator

from netkit.plan.model import Plan
from netkit.report import plan_text
from netkit.report.plan_view import (
    MOST_LINES,
    GroupView,
    counted,
    groups,
    headline,
    left_lines,
    listed,
    shown,
    unexplained_heading,
    unexplained_lines,
    unowned_line,
    why_not,
)

SPECIAL = re.compile(r"([\\`*_{}\[\]<>#|~])")
FENCE = "```"
HEADS = ("| devices | risk | method | touches | disruptive |", "|---|---|---|---|---|")


def markdown(plan: Plan, *, most_lines: int = MOST_LINES) -> str:
    """Format a plan: a table of groups, each with folded details."""
    return "\n".join(map(shown, _lines(plan, most_lines))) + "\n"


def _lines(plan: Plan, most_lines: int) -> Iterator[str]:
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
        yield "Left as it is, by `leave` of the intent:"
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
    worst, lines = plan_text.worst_state(plan), list(plan_text.step_lines(plan))
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
