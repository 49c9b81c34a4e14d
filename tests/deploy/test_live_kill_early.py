"""Deploys killed at the steps before and during the change itself, then resumed."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.deploy import kill_scene
from tests.lab.running import RunningLab, needs_lab
from tests.lanes import daily

pytestmark = needs_lab


@pytest.fixture(scope="module")
def four(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningLab]:
    """Boot a fabric of 2 leaves and 2 spines with the intended configurations."""
    with kill_scene.four(tmp_path_factory.mktemp("fabric")) as booted:
        yield booted


@pytest.mark.parametrize("step", daily(["preflight", "sample", "drain", "load", "commit"], "commit"))
def test_a_run_killed_at_any_step_is_finished_by_resume(four: RunningLab, tmp_path: Path, step: str) -> None:
    kill_scene.check_finished_after(four, tmp_path, step)
