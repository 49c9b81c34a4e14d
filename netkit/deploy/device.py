"""One device's way through a deploy. Every step is in the journal before it happens."""

from collections.abc import Sequence
from dataclasses import replace

from netkit.deploy.gate import GateAnswer, GateQuestion, Moment, asked
from netkit.deploy.job import Job, code_of, is_access, is_disruptive, text_of
from netkit.deploy.journal import SAMPLE, Entry
from netkit.deploy.look import Task, check, differences, look
from netkit.deploy.settle import Ending, Settling, Window, close
from netkit.deploy.shape import FAILED, DeviceOutcome, Phase, Result, State, weightiest
from netkit.errors import AccessError, DeviceError, NetkitError, Problem
from netkit.platforms.driver import Candidate, Driver

MARGIN_PART = 0.1
"""How much of the time to confirm is kept in reserve."""
LOOKS = 2
"""How often a device is read before what it runs is held against it."""


class UnhealthyError(DeviceError):
    """The health gate does not let the deploy go on."""


class StoppedError(NetkitError):
    """Somebody asked the deploy to end, and this device was not changed yet."""

    exit_code = FAILED


class Device:
    """Changes one device, or finds out what became of it."""

    def __init__(self, job: Job, task: Task, wave: int) -> None:
        self._job, self._task, self._wave, self._name = job, task, wave, task.name
        self._driver: Driver | None = None
        self._sample = ""
        self._is_drained = self._is_loaded = False
        self._window: Window | None = None

    def prepare(self, *, is_rehearsal: bool = False) -> DeviceOutcome | None:
        """Look at the device; None when it can be changed. It stays connected, unless this is only a rehearsal."""
        try:
            self._step(Phase.PREFLIGHT)
            self._driver = self._opened()
            self._check(self._driver, is_rehearsal=is_rehearsal)
        except Exception as error:
            self.release()
            return self._ended(self._untouched(error))
        if is_rehearsal:
            self.release()
        return None

    def change(self) -> DeviceOutcome:
        """Change the prepared device, or leave it as it was."""
        try:
            outcome = self._changed(self._prepared)
        except StoppedError as error:
            outcome = self._put_back(self._failure(error))
            if outcome.state is State.AS_BEFORE:  # the journal says nothing of an end: it may have its turn again
                return replace(outcome, result=Result.NOT_STARTED)
        except Exception as error:
            outcome = self._recovered(error)
        finally:
            self.release()
        return self._ended(outcome)

    def resume(self, entries: Sequence[Entry]) -> DeviceOutcome | None:
        """Bring in order what a killed run left; None when the device is as before, and may have its turn again."""
        steps = {entry.step for entry in entries}
        self._sample = next((entry.note for entry in reversed(entries) if entry.step == SAMPLE), "")
        self._is_drained, self._is_loaded = Phase.DRAIN in steps, Phase.LOAD in steps
        commit = next((entry for entry in entries if entry.step == Phase.COMMIT), None)
        failed = next((entry.outcome for entry in reversed(entries) if entry.outcome is not None), None)
        if commit is not None:
            settle_s = self._job.options.settle_s
            earliest_s = commit.at_s + commit.revert_s
            self._window = Window(earliest_s, earliest_s + settle_s, False, Phase.CONFIRM in steps)
        if failed is not None:
            return self._ended(self._outcome_after(failed, self._settled()))
        if commit is None and not self._is_drained:
            self._discard()
            return None
        try:
            if commit is not None and self._went_on():
                return self._ended(self._done())
            ending = self._settled()
        except Exception as error:
            return self._ended(self._recovered(error))
        if ending.state is State.AS_BEFORE:
            return None
        return self._ended(self._outcome_after(self._failure(DeviceError(Problem("the run was interrupted"))), ending))

    def release(self) -> None:
        """Hang up."""
        if self._driver is not None:
            close(self._driver)
        self._driver = None

    @property
    def _prepared(self) -> Driver:
        if self._driver is None:
            raise RuntimeError(f"{self._name} is changed before it is prepared")
        return self._driver

    def _check(self, driver: Driver, *, is_rehearsal: bool) -> None:
        seen = look(driver, self._task)
        if not seen.is_as_before(self._task) and driver.has_pending_commit():
            remedy = "resume the run it belongs to, or wait until the device takes it back"
            raise DeviceError(Problem(f"{self._name}: a change waits for its confirmation", remedy))
        check(seen, self._task)
        if is_rehearsal:
            return
        self._job.journal.keep(self._name, seen.running)
        answer = self._asked(driver, Moment.BEFORE, 0.0)
        self._sample = answer.sample
        self._job.journal.step(SAMPLE, self._name, wave=self._wave, note=answer.sample)

    def _changed(self, driver: Driver) -> DeviceOutcome:
        if self._job.is_drained_first(self._name):
            self._step(Phase.DRAIN)
            self._is_drained = True
            driver.drain()
            self._asked(driver, Moment.DRAINED, self._job.options.drain_s)
        self._step(Phase.LOAD)
        self._is_loaded = True
        planned = self._task.plan
        driver.load_candidate(Candidate(self._task.intended, planned.changes, planned.way.method))
        if self._job.is_stopping():
            raise StoppedError(Problem("the deploy was asked to end"))
        lost = self._commit(driver)
        self._step(Phase.CONNECT)
        fresh = self._reopened()
        try:
            if lost is not None and not fresh.has_pending_commit():
                raise lost
            self._finish(fresh)
        finally:
            close(fresh)
        return self._done()

    def _commit(self, driver: Driver) -> AccessError | None:
        """Apply the change. A connection that is lost on the way says nothing: the device may have applied it."""
        revert_s, clock = self._job.options.revert_s, self._job.clock
        began_s = clock.wall_s()
        self._job.journal.step(Phase.COMMIT, self._name, wave=self._wave, revert_s=revert_s)
        self._job.show(Phase.COMMIT, self._name, self._wave)
        lost, has_answered = None, False
        try:
            driver.commit_config(message=f"netkit {self._job.journal.run}", revert_in=revert_s)
            has_answered = True
        except DeviceError:
            has_answered = True
            raise
        except AccessError as error:
            lost = error
        finally:
            self._window = Window(began_s + revert_s, clock.wall_s() + revert_s, has_answered)
        return lost

    def _finish(self, fresh: Driver) -> None:
        """Verify a change over a new connection, keep it, and let traffic back."""
        self._step(Phase.VERIFY)
        self._verify(fresh)
        self._step(Phase.GATE)
        self._asked(fresh, Moment.AFTER, min(self._job.options.settle_s, self._left_s()))
        if self._left_s() <= 0:
            what = f"{self._name}: not enough time was left to confirm the change"
            raise DeviceError(Problem(what, "allow more time until it is taken back"))
        self._step(Phase.CONFIRM)
        self._window = replace(self._opened_window, is_confirming=True)
        fresh.confirm_commit()
        is_late = self._job.clock.wall_s() >= self._opened_window.earliest_s
        if self._is_drained:
            self._step(Phase.UNDRAIN)
            fresh.undrain()
        if is_late or self._is_drained:
            self._verify(fresh)
        self._is_drained = False

    def _verify(self, fresh: Driver) -> None:
        for left in reversed(range(LOOKS)):
            seen = look(fresh, self._task)
            if seen.is_intended():
                return
            if left:
                self._job.clock.sleep_s(self._job.options.poll_s)
        raise DeviceError(Problem(f"{self._name}: does not run what it was given: {differences(seen)}"))

    def _asked(self, driver: Driver, moment: Moment, patience_s: float) -> GateAnswer:
        question = GateQuestion(
            device=self._name,
            moment=moment,
            reader=driver,
            neighbors=self._job.neighbors(self._name),
            risk=self._task.plan.risk,
            needs_idle=is_disruptive(self._task),
            sample=self._sample,
            patience_s=max(0.0, patience_s),
        )
        answer = asked(self._job.gate, question)
        if not answer.is_healthy:
            why = "; ".join(answer.reasons) or answer.verdict
            raise UnhealthyError(Problem(f"{self._name}: {moment} the change: {answer.verdict}: {why}"))
        return answer

    def _went_on(self) -> bool:
        """Whether a change that a killed run left unconfirmed could be kept; there must be time to judge it."""
        if self._left_s() < self._job.options.settle_s:
            return False
        driver = self._opened()
        try:
            if not driver.has_pending_commit() or not look(driver, self._task).is_intended():
                return False
            self._finish(driver)
        finally:
            close(driver)
        return True

    def _recovered(self, error: Exception) -> DeviceOutcome:
        """Return how the device came out after a failure, once that is known."""
        failure = self._failure(error)
        self._job.journal.failed(failure)
        self._job.show(Phase.SETTLE, self._name, self._wave)
        return self._put_back(failure)

    def _put_back(self, failure: DeviceOutcome) -> DeviceOutcome:
        self.release()
        if self._window is None and not self._is_drained:
            self._discard()
            return replace(failure, state=State.AS_BEFORE)
        return self._outcome_after(failure, self._settled())

    def _settled(self) -> Ending:
        now_s = self._job.clock.wall_s()
        window = self._window or Window(now_s, now_s, True)
        return Settling(self._job, self._task, window, self._step, is_drained=self._is_drained).settle()

    def _discard(self) -> None:
        """Forget what is staged, if the device still answers: it changes nothing."""
        if not self._is_loaded:
            return
        try:
            driver = self._opened()
        except Exception:
            return
        try:
            driver.discard_config()
        except NetkitError:
            return
        finally:
            close(driver)

    def _outcome_after(self, failure: DeviceOutcome, ending: Ending) -> DeviceOutcome:
        if ending.state is State.INTENDED and ending.is_saved:
            return replace(self._done(), reasons=failure.reasons)
        is_reverted = ending.state is State.AS_BEFORE and self._window is not None
        return replace(
            failure,
            result=Result.REVERTED if is_reverted else Result.FAILED,
            state=ending.state,
            reasons=(*failure.reasons, *([ending.why] if ending.why else [])),
            exit_code=weightiest(failure.exit_code, ending.exit_code),
        )

    def _done(self) -> DeviceOutcome:
        return DeviceOutcome(self._name, Result.DONE, State.INTENDED, wave=self._wave)

    def _failure(self, error: Exception) -> DeviceOutcome:
        stops = isinstance(error, UnhealthyError)
        reasons = (text_of(error),)
        return DeviceOutcome(self._name, Result.FAILED, State.UNKNOWN, reasons, self._wave, code_of(error), stops)

    def _untouched(self, error: Exception) -> DeviceOutcome:
        result = Result.UNREACHABLE if is_access(error) else Result.REFUSED
        return replace(self._failure(error), result=result, state=State.AS_BEFORE)

    def _ended(self, outcome: DeviceOutcome) -> DeviceOutcome:
        self._job.journal.end(outcome)
        self._job.show(Phase.END, self._name, self._wave, outcome)
        return outcome

    def _opened(self) -> Driver:
        driver = self._job.connect(self._name)
        try:
            driver.open()
        except BaseException:
            close(driver)
            raise
        return driver

    def _reopened(self) -> Driver:
        """Open a new connection; right after a change that may take a while."""
        until_s = self._job.clock.wall_s() + min(self._job.options.settle_s, self._left_s())
        while True:
            try:
                return self._opened()
            except AccessError:
                if self._job.clock.wall_s() >= until_s:
                    raise
                self._job.clock.sleep_s(self._job.options.poll_s)

    @property
    def _opened_window(self) -> Window:
        if self._window is None:
            raise RuntimeError(f"{self._name} is confirmed before it is changed")
        return self._window

    def _left_s(self) -> float:
        """Return how long the change can still be confirmed, with some time in reserve."""
        reserve_s = self._job.options.revert_s * MARGIN_PART
        return self._opened_window.earliest_s - reserve_s - self._job.clock.wall_s()

    def _step(self, phase: Phase) -> None:
        self._job.journal.step(phase, self._name, wave=self._wave)
        self._job.show(phase, self._name, self._wave)
