"""After a failure: return a device to what it ran before, or find out what it runs."""

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass

from netkit.deploy.connection import closing, opened
from netkit.deploy.job import Job, code_of, text_of
from netkit.deploy.journal import LeaseLostError
from netkit.deploy.model import FAILED, ConfigState, Phase
from netkit.deploy.preflight import Preflight, Task, differences, read_device
from netkit.errors import NetkitError
from netkit.platforms.driver import Driver


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
                    ConfigState.INTENDED, "it runs what is intended, though that was not confirmed", FAILED
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
            why = f"it runs what is intended, but that may not be saved: {text_of(error)}"
            return RecoveryOutcome(ConfigState.INTENDED, why, code_of(error))
        return RecoveryOutcome(ConfigState.INTENDED, is_saved=True)
