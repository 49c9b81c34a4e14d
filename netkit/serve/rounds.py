"""The commands of a fabric's rounds: checks, backups and reports, each in its own process."""

import asyncio
import fcntl
import os
import signal
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path

from netkit.deploy.model import Seconds
from netkit.errors import NetkitError, OutputError, Problem
from netkit.private import open_file
from netkit.report.page import MOST_DEVICES
from netkit.serve.forking import ForkedChild, ForkServer
from netkit.serve.record import Records
from netkit.serve.request import NETKIT, ServeRequest
from netkit.store import CheckRun

MOST_KEPT = 4000
CHUNK = 8192
POLITE_S = 10.0
"""How long a child gets to end after SIGTERM."""
OnOutput = Callable[[bytes], None]
Child = asyncio.subprocess.Process | ForkedChild
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
    forks: ForkServer | None = None
    """Runs commands of netkit without a new interpreter."""


async def run_command(command: Command, stop: asyncio.Event, on_output: OnOutput) -> Ended:
    """Run a child until it ends, its time is up, or everything stops."""
    child = await _started(command)
    readers = [asyncio.ensure_future(_read(stream, on_output)) for stream in (child.stdout, child.stderr)]
    why = await _waited(child, stop, command.longest_s)
    if why:
        await _end(child)
    await asyncio.wait(readers, timeout=1.0)  # a grandchild that left the session may hold the pipes
    out, err = (reader.result() if reader.done() else "" for reader in readers)
    for reader in readers:
        reader.cancel()
    return Ended(None if why else child.returncode, why or err or out)


async def _started(command: Command) -> Child:
    words, environment = command.words, dict(command.environment)
    if command.forks is not None:
        verb = words[len(NETKIT) :]
        if forked := await command.forks.start_piped(verb, environment, command.held):
            return forked
    return await asyncio.create_subprocess_exec(
        *words,
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        env=environment,
        pass_fds=command.held,
        start_new_session=True,
    )


async def _read(stream: asyncio.StreamReader | None, on_output: OnOutput) -> str:
    """Pass on the output of a child, and return its end."""
    kept = b""
    while stream is not None and (chunk := await stream.read(CHUNK)):
        on_output(chunk)
        kept = (kept + chunk)[-MOST_KEPT:]
    return kept.decode("utf-8", "replace").strip()


async def _waited(child: Child, stop: asyncio.Event, longest_s: float) -> str:
    """Wait for a child; return the reason if it must be ended."""
    ends, stops = asyncio.ensure_future(child.wait()), asyncio.ensure_future(stop.wait())
    done, left = await asyncio.wait((ends, stops), timeout=longest_s, return_when=asyncio.FIRST_COMPLETED)
    for one in left:
        one.cancel()
    if ends in done:
        return ""
    return STOPPED if stops in done else f"ended: it took more than {longest_s:g} s"


async def _end(child: Child) -> None:
    """End a child and its children: SIGTERM, then SIGKILL."""
    _signal(child, signal.SIGTERM)
    with suppress(TimeoutError):
        await asyncio.wait_for(child.wait(), POLITE_S)
    _signal(child, signal.SIGKILL)
    await child.wait()


def _signal(child: Child, number: signal.Signals) -> None:
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


SHORTEST_ROUND_S = 600.0
REPORT_S = 300.0
PATIENCE_S = 40.0
"""How long a request waits for its report: less than the timeout of its connection."""
MOST_ASKED = 16
"""The limit of reports that wait to be made."""


@dataclass(slots=True)
class Children:
    """The commands of rounds, and the handling of their results."""

    asked: ServeRequest
    records: Records
    folder: Path
    """Where checks leave metrics and reports."""
    environment: dict[str, str]
    stop: asyncio.Event
    forks: ForkServer | None = None
    _before: str = ""
    _making: asyncio.Lock = field(default_factory=asyncio.Lock)
    _asked: dict[str, asyncio.Future[None]] = field(default_factory=dict)

    @property
    def metrics(self) -> Path:
        """The metrics of the newest check."""
        return self.folder / "metrics.prom"

    @property
    def draft(self) -> Path:
        """Where a check leaves its report."""
        return self.folder / "report.json"

    def check(self) -> Command:
        newest = self._newest()
        self._before = "" if newest is None else newest.name
        longest_s = max(2.0 * self.asked.every_s, SHORTEST_ROUND_S)
        if newest is None or not self.records.adopt(newest, self.draft):  # left by a check that outlived its server
            self.draft.unlink(missing_ok=True)
        return self.command(self.asked.check(self.metrics, self.draft), longest_s)

    def backup(self) -> Command:
        return self.command(self.asked.saving(), 3600.0)

    def command(self, words: Sequence[str], longest_s: float, held: tuple[int, ...] = ()) -> Command:
        return Command(words, self.environment, longest_s, held, self.forks)

    async def finish(self, one: ScheduledRound, held: tuple[int, ...], stop: asyncio.Event) -> ScheduledRound:
        """Attach the report to the run that a check has stored; return the check with the run's name."""
        try:
            newest = next(iter(await asyncio.to_thread(self.records.recent)), None)
            if newest is None or newest.name == self._before or not one.is_work_done:
                return one
            is_made = newest.devices > MOST_DEVICES or await asyncio.to_thread(self.records.adopt, newest, self.draft)
            if not is_made:
                await self._report(newest, held, stop)
            await asyncio.to_thread(self.records.prune)
        except (NetkitError, OSError) as error:
            return replace(one, text=f"{one.text}\nno report: {error}".strip())
        return replace(one, run=newest.name)

    async def make(self, run: CheckRun) -> None:
        """Make a requested report; raise OutputError if it takes too long, and finish it all the same."""
        if run.name not in self._asked and len(self._asked) < MOST_ASKED:
            made = self._asked[run.name] = asyncio.ensure_future(self._make(run))
            made.add_done_callback(lambda _: self._asked.pop(run.name, None))
        if run.name in self._asked:
            done, _ = await asyncio.wait({self._asked[run.name]}, timeout=PATIENCE_S)
            if done:
                return done.pop().result()
        raise OutputError(Problem(f"the report on {run.name} is still being made", "ask again in a minute"))

    async def ended(self) -> None:
        """Wait for reports in progress; they stop when the server does."""
        await asyncio.gather(*self._asked.values(), return_exceptions=True)

    async def _make(self, run: CheckRun) -> None:
        """Make one report at a time."""
        async with self._making:
            if not self.stop.is_set() and not self.records.file(run).exists():
                await self._report(run, (), self.stop)
                await asyncio.to_thread(self.records.prune)

    async def _report(self, run: CheckRun, held: tuple[int, ...], stop: asyncio.Event) -> None:
        words = self.asked.report(run.name, self.records.file(run))
        try:
            ended = await run_command(self.command(words, REPORT_S, held), stop, lambda _: None)
        except OSError as error:  # no memory, no processes
            ended = Ended(None, error.strerror or str(error))
        if not self.records.file(run).exists():
            raise OutputError(
                Problem(f"the report on {run.name} could not be made: {ended.output or 'no reason given'}")
            )

    def _newest(self) -> CheckRun | None:
        try:
            return self.records.newest()
        except NetkitError:
            return None
