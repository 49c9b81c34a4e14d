"""Where output is piped, a line every two seconds reports progress."""

import re
import sys
import time

import pytest

from netkit.terminal import progress


@pytest.mark.parametrize(("setting", "has_lines"), [("", True), ("off", False)])
def test_progress_on_a_pipe_has_phase_and_count(
    setting: str, has_lines: bool, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert not sys.stderr.isatty()
    monkeypatch.setenv("NETKIT_PROGRESS", setting)
    monkeypatch.setattr(progress, "LINE_S", 0.05)
    with progress.counter("looking", 3) as count:
        count()
        time.sleep(0.5)
    said = capsys.readouterr().err.splitlines()
    assert bool(said) == has_lines
    assert all(re.fullmatch(r"looking 1/3, \d+ s", line) for line in said)
