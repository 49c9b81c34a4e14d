"""The rollout of one device: its progress, the steps that all paths share, and its outcome."""

import re
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, replace

from netkit.deploy.connection import closing, discard, foresee, opened
from netkit.deploy.gate import GateAnswer, GateQuestion, Moment, ask_gate
from netkit.deploy.job import Job, code_of, is_disruptive, text_of
from netkit.deploy.journal import CONFIRMED, MEMORY, JournalError, LeaseLostError
from netkit.deploy.model import FAILED, ConfigState, DeviceOutcome, DeviceResult, Phase, weightiest
from netkit.deploy.preflight import Preflight, Task, differences, read_device
from netkit.errors import DeviceError, NetkitError, Problem
from netkit.platforms.driver import ConfirmsFirst, Driver


@dataclass(frozen=True, slots=True)
class Window:
    """The time in which a device may revert a change by itself."""

    earliest_s: float
    """Before this, its timer cannot have run out."""
    latest_s: float
    """After this, its timer has run out."""
    applied_by_s: float
    """After this, a change that the device does not show can no longer arrive."""
    is_confirming: bool = False
    """Whether a confirmation was sent, with whatever result."""
    is_confirmed: bool = False
    """Whether the device acknowledged the confirmation and saved the change."""


@dataclass(frozen=True, slots=True)
class RecoveryOutcome:
    """What a device runs in the end, and why that is unknown or incomplete."""

    state: ConfigState
    why: str = ""
    exit_code: int = 0
    is_saved: bool = False


class Recovery:
    """Brings one device to a known state."""

    def __init__(self, job: Job, task: Task, window: Window, step: Callable[[Phase], None], *, is_drained: bool):
        self._job, self._task, self._window, self._step = job, task, window, step
        self._is_drained = is_drained
        self._applied_by_s = window.applied_by_s
        self._give_up_s = window.latest_s + job.options.settle_s

    def settle(self) -> RecoveryOutcome:
        """Ask the device until it is known what it runs, or its timer has long run out."""
        while True:
            is_last = self._job.clock.steady_s() >= self._give_up_s
            try:
                ending = self._try(is_last=is_last)
            except LeaseLostError as error:
                return RecoveryOutcome(ConfigState.UNKNOWN, text_of(error), FAILED)
            except Exception as error:
                ending = RecoveryOutcome(ConfigState.UNKNOWN, text_of(error), code_of(error))
            if ending.state is not ConfigState.UNKNOWN or is_last:
                return ending
            self._job.clock.sleep_s(self._job.options.poll_s)

    def _try(self, *, is_last: bool) -> RecoveryOutcome:
        with closing(opened(self._job, self._task.name)) as driver:
            if driver.has_pending_commit():
                self._step(Phase.ROLLBACK)
                driver.rollback()
                if driver.has_pending_commit():
                    return RecoveryOutcome(ConfigState.UNKNOWN, "the change is still unconfirmed", FAILED)
                self._applied_by_s = 0.0
            return self._assess(driver, read_device(driver, self._task), is_last=is_last)

    def _assess(self, driver: Driver, seen: Preflight, *, is_last: bool) -> RecoveryOutcome:
        now_s = self._job.clock.steady_s()
        if seen.is_as_before(self._task):
            if now_s < self._applied_by_s:
                return RecoveryOutcome(ConfigState.UNKNOWN, "it may still apply the change", FAILED)
            with suppress(NetkitError):
                driver.discard_config()
            if self._is_drained:
                self._step(Phase.UNDRAIN)
                driver.undrain()
            return RecoveryOutcome(ConfigState.AS_BEFORE)
        if seen.is_intended():
            if self._window.is_confirming and (is_last or now_s < self._window.earliest_s):
                return self._save(driver)
            if is_last:
                return RecoveryOutcome(
                    ConfigState.INTENDED, "it runs the intended configuration, although that was not confirmed", FAILED
                )
            return RecoveryOutcome(ConfigState.UNKNOWN, "it may still revert the change", FAILED)
        return RecoveryOutcome(
            ConfigState.UNKNOWN, f"it runs neither the old nor the intended configuration: {differences(seen)}", FAILED
        )

    def _save(self, driver: Driver) -> RecoveryOutcome:
        """Make sure that a change that stays is also saved."""
        if self._is_drained:
            self._step(Phase.UNDRAIN)
            driver.undrain()
        if self._window.is_confirmed:
            return RecoveryOutcome(ConfigState.INTENDED, is_saved=True)
        try:
            driver.confirm_commit()
        except NetkitError as error:
            why = f"it runs the intended configuration, which may not be saved: {text_of(error)}"
            return RecoveryOutcome(ConfigState.INTENDED, why, code_of(error))
        return RecoveryOutcome(ConfigState.INTENDED, is_saved=True)


