"""NVUE in the lab, as somebody types at it: each file holds commands and all they print."""

import os
import re
from pathlib import Path

import pytest

from tests.conftest import UPDATE
from tests.lab.personalities.nvue.bench import Desk, desk

FOLDER = Path(__file__).parent / "nvue" / "sessions"
SESSIONS = sorted(FOLDER.glob("*.session"))
PROMPT = re.compile(r"(?P<user>\w+)\$ (?P<line>.*?)(?: <<< (?P<reply>\w+))?")


def typed(terminal: Desk, text: str) -> str:
    """Return a session as it goes: its commands, and what the switch prints now."""
    head, *lines = text.splitlines()
    shown = [head]
    for line in lines:
        found = PROMPT.fullmatch(line)
        if found:
            code, printed = terminal.type(found["line"], user=found["user"], reply=found["reply"] or "")
            shown += [line, *steady(printed).splitlines(), *([f"(exit {code})"] if code else [])]
    return "\n".join(shown) + "\n"


def steady(printed: str) -> str:
    """Return what was printed without what the clock says."""
    dated = re.sub(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d", "YYYY-MM-DD HH:MM:SS", printed)
    return re.sub(r"in \d+ s\b", "in N s", dated)


@pytest.mark.parametrize("file", SESSIONS, ids=lambda file: file.stem)
def test_session_goes_as_written(file: Path, tmp_path: Path) -> None:
    text = file.read_text(encoding="utf-8")
    terminal = desk(tmp_path, text.splitlines()[0].removeprefix("release "))
    terminal.files = FOLDER
    went = typed(terminal, text)
    terminal.switch.stop()
    if os.environ.get(UPDATE):
        file.write_text(went, encoding="utf-8")
    assert went == text
