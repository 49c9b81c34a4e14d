"""What a check says about one thing it looked at."""

from collections.abc import Iterable
from enum import IntEnum
from typing import NamedTuple


class Verdict(IntEnum):
    """From good to bad; of several the worst holds, and nothing starts as a pass."""

    PASS = 0
    SKIPPED = 1
    """It could not be judged: not reported by the device, not reached, or too little data."""
    WARN = 2
    FAIL = 3
    ERROR = 4
    """The check itself is broken; that says nothing about the device."""

    @property
    def word(self) -> str:
        """Return the verdict as people and files write it."""
        return self.name.lower()


class Silenced(NamedTuple):
    """By whom, why and until when a finding is silenced: it is shown all the same, and not counted."""

    id: str
    kind: str
    """`silence`, or `acknowledgement`, which ends once the finding is gone."""
    by: str
    why: str
    until_s: float | None = None
    ticket: str = ""


class Finding(NamedTuple):
    """One verdict. Those that are not a pass say what is wrong, where, and what to do."""

    verdict: Verdict
    place: str = ""
    """A port, `port/priority`, a NIC, a session; empty for the device as a whole."""
    text: str = ""
    remedy: str = ""
    evidence: tuple[tuple[str, str], ...] = ()
    """What the verdict rests on, by name; window and counter states among it."""
    cause: str = ""
    """What is wrong, as a name that findings of one cause share; by default the cable at the place."""
    device: str = ""
    check: str = ""
    explains: tuple[str, ...] = ()
    """Other causes that are symptoms of this one."""
    touches: tuple[str, ...] = ()
    """Cables and devices elsewhere that it may come from; empty once that is settled."""
    is_symptom: bool = False
    """Whether it follows from another finding of the same cause."""
    silenced: Silenced | None = None


PASSED = Finding(Verdict.PASS)


def passed(place: str = "", device: str = "") -> Finding:
    """Return a pass that says where; `PASSED` costs less where that does not matter."""
    return Finding(Verdict.PASS, place, device=device)


def skip(place: str, text: str, *, device: str = "") -> Finding:
    """Return that something could not be judged, and why."""
    return Finding(Verdict.SKIPPED, place, text, device=device)


def warn(
    place: str,
    text: str,
    remedy: str = "",
    *,
    device: str = "",
    cause: str = "",
    explains: Iterable[str] = (),
    touches: Iterable[str] = (),
    **evidence: object,
) -> Finding:
    """Return that something is not as it should be, but nothing is lost yet."""
    shown, names = _shown(evidence), (tuple(explains), tuple(touches))
    return Finding(Verdict.WARN, place, text, remedy, shown, cause, device, "", *names)


def fail(
    place: str,
    text: str,
    remedy: str = "",
    *,
    device: str = "",
    cause: str = "",
    explains: Iterable[str] = (),
    touches: Iterable[str] = (),
    **evidence: object,
) -> Finding:
    """Return that something is wrong."""
    shown, names = _shown(evidence), (tuple(explains), tuple(touches))
    return Finding(Verdict.FAIL, place, text, remedy, shown, cause, device, "", *names)


def error(place: str, text: str, *, device: str = "") -> Finding:
    """Return that a check is broken."""
    return Finding(Verdict.ERROR, place, text, "report or mend the check", device=device)


def _shown(evidence: dict[str, object]) -> tuple[tuple[str, str], ...]:
    return tuple((name, _text(value)) for name, value in evidence.items())


def _text(value: object) -> str:
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def worst(verdicts: Iterable[Verdict]) -> Verdict:
    """Return the worst verdict; of none at all, nothing was judged."""
    return max(verdicts, default=Verdict.SKIPPED)
