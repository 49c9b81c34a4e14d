"""The tutorial, command by command."""

from pathlib import Path

from tests import documents
from tests.command import ROOT
from tests.lab.running import lab_home, needs_lab

pytestmark = needs_lab


def test_the_tutorial_finds_the_broken_optic(tmp_path: Path) -> None:
    with lab_home() as home:
        documents.run(
            ROOT / "docs" / "tutorial.md",
            tmp_path,
            timeout_s=900,
            NETKIT_LAB_DIR=str(home),
            NETKIT_STATE_DIR=str(tmp_path / "state"),
        )
