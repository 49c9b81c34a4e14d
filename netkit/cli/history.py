"""`netkit history`."""

import sys
import time
from collections.abc import Iterator
from pathlib import Path

from netkit.cli.fabric import check_format, open_project
from netkit.cli.fleet import OF_THE_FABRIC
from netkit.cli.runs import found_run, runs_folder
from netkit.cli.text import columns, write_json
from netkit.deploy import Journal, Outcome, RunSummary, history
from netkit.deploy.shape import DeviceOutcome
from netkit.report.outcome_text import outcome_text


def run(folder: Path, name: str, *, lab: str, output: str) -> None:
    """List the runs on a fabric, or tell all about one."""
    check_format(output)
    fabric = open_project(folder).fabric.name
    runs = runs_folder(fabric, fabric if lab == OF_THE_FABRIC else lab)
    if name:
        _tell(found_run(runs, name), output)
        return
    found = history(runs)
    if output == "json":
        write_json([_entry(one) for one in found])
    elif found:
        rows = ((one.run, _when(one.began_s), _result(one.outcome), _devices(one.outcome)) for one in found)
        sys.stdout.write(columns(rows, ("RUN", "BEGAN", "RESULT", "DEVICES")))
    else:
        sys.stdout.write(f"no run on {fabric} yet\n")


def _tell(journal: Journal, output: str) -> None:
    outcome = journal.outcome()
    entries = journal.entries()
    ended = {entry.device: entry.outcome for entry in entries if entry.outcome is not None}
    if output == "json":
        write_json({"run": journal.run, "outcome": outcome, "steps": [entry for entry in entries if entry.device]})
        return
    began_s = entries[0].at_s if entries else 0.0
    sys.stdout.write(f"run {journal.run}, begun {_when(began_s)}\n")
    if outcome is None:
        sys.stdout.write("it has not finished: netkit deploy --resume goes on\n")
    else:
        sys.stdout.write(outcome_text(outcome))
    rows = [*_rows(outcome.devices if outcome else tuple(ended.values()))]
    last = {entry.device: entry.step for entry in entries if entry.device and entry.device not in ended}
    rows += [(name, "–", "not ended", f"last step: {step}", "") for name, step in last.items() if outcome is None]
    sys.stdout.write("\n" + columns(rows, ("DEVICE", "WAVE", "RESULT", "RUNS", "WHY")) if rows else "")


def _rows(devices: tuple[DeviceOutcome, ...]) -> Iterator[tuple[str, str, str, str, str]]:
    for one in devices:
        yield one.device, str(one.wave or "–"), str(one.result), str(one.state), "; ".join(one.reasons)


def _result(outcome: Outcome | None) -> str:
    if outcome is None:
        return "not finished"
    return "done" if outcome.exit_code == 0 else f"stopped: {outcome.stopped}" if outcome.stopped else "failed"


def _devices(outcome: Outcome | None) -> str:
    if outcome is None:
        return ""
    results = [str(device.result) for device in outcome.devices]
    return ", ".join(f"{results.count(result)} {result}" for result in dict.fromkeys(results))


def _when(seconds: float) -> str:
    return time.strftime("%Y-%m-%d %H:%M:%S UTC", time.gmtime(seconds)) if seconds else "–"


def _entry(one: RunSummary) -> dict[str, object]:
    counted = {} if one.outcome is None else {device.device: str(device.result) for device in one.outcome.devices}
    result = _result(one.outcome)
    return {"run": one.run, "fabric": one.fabric, "began_s": one.began_s, "result": result, "devices": counted}
