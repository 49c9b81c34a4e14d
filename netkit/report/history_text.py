"""Runs of deploys as text and data: all of them in a table, or one with what became of each device."""

import json
import sys
import time
from collections.abc import Container, Iterable, Iterator, Sequence
from dataclasses import fields

from netkit import plan as planning
from netkit.deploy import ConfigState, DeviceResult, Journal, Options, Outcome, Phase, Provenance, RunSummary
from netkit.deploy.journal import SAMPLE, WAVE, JournalEntry, Orders
from netkit.deploy.model import DeviceOutcome
from netkit.plan.model import DevicePlan
from netkit.report.outcome_text import outcome_text
from netkit.report.plan_text import devices_text
from netkit.report.plan_view import MOST_LINES, listed, plan_of, shown
from netkit.report.table import columns

HEAD = ("RUN", "BEGAN", "WHO", "WHAT", "COMMIT", "REASON", "APPROVED BY", "HOOK", "RESULT", "DEVICES")
OPTIONAL = range(2, 8)
"""Columns that are left out when no run has anything to say in them."""
SHORT, LONGEST_REASON = 10, 40
Row = tuple[str, str, str, str, str]
DAMAGED = "cannot be read"
UNTOUCHED = {WAVE, Phase.PREFLIGHT, SAMPLE, Phase.LOAD}
"""Steps that leave a device as it was."""


def table(runs: Sequence[RunSummary]) -> str:
    """Return the runs as a table, without the columns nothing is known for."""
    found = [HEAD, *rows(runs)]
    kept = [index for index, cells in enumerate(zip(*found, strict=True)) if index not in OPTIONAL or any(cells[1:])]
    return shown_lines(columns([tuple(row[index] for index in kept) for row in found]))


def shown_lines(text: str) -> str:
    """Return lines as a terminal may show them."""
    return "".join(f"{shown(line)}\n" for line in text.splitlines())


def rows(runs: Iterable[RunSummary]) -> Iterator[tuple[str, ...]]:
    """Yield what is said of each run in a line."""
    for one in runs:
        first = one.provenance[0] if one.provenance else None
        why = _short(first.reason) if first else ""
        by = (first.who, first.what, _commit(first, SHORT), why, *_consent(first)) if first else ("",) * 6
        yield one.run, _when(one.began_s), *by, DAMAGED if one.damage else _result(one.outcome), _devices(one.outcome)


def _consent(one: Provenance) -> tuple[str, str]:
    return one.approval.approver if one.approval else "", one.hook


def _short(reason: str) -> str:
    return reason if len(reason) <= LONGEST_REASON else f"{reason[: LONGEST_REASON - 1].rstrip()}…"


def _commit(one: Provenance, length: int) -> str:
    return f"{one.commit[:length]}{'+' * one.is_dirty}"


def run_document(journal: Journal, names: Container[str] | None = None) -> dict[str, object]:
    """Return all about one run, for programs."""
    orders = journal.orders()
    document = json.loads(planning.write(plan_of(orders.plan, _chosen(orders, names))))
    steps = [entry for entry in journal.entries() if entry.device]
    who = [one.plain() for one in journal.provenance()]
    told = {"run": journal.run, "provenance": who, "options": orders.options, "outcome": journal.outcome()}
    return told | {"changes": document["devices"], "steps": steps}


def run_text(journal: Journal, names: Container[str] | None = None) -> str:
    """Return all about one run: who and why, what became of each device, and what was to change on it."""
    orders, outcome, entries = journal.orders(), journal.outcome(), journal.entries()
    ended = {entry.device: entry.outcome for entry in entries if entry.outcome is not None}
    began_s = entries[0].at_s if entries else 0.0
    parts = [f"run {journal.run}, begun {_when(began_s)}\n"]
    parts.append(shown_lines("\n".join(_who(journal.provenance(), orders.options))))
    if undoes := journal.undoes():
        parts.append(f"it takes back run {undoes}\n")
    if outcome is None:
        parts.append("it has not finished; `netkit deploy --resume` goes on with it, `netkit rollback` takes it back\n")
    else:
        parts.append(outcome_text(outcome))
    devices = [*_rows(outcome.devices if outcome else tuple(ended.values()))]
    devices += () if outcome else _not_ended(entries, ended)
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
    """Yield who began a run and who resumed it, from what, why, and who allowed it."""
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
        told = (f"{name}={_value(getattr(options, name))}" for name in changed)
        yield f"options: {', '.join(told)}"


def _value(value: object) -> str:
    if isinstance(value, tuple):
        return listed(value)
    return f"{value:g}" if isinstance(value, float) else str(value).lower()


def _not_ended(entries: Sequence[JournalEntry], ended: Container[str]) -> Iterator[Row]:
    """Yield what is known of the devices that a run did not come to the end with, or not yet."""
    turns: dict[str, list[JournalEntry]] = {}
    for entry in filter(lambda entry: entry.device, entries):
        if entry.step in {Phase.PREFLIGHT, WAVE}:
            turns[entry.device] = []  # a turn begins anew when the device is as it was before
        turns.setdefault(entry.device, []).append(entry)
    for name, turn in turns.items():
        is_begun = not {entry.step for entry in turn} <= UNTOUCHED
        if name not in ended and is_begun:
            yield name, str(turn[-1].wave), "not ended", str(ConfigState.UNKNOWN), f"its last step was {turn[-1].step}"
        elif name not in ended:
            yield name, "–", str(DeviceResult.NOT_STARTED), str(ConfigState.AS_BEFORE), ""


def _rows(devices: tuple[DeviceOutcome, ...]) -> Iterator[Row]:
    for one in devices:
        yield one.device, str(one.wave or "–"), str(one.result), str(one.state), "; ".join(one.reasons)


def _result(outcome: Outcome | None) -> str:
    if outcome is None:
        return "not finished"
    return "done" if outcome.exit_code == 0 else f"stopped: {outcome.stopped}" if outcome.stopped else "failed"


def _devices(outcome: Outcome | None) -> str:
    if outcome is None:
        return ""
    results = [device.result for device in outcome.devices]
    return ", ".join(f"{results.count(result)} {result}" for result in DeviceResult if result in results)


def _when(seconds: float) -> str:
    return time.strftime("%Y-%m-%d %H:%M:%S UTC", time.gmtime(seconds)) if seconds else "–"


def entry(one: RunSummary) -> dict[str, object]:
    """Return a run for programs, in short."""
    counted = {} if one.outcome is None else {device.device: str(device.result) for device in one.outcome.devices}
    result = DAMAGED if one.damage else _result(one.outcome)
    told = {"run": one.run, "fabric": one.fabric, "began_s": one.began_s, "result": result, "devices": counted}
    return told | {"provenance": [start.plain() for start in one.provenance]}
