"""What devices run against what is intended, as checks read it: remembered, and whole without who makes no sense."""

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
    """Return what devices run: what is intended, or another text."""
    found = {name: dict.fromkeys(own, texts[name]) if name in texts else own for name, own in files.items()}
    return {name: Running(own, "5.16.1") for name, own in found.items()}


def test_a_device_that_makes_no_sense_takes_no_other_with_it(project: Project) -> None:
    files = rendered(project)
    plan = compared(project, running(files, spine01="%% no configuration {"), files)
    assert [(one.name, len(one.changes)) for one in plan.devices] == [("leaf01", 0)]
    (missed,) = plan.unreachable
    assert (missed.name, missed.reason.partition(":")[0]) == ("spine01", "its running configuration cannot be parsed")


def test_what_was_compared_once_is_remembered(project: Project) -> None:
    files = rendered(project)
    first = compared(project, running(files), files)
    kept = serial.load(cache_folder())
    assert len(kept) == len(NAMES)
    assert compared(project, running(files), files) == first
    assert serial.load(cache_folder()) == kept
