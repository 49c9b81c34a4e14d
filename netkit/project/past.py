"""The store of a run of checks: what earlier runs saw goes into its scene, and what it saw goes into the store."""

import hashlib
import json
import os
import re
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from netkit.design.select import Device
from netkit.errors import OutputError, Problem, UsageError
from netkit.intent import Intent
from netkit.judge import CheckContext
from netkit.judge.delta import Earlier, since
from netkit.judge.silence import Silence
from netkit.private import make_folder
from netkit.project.project import Project
from netkit.project.runs import state_folder
from netkit.report.judgement_view import Judged
from netkit.report.plan_view import counted
from netkit.store import CheckRun, Source, run_of
from netkit.store.measurement import StoredHistory
from netkit.store.open_cause import OpenNow
from netkit.store.record import short
from netkit.store.silence import SavedRun, healed, remembered
from netkit.store.state import Extent

if TYPE_CHECKING:
    from netkit.project.notifying import Notifying
    from netkit.store.outbox import Decide
    from netkit.store.store import Store

VARIABLE = "NETKIT_STORE"
USUAL = "."
"""`--store` without a value: the one of $NETKIT_STORE, or a file beside the runs of deploys."""
LAST = "last"
UNITS_S = {"h": 3600.0, "d": 86_400.0}
KEPT = "90d"
KEEP = re.compile(r"(?P<number>[1-9]\d{0,4})(?P<unit>[hd])")


@dataclass(frozen=True, slots=True)
class Storing:
    """What the options of the command line say about the store."""

    where: str = ""
    """Empty: there is none."""
    has_since: bool = False
    keep_s: float = 0.0

    @classmethod
    def of(cls, store: str, since: str, keep: str = KEPT) -> "Storing":
        """Read the options; UsageError for what they cannot mean."""
        if since not in {"", LAST}:
            raise UsageError(Problem(f"no run {since!r} to judge counters since", f"use --since {LAST}"))
        found = KEEP.fullmatch(keep)
        if found is None:
            raise UsageError(Problem(f"--keep {keep!r} is no time", "use days or hours, such as 90d or 12h"))
        where = place_of(store)
        if since and not where:
            raise UsageError(Problem("--since last needs a store", f"give --store too, or set {VARIABLE}"))
        return cls(where, bool(since), int(found["number"]) * UNITS_S[found["unit"]])


def place_of(store: str) -> str:
    """Return the store that is meant: the option, then the environment; empty when neither names one."""
    chosen = os.environ.get(VARIABLE, "")
    return store if store not in {"", USUAL} else chosen or (usual_file() if store else "")


def usual_file() -> str:
    """Return the file of the store that nobody named."""
    return str(state_folder() / "store.db")


def source_of(project: Project) -> Source:
    """Return whose runs they are: the fabric's, or those of a lab of it."""
    return Source(project.fabric.name, project.lab)


def extent_of(scene: CheckContext, judged: Judged, *, has_all_checks: bool) -> Extent:
    """Return what there is; how anything else stood is over."""
    checks = frozenset(map(short, judged.layers)) if has_all_checks else None
    return Extent(frozenset(map(short, scene.fabric.names)), checks)


class Past:
    """There is no store: nothing is known of earlier runs, and nothing is kept."""

    kept: "tuple[Store, CheckRun] | None" = None
    """The run that was kept, and where."""

    def window_s(self, devices: Sequence[Device], wanted_s: float) -> float:
        """Return how long to look at counters."""
        del devices
        return wanted_s

    def scene(self, scene: CheckContext) -> CheckContext:
        """Return a scene with what earlier runs saw."""
        return scene

    def save(
        self,
        scene: CheckContext,
        judged: Judged,
        intent: Intent,
        tell: "Decide | None" = None,
        extent: Extent | None = None,
    ) -> SavedRun:
        """Keep a run and its notifications, and return what changed since the one before."""
        del scene, judged, intent, tell, extent
        return SavedRun()

    def open_now(self) -> OpenNow:
        """Return what is open after the runs that are kept."""
        return OpenNow()

    def healed(self, silences: Iterable[Silence]) -> frozenset[str]:
        """Return the acknowledgements whose finding was well since they were made."""
        del silences
        return frozenset()

    def deliver(self, notifying: "Notifying") -> None:
        """Send queued notifications."""
        del notifying


