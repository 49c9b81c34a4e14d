"""The verdict on a change that was rolled out in the lab, and whether the remaining examinations run."""

from collections.abc import Sequence
from pathlib import Path

from netkit.deploy import ConfigState, DeviceOutcome, DeviceResult, Outcome
from netkit.lab.proof import Gap, PingResult
from netkit.plan import Plan
from netkit.project.project import Project
from netkit.project.proving import ProofRun
from netkit.prove.proof import LabPart, WaveStart, flows
from tests.command import ROOT

PROJECT = Project.open(Path(ROOT, "inventory/reference"))
CALLED = flows(PROJECT.fabric, PROJECT.fabric, 1)
PLAN = Plan("reference", (), (), (), "1.0")
DONE = Outcome("run", "reference", (DeviceOutcome("leaf01", DeviceResult.DONE, ConfigState.INTENDED),))
TURNS = (WaveStart(1, ("leaf01",), 100.0),)
DURING, BEFORE = Gap(101.0, 102.0, 9), Gap(99.0, 102.0, 29)


def trial(outcome: Outcome | None, gaps: Sequence[Gap] = (), sent: int = 50) -> ProofRun:
    """A proof after its change was rolled out and its traffic measured."""
    found = ProofRun(PROJECT, PROJECT, LabPart(PROJECT.fabric), PLAN, 0.0)
    heard = [PingResult(flow.call.name, sent, tuple(gaps)) for flow in CALLED]
    found.judged(PLAN, CALLED, outcome, TURNS, heard)
    return found


def test_a_change_without_loss_has_no_objection() -> None:
    found = trial(DONE)
    assert (found.failures, found.is_whole) == ([], True)


def test_after_a_loss_the_rest_is_still_examined() -> None:
    found = trial(DONE, [DURING])
    assert len(found.failures) == len(CALLED)
    assert found.is_whole


def test_a_loss_before_the_first_wave_is_not_attributed_to_the_change() -> None:
    assert trial(DONE, [BEFORE]).failures == []


def test_probes_that_could_not_be_sent_do_not_stop_the_examination() -> None:
    found = trial(DONE, sent=0)
    assert len(found.failures) == len(CALLED)
    assert found.is_whole


def test_after_a_deploy_that_stopped_nothing_is_examined() -> None:
    found = trial(Outcome("run", "reference", DONE.devices, stopped="a gate"))
    assert found.failures == ["the deploy stopped: a gate"]
    assert not found.is_whole
    assert not trial(None).is_whole
