"""The deploy of one device. Every step is journalled before it happens."""

from dataclasses import replace

from netkit.deploy.connection import close, closing, foresee, opened, reopened
from netkit.deploy.device_rollout import DeviceRollout, Window
from netkit.deploy.gate import Moment
from netkit.deploy.job import Job, is_access
from netkit.deploy.journal import SAMPLE, STRATEGY
from netkit.deploy.model import FAILED, ConfigState, DeviceOutcome, DeviceResult, Phase
from netkit.deploy.preflight import Task, check, ending, read_device
from netkit.errors import AccessError, DeviceError, NetkitError, Problem
from netkit.platforms.driver import Candidate, Driver, InStep, LeavesOut
from netkit.platforms.ownership import with_rules


class StoppedError(NetkitError):
    """The deploy was interrupted before this device was changed."""

    exit_code = FAILED


class Device:
    """Changes one device. All devices of a wave are prepared before the first one is changed."""

    def __init__(self, job: Job, task: Task, wave: int) -> None:
        self._rollout = DeviceRollout(job, task, wave)
        self._job, self._task, self._name = job, task, task.name
        self._driver: Driver | None = None
        self._earliest_s = 0.0

    def prepare(self, *, is_rehearsal: bool = False) -> DeviceOutcome | None:
        """Check the device; return None if it can be changed. It stays connected unless this is a rehearsal."""
        try:
            self._rollout.step(Phase.PREFLIGHT)
            self._driver = opened(self._job, self._name)
            self._check(self._driver, is_rehearsal=is_rehearsal)
        except Exception as error:
            self.release()
            result = DeviceResult.UNREACHABLE if is_access(error) else DeviceResult.REFUSED
            return self._rollout.ended(
                replace(self._rollout.failure(error), result=result, state=ConfigState.AS_BEFORE)
            )
        if is_rehearsal:
            self.release()
        return None

    @property
    def name(self) -> str:
        return self._name

    @property
    def driver(self) -> Driver:
        """The open connection of a prepared device."""
        if self._driver is None:
            raise RuntimeError(f"{self._name} is changed before it is prepared")
        return self._driver

    def change(self) -> DeviceOutcome:
        """Change the prepared device, or leave it as it was."""
        return self.stage() or self._applied()

    def stage(self) -> DeviceOutcome | None:
        """Drain the prepared device and load the candidate; return None if it can be committed."""
        try:
            self._stage(self.driver)
        except StoppedError as error:
            self.release()
            outcome = self._rollout.put_back(self._rollout.failure(error))
            if outcome.state is ConfigState.AS_BEFORE:  # no end in the journal: it may be rolled out again
                return replace(outcome, result=DeviceResult.NOT_STARTED)
            return self._rollout.ended(outcome)
        except Exception as error:
            return self.give_up(error)
        return None

    def give_up(self, error: Exception) -> DeviceOutcome:
        """Leave the device unchanged after an error before the commit."""
        self.release()
        return self._rollout.ended(self._rollout.recovered(error))

    def begin(self) -> None:
        """Journal that the staged change is about to be committed."""
        options, clock = self._job.options, self._job.clock
        if isinstance(self._driver, LeavesOut):
            self._rollout.notes = (*self._rollout.notes, *self._driver.left_out())
        self._earliest_s = clock.steady_s() + options.revert_s
        self._job.journal.step(Phase.COMMIT, self._name, wave=self._rollout.wave, revert_s=options.revert_s)
        self._job.show(Phase.COMMIT, self._name, self._rollout.wave)

    def note_strategy(self) -> None:
        """Journal the strategy of a device that changes in a batch, with its reason."""
        note = self._driver.strategy() if isinstance(self._driver, InStep) else ""
        if note:
            self._job.journal.step(STRATEGY, self._name, wave=self._rollout.wave, note=note)
            self._rollout.notes = (*self._rollout.notes, note)

    def conclude(self, error: Exception | None, *, is_half_possible: bool = False) -> DeviceOutcome:
        """Verify and confirm the change; after a failed commit, find out what the device runs.

        Where a change may be half applied, a connection lost during the commit is an error like any other.
        """
        try:
            self._conclude(error, is_half_possible=is_half_possible)
            outcome = self._rollout.done()
        except Exception as failure:
            self.release()
            outcome = self._rollout.recovered(failure)
        finally:
            self.release()
        return self._rollout.ended(outcome)

    def release(self) -> None:
        """Close the connection."""
        if self._driver is not None:
            close(self._driver)
        self._driver = None

    def _check(self, driver: Driver, *, is_rehearsal: bool) -> None:
        if not is_rehearsal:
            foresee(driver, self._task.plan.version)
        seen = read_device(driver, self._task)
        if driver.has_pending_commit():  # even if all is as planned: the plan was made with that change in it
            remedy = "resume the run it belongs to, or wait until the device reverts it"
            raise DeviceError(Problem(f"{self._name}: a change waits for its confirmation", remedy))
        check(seen, self._task, is_back=bool(self._job.undoes))
        if not self._task.is_finish:
            self._job.journal.keep(self._name, seen.running)
        if is_rehearsal:
            return
        self._rollout.ending = ending(seen)
        before = self._rollout.ask(driver, Moment.BEFORE, self._job.options.settle_s)
        self._rollout.sample, self._rollout.is_blank = before.sample, before.is_blank
        self._job.journal.step(SAMPLE, self._name, wave=self._rollout.wave, note=self._rollout.sample)

    def _stage(self, driver: Driver) -> None:
        rollout, planned = self._rollout, self._task.plan
        if self._job.is_drained_first(self._name):
            rollout.step(Phase.DRAIN)
            rollout.is_drained = True
            driver.drain()
            rollout.ask(driver, Moment.DRAINED, self._job.options.drain_s)
        rollout.step(Phase.LOAD)
        rollout.is_loaded = True
        driver.load_candidate(
            Candidate(with_rules(self._task.intended, self._task.owner), planned.changes, planned.way.method)
        )
        if self._job.is_stopping():
            raise StoppedError(Problem("the deploy was interrupted"))

    def _applied(self) -> DeviceOutcome:
        options, error = self._job.options, None
        try:
            self.begin()
            self.driver.commit_config(message=f"netkit {self._job.journal.run}", revert_in=options.revert_s)
        except Exception as failure:
            error = failure
        return self.conclude(error)

    def _conclude(self, error: Exception | None, *, is_half_possible: bool) -> None:
        """Verify and confirm. A lost connection proves nothing: the device may have applied the change."""
        rollout, options, now_s = self._rollout, self._job.options, self._job.clock.steady_s()
        has_answered = error is None or isinstance(error, DeviceError)
        applied_by_s = now_s + (0.0 if has_answered else options.settle_s)
        window = rollout.window = Window(self._earliest_s, now_s + options.revert_s, applied_by_s)
        if error is not None and (is_half_possible or not isinstance(error, AccessError)):
            raise error
        rollout.step(Phase.CONNECT)
        until_s = now_s + min(options.settle_s, rollout.left_s(window))
        with closing(reopened(self._job, self._name, until_s)) as fresh:
            if error is not None and not fresh.has_pending_commit():
                raise error
            rollout.finish(fresh, window)
