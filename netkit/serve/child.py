"""Child processes: their output is passed on, their exit recorded, and a stop is requested before it is forced."""

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
"""How long a child gets to end after SIGTERM."""
OnOutput = Callable[[bytes], None]


@dataclass(frozen=True, slots=True)
class Ended:
    """How a child ended."""

    exit_code: int | None
    """None when it had to be killed."""
    output: str
    """The end of its standard error, or of its standard output if there is none."""


@dataclass(frozen=True, slots=True)
class Command:
    """What to run, and its time limit."""

    words: Sequence[str]
    environment: Mapping[str, str]
    longest_s: float
    held: tuple[int, ...] = ()
    """Open files the child inherits: locks."""


async def run(command: Command, stop: asyncio.Event, on_output: OnOutput) -> Ended:
    """Run a child until it ends, its time is up, or everything stops."""
    child = await asyncio.create_subprocess_exec(
        *command.words,
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        env=dict(command.environment),
        pass_fds=command.held,
        start_new_session=True,
    )
    readers = [asyncio.ensure_future(_read(stream, on_output)) for stream in (child.stdout, child.stderr)]
    why = await _waited(child, stop, command.longest_s)
    if why:
        await _end(child)
    await asyncio.wait(readers, timeout=1.0)  # a grandchild that left the session may hold the pipes
    out, err = (reader.result() if reader.done() else "" for reader in readers)
    for reader in readers:
        reader.cancel()
    return Ended(None if why else child.returncode, why or err or out)


async def _read(stream: asyncio.StreamReader | None, on_output: OnOutput) -> str:
    """Pass on the output of a child, and return its end."""
    kept = b""
    while stream is not None and (chunk := await stream.read(CHUNK)):
        on_output(chunk)
        kept = (kept + chunk)[-MOST_KEPT:]
    return kept.decode("utf-8", "replace").strip()


async def _waited(child: asyncio.subprocess.Process, stop: asyncio.Event, longest_s: float) -> str:
    """Wait for a child; return the reason if it must be ended."""
    ends, stops = asyncio.ensure_future(child.wait()), asyncio.ensure_future(stop.wait())
    done, left = await asyncio.wait((ends, stops), timeout=longest_s, return_when=asyncio.FIRST_COMPLETED)
    for one in left:
        one.cancel()
    if ends in done:
        return ""
    return STOPPED if stops in done else f"ended: it took more than {longest_s:g} s"


async def _end(child: asyncio.subprocess.Process) -> None:
    """End a child and its children: SIGTERM, then SIGKILL."""
    _signal(child, signal.SIGTERM)
    with suppress(TimeoutError):
        await asyncio.wait_for(child.wait(), POLITE_S)
    _signal(child, signal.SIGKILL)
    await child.wait()


def _signal(child: asyncio.subprocess.Process, number: signal.Signals) -> None:
    with suppress(ProcessLookupError):
        os.killpg(child.pid, number)


def take_lock(file: Path) -> int | None:
    """Take a lock and return the open file that holds it; None if another process has it.

    Children that inherit the open file hold the lock too: if this process is killed, they keep it until they end.
    """
    held = open_file(file, os.O_RDWR)
    try:
        fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(held)
        return None
    return held
