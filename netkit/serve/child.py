"""Child processes: output is passed on, the exit is recorded, and a stop is asked for before it is forced."""

import asyncio
import fcntl
import os
import signal
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from netkit.private import open_file
from netkit.serve.diary import STOPPED

MOST_KEPT = 4000
CHUNK = 8192
POLITE_S = 10.0
"""How long a child that was asked to end has for it."""
Tell = Callable[[bytes], None]


@dataclass(frozen=True, slots=True)
class Ended:
    """How a child ended."""

    exit_code: int | None
    """None when it had to be ended."""
    said: str
    """What it said last, on standard error where it said anything there."""


@dataclass(frozen=True, slots=True)
class Command:
    """What to run, and for how long at most."""

    words: Sequence[str]
    environment: Mapping[str, str]
    longest_s: float
    held: tuple[int, ...] = ()
    """Open files the child gets, too: locks."""


async def run(command: Command, stop: asyncio.Event, tell: Tell) -> Ended:
    """Run a child to its end, or to that of its time, or until everything is to stop."""
    child = await asyncio.create_subprocess_exec(
        *command.words,
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        env=dict(command.environment),
        pass_fds=command.held,
        start_new_session=True,
    )
    readers = [asyncio.ensure_future(_read(stream, tell)) for stream in (child.stdout, child.stderr)]
    why = await _waited(child, stop, command.longest_s)
    if why:
        await _end(child)
    await asyncio.wait(readers, timeout=1.0)  # a grandchild that left the session may hold the pipes
    out, err = (reader.result() if reader.done() else "" for reader in readers)
    for reader in readers:
        reader.cancel()
    return Ended(None if why else child.returncode, why or err or out)


async def _read(stream: asyncio.StreamReader | None, tell: Tell) -> str:
    """Pass on what a child says, and return the end of it."""
    kept = b""
    while stream is not None and (chunk := await stream.read(CHUNK)):
        tell(chunk)
        kept = (kept + chunk)[-MOST_KEPT:]
    return kept.decode("utf-8", "replace").strip()


async def _waited(child: asyncio.subprocess.Process, stop: asyncio.Event, longest_s: float) -> str:
    """Wait until a child ends; return why it must be ended, if so."""
    ends, stops = asyncio.ensure_future(child.wait()), asyncio.ensure_future(stop.wait())
    done, left = await asyncio.wait((ends, stops), timeout=longest_s, return_when=asyncio.FIRST_COMPLETED)
    for one in left:
        one.cancel()
    if ends in done:
        return ""
    return STOPPED if stops in done else f"ended: it took more than {longest_s:g} s"


async def _end(child: asyncio.subprocess.Process) -> None:
    """Ask a child and all its children to end, and see to it."""
    _signal(child, signal.SIGTERM)
    with suppress(TimeoutError):
        await asyncio.wait_for(child.wait(), POLITE_S)
    _signal(child, signal.SIGKILL)
    await child.wait()


def _signal(child: asyncio.subprocess.Process, number: signal.Signals) -> None:
    with suppress(ProcessLookupError):
        os.killpg(child.pid, number)


def take_lock(file: Path) -> int | None:
    """Take a lock and return the open file that holds it; None when another process has it.

    Children that are given the open file hold the lock too: when this process is killed, they keep it to their end.
    """
    held = open_file(file, os.O_RDWR)
    try:
        fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(held)
        return None
    return held
