"""Answers of a switch in files: JSON as it is, text as lines, nothing for a refused command."""

import json
from pathlib import Path
from typing import Any

from netkit.facts import Facts
from netkit.observe.assemble import facts
from netkit.platforms.eos.facts import views
from netkit.platforms.view import Reply, View, ViewSubject

FOLDER = Path(__file__).parent / "cases"
CASES = tuple(sorted(path.stem for path in FOLDER.glob("*.json") if not path.name.endswith(".facts.json")))
UNSUPPORTED = "Unavailable command (not supported on this hardware platform)"


def read(case: str) -> tuple[tuple[View, ...], dict[str, str]]:
    """The views of a case, and its answers as text."""
    found = json.loads((FOLDER / f"{case}.json").read_text(encoding="utf-8"))
    parsed = found["subject"]
    ports, lossless = tuple(parsed["ports"]), tuple(parsed["lossless"])
    subject = ViewSubject(parsed["device"], ports=ports, lossless=lossless, has_lags=True, has_pair=True)
    return views(subject), {command: _text(answer) for command, answer in found["answers"].items()}


def _text(answer: Any) -> str:
    if isinstance(answer, list):
        return "".join(f"{line}\n" for line in answer)
    return "" if answer is None else json.dumps(answer)


def seen(case: str) -> Facts:
    found, answers = read(case)
    return facts(found, {one: Reply(text, "" if text else UNSUPPORTED, 1.0) for one, text in answers.items()})
