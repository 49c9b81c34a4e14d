"""Adding and ending silences through the server, for those who may: each is a command of its own, as a user's would be.

The command checks and writes; the server hands over what was asked, and logs who asked from where.
"""

import asyncio
import json
import os
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from netkit.errors import NetkitError, Problem, StoreError, UsageError
from netkit.intent.complaint import problem
from netkit.judge.run import Judgement
from netkit.judge.silence import Silence, SilenceState, states
from netkit.private import open_file
from netkit.serve import child
from netkit.serve.record import Records
from netkit.silence.file import load
from netkit.store.silence import healed

LONGEST_S = 120.0
MOST_WAITING = 4
"""So many changes wait for the one under way at most."""
FORBIDDEN = "silences can only be shown here: netkit serve --allow-silences lets whoever has the token change them"


class SilenceRequest(BaseModel):
    """What somebody asks for: a silence with an end, or an acknowledgement of what the last run found."""

    model_config = ConfigDict(extra="forbid", frozen=True, str_strip_whitespace=True)

    kind: Literal["silence", "acknowledgement"] = "silence"
    check: str = Field(min_length=1, max_length=200)
    where: str = Field(min_length=1, max_length=200)
    until: str = Field("", max_length=40)
    by: str = Field(min_length=1, max_length=100)
    why: str = Field(min_length=1, max_length=500)
    ticket: str = Field("", max_length=100)

    @property
    def words(self) -> tuple[str, ...]:
        """Return it as arguments of `netkit silence`; nothing that is given can be taken for an option."""
        given = {"--until": self.until, "--by": self.by, "--reason": self.why, "--ticket": self.ticket}
        verb = "add" if self.kind == "silence" else "ack"
        return verb, *(f"{name}={value}" for name, value in given.items() if value), "--", self.check, self.where


class TooManyChangesError(NetkitError):
    """Too many changes at once."""


@dataclass(slots=True)
class Silencer:
    """The silences of a fabric, or of a lab of it, to be shown and to be changed."""

    folder: Path
    """Of the fabric."""
    records: Records
    command: Callable[[Sequence[str]], child.Command]
    """Makes a command of arguments of `netkit silence`."""
    log: Path
    stop: asyncio.Event
    tell: Callable[[bytes], None]
    is_allowed: bool = False
    _turn: asyncio.Lock = field(default_factory=asyncio.Lock)
    _waiting: int = 0

    def states(self) -> tuple[SilenceState, ...]:
        """Return how each entry stands, and how many findings of the newest run it silences."""
        found = load(self.folder).of_lab(self.records.source.lab)
        newest = self.records.newest() if found else None
        marks = [one.silenced for one in self.records.found(newest).findings] if newest is not None else []
        ids = [mark.id for mark in marks if mark is not None]
        entries = states(found, Judgement((), ()), time.time(), self._healed(found), is_whole=False)
        return tuple(replace(one, findings=ids.count(one.silence.id)) for one in entries)

    def _healed(self, found: Sequence[Silence]) -> frozenset[str]:
        try:
            return healed(self.records.silences(), found)
        except StoreError:
            return frozenset()

    async def add(self, given: Mapping[str, object], address: str) -> str:
        """Add an entry; return what the command says, or raise what it complains of."""
        try:
            asked = SilenceRequest.model_validate(given)
        except ValidationError as error:
            told = [problem(one) for one in error.errors(include_url=False)]
            raise UsageError(Problem(one.message, one.remedy, one.path) for one in told) from None
        return await self._run(asked.words, asked.by, address)

    async def end(self, name: str, by: str, address: str) -> str:
        """End an entry; return what the command says, or raise what it complains of."""
        if not name or not by.strip():
            raise UsageError(Problem("who ends it is not said" if name else "no entry is named", "give by and id"))
        return await self._run(("end", "--", name), by.strip(), address)

    async def _run(self, words: Sequence[str], by: str, address: str) -> str:
        if self._waiting >= MOST_WAITING:
            raise TooManyChangesError(Problem("other changes of silences are under way", "try again in a moment"))
        self._waiting += 1
        try:
            async with self._turn:
                ended = await child.run(self.command(words), self.stop, lambda _: None)
        except OSError as error:  # no memory, no processes
            raise TooManyChangesError(
                Problem(f"cannot be started: {error.strerror}", "try again in a moment")
            ) from None
        finally:
            self._waiting -= 1
        await asyncio.to_thread(
            self._note, _Change(time.time(), by, address, tuple(words), ended.exit_code, ended.said)
        )
        if ended.exit_code != 0:
            lines = [line.removeprefix("error: ") for line in ended.said.splitlines() if line.startswith("error: ")]
            raise UsageError(Problem(line) for line in lines or [ended.said or "it could not be changed"])
        return ended.said

    def _note(self, change: "_Change") -> None:
        """Keep who changed what from where."""
        line = json.dumps(asdict(change), ensure_ascii=False)
        self.tell(f"silences: {line}\n".encode())
        with os.fdopen(open_file(self.log, os.O_WRONLY | os.O_APPEND), "a", encoding="utf-8") as stream:
            stream.write(f"{line}\n")


@dataclass(frozen=True, slots=True)
class _Change:
    at_s: float
    by: str
    address: str
    words: tuple[str, ...]
    exit_code: int | None
    said: str
