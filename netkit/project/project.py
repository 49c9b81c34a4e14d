"""A fabric as its user keeps it: a folder, the design made from it, and every action on it."""

import logging
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from netkit import design
from netkit import intent as intents
from netkit.design import Fabric
from netkit.design.select import Device, select
from netkit.errors import IntentError, NetkitError, Problem
from netkit.errors import Path as IntentPath
from netkit.hardware import Catalog
from netkit.intent import Intent, Loaded
from netkit.platforms.config import Files

if TYPE_CHECKING:
    from netkit.deploy import Options, Outcome, RunSummary
    from netkit.deploy.model import EventHandler
    from netkit.facts import Snapshot
    from netkit.judge.catalog import Catalog as Checks
    from netkit.plan.intent_diff import IntentDiff
    from netkit.platforms.driver import Driver
    from netkit.project.planning import Planned
    from netkit.report.judgement_view import Judged


Count = Callable[[], None]
LOGGER = logging.getLogger("netkit")


class Feedback:
    """Receives progress and notes; subclass it to show them."""

    def progress(self, title: str, total: int) -> AbstractContextManager[Count]:
        """A context; the function it yields is called once for each item done, from any thread."""
        del title, total
        return nullcontext(lambda: None)

    def note(self, line: str) -> None:
        """Report a line that is not part of any result."""
        LOGGER.info("%s", line)


SILENT = Feedback()


# ruff: noqa: PLC0415

MODELS, TEMPLATES, CHECKS, PLAYBOOKS = "models", "templates", "checks", "playbooks"
OF_THE_FABRIC = "."
"""As the name of a lab: the lab named like its fabric."""


@dataclass(frozen=True, slots=True)
class Project:
    """A fabric and the folders its user keeps beside it."""

    loaded: Loaded
    catalog: Catalog
    fabric: Fabric
    template_folders: tuple[Path, ...]
    lab: str = ""
    """The lab to use instead of the devices; empty: the real devices."""
    feedback: Feedback = SILENT
    processes: int = 0
    """Processes that read and judge many devices; 0: one for each core."""
    site: str = ""
    """The site of a fleet that its stored runs are of; empty: read by this machine, or at several sites."""

    @classmethod
    def open(
        cls,
        folder: Path | str,
        *,
        lab: str = "",
        workplace: Path | None = None,
        feedback: Feedback = SILENT,
        processes: int = 0,
    ) -> "Project":
        """Load and design a fabric, or raise the problems of both stages together, each with its file and line.

        With `lab`, everything that reads or changes devices uses that lab, and never the real ones. Templates and
        models in the workplace, by default the current folder, are used too. Many devices are read and judged by
        several processes, by default one for each core.
        """
        return replace(_opened(Path(folder), lab, workplace, feedback), processes=processes)

    @property
    def folder(self) -> Path:
        return self.loaded.folder

    @property
    def intent(self) -> Intent:
        """What the user wants, validated, with every default filled in."""
        return self.loaded.intent

    def notes(self, *severities: str) -> Sequence[Problem]:
        """What the design notes about the intent, located in its files: `note`, `warning`, or all."""
        wanted = [one for one in self.fabric.notes if not severities or one.severity in severities]
        return [self.loaded.places.locate(one) for one in wanted]

    # Methods import what they need when they are called: the code for devices and checks is slow to import.

    def devices(self, limit: str = "") -> Sequence[Device]:
        """The switches and hosts that an expression selects: `leaf-u01-*`, `role=spine`, `unit=2,!gpu01`."""
        return select(self.fabric, limit)

    def render(self, limit: str = "") -> Mapping[str, Files]:
        """The files of each device, by name: file name → text. Secrets stay references."""
        from netkit.project.rendering import intended

        return intended(self, self.devices(limit))

    def plan(self, limit: str = "", *, running: Path | None = None) -> "Planned":
        """Plan the changes, from what the devices run now or from configurations saved below `running`."""
        from netkit.project import planning

        return planning.planned(self, limit, running)

    def compare(self, revision: str, limit: str = "") -> "IntentDiff":
        """Compare with a git revision: changes of switches and hosts, added and removed ones; no device is read."""
        from netkit.project.against import of_revision

        return of_revision(self, limit, revision)

    def rehearse(self, planned: "Planned", options: "Options | None" = None) -> "Outcome":
        """Try a plan on every device through handles that cannot write, and return what a deploy would find."""
        from netkit.project.deploying import Deploying

        return Deploying.of(self).rehearse(planned, options)

    def deploy(
        self,
        planned: "Planned",
        options: "Options | None" = None,
        *,
        reason: str = "",
        skip_hook: str | None = None,
        approval: Path | None = None,
        key: Path | None = None,
        on_event: "EventHandler | None" = None,
        should_stop: Callable[[], bool] | None = None,
    ) -> "Outcome":
        """Bring devices to the intended configuration, as `netkit deploy --yes` does, and return the result of each.

        The rules of deploy.yaml apply. `on_event` gets an event for each step; once `should_stop` returns true, the run
        ends at the next safe point. An error is raised only if nothing was changed.
        """
        from netkit.project.deploying import Deploying

        deploying = Deploying.of(self, reason, skip_hook, approval_file=approval, key=key)
        return deploying.run(planned, options, on_event, should_stop)

    def resume(
        self, run: str = "", *, on_event: "EventHandler | None" = None, should_stop: Callable[[], bool] | None = None
    ) -> "Outcome":
        """Continue an interrupted run: the newest, or the named one."""
        from netkit.project.deploying import Deploying

        return Deploying.of(self).finish(run, on_event, should_stop)

    def rollback(
        self,
        run: str,
        options: "Options | None" = None,
        *,
        limit: str = "",
        reason: str = "",
        skip_hook: str | None = None,
        on_event: "EventHandler | None" = None,
        should_stop: Callable[[], bool] | None = None,
    ) -> "Outcome":
        """Undo what a run changed; `run` is its name, the beginning of it, or `last`."""
        from netkit.project.deploying import Deploying

        deploying = Deploying.of(self, reason, skip_hook)
        return deploying.take_back(run, options, limit, on_event, should_stop)

    def history(self) -> "Sequence[RunSummary]":
        """The runs on these devices, newest first."""
        from netkit.deploy import history
        from netkit.project.runs import runs_folder

        return history(runs_folder(self.fabric.name, self.lab))

    def snapshot(
        self, limit: str = "", *, window_s: float = 10.0, is_light: bool = False, source: str = ""
    ) -> "Snapshot":
        """Read the facts of the devices; counters are read twice, `window_s` apart."""
        from netkit.project import observing

        return observing.snapshot(self, limit, window_s=window_s, is_light=is_light, source=source)

    def checks(self) -> "Checks":
        """All checks by name: the user's own, and those that come with netkit."""
        from netkit.judge import catalog

        return catalog.load(beside(self.loaded.folder, CHECKS))

    def check(
        self,
        names: Sequence[str] = (),
        *,
        limit: str = "",
        window_s: float = 10.0,
        snapshot: Path | None = None,
        results: Sequence[Path] = (),
        is_light: bool = False,
        source: str = "",
        store: str = "",
        since: str = "",
    ) -> "Judged":
        """Judge the fabric with all checks or the named ones, on its devices now or on a snapshot.

        With `store` (a file or the URL of a database) the run is saved; with `since="last"` counters are judged over
        the time since the last saved run. Silences apply as on the command line.
        """
        from netkit.project.judging import check

        return check(
            self,
            names,
            limit=limit,
            window_s=window_s,
            snapshot=snapshot,
            results=results,
            is_light=is_light,
            source=source,
            store=store,
            since=since,
        )

    def connect(self, device: str) -> "Driver":
        """The NAPALM driver of a device, not opened yet: `with project.connect("leaf-u01-r0") as leaf:`."""
        from netkit.project.connections import Connections

        return Connections.of(self).connect(device)


