"""`netkit notify`: the receivers, what is queued for them, and whether they can be reached."""

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
from netkit.store import Source
from netkit.store.outbox import WaitingMessages
from netkit.store.store import open_store

ACTIONS = ("show", "test")
HEAD = ("RECEIVER", "KIND", "FROM", "CHECKS", "DEVICES", "WAITING")


def run(folder: Path, action: str, *, lab: str, store: str) -> int:
    """List the receivers, or send each a sample; return 1 when one fails."""
    if action not in ACTIONS:
        raise UsageError(Problem(f"no action {action!r}", f"use one of {', '.join(ACTIONS)}"))
    project = open_project(folder, lab)
    notifying = Notifying.of(project)
    if action == "test":
        failures = [_tried(sender) for sender in notifying.senders]
        return int(any(failures))
    waiting = _waiting(place_of(store), source_of(project))
    sys.stdout.write(columns(_rows(notifying, waiting), HEAD))
    return 0


def _tried(sender: Sender) -> bool:
    """Send a sample, and say how that went; return whether it failed."""
    name = sender.receiver.name
    try:
        sender.send(f"test-{secrets.token_hex(6)}", (sample(sender, time.time()),))
    except Exception as error:  # the others are to be tried all the same
        sys.stdout.write(shown(f"{name}: {complaint(error)}") + "\n")
        return True
    sys.stdout.write(f"{name}: has the sample\n")
    return False


def _waiting(where: str, source: Source) -> dict[str, WaitingMessages]:
    if not where:
        return {}
    with open_store(where, is_new_allowed=False) as store:
        return {one.receiver: one for one in store.outbox_of(source).waiting()}


def _rows(notifying: Notifying, waiting: dict[str, WaitingMessages]) -> Iterator[tuple[object, ...]]:
    for sender in notifying.senders:
        one = sender.receiver
        told = waiting.get(one.name)
        left = f"news of {counted(told.rounds, 'round')}, tried {told.attempts} times" if told else "-"
        yield one.name, one.kind, one.minimum, " ".join(one.checks), " ".join(one.devices), left
