"""Runs of deploys as text and data: a table of all, or one run with the result of each device."""

import json
import sys
import time
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import fields

from netkit import plan as planning
from netkit.deploy import Journal, Options, Phase, Provenance, RunSummary
from netkit.deploy.journal import SAMPLE, WAVE, JournalEntry, Orders
from netkit.deploy.model import ConfigState, DeviceOutcome, DeviceResult, Outcome
from netkit.deploy.rollout import INTERRUPTED
from netkit.plan.model import DevicePlan
from netkit.report.plan_text import devices_text
from netkit.report.plan_view import MOST_LINES, counted, listed, plan_of, shown
from netkit.report.table import columns

RUNS = {
    ConfigState.INTENDED: "runs the intended configuration",
    ConfigState.AS_BEFORE: "runs its earlier configuration",
    ConfigState.BOTH: "runs the intended configuration, with the earlier one beside it",
    ConfigState.UNKNOWN: "its configuration is not known",
}
RUNS_BACK = RUNS | {
    ConfigState.INTENDED: "runs its earlier configuration",
    ConfigState.AS_BEFORE: "not rolled back",
    ConfigState.BOTH: "runs its earlier configuration, with the later one beside it",
}
"""The same for a rollback."""
STATES_BACK = {
    ConfigState.INTENDED: "earlier",
    ConfigState.AS_BEFORE: "not rolled back",
    ConfigState.BOTH: "both",
    ConfigState.UNKNOWN: "unknown",
}
"""What a device runs in the table of a rollback."""
QUIET = frozenset({DeviceResult.DONE, DeviceResult.UNCHANGED, DeviceResult.READY, DeviceResult.EXCLUDED})


def outcome_text(outcome: Outcome) -> str:
    """Format an outcome: one line, and a line for each device that is not as intended."""
    return "\n".join(map(shown, _lines(outcome))) + "\n"


def device_text(device: DeviceOutcome, *, is_back: bool = False) -> str:
    if device.result in QUIET:
        return f"{device.device}: {device.result}"
    prefix = f"{device.device}: "
    reasons = "; ".join(reason.removeprefix(prefix) for reason in device.reasons)
    return (
        f"{prefix}{device.result}, {(RUNS_BACK if is_back else RUNS)[device.state]}{': ' if reasons else ''}{reasons}"
    )


def _lines(outcome: Outcome) -> Iterator[str]:
    counts = {result: sum(device.result is result for device in outcome.devices) for result in DeviceResult}
    parts = ", ".join(f"{count} {result}" for result, count in counts.items() if count)
    head = f"dry run of {outcome.fabric}" if outcome.is_dry_run else outcome.fabric
    yield f"{head}: {counted(len(outcome.devices), 'device')}: {parts}"
    for device in outcome.devices:
        if device.result not in {*QUIET, DeviceResult.NOT_STARTED}:
            yield f"  {device_text(device, is_back=bool(outcome.undoes))}"
    for note, names in _notes(outcome).items():
        yield f"  {listed(names)}: {note}"
    waiting = [device for device in outcome.devices if device.result is DeviceResult.NOT_STARTED]
    if both := [device.device for device in outcome.devices if device.state is ConfigState.BOTH]:
        beside = ("later", "earlier") if outcome.undoes else ("earlier", "intended")
        yield f"  these keep the {beside[0]} routes and sessions beside the {beside[1]} ones: {listed(both)}"
    if before := [device.device for device in waiting if device.state is not ConfigState.BOTH]:
        what = "not rolled back" if outcome.undoes else "running their earlier configuration"
        yield f"  not started, {what}: {listed(before)}"
    left = [one for one in outcome.devices if one.result not in QUIET and _can_be_tried_again(one)]
    if outcome.undoes and outcome.stopped != INTERRUPTED:
        again = f"netkit rollback {outcome.undoes}"
        unknown = {one.device for one in left if one.state is ConfigState.UNKNOWN}
        dead = [one.device for one in left if one.result is DeviceResult.UNREACHABLE or one.device in unknown]
        if dead:
            yield f"  once they answer, {again} rolls these back: {listed(dead)}"
        if others := [one.device for one in left if one.device not in dead]:
            yield f"  {again} tries these again: {listed(others)}"
    if outcome.stopped:
        yield f"stopped: {outcome.stopped}"


