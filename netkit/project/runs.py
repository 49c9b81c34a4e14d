"""Folders of deploy journals: one for each run, below one for each fabric and each of its labs."""

import os
import re
from pathlib import Path

from netkit.deploy import Journal, RunSummary, history
from netkit.errors import Problem, UsageError
from netkit.private import keep_private

LAST = "last"
UNSAFE = re.compile(r"[^\w.-]")


def state_folder() -> Path:
    """The folder for state that outlives a command."""
    if chosen := os.environ.get("NETKIT_STATE_DIR"):
        return Path(chosen).absolute()
    home = os.environ.get("XDG_STATE_HOME")
    return Path(home or Path.home() / ".local" / "state") / "netkit"


def runs_folder(fabric: str, lab: str) -> Path:
    """The folder of the runs on a fabric, or on a lab of it: each rolls back only its own."""
    place = state_folder() / UNSAFE.sub("_", fabric)
    keep_private(place)
    return place / "labs" / lab / "runs" if lab else place / "runs"


def found_run(folder: Path, name: str) -> Journal:
    """Find the journal of a run by its name, the beginning of it, or `last`."""
    runs = history(folder)
    chosen = [summary.run for summary in runs if summary.run.startswith(name) or name == LAST]
    if name == LAST:
        chosen = chosen[:1]
    elif name in chosen:
        chosen = [name]
    if not chosen:
        what = f"no run {name!r} in {folder}"
        raise UsageError(Problem(what, "netkit history lists them, with --lab those of a lab"))
    if len(chosen) > 1:
        raise UsageError(Problem(f"{len(chosen)} runs begin with {name!r}", "give more of the name"))
    return Journal(folder / chosen[0])


def unfinished_run(folder: Path) -> Journal:
    """The journal of the newest run that can be resumed, or that failed and is not rolled back yet."""
    left = [one for one in history(folder) if is_unfinished(folder, one)]
    if not left:
        raise UsageError(Problem("no run is left to resume", "netkit history lists the runs"))
    return Journal(folder / left[0].run)


def is_unfinished(folder: Path, run: RunSummary) -> bool:
    """Whether a run can be resumed, or failed and is not rolled back yet."""
    if run.outcome is None:
        return not run.superseded
    return Journal(folder / run.run).is_to_be_undone()
