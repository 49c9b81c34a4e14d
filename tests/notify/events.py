from collections.abc import Sequence

from netkit.judge import Verdict
from netkit.notify.event import Kind, StateEvent
from netkit.notify.message import Message
from netkit.store.state import Key

BEGAN_S = 1_763_769_600.0


def event(
    device: str = "leaf01",
    place: str = "swp1",
    *,
    check: str = "links.up",
    before: Verdict = Verdict.PASS,
    now: Verdict = Verdict.FAIL,
    kind: Kind = "changed",
    text: str = "down",
    remedy: str = "see the cable",
    cause: str = "",
) -> StateEvent:
    key = Key(check, device, place)
    return StateEvent(
        f"id of {key.id}", key, kind, before, now, BEGAN_S, BEGAN_S, text, remedy, cause, cause and "broken"
    )


def message(events: Sequence[StateEvent], fabric: str = "small", lab: str = "") -> Message:
    return Message("m1", fabric, lab, 1, BEGAN_S, {"fail": len(events)}, tuple(events))
