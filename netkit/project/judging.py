"""Judge the facts of a fabric, apply its silences, and acknowledge findings of the last stored run."""

import sys
import time
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import redirect_stdout
from dataclasses import dataclass
from pathlib import Path

from netkit.errors import Problem, UsageError
from netkit.intent.list_edit import Plain
from netkit.judge import Check, CheckContext, Finding, Verdict, catalog
from netkit.judge.cause import Layers, heads
from netkit.judge.check import is_meant
from netkit.judge.run import FABRIC, CheckDeadline, Judgement
from netkit.judge.run import run as judge
from netkit.judge.silence import REACHED, Silence, SilenceState, Subject, cause_of, silenced, states
from netkit.project.checking import Checking
from netkit.project.past import Past, Storing, extent_of, past, place_of
from netkit.project.project import Project
from netkit.report.judgement_view import Judged
from netkit.silence import Known, Silences, load
from netkit.silence import check as check_silences
from netkit.store import Source

MOST = 100
"""The limit of findings to acknowledge at once."""
Values = dict[str, Plain]


@dataclass(frozen=True, slots=True)
class Silencing:
    """The silences of a fabric, and those that have ended because their finding is gone."""

    silences: tuple[Silence, ...] = ()
    healed: Collection[str] = frozenset()
    checks: frozenset[str] = frozenset()
    """The names of all checks."""

    def applied(
        self, context: CheckContext, found: Judgement, layers: Layers
    ) -> tuple[Judgement, tuple[SilenceState, ...]]:
        """Silence a judgement, and return the state of each silence."""
        if not self.silences:
            return found, ()
        now_s = time.time()
        active = (one for one in self.silences if one.id not in self.healed)
        marked = silenced(found, active, now_s, layers)
        is_whole = set(context.devices) == set(context.fabric.names) and self.checks <= layers.keys()
        return marked, states(self.silences, marked, now_s, self.healed, is_whole=is_whole)


NOTHING = Silencing()
NO_SITES: Mapping[str, Collection[str]] = {}


def silencing(
    project: Project, earlier: Past, checks: Iterable[str], sites: Mapping[str, Collection[str]] = NO_SITES
) -> Silencing:
    """Load the silences that apply to a fabric or its lab; raise SilenceError for an unknown check or device.

    `sites` are the devices at each site of a fabric at several; without them, all are at the site of the project.
    """
    known = Known(frozenset(checks), project.fabric.names)
    sites = sites or {project.site: project.fabric.names}
    entries = (one.at(sites) for one in loaded(project, known).of_lab(project.lab))
    found = tuple(one for one in entries if one is not None)
    return Silencing(found, earlier.healed(found), frozenset(known.checks)) if found else NOTHING


def known_of(project: Project) -> Known:
    """What can be silenced: the checks and devices of a fabric."""
    return Known(frozenset(project.checks()), project.fabric.names)


def loaded(project: Project, known: Known) -> Silences:
    """Load and validate the silences of a project."""
    found = load(project.folder)
    check_silences(found, known, time.time())
    return found


def check(
    project: Project,
    names: Sequence[str],
    *,
    limit: str,
    window_s: float,
    snapshot: Path | None,
    results: Sequence[Path],
    is_light: bool,
    source: str,
    store: str,
    since: str,
) -> Judged:
    """Read a fabric, judge it, and save the run if there is a store."""
    known = project.checks()
    checks = catalog.select(known, names)
    checking = Checking.of(project, limit=limit, window_s=window_s, snapshot=snapshot, is_light=is_light, source=source)
    with past(Storing.of(store, since), project) as earlier:
        silences = silencing(project, earlier, known)
        context = checking.context(checks, earlier, results)
        judged = judged_of(context, checks, silenced=silences)
        earlier.save(context, judged, project.intent, extent=extent_of(context, judged, has_all_checks=not names))
    return judged


def judged_of(
    context: CheckContext, checks: Sequence[Check], limit: CheckDeadline | None = None, silenced: Silencing = NOTHING
) -> Judged:
    """Run checks, apply the silences, and set the exit code."""
    limit = limit or CheckDeadline()
    with redirect_stdout(sys.stderr):  # keep the output of users' checks out of the result
        try:
            found = judge(context, checks, limit)
        except KeyboardInterrupt:
            if limit.running:
                sys.stderr.write(f"interrupted in {limit.running}\n")
            raise
    layers = {check.name: check.layer for check in checks}
    found, entries = silenced.applied(context, found, layers)
    window_s = max((seen.window_s for seen in context.devices.values()), default=0.0)
    return Judged(
        context.fabric.name,
        len(context.devices),
        window_s,
        context.snapshot.taken_s,
        found,
        layers,
        found.exit_code,
        silences=entries,
    )


def stored_faults(name: str, subject: str, source: Source, store: str) -> list[Values]:
    """The findings of the last stored run, each as its own acknowledgement."""
    remedy = "store a run with netkit check --store, or set the worst accepted verdict with --verdict warn or fail"
    from netkit.store.store import open_store  # noqa: PLC0415 (it loads the database library)

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
