"""The JSON API: the data of the pages, read-only. Each function answers one path with plain values."""

import time
from dataclasses import asdict
from typing import Any

from netkit import __version__
from netkit.judge import Finding, Verdict
from netkit.judge.cause import Layers
from netkit.report.judgement_json import silence_document
from netkit.report.judgement_view import silence_text
from netkit.report.page.table import cut, name
from netkit.serve import now as current
from netkit.serve import now as wording
from netkit.serve.now import OwnChecks, ServedFabric
from netkit.serve.query import Query, QueryError, Slice, slice_of, sliced
from netkit.serve.record import LATEST
from netkit.store import CheckRun, CheckState
from netkit.store.partition import StoredPage

Given = list[tuple[str, str]]
MOST_EVIDENCE = 20
MOST_JUDGED = 1_000_000
"""Results of a run that are read for a page."""


class MissingError(LookupError):
    """The requested item does not exist."""


def status(served: ServedFabric, given: Given) -> dict[str, Any]:
    """Report how the schedule runs."""
    Query.of(given)
    own = own_checks(served)
    diary = own.diary()
    return {
        "netkit": __version__,
        "fabric": name(served.fabric),
        "lab": name(served.lab),
        "site": name(served.site),
        "every_s": own.agenda.every_s,
        "next_s": own.next_s(),
        "started_s": own.started_s,
        "rounds_total": diary.rounds_total,
        "missed_total": diary.missed_total,
        "failed_total": diary.failed_total,
        "clock": diary.clock,
        "rounds": [
            {**asdict(one), "text": cut(one.text), "end": wording.end_of(one)} for one in reversed(diary.rounds)
        ],
        "missed": [{**asdict(one), "reason": cut(one.reason)} for one in reversed(diary.missed)],
    }


def own_checks(served: ServedFabric) -> OwnChecks:
    """What this server does for a fabric; MissingError if another one checks it."""
    if served.own is None:
        raise MissingError(f"{name(served.fabric)} is not checked by this server: ask the one that does")
    return served.own


def now(served: ServedFabric, given: Given) -> dict[str, Any]:
    """The data of the first page."""
    Query.of(given)
    return current.now(served)


def causes(served: ServedFabric, given: Given) -> dict[str, Any]:
    """List all open causes, in order of repair."""
    query = Query.of(given, "device", "check", "verdict", "limit", "offset")
    look, verdict = current.CurrentState.of(served, time.time()), query.verdict()
    if look.store_error is not None:
        raise look.store_error
    kept = [
        one
        for one in look.status.open_now.causes
        if verdict in {None, one.group.verdict}
        and any(query.matches("device", key.device) and query.matches("check", key.check) for key in one.keys)
    ]
    return _paged(served, "causes", sliced(query, kept, lambda one: current.cause(one, look)))


def deploys(served: ServedFabric, given: Given) -> dict[str, Any]:
    Query.of(given)
    own_checks(served)
    return {"items": current.deploys(served)}


def runs(served: ServedFabric, given: Given) -> dict[str, Any]:
    """List the stored runs, newest first."""
    query = Query.of(given, "limit", "before")
    before, size = query.text("before"), query.size()
    last = served.records.run(before) if before else None
    if before and last is None:
        raise QueryError(f"no run {before!r} to continue after")
    found = served.records.runs(size + 1, last)
    following = query.following(before=found[size - 1].name) if len(found) > size else ""
    return _paged(served, "runs", Slice([run(one) for one in found[:size]], served.records.number(), following))


def run(one: CheckRun) -> dict[str, Any]:
    """Describe a stored run, with the keys of `netkit history --checks`."""
    keys = ("taken_s", "window_s", "devices", "exit_code", "intent", "version")
    return {
        "run": one.name,
        "fabric": name(one.source.fabric),
        "lab": name(one.source.lab),
        **{key: getattr(one, key) for key in keys},
        "verdict": one.verdict.word,
        "state": wording.state_of(one).value,
        "text": wording.verdict_of(one),
        **asdict(one.counts),
        "checks": sorted(map(name, one.layers)),
    }


