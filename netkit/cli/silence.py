"""`netkit silence`."""

import re
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path

from netkit.cli.fabric import open_project
from netkit.errors import NetkitError, Problem, UsageError
from netkit.intent.list_edit import Plain
from netkit.judge import Finding, Verdict
from netkit.judge.cause import Layers, heads
from netkit.judge.check import is_meant
from netkit.judge.run import FABRIC, Judgement
from netkit.judge.silence import REACHED, Silence, Subject, cause_of, states
from netkit.project.control import who
from netkit.project.judging import known_of
from netkit.project.past import place_of, source_of
from netkit.project.project import Project
from netkit.report.judgement_json import silence_document
from netkit.report.judgement_view import moment
from netkit.report.table import columns
from netkit.silence import edit
from netkit.silence.file import AnyEntry, check, load
from netkit.store import Source
from netkit.store.silence import healed
from netkit.store.store import open_store
from netkit.terminal.text import check_format, write_json

LENGTH = re.compile(r"(?P<number>[1-9]\d{0,3})(?P<unit>[mhdw])")
UNITS = {"m": "minutes", "h": "hours", "d": "days", "w": "weeks"}
HEAD = ("ID", "KIND", "STATE", "CHECK", "WHERE", "UNTIL", "BY", "WHY", "TICKET")
MOST = 100
"""The limit of findings to acknowledge at once."""
Values = dict[str, Plain]


def add(
    folder: Path,
    name: str,
    subject: str,
    *,
    until: str,
    begin: str,
    reason: str,
    ticket: str,
    by: str,
    lab: str,
    everything: bool,
) -> None:
    """Silence checks at places until a time."""
    project = open_project(folder, lab)
    values: Values = {"check": _parts(name), "where": _parts(subject)}
    values |= {"from": _time("--from", begin)} if begin else {}
    values |= {"until": _time("--until", until), **_provenance(project, by, reason, ticket)}
    values |= {"everything": True} if everything else {}
    _report("added", edit.add(project.folder, "silences", values, known_of(project), time.time()))


def ack(
    folder: Path,
    name: str,
    subject: str,
    *,
    until: str,
    reason: str,
    ticket: str,
    by: str,
    verdict: str,
    lab: str,
    store: str,
    site: str,
) -> None:
    """Acknowledge what the last stored run found, or with `verdict` anything up to that verdict."""
    project = open_project(folder, lab, site=site)
    source = source_of(project)
    if verdict not in {"", "warn", "fail"}:
        raise UsageError(Problem(f"unknown verdict {verdict!r}", "use warn or fail"))
    faults = (
        [{"check": name, "where": subject, "verdict": verdict}] if verdict else _found(name, subject, source, store)
    )
    ends: Values = {"until": _time("--until", until)} if until else {}
    values = {"from": stamp(datetime.now(UTC)), **ends, **_provenance(project, by, reason, ticket)}
    known = known_of(project)
    for fault in faults:
        _report("added", edit.add(project.folder, "acknowledgements", {**fault, **values}, known, time.time()))


def show(folder: Path, *, lab: str, store: str, site: str, output: str) -> None:
    """List the silences and their states."""
    check_format(output)
    project = open_project(folder, lab, site=site)
    source = source_of(project)
    silences = load(project.folder)
    check(silences, known_of(project), time.time())
    found = silences.of_lab(source.lab)
    ended: frozenset[str] = frozenset()
    with suppress(NetkitError), open_store(place_of(store or "."), is_new_allowed=False) as opened:
        ended = healed(opened.silences(source), found)
    current = states(found, Judgement((), ()), time.time(), ended, is_whole=False)
    if output == "json":
        write_json([{**silence_document(one), "findings": None} for one in current])
    elif current:
        sys.stdout.write(columns([_row(one.silence, one.state) for one in current], HEAD))
    else:
        others = len(silences.found.entries)  # found is empty
        owners = "the fabric itself or other labs" if source.lab else "labs, which --lab lists"
        beside = f"; {others} in {silences.file} for {owners}" if others else ""
        sys.stdout.write(f"nothing of {project.fabric.name} is silenced{beside}\n")


