"""Pages that show what to do: every file and command in them works."""

from pathlib import Path

import pytest

from tests import documents
from tests.command import ROOT


@pytest.mark.parametrize(
    "page", ["write-a-check", "write-a-template", "write-a-platform", "files", "kubernetes", "tables"]
)
def test_a_guide_is_correct(page: str, tmp_path: Path) -> None:
    documents.run(ROOT / "docs" / f"{page}.md", tmp_path, is_forked=True)
