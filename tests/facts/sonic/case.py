"""Answers of SONiC switches as files: one for each command, and the expected facts."""

import json
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter

from netkit.facts import Facts
from netkit.platforms.sonic.facts import CONFIG, COUNTERS, DISK, MADE, PORTS, ROUTES, SESSIONS, STATE, port
from netkit.platforms.view import View, ViewSubject

FOLDER = Path(__file__).parent / "cases"
CASES = sorted(folder.name for folder in FOLDER.iterdir())
FILES = {
    COUNTERS: "counters.json",
    PORTS: "ports.json",
    MADE: "made.json",
    STATE: "state.json",
    CONFIG: "config.json",
    SESSIONS: "sessions.txt",
    ROUTES: "routes.json",
    port.IDENTITY: "identity.txt",
    DISK.commands[0]: "disk.txt",
}
SUBJECT = ViewSubject("leaf01", lossless=(3,))
ADAPTER = TypeAdapter(Facts)


def texts(case: str, view: View) -> list[str]:
    """The output of the commands of a view."""
    return [(FOLDER / case / FILES[command]).read_text(encoding="utf-8") for command in view.commands]


def parsed(facts: Facts) -> dict[str, Any]:
    """Facts as plain values."""
    found: dict[str, Any] = json.loads(ADAPTER.dump_json(facts, exclude_defaults=True))
    return found
