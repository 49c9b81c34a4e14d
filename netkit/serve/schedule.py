"""The schedule: when rounds are due, and running them one at a time, each in a child process.

A round that did not run is recorded and not repeated.
"""

import asyncio
import json
import os
import tempfile
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, Protocol

from pydantic import TypeAdapter

from netkit.deploy.model import Seconds, Whole
from netkit.errors import OutputError, Problem
from netkit.serve.rounds import KILLED, Command, Ended, ScheduledRound, run_command, take_lock

FORMAT = 1
MOST_ROUNDS = 50
MOST_MISSED = 100


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
    """The rounds to keep when one more begins."""
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
            return f"{self.file} cannot be read: it is now {aside.name}, and a new one starts without earlier rounds"
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


DAY_S = 86_400.0
NIGHT_S = 3 * 3600 + 17 * 60
"""When a day's backup is due, after midnight UTC."""
JUMP_S = 5.0


@dataclass(frozen=True, slots=True)
class Agenda:
    """Rounds at regular times."""

    every_s: float
    offset_s: float = 0.0

    def slot(self, at_s: float) -> int:
        """The number of the round that was due last."""
        return int((at_s - self.offset_s) // self.every_s)

    def begins_s(self, slot: int) -> float:
        return slot * self.every_s + self.offset_s

    def next_s(self, now_s: float) -> float:
        return self.begins_s(self.slot(now_s) + 1)

    def is_due(self, settled_s: float | None, now_s: float) -> bool:
        """Whether an unsettled round is due; a clock set back makes one due, too."""
        return settled_s is None or self.slot(settled_s) != self.slot(now_s)

    def missed(self, settled_s: float | None, now_s: float, *, has_current: bool) -> range:
        """The rounds that were due since the settled time, with or without the current one."""
        if settled_s is None:
            return range(0)
        return range(self.slot(settled_s) + 1, self.slot(now_s) + has_current)


def nightly() -> Agenda:
    """One round a night."""
    return Agenda(DAY_S, NIGHT_S)


def jump_s(wall_s: float, steady_s: float, offset_s: float) -> float:
    """The adjustment of the wall clock since its offset to the monotonic clock was measured; 0 for drift."""
    moved_s = wall_s - steady_s - offset_s
    return moved_s if abs(moved_s) > JUMP_S else 0.0


LOOK_S = 20.0
"""How often the wall clock is compared with the monotonic clock while nothing is due."""
DOWN = "netkit serve did not run"
BUSY = "the {kind} before was still running"
SLEPT = "the machine slept or was too busy"
ORPHAN = "a check that an earlier netkit serve began is still running"
NIGHTLY = nightly()


class RoundCommands(Protocol):
    """What a round runs."""

    def check(self) -> Command:
        """The command of a check."""

    def backup(self) -> Command:
        """The command of a backup."""

    async def finish(self, one: ScheduledRound, held: tuple[int, ...], stop: asyncio.Event) -> ScheduledRound:
        """Complete a check that has ended; return it with the name of its run."""


@dataclass(slots=True)
class WallClock:
    """The wall clock, compared with a monotonic one that also counts while the machine sleeps."""

    offset_s: float = field(default_factory=lambda: time.time() - time.clock_gettime(time.CLOCK_BOOTTIME))

    def jumped_s(self) -> float:
        """The adjustment of the wall clock since the last call."""
        steady_s = time.clock_gettime(time.CLOCK_BOOTTIME)
        jumped_s = jump_s(time.time(), steady_s, self.offset_s)
        self.offset_s = time.time() - steady_s
        return jumped_s


@dataclass(slots=True)
class Schedule:
    """Runs rounds until it is stopped."""

    agenda: Agenda
    book: DiaryFile
    work: RoundCommands
    lock_file: Path
    stop: asyncio.Event
    log: Callable[[bytes], None]
    has_backup: bool = False
    clock: WallClock = field(default_factory=WallClock)

    @property
    def diary(self) -> Diary:
        return self.book.diary

    @property
    def next_s(self) -> float:
        return self.agenda.next_s(time.time())

    async def run(self) -> None:
        # A round that an earlier process left unfinished is due again while its interval lasts.
        diary = self.diary.taken_up(time.time())
        if diary is not self.diary:
            self._write(self._reopened(diary))
        self._miss(time.time(), DOWN, has_current=False)
        while not self.stop.is_set():
            if not await self.turn():
                left_s = min(self.next_s - time.time(), LOOK_S)
                with suppress(TimeoutError):
                    await asyncio.wait_for(self.stop.wait(), max(left_s, 0.05))

    async def turn(self) -> bool:
        """Run what is due; return whether anything was."""
        self._watch_clock()
        now_s = time.time()
        if self.agenda.is_due(self.diary.settled_s, now_s):
            self._miss(now_s, SLEPT, has_current=False)
            return await self._locked("check")
        if self.has_backup and NIGHTLY.is_due(self.diary.saved_s, now_s):
            return await self._locked("backup")
        return False

    def _watch_clock(self) -> float:
        """Shift the settled time after a jump of the clock: rounds it skipped were never due."""
        jumped_s = self.clock.jumped_s()
        if jumped_s:
            direction = "forward" if jumped_s > 0 else "back"
            text = f"the clock was set {direction} by {abs(jumped_s):.0f} s"
            settled_s = self.diary.settled_s
            settled_s = None if settled_s is None else settled_s + jumped_s
            self._write(replace(self.diary, clock=text, settled_s=settled_s))
            self.log(f"{text}\n".encode())
        return jumped_s

    async def _locked(self, kind: str) -> bool:
        """Run a round, unless one that outlived its server still runs; return whether it ran."""
        try:
            held = take_lock(self.lock_file)
            why = ORPHAN
        except OSError as error:
            held, why = None, f"{self.lock_file}: {error.strerror}"
        if held is None:
            self._miss(time.time(), why, has_current=True)
            return False
        try:
            await self._round(kind, (held,))
        finally:
            os.close(held)
        self._watch_clock()
        self._miss(time.time(), BUSY.format(kind=kind), has_current=True)
        return True

    async def _round(self, kind: str, held: tuple[int, ...]) -> None:
        one = ScheduledRound(kind, time.time())
        self._write(self.diary.begun(one))
        try:
            command = await asyncio.to_thread(self.work.check if kind == "check" else self.work.backup)
            ended = await run_command(replace(command, held=held), self.stop, self.log)
        except OSError as error:  # no memory, processes, program or disk: the next round tries again
            ended = Ended(None, f"cannot be started: {error.strerror or error}")
        begun_s = one.begun_s + self._watch_clock()
        one = replace(one, begun_s=begun_s, ended_s=time.time(), exit_code=ended.exit_code, text=ended.output)
        self._write(self.diary.ended(one))
        if self.stop.is_set():
            self._write(self._reopened(self.diary))
        elif kind == "check":
            one = await self.work.finish(one, held, self.stop)
            self._write(replace(self.diary, rounds=(*self.diary.rounds[:-1], one)))

    def _reopened(self, diary: Diary) -> Diary:
        """The diary with its newest round due again."""
        if diary.rounds[-1].kind == "backup":
            return replace(diary, saved_s=None)
        slot = self.agenda.slot(diary.rounds[-1].begun_s)
        return replace(diary, settled_s=self.agenda.begins_s(slot) - 1)

    def _miss(self, now_s: float, reason: str, *, has_current: bool) -> None:
        """Record rounds that were due and did not run."""
        found = self.agenda.missed(self.diary.settled_s, now_s, has_current=has_current)
        if found and not self.stop.is_set():
            first_s, last_s = self.agenda.begins_s(found[0]), self.agenda.begins_s(found[-1])
            self._write(self.diary.without(MissedRounds(first_s, last_s, len(found), reason), last_s))

    def _write(self, diary: Diary) -> None:
        try:
            self.book.write(diary)
        except OutputError as error:  # full disk: rounds continue, and the diary is written once there is room
            self.log(f"error: {error}\n".encode())
