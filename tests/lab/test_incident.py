"""Management access of a device that faults close and open again."""

import threading
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from netkit.lab.faults import Faults, InjectedFault
from netkit.lab.faults.incident import Incidents, ManagedNode
from netkit.lab.personalities.nvue import Nvue
from netkit.lab.personalities.sonic import Sonic
from netkit.lab.personality import Personality
from netkit.platforms.nvue.shell import ShellTransport
from netkit.platforms.sonic.reader import SonicShell
from netkit.platforms.ssh import SshShell
from tests.lab.running import until

AWAY_S = 0.2
Answered = tuple[type[SshShell], type[Personality]]


class Door:
    """The sshd of a node: how many are running, and whether two were ever started at once."""

    def __init__(self, folder: Path) -> None:
        self.name, self.changes = "leaf01", 0
        self.listening, self.is_doubled = 1, False
        self.holder = SimpleNamespace(root=folder)
        self._starting = threading.Lock()

    def end(self, _name: str) -> None:
        self.listening = 0

    def processes(self) -> list[int]:
        return []

    def start(self, _node: object = None) -> None:
        """Start one, which takes a moment."""
        self.is_doubled |= not self._starting.acquire(blocking=False)
        time.sleep(AWAY_S / 2)
        self.listening = 1  # the previous one is killed
        self._starting.release()


def cut_off(folder: Path) -> tuple[Incidents, Any]:
    """A device that goes offline for a while at every change."""
    door, incidents = (
        Door(folder),
        Incidents(Faults([InjectedFault("drops-after-commit", "leaf01", options={"seconds": AWAY_S})])),
    )
    personality: Any = SimpleNamespace(refreshes=False)
    (folder / "run/netkit").mkdir(parents=True)
    node: Any = door
    incidents.add(ManagedNode(node, personality, door.start, lambda _node: None))
    return incidents, node


def test_a_device_that_is_cut_off_twice_returns_once(tmp_path: Path) -> None:
    incidents, door = cut_off(tmp_path)
    for _ in range(3):
        door.changes += 1
        assert incidents.cut(door, door.changes - 1)
        assert door.listening == 0
        time.sleep(AWAY_S / 4)
    until(lambda: door.listening > 0, "it comes back", 10)
    time.sleep(4 * AWAY_S)
    assert (door.listening, door.is_doubled) == (1, False)


def test_a_device_that_did_not_change_is_not_cut_off(tmp_path: Path) -> None:
    incidents, door = cut_off(tmp_path)
    assert not incidents.cut(door, door.changes)
    assert door.listening == 1


@pytest.mark.parametrize("answered", [(ShellTransport, Nvue), (SonicShell, Sonic)])
def test_what_netkit_asks_during_a_change_does_not_wait_for_it(answered: Answered) -> None:
    shell, personality = answered
    program, *arguments = shell.question.split()
    question: Any = SimpleNamespace(program=program, arguments=tuple(arguments))
    change: Any = SimpleNamespace(program=program, arguments=("config", "apply"))
    assert (personality.locks(question), personality.locks(change)) == (False, True)
