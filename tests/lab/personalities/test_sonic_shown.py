"""SONiC in the lab: recorded commands and their output."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from netkit.lab.personalities.sonic.commands import columns
from tests.conftest import UPDATE
from tests.lab.personalities.sonic.bench import Bench, fabric

FOLDER = Path(__file__).parent / "sonic" / "shown"
CASES = sorted(FOLDER.glob("*.txt"))
PROMPT = "$ "


def typed(bench: Bench, text: str) -> Iterator[str]:
    """Yield each command of a case with its output, and its exit code if it is not 0."""
    for line in text.splitlines():
        if line.startswith(PROMPT):
            code, out, err = bench.type(line.removeprefix(PROMPT))
            yield f"{line}\n{out}{err}{f'exit code {code}' if code else ''}".rstrip("\n")


def test_there_are_cases() -> None:
    assert len(CASES) >= 5


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.stem)
def test_answers_match_the_recording(tmp_path: Path, case: Path) -> None:
    wanted = case.read_text(encoding="utf-8")
    shown = "\n".join(typed(Bench(tmp_path, fabric(case.stem.partition("-")[0])), wanted)) + "\n"
    if os.environ.get(UPDATE):
        case.write_text(shown, encoding="utf-8")
    assert shown == (shown if os.environ.get(UPDATE) else wanted)


def test_columns_are_as_wide_as_their_widest_cell_and_two_more_than_their_title() -> None:
    assert columns(("A", "Name"), [("1,000", "x"), ("7", "longer than")], right=False) == (
        "    A  Name\n-----  -----------\n1,000  x\n    7  longer than\n"
    )
    assert columns(("A",), []) == "  A\n---\n"
