"""The current state of the fabric: what is open, what could not be read, what is deployed.

Both the first page and the API show it.
"""

import hashlib
import time
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from statistics import median
from typing import Any

from netkit.deploy import RecentRun, RecentRuns
from netkit.errors import StoreError
from netkit.judge import Silenced
from netkit.report.judgement_view import silence_text
from netkit.report.page.device import cause_document
from netkit.report.page.table import cut, name
from netkit.report.page.view import OF_VERDICT, HealthState
from netkit.report.plan_view import counted
from netkit.serve.fleet_state import FleetState
from netkit.serve.record import FabricStatus, Records
from netkit.serve.rounds import ScheduledRound
from netkit.serve.schedule import Agenda, Diary
from netkit.serve.silencing import Silencer
from netkit.store import CheckRun, CheckState
from netkit.store.open_cause import OpenCause, OpenNow
from netkit.store.partition import StoredPage

STATES = {
    HealthState.PASS: "clean",
    HealthState.UNREACHED: "not known to be clean",
    HealthState.UNKNOWN: "nothing could be judged",
}
ENDS = {
    0: "done, nothing failed",
    1: "something failed",
    3: "it could not run",
    4: "a device was not reached",
    5: "another round of the fabric was running",
    70: "a defect of netkit",
}
MINUTE_S, HOUR_S, DAY_S = 60, 3600, 86_400


def state_of(run: CheckRun) -> HealthState:
    """The state of the fabric in a run; never healthy if nothing, or only a part, was judged."""
    counts = run.counts
    if not counts.examined:
        return HealthState.UNKNOWN
    states = (
        (counts.errors, HealthState.ERROR),
        (counts.failures, HealthState.FAIL),
        (counts.warnings, HealthState.WARN),
    )
    bad = next((state for number, state in states if number), None)
    return bad or (HealthState.UNREACHED if counts.unreached else HealthState.PASS)


def verdict_of(run: CheckRun) -> str:
    """Describe the result of a run."""
    counts, state = run.counts, state_of(run)
    if state in STATES:
        return STATES[state] + (f" but for {counts.silenced} silenced" if counts.silenced else "")
    words = (
        (counts.errors, "error"),
        (counts.failures, "fail"),
        (counts.warnings, "warn"),
        (counts.silenced, "silenced"),
    )
    return ", ".join(f"{number} {word}" for number, word in words if number)


def reached_of(run: CheckRun) -> str:
    """Describe how many devices were reached."""
    return f"{run.devices - run.counts.unreached} of {counted(run.devices, 'device')}"


def end_of(one: ScheduledRound) -> str:
    """Describe how a round ended."""
    if one.is_running:
        return "running"
    if one.exit_code is None:
        return one.text or "ended from outside"
    if one.exit_code < 0:
        return f"ended by signal {-one.exit_code}"
    return ENDS.get(one.exit_code, f"exit code {one.exit_code}")


def moment(at_s: float) -> str:
    """Format a time for people, in UTC."""
    return time.strftime("%Y-%m-%d %H:%M:%S UTC", time.gmtime(at_s))


def stamp(at_s: float) -> str:
    """Format a time for programs."""
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(at_s))


def length(span_s: float) -> str:
    for unit_s, letter in ((DAY_S, "d"), (HOUR_S, "h"), (MINUTE_S, "min")):
        if span_s >= unit_s and span_s % unit_s == 0:
            return f"{span_s / unit_s:.0f} {letter}"
    return f"{span_s:.0f} s" if span_s >= 10 else f"{span_s:.1f} s"


def ago(at_s: float, now_s: float) -> str:
    """Format a time relative to now."""
    return f"{rough(now_s - at_s)} ago" if now_s >= at_s else f"in {rough(at_s - now_s)}"


def rough(span_s: float) -> str:
    """Format a duration in its largest unit."""
    for unit_s, letter in ((DAY_S, "d"), (HOUR_S, "h"), (MINUTE_S, "min")):
        if span_s >= 2 * unit_s:
            return f"{span_s / unit_s:.0f} {letter}"
    return f"{max(span_s, 0):.0f} s"


@dataclass(frozen=True, slots=True)
class OwnChecks:
    """What the server does itself for a fabric."""

    agenda: Agenda
    diary: Callable[[], Diary]
    next_s: Callable[[], float]
    metrics: Callable[[], str]
    """The metrics of the newest check, for Prometheus; empty before the first."""
    make: Callable[[CheckRun], Awaitable[None]]
    """Makes the report on a run again, if it has been removed."""
    started_s: float
    deploys: RecentRuns
    silencer: Silencer
    has_backup: bool = False
    fleet: Callable[[], FleetState] | None = None
    """The sites that read its devices; None if this machine does."""
    is_part: bool = False
    """Whether this is one site of a fabric at several, and is checked with the whole."""


