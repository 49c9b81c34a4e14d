"""What is remembered of each state between runs, as the store keeps it."""

import json
from dataclasses import dataclass

from pydantic import FiniteFloat

from netkit.judge import Verdict
from netkit.notify.damping import NotifiedState
from netkit.store.record import DamagedError, sound

NOTHING = NotifiedState()
Kept = tuple[tuple[Verdict, Verdict, Verdict, tuple[FiniteFloat, ...], bool], FiniteFloat, str, str, str, str]

WITHOUT_REMEDY = 5
"""What was remembered before remedies were; the next run that finds the state adds its own."""


@dataclass(frozen=True, slots=True)
class NotificationState:
    """How a state stands with those who are told of it."""

    told: NotifiedState = NOTHING
    since_s: float = 0.0
    """Since when it is as it was told."""
    text: str = ""
    cause: str = ""
    cause_text: str = ""
    remedy: str = ""

    @property
    def is_forgettable(self) -> bool:
        """Whether nothing would be lost without it."""
        told = self.told
        return not (told.is_flapping or told.changed_s) and told.verdict is told.now is Verdict.PASS


def kept(standing: NotificationState) -> str:
    """Return what is remembered as text; empty when it need not be."""
    if standing.is_forgettable:
        return ""
    told = standing.told
    damped = (told.verdict, told.now, told.worst, told.changed_s, told.is_flapping)
    return json.dumps([damped, standing.since_s, standing.text, standing.cause, standing.cause_text, standing.remedy])


def standing_of(text: str) -> NotificationState:
    """Return what is remembered again."""
    what = "row of what receivers were told of a state"
    try:
        plain = json.loads(text)
    except (ValueError, RecursionError):
        raise DamagedError(f"the {what} is damaged") from None
    if isinstance(plain, list) and len(plain) == WITHOUT_REMEDY:
        plain = [*plain, ""]
    told, since_s, *texts = sound(plain, Kept, what)
    return NotificationState(NotifiedState(*told), since_s, *texts)