def _can_be_tried_again(one: DeviceOutcome) -> bool:
    """Whether a rollback was not finished on a device, and others have not changed it since."""
    is_changed = one.result is DeviceResult.REFUSED and one.state is ConfigState.UNKNOWN
    return one.state is not ConfigState.INTENDED and not is_changed


def _notes(outcome: Outcome) -> dict[str, list[str]]:
    """Notes on devices that are as intended, with their names."""
    found: dict[str, list[str]] = {}
    for device in outcome.devices:
        for note in device.reasons if device.result is DeviceResult.DONE else ():
            found.setdefault(note.removeprefix(f"{device.device}: "), []).append(device.device)
    return found


HEAD = ("RUN", "BEGAN", "WHO", "WHAT", "COMMIT", "REASON", "APPROVED BY", "HOOK", "RESULT", "DEVICES")
OPTIONAL = range(2, 8)
"""Columns that are left out if they are empty."""
SHORT, LONGEST_REASON = 10, 40
Row = tuple[str, str, str, str, str]
DAMAGED = "cannot be read"
UNTOUCHED = {WAVE, Phase.PREFLIGHT, SAMPLE, Phase.LOAD}
"""Steps that do not change a device."""


def table(runs: Sequence[RunSummary]) -> str:
    """Format runs as a table, without empty columns."""
    found = [HEAD, *rows(runs)]
    kept = [index for index, cells in enumerate(zip(*found, strict=True)) if index not in OPTIONAL or any(cells[1:])]
    return columns([tuple(row[index] for index in kept) for row in found])


def rows(runs: Iterable[RunSummary]) -> Iterator[tuple[str, ...]]:
    for one in runs:
        by = _provenance_cells(one.provenance[0]) if one.provenance else ("",) * 6
        yield one.run, _when(one.began_s), *by, DAMAGED if one.damage else _result(one), _devices(one.outcome)


def _provenance_cells(one: Provenance) -> tuple[str, ...]:
    reason = one.reason
    if len(reason) > LONGEST_REASON:
        reason = f"{reason[: LONGEST_REASON - 1].rstrip()}…"
    approver = one.approval.approver if one.approval else ""
    return one.who, one.what, f"{one.commit[:SHORT]}{'+' * one.is_dirty}", reason, approver, one.hook


def run_document(journal: Journal, names: Container[str] | None = None) -> dict[str, object]:
    """Everything about a run as plain values."""
    orders = journal.orders()
    document = json.loads(planning.write(plan_of(orders.plan, _chosen(orders, names))))
    steps = [entry for entry in journal.entries() if entry.device]
    who = [one.plain() for one in journal.provenance()]
    head = {"run": journal.run, "provenance": who, "options": orders.options, "outcome": journal.outcome()}
    return head | {"changes": document["devices"], "steps": steps}


def run_text(journal: Journal, names: Container[str] | None = None) -> str:
    """Format a run: author and reason, the result of each device, and its changes."""
    orders, outcome, entries = journal.orders(), journal.outcome(), journal.entries()
    ended = {entry.device: entry.outcome for entry in entries if entry.outcome is not None}
    began_s = entries[0].at_s if entries else 0.0
    parts = [f"run {journal.run}, begun {_when(began_s)}\n"]
    parts += [f"{shown(line)}\n" for line in _who(journal.provenance(), orders.options)]
    if undoes := journal.undoes():
        parts.append(f"it rolls back run {undoes}\n")
    if outcome is None and (later := journal.superseded()):
        parts.append(f"it has not finished; run {later} has superseded it\n")
    elif outcome is None:
        parts.append("it has not finished; `netkit deploy --resume` continues it, `netkit rollback` undoes it\n")
    else:
        parts.append(outcome_text(outcome))
    results = outcome.devices if outcome else tuple(ended.values())
    states = STATES_BACK if undoes else {state: str(state) for state in ConfigState}
    devices: list[Row] = [
        (one.device, str(one.wave or "–"), str(one.result), states[one.state], "; ".join(one.reasons))
        for one in results
    ]
    devices += () if outcome else _not_ended(entries, ended, states)
    parts.append("\n" + columns(devices, ("DEVICE", "WAVE", "RESULT", "RUNS", "WHY")) if devices else "")
    most_lines = MOST_LINES if names is None else sys.maxsize
    parts.append(devices_text(orders.plan, [one.name for one in _chosen(orders, names)], most_lines=most_lines))
    return "".join(parts)


