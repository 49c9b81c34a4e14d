"""The silences of a fabric, as a run of checks applies them."""

import time
from collections.abc import Collection, Iterable
from dataclasses import dataclass

from netkit.judge import CheckContext, catalog
from netkit.judge.cause import Layers
from netkit.judge.run import Judgement
from netkit.judge.silence import Silence, SilenceState, silenced, states
from netkit.project.past import Past
from netkit.project.project import CHECKS, Project, beside
from netkit.silence.file import Known, Silences, check, load


@dataclass(frozen=True, slots=True)
class Silencing:
    """What is silenced, and what of it has ended by itself."""

    silences: tuple[Silence, ...] = ()
    healed: Collection[str] = frozenset()
    checks: frozenset[str] = frozenset()
    """All checks there are."""

    def applied(
        self, scene: CheckContext, found: Judgement, layers: Layers
    ) -> tuple[Judgement, tuple[SilenceState, ...]]:
        """Return a judgement with what is silenced now, and how each entry stands after it."""
        if not self.silences:
            return found, ()
        now_s = time.time()
        active = (one for one in self.silences if one.id not in self.healed)
        marked = silenced(found, active, now_s, layers)
        is_whole = set(scene.devices) == set(scene.fabric.names) and self.checks <= layers.keys()
        return marked, states(self.silences, marked, now_s, self.healed, is_whole=is_whole)


NOTHING = Silencing()


def silencing(project: Project, past: Past, checks: Iterable[str]) -> Silencing:
    """Return what is silenced of a fabric or a lab of it; an entry about an unknown check or device is an error."""
    known = Known(frozenset(checks), project.fabric.names)
    found = loaded(project, known).of_lab(project.lab)
    return Silencing(found, past.healed(found), frozenset(known.checks)) if found else NOTHING


def known_of(project: Project) -> Known:
    """Return what there is to be silenced: the checks and devices of a fabric."""
    return Known(checks_of(project), project.fabric.names)


def checks_of(project: Project) -> frozenset[str]:
    """Return the names of the checks of a fabric: netkit's own and those beside the intent."""
    return frozenset(catalog.load(beside(project.loaded.folder, CHECKS)))


def loaded(project: Project, known: Known) -> Silences:
    """Return the silences beside an intent, each about what exists."""
    found = load(project.loaded.folder)
    check(found, known, time.time())
    return found
