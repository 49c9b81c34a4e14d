"""The change of a state that a notification reports."""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from netkit.judge import Verdict
from netkit.notify.notification_state import Kind
from netkit.store.open_cause import Change
from netkit.store.state import Key


@dataclass(frozen=True, slots=True)
class StateEvent:
    """The change of a state."""

    id: str
    key: Key
    kind: Kind
    before: Verdict
    now: Verdict
    since_s: float
    at_s: float
    """The time of the run that found it."""
    text: str = ""
    """What is wrong, or after it has passed, what was wrong."""
    remedy: str = ""
    cause: str = ""
    """The state that this one is a symptom of; empty for a cause."""
    cause_text: str = ""
    """What is wrong there; empty if the same is wrong at all places of the cause."""
    silence: str = ""
    """Who silenced it, why and until when, if that is why it is reported."""
    change: Change | None = None
    """The change of the cause: the same for all events of a run that share it."""

    @property
    def level(self) -> Verdict:
        """The worse of before and now: a receiver notified of one must also see the other."""
        return max(self.before, self.now)

    @property
    def is_well(self) -> bool:
        """Whether it passes again, and is not only silenced."""
        return self.now is Verdict.PASS and self.kind != "flapping" and not self.silence


def event_id(fabric: str, lab: str, key: Key, kind: Kind, at_s: float) -> str:
    """Return the unique id of an event, the same however often it is sent."""
    identity = "\n".join((fabric, lab, *key, kind, f"{at_s:.3f}"))
    return hashlib.sha256(identity.encode("utf-8", "replace")).hexdigest()[:24]


def plain(event: StateEvent) -> dict[str, Any]:
    """Convert an event to the form that is stored and sent."""
    return {
        "id": event.id,
        "check": event.key.check,
        "device": event.key.device,
        "place": event.key.place,
        "kind": event.kind,
        "before": event.before.word,
        "now": event.now.word,
        "since_s": event.since_s,
        "at_s": event.at_s,
        "text": event.text,
        "remedy": event.remedy,
        "cause": event.cause,
        "cause_text": event.cause_text,
        "silence": event.silence,
        "change": event.change,
    }


def event_of(fields: Mapping[str, Any]) -> StateEvent:
    """Convert an event from its stored form."""
    return StateEvent(
        fields["id"],
        Key(fields["check"], fields["device"], fields["place"]),
        fields["kind"],
        Verdict[fields["before"].upper()],
        Verdict[fields["now"].upper()],
        fields["since_s"],
        fields["at_s"],
        fields["text"],
        fields["remedy"],
        fields["cause"],
        fields["cause_text"],
        fields.get("silence", ""),  # an earlier netkit may have left it in the outbox
        fields.get("change"),
    )