class StoredPast(Past):
    """What a store knows of earlier runs."""

    def __init__(self, store: "Store", project: Project, storing: Storing) -> None:
        self._store, self._source, self._storing = store, source_of(project), storing
        self._feedback = project.feedback
        self._earlier: dict[str, Earlier] = dict(store.counters(self._source)) if storing.has_since else {}

    def window_s(self, devices: Sequence[Device], wanted_s: float) -> float:
        """Return how long to look at counters: not at all when an earlier run has those of each device."""
        missing = [device.name for device in devices if device.name not in self._earlier]
        if self._storing.has_since and missing and wanted_s:
            what = f"no earlier run has counters of {counted(len(missing), 'device')}"
            self._feedback.note(f"{what}: there they are judged over {wanted_s:g} s")
        return wanted_s if missing else 0.0

    def scene(self, scene: CheckContext) -> CheckContext:
        """Return a scene whose counters are those since the last run, where that was asked for."""
        history = StoredHistory(lambda *about: self._store.readings(self._source, *about), scene.snapshot)
        return replace(scene, snapshot=since(scene.snapshot, self._earlier), history=history)

    def save(
        self,
        scene: CheckContext,
        judged: Judged,
        intent: Intent,
        tell: "Decide | None" = None,
        extent: Extent | None = None,
    ) -> SavedRun:
        """Keep a run and its notifications, and return what changed since the one before."""
        run = run_of(self._source, scene, judged.judgement, judged.layers, digest(intent), judged.exit_code)
        # A snapshot may hold devices that were not judged: they have no new state.
        devices = {name: seen.observation for name, seen in scene.devices.items()}
        snapshot = replace(scene.snapshot, devices=devices)
        saved = self._store.save(
            run,
            judged.judgement,
            snapshot,
            keep_s=self._storing.keep_s,
            tell=tell,
            extent=extent,
            silences=lambda known, states: remembered(
                known, [one.silence for one in judged.silences], judged.judgement, states, time.time()
            ),
        )
        self.kept = self._store, run
        return saved

    def open_now(self) -> OpenNow:
        """Return what is open after the runs that are kept."""
        return self._store.open_now(self._source)

    def healed(self, silences: Iterable[Silence]) -> frozenset[str]:
        """Return the acknowledgements whose finding was well since they were made."""
        return healed(self._store.silences(self._source), silences)

    def deliver(self, notifying: "Notifying") -> None:
        """Send queued notifications."""
        notifying.deliver(self._store.outbox_of(self._source))


def digest(intent: Intent) -> str:
    """Return a digest of an intent."""
    return hashlib.sha256(json.dumps(intent.model_dump(mode="json"), sort_keys=True).encode()).hexdigest()[:16]


@contextmanager
def past(storing: Storing, project: Project) -> Iterator[Past]:
    """Open the store, if there is to be one."""
    if not storing.where:
        yield Past()
        return
    # Here, since it loads the database library, and most runs have no store.
    from netkit.store.lock import alone  # noqa: PLC0415
    from netkit.store.store import open_store  # noqa: PLC0415

    if storing.where == usual_file():
        _make_folder(Path(storing.where).parent)
    with open_store(storing.where) as store, alone(storing.where, source_of(project)):
        yield StoredPast(store, project, storing)


def _make_folder(folder: Path) -> None:
    try:
        make_folder(folder)
    except OSError as error:
        raise OutputError(Problem(f"{folder} cannot be made: {error.strerror}", "name a file with --store")) from None
