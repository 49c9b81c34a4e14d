"""A plan as plain text."""

from collections.abc import Iterator, Sequence
from dataclasses import replace

from netkit.plan.shape import Plan
from netkit.report import steps_text
from netkit.report.plan_view import MOST_LINES, GroupView, counted, groups, headline, listed, shown, touched, why_not


def text(plan: Plan, *, most_lines: int = MOST_LINES) -> str:
    """Return a plan for a terminal, group by group."""
    return "\n".join(map(shown, _lines(plan, most_lines))) + "\n"


def devices_text(plan: Plan, names: Sequence[str], *, most_lines: int = MOST_LINES) -> str:
    """Return what a plan changes on some devices, each for itself."""
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
    if plan.unreachable:
        yield ""
        yield "Not in this plan, because nobody could read them:"
        yield from (f"  {missed.name}: {missed.reason}" for missed in plan.unreachable)
    if len(plan.groups) > 1 and touched(plan.blast):
        yield ""
        yield f"Touched in all: {touched(plan.blast)}"
    if order := list(steps_text.lines(plan)):
        yield ""
        yield from order


def _group(group: GroupView) -> Iterator[str]:
    way = group.first.way
    yield f"{listed(group.names)}: risk {group.first.risk.word}, method {way.method}"
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
    yield from (f"  {why_not(way)}: {reason}" for reason in way.reasons)
    yield from (f"  costs: {cost}" for cost in way.costs)
    if len(way.steps) > 1:
        yield from (f"  step {number}: {step}" for number, step in enumerate(way.steps, 1))
    yield from (f"  ! {warning}" for warning in group.warnings)
