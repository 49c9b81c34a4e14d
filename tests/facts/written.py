"""Facts in files: the result of a view on texts, and the expected facts beside the answers."""

import json
import os
from pathlib import Path

from pydantic import TypeAdapter

from netkit.facts import Absent, Facts
from netkit.facts.device import KINDS, NOT_ASKED
from netkit.platforms.view import View
from tests.conftest import UPDATE

ADAPTER = TypeAdapter(Facts)


def parsed(view: View, *texts: str) -> Facts:
    """The result of a view on texts: only kinds it yields, each one present or absent with a reason."""
    found = view.parse(*texts)
    assert {kind for kind in KINDS if getattr(found, kind) is not NOT_ASKED} == view.yields
    assert all(fact.reason for kind in KINDS if isinstance(fact := getattr(found, kind), Absent))
    ADAPTER.dump_json(found)
    return found


def check_written(file: Path, facts: Facts) -> None:
    """Compare facts with a file; with NETKIT_UPDATE_GOLDEN=1 write it first."""
    found = json.loads(ADAPTER.dump_json(facts, exclude_defaults=True))
    if os.environ.get(UPDATE):
        file.write_text(json.dumps(found, indent=1, sort_keys=True) + "\n", encoding="utf-8")
    assert found == json.loads(file.read_text(encoding="utf-8"))
