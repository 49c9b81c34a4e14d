"""The commands of a fabric's rounds: checks, backups and reports, each in a process of its own."""

import asyncio
from dataclasses import dataclass, field, replace
from pathlib import Path

from netkit.errors import NetkitError, OutputError, Problem
from netkit.report.page import MOST_DEVICES
from netkit.serve import child
from netkit.serve.diary import ScheduledRound
from netkit.serve.record import Records
from netkit.serve.request import ServeRequest
from netkit.store import CheckRun

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

    def check(self) -> child.Command:
        newest = self._newest()
        self._before = "" if newest is None else newest.name
        longest_s = max(2.0 * self.asked.every_s, SHORTEST_ROUND_S)
        if newest is None or not self.records.adopt(newest, self.draft):  # left by a check that outlived its server
            self.draft.unlink(missing_ok=True)
        return child.Command(self.asked.check(self.metrics, self.draft), self.environment, longest_s)

    def backup(self) -> child.Command:
        return child.Command(self.asked.saving(), self.environment, 3600.0)

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
            ended = await child.run(child.Command(words, self.environment, REPORT_S, held), stop, lambda _: None)
        except OSError as error:  # no memory, no processes
            ended = child.Ended(None, error.strerror or str(error))
        if not self.records.file(run).exists():
            raise OutputError(
                Problem(f"the report on {run.name} could not be made: {ended.output or 'no reason given'}")
            )

    def _newest(self) -> CheckRun | None:
        try:
            return self.records.newest()
        except NetkitError:
            return None
