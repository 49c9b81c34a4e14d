"""What a receiver is sent to see whether it can be: nothing that happened."""

from typing import Any

from netkit.judge import Verdict
from netkit.judge.run import FABRIC
from netkit.notify import message
from netkit.notify.alert import alert_of
from netkit.notify.event import StateEvent, event_id
from netkit.notify.sender import Sender
from netkit.store.state import Key

TEXT = "this is a test of notifications: nothing is wrong"
CHECK = "notify.test"
ALERT_S = 120.0
"""So long a sample alert fires."""


def sample(sender: Sender, at_s: float) -> dict[str, Any]:
    """Return what the outbox would hold of a sample."""
    source, key = sender.source, Key(CHECK, FABRIC)
    if sender.outdated is not None:
        alert = alert_of(key, Verdict.WARN, source, at_s, {"summary": TEXT})
        return {"at_s": at_s, "alerts": [{**alert, "ended_s": at_s + ALERT_S}]}
    name = event_id(source.fabric, source.lab, key, "changed", at_s)
    event = StateEvent(name, key, "changed", Verdict.PASS, Verdict.WARN, at_s, at_s, TEXT)
    return message.body(at_s, [event], {})
