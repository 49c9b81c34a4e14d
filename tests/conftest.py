"""Shared fixtures: golden files."""

import difflib
import os
from collections.abc import Callable
from pathlib import Path

import pytest

GOLDEN = Path(__file__).parent / "golden"
UPDATE = "NETKIT_UPDATE_GOLDEN"

Golden = Callable[[str, str], None]


@pytest.fixture
def golden() -> Golden:
    """Compare text with a golden file; with NETKIT_UPDATE_GOLDEN=1 write it instead."""

    def compare(name: str, text: str) -> None:
        file = GOLDEN / name
        if os.environ.get(UPDATE):
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(text, encoding="utf-8")
            return
        if not file.exists():
            pytest.fail(f"no golden file {name}; run with {UPDATE}=1 and read what it wrote")
        wanted = file.read_text(encoding="utf-8")
        if text != wanted:
            lines = difflib.unified_diff(wanted.splitlines(), text.splitlines(), "golden", "rendered", lineterm="")
            pytest.fail(f"{name} differs:\n" + "\n".join(lines))

    return compare
