"""An unexpected exception is reported in a few plain lines, and its traceback kept in a file."""

import errno
import os
import re
import subprocess
import tempfile
import threading
from collections.abc import Callable
from pathlib import Path
from typing import NoReturn

import pytest

from netkit.cli import intent
from tests.command import NETKIT, PATIENCE_S, ROOT, Done, environment, run
from tests.conftest import Golden

Breaking = Callable[[], None]
FABRIC = Path("inventory") / "reference"


class _UnspeakableError(Exception):
    def __str__(self) -> str:
        raise ValueError("not even this")


def _lookup() -> NoReturn:
    raise KeyError("leaf01")


def _in_lines() -> NoReturn:
    raise ValueError("one\n\ttwo \x1b[2J " + "long " * 100)


def _unspeakable() -> NoReturn:
    raise _UnspeakableError


def _network() -> NoReturn:
    raise ConnectionRefusedError(errno.ECONNREFUSED, os.strerror(errno.ECONNREFUSED))


def _pipe() -> NoReturn:
    raise BrokenPipeError(errno.EPIPE, os.strerror(errno.EPIPE))


def _in_a_thread() -> None:
    for _ in range(2):
        thread = threading.Thread(target=_lookup)
        thread.start()
        thread.join()


def _validate(breaking: Breaking, place: Path, spoil: Breaking = lambda: None) -> Done:
    """Run a verb that raises, with its own folder for temporary files."""

    def before() -> None:
        tempfile.tempdir = str(place)
        intent.validate = lambda *_, **__: breaking()
        spoil()

    return run("validate", "--fabric", FABRIC, before=before)


@pytest.mark.parametrize("breaking", [_lookup, _in_lines, _unspeakable, _network, _pipe])
def test_a_defect_is_reported_in_plain_lines(breaking: Breaking, tmp_path: Path, golden: Golden) -> None:
    done = _validate(breaking, tmp_path)
    (kept,) = tmp_path.iterdir()
    assert (done.returncode, done.stdout) == (70, "")
    reported = re.sub(r"\.py:\d+", ".py:LINE", done.stderr.replace(str(kept), "FILE"))
    golden(f"cli/defect{breaking.__name__.replace('_', '-')}.txt", reported)


def test_only_the_user_can_read_the_traceback(tmp_path: Path) -> None:
    _validate(_lookup, tmp_path)
    (kept,) = tmp_path.iterdir()
    assert kept.stat().st_mode & 0o777 == 0o600
    text = kept.read_text(encoding="utf-8")
    assert text.startswith("netkit 0.1.0, Python 3.")
    assert "Traceback (most recent call last):" in text
    assert text.endswith("KeyError: 'leaf01'\n")


def test_a_defect_is_reported_even_if_the_traceback_cannot_be_kept(tmp_path: Path) -> None:
    done = _validate(_lookup, tmp_path / "nowhere")
    assert done.returncode == 70
    first, second, third = done.stderr.splitlines()
    assert first.startswith("error: a defect of netkit: KeyError: 'leaf01' (netkit/cli/verbs/options.py:")
    assert second == "its traceback could not be saved: no such file or directory"
    assert third == "please report it with the output of netkit diagnose"


def test_a_full_disk_leaves_no_partial_traceback(tmp_path: Path) -> None:
    def fill() -> None:
        os.fdopen = _full

    done = _validate(_lookup, tmp_path, spoil=fill)
    assert (done.returncode, done.stderr.splitlines()[1]) == (
        70,
        "its traceback could not be saved: no space left on device",
    )
    assert list(tmp_path.iterdir()) == []


def _full(*_: object, **__: object) -> NoReturn:
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def test_a_defect_in_a_thread_is_reported_once(tmp_path: Path) -> None:
    done = _validate(_in_a_thread, tmp_path)
    assert (done.returncode, len(list(tmp_path.iterdir()))) == (0, 1)
    assert [line.split()[0] for line in done.stderr.splitlines()] == ["error:", "its", "please"]


def test_closed_streams_are_not_a_defect(tmp_path: Path) -> None:
    words = 'exec "$@" 0<&- 1>&- 2>&-'
    out = tmp_path / "out"
    command = ["sh", "-c", words, "sh", *NETKIT, "render", "--fabric", str(FABRIC), "-o", str(out), "--limit", "leaf01"]
    done = subprocess.run(command, cwd=ROOT, env=environment(TMPDIR=str(tmp_path)), check=False, timeout=PATIENCE_S)
    assert done.returncode == 0
    assert [path.name for path in tmp_path.iterdir()] == ["out"]


@pytest.mark.parametrize(
    ("words", "code"), [(("schema",), 141), (("--help",), 141), (("validate", "--fabric", "nowhere"), 3)]
)
def test_a_closed_pipe_gives_no_verdict(words: tuple[str, ...], code: int, tmp_path: Path) -> None:
    reading, writing = os.pipe()
    os.close(reading)
    done = subprocess.run(
        [*NETKIT, *words], cwd=ROOT, env=environment(TMPDIR=str(tmp_path)), stdout=writing, stderr=writing, check=False
    )
    os.close(writing)
    assert (done.returncode, list(tmp_path.iterdir())) == (code, [])
