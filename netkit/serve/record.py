"""What there is to show: runs from the store, their reports from files, each read again when it is asked for."""

import json
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from netkit.errors import StoreError
from netkit.judge import Finding, Verdict
from netkit.judge.cause import Layers
from netkit.report.page.frame import Link, framed
from netkit.store import CheckRun, CheckState, Source
from netkit.store.open_cause import OpenNow
from netkit.store.silence import KnownSilence
from netkit.store.store import open_store

if TYPE_CHECKING:
    from netkit.store.store import Store

LATEST = "latest"
MOST_REPORTS = 100
"""So many reports are kept as files; older ones are made again when somebody asks for them."""
READ_S = 60.0
"""How long the older version of a rewritten report stays, for readers that have it open."""


@dataclass(frozen=True, slots=True)
class RunFindings:
    """The findings of a run, and the layers of its checks."""

    findings: tuple[Finding, ...]
    layers: Layers


@dataclass(frozen=True, slots=True)
class FabricStatus:
    """How a fabric stands after a run."""

    open_now: OpenNow
    well: tuple[CheckState, ...]
    """What is healthy again with this run."""


@dataclass(slots=True)
class Records:
    """The stored runs of a fabric, or of a lab of it."""

    where: str
    source: Source
    folder: Path
    """Where reports are kept, as JSON."""
    links: tuple[Link, ...] = ()
    """Where the pages of reports lead to."""
    _runs: tuple[CheckRun, ...] = ()
    _found: dict[str, RunFindings] = field(default_factory=dict)
    _pages: dict[str, str] = field(default_factory=dict)
    _status: dict[str, FabricStatus] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def newest(self) -> CheckRun | None:
        """Return the newest run."""
        with self._opened() as store:
            return next(iter(store.runs(self.source, 1)), None)

    def runs(self) -> tuple[CheckRun, ...]:
        """Return all runs, the newest first; they are fetched again when there is a newer one."""
        with self._lock, self._opened() as store:
            newest = store.runs(self.source, 1)
            if newest != self._runs[:1]:
                self._runs = store.runs(self.source)
            return self._runs

    def known(self) -> tuple[tuple[CheckRun, ...], StoreError | None]:
        """Return all runs, or those that were there when the store could be read last, and why it cannot be now."""
        try:
            return self.runs(), None
        except StoreError as error:
            return self._runs, error

    def run(self, name: str) -> CheckRun | None:
        """Return a run by its name, or the latest; its report may be there when the store is not."""
        runs, trouble = self.known()
        found = next((one for one in runs if name in {one.name, LATEST}), None)
        if found is None and trouble is not None:
            raise trouble
        return found

    def states(self) -> tuple[CheckState, ...]:
        """Return how each check stands at each place it ever found something at."""
        with self._opened() as store:
            return store.latest_states(self.source)

    def status(self, run: CheckRun) -> FabricStatus:
        """Return what is open after a run, and what is healthy again with it; that of one run is kept."""
        with self._lock:
            if run.name not in self._status:
                with self._opened() as store:
                    states = store.latest_states(self.source)
                    open_now = store.open_now(self.source)
                well = (one for one in states if one.verdict is Verdict.PASS and one.since_s == run.taken_s)
                self._status = {run.name: FabricStatus(open_now, tuple(well))}
            return self._status[run.name]

    def silences(self) -> Mapping[str, KnownSilence]:
        """Return what the last run knew of silences and acknowledgements, by name."""
        with self._opened() as store:
            return store.silences(self.source)

    def found(self, run: CheckRun) -> RunFindings:
        """Return what a run found; that of one run is kept."""
        with self._lock:
            if run.name not in self._found:
                with self._opened() as store:
                    judgement = store.judgement(run)
                self._found = {run.name: RunFindings(tuple(judgement.findings), run.layers)}
            return self._found[run.name]

    def file(self, run: CheckRun) -> Path:
        """Return where the report on a run is, or is to be."""
        return self.folder / f"{run.name}.json"

    def adopt(self, run: CheckRun, draft: Path) -> bool:
        """Keep a report that is already there, if it is on this run; return whether it is."""
        try:
            is_of_run: bool = json.loads(draft.read_bytes())["run"] == run.name
        except (OSError, ValueError, LookupError, TypeError):
            return False
        if is_of_run:
            draft.replace(self.file(run))
        return is_of_run

    def report(self, run: CheckRun) -> dict[str, Any]:
        """Return the report on a run as plain values."""
        data: dict[str, Any] = json.loads(self.file(run).read_bytes())
        return data

    def page(self, run: CheckRun) -> str:
        """Return the report on a run as HTML; that of one run is kept."""
        with self._lock:
            if run.name not in self._pages:
                self._pages = {run.name: framed(self.report(run), self.links)}
            return self._pages[run.name]

    def prune(self) -> None:
        """Remove the reports on the oldest runs, by the time their names begin with, but those made just now."""
        files = sorted(self.folder.glob("*.json"), key=lambda file: file.name, reverse=True)
        for file in files[MOST_REPORTS:]:
            with suppress(OSError):  # one that stays does no harm
                if abs(time.time() - file.stat().st_mtime) > READ_S:
                    file.unlink()

    def _opened(self) -> "Store":
        return open_store(self.where, is_new_allowed=False)


def unhealthy(states: Sequence[CheckState]) -> Iterator[CheckState]:
    """Yield what is not well, the worst first."""
    yield from sorted((one for one in states if one.verdict), key=lambda one: (-one.verdict, one.key))
