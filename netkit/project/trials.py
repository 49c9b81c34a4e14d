"""Results of acceptance runs: read from files, and added to a snapshot."""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path

from netkit.errors import CheckError, Problem
from netkit.facts import Absent, Snapshot
from netkit.facts.snapshot import Trial
from netkit.platforms.linux.acceptance import results

MOST_BYTES = 64 * 2**20


def added(snapshot: Snapshot, trials: Sequence[Trial]) -> Snapshot:
    return replace(snapshot, trials=(*snapshot.trials, *trials))


def read(files: Iterable[Path]) -> tuple[Trial, ...]:
    """Read the results in files; one without a time gets the time of its file."""
    return tuple(trial for file in files for trial in _of_file(file))


def _of_file(file: Path) -> tuple[Trial, ...]:
    try:
        with file.open("rb") as stream:
            data = stream.read(MOST_BYTES + 1)
        written_s = file.stat().st_mtime
    except OSError as error:
        raise CheckError(Problem(f"cannot be read: {error.strerror}", file=str(file))) from None
    if len(data) > MOST_BYTES:
        raise CheckError(Problem("is too large for results", "name a file with one run or a few", file=str(file)))
    found = results(data.decode("utf-8", "replace"), file.name)
    if isinstance(found, Absent):
        remedy = "give what all_reduce_perf, ib_write_bw or iperf3 -J printed"
        raise CheckError(Problem(found.reason, remedy, file=str(file)))
    return tuple(trial if trial.at_s is not None else replace(trial, at_s=written_s) for trial in found)
