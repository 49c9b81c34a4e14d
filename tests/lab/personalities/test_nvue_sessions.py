"""NVUE in the lab: recorded command-line sessions."""

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
    """Replay the commands of a session and return it with the current output."""
    head, *lines = text.splitlines()
    shown = [head]
    for line in lines:
        found = PROMPT.fullmatch(line)
        if found:
            code, printed = terminal.type(found["line"], user=found["user"], reply=found["reply"] or "")
            shown += [line, *steady(printed).splitlines(), *([f"(exit {code})"] if code else [])]
    return "\n".join(shown) + "\n"


def steady(printed: str) -> str:
    """Replace times in the output."""
    dated = re.sub(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d", "YYYY-MM-DD HH:MM:SS", printed)
    return re.sub(r"in \d+ s\b", "in N s", dated)


@pytest.mark.parametrize("file", SESSIONS, ids=lambda file: file.stem)
def test_session_matches_the_recording(file: Path, tmp_path: Path) -> None:
    text = file.read_text(encoding="utf-8")
    terminal = desk(tmp_path, text.splitlines()[0].removeprefix("release "))
    terminal.files = FOLDER
    went = typed(terminal, text)
    terminal.switch.stop()
    if os.environ.get(UPDATE):
        file.write_text(went, encoding="utf-8")
    assert went == text
