"""What a change of the repository would change, as a comment for its pull request: short, the rest to unfold."""

from collections.abc import Iterable, Iterator, Sequence

from netkit.plan.shape import DevicePlan
from netkit.plan.shift import Newcomer, Shift, approval
from netkit.report.plan_markdown import HEADS, plain, row, steps, unfolded
from netkit.report.plan_view import GroupView, counted, groups, listed, shown, touched
from netkit.report.shift_view import NOTHING, Aside, headline, newcomers, sorts, where

LARGEST = 60_000
"""Characters; GitHub refuses comments of more than 65,536, and its limit counts what we count once or more."""
MOST_ROWS = 20
CUT = "… and {} more groups; `netkit plan` shows them all"


def markdown(shift: Shift, aside: Aside = NOTHING, *, largest: int = LARGEST) -> str:
    """Return the comment; what does not fit is counted."""
    found = list(groups(shift.plan))
    head = _text([*_head(shift, aside, found), *aside.details, *_numbers(shift), *_beside(shift)])
    foot = _text(["", *_foot(shift, aside)])
    room = largest - len(head) - len(foot)
    parts: list[str] = []
    for number, group in enumerate(found):
        part = _text(["", *unfolded(group)])
        rest = _text(["", CUT.format(len(found) - number)])
        if len(part) + len(rest) > room:
            parts.append(rest)
            break
        parts.append(part)
        room -= len(part)
    return "".join((head, *parts, foot))[:largest]


def _text(lines: Iterable[str]) -> str:
    return "".join(f"{shown(line)}\n" for line in lines)


def _head(shift: Shift, aside: Aside, found: Sequence[GroupView]) -> Iterator[str]:
    yield f"### {plain(headline(shift))}"
    for line in aside.verdict:
        yield ""
        yield line
    touches = touched(shift.plan.blast)
    if touches:
        yield ""
        yield f"Touches {touches}."
    if found:
        yield ""
        yield from HEADS
        yield from (row(group) for group in found[:MOST_ROWS])
        if len(found) > MOST_ROWS:
            yield f"| … and {len(found) - MOST_ROWS} more groups | | | | |"
    yield from steps(shift.plan)
    for what, devices in sorts(shift):
        yield from _newcomers(what, devices)
    if shift.warnings:
        yield ""
        yield from (f"- ⚠ {plain(str(warning))}" for warning in shift.warnings[:MOST_ROWS])
        if len(shift.warnings) > MOST_ROWS:
            yield f"- … and {counted(len(shift.warnings) - MOST_ROWS, 'more warning')}"


def _newcomers(what: str, devices: Sequence[Newcomer]) -> Iterator[str]:
    if devices:
        yield ""
        yield f"{what[0].upper()}{what[1:]}: {'; '.join(plain(text) for text in newcomers(devices))}."


def _numbers(shift: Shift) -> Iterator[str]:
    if not shift.moved:
        return
    yield ""
    yield "<details>"
    yield f"<summary>{counted(len(shift.moved), 'number')} moved</summary>"
    yield ""
    yield "| what | was | is | where |"
    yield "|---|---|---|---|"
    for one in shift.moved[:MOST_ROWS]:
        cells = (one.quantity, one.running or "none", one.intended or "none", where(one))
        yield f"| {' | '.join(plain(cell) for cell in cells)} |"
    if len(shift.moved) > MOST_ROWS:
        yield f"| … and {len(shift.moved) - MOST_ROWS} more | | | |"
    yield "</details>"


def _beside(shift: Shift) -> Iterator[str]:
    notes = [f"{device.name}: {note}" for device in shift.plan.devices if not device.changes for note in _notes(device)]
    if notes:
        yield ""
        yield from (f"- ⚠ {plain(note)}" for note in notes[:MOST_ROWS])
        if len(notes) > MOST_ROWS:
            yield f"- … and {len(notes) - MOST_ROWS} more"
    if shift.plan.unreachable:
        yield ""
        missed = [one.name for one in shift.plan.unreachable]
        yield f"⚠ Not in this plan, because nobody could read them: {plain(listed(missed))}."


def _notes(device: DevicePlan) -> Iterator[str]:
    yield from device.warnings
    if device.not_read:
        yield f"not compared, because not read: {', '.join(device.not_read)}"


def _foot(shift: Shift, aside: Aside) -> Iterator[str]:
    if not shift.plan.changed:
        return
    if shift.added:
        yield "Devices that are new have to be looked at once they are there: approve a plan of running devices."
        return
    how = f"`netkit deploy --approved {approval(shift.plan)}`. Any other plan is refused."
    if aside.doubt:
        said = f"{aside.doubt[0].upper()}{aside.doubt[1:]}"
        yield f"⚠ **{said}.** Who approves the plan as it is here accepts that: {how}"
        return
    yield f"Approved as it is here: {how}"
