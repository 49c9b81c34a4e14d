"""`netkit deploy --disruptive` on a running lab: it proceeds where no traffic flows, and stops where some does."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cli.site import Site
from tests.lab.running import RunningLab, intent, needs_lab, running, write_fabric

pytestmark = needs_lab
ON_A_LEAF = ("deploy", "--yes", "--limit", "leaf01", "--disruptive")


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningLab]:
    """Boot a small fabric with the intended configurations."""
    with running(write_fabric(tmp_path_factory.mktemp("fabric"), intent()), name="i") as booted:
        yield booted


def thresholds(lab: RunningLab, max_bytes: int) -> None:
    """Change the ECN thresholds in the intent, which reprograms queues."""
    write_fabric(lab.fabric, intent(lossless={"ecn": {400: {"min_bytes": 200_000, "max_bytes": max_bytes}}}))


def load(lab: RunningLab, state: str) -> None:
    done = lab.lab("load", state)
    assert (done.returncode, done.stdout) == (0, f"load {state}\n"), done.stderr


def test_an_idle_leaf_changes_without_busy_option_and_a_loaded_one_does_not(lab: RunningLab, tmp_path: Path) -> None:
    site = Site(lab, tmp_path)
    thresholds(lab, 900_000)
    refused = site.netkit(*ON_A_LEAF)
    assert refused.returncode == 1, refused.stdout + refused.stderr
    assert "; deploy again when it is idle; --disruptive --busy proceeds anyway" in refused.stdout
    load(lab, "off")
    done = site.netkit(*ON_A_LEAF)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "leaf01: its CNPs were not compared: too few before the change\n" in done.stdout
    load(lab, "on")
    thresholds(lab, 800_000)
    assert site.netkit(*ON_A_LEAF).returncode == 1
    busy = site.netkit(*ON_A_LEAF, "--busy")
    assert busy.returncode == 0, busy.stdout + busy.stderr
