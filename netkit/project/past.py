"""The store of a run of checks: supplies what earlier runs observed, and saves this run."""

import hashlib
import json
import os
import re
import time
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from netkit.design.select import Device
from netkit.errors import OutputError, Problem, UsageError
from netkit.intent import Intent
from netkit.judge import CheckContext
from netkit.judge.delta import Earlier, since
from netkit.judge.run import Judgement
from netkit.judge.silence import Silence
from netkit.private import make_folder
from netkit.project.project import Project
from netkit.project.runs import LAST, state_folder
from netkit.report.judgement_view import Judged
from netkit.report.plan_view import counted
from netkit.store import CheckRun, Source, run_of
from netkit.store.open_cause import OpenNow
from netkit.store.record import USUAL_RETENTION, Retention, StoredHistory, short
from netkit.store.state import Extent, SavedRun, healed, remembered

if TYPE_CHECKING:
    from netkit.project.notifying import Notifying
    from netkit.store.outbox import Decide
    from netkit.store.store import Store


VARIABLE = "NETKIT_STORE"
USUAL = "."
"""`--store` without a value: the one of $NETKIT_STORE, or a file beside the runs of deploys."""
UNITS_S = {"h": 3600.0, "d": 86_400.0}
KEPT = "90d"
KINDS = frozenset({"runs", "findings", "readings"})
KEEP = re.compile(r"(?P<number>[1-9]\d{0,4})(?P<unit>[hd])")


@dataclass(frozen=True, slots=True)
class Storing:
    """The options about the store."""

    where: str = ""
    """The file or URL of the store; empty: none."""
    has_since: bool = False
    keep: Retention = USUAL_RETENTION
    has_counters: bool = True
    """Whether the store has the counters of earlier runs; false if they stay at sites."""
    sites: Mapping[str, Collection[str]] = field(default_factory=dict)
    """The devices at each site of a fabric at several: what a run found there is saved under the site too."""

    @classmethod
    def of(cls, store: str, since: str, keep: str = KEPT) -> "Storing":
        """Validate the options."""
        if since not in {"", LAST}:
            raise UsageError(Problem(f"--since {since!r} is not supported", f"use --since {LAST}"))
        where = place_of(store)
        if since and not where:
            raise UsageError(Problem("--since last needs a store", f"give --store too, or set {VARIABLE}"))
        return cls(where, bool(since), retention_of(keep))


def retention_of(keep: str) -> Retention:
    """Parse `90d`, or a time for some kinds: `runs=365d,findings=30d`."""
    if "=" not in keep:
        return Retention.of_all(_span_s(keep, keep))
    found = dict(part.partition("=")[::2] for part in keep.split(","))
    if unknown := sorted(found.keys() - KINDS):
        what = f"--keep {keep!r}: unknown kind {unknown[0]!r}"
        raise UsageError(Problem(what, f"use {', '.join(sorted(KINDS))}, each with a time"))
    return replace(USUAL_RETENTION, **{f"{kind}_s": _span_s(span, keep) for kind, span in found.items()})


def _span_s(span: str, keep: str) -> float:
    found = KEEP.fullmatch(span)
    if found is None:
        what = f"--keep {keep!r}: {span!r} is not a duration" if span != keep else f"--keep {keep!r} is not a duration"
        raise UsageError(Problem(what, "use days or hours, such as 90d or 12h"))
    return int(found["number"]) * UNITS_S[found["unit"]]


def place_of(store: str) -> str:
    """The store to use: the option, then the environment; empty if neither names one."""
    chosen = os.environ.get(VARIABLE, "")
    return store if store not in {"", USUAL} else chosen or (usual_file() if store else "")


def usual_file() -> str:
    """The default store."""
    return str(state_folder() / "store.db")


def source_of(project: Project) -> Source:
    """The owner of the runs: the fabric, at a site of a fleet if it is there, or a lab of it."""
    return Source(project.fabric.name, project.lab, project.site)


def extent_of(context: CheckContext, judged: Judged, *, has_all_checks: bool) -> Extent:
    """The devices and checks that exist; states of anything else are dropped."""
    checks = frozenset(map(short, judged.layers)) if has_all_checks else None
    return Extent(frozenset(map(short, context.fabric.names)), checks)


class Past:
    """No store: nothing is known of earlier runs, and nothing is saved."""

    kept: "tuple[Store, CheckRun] | None" = None
    """The saved run, and its store."""
    counted_s: Mapping[str, float] | None = None
    """When the counters of each device were read that were used last; None if only those of this run are judged."""

    def window_s(self, devices: Sequence[Device], wanted_s: float) -> float:
        del devices
        return wanted_s

    def with_history(self, context: CheckContext) -> CheckContext:
        return context

    def save(
        self,
        context: CheckContext,
        judged: Judged,
        intent: Intent,
        decide: "Decide | None" = None,
        extent: Extent | None = None,
    ) -> SavedRun:
        del context, judged, intent, decide, extent
        return SavedRun()

    def open_now(self) -> OpenNow:
        return OpenNow()

    def healed(self, silences: Iterable[Silence]) -> frozenset[str]:
        del silences
        return frozenset()

    def deliver(self, notifying: "Notifying") -> None:
        del notifying


