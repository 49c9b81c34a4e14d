"""Inputs that netkit refuses, and the exact text of the errors.

A case is a file in tests/errors: its topic, the lines that change in base.yaml (`-` is removed, `+` is added in
its place), files beside it, and the error. NETKIT_UPDATE_GOLDEN=1 rewrites the last part: read it then.
"""

import os
import re
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from netkit.errors import NetkitError
from netkit.project.project import Project
from tests.conftest import UPDATE

FOLDER = Path(__file__).parent / "errors"
BASE = (FOLDER / "base.yaml").read_text(encoding="utf-8")
SAID = "=== said\n"
JARGON = re.compile(
    r"Input should|valid (string|integer|number|dictionary)|less than or equal|type=|NoneType|Traceback|<class|pydantic"
)


@dataclass
class Case:
    about: str
    files: dict[str, str] = field(default_factory=dict)
    said: str = ""


def read(path: Path) -> Case:
    text, _, said = path.read_text(encoding="utf-8").partition(SAID)
    about, *sections = re.split(r"^=== (.*)\n", text, flags=re.MULTILINE)
    case = Case(about.strip(), {"fabric.yaml": BASE}, said)
    for name, body in zip(sections[::2], sections[1::2], strict=True):
        if name == "change":
            case.files["fabric.yaml"] = changed(body)
        else:
            case.files[name.removeprefix("file ")] = body
    return case


def changed(body: str) -> str:
    """The base with the changes of a case; every removed line must occur exactly once."""
    lines, at = BASE.splitlines(), len(BASE.splitlines())
    for change in body.splitlines():
        mark, line = change[:1], change[1:]
        if mark == "-":
            assert lines.count(line) == 1 or (at < len(lines) and lines[at] == line), (
                f"{line!r} is not one line of base.yaml"
            )
            at = at if at < len(lines) and lines[at] == line else lines.index(line)
            del lines[at]
        elif mark == "+":
            lines.insert(at, line)
            at += 1
        else:
            at = len(lines)
    return "\n".join(lines) + "\n"


def cases() -> list[Path]:
    found = sorted(FOLDER.glob("*.txt"))
    assert len(found) > 80
    return found


def said(folder: Path) -> str:
    with pytest.raises(NetkitError) as refusal:
        Project.open(folder)
    assert refusal.value.exit_code == 3
    return "".join(f"{problem}\n" for problem in refusal.value.problems).replace(f"{folder}/", "")


@pytest.mark.parametrize("path", cases(), ids=lambda path: path.stem)
def test_refusal_reads_as_expected(path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    case = read(path)
    assert case.about
    assert "inventory" not in str(tmp_path)
    monkeypatch.chdir(tmp_path)
    for name, text in case.files.items():
        file = tmp_path / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")
    text = said(tmp_path)
    if os.environ.get(UPDATE):
        head = path.read_text(encoding="utf-8").partition(SAID)[0]
        path.write_text(head + SAID + text, encoding="utf-8")
        return
    assert text == case.said


@pytest.mark.parametrize("path", cases(), ids=lambda path: path.stem)
def test_every_line_has_a_place_and_a_remedy_in_plain_words(path: Path) -> None:
    lines = read(path).said.splitlines()
    assert lines
    for line in lines:
        place, _, rest = line.partition(": ")
        assert re.fullmatch(r"[\w./-]+\.(yaml|csv)(:\d+)?", place), line
        assert "; " in rest, f"no remedy: {line}"
        assert not JARGON.search(line), line
        assert len(line) < 400, line
    assert [line for line in lines if line.startswith("fabric.yaml")] == sorted(
        (line for line in lines if line.startswith("fabric.yaml")), key=lambda line: int(line.split(":")[1])
    )


def test_the_base_itself_is_valid(tmp_path: Path) -> None:
    (tmp_path / "fabric.yaml").write_text(BASE, encoding="utf-8")
    assert Project.open(tmp_path).fabric.name == "small"
