"""Scheduled checks of a lab: faults come and go, a check is killed, and each change is notified once."""

from pathlib import Path

import pytest

from bench.patient import Patient
from bench.rounds import Wanted, rounds
from tests.lab.running import intent, lab_home, needs_lab, write_fabric


@needs_lab
@pytest.mark.whole
def test_each_change_of_state_is_notified_once_and_none_is_missed(tmp_path: Path) -> None:
    fabric = write_fabric(tmp_path / "fabric", intent())
    with lab_home() as home, Patient.up(fabric, home) as patient:
        found = rounds(patient, Wanted(rounds=4, seed=3, kills=0.4, trouble=(0.0, 0.0)), home)
    assert (found.missed, found.untrue, found.damage, found.notified) == (0, 0, "", found.changes)
    assert found.is_kept
    assert found.kills > 0
