"""The rollout of one device: its progress, the steps that all paths share, and its outcome."""

import re
from contextlib import suppress
from dataclasses import replace

from netkit.deploy.connection import discard, foresee
from netkit.deploy.gate import GateAnswer, GateQuestion, Moment, ask_gate
from netkit.deploy.job import Job, code_of, is_disruptive, text_of
from netkit.deploy.journal import CONFIRMED, JournalError
from netkit.deploy.model import ConfigState, DeviceOutcome, DeviceResult, Phase, weightiest
from netkit.deploy.preflight import Task, differences, read_device
from netkit.deploy.recovery import Recovery, RecoveryOutcome, Window
from netkit.errors import DeviceError, Problem
from netkit.platforms.driver import ConfirmsFirst, Driver

RESERVED_SHARE = 0.1
"""The part of the confirm time that is kept in reserve."""
MOST_READS = 2
"""How often a device is read before a wrong configuration counts as a failure."""

POLICY = re.compile(r"prefix-list|route-map|redistribute|aggregate|PREFIX_|ROUTE_MAP")
POLICY_DELAY_S = 7.0
"""FRR's `bgp route-map delay-timer` is 5 s by default (docs.frrouting.org, BGP); Cumulus Linux and SONiC run FRR."""


class UnhealthyError(DeviceError):
    """The health gate stops the deploy."""