@dataclass(frozen=True, slots=True)
class ServedFabric:
    """A fabric of which the server has a page."""

    records: Records
    own: OwnChecks | None = None
    """None if another server checks it, and this one knows it from the store."""
    base: str = ""
    """The address of its page; empty for the first page."""

    @property
    def fabric(self) -> str:
        return self.records.source.fabric

    @property
    def lab(self) -> str:
        return self.records.source.lab

    @property
    def site(self) -> str:
        return self.records.source.site

    @property
    def diary(self) -> Diary:
        return Diary() if self.own is None else self.own.diary()

    @property
    def api(self) -> str:
        """The address of its API."""
        return f"{API}{self.base}"

    def every_s(self, runs: Sequence[CheckRun]) -> float:
        """How often it is checked: by the schedule, or judging by the last runs, newest first."""
        if self.own is not None:
            return self.own.agenda.every_s
        times = [one.taken_s for one in runs[:MOST_GAPS]]
        gaps = [later - earlier for later, earlier in pairwise(times) if later > earlier]
        return max(float(round(median(gaps))), SHORTEST_S) if gaps else UNKNOWN_S


API = "/api/v1"
MOST_GAPS = 20
"""The runs from which the interval of a fabric is derived that another server checks."""
SHORTEST_S, UNKNOWN_S = 60.0, 86_400.0
"""The shortest such interval, and that of a fabric that was checked once."""
MOST_CAUSES = 100
MOST_UNREACHED = 100
MOST_DEPLOYS = 5
STALE_INTERVALS = 2.5
"""Intervals without a check after which the state is unknown; the alert NetkitScheduleStopped uses the same."""
NOTHING = FabricStatus(OpenNow(), StoredPage((), 0))


@dataclass(frozen=True, slots=True)
class CurrentState:
    """What is known of the fabric, and how reliably."""

    latest: CheckRun | None
    whole: CheckRun | None
    """The last run that covers everything the schedule covers; later ones may cover a part."""
    status: FabricStatus
    store_error: StoreError | None
    is_stale: bool
    every_s: float

    @classmethod
    def of(cls, served: ServedFabric, now_s: float) -> "CurrentState":
        runs, store_error = served.records.known()
        latest = runs[0] if runs else None
        whole = _whole(runs, served.diary)
        status = NOTHING
        if latest is not None:
            try:
                status = served.records.status(latest)
            except StoreError as error:
                store_error = error
        every_s = served.every_s(runs)
        is_stale = whole is not None and now_s - whole.taken_s > STALE_INTERVALS * every_s
        return cls(latest, whole, status, store_error, is_stale, every_s)

    @property
    def state(self) -> HealthState:
        """The state of the fabric; it is never healthy without a recent check."""
        open_now = self.status.open_now
        if open_now.counted:
            return max((OF_VERDICT[one.group.verdict] for one in open_now.counted), key=list(HealthState).index)
        if self.whole is None or self.store_error is not None or self.is_stale or not self.whole.counts.examined:
            return HealthState.UNKNOWN
        return HealthState.UNREACHED if open_now.unreached else HealthState.PASS

    @property
    def text(self) -> str:
        open_now, silenced = self.status.open_now, self.status.open_now.counts["silenced"]
        if self.whole is None:
            return "not known" if self.store_error is not None else "no run yet"
        parts = [f"{counted(len(open_now.counted), 'cause')} open"] if open_now.counted else []
        unreached = open_now.counts["unreached"]
        parts += [f"{counted(unreached, 'device')} not reached"] if unreached else []
        if parts:
            return ", ".join([*parts, f"{silenced} silenced"] if silenced else parts)
        if self.is_stale or self.store_error is not None:
            return "not known now"
        if not self.whole.counts.examined:
            return "nothing could be judged"
        return f"nothing open but {silenced} silenced" if silenced else "nothing open"


def _whole(runs: Sequence[CheckRun], diary: Diary) -> CheckRun | None:
    """The newest run that covers at least as much as the last one of the schedule."""
    named = {one.run for one in diary.rounds if one.kind == "check"}
    scheduled = next((one for one in runs if one.name in named), None)
    if scheduled is None:
        return runs[0] if runs else None
    return next(
        one for one in runs if one.devices >= scheduled.devices and one.layers.keys() >= scheduled.layers.keys()
    )


def now(served: ServedFabric) -> dict[str, Any]:
    """The current state of the fabric."""
    at_s = time.time()
    look = CurrentState.of(served, at_s)
    open_now, well = look.status.open_now, look.status.well
    causes = [cause(one, look) for one in open_now.causes[:MOST_CAUSES]]
    unreached = [missed(one, open_now.excused) for one in open_now.unreached[:MOST_UNREACHED]]
    return {
        "fabric": name(served.fabric),
        "lab": name(served.lab),
        "site": name(served.site),
        "is_scheduled": served.own is not None,
        "state": look.state.value,
        "text": look.text,
        "counts": dict(open_now.counts),
        "looked": _looked(look.whole),
        "later_part": _looked(look.latest) if look.latest is not look.whole else None,
        "every_s": look.every_s,
        "next_s": None if served.own is None else served.own.next_s(),
        "checking_since_s": next(
            (one.begun_s for one in reversed(served.diary.rounds) if (one.kind == "check" and one.is_running)), None
        ),
        "unknown": [*_unknown(look, served.diary), *_of_fleet(served.own, at_s)],
        "causes": causes,
        "causes_left_out": len(open_now.causes) - len(causes),
        "places_left_out": open_now.left_out,
        "unreached": unreached,
        "unreached_left_out": len(open_now.unreached) - len(unreached),
        "well": [
            {
                "check": name(one.key.check),
                "device": name(one.key.device),
                "place": name(one.key.place),
                "text": cut(one.text),
            }
            for one in well.items
        ],
        "well_left_out": well.total - len(well.items),
        "deploys": deploys(served),
    }


