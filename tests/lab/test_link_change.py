"""Link changes by zebra, whose timestamps are local time, and while zebra fails."""

import json
import os
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from netkit.lab.routing import NEVER, SOCKET, LinkChange, link_changes

STARTED_S = 1_795_000_000.0


@dataclass
class Zebra:
    """A node on which only zebra runs."""

    folder: Path
    answer: str | OSError
    kernel_names: Mapping[str, str] = field(default_factory=lambda: {"Ethernet1/1": "et1_1", "Ethernet2/1": "et2_1"})

    def file(self, path: str) -> Path:
        return self.folder / path.lstrip("/")

    def vty(self, command: str, daemon: str = "bgpd") -> str:
        assert (command, daemon) == ("show interface json", "zebra")
        if isinstance(self.answer, OSError):
            raise self.answer
        return self.answer


@pytest.mark.parametrize("zone", ["UTC", "Asia/Tokyo", "America/New_York"])
def test_timestamps_are_converted_from_any_zone(zone: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TZ", zone)
    time.tzset()
    try:
        at_s = 1_795_423_202.0
        written = time.strftime("%Y/%m/%d %H:%M:%S", time.localtime(at_s))
        shown = {"et1_1": {"lastLinkDown": f"{written}.89", "lastLinkUp": f"{written}.91"}, "et2_1": {}, "lo": {}}
        found = link_changes(started(tmp_path, json.dumps(shown)))
    finally:
        monkeypatch.undo()
        time.tzset()
    assert found == {"Ethernet1/1": LinkChange(at_s + 0.89, at_s + 0.91), "Ethernet2/1": NEVER}


@pytest.mark.parametrize("answer", [ConnectionRefusedError("zebra does not run"), "zebra is not running", "", "{}"])
def test_nothing_is_known_while_zebra_does_not_answer(answer: str | OSError, tmp_path: Path) -> None:
    assert link_changes(started(tmp_path, answer)) == {}


def test_a_link_that_was_up_before_zebra_has_the_time_of_its_start(tmp_path: Path) -> None:
    shown = {"et1_1": {"operationalStatus": "up"}, "et2_1": {"operationalStatus": "down"}}
    found = link_changes(started(tmp_path, json.dumps(shown)))
    assert found == {"Ethernet1/1": LinkChange(None, STARTED_S), "Ethernet2/1": NEVER}


def started(folder: Path, answer: str | OSError) -> Zebra:
    """A node whose zebra has started."""
    zebra = Zebra(folder, answer)
    socket = zebra.file(SOCKET)
    socket.parent.mkdir(parents=True)
    socket.touch()
    os.utime(socket, (STARTED_S, STARTED_S))
    return zebra
