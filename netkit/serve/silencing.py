"""Add and end silences through the server, where it is allowed: each change runs `netkit silence`.

The command validates and writes; the server passes the request on, and logs author and address.
"""

import asyncio
import json
import os
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from netkit.errors import NetkitError, Problem, StoreError, UsageError
from netkit.intent.complaint import problem
from netkit.judge.run import Judgement
from netkit.judge.silence import SilenceState, states
from netkit.private import open_file
from netkit.serve.record import Records
from netkit.serve.rounds import Command, run_command
from netkit.silence import load
from netkit.store.state import healed

LONGEST_S = 120.0
MOST_WAITING = 4
"""The limit of changes that wait for the current one."""
FORBIDDEN = "silences are read-only here: netkit serve --allow-silences lets anyone with the token change them"


class SilenceRequest(BaseModel):
    """A request for a silence with an end, or for an acknowledgement of what the last run found."""

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
        """The arguments of `netkit silence`; no value can be taken for an option."""
        given = {"--until": self.until, "--by": self.by, "--reason": self.why, "--ticket": self.ticket}
        verb = "add" if self.kind == "silence" else "ack"
        return verb, *(f"{name}={value}" for name, value in given.items() if value), "--", self.check, self.where


class TooManyChangesError(NetkitError):
    """Too many changes at once."""


@dataclass(slots=True)
class Silencer:
    """Shows and changes the silences of a fabric, or of a lab of it."""

    folder: Path
    """Of the fabric."""
    records: Records
    command: Callable[[Sequence[str]], Command]
    """Makes a command of arguments of `netkit silence`."""
    log: Path
    stop: asyncio.Event
    on_output: Callable[[bytes], None]
    is_allowed: bool = False
    _turn: asyncio.Lock = field(default_factory=asyncio.Lock)
    _waiting: int = 0

    def states(self) -> tuple[SilenceState, ...]:
        """The state of each entry, and how many findings of the newest run it silences."""
        source = self.records.source
        found = [
            one for one in load(self.folder).of_lab(source.lab) if not source.site or one.site in {"", source.site}
        ]
        newest = self.records.newest() if found else None
        numbers = self.records.silenced(newest) if newest is not None else {}
        ended: frozenset[str] = frozenset()
        with suppress(StoreError):
            ended = healed(self.records.silences(), found)
        entries = states(found, Judgement((), ()), time.time(), ended, is_whole=False)
        return tuple(replace(one, findings=numbers.get(one.silence.id, 0)) for one in entries)

    async def add(self, given: Mapping[str, object], address: str) -> str:
        """Add an entry; return the output of the command, or raise its errors."""
        try:
            request = SilenceRequest.model_validate(given)
        except ValidationError as error:
            found = [problem(one) for one in error.errors(include_url=False)]
            raise UsageError(Problem(one.message, one.remedy, one.path) for one in found) from None
        return await self._run(request.words, request.by, address)

    async def end(self, name: str, by: str, address: str) -> str:
        """End an entry; return the output of the command, or raise its errors."""
        if not name or not by.strip():
            raise UsageError(Problem(f"{'by' if name else 'id'} is missing", "give by and id"))
        return await self._run(("end", "--", name), by.strip(), address)

    async def _run(self, words: Sequence[str], by: str, address: str) -> str:
        if self._waiting >= MOST_WAITING:
            raise TooManyChangesError(Problem("other changes of silences are under way", "try again in a moment"))
        self._waiting += 1
        try:
            async with self._turn:
                ended = await run_command(self.command(words), self.stop, lambda _: None)
        except OSError as error:  # no memory, no processes
            raise TooManyChangesError(
                Problem(f"cannot be started: {error.strerror}", "try again in a moment")
            ) from None
        finally:
            self._waiting -= 1
        await asyncio.to_thread(
            self._note, _Change(time.time(), by, address, tuple(words), ended.exit_code, ended.output)
        )
        if ended.exit_code != 0:
            lines = [line.removeprefix("error: ") for line in ended.output.splitlines() if line.startswith("error: ")]
            raise UsageError(Problem(line) for line in lines or [ended.output or "it could not be changed"])
        return ended.output

    def _note(self, change: "_Change") -> None:
        """Log the author, the change and the client address."""
        line = json.dumps(asdict(change), ensure_ascii=False)
        self.on_output(f"silences: {line}\n".encode())
        with os.fdopen(open_file(self.log, os.O_WRONLY | os.O_APPEND), "a", encoding="utf-8") as stream:
            stream.write(f"{line}\n")


@dataclass(frozen=True, slots=True)
class _Change:
    at_s: float
    by: str
    address: str
    words: tuple[str, ...]
    exit_code: int | None
    output: str