def _looked(run: CheckRun | None) -> dict[str, Any] | None:
    if run is None:
        return None
    counts = run.counts
    about = {"run": run.name, "taken_s": run.taken_s, "devices": run.devices, "checks": len(run.layers)}
    return {**about, "unreached": counts.unreached, "examined": counts.examined, "skipped": counts.skipped}


def _unknown(look: CurrentState, diary: Diary) -> Iterator[dict[str, Any]]:
    """Yield the reasons why something is unknown now."""
    if look.store_error is not None:
        yield _reason("store", f"the store cannot be read: {look.store_error}")
    if look.is_stale and look.whole is not None:
        yield _reason("stale", "the last check of the whole fabric is too old to rely on", look.whole.taken_s)
    for one in failed(diary):
        lines = [f"the {one.kind} failed to run: {end_of(one)}", *one.text.splitlines()[-10:]]
        yield _reason("round", "\n".join(lines if one.exit_code is not None else lines[:1]), one.begun_s)
    done_s = next((one.begun_s for one in reversed(diary.rounds) if one.kind == "check" and one.is_work_done), 0.0)
    for gap in reversed(diary.missed):
        if gap.to_s > done_s:
            yield _reason("missed", f"{counted(gap.count, 'check')} missed: {gap.reason}", gap.from_s)


def _of_fleet(own: OwnChecks | None, now_s: float) -> Iterator[dict[str, Any]]:
    """Yield why something is unknown of the sites that read the devices."""
    if own is not None and own.fleet is not None:
        state = own.fleet()
        for problem in state.problems(now_s):
            yield _reason("fleet", problem, state.asked_s or None)


def failed(diary: Diary) -> Iterator[ScheduledRound]:
    """Yield the rounds that did not work since the last one that did, latest first."""
    for one in reversed(diary.rounds):
        if one.is_work_done and one.kind == "check":
            return
        if not one.is_running and not one.is_cut_short and not one.is_work_done:
            yield one


def _reason(kind: str, text: str, since_s: float | None = None) -> dict[str, Any]:
    return {"kind": kind, "text": "\n".join(map(cut, text.splitlines())), "since_s": since_s}


def cause(one: OpenCause, look: CurrentState) -> dict[str, Any]:
    """An open cause as a report has it, and since when it is open."""
    named = hashlib.sha256(one.keys[0].id.encode("utf-8", "replace")).hexdigest()[:12]
    latest_s = look.latest.taken_s if look.latest is not None else 0.0
    return {
        "id": named,
        **cause_document(one.group, one.layer),
        "since_s": one.since_s,
        "seen_s": one.seen_s,
        "run": one.run,
        "is_new": one.since_s >= latest_s,
        "is_seen": one.seen_s >= latest_s,
    }


def missed(one: CheckState, excused: Mapping[str, Silenced]) -> dict[str, Any]:
    """An unreached device, and who silenced that."""
    mark = excused.get(one.key.device)
    silenced = "" if mark is None else cut(silence_text(mark))
    about = {"device": name(one.key.device), "reason": cut(one.text), "silenced": silenced}
    return {**about, "since_s": one.since_s, "seen_s": one.seen_s}


def deploys(served: ServedFabric) -> list[dict[str, Any]]:
    """The last deploys, newest first; a running one comes first."""
    return [] if served.own is None else [_deploy(one) for one in served.own.deploys.read(MOST_DEPLOYS)]


def _deploy(one: RecentRun) -> dict[str, Any]:
    first = one.provenance[0] if one.provenance else None
    state, text = _result(one)
    return {
        "run": one.run,
        "state": state,
        "text": cut(text),
        "began_s": one.began_s or None,
        "stepped_s": one.stepped_s or None,
        "who": name(first.who) if first else "",
        "what": name(first.what) if first else "",
        "reason": cut(first.reason) if first else "",
        "commit": name(first.commit) if first else "",
        "resumed_by": [name(each.who) for each in one.provenance[1:]],
        "wave": one.wave,
        "waves": one.waves,
        "devices": dict(one.results),
        "busy": list(map(name, one.busy)),
    }


def _result(one: RecentRun) -> tuple[str, str]:
    """The state of a run as a keyword and as a text."""
    if one.damage:
        return "unknown", f"cannot be read: {one.damage}"
    if one.superseded:
        return "superseded", f"superseded by {one.superseded}"
    if one.outcome is None:
        if one.is_running is None:
            return "unknown", "not finished; this machine cannot see whether it still runs"
        return ("running", "running now") if one.is_running else ("unfinished", "not finished, and not running")
    if one.outcome.exit_code == 0:
        return "done", "done"
    return "failed", f"stopped: {one.outcome.stopped}" if one.outcome.stopped else "failed"
