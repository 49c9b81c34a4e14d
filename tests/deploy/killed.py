"""A deploy that kills its own process at a step of one of its devices."""

import os
import re
import signal
from pathlib import Path

import yaml

from netkit.deploy import Journal
from netkit.deploy.journal import JournalEntry
from tests.deploy.fleet import Fleet, built
from tests.lab.running import RunningLab

VICTIM = "spine01"
SPINES = ("spine01", "spine02")
ONLY_AFTER_A_FAILURE = ("settle", "rollback")
WITH_ANOTHER_TO_COME = ("end", *ONLY_AFTER_A_FAILURE)
REVERT_S, SETTLE_S = 900, 8
"""No timer expires before a step, however busy the machine is; no test waits for one."""


class Fatal(Journal):
    """A journal that ends its process, as kill -9 does, once a step of the victim is on disk."""

    last = ""

    def _write(self, entry: JournalEntry) -> None:
        super()._write(entry)
        if (entry.step, entry.device) == (self.last, VICTIM) and entry.wave:
            os.kill(os.getpid(), signal.SIGKILL)


def spoiled(_file: str, text: str) -> str:
    """A configuration with which BGP sessions do not come up."""
    return re.sub(r"remote-as: \d+", "remote-as: 64999", text)


def deploy_until(home: str, name: str, fabric: str, runs: str, step: str) -> None:
    """Deploy until the step is journalled."""
    values = yaml.safe_load(Path(fabric).read_text(encoding="utf-8"))
    fleet = Fleet(RunningLab(name, Path(home), Path(fabric)), Path(runs), built(values))
    if step in ONLY_AFTER_A_FAILURE:
        fleet.by_hand = spoiled
    journal = Fatal(fleet.journal().folder)
    journal.last = step
    limit = SPINES if step in WITH_ANOTHER_TO_COME else (VICTIM,)
    fleet.apply(journal=journal, revert_s=REVERT_S, settle_s=SETTLE_S, limit=limit)
