"""Cases of answers of a switch: a file of answers beside a file of facts.

An answer is JSON as the switch prints it, or text where it prints something else. Missing answers stand for failures.
"""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

from netkit.facts import Facts
from netkit.observe.assemble import facts
from netkit.platforms.nvue.facts import views
from netkit.platforms.view import Reply, ViewSubject

FOLDER = Path(__file__).parent / "cases"
CASES = sorted(file.name.removesuffix(".answers.json") for file in FOLDER.glob("*.answers.json"))


def answers(case: str) -> tuple[ViewSubject, dict[str, str]]:
    """The switch of a case, and command → output."""
    found = json.loads((FOLDER / f"{case}.answers.json").read_text(encoding="utf-8"))
    parsed: dict[str, Any] = found["answers"]
    texts = {command: text if isinstance(text, str) else json.dumps(text, indent=2) for command, text in parsed.items()}
    subject = ViewSubject("leaf01", found["version"], tuple(found["ports"]), lossless=tuple(found["lossless"]))
    subject = replace(subject, has_lags=case.endswith("pair"), has_pair=case.endswith("pair"))
    return subject, texts


def read(case: str) -> Facts:
    subject, texts = answers(case)
    found = views(subject)
    commands = {command for view in found for command in view.commands}
    unknown = set(texts) - commands
    assert not unknown, f"nobody asks {unknown}"
    return facts(found, {command: _reply(texts.get(command)) for command in commands})


def _reply(text: str | None) -> Reply:
    return Reply("", "exit code 1: no such item") if text is None else Reply(text, at_s=1.0)
