"""docs/python.md, block by block, on a lab."""

from pathlib import Path

import pytest

from tests import documents
from tests.command import ROOT
from tests.lab.running import lab_home, needs_lab

pytestmark = needs_lab


@pytest.mark.whole
def test_the_page_about_python_is_correct(tmp_path: Path) -> None:
    with lab_home() as home:
        documents.run(
            ROOT / "docs" / "python.md",
            tmp_path,
            timeout_s=900,
            NETKIT_LAB_DIR=str(home),
            NETKIT_STATE_DIR=str(tmp_path / "state"),
        )
