"""A fabric with receivers, checked on snapshots that a test creates."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml

from netkit.facts import serial
from tests.cli.checked import VALUES
from tests.cli.test_check_store import BEGAN_S, seen
from tests.command import Done, run
from tests.lab.running import write_fabric

CALM = {"changes": 1000}
"""States do not flap unless a test asks for it."""


@dataclass
class Site:
    """The folder of the fabric, and how often it was checked."""

    fabric: Path
    rounds: int = 0
    errors: int = 5

    def write(self, *receivers: Mapping[str, Any], **settings: Any) -> None:
        reported = {"receivers": [dict(one) for one in receivers], "flapping": CALM, **settings}
        (self.fabric / "notify.yaml").write_text(yaml.safe_dump(reported), encoding="utf-8")

    def check(
        self, *options: str | Path, is_bad: bool, every_s: float = 600, before: Callable[[], None] | None = None
    ) -> Done:
        """Check one more round, in which packets arrived damaged or not."""
        self.rounds += 1
        self.errors += 900_000 if is_bad else 0
        file = self.fabric.parent / "snapshot.json"
        file.write_bytes(serial.dump(seen(BEGAN_S + self.rounds * every_s, self.errors)))
        how = ("--from", file, "--limit", "leaf01", "--store", "--since=last", "--changes", "--notify")
        return run("check", "load.errors", "--fabric", self.fabric, *how, *options, timeout_s=120, before=before)


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Site:
    """A fabric after its first round, which has nothing to compare with."""
    monkeypatch.setenv("NETKIT_STATE_DIR", str(tmp_path / "state"))
    monkeypatch.delenv("NETKIT_STORE", raising=False)
    return Site(write_fabric(tmp_path / "fabric", VALUES))


def webhook(url: str, name: str = "noc", **more: Any) -> dict[str, Any]:
    return {"name": name, "kind": "webhook", "url": url, **more}


def reported(done: Done) -> tuple[int, str]:
    """The exit code and warnings of a check."""
    return done.returncode, done.stderr