def end(folder: Path, name: str) -> None:
    home = open_project(folder).loaded.folder
    _report("ended", edit.end(home, name))


def _row(one: Silence, state: str) -> tuple[str, ...]:
    until = "it passes" if one.until_s is None else moment(one.until_s)
    return (one.id, one.kind, state, *one.about.split(" on ", 1), until, one.by, one.why, one.ticket)


def _report(what: str, entry: AnyEntry) -> None:
    one = entry.silence()
    until = "until it passes" if one.until_s is None else f"until {moment(one.until_s)}"
    sys.stdout.write(f"{one.id}: {what}: {one.kind} of {one.about} {until}\n")


def _parts(text: str) -> Plain:
    found = [part for part in text.split(",") if part]
    return text if len(found) < 2 else found


def _provenance(project: Project, by: str, reason: str, ticket: str) -> Values:
    values: Values = {"by": by or who(), "why": reason}
    values |= {"ticket": ticket} if ticket else {}
    return values | ({"lab": project.lab} if project.lab else {})


def _time(option: str, text: str) -> str:
    """Parse an absolute time or a duration from now, and format it for the file."""
    found = LENGTH.fullmatch(text)
    if found is not None:
        return stamp(datetime.now(UTC) + timedelta(**{UNITS[found["unit"]]: int(found["number"])}))
    try:
        given = datetime.fromisoformat(text)
    except ValueError:
        given = None
    if given is None or given.tzinfo is None:
        what = f"{option} {text!r} is not a time" if given is None else f"{option} {text!r} has no time zone"
        raise UsageError(Problem(what, "write 30m, 2h, 2d, 1w, or a time as 2026-12-01T08:00:00Z"))
    return stamp(given)


def stamp(at: datetime) -> str:
    """Format a time for the file."""
    return at.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def _found(name: str, subject: str, source: Source, store: str) -> list[Values]:
    """Return the findings of the last stored run, each as its own acknowledgement."""
    remedy = "store a run with netkit check --store, or set the worst accepted verdict with --verdict warn or fail"
    with open_store(place_of(store or "."), is_new_allowed=False) as opened:
        run = next(iter(opened.runs(source, 1)), None)
        if run is None:
            raise UsageError(Problem(f"no stored run of checks on {source.shown}", remedy))
        judgement = opened.judgement(run)
    found = list(faults(judgement, name, Subject.of(subject), run.layers))
    if not found:
        raise UsageError(Problem(f"the last run, {run.name}, has no warning or failure of {name} on {subject}", remedy))
    if len(found) > MOST:
        raise UsageError(Problem(f"{len(found)} findings are too many to acknowledge", "name a place, or silence them"))
    return found


def faults(judgement: Judgement, name: str, subject: Subject, layers: Layers) -> Iterator[Values]:
    """Yield the failures of checks at places, in the form of acknowledgements."""
    named = heads(judgement.findings, layers)
    groups: dict[tuple[str, str], list[Finding]] = {}
    for one in judgement.findings:
        is_bad = one.verdict in {Verdict.WARN, Verdict.FAIL}
        if is_bad and is_meant(one.check, name) and subject.has(one.device, one.place):
            where = f"{one.device or FABRIC}:{one.place}" if one.place else one.device or FABRIC
            groups.setdefault((one.check, where), []).append(one)
    for (checked, where), group in groups.items():
        worst = max(group, key=lambda one: one.verdict)
        texts = list(dict.fromkeys(one.text for one in group))
        cause = cause_of(worst, named)
        fault: Values = {"check": checked, "where": where, "verdict": worst.verdict.word}
        fault |= {"fault": texts[0] if len(texts) == 1 else texts}
        yield fault | ({"cause": cause} if cause else {})
    if name == REACHED:
        missed = (device for device, _ in judgement.unreached if subject.has(device, ""))
        for device in missed:
            yield {"check": REACHED, "where": device, "verdict": "fail"}
