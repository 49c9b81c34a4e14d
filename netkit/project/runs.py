"""Where deploys keep what they did: one folder a run, below one for each fabric, and another for each lab of it."""

import os
import re
from pathlib import Path

from netkit.deploy import Journal, RunSummary, history
from netkit.errors import Problem, UsageError
from netkit.private import keep_private

LAST = "last"
UNSAFE = re.compile(r"[^\w.-]")


def state_folder() -> Path:
    """Return where netkit keeps what outlives a command."""
    if chosen := os.environ.get("NETKIT_STATE_DIR"):
        return Path(chosen).absolute()
    home = os.environ.get("XDG_STATE_HOME")
    return Path(home or Path.home() / ".local" / "state") / "netkit"


def runs_folder(fabric: str, lab: str) -> Path:
    """Return where the runs on a fabric are, or those on a lab of it: one never takes back what the other did."""
    place = state_folder() / UNSAFE.sub("_", fabric)
    keep_private(place)
    return place / "labs" / lab / "runs" if lab else place / "runs"


def found_run(folder: Path, name: str) -> Journal:
    """Return the journal of a run by its name, the beginning of it, or `last`."""
    runs = history(folder)
    chosen = [one for one in runs if one.run.startswith(name)] if name != LAST else list(runs[:1])
    exact = [one for one in chosen if one.run == name]
    return Journal(folder / _only(exact or chosen, name, folder).run)


def unfinished_run(folder: Path) -> Journal:
    """Return the journal of the newest run that can be resumed, or that is yet to be taken back for its failure."""
    runs = history(folder)
    left = [one for one in runs if one.outcome is None or Journal(folder / one.run).is_to_be_undone()]
    if not left:
        raise UsageError(Problem("no run is left to resume", "netkit history lists the runs"))
    return Journal(folder / left[0].run)


def _only(runs: list[RunSummary], name: str, folder: Path) -> RunSummary:
    if len(runs) == 1:
        return runs[0]
    if runs:
        raise UsageError(Problem(f"{len(runs)} runs begin with {name!r}", "use more of the name"))
    raise UsageError(Problem(f"no run {name!r} in {folder}", "netkit history lists them, with --lab those of a lab"))
