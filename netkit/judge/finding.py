"""The finding of a check about one thing it examined."""

from collections.abc import Iterable
from enum import IntEnum
from typing import NamedTuple


class Verdict(IntEnum):
    """From good to bad; the worst of several counts, and nothing starts as a pass."""

    PASS = 0
    SKIPPED = 1
    """It could not be judged: not reported by the device, not reached, or too little data."""
    WARN = 2
    FAIL = 3
    ERROR = 4
    """The check itself is broken; the device may be fine."""

    @property
    def word(self) -> str:
        """The verdict as people and files write it."""
        return self.name.lower()


class Silenced(NamedTuple):
    """Who silenced a finding, why and until when: it is still shown, and not counted."""

    id: str
    kind: str
    """`silence`, or `acknowledgement`, which ends once the finding is gone."""
    by: str
    why: str
    until_s: float | None = None
    ticket: str = ""


class Finding(NamedTuple):
    """One verdict. Those that are not a pass state what is wrong, where, and what to do."""

    verdict: Verdict
    place: str = ""
    """A port, `port/priority`, a NIC, a session; empty for the device as a whole."""
    text: str = ""
    remedy: str = ""
    evidence: tuple[tuple[str, str], ...] = ()
    """The evidence by name, including window and counter states."""
    cause: str = ""
    """The name of the cause, which related findings share; by default the cable at the place."""
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
    """A pass with its place; `PASSED` is cheaper where that does not matter."""
    return Finding(Verdict.PASS, place, device=device)


def skip(place: str, text: str, *, device: str = "") -> Finding:
    """That something could not be judged, and why."""
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
    """That something is not as it should be, but nothing is lost yet."""
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
    """That something is wrong."""
    shown, names = _shown(evidence), (tuple(explains), tuple(touches))
    return Finding(Verdict.FAIL, place, text, remedy, shown, cause, device, "", *names)


def error(place: str, text: str, *, device: str = "") -> Finding:
    """That a check is broken."""
    return Finding(Verdict.ERROR, place, text, "report or fix the check", device=device)


def _shown(evidence: dict[str, object]) -> tuple[tuple[str, str], ...]:
    return tuple((name, f"{value:.4g}" if isinstance(value, float) else str(value)) for name, value in evidence.items())


def worst(verdicts: Iterable[Verdict]) -> Verdict:
    """The worst verdict; if there is none, nothing was judged."""
    return max(verdicts, default=Verdict.SKIPPED)