class StoredPast(Past):
    """Earlier runs as a store has them."""

    def __init__(self, store: "Store", project: Project, storing: Storing) -> None:
        self._store, self._source, self._storing = store, source_of(project), storing
        self._feedback = project.feedback
        self._earlier: dict[str, Earlier] = {}
        if storing.has_since and storing.has_counters:
            self._earlier = dict(store.counters(self._source))
        elif storing.has_since:
            self.counted_s = store.counted_s(self._source)

    def window_s(self, devices: Sequence[Device], wanted_s: float) -> float:
        """How long to watch counters: 0 if an earlier run has those of each device."""
        missing = [device.name for device in devices if device.name not in self._earlier]
        if self._storing.has_since and missing and wanted_s:
            what = f"no earlier run has counters of {counted(len(missing), 'device')}"
            self._feedback.note(f"{what}: they are judged over {wanted_s:g} s")
        return wanted_s if missing else 0.0

    def with_history(self, context: CheckContext) -> CheckContext:
        """Add the history, and with --since compute counters since the last run."""
        history = StoredHistory(lambda *about: self._store.readings(self._source, *about), context.snapshot)
        return replace(context, snapshot=since(context.snapshot, self._earlier), history=history)

    def save(
        self,
        context: CheckContext,
        judged: Judged,
        intent: Intent,
        decide: "Decide | None" = None,
        extent: Extent | None = None,
    ) -> SavedRun:
        """Save a run and its notifications, and return what changed since the run before.

        What it found at each site is saved apart, without notifications.
        """
        about = digest(intent)

        def save(source: Source, names: Collection[str], found: Judgement, **more: Any) -> tuple[CheckRun, SavedRun]:
            # A snapshot may hold devices that were not judged: their state does not change.
            devices = {name: seen for name, seen in context.devices.items() if name in names}
            run = run_of(source, context.snapshot.taken_s, devices.values(), found, judged.layers, about)
            seen = {name: one.observation for name, one in devices.items()}
            silences = [one.silence for one in judged.silences]
            saved = self._store.save(
                run,
                found,
                replace(context.snapshot, devices=seen),
                keep=self._storing.keep,
                silences=lambda known, states: remembered(known, silences, found, states, time.time()),
                **more,
            )
            return run, saved

        run, saved = save(self._source, context.devices, judged.judgement, decide=decide, extent=extent)
        self.kept = self._store, run
        for site, names in self._storing.sites.items():
            if not context.devices.keys().isdisjoint(names):
                here = extent and replace(extent, devices=frozenset(map(short, names)))
                save(replace(self._source, site=site), names, judged.judgement.part(names), extent=here)
        return saved

    def open_now(self) -> OpenNow:
        """The causes that are open after the saved runs."""
        return self._store.open_now(self._source)

    def healed(self, silences: Iterable[Silence]) -> frozenset[str]:
        """The acknowledgements whose finding has passed since they were made."""
        return healed(self._store.silences(self._source), silences)

    def deliver(self, notifying: "Notifying") -> None:
        notifying.deliver(self._store.outbox_of(self._source))


def digest(intent: Intent) -> str:
    return hashlib.sha256(json.dumps(intent.model_dump(mode="json"), sort_keys=True).encode()).hexdigest()[:16]


@contextmanager
def past(storing: Storing, project: Project) -> Iterator[Past]:
    """Open the store if one is set."""
    if not storing.where:
        yield Past()
        return
    # Imported here because it loads the database library, and most runs have no store.
    from netkit.store.database import alone  # noqa: PLC0415
    from netkit.store.store import open_store  # noqa: PLC0415

    if storing.where == usual_file():
        folder = Path(storing.where).parent
        try:
            make_folder(folder)
        except OSError as error:
            what = f"cannot create {folder}: {error.strerror}"
            raise OutputError(Problem(what, "name a file with --store")) from None
    with open_store(storing.where) as store, alone(storing.where, source_of(project)):
        yield StoredPast(store, project, storing)


def chosen_run(runs: Sequence[CheckRun], name: str) -> CheckRun:
    """Find a run by its name, the beginning of it, or `last`."""
    found = [one for one in runs if one.name.startswith(name)] if name != LAST else list(runs[:1])
    if len(found) == 1:
        return found[0]
    if found:
        raise UsageError(Problem(f"{len(found)} runs begin with {name!r}", "give more of the name"))
    raise UsageError(Problem(f"no stored run {name!r}", "netkit history --checks lists them, with --lab of a lab"))