def chosen(served: ServedFabric, wanted: str) -> CheckRun:
    """Find a run by its name, or the latest."""
    found = served.records.run(wanted)
    if found is None:
        raise MissingError("no run is stored yet" if wanted == LATEST else f"no stored run {wanted!r}")
    return found


def findings(served: ServedFabric, given: Given) -> dict[str, Any]:
    """List the findings of a run; skipped ones only on request."""
    query = Query.of(given, "run", "device", "check", "place", "verdict", "limit", "offset")
    one = chosen(served, query.text("run") or LATEST)
    if query.verdict() is Verdict.SKIPPED:
        found = _skipped(served, one, query)
    else:
        found = served.records.findings(one, query.places(), query.size(), query.offset())
    part = slice_of(query.pinned(run=one.name), found, lambda each: _finding(each, one.layers))
    return {"run": one.name, **_paged(served, "findings", part)}


def _skipped(served: ServedFabric, run: CheckRun, query: Query) -> StoredPage[Finding]:
    """What a run could not judge, of which only whole judgements know."""
    if run.devices * len(run.layers) > MOST_JUDGED:
        raise QueryError(f"the run is too large to look for what it skipped: netkit history --checks {run.name}")
    found = (one for one in served.records.skipped(run) if _matches(query, one))
    kept, number = [], 0
    for number, one in enumerate(found, 1):
        if query.offset() < number <= query.offset() + query.size():
            kept.append(one)
    return StoredPage(tuple(kept), number)


def _matches(query: Query, one: Finding) -> bool:
    return all(query.matches(key, getattr(one, key)) for key in ("device", "check", "place"))


def _finding(one: Finding, layers: Layers) -> dict[str, Any]:
    return {
        "check": name(one.check),
        "layer": layers.get(one.check, ""),
        "device": name(one.device),
        "place": name(one.place),
        "verdict": one.verdict.word,
        "text": cut(one.text),
        "remedy": cut(one.remedy),
        "silenced": "" if one.silenced is None else cut(silence_text(one.silenced)),
        "evidence": {name(key): cut(value) for key, value in one.evidence[:MOST_EVIDENCE]},
    }


def states(served: ServedFabric, given: Given) -> dict[str, Any]:
    """List the state of each check at each place where it ever found something; by default the bad ones."""
    query = Query.of(given, "device", "check", "place", "verdict", "limit", "offset")
    found = served.records.states(query.places(), query.size(), query.offset())
    return _paged(served, "states", slice_of(query, found, _state))


def _state(one: CheckState) -> dict[str, Any]:
    return {
        "check": name(one.key.check),
        "device": name(one.key.device),
        "place": name(one.key.place),
        "verdict": one.verdict.word,
        "since_s": one.since_s,
        "seen_s": one.seen_s,
        "text": cut(one.text),
    }


def silences(served: ServedFabric, given: Given) -> dict[str, Any]:
    """List the silences, and how many findings of the newest run each covers."""
    Query.of(given)
    silencer = own_checks(served).silencer
    found = [silence_document(one) for one in silencer.states()]
    return {"is_changeable": silencer.is_allowed, "items": found}


def devices(report: dict[str, Any]) -> dict[str, Any]:
    """List the devices of a report, without their facts."""
    keys = ("name", "state", "role", "pod", "platform", "model", "examined", "failure")
    return {"run": report["run"], "items": [{key: one[key] for key in keys} for one in report["devices"]]}


def device(report: dict[str, Any], wanted: str) -> dict[str, Any]:
    """Everything in a report about a device, and the causes that involve it."""
    found = next((one for one in report["devices"] if one["name"] == wanted), None)
    if found is None:
        raise MissingError(f"no device {wanted[:80]!r} in the run {report['run']}")
    if "causes" in found:
        involved = [report["causes"][number] for number in found["causes"]]
    else:  # a report of an earlier netkit
        involved = [cause for cause in report["causes"] if found["name"] in cause["devices"]]
    return {"run": report["run"], "device": found, "causes": involved}


def trends(report: dict[str, Any]) -> dict[str, Any]:
    return {"run": report["run"], **report["trends"]}


def _paged(served: ServedFabric, path: str, part: Slice) -> dict[str, Any]:
    following = f"{served.api}/{path}?{part.following}" if part.following else None
    return {"items": part.items, "total": part.total, "next": following}
