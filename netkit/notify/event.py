"""A state that changed, began to flap, or settled."""

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
    """What became of a state."""

    id: str
    key: Key
    kind: Kind
    before: Verdict
    now: Verdict
    since_s: float
    at_s: float
    """The run that saw it."""
    text: str = ""
    """What is wrong; of what is healthy again, what was wrong."""
    remedy: str = ""
    cause: str = ""
    """The state that this one is a symptom of; empty for a cause."""
    cause_text: str = ""
    """What is wrong there; empty where the same is wrong at all places of the cause."""
    silence: str = ""
    """By whom, why and until when it is silenced, if that is why it is reported."""
    change: Change | None = None
    """What became of the cause: the same for all events of a run that share it."""

    @property
    def level(self) -> Verdict:
        """Return the worse of before and now: a receiver notified of the one must also see the other."""
        return max(self.before, self.now)

    @property
    def is_well(self) -> bool:
        """Whether it is healthy again, and not only silenced."""
        return self.now is Verdict.PASS and self.kind != "flapping" and not self.silence


def event_id(fabric: str, lab: str, key: Key, kind: Kind, at_s: float) -> str:
    """Return the unique id of an event, the same however often it is sent."""
    told = "\n".join((fabric, lab, *key, kind, f"{at_s:.3f}"))
    return hashlib.sha256(told.encode("utf-8", "replace")).hexdigest()[:24]


def plain(event: StateEvent) -> dict[str, Any]:
    """Return an event as it is stored and sent."""
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


def event_of(told: Mapping[str, Any]) -> StateEvent:
    """Return an event again."""
    return StateEvent(
        told["id"],
        Key(told["check"], told["device"], told["place"]),
        told["kind"],
        Verdict[told["before"].upper()],
        Verdict[told["now"].upper()],
        told["since_s"],
        told["at_s"],
        told["text"],
        told["remedy"],
        told["cause"],
        told["cause_text"],
        told.get("silence", ""),  # an earlier netkit may have left it in the outbox
        told.get("change"),
    )
