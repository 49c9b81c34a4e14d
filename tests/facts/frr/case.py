"""Output of a Linux switch in files named after the commands, JSON as it is, text as lines."""

import json
from pathlib import Path
from typing import Any

from netkit.facts import Facts
from netkit.observe.assemble import facts
from netkit.platforms.frr import facts as views
from netkit.platforms.view import Reply, View, ViewSubject

FOLDER = Path(__file__).parent / "cases"
NOT_FOUND = "exit code 127: not found"
CASES = tuple(sorted(path.stem for path in FOLDER.glob("*.json") if not path.name.endswith(".facts.json")))


def read(case: str) -> tuple[tuple[View, ...], dict[str, str]]:
    """The views of a case, and the output of each command."""
    found = json.loads((FOLDER / f"{case}.json").read_text(encoding="utf-8"))
    parsed = found["subject"]
    subject = ViewSubject(parsed["device"], ports=tuple(parsed["ports"]), lossless=tuple(parsed["lossless"]))
    return views.views(subject), {getattr(views, name): _text(shown) for name, shown in found["answers"].items()}


def _text(shown: Any) -> str:
    if isinstance(shown, list) and all(isinstance(line, str) for line in shown):
        return "".join(f"{line}\n" for line in shown)
    return "" if shown is None else json.dumps(shown)


def seen(case: str) -> Facts:
    found, printed = read(case)
    return facts(
        found, {one: Reply(text, "" if text else "exit code 127: not found", 1.0) for one, text in printed.items()}
    )
