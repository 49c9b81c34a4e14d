"""`netkit silence`."""

import re
import sys
import time
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path

from netkit import silence
from netkit.cli.fabric import open_project
from netkit.errors import NetkitError, Problem, UsageError
from netkit.intent.list_edit import Plain
from netkit.judge.run import Judgement
from netkit.judge.silence import Silence, states
from netkit.project.control import who
from netkit.project.judging import Values, known_of, stored_faults
from netkit.project.past import place_of, source_of
from netkit.project.project import Project
from netkit.report.judgement_json import silence_document
from netkit.report.judgement_view import moment
from netkit.report.table import columns
from netkit.silence import AnyEntry, check, load
from netkit.store.state import healed
from netkit.store.store import open_store
from netkit.terminal.output import check_format, write_json

LENGTH = re.compile(r"(?P<number>[1-9]\d{0,3})(?P<unit>[mhdw])")
UNITS = {"m": "minutes", "h": "hours", "d": "days", "w": "weeks"}
HEAD = ("ID", "KIND", "STATE", "CHECK", "WHERE", "UNTIL", "BY", "WHY", "TICKET")


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
    _report("added", silence.add(project.folder, "silences", values, known_of(project), time.time()))


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
        [{"check": name, "where": subject, "verdict": verdict}]
        if verdict
        else stored_faults(name, subject, source, store)
    )
    ends: Values = {"until": _time("--until", until)} if until else {}
    values = {"from": stamp(datetime.now(UTC)), **ends, **_provenance(project, by, reason, ticket)}
    known = known_of(project)
    for fault in faults:
        _report("added", silence.add(project.folder, "acknowledgements", {**fault, **values}, known, time.time()))


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
        sys.stdout.write(f"{project.fabric.name} has no silences{beside}\n")


def end(folder: Path, name: str) -> None:
    home = open_project(folder).loaded.folder
    _report("ended", silence.end(home, name))


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