def _chosen(orders: Orders, names: Container[str] | None) -> list[DevicePlan]:
    limit = orders.options.limit
    return [
        device
        for device in orders.plan.changed
        if (limit is None or device.name in limit) and (names is None or device.name in names)
    ]


def _who(provenance: Sequence[Provenance], options: Options) -> Iterator[str]:
    """Yield who started and resumed a run, from which commit, why, and who approved it."""
    for one in provenance:
        proven = f", who signed as {one.signer}" if one.signer else ""
        dirty = " and changes that are not committed" if one.is_dirty else ""
        source = f", intent of commit {one.commit}{dirty}" if one.commit else ""
        yield f"{one.what} by {one.who} (uid {one.uid}){proven}, {_when(one.at_s)}{source}"
        if one.reason:
            yield f"  reason: {one.reason}"
        if one.approval is not None:
            given = one.approval
            yield f"  approved by {given.approver}, {_when(given.at_s)}, key {given.key}"
        if one.hook:
            yield f"  hook: {one.hook}{': ' if one.hook_reason else ''}{one.hook_reason}"
    usual = Options()
    changed = [item.name for item in fields(Options) if getattr(options, item.name) != getattr(usual, item.name)]
    if changed:
        texts = (f"{name}={_value(getattr(options, name))}" for name in changed)
        yield f"options: {', '.join(texts)}"


def _value(value: object) -> str:
    if isinstance(value, tuple):
        return listed(value)
    return f"{value:g}" if isinstance(value, float) else str(value).lower()


def _not_ended(
    entries: Sequence[JournalEntry], ended: Container[str], states: Mapping[ConfigState, str]
) -> Iterator[Row]:
    """Yield the devices that a run has not finished."""
    turns: dict[str, list[JournalEntry]] = {}
    for entry in filter(lambda entry: entry.device, entries):
        if entry.step in {Phase.PREFLIGHT, WAVE}:
            turns[entry.device] = []  # the rollout of a device restarts
        turns.setdefault(entry.device, []).append(entry)
    for name, turn in turns.items():
        is_begun = not {entry.step for entry in turn} <= UNTOUCHED
        if name not in ended and is_begun:
            yield (
                name,
                str(turn[-1].wave),
                "not ended",
                states[ConfigState.UNKNOWN],
                f"its last step was {turn[-1].step}",
            )
        elif name not in ended:
            yield name, "–", str(DeviceResult.NOT_STARTED), states[ConfigState.AS_BEFORE], ""


def _result(one: RunSummary) -> str:
    outcome = one.outcome
    if outcome is None:
        return f"superseded by {one.superseded}" if one.superseded else "not finished"
    return "done" if outcome.exit_code == 0 else f"stopped: {outcome.stopped}" if outcome.stopped else "failed"


def _devices(outcome: Outcome | None) -> str:
    if outcome is None:
        return ""
    results = [device.result for device in outcome.devices]
    return ", ".join(f"{results.count(result)} {result}" for result in DeviceResult if result in results)


def _when(seconds: float) -> str:
    return time.strftime("%Y-%m-%d %H:%M:%S UTC", time.gmtime(seconds)) if seconds else "–"


def entry(one: RunSummary) -> dict[str, object]:
    """A summary of a run as plain values."""
    counted = {} if one.outcome is None else {device.device: str(device.result) for device in one.outcome.devices}
    result = DAMAGED if one.damage else _result(one)
    head = {"run": one.run, "fabric": one.fabric, "began_s": one.began_s, "result": result, "devices": counted}
    return head | {"provenance": [start.plain() for start in one.provenance]}
