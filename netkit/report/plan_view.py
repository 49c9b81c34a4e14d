"""A plan in the words and order that all formats share."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from difflib import unified_diff

from netkit.plan.model import Blast, DevicePlan, Plan
from netkit.platforms.change import Change, Risk, Strategy
from netkit.platforms.config import Path
from netkit.report.section import ReportLine, Section, sections

MOST_NAMES = 6
LONGEST_VALUE = 100
MOST_LINES = 60
MOST_TEXT_LINES = 8
SIGNS = {"added": "+", "removed": "-", "changed": "~"}


@dataclass(frozen=True, slots=True)
class GroupView:
    """Devices that change alike, with the changes of the one that changes most."""

    names: tuple[str, ...]
    first: DevicePlan
    sections: tuple[Section, ...]
    hidden: int
    notes: tuple[str, ...]
    touched: str
    disruption: str
    warnings: tuple[str, ...]


def groups(plan: Plan, most_lines: int = MOST_LINES) -> Iterator[GroupView]:
    by_name = {device.name: device for device in plan.devices}
    for group in plan.groups:
        devices = [by_name[name] for name in group if name in by_name]  # since a plan file, some may not answer
        if not devices:
            continue
        first = max(devices, key=lambda device: len(device.changes))
        whole = list(sections((change, tuple(_lines(change))) for change in _visible(first.changes)))
        fitting = tuple(_fitting(whole, most_lines))
        blast = plan_of(plan, devices).blast
        yield GroupView(
            names=tuple(device.name for device in devices),
            first=first,
            sections=fitting,
            hidden=_size(whole) - _size(fitting),
            notes=tuple(_notes(first.changes)),
            touched=touched(blast),
            disruption=_disruption(blast),
            warnings=tuple(_warnings(devices)),
        )


def plan_of(plan: Plan, devices: Sequence[DevicePlan]) -> Plan:
    """The part of a plan about some devices."""
    return Plan(plan.fabric, tuple(devices), (), (), plan.netkit)


def headline(plan: Plan) -> str:
    """Summarise a plan in one sentence."""
    changed, known = len(plan.changed), len(plan.devices)
    missed = f", {len(plan.unreachable)} could not be read" if plan.unreachable else ""
    if not changed:
        return f"{plan.fabric}: nothing to change on {counted(known, 'device')}{missed}"
    verb = "changes" if changed == 1 else "change"
    return f"{plan.fabric}: {changed} of {counted(known, 'device')} {verb}, highest risk {plan.risk.word}{missed}"


def left_lines(plan: Plan) -> list[str]:
    """List what each device keeps by `leave`, cut to a readable length."""
    return [f"{device.name}: {_paths(device.left)}" for device in plan.devices if device.left]


def unowned_line(plan: Plan) -> str:
    """Count what is not netkit's, and what the intent leaves; empty if there is neither."""
    unowned = _sums([device.unowned for device in plan.devices])
    left = _sums([len(device.left) for device in plan.devices])
    parts = [f"not netkit's: {unowned}"] if unowned else []
    parts += [f"left by the intent: {left}"] if left else []
    text = "; ".join(parts)
    return f"{text[:1].upper()}{text[1:]}"


def _sums(counts: Sequence[int]) -> str:
    """Count entries, and the devices that have any."""
    found = [number for number in counts if number]
    entries = "1 entry" if sum(found) == 1 else f"{sum(found)} entries"
    return f"{entries} on {counted(len(found), 'device')}" if found else ""


def unexplained_heading(plan: Plan) -> str:
    """Say what happens with what is unexplained."""
    if plan.is_taking_over:
        return "Taken over: removed on the first contact, although the intent does not explain it:"
    return "Not explained: netkit has not deployed to these devices, and removes this only with --take-over:"


def unexplained_lines(plan: Plan) -> list[str]:
    """List what each device would lose without an explanation, cut to a readable length."""
    return [f"{device.name}: {_paths(device.unexplained)}" for device in plan.unexplained]


def _paths(paths: Sequence[Path]) -> str:
    more = f"; and {len(paths) - MOST_NAMES} more" if len(paths) > MOST_NAMES else ""
    return f"{'; '.join(map(' / '.join, paths[:MOST_NAMES]))}{more}"