class DeviceRollout:
    """The rollout of one device, from the first check to its outcome."""

    def __init__(self, job: Job, task: Task, wave: int) -> None:
        self.job, self.task, self.wave, self.name = job, task, wave, task.name
        self.sample = ""
        self.is_blank = False
        """Whether there was nothing before the change that could be missing after it."""
        self.notes: tuple[str, ...] = ()
        """Remarks of the health gate about a healthy device."""
        self.ending = frozenset[str]()
        """Words that name the BGP sessions the change removes."""
        self.undrain_failure = ""
        """What went wrong after undraining a device that had to be confirmed first."""
        self.is_drained = self.is_loaded = False
        self.window: Window | None = None
        """Set once the commit was sent."""

    def step(self, phase: Phase) -> None:
        """Journal and report the next phase."""
        self.job.journal.step(phase, self.name, wave=self.wave)
        self.job.show(phase, self.name, self.wave)

    def ask(self, driver: Driver, moment: Moment, time_limit_s: float) -> GateAnswer:
        """Ask the health gate; raise UnhealthyError if it stops the deploy."""
        question = GateQuestion(
            device=self.name,
            moment=moment,
            reader=driver,
            neighbors=self.job.neighbors(self.name),
            risk=self.task.plan.risk,
            ending=self.ending | self.job.waiting(self.name),
            needs_idle=is_disruptive(self.task) and not self.job.options.is_busy_allowed,
            may_cut_off=self.job.options.is_busy_allowed,
            sample=self.sample,
            time_limit_s=max(0.0, time_limit_s),
            prediction=self.job.predict(self.name) if moment.is_after else None,
        )
        answer = ask_gate(self.job.gate, question)
        if not answer.is_healthy:
            why = "; ".join(reason.removeprefix(f"{self.name}: ") for reason in answer.reasons) or answer.verdict
            when = moment.value if moment is Moment.DRAINED else f"{moment} the change"
            raise UnhealthyError(Problem(f"{self.name}: {when}, its health is {answer.verdict}: {why}"))
        self.notes = tuple(dict.fromkeys((*self.notes, *answer.reasons)))
        return answer

    def finish(self, fresh: Driver, window: Window) -> None:
        """Verify the change over a new connection, undrain and watch the device while its timer runs, then confirm."""
        self.step(Phase.VERIFY)
        foresee(fresh, self.task.plan.version)
        self._verify(fresh)
        self._await_policy(window)
        self.step(Phase.GATE)
        self.ask(fresh, Moment.AFTER, min(self.job.options.settle_s, self.left_s(window)))
        is_kept_first = isinstance(fresh, ConfirmsFirst) and fresh.confirms_first
        if self.is_drained and not is_kept_first:
            try:
                self._watch(fresh, self.left_s(window))
            except UnhealthyError:
                self._drain_again(fresh, window)
                raise
        if self.left_s(window) <= 0:
            what = f"{self.name}: not enough time was left to confirm the change"
            raise DeviceError(Problem(what, "allow more with --confirm-within"))
        self.step(Phase.CONFIRM)
        self.window = replace(window, is_confirming=True)
        fresh.confirm_commit()
        self.job.journal.step(CONFIRMED, self.name, wave=self.wave)
        is_late = self.job.clock.steady_s() >= window.earliest_s
        if self.is_drained and is_kept_first:
            self.window = replace(self.window, is_confirmed=True)
            try:
                self._watch(fresh, self.job.options.settle_s)
            except UnhealthyError as error:
                self.undrain_failure = text_of(error)
        if is_late or self.is_drained:
            self._verify(fresh)
        self.is_drained = False

    def _await_policy(self, window: Window) -> None:
        """Wait until a changed filter is in force: FRR applies it some seconds after the commit.

        Where the health gate has nothing to compare, as on a new switch, there is nothing to wait for.
        """
        if not self.is_blank and any(POLICY.search(" ".join(change.path)) for change in self.task.plan.changes):
            committed_s = window.earliest_s - self.job.options.revert_s
            self.job.clock.sleep_s(max(0.0, committed_s + POLICY_DELAY_S - self.job.clock.steady_s()))

    def _watch(self, fresh: Driver, left_s: float) -> None:
        """Undrain the device and poll its health for the watch time."""
        clock, options = self.job.clock, self.job.options
        self.step(Phase.UNDRAIN)
        fresh.undrain()
        self.step(Phase.WATCH)
        begun_s = clock.steady_s()
        until_s, latest_s = begun_s + options.watch_s, begun_s + left_s
        while True:
            asked_s = clock.steady_s()
            self.ask(fresh, Moment.WATCHED, min(options.watch_s, latest_s - asked_s))
            now_s = clock.steady_s()
            if now_s >= min(until_s, latest_s):
                return
            clock.sleep_s(min(until_s - now_s, max(0.0, asked_s + options.poll_s - now_s)))

    def _drain_again(self, fresh: Driver, window: Window) -> None:
        """Drain again before the rollback takes down sessions; the rollback also works without."""
        with suppress(Exception):
            self._step_back(Phase.DRAIN)
            fresh.drain()
            self.job.clock.sleep_s(max(0.0, min(self.job.options.drain_s, self.left_s(window))))

    def left_s(self, window: Window) -> float:
        """Return how long the change can still be confirmed, less a reserve."""
        return window.earliest_s - self.job.options.revert_s * RESERVED_SHARE - self.job.clock.steady_s()

    def recovered(self, error: Exception) -> DeviceOutcome:
        """Recover the device after an error and return its outcome."""
        failure = self.failure(error)
        with suppress(JournalError):  # a recovery does not wait for the journal
            self.job.journal.failed(failure)
        self.job.show(Phase.SETTLE, self.name, self.wave)
        return self.put_back(failure)

    def put_back(self, failure: DeviceOutcome) -> DeviceOutcome:
        """Return the device to its previous configuration, and report how that went."""
        if self.window is None and not self.is_drained:
            if self.is_loaded:
                discard(self.job, self.name)
            return replace(failure, state=ConfigState.AS_BEFORE)
        return self.outcome_after(failure, self.settled())

    def settled(self) -> RecoveryOutcome:
        """Find out what the device runs."""
        now_s = self.job.clock.steady_s()
        window = self.window or Window(now_s, now_s, now_s)
        return Recovery(self.job, self.task, window, self._step_back, is_drained=self.is_drained).settle()

    def outcome_after(self, failure: DeviceOutcome, ending: RecoveryOutcome) -> DeviceOutcome:
        """Return the outcome of a device that failed."""
        if ending.state is ConfigState.INTENDED and ending.is_saved:
            return replace(self.done(), reasons=failure.reasons)
        is_reverted = ending.state is ConfigState.AS_BEFORE and self.window is not None
        return replace(
            failure,
            result=DeviceResult.REVERTED if is_reverted else DeviceResult.FAILED,
            state=ending.state,
            reasons=(*failure.reasons, *([ending.why] if ending.why else [])),
            exit_code=weightiest(failure.exit_code, ending.exit_code),
        )

    def done(self) -> DeviceOutcome:
        """Return the outcome of a device that runs the intended configuration."""
        if self.undrain_failure:
            reasons = (self.undrain_failure, "it was confirmed before it was undrained, and runs what is intended")
            return DeviceOutcome(
                self.name,
                DeviceResult.FAILED,
                ConfigState.INTENDED,
                reasons,
                self.wave,
                UnhealthyError.exit_code,
                stops_all=True,
            )
        return DeviceOutcome(self.name, DeviceResult.DONE, ConfigState.INTENDED, self.notes, self.wave)

    def failure(self, error: Exception) -> DeviceOutcome:
        """Return the outcome of a device of which only an error is known yet."""
        return DeviceOutcome(
            self.name,
            DeviceResult.FAILED,
            ConfigState.UNKNOWN,
            (text_of(error),),
            self.wave,
            code_of(error),
            stops_all=isinstance(error, UnhealthyError),
        )

    def ended(self, outcome: DeviceOutcome) -> DeviceOutcome:
        """Journal and report the outcome."""
        if outcome.state is ConfigState.INTENDED:
            self.job.done.add(self.name)
        with suppress(JournalError):
            self.job.journal.end(outcome)
        self.job.show(Phase.END, self.name, self.wave, outcome)
        return outcome

    def _step_back(self, phase: Phase) -> None:
        with suppress(JournalError):
            self.job.journal.step(phase, self.name, wave=self.wave)
        self.job.show(phase, self.name, self.wave)

    def _verify(self, fresh: Driver) -> None:
        for left in reversed(range(MOST_READS)):
            seen = read_device(fresh, self.task)
            if seen.is_intended():
                if seen.apart:
                    missing = ", ".join(" ".join(change.path) for change in seen.apart)
                    self.notes = (*self.notes, f"still to be changed, by hand or by the next deploy: {missing}")
                return
            if left:
                self.job.clock.sleep_s(self.job.options.poll_s)
        raise DeviceError(Problem(f"{self.name}: does not run the intended configuration: {differences(seen)}"))
