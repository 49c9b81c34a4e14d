"""Runs on the devices of a project: the same steps for a script and for a person at a terminal."""

from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

from netkit import deploy
from netkit.deploy import Journal, Options, Outcome, Provenance, refusal
from netkit.deploy.apply import RollbackPlan, ignore_event, never
from netkit.deploy.journal import Lease, unlimited
from netkit.deploy.lock import lock_shared_folder
from netkit.deploy.model import EventHandler
from netkit.deploy.preflight import Task, first_tasks, stages_of
from netkit.deploy.rollout import untouched
from netkit.design.fabric import ACCESS_LIST, Switch
from netkit.design.select import select
from netkit.errors import AccessError, DeployError, NetkitError, Problem, UsageError
from netkit.plan import Plan, Running, Unreachable
from netkit.platforms.config import Files
from netkit.project.connections import Connections
from netkit.project.control import Control, Requester, refuse_other_plan
from netkit.project.gate import gate_of, reader_of
from netkit.project.planning import Planned, as_now, from_devices, taking_over
from netkit.project.project import Project
from netkit.project.reading import read
from netkit.project.runs import found_run, runs_folder, unfinished_run
from netkit.report.plan_view import listed

Stopping = Callable[[], bool]


@dataclass(frozen=True, slots=True)
class Deploying:
    """Deploys, rollbacks and resumed runs under the rules of deploy.yaml."""

    project: Project
    devices: Connections
    control: Control
    lease: Lease = unlimited
    here: Collection[str] | None = None
    """The devices that can be reached from here; by default all."""

    @classmethod
    def of(
        cls,
        project: Project,
        reason: str = "",
        skip_hook: str | None = None,
        *,
        plan_file: Path | None = None,
        approval_file: Path | None = None,
        key: Path | None = None,
        requester: Requester | None = None,
        lease: Lease = unlimited,
        here: Collection[str] | None = None,
    ) -> "Deploying":
        """Read access.yaml and deploy.yaml of a project."""
        files = {"plan_file": plan_file, "approval_file": approval_file, "key": key}
        control = Control.of(project, reason, skip_hook, **files, requester=requester)
        return cls(project, Connections.of(project), control, lease, here)

    @property
    def runs(self) -> Path:
        return runs_folder(self.project.fabric.name, self.project.lab)

    def run(
        self,
        planned: Planned,
        options: Options | None = None,
        on_event: EventHandler | None = None,
        is_stopping: Stopping | None = None,
    ) -> Outcome:
        """Deploy a plan without asking anyone, and roll back where the options ask for it.

        A failed run whose rollback cannot start has no `rollback`, and `stopped` gives the reason.
        """
        options = options or Options()
        planned = taking_over(planned, options)
        plan = planned.plan
        options = replace(options, is_taking_over=plan.is_taking_over)
        if not plan.changed:
            deploy.refuse_unsettled(self.runs)
            return Outcome("", plan.fabric, tuple(untouched(plan, options.limit)))
        whole = plan
        if options.limit is not None and not {one.name for one in plan.changed} <= {*options.limit}:
            planned, whole = self.as_now(planned, options)  # only now is it known what the rest does without them
        self.refuse(planned.plan, planned.intended, options)
        begun = self.control.begun("deploy", whole)
        journal = Journal.new(self.runs)
        provenance = self.control.permitted(begun, whole, journal.run, options)
        with self.locked(journal):
            outcome = self.apply(planned, options, journal, provenance, on_event or ignore_event, is_stopping or never)
            return self._settled(journal, outcome, on_event or ignore_event, is_stopping or never)

    def as_now(self, planned: Planned, options: Options) -> tuple[Planned, Plan]:
        """An earlier plan, or the part of it that a limit selects, as the devices are now, and as it was approved."""
        whole = planned.plan
        here = {one.name for one in whole.changed if self.project.fabric.device(one.name) is not None}
        names = sorted(here if options.limit is None else here.intersection(options.limit))
        now = from_devices(self.project, ",".join(names), self.devices).plan if names else whole
        plan, whole = as_now(whole, now, names)
        return replace(planned, plan=plan), whole

    def finish(
        self, run: str = "", on_event: EventHandler | None = None, is_stopping: Stopping | None = None
    ) -> Outcome:
        """Continue an interrupted run; without a name, the newest."""
        journal = found_run(self.runs, run) if run else unfinished_run(self.runs)
        orders = journal.orders()
        provenance = self.control.begun("resume", orders.plan)
        if journal.outcome() is None:
            provenance = self.control.permitted(provenance, orders.plan, journal.run, orders.options)
        with self.locked(journal):
            outcome = self.resume(journal, provenance, on_event or ignore_event, is_stopping or never)
            return self._settled(journal, outcome, on_event or ignore_event, is_stopping or never)

    def take_back(
        self,
        run: str,
        options: Options | None = None,
        limit: str = "",
        on_event: EventHandler | None = None,
        is_stopping: Stopping | None = None,
        approved: str | None = None,
    ) -> Outcome:
        """Roll back a run; one that was cut off is ended first. `approved` is the digest that the plan must have."""
        undone = found_run(self.runs, run)
        if undone.outcome() is None:
            orders = undone.orders()
            begun = self.control.begun("rollback", orders.plan, undone.run)
            provenance = self.control.permitted(begun, orders.plan, undone.run, orders.options)
            with self.locked(undone):
                self.end(undone, provenance, on_event or ignore_event)
        back, options = self.plan_rollback(undone, options or Options(), limit)
        if approved is not None:
            refuse_other_plan(back[0], approved)
        self.refuse(back[0], back[1], options)
        begun = self.control.begun("rollback", back[0], undone.run)
        journal = Journal.new(self.runs)
        provenance = self.control.permitted(begun, back[0], journal.run, options)
        with self.locked(journal):
            return self.undo(undone, options, journal, back, provenance, on_event or ignore_event, is_stopping or never)

    def _settled(self, journal: Journal, outcome: Outcome, on_event: EventHandler, is_stopping: Stopping) -> Outcome:
        if journal.outcome() is None or not journal.is_to_be_undone():
            return outcome
        try:
            back, options = self.plan_rollback(journal, deploy.rollback_options(journal), "")
            again = Journal.new(self.runs)
            return replace(outcome, rollback=self.undo(journal, options, again, back, None, on_event, is_stopping))
        except NetkitError as error:
            reasons = "; ".join(map(str, error.problems))
            return replace(outcome, stopped=f"{outcome.stopped}; not rolled back: {reasons}")

    def locked(self, journal: Journal) -> AbstractContextManager[None]:
        """Lock the fabric for all accounts; a lab belongs to one account and needs no lock."""
        project = self.project
        if project.lab:
            return nullcontext()
        return lock_shared_folder(project.folder, journal.folder.parent, project.fabric.name)

    def refuse(self, plan: Plan, intended: Mapping[str, Files], options: Options) -> None:
        """Raise AccessError or DeployError for a plan that cannot be deployed anyway, before anyone is asked."""
        missed = [one.name for one in plan.unreachable if options.limit is None or one.name in options.limit]
        if len(missed) > options.max_fail:
            message = f"{listed(missed)}: could not be read for the plan, and {options.max_fail} may fail"
            raise AccessError(Problem(message, f"exclude them with --limit, or continue with --max-fail {len(missed)}"))
        fabric = self.project.fabric
        tasks = first_tasks(stages_of(plan, intended, None, options.limit, fabric))
        refusal.check(plan, fabric, intended, tasks, options)
        cut_off = [name for name, task in tasks.items() if self._is_cut_off(task)]
        if cut_off:
            source = self.devices.source(cut_off[0])
            message = f"{listed(cut_off)}: management.allow lacks {source}, the address that netkit connects from"
            raise DeployError(
                Problem(message, f"add {source}/32, or its network; this is harmless if NAT changes the address")
            )

    def _is_cut_off(self, task: Task) -> bool:
        """Whether a change of the access list of a switch would keep netkit itself out."""
        device = self.project.fabric.device(task.name)
        if not isinstance(device, Switch) or (management := device.management) is None:
            return False
        name = device.object_names.get("access_list", {}).get(ACCESS_LIST, ACCESS_LIST)
        is_changed = any(name in part for change in task.plan.changes for part in change.path)
        return is_changed and not management.admits(self.devices.source(task.name))

    def limited(self, options: Options, limit: str, plan: Plan) -> Options:
        """Restrict the options to the devices of a plan that a limit selects."""
        if not limit:
            return options
        known = {device.name for device in plan.devices} | {missed.name for missed in plan.unreachable}
        names = tuple(device.name for device in select(self.project.fabric, limit) if device.name in known)
        if not names:
            raise UsageError(Problem(f"--limit {limit!r} selects no device of the plan", "netkit plan shows them"))
        return replace(options, limit=names)

    def rehearse(self, planned: Planned, options: Options | None = None) -> Outcome:
        """Try a plan through handles that cannot write."""
        options = options or Options()
        return deploy.rehearse(
            planned.plan, self.project.fabric, planned.intended, connect=reader_of(self.devices), options=options
        )

    def apply(
        self,
        planned: Planned,
        options: Options,
        journal: Journal,
        provenance: Provenance,
        on_event: EventHandler,
        is_stopping: Stopping,
    ) -> Outcome:
        journal.lease = self.lease
        return deploy.apply(
            planned.plan,
            self.project.fabric,
            planned.intended,
            connect=self.devices.connect,
            gate=gate_of(self.project, self.devices),
            options=options,
            journal=journal,
            provenance=provenance,
            on_event=on_event,
            is_stopping=is_stopping,
        )

    def resume(
        self, journal: Journal, provenance: Provenance, on_event: EventHandler, is_stopping: Stopping
    ) -> Outcome:
        """Continue a run; a failed one only has its rollback left."""
        failed = journal.outcome() if journal.is_to_be_undone() else None
        if failed is not None:
            return failed
        journal.lease = self.lease
        return deploy.resume(
            self.project.fabric,
            connect=self.devices.connect,
            gate=gate_of(self.project, self.devices),
            journal=journal,
            provenance=provenance,
            on_event=on_event,
            is_stopping=is_stopping,
        )

    def plan_rollback(self, undone: Journal, options: Options, limit: str) -> tuple[RollbackPlan, Options]:
        """The plan that rolls a run back, and the options restricted by a limit."""

        @cache
        def others(names: tuple[str, ...]) -> Mapping[str, Running | Unreachable]:
            known: dict[str, Running | Unreachable] = {}
            if options.is_backward:
                known, names = self._unread_of(undone, names)
            if self.here is not None:
                names = tuple(name for name in names if name in self.here)
            # In a fleet, and after a run, other threads are there: no process may be forked.
            processes = 1 if options.is_backward or self.here is not None else self.project.processes
            return known | dict(read(self.devices, names, self.project.feedback, processes))

        def chosen(plan: Plan) -> Collection[str] | None:
            nonlocal options
            options = self.limited(options, limit, plan)
            return options.limit

        back = deploy.plan_rollback(undone, self.project.fabric, self.devices.connect, chosen, others)
        return back, options

    def _unread_of(
        self, undone: Journal, names: Sequence[str]
    ) -> tuple[dict[str, Running | Unreachable], tuple[str, ...]]:
        """What a run that has just ended could not read, and the switches that it did not read.

        It has read what it leaves alone and what it had begun with; hosts do not carry traffic of others.
        """
        plan, fabric = undone.orders().plan, self.project.fabric
        known: dict[str, Running | Unreachable] = {one.name: Unreachable(one.reason) for one in plan.unreachable}
        seen = {one.name for one in plan.devices if one.is_unchanged or undone.before(one.name) is not None}
        left = (name for name in names if name not in known and name not in seen)
        return known, tuple(name for name in left if isinstance(fabric.device(name), Switch))

    def undo(
        self,
        undone: Journal,
        options: Options,
        journal: Journal,
        back: RollbackPlan,
        provenance: Provenance | None,
        on_event: EventHandler,
        is_stopping: Stopping,
    ) -> Outcome:
        """Roll back a run."""
        journal.lease = self.lease
        return deploy.undo(
            undone,
            self.project.fabric,
            connect=self.devices.connect,
            gate=gate_of(self.project, self.devices),
            options=options,
            journal=journal,
            back=back,
            provenance=provenance,
            on_event=on_event,
            is_stopping=is_stopping,
        )

    def end(self, undone: Journal, provenance: Provenance, on_event: EventHandler = ignore_event) -> Outcome:
        """End an unfinished run: changes that wait for confirmation are reverted."""
        undone.lease = self.lease
        return deploy.end(
            self.project.fabric,
            connect=self.devices.connect,
            gate=gate_of(self.project, self.devices),
            journal=undone,
            provenance=provenance,
            on_event=on_event,
        )
