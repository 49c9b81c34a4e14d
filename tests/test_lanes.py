"""The output of pytest on tests that a lane leaves out, and on tests that pass on their second try.

Also the list of slow files, and how `scripts/test` ends where the tests are interrupted.
"""

import re
import subprocess
import sys
from pathlib import Path

from tests.command import environment

TESTS = """
from pathlib import Path
import pytest

@pytest.mark.whole
@pytest.mark.parametrize("number", [1, 2])
def test_long(number):
    pass

@pytest.mark.in_turn("kind")
@pytest.mark.parametrize("kind", ["a", "b"])
@pytest.mark.parametrize(("number", "again"), [(0, 0), (1, 1)])
def test_in_turn(kind, number, again):
    Path(__file__).with_name(f"{kind}{number}").touch()

def test_that_fails_at_first():
    tried = Path(__file__).with_name("tried")
    was_tried = tried.exists()
    tried.touch()
    assert was_tried

def test_well():
    pass
"""
RUN = {"a0", "a1", "b0", "b1"}
"""The files that the cases of `test_in_turn` make."""


def lines(folder: Path, *options: str) -> list[str]:
    """The output of pytest on these tests, without times."""
    command = [sys.executable, "-m", "pytest", "-p", "tests.conftest", "-o", "markers=whole\nin_turn", *options, "."]
    (folder / "test_one.py").write_text(TESTS, encoding="utf-8")
    done = subprocess.run(command, cwd=folder, env=environment(), capture_output=True, text=True, check=False)
    return re.sub(r" in [\d.]+s", "", done.stdout).splitlines()


def test_a_lane_prints_how_many_tests_it_left_out(tmp_path: Path) -> None:
    (tmp_path / "tried").touch()
    assert "4 tests left out; --whole runs them" in lines(tmp_path)
    assert "4 tests left out; --whole runs them" in lines(tmp_path, "-n", "2")
    printed = lines(tmp_path, "--whole")
    assert printed[-1].strip("= ") == "8 passed"
    assert "left out" not in "".join(printed)


def test_each_case_is_run_in_turn(tmp_path: Path) -> None:
    lines(tmp_path)
    assert {file.name for file in tmp_path.iterdir()} & RUN == {"a0", "b1"}
    lines(tmp_path, "--whole")
    assert {file.name for file in tmp_path.iterdir()} >= RUN


def test_a_test_that_passes_on_its_second_try_is_printed_as_flaky(tmp_path: Path) -> None:
    first = lines(tmp_path, "-n", "1")
    assert first[-1].strip("= ") == "1 failed, 3 passed"
    assert "FLAKY" not in "".join(first)
    printed = lines(tmp_path, "--last-failed", "--last-failed-no-failures", "none", "--second-try")
    assert [line for line in printed if line.startswith("FLAKY")] == ["FLAKY test_one.py::test_that_fails_at_first"]
    assert "1 flaky: failed at first, passed on the second try" in printed
    assert printed[-1].strip("= ").startswith("1 passed")


def test_slow_files_exist_and_are_listed_once() -> None:
    tests = Path(__file__).parent
    listed = [line for line in (tests / "slow.txt").read_text(encoding="utf-8").splitlines() if line[0] != "#"]
    assert listed == sorted(set(listed))
    assert [name for name in listed if not (tests / name).is_file()] == []


PROGRAMS = {
    "scripts/setup": "",
    "bin/ruff": "",
    "bin/shellcheck": "",
    "bin/mypy": "echo $$ > mypy.pid",
    "bin/python": "until [ -s mypy.pid ] && ! kill -0 $(cat mypy.pid) 2>/dev/null; do sleep 0.02; done\nexit 2",
}
"""In place of the real ones: pytest is interrupted once mypy has ended."""


def test_interrupted_tests_leave_nothing_behind_after_mypy_has_ended(tmp_path: Path) -> None:
    own = Path(__file__).parent.parent / "scripts" / "test"
    for name, text in {**PROGRAMS, "scripts/test": own.read_text(encoding="utf-8")}.items():
        program = tmp_path / name.replace("bin/", ".venv/bin/")
        program.parent.mkdir(parents=True, exist_ok=True)
        program.write_text(text if name == "scripts/test" else f"#!/bin/sh\n{text}\n", encoding="utf-8")
        program.chmod(0o755)
    (temporary := tmp_path / "tmp").mkdir()
    command, variables = [str(tmp_path / "scripts" / "test")], {**environment(), "TMPDIR": str(temporary)}
    done = subprocess.run(command, env=variables, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr, [*temporary.iterdir()]) == (2, "", [])
