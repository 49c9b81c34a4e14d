"""Drift as checks read it: cached, and one unreadable device does not affect the others."""

from collections.abc import Mapping
from pathlib import Path

import pytest

from netkit.plan import Running, serial
from netkit.platforms.config import Files
from netkit.project.planning import cache_folder, compared
from netkit.project.project import Project
from netkit.project.rendering import intended
from tests.cli.checked import VALUES
from tests.lab.running import write_fabric

NAMES = ("leaf01", "spine01")


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Project:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return Project.open(write_fabric(tmp_path / "fabric", VALUES))


def rendered(project: Project) -> Mapping[str, Files]:
    return intended(project, [project.fabric.switch(name) for name in NAMES])


def running(files: Mapping[str, Files], **texts: str) -> dict[str, Running]:
    """The running configuration of a device: the intended one, or another text."""
    found = {name: dict.fromkeys(own, texts[name]) if name in texts else own for name, own in files.items()}
    return {name: Running(own, "5.16.1") for name, own in found.items()}


def test_an_unreadable_device_does_not_affect_the_others(project: Project) -> None:
    files = rendered(project)
    plan = compared(project, running(files, spine01="%% no configuration {"), files)
    assert [(one.name, len(one.changes)) for one in plan.devices] == [("leaf01", 0)]
    (missed,) = plan.unreachable
    assert (missed.name, missed.reason.partition(":")[0]) == ("spine01", "its running configuration cannot be parsed")


def test_a_comparison_is_cached(project: Project) -> None:
    files = rendered(project)
    first = compared(project, running(files), files)
    kept = serial.load(cache_folder())
    assert len(kept) == len(NAMES)
    assert compared(project, running(files), files) == first
    assert serial.load(cache_folder()) == kept