RESERVED_SHARE = 0.1
"""The part of the confirm time that is kept in reserve."""
STALE_S = 2.0
"""A configuration that was read longer ago is read again before it is confirmed."""
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
            interrupted=frozenset(self.task.plan.blast.ports),
            needs_idle=is_disruptive(self.task) and not self.job.options.is_busy_allowed,
            may_cut_off=self.job.options.is_busy_allowed,
            may_lose_paths=self.job.options.is_disruptive_allowed,
            sample=self.sample,
            time_limit_s=max(0.0, time_limit_s),
            is_back=bool(self.job.undoes),
            is_together=self.job.options.is_together,
            prediction=None
            if moment is Moment.BEFORE
            else self.job.predict(self.name, is_changing=not moment.is_after),
            narrowed=self.job.narrowed(self.name),
            addresses=self.task.addresses if moment.is_after else None,
            moved=frozenset(self.task.plan.blast.moved),
            memory=self.job.memory,
        )
        answer = ask_gate(self.job.gate, question)
        self.job.memory.keep(lambda text: self.job.journal.step(MEMORY, note=text))
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
        verified_s = self.job.clock.steady_s()
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
        if self.job.clock.steady_s() - verified_s > STALE_S:
            # A daemon that died meanwhile was started with the saved configuration, which is still the earlier one.
            self._verify(fresh)
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
        if self._is_filtering():
            committed_s = window.earliest_s - self.job.options.revert_s
            self.job.clock.sleep_s(max(0.0, committed_s + POLICY_DELAY_S - self.job.clock.steady_s()))

    def _is_filtering(self) -> bool:
        return not self.is_blank and any(POLICY.search(" ".join(change.path)) for change in self.task.plan.changes)

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
        """How long the change can still be confirmed, less a reserve."""
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
        """Find out what the device runs; once filters that it has back are in force, the next device may change."""
        now_s = self.job.clock.steady_s()
        window = self.window or Window(now_s, now_s, now_s)
        found = Recovery(self.job, self.task, window, self._step_back, is_drained=self.is_drained).settle()
        if self.window is not None and found.state is ConfigState.AS_BEFORE and self._is_filtering():
            self.job.clock.sleep_s(POLICY_DELAY_S)
        return found

    def outcome_after(self, failure: DeviceOutcome, ending: RecoveryOutcome) -> DeviceOutcome:
        """The outcome of a device that failed."""
        if ending.state is ConfigState.INTENDED and ending.is_saved:
            return replace(self.done(), reasons=failure.reasons)
        is_reverted = ending.state is ConfigState.AS_BEFORE and self.window is not None
        return replace(
            failure,
            result=DeviceResult.REVERTED if is_reverted else DeviceResult.FAILED,
            state=ending.state,
            reasons=tuple(dict.fromkeys(filter(None, (*failure.reasons, ending.why, *self._still_drained(ending))))),
            exit_code=weightiest(failure.exit_code, ending.exit_code),
        )

    def _still_drained(self, ending: RecoveryOutcome) -> tuple[str, ...]:
        if not self.is_drained or ending.state is not ConfigState.UNKNOWN:
            return ()
        run = self.job.journal.undoes() or self.job.journal.run
        return (f"it may still be drained; netkit rollback {run} gives it its traffic back",)

    def done(self) -> DeviceOutcome:
        """The outcome of a device that runs the intended configuration."""
        if self.undrain_failure:
            reasons = (
                self.undrain_failure,
                "it was confirmed before it was undrained, and runs the intended configuration",
            )
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
        """The outcome of a device of which only an error is known yet."""
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