def touched(blast: Blast) -> str:
    """Count what is touched; empty if nothing is."""
    parts = (
        counted(len(blast.sessions), "session"),
        counted(len(blast.links), "link"),
        counted(len(blast.rails), "rail"),
        counted(len(blast.hosts), "host"),
        counted(len(blast.gpus), "GPU"),
    )
    return ", ".join(part for part in parts if not part.startswith("0 "))


def why_not(strategy: Strategy) -> str:
    """What the reasons of a strategy explain."""
    return "cannot be done" if strategy.is_refused else "no gentler method"


def counted(number: int, noun: str) -> str:
    """Format a number with its noun: `1 device`, `2 devices`."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def listed(names: Sequence[str]) -> str:
    """Join names, leaving out the middle of a long list."""
    if len(names) <= MOST_NAMES:
        return ", ".join(names)
    return f"{', '.join(names[: MOST_NAMES - 2])} … {names[-1]} ({len(names)})"


def shown(text: str) -> str:
    """Escape control characters: text from a device must not move the cursor."""
    if text.isprintable():
        return text
    return "".join(char if char.isprintable() else char.encode("unicode_escape").decode("ascii") for char in text)


def _visible(changes: Sequence[Change]) -> Iterator[Change]:
    """Drop headings of sections that are added or removed with everything below them."""
    above = {change.path[:length] for change in changes for length in range(1, len(change.path))}
    for change in changes:
        if change.path not in above or change.running or change.intended:
            yield change


def _fitting(found: Iterable[Section], most_lines: int) -> Iterator[Section]:
    """Yield sections up to a number of lines; the last one is cut."""
    room = most_lines
    for section in found:
        if room > 0:
            yield replace(section, lines=section.lines[:room])
        room -= len(section.lines)


def _size(found: Iterable[Section]) -> int:
    """The number of changes in sections."""
    return sum(len(section.lines) * max(1, len(section.places)) for section in found)


def _lines(change: Change) -> Iterator[ReportLine]:
    name = change.path[-1]
    sign = SIGNS["added" if change.is_addition else "removed" if change.is_removal else "changed"]
    if "\n" in (change.running or "") + (change.intended or ""):
        yield from _text_lines(change, sign)
        return
    running, intended = _value(change.running), _value(change.intended)
    value = f"{running} → {intended}" if sign == "~" else running + intended
    yield ReportLine(sign, f"{name}: {value}" if value else name, change.risk)


def _text_lines(change: Change, sign: str) -> Iterator[ReportLine]:
    """Yield the diff of two multi-line texts."""
    running, intended = (change.running or "").splitlines(), (change.intended or "").splitlines()
    found = [
        line for line in unified_diff(running, intended, n=0, lineterm="") if line[:3] not in {"---", "+++", "@@ "}
    ]
    yield ReportLine(sign, f"{change.path[-1]}: {counted(len(found), 'line')} of text", change.risk)
    yield from (ReportLine(line[0], f"  {_value(line[1:])}", change.risk) for line in found[:MOST_TEXT_LINES])
    if len(found) > MOST_TEXT_LINES:
        yield ReportLine(sign, f"  … and {counted(len(found) - MOST_TEXT_LINES, 'line')} more", change.risk)


def _value(value: str | None) -> str:
    text = value or ""
    return text if len(text) <= LONGEST_VALUE else f"{text[:LONGEST_VALUE]}…"


def _notes(changes: Iterable[Change]) -> Iterator[str]:
    """Yield the reasons, worst first."""
    counts: dict[tuple[Risk, str], int] = {}
    for change in changes:
        if change.note:
            counts[change.risk, change.note] = counts.get((change.risk, change.note), 0) + 1
    for (risk, note), count in sorted(counts.items(), key=lambda item: (-item[0][0], item[0][1])):
        yield f"{risk.word}: {note} ({counted(count, 'change')})"


def _disruption(blast: Blast) -> str:
    if not blast.is_disruptive:
        return ""
    hosts, gpus = counted(len(blast.hosts), "host"), counted(len(blast.gpus), "GPU")
    return f"disruptive: no other path for {hosts} ({gpus})"


def _warnings(devices: Sequence[DevicePlan]) -> Iterator[str]:
    for device in devices:
        yield from (f"{device.name}: {warning}" for warning in device.warnings)
        if device.not_read:
            yield f"{device.name}: not compared, because not read: {', '.join(device.not_read)}"
