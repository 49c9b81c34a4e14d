"""Plans and changes of a fabric through the workers of its sites: one site after another, and one person at a time."""

import json
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter, ValidationError

from netkit import plan as planning
from netkit.deploy import DeployEvent, Outcome
from netkit.deploy import model as outcomes
from netkit.deploy.model import EventHandler
from netkit.errors import DeployError, NetkitError, Problem, UsageError
from netkit.fleet.answer import JobAnswer, JobProgress, LostJob
from netkit.fleet.checking import FleetCollector
from netkit.fleet.coordinator import Coordinator
from netkit.fleet.dispatch import Dispatch
from netkit.fleet.job import (
    LONGEST_S,
    DeployWork,
    HistoryWork,
    PlanWork,
    RehearseWork,
    ResumeWork,
    RollbackWork,
    new_job,
)
from netkit.fleet.lease import FabricLease
from netkit.fleet.link import BrokerLink, LinkError
from netkit.fleet.rabbitmq import LEASE, TURN, fabric_queue
from netkit.fleet.settings import COORDINATOR, FleetError
from netkit.judge import Verdict
from netkit.plan import Plan
from netkit.project.checking import Checking
from netkit.project.comparing import joined
from netkit.project.judging import judged_of
from netkit.project.project import Project

READING_S, LISTING_S = 900, 120
CHANGING_S = LONGEST_S - 600
AGAIN_S = 10.0
"""The request to stop is repeated after this time, since another worker may have taken over."""
Stopping = Callable[[], bool]
EVENTS = TypeAdapter(list[DeployEvent])
Work = DeployWork | RehearseWork | ResumeWork | RollbackWork


class LostRunError(DeployError):
    """A run that may have changed devices, and whose end is not known."""

    exit_code = outcomes.FAILED


class LeftRunningError(Exception):
    """The user left a run that continues at its site."""


@dataclass(frozen=True, slots=True)
class SiteOutcome:
    """How a run ended at a site."""

    site: str
    outcome: Outcome
    is_finished: bool
    """Whether nothing is left to resume."""


@dataclass(frozen=True, slots=True)
class SitePart:
    """What one site is to change."""

    site: str
    names: Sequence[str]
    """Its devices; empty: all that are there."""
    work: Work
    total: int
    """Changes of devices."""


@dataclass(frozen=True, slots=True)
class RollOut:
    """The results of the sites, and why some were not started."""

    sites: tuple[SiteOutcome, ...]
    stopped: str = ""

    @property
    def exit_code(self) -> int:
        return outcomes.weightiest(
            outcomes.FAILED if self.stopped else 0, *(one.outcome.exit_code for one in self.sites)
        )


Watching = Callable[[SitePart], AbstractContextManager[tuple[EventHandler, Stopping]]]
"""Shows the progress of a site, and knows whether the user wants it to stop."""


