"""`netkit notify`: the receivers, their queued messages, and whether they can be reached."""

import secrets
import sys
import time
from collections.abc import Iterator
from pathlib import Path

from netkit.cli.fabric import open_project
from netkit.errors import Problem, UsageError
from netkit.notify.delivery import Sender, complaint, sample
from netkit.project.notifying import Notifying
from netkit.project.past import place_of, source_of
from netkit.report.plan_view import counted, shown
from netkit.report.table import columns
from netkit.store.outbox import WaitingMessages
from netkit.store.store import open_store

ACTIONS = ("show", "test")
HEAD = ("RECEIVER", "KIND", "FROM", "CHECKS", "DEVICES", "WAITING")


def run(folder: Path, action: str, *, lab: str, store: str, site: str) -> int:
    """List the receivers, or send each a sample; return 1 if one fails."""
    if action not in ACTIONS:
        raise UsageError(Problem(f"unknown action {action!r}", f"use one of {', '.join(ACTIONS)}"))
    project = open_project(folder, lab, site=site)
    notifying = Notifying.of(project)
    if action == "test":
        failures = [_fails(sender) for sender in notifying.senders]
        return int(any(failures))
    waiting: dict[str, WaitingMessages] = {}
    if where := place_of(store):
        with open_store(where, is_new_allowed=False) as opened:
            waiting = {one.receiver: one for one in opened.outbox_of(source_of(project)).waiting()}
    sys.stdout.write(columns(_rows(notifying, waiting), HEAD))
    return 0


def _fails(sender: Sender) -> bool:
    """Send a sample, and report the result; return whether it failed."""
    name = sender.receiver.name
    try:
        sender.send(f"test-{secrets.token_hex(6)}", (sample(sender, time.time()),))
    except Exception as error:  # continue with the other receivers
        sys.stdout.write(shown(f"{name}: {complaint(error)}") + "\n")
        return True
    sys.stdout.write(f"{name}: received the sample\n")
    return False


def _rows(notifying: Notifying, waiting: dict[str, WaitingMessages]) -> Iterator[tuple[object, ...]]:
    for sender in notifying.senders:
        one = sender.receiver
        queued = waiting.get(one.name)
        left = f"{counted(queued.rounds, 'round')}, tried {queued.attempts} times" if queued else "-"
        yield one.name, one.kind, one.minimum, " ".join(one.checks), " ".join(one.devices), left