def _opened(folder: Path, lab: str, workplace: Path | None, feedback: Feedback) -> Project:
    try:
        loaded = intents.load(folder)
    except IntentError as error:
        raise IntentError(_in_order([*error.problems, *_further(folder, error.problems)])) from None
    catalog = Catalog(beside(loaded.folder, MODELS, workplace))
    try:
        fabric = design.build(loaded.intent, catalog)
    except NetkitError as error:
        error.problems = loaded.places.locate_all(error.problems)
        raise
    templates = beside(loaded.folder, TEMPLATES, workplace)
    return Project(loaded, catalog, fabric, templates, fabric.name if lab == OF_THE_FABRIC else lab, feedback)


def _further(folder: Path, known: Sequence[Problem]) -> Iterator[Problem]:
    """Yield the problems that the design of an invalid intent has, except those that follow from the known ones."""
    drafted = intents.draft(folder) if all(problem.path for problem in known) else None
    if drafted is None:
        return
    try:
        design.build(drafted.intent, Catalog(beside(drafted.folder, MODELS)))
    except NetkitError as error:
        for problem in map(drafted.places.locate, error.problems):
            if not any(_is_within(problem.path, other.path) or _is_within(other.path, problem.path) for other in known):
                yield problem


def _is_within(path: IntentPath, other: IntentPath) -> bool:
    return path[: len(other)] == other


def _in_order(problems: Iterable[Problem]) -> tuple[Problem, ...]:
    return tuple(sorted(dict.fromkeys(problems), key=lambda problem: (problem.file, problem.line)))


def beside(folder: Path, name: str, workplace: Path | None = None) -> tuple[Path, ...]:
    """The user's folders of a name: in the fabric's folder, beside `inventory/`, and in the current folder."""
    here = folder.resolve()
    places = (
        here / name,
        *((here.parent.parent / name,) if here.parent.name == "inventory" else ()),
        (workplace or Path.cwd()) / name,
    )
    return tuple(dict.fromkeys(place for place in places if place.is_dir()))