@dataclass(frozen=True, slots=True)
class FleetDeploying:
    """A fabric, and the sites that change its devices."""

    dispatch: Dispatch
    project: Project

    @classmethod
    def of(cls, folder: Path, project: Project) -> "FleetDeploying":
        """Use the fleet of a folder."""
        if project.lab:
            raise UsageError(Problem("--lab does not work with --fleet", "drop --lab, or --fleet"))
        return cls(Dispatch.of(folder), project)

    def plans(self, limit: str = "", undone: str | None = None, site: str = "") -> dict[str, Plan]:
        """Have each site plan its part, or the rollback of a run at a site; the first site comes first."""
        placed = self._placed(limit, site)
        texts = self._read({name: PlanWork(undone=undone) for name in placed}, placed)
        found = {name: planning.read(text.decode(), f"the answer of {name}") for name, text in texts.items()}
        for name, plan in found.items():
            named = {*(one.name for one in plan.devices), *(one.name for one in plan.unreachable)}
            if others := sorted(named - set(self.dispatch.names_at(self.project, name))):
                raise FleetError(Problem(f"the answer of {name} is about {others[0]}, which is not at that site"))
        return found

    def whole(self, plans: Mapping[str, Plan]) -> Plan:
        """Join the plans of sites: their steps follow each other."""
        if len(plans) == 1:
            return next(iter(plans.values()))
        routing = [name for name, plan in plans.items() if plan.has_routing and plan.changed]
        if len(routing) > 1:
            what = f"routing changes at {' and '.join(routing)}: no site sees enough to find an order without losses"
            raise DeployError(Problem(what, "change one site first: commit and deploy the change in two parts"))
        names = [device.name for device in self.project.devices()]
        some = list(plans.values())
        return replace(
            joined(self.project.fabric, names, some),
            steps=tuple(step for plan in some for step in plan.steps),
            bridges=tuple(bridge for plan in some for bridge in plan.bridges),
            has_routing=bool(routing),
            gone=next((plan.gone for plan in some if plan.gone), some[0].gone),
            partial=next((plan.partial for plan in some if plan.partial), None),
            unknown=tuple(name for plan in some for name in plan.unknown),
        )

    def divided(self, plan: Plan, limit: str) -> dict[str, Plan]:
        """Divide a plan among the sites of its devices."""
        parts = {}
        for name, names in self.dispatch.placed(self._fabric, self.project.devices(limit)).items():
            at_site = set(names)
            devices = tuple(device for device in plan.devices if device.name in at_site)
            missed = tuple(one for one in plan.unreachable if one.name in at_site)
            if devices or missed:
                parts[name] = replace(plan, devices=devices, unreachable=missed)
        return parts

    def history(self, run: str | None = None, site: str = "") -> dict[str, Any]:
        """For each site its runs on the fabric, or one run, as `text` and as `document`."""
        placed = self._placed("", site)
        return {
            name: json.loads(text)
            for name, text in self._read(dict.fromkeys(placed, HistoryWork(run=run)), placed).items()
        }

    def located(self, name: str) -> tuple[str, str]:
        """The site and full name of a run: `last`, or the beginning of its name."""
        known = [(entry["run"], site) for site, found in self.history().items() for entry in found["document"]]
        chosen = [(run, site) for run, site in sorted(known, reverse=True) if name == "last" or run.startswith(name)]
        if not chosen:
            raise UsageError(
                Problem(f"no run {name!r} at the sites of the fabric", "netkit history --fleet DIR lists them")
            )
        if len(chosen) > 1 and name != "last":
            raise UsageError(Problem(f"{len(chosen)} runs begin with {name!r}", "give more of the name"))
        run, site = chosen[0]
        return site, run

    def unfinished(self) -> str:
        """The site of the newest run that has not finished."""
        known = [(found["unfinished"], site) for site, found in self.history().items() if found["unfinished"]]
        if not known:
            raise UsageError(Problem("no run is left to resume", "netkit history --fleet DIR lists the runs"))
        return max(known)[1]

    @contextmanager
    def turn(self) -> Iterator[FabricLease]:
        """Be the only coordinator that has this fabric changed, and refuse one that a site still changes."""
        fabric = self._fabric
        sites = list(self._placed(""))

        def linked(site: str, patience_s: float | None = None) -> BrokerLink:
            settings = self.dispatch.settings
            vhost, user = settings.virtual_host(site), settings.user(COORDINATOR)
            return BrokerLink(settings.broker, vhost, user, self.dispatch.credentials, patience_s=patience_s)

        def with_turn(patience_s: float) -> BrokerLink:
            link = linked(sites[0], patience_s)
            link.declare(fabric_queue(TURN, fabric))
            return link

        with FabricLease(with_turn, fabric_queue(TURN, fabric), fabric, wait_s=0) as held:
            for site in sites:
                try:
                    with linked(site) as link:
                        link.declare(fabric_queue(LEASE, fabric))
                        is_held = link.consumers(fabric_queue(LEASE, fabric)) > 0
                except LinkError as error:
                    raise FleetError(Problem(f"the broker, for {site}: {error}", "see its log")) from None
                if is_held:
                    what = f"{fabric} is being changed at {site}, by a run of an earlier coordinator"
                    remedy = "wait until it has ended: `netkit fleet status` shows it, `netkit history --fleet` its end"
                    raise FleetError(Problem(what, remedy))
            yield held

    def roll_out(self, parts: Sequence[SitePart], watching: Watching) -> RollOut:
        """Change one site after another, as long as each ends well and nothing more fails on the fabric than before."""
        found: list[SiteOutcome] = []
        with self.turn() as turn:
            known = self.failures() if len(parts) > 1 else frozenset()
            for number, part in enumerate(parts):
                left = ", ".join(other.site for other in parts[number:])
                try:
                    if why := self._why_not_next(found, known):
                        return RollOut(tuple(found), f"{left}: not started, because {why}")
                    turn.check()
                    with watching(part) as (on_event, is_stopping):
                        found.append(self.change(part, on_event, is_stopping))
                except NetkitError as error:
                    if not found:
                        raise
                    return RollOut(tuple(found), f"{left}: {error.problems[0]}")
                except LeftRunningError:
                    if not found:
                        raise
                    return RollOut(tuple(found), f"{part.site}: detached, and continues on its own")
        return RollOut(tuple(found))

    def rehearse(self, parts: Sequence[SitePart]) -> RollOut:
        """Have the sites try their parts, all at a time; nothing is written."""
        texts = self._read({part.site: part.work for part in parts}, {part.site: part.names for part in parts})
        return RollOut(tuple(_outcome(site, text) for site, text in texts.items()))

    def _why_not_next(self, found: Sequence[SiteOutcome], known: frozenset[tuple[str, str, str]]) -> str:
        """Why no other site may begin after these; empty if it may."""
        if not found:
            return ""
        last = found[-1]
        if last.outcome.exit_code or not last.is_finished:
            return f"{last.site} did not succeed"
        return self._why_worse(known)

    def change(self, part: SitePart, on_event: EventHandler, is_stopping: Stopping) -> SiteOutcome:
        """Run a job that changes devices; LeftRunningError if the user leaves it running."""
        commit, fabric = self.dispatch.committed(self.project)
        site, work = part.site, part.work
        job = new_job(site, fabric, commit, work, within_s=CHANGING_S, devices=tuple(part.names))
        asked_s, is_begun = float("-inf"), False
        with Coordinator(self.dispatch.settings, self.dispatch.credentials, self.project.feedback.note) as fleet:

            def between() -> None:
                nonlocal asked_s
                if not is_stopping():
                    return
                if work.goes_on:
                    raise LeftRunningError
                if time.monotonic() > asked_s + AGAIN_S:
                    asked_s = time.monotonic()
                    fleet.stop()

            for event in fleet.run([job], between):
                if isinstance(event, JobProgress):
                    for one in _events(event.text):
                        is_begun = True
                        on_event(one)
                elif isinstance(event, LostJob):
                    problem = Problem(f"{site}: {event.reason}", "`netkit history --fleet DIR` shows its runs")
                    raise LostRunError(problem) if is_begun else DeployError(problem)
                elif isinstance(event, JobAnswer):
                    found = _outcome(site, event.payload)
        return found

    def _why_worse(self, known: frozenset[tuple[str, str, str]]) -> str:
        """New failures, or why they cannot be determined; empty if there are none."""
        try:
            worse = sorted(self.failures() - known)
        except NetkitError as error:
            return f"the fabric could not be checked: {error.problems[0].message}"
        return f"{worse[0][0]} now fails on {' '.join(filter(None, worse[0][1:]))}" if worse else ""

    def failures(self) -> frozenset[tuple[str, str, str]]:
        """What fails on the fabric now, check, device and place, and what was not reached."""
        collector = FleetCollector(self.dispatch)
        checking = replace(Checking.of(self.project, is_light=True), collector=collector)
        checks = [check for check in self.project.checks().values() if not check.has_window]
        judged = judged_of(checking.context(checks), checks)
        failed = {
            (one.check, one.device, one.place) for one in judged.judgement.findings if one.verdict >= Verdict.FAIL
        }
        return frozenset(failed | {("reaching it", name, "") for name, _ in judged.judgement.unreached})

    @property
    def _fabric(self) -> str:
        return self.dispatch.committed(self.project)[1]

    def names(self, limit: str, site: str) -> Sequence[str]:
        """What a site is asked about; empty if it is all that is there."""
        return self._placed(limit, site).get(site, ())

    def _placed(self, limit: str, site: str = "") -> Mapping[str, Sequence[str]]:
        """The sites with what they are asked about: nothing where it is all that is there."""
        fabric = self._fabric
        placed = self.dispatch.placed(fabric, self.project.devices(limit))
        is_whole = not limit and len(placed) == 1
        return {name: () if is_whole else names for name, names in placed.items() if site in {"", name}}

    def _read(
        self, works: Mapping[str, PlanWork | HistoryWork | Work], placed: Mapping[str, Sequence[str]]
    ) -> dict[str, bytes]:
        """The answers of sites; FleetError if one has no plan, or none answers."""
        commit, fabric = self.dispatch.committed(self.project)
        jobs = [
            new_job(site, fabric, commit, work, within_s=_within_s(work), devices=tuple(placed[site]))
            for site, work in works.items()
        ]
        found: dict[str, bytes] = {}
        lost: list[Problem] = []
        with Coordinator(self.dispatch.settings, self.dispatch.credentials, self.project.feedback.note) as fleet:
            for event in fleet.run(jobs):
                if isinstance(event, JobAnswer):
                    found[event.job.site] = found.get(event.job.site, b"") + event.payload
                elif isinstance(event, LostJob):
                    problem = Problem(f"{event.job.site}: {event.reason}", "`netkit fleet status` shows its workers")
                    if not isinstance(event.job.work, HistoryWork):
                        raise FleetError(problem)
                    lost.append(problem)
                    self.project.feedback.note(str(problem))
        if lost and not found:
            raise FleetError(lost)
        return {site: found[site] for site in works if site in found}


def _within_s(work: PlanWork | HistoryWork | Work) -> int:
    return LISTING_S if isinstance(work, HistoryWork) else READING_S


def _events(text: str) -> list[DeployEvent]:
    try:
        return EVENTS.validate_json(text) if text else []
    except ValidationError:
        return []


def _outcome(site: str, payload: bytes) -> SiteOutcome:
    try:
        found = json.loads(payload)
        return SiteOutcome(site, outcomes.read(json.dumps(found["outcome"])), bool(found["is_finished"]))
    except (ValueError, LookupError, TypeError):
        raise DeployError(
            Problem(f"the answer of {site} is damaged", "`netkit history --fleet DIR` shows its runs")
        ) from None
