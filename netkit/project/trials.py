"""Results of acceptance runs: read from files, and added to what was seen of the devices."""

import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from pathlib import Path

from netkit.errors import CheckError, Problem
from netkit.facts import Absent, Snapshot
from netkit.facts.snapshot import Trial
from netkit.judge import Check, CheckContext
from netkit.platforms.linux.acceptance import results
from netkit.project.checking import Checking

ACCEPTANCE = "acceptance."
MOST_BYTES = 64 * 2**20


def scene(
    checking: Checking,
    checks: Sequence[Check],
    files: Sequence[Path],
    looked: Callable[[], CheckContext],
    measured: Callable[[], tuple[Trial, ...]] = tuple,
) -> CheckContext:
    """Return what checks are given. When they only judge results of acceptance runs, no device is looked at."""
    trials = (*read(files), *measured())
    if checking.snapshot is None and all(check.name.startswith(ACCEPTANCE) for check in checks):
        nothing = Snapshot(checking.project.fabric.name, time.time(), {}, trials=trials)
        limits = checking.project.loaded.intent.thresholds
        return CheckContext(checking.project.fabric, nothing, limits, names=frozenset())
    found = looked()
    return replace(found, snapshot=added(found.snapshot, trials))


def added(snapshot: Snapshot, trials: Sequence[Trial]) -> Snapshot:
    """Return a snapshot that holds more results."""
    return replace(snapshot, trials=(*snapshot.trials, *trials))


def read(files: Iterable[Path]) -> tuple[Trial, ...]:
    """Return the results in files; one that tells no time is as old as its file."""
    return tuple(trial for file in files for trial in _of_file(file))


def _of_file(file: Path) -> tuple[Trial, ...]:
    try:
        with file.open("rb") as stream:
            data = stream.read(MOST_BYTES + 1)
        written_s = file.stat().st_mtime
    except OSError as error:
        raise CheckError(Problem(f"cannot be read: {error.strerror}", file=str(file))) from None
    if len(data) > MOST_BYTES:
        raise CheckError(Problem("is larger than any result", "name a file of one run or a few", file=str(file)))
    found = results(data.decode("utf-8", "replace"), file.name)
    if isinstance(found, Absent):
        remedy = "give what all_reduce_perf, ib_write_bw or iperf3 -J printed"
        raise CheckError(Problem(found.reason, remedy, file=str(file)))
    return tuple(trial if trial.at_s is not None else replace(trial, at_s=written_s) for trial in found)
