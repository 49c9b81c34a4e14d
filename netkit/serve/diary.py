"""What the schedule ran and missed, in a file that outlives the process."""

import json
import os
import tempfile
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter

from netkit.deploy.model import Seconds, Whole
from netkit.errors import OutputError, Problem

FORMAT = 1
MOST_ROUNDS = 50
MOST_MISSED = 100
KILLED = "netkit serve was killed while it ran"
STOPPED = "ended because netkit serve was stopped"


@dataclass(frozen=True, slots=True)
class ScheduledRound:
    """One child process, and how it ended."""

    kind: str
    """`check` or `backup`."""
    begun_s: Seconds
    ended_s: Seconds | None = None
    exit_code: int | None = None
    """None while it runs, and when it was ended from outside."""
    run: str = ""
    """The name of the run it stored."""
    text: str = ""
    """The end of its output, or why it has no exit code."""

    @property
    def is_running(self) -> bool:
        return self.ended_s is None

    @property
    def is_cut_short(self) -> bool:
        """Whether its end was caused by the server."""
        return self.exit_code is None and self.text in {KILLED, STOPPED}

    @property
    def is_work_done(self) -> bool:
        """Whether it worked: it may have found failures or unreached devices."""
        return self.exit_code in {0, 1, 4}


@dataclass(frozen=True, slots=True)
class MissedRounds:
    """Consecutive rounds that were due and did not run, for one reason."""

    from_s: Seconds
    to_s: Seconds
    count: Whole
    reason: str


@dataclass(frozen=True, slots=True)
class Diary:
    """The state that a restart must keep."""

    settled_s: Seconds | None = None
    """The time up to which rounds were run or recorded as missed."""
    saved_s: Seconds | None = None
    """The same for backups."""
    rounds: tuple[ScheduledRound, ...] = ()
    """The last rounds, earliest first; before them, for each kind, the last that ended and the last that worked."""
    missed: tuple[MissedRounds, ...] = ()
    rounds_total: Whole = 0
    missed_total: Whole = 0
    failed_total: Whole = 0
    """Rounds that did not work."""
    clock: str = ""
    """The last jump of the wall clock."""

    def last(self, kind: str, *, is_ended: bool = False) -> ScheduledRound | None:
        found = (one for one in reversed(self.rounds) if one.kind == kind and not (is_ended and one.is_running))
        return next(found, None)

    def begun(self, one: ScheduledRound) -> "Diary":
        """Add a round that begins."""
        rounds = (*_kept(self.rounds), one)
        if one.kind == "backup":
            return replace(self, rounds=rounds, saved_s=one.begun_s)
        return replace(self, rounds=rounds, settled_s=one.begun_s, rounds_total=self.rounds_total + 1)

    def ended(self, one: ScheduledRound) -> "Diary":
        """Replace the newest round by its ended version."""
        failed = self.failed_total + (one.kind == "check" and not one.is_work_done and not one.is_cut_short)
        return replace(self, rounds=(*self.rounds[:-1], one), failed_total=failed)

    def without(self, missed: MissedRounds, settled_s: float) -> "Diary":
        """Add rounds that did not run."""
        kept = (*self.missed, missed)[-MOST_MISSED:]
        return replace(self, missed=kept, missed_total=self.missed_total + missed.count, settled_s=settled_s)

    def taken_up(self, now_s: float) -> "Diary":
        """Close the round that an earlier process left running."""
        if not self.rounds or not self.rounds[-1].is_running:
            return self
        return self.ended(replace(self.rounds[-1], ended_s=now_s, text=KILLED))


def _kept(rounds: tuple[ScheduledRound, ...]) -> tuple[ScheduledRound, ...]:
    """Return the rounds to keep when one more begins."""
    latest, earlier = rounds[1 - MOST_ROUNDS :], rounds[: 1 - MOST_ROUNDS]
    ended = {one.kind: one for one in rounds if not one.is_running}
    done = {one.kind: one for one in rounds if one.is_work_done}
    spared = (*ended.values(), *done.values())
    return (*(one for one in earlier if any(one is other for other in spared)), *latest)


@dataclass(slots=True)
class DiaryFile:
    """The diary on disk."""

    file: Path
    diary: Diary = field(default_factory=Diary)

    def read(self) -> str:
        """Read the diary; set a damaged one aside, and return what was wrong with it."""
        try:
            self.diary = _diary(json.loads(self.file.read_bytes()))
        except FileNotFoundError:
            return ""
        except (OSError, ValueError, TypeError, LookupError, RecursionError):
            aside = self.file.with_suffix(".damaged")
            with suppress(OSError):
                self.file.replace(aside)
            return f"{self.file} cannot be read: it is now {aside.name}, and a new one begins without earlier rounds"
        return ""

    def write(self, diary: Diary) -> None:
        """Write the diary in one step; on OutputError it is still kept in memory."""
        self.diary = diary
        text = json.dumps({"format": FORMAT, **asdict(diary)}, indent=1)
        write_private(self.file, text)


def write_private(file: Path, text: str) -> None:
    """Write a file that only its owner may read, in one step."""
    draft = ""
    try:
        handle, draft = tempfile.mkstemp(dir=file.parent, prefix=f".{file.name}.")
        with os.fdopen(handle, "w", encoding="utf-8") as stream:
            stream.write(text)
        Path(draft).replace(file)
    except OSError as error:
        if draft:
            with suppress(OSError):
                Path(draft).unlink()
        remedy = "make room or check permissions"
        raise OutputError(Problem(f"{file} cannot be written: {error.strerror}", remedy)) from None


def _diary(plain: Mapping[str, Any]) -> Diary:
    """Parse a diary; anything unexpected raises."""
    if plain["format"] != FORMAT:
        raise ValueError(plain["format"])
    return TypeAdapter(Diary).validate_python({name: plain[name] for name in Diary.__dataclass_fields__})
