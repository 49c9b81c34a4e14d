"""Judge the facts of a fabric, and apply its silences."""

import sys
import time
from collections.abc import Collection, Iterable, Sequence
from contextlib import redirect_stdout
from dataclasses import dataclass, replace
from pathlib import Path

from netkit.deploy.model import weightiest
from netkit.judge import Check, CheckContext, Verdict, catalog
from netkit.judge.cause import Layers
from netkit.judge.run import CheckDeadline, Judgement
from netkit.judge.run import run as judge
from netkit.judge.silence import Silence, SilenceState, silenced, states
from netkit.project.checking import Checking
from netkit.project.past import Past, Storing, extent_of, past
from netkit.project.project import Project
from netkit.report.judgement_view import Judged
from netkit.silence.file import Known, Silences, load
from netkit.silence.file import check as check_silences


@dataclass(frozen=True, slots=True)
class Silencing:
    """The silences of a fabric, and those that have ended because their finding is gone."""

    silences: tuple[Silence, ...] = ()
    healed: Collection[str] = frozenset()
    checks: frozenset[str] = frozenset()
    """The names of all checks."""

    def applied(
        self, scene: CheckContext, found: Judgement, layers: Layers
    ) -> tuple[Judgement, tuple[SilenceState, ...]]:
        """Silence a judgement, and return the state of each silence."""
        if not self.silences:
            return found, ()
        now_s = time.time()
        active = (one for one in self.silences if one.id not in self.healed)
        marked = silenced(found, active, now_s, layers)
        is_whole = set(scene.devices) == set(scene.fabric.names) and self.checks <= layers.keys()
        return marked, states(self.silences, marked, now_s, self.healed, is_whole=is_whole)


UNREACHED, FAILED = 4, 1
NOTHING = Silencing()


def silencing(project: Project, earlier: Past, checks: Iterable[str]) -> Silencing:
    """Load the silences that apply to a fabric or its lab; raise SilenceError for an unknown check or device."""
    known = Known(frozenset(checks), project.fabric.names)
    found = loaded(project, known).of_lab(project.lab)
    return Silencing(found, earlier.healed(found), frozenset(known.checks)) if found else NOTHING


def known_of(project: Project) -> Known:
    """Return what can be silenced: the checks and devices of a fabric."""
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
        scene = checking.context(checks, earlier, results)
        judged = judged_of(scene, checks, silenced=silences)
        earlier.save(scene, judged, project.intent, extent=extent_of(scene, judged, has_all_checks=not names))
    return judged


def judged_of(
    scene: CheckContext, checks: Sequence[Check], limit: CheckDeadline | None = None, silenced: Silencing = NOTHING
) -> Judged:
    """Run checks, apply the silences, and set the exit code."""
    limit = limit or CheckDeadline()
    with redirect_stdout(sys.stderr):  # keep the output of users' checks out of the result
        try:
            found = judge(scene, checks, limit)
        except KeyboardInterrupt:
            if limit.running:
                sys.stderr.write(f"interrupted in {limit.running}\n")
            raise
    layers = {check.name: check.layer for check in checks}
    found, entries = silenced.applied(scene, found, layers)
    window_s = max((seen.window_s for seen in scene.devices.values()), default=0.0)
    judged = Judged(
        scene.fabric.name,
        len(scene.devices),
        window_s,
        scene.snapshot.taken_s,
        found,
        layers,
        silences=entries,
    )
    return replace(judged, exit_code=exit_code(found))


def exit_code(found: Judgement) -> int:
    """Compute the exit code: warnings and silenced findings pass; a run that judged nothing fails."""
    is_bad = found.verdict >= Verdict.FAIL or not found.examined
    return weightiest(FAILED if is_bad else 0, UNREACHED if len(found.unreached) > len(found.excused) else 0)
