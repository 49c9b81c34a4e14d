"""Which devices netkit has deployed to before, by the runs on this machine. See docs/decisions/0013."""

from collections.abc import Collection, Iterable
from pathlib import Path

from netkit.deploy.journal import Journal
from netkit.deploy.model import ConfigState, DeviceOutcome, Phase
from netkit.errors import DeployError


def deployed(runs: Path, names: Collection[str]) -> frozenset[str]:
    """Return the devices that some run left as intended, and no later run rolled back.

    A rollback restores what ran before the run that it undoes, so both of them prove nothing. Nor does a damaged run.
    """
    found: set[str] = set()
    undone: dict[str, set[str]] = {}
    for folder in sorted(runs.glob("*-*/"), reverse=True) if runs.is_dir() else ():
        if found >= set(names):
            break
        journal = Journal(folder)
        try:
            back, outcomes = journal.undoes(), _outcomes(journal)
        except DeployError:
            continue
        for outcome in outcomes:
            gone = undone.setdefault(outcome.device, set())
            if outcome.state is not ConfigState.INTENDED or folder.name in gone:
                continue
            if back:
                gone.add(back)
            else:
                found.add(outcome.device)
    return frozenset(found & set(names))


def _outcomes(journal: Journal) -> Iterable[DeviceOutcome]:
    """Return the outcome of each device, or those known so far of a run that has not finished."""
    outcome = journal.outcome()
    if outcome is not None:
        return outcome.devices
    return [one.outcome for one in journal.entries() if one.step == Phase.END and one.outcome is not None]
