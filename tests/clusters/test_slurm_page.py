"""The page about Slurm: its commands that need no running cluster work."""

from pathlib import Path

from tests import documents
from tests.command import ROOT


def test_the_page_is_correct(tmp_path: Path) -> None:
    documents.run(ROOT / "docs" / "slurm.md", tmp_path, is_forked=True)
