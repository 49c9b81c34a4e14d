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
from netkit.serve import wording
from netkit.serve.now import Site
from netkit.serve.query import Query, Slice, after, sliced
from netkit.serve.record import LATEST, unhealthy
from netkit.store import CheckRun, CheckState

ROOT = "/api/v1"
Given = list[tuple[str, str]]
MOST_EVIDENCE = 20


class MissingError(LookupError):
    """The requested item does not exist."""


def status(site: Site, given: Given) -> dict[str, Any]:
    """Report how the schedule runs."""
    Query.of(given)
    diary = site.diary()
    return {
        "netkit": __version__,
        "fabric": name(site.fabric),
        "lab": name(site.lab),
        "every_s": site.agenda.every_s,
        "next_s": site.next_s(),
        "started_s": site.started_s,
        "rounds_total": diary.rounds_total,
        "missed_total": diary.missed_total,
        "failed_total": diary.failed_total,
        "clock": diary.clock,
        "rounds": [
            {**asdict(one), "text": cut(one.text), "end": wording.end_of(one)} for one in reversed(diary.rounds)
        ],
        "missed": [{**asdict(one), "reason": cut(one.reason)} for one in reversed(diary.missed)],
    }


def now(site: Site, given: Given) -> dict[str, Any]:
    """Return the data of the first page."""
    Query.of(given)
    return current.now(site)


def causes(site: Site, given: Given) -> dict[str, Any]:
    """List all open causes, in order of repair."""
    query = Query.of(given, "device", "check", "verdict", "limit", "offset")
    look, verdict = current.CurrentState.of(site, time.time()), query.verdict()
    if look.trouble is not None:
        raise look.trouble
    kept = [
        one
        for one in look.status.open_now.causes
        if verdict in {None, one.trouble.verdict}
        and any(query.matches("device", key.device) and query.matches("check", key.check) for key in one.keys)
    ]
    return _paged("causes", sliced(query, kept, lambda one: current.cause(one, look)))


def deploys(site: Site, given: Given) -> dict[str, Any]:
    Query.of(given)
    return {"items": current.deploys(site)}


def runs(site: Site, given: Given) -> dict[str, Any]:
    """List the stored runs, newest first."""
    query = Query.of(given, "limit", "before")
    return _paged("runs", after(query, site.records.runs(), lambda one: one.name, run))


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


def chosen(site: Site, wanted: str) -> CheckRun:
    """Find a run by its name, or the latest."""
    found = site.records.run(wanted)
    if found is None:
        raise MissingError("no run is stored yet" if wanted == LATEST else f"no stored run {wanted!r}")
    return found


def findings(site: Site, given: Given) -> dict[str, Any]:
    """List the findings of a run; skipped ones only on request."""
    query = Query.of(given, "run", "device", "check", "place", "verdict", "limit", "offset")
    one = chosen(site, query.text("run") or LATEST)
    found = site.records.found(one)
    kept = [finding for finding in found.findings if _matches(query, finding)]
    kept.sort(key=lambda finding: -finding.verdict)
    part = sliced(query.pinned(run=one.name), kept, lambda each: _finding(each, found.layers))
    return {"run": one.name, **_paged("findings", part)}


def _matches(query: Query, one: Finding) -> bool:
    verdict = query.verdict()
    has_verdict = one.verdict > Verdict.SKIPPED if verdict is None else one.verdict is verdict
    return has_verdict and all(query.matches(key, getattr(one, key)) for key in ("device", "check", "place"))


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


def states(site: Site, given: Given) -> dict[str, Any]:
    """List the state of each check at each place where it ever found something; by default the bad ones."""
    query = Query.of(given, "device", "check", "place", "verdict", "limit", "offset")
    verdict = query.verdict()
    found = site.records.states()
    wanted = list(unhealthy(found)) if verdict is None else [one for one in found if one.verdict is verdict]
    keys = ("device", "check", "place")
    kept = [one for one in wanted if all(query.matches(key, getattr(one.key, key)) for key in keys)]
    return _paged("states", sliced(query, kept, _state))


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


def silences(site: Site, given: Given) -> dict[str, Any]:
    """List the silences, and how many findings of the newest run each covers."""
    Query.of(given)
    found = [silence_document(one) for one in site.silencer.states()]
    return {"is_changeable": site.silencer.is_allowed, "items": found}


def devices(report: dict[str, Any]) -> dict[str, Any]:
    """List the devices of a report, without their facts."""
    keys = ("name", "state", "role", "pod", "platform", "model", "examined", "failure")
    return {"run": report["run"], "items": [{key: one[key] for key in keys} for one in report["devices"]]}


def device(report: dict[str, Any], wanted: str) -> dict[str, Any]:
    """Return everything in a report about a device, and the causes that involve it."""
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


def _paged(path: str, part: Slice) -> dict[str, Any]:
    following = f"{ROOT}/{path}?{part.following}" if part.following else None
    return {"items": part.items, "total": part.total, "next": following}
