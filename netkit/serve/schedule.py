"""The schedule: when rounds are due, and running them one at a time, each in a child process.

A round that did not run is recorded and not repeated.
"""

import asyncio
import os
import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Protocol

from netkit.errors import OutputError
from netkit.serve import child
from netkit.serve.child import take_lock
from netkit.serve.diary import Diary, DiaryFile, MissedRounds, ScheduledRound

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
        """Return the number of the round that was due last."""
        return int((at_s - self.offset_s) // self.every_s)

    def begins_s(self, slot: int) -> float:
        """Return when a round is due."""
        return slot * self.every_s + self.offset_s

    def next_s(self, now_s: float) -> float:
        """Return when the next round is due."""
        return self.begins_s(self.slot(now_s) + 1)

    def is_due(self, settled_s: float | None, now_s: float) -> bool:
        """Whether a round is due that is not settled; a clock that went back makes one due, too."""
        return settled_s is None or self.slot(settled_s) != self.slot(now_s)

    def missed(self, settled_s: float | None, now_s: float, *, has_current: bool) -> range:
        """Return the rounds that were due since what is settled; with or without the one that is due now."""
        if settled_s is None:
            return range(0)
        return range(self.slot(settled_s) + 1, self.slot(now_s) + has_current)


def nightly() -> Agenda:
    """Return one round a night."""
    return Agenda(DAY_S, NIGHT_S)


def jump_s(wall_s: float, steady_s: float, offset_s: float) -> float:
    """Return by how much the wall clock was set since its offset to a steady one was taken; 0 for a drift."""
    moved_s = wall_s - steady_s - offset_s
    return moved_s if abs(moved_s) > JUMP_S else 0.0


LOOK_S = 20.0
"""How often the wall clock is compared with a steady one while nothing is due."""
DOWN = "netkit serve did not run"
BUSY = "the {kind} before was still running"
SLEPT = "the machine slept or was too busy"
ORPHAN = "a check that an earlier netkit serve began is still running"
NIGHTLY = nightly()


class RoundCommands(Protocol):
    """What a round runs."""

    def check(self) -> child.Command:
        """Return the command of a check."""

    def backup(self) -> child.Command:
        """Return the command of a backup."""

    async def finish(self, one: ScheduledRound, held: tuple[int, ...], stop: asyncio.Event) -> ScheduledRound:
        """Do what belongs to a check that has ended; return it with the run it made."""


@dataclass(slots=True)
class WallClock:
    """The wall clock, watched by one that nobody sets and that goes on while a machine sleeps."""

    offset_s: float = field(default_factory=lambda: time.time() - time.clock_gettime(time.CLOCK_BOOTTIME))

    def jumped_s(self) -> float:
        """Return by how much the wall clock was set since this was last asked."""
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
    tell: Callable[[bytes], None]
    has_backup: bool = False
    clock: WallClock = field(default_factory=WallClock)

    @property
    def diary(self) -> Diary:
        """Return what was done and missed."""
        return self.book.diary

    @property
    def next_s(self) -> float:
        """Return when the next round is due."""
        return self.agenda.next_s(time.time())

    async def run(self) -> None:
        """Run rounds until it is stopped."""
        self._take_up(time.time())
        self._miss(time.time(), DOWN, has_current=False)
        while not self.stop.is_set():
            if not await self.turn():
                await self._wait()

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

    async def _wait(self) -> None:
        left_s = min(self.next_s - time.time(), LOOK_S)
        try:
            await asyncio.wait_for(self.stop.wait(), max(left_s, 0.05))
        except TimeoutError:
            return

    def _watch_clock(self) -> float:
        """Move what is settled along when the wall clock was set: rounds it skipped were never due."""
        jumped_s = self.clock.jumped_s()
        if jumped_s:
            way = "forward" if jumped_s > 0 else "back"
            told = f"the clock was set {way} by {abs(jumped_s):.0f} s"
            diary = self.diary
            self._write(
                replace(diary, clock=told, settled_s=None if diary.settled_s is None else diary.settled_s + jumped_s)
            )
            self.tell(f"{told}\n".encode())
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
            ended = await child.run(replace(command, held=held), self.stop, self.tell)
        except OSError as error:  # no memory, no processes, no program, no disk: tried again next time
            ended = child.Ended(None, f"cannot be started: {error.strerror or error}")
        begun_s = one.begun_s + self._watch_clock()
        one = replace(one, begun_s=begun_s, ended_s=time.time(), exit_code=ended.exit_code, text=ended.said)
        self._write(self.diary.ended(one))
        if self.stop.is_set():
            self._write(self._reopened(self.diary))
        elif kind == "check":
            one = await self.work.finish(one, held, self.stop)
            self._write(replace(self.diary, rounds=(*self.diary.rounds[:-1], one)))

    def _take_up(self, now_s: float) -> None:
        """Go on where an earlier process ended: a round it did not end is due again while its time lasts."""
        before = self.diary
        diary = before.taken_up(now_s)
        if diary is not before:
            self._write(self._reopened(diary))

    def _reopened(self, diary: Diary) -> Diary:
        """Return the diary with its newest round due again."""
        if diary.rounds[-1].kind == "backup":
            return replace(diary, saved_s=None)
        slot = self.agenda.slot(diary.rounds[-1].begun_s)
        return replace(diary, settled_s=self.agenda.begins_s(slot) - 1)

    def _miss(self, now_s: float, reason: str, *, has_current: bool) -> None:
        """Note rounds that were due and did not run."""
        found = self.agenda.missed(self.diary.settled_s, now_s, has_current=has_current)
        if found and not self.stop.is_set():
            first_s, last_s = self.agenda.begins_s(found[0]), self.agenda.begins_s(found[-1])
            self._write(self.diary.without(MissedRounds(first_s, last_s, len(found), reason), last_s))

    def _write(self, diary: Diary) -> None:
        try:
            self.book.write(diary)
        except OutputError as error:  # a full disk: rounds go on, and the diary is written once there is room
            self.tell(f"error: {error}\n".encode())
