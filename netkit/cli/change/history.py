"""`netkit history`."""

import sys
import time
from collections.abc import Container, Iterable, Iterator, Sequence
from pathlib import Path

from netkit.cli.fabric import check_format, open_project
from netkit.cli.fleet import OF_THE_FABRIC
from netkit.cli.runs import found_run, runs_folder
from netkit.cli.terminal.text import columns, write_json
from netkit.deploy import Journal, Outcome, Phase, Result, RunSummary, State, history
from netkit.deploy.journal import SAMPLE, Entry
from netkit.deploy.shape import DeviceOutcome
from netkit.report.outcome_text import outcome_text

Row = tuple[str, str, str, str, str]
UNTOUCHED = {"wave", Phase.PREFLIGHT, SAMPLE, Phase.LOAD}
"""Steps that leave a device as it was."""


def run(folder: Path, name: str, *, lab: str, output: str) -> None:
    """List the runs on a fabric, or tell all about one."""
    check_format(output)
    fabric = open_project(folder).fabric.name
    runs = runs_folder(fabric, fabric if lab == OF_THE_FABRIC else lab)
    if name:
        tell(found_run(runs, name), output)
        return
    found = history(runs)
    if output == "json":
        write_json([_entry(one) for one in found])
    elif found:
        sys.stdout.write(columns(rows(found), ("RUN", "BEGAN", "RESULT", "DEVICES")))
    else:
        sys.stdout.write(f"no run on {fabric} yet\n")


def rows(runs: Iterable[RunSummary]) -> Iterator[tuple[str, str, str, str]]:
    """Yield what is said of each run in a line."""
    for one in runs:
        yield one.run, _when(one.began_s), _result(one.outcome), _devices(one.outcome)


def tell(journal: Journal, output: str) -> None:
    """Tell all about one run."""
    outcome = journal.outcome()
    entries = journal.entries()
    ended = {entry.device: entry.outcome for entry in entries if entry.outcome is not None}
    if output == "json":
        write_json({"run": journal.run, "outcome": outcome, "steps": [entry for entry in entries if entry.device]})
        return
    began_s = entries[0].at_s if entries else 0.0
    sys.stdout.write(f"run {journal.run}, begun {_when(began_s)}\n")
    if undoes := journal.undoes():
        sys.stdout.write(f"it takes back run {undoes}\n")
    if outcome is None:
        sys.stdout.write("it has not finished; `netkit deploy --resume` goes on with it\n")
    else:
        sys.stdout.write(outcome_text(outcome))
    devices = [*_rows(outcome.devices if outcome else tuple(ended.values()))]
    devices += () if outcome else _not_ended(entries, ended)
    sys.stdout.write("\n" + columns(devices, ("DEVICE", "WAVE", "RESULT", "RUNS", "WHY")) if devices else "")


def _not_ended(entries: Sequence[Entry], ended: Container[str]) -> Iterator[Row]:
    """Yield what is known of the devices that a run did not come to the end with, or not yet."""
    turns: dict[str, list[Entry]] = {}
    for entry in filter(lambda entry: entry.device, entries):
        if entry.step in {Phase.PREFLIGHT, "wave"}:
            turns[entry.device] = []  # a turn begins anew when the device is as it was before
        turns.setdefault(entry.device, []).append(entry)
    for name, turn in turns.items():
        is_begun = not {entry.step for entry in turn} <= UNTOUCHED
        if name not in ended and is_begun:
            yield name, str(turn[-1].wave), "not ended", str(State.UNKNOWN), f"its last step was {turn[-1].step}"
        elif name not in ended:
            yield name, "–", str(Result.NOT_STARTED), str(State.AS_BEFORE), ""


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
    return ", ".join(f"{results.count(result)} {result}" for result in Result if result in results)


def _when(seconds: float) -> str:
    return time.strftime("%Y-%m-%d %H:%M:%S UTC", time.gmtime(seconds)) if seconds else "–"


def _entry(one: RunSummary) -> dict[str, object]:
    counted = {} if one.outcome is None else {device.device: str(device.result) for device in one.outcome.devices}
    result = _result(one.outcome)
    return {"run": one.run, "fabric": one.fabric, "began_s": one.began_s, "result": result, "devices": counted}
