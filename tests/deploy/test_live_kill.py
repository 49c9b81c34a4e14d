"""Deploys killed before, during and after a change, or while it is reverted, then resumed."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from netkit.deploy import ConfigState, DeviceResult
from tests.deploy import kill_scene
from tests.deploy.killed import ONLY_AFTER_A_FAILURE, VICTIM
from tests.deploy.live_scene import results
from tests.lab.running import RunningLab, needs_lab
from tests.lanes import daily

pytestmark = needs_lab
STEPS = ("preflight", "sample", "drain", "load", "commit", "connect", "verify", "gate", "undrain", "watch", "confirm")


@pytest.fixture(scope="module")
def four(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningLab]:
    """Boot a fabric of 2 leaves and 2 spines with the intended configurations."""
    with kill_scene.four(tmp_path_factory.mktemp("fabric")) as booted:
        yield booted


@pytest.mark.parametrize("step", daily((*STEPS, "confirmed", "end"), "commit", "confirm"))
def test_a_run_killed_at_any_step_is_finished_by_resume(four: RunningLab, tmp_path: Path, step: str) -> None:
    kill_scene.check_finished_after(four, tmp_path, step)


@pytest.mark.parametrize("step", daily(ONLY_AFTER_A_FAILURE, "rollback"))
def test_a_run_killed_while_it_reverts_a_device_finishes_that_when_resumed(
    four: RunningLab, tmp_path: Path, step: str
) -> None:
    fleet = kill_scene.changed(four, tmp_path, step)
    before = fleet.configs()
    outcome = kill_scene.finished(fleet, kill_scene.killed(fleet, tmp_path, step))
    one = outcome.device(VICTIM)
    assert one is not None
    assert (one.result, one.state, one.exit_code) == (DeviceResult.REVERTED, ConfigState.AS_BEFORE, 1), one.reasons
    assert results(outcome)["spine02"] == "not started"
    assert outcome.exit_code == 1
    assert fleet.configs() == before
