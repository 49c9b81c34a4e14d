"""The data to show: runs from the store and their reports from files, read on demand."""

import json
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, nullcontext, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from netkit.errors import StoreError
from netkit.judge import Finding, Verdict
from netkit.report.page.frame import Link, framed
from netkit.store import CheckRun, CheckState, Source
from netkit.store.open_cause import OpenNow
from netkit.store.partition import PlaceFilter, StoredPage
from netkit.store.state import KnownSilence
from netkit.store.store import open_store

if TYPE_CHECKING:
    from netkit.store.store import Store as OpenStore

LATEST = "latest"
MOST_RECENT = 100
"""The number of runs in memory; the store has the others."""
MOST_OPEN = 2000
"""The number of bad places that are grouped into causes, and of unreached devices."""
MOST_WELL = 50
MOST_REPORTS = 100
"""The number of reports kept as files; older ones are made again on request."""
READ_S = 60.0
"""How long the older version of a rewritten report stays, for readers that have it open."""


@dataclass(frozen=True, slots=True)
class FabricStatus:
    """The state of a fabric after a run."""

    open_now: OpenNow
    well: StoredPage[CheckState]
    """What is healthy again with this run."""


@dataclass(slots=True)
class StoreReader:
    """The store of a server: a file is opened for each question, a server stays connected."""

    where: str
    _opened: "OpenStore | None" = None
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def open(self) -> "AbstractContextManager[OpenStore]":
        if "://" not in self.where or self.where.startswith("sqlite"):
            return open_store(self.where, is_new_allowed=False)
        with self._lock:
            if self._opened is None:
                self._opened = open_store(self.where, is_new_allowed=False)
            return nullcontext(self._opened)


@dataclass(slots=True)
class Records:
    """The stored runs of a fabric, or of a lab of it."""

    store: StoreReader
    source: Source
    folder: Path
    """The folder of reports, as JSON."""
    links: tuple[Link, ...] = ()
    """The links on the pages of reports."""
    _runs: tuple[CheckRun, ...] = ()
    _pages: dict[str, str] = field(default_factory=dict)
    _status: dict[str, FabricStatus] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def newest(self) -> CheckRun | None:
        with self._opened() as store:
            return next(iter(store.runs(self.source, 1)), None)

    def recent(self) -> tuple[CheckRun, ...]:
        """The last runs, newest first; fetched again only if there is a newer one."""
        with self._lock, self._opened() as store:
            newest = store.runs(self.source, 1)
            if newest != self._runs[:1]:
                self._runs = store.runs(self.source, MOST_RECENT)
            return self._runs

    def known(self) -> tuple[tuple[CheckRun, ...], StoreError | None]:
        """The last runs, or if the store cannot be read, those known before and the error."""
        try:
            return self.recent(), None
        except StoreError as error:
            return self._runs, error

    def runs(self, most: int, after: CheckRun | None = None) -> tuple[CheckRun, ...]:
        """Runs, newest first, from the one that follows another."""
        with self._opened() as store:
            return store.runs(self.source, most, after=after)

    def number(self) -> int:
        """The number of stored runs."""
        with self._opened() as store:
            return store.number_of_runs(self.source)

    def run(self, name: str) -> CheckRun | None:
        """Find a run by its name, or the latest; a report may exist while the store is unreachable."""
        runs, trouble = self.known()
        found = next((one for one in runs if name in {one.name, LATEST}), None)
        if found is not None or (name == LATEST and trouble is None):
            return found
        if trouble is not None:
            raise trouble
        with self._opened() as store:
            return store.run(self.source, name)

    def states(self, wanted: PlaceFilter, most: int, offset: int) -> StoredPage[CheckState]:
        """The states of checks at places where they ever found something, the worst first."""
        with self._opened() as store:
            return store.states(self.source, wanted, most=most, offset=offset)

    def status(self, run: CheckRun) -> FabricStatus:
        """What is open after a run, and what passes again with it; cached for one run."""
        with self._lock:
            if run.name not in self._status:
                with self._opened() as store:
                    open_now = store.open_now(self.source, MOST_OPEN)
                    passing = PlaceFilter(verdict=Verdict.PASS)
                    well = store.states(self.source, passing, since_s=run.taken_s, most=MOST_WELL)
                self._status = {run.name: FabricStatus(open_now, well)}
            return self._status[run.name]

    def silences(self) -> Mapping[str, KnownSilence]:
        """The silences and acknowledgements of the last run, by name."""
        with self._opened() as store:
            return store.silences(self.source)

    def findings(self, run: CheckRun, wanted: PlaceFilter, most: int, offset: int) -> StoredPage[Finding]:
        """Findings of a run that are worse than skipped, the worst first."""
        with self._opened() as store:
            return store.findings(run, wanted, most, offset)

    def skipped(self, run: CheckRun) -> Iterator[Finding]:
        """Yield what a run could not judge."""
        with self._opened() as store:
            yield from store.skipped(run)

    def silenced(self, run: CheckRun) -> Mapping[str, int]:
        """How many findings of a run each silence silences, by its ID."""
        with self._opened() as store:
            return store.silenced(run)

    def file(self, run: CheckRun) -> Path:
        return self.folder / f"{run.name}.json"

    def adopt(self, run: CheckRun, draft: Path) -> bool:
        """Keep an existing report if it is about this run; return whether it is."""
        try:
            is_of_run: bool = json.loads(draft.read_bytes())["run"] == run.name
        except (OSError, ValueError, LookupError, TypeError):
            return False
        if is_of_run:
            draft.replace(self.file(run))
        return is_of_run

    def report(self, run: CheckRun) -> dict[str, Any]:
        data: dict[str, Any] = json.loads(self.file(run).read_bytes())
        return data

    def page(self, run: CheckRun) -> str:
        """The report on a run as HTML; cached for one run."""
        with self._lock:
            if run.name not in self._pages:
                self._pages = {run.name: framed(self.report(run), self.links)}
            return self._pages[run.name]

    def prune(self) -> None:
        """Remove the reports on the oldest runs, by the time in their names, except those just made."""
        files = sorted(self.folder.glob("*.json"), key=lambda file: file.name, reverse=True)
        for file in files[MOST_REPORTS:]:
            with suppress(OSError):  # a file that stays does no harm
                if abs(time.time() - file.stat().st_mtime) > READ_S:
                    file.unlink()

    def _opened(self) -> "AbstractContextManager[OpenStore]":
        return self.store.open()
