"""The rollout: wave by wave, until all is done or the deploy has to stop."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace

from netkit.deploy.device import Device
from netkit.deploy.fan_out import each
from netkit.deploy.job import Job
from netkit.deploy.journal import STAGE, WAVE
from netkit.deploy.live_paths import GOES_ON
from netkit.deploy.model import FAILED, ConfigState, DeviceOutcome, DeviceResult
from netkit.deploy.preflight import Task
from netkit.deploy.wave import Wave, waves
from netkit.errors import PlanError
from netkit.plan import Plan
from netkit.platforms.driver import InStep

Work = Callable[[InStep, Sequence[InStep]], Mapping[str, Exception]]


def is_in_step(device: Device) -> bool:
    """Whether a prepared device is changed in a batch with others of its kind."""
    return isinstance(device.driver, InStep)


def change(job: Job, devices: Mapping[str, Device]) -> dict[str, DeviceOutcome]:
    """Change prepared devices; one that fails before the commit does not hold up the others."""
    staged = each(job.runner, devices, lambda name: devices[name].stage())
    ended = {name: outcome for name, outcome in staged.items() if outcome is not None}
    able = [device for name, device in devices.items() if name not in ended]
    refused = _each_in_step(able, lambda first, others: first.check_in_step(others))
    ended |= each(job.runner, refused, lambda name: devices[name].give_up(refused[name]))
    ready = [device for device in able if device.name not in ended]
    errors = _commit(job, ready)
    for device in ready:
        device.note_strategy()
    names = [device.name for device in ready]
    return ended | each(job.runner, names, lambda name: devices[name].conclude(errors.get(name), is_half_possible=True))


def _commit(job: Job, devices: Sequence[Device]) -> Mapping[str, Exception]:
    """Commit what is staged; return the errors by device."""

    def apply(first: InStep, others: Sequence[InStep]) -> Mapping[str, Exception]:
        for device in devices:
            device.begin()
        return first.commit_in_step(others, job.options.revert_s)

    return _each_in_step(devices, apply)


def _each_in_step(devices: Sequence[Device], work: Work) -> Mapping[str, Exception]:
    """Let the first driver work on all; an error of the run itself counts for every device."""
    drivers = [device.driver for device in devices if isinstance(device.driver, InStep)]
    try:
        return work(drivers[0], drivers[1:]) if drivers else {}
    except Exception as error:
        return {device.name: error for device in devices}


UNREACHABLE = 4
INTERRUPTED = "interrupted"


class Rollout:
    """The outcomes so far, and whether to continue."""

    def __init__(
        self,
        job: Job,
        stages: Sequence[Mapping[str, Task]],
        earlier: Iterable[DeviceOutcome] = (),
        *,
        first: int = 0,
        stopped: str = "",
    ) -> None:
        self.job, self._stages, self._first = job, stages, first
        self.ended: dict[str, DeviceOutcome] = {outcome.device: outcome for outcome in earlier}
        self.stopped = stopped
        job.done.update(name for name, outcome in self.ended.items() if outcome.state is ConfigState.INTENDED)

    def run(self) -> None:
        """Change every device in the plan; the second stage starts once the first is done everywhere."""
        for number in range(self._first, len(self._stages)):
            tasks = self._stages[number]
            if not tasks and number + 1 < len(self._stages):
                continue
            if number > self._first:
                self.ended = {name: outcome for name, outcome in self.ended.items() if name not in tasks}
                self.job.done.difference_update(tasks)
                self.job.journal.step(STAGE, note=str(number))
            self.job = replace(self.job, tasks=tasks, is_finishing=number > 0)
            self._run_stage(is_first=not any(self._stages[:number]))
            if number == 0 and len(self._stages) > 1 and not self.stopped:
                undone = {name for name in tasks if name not in self.ended}
                undone |= {name for name, one in self.ended.items() if one.state is not ConfigState.INTENDED}
                if left := [name for name in self._stages[1] if name in undone]:
                    self.stopped = f"{', '.join(left)}: not changed, so all devices keep the old beside the new"
            if self.stopped:
                break
        self._mark_half_done()

    def _run_stage(self, *, is_first: bool) -> None:
        self._check_failures()
        self._plan_waves(is_first=is_first)
        if len(self.job.waves) > 1 and is_first and not self.stopped:
            # Find what prevents the change of any device before the first one is changed.
            names = list(dict.fromkeys(name for wave in self.job.waves for name in wave.devices))
            self._add_outcomes(
                each(self.job.runner, names, lambda name: self._device(name, 0).prepare(is_rehearsal=True))
            )
            self._plan_waves(is_first=is_first)
        for wave in (wave for wave in tuple(self.job.waves) if (wave.stage == "finish") is self.job.is_finishing):
            if self.job.is_stopping():
                self.stopped = self.stopped or INTERRUPTED
            if self.stopped:
                return
            self._run_wave(wave)

    def _mark_half_done(self) -> None:
        """Report devices whose second stage was not done as running both, unless others have changed them since."""
        if len(self._stages) == 1:
            return
        is_second = self.job.is_finishing
        for name in self._stages[1].keys() & self._stages[0].keys():
            outcome = self.ended.get(name)
            if is_second and outcome is None:
                self.ended[name] = DeviceOutcome(name, DeviceResult.NOT_STARTED, ConfigState.BOTH, exit_code=FAILED)
            elif outcome is not None and outcome.state is (
                ConfigState.AS_BEFORE if is_second else ConfigState.INTENDED
            ):
                is_changed = outcome.result is DeviceResult.REFUSED and outcome.exit_code == PlanError.exit_code
                self.ended[name] = replace(outcome, state=ConfigState.UNKNOWN if is_changed else ConfigState.BOTH)

    def _plan_waves(self, *, is_first: bool) -> None:
        """Plan the remaining devices; the waves of the second stage are numbered after those of the first."""
        job = self.job
        todo = {name for tasks in self._stages[job.is_finishing :] for name in tasks if name not in self.ended}
        part = replace(job.plan, devices=tuple(device for device in job.plan.devices if device.name in todo))
        options = replace(job.options, has_canary=job.options.has_canary and is_first)
        begun = [] if is_first else [wave for wave in job.waves if wave.stage != "finish"]
        found = [wave for wave in waves(part, job.fabric, options) if is_first or wave.stage == "finish"]
        job.waves[:] = [*begun, *(replace(wave, number=number) for number, wave in enumerate(found, len(begun) + 1))]

    def _run_wave(self, wave: Wave) -> None:
        for name in wave.devices:
            self.job.journal.step(WAVE, name, wave=wave.number, note=str(len(self.job.waves)))
        devices = {name: self._device(name, wave.number) for name in wave.devices}
        try:
            self._add_outcomes(each(self.job.runner, wave.devices, lambda name: devices[name].prepare()))
            ready = {name: device for name, device in devices.items() if name not in self.ended}
            self._change(ready)
        finally:
            for device in devices.values():
                device.release()
        if self.stopped:
            return
        if wave.is_canary and any(self.ended[name].is_failure for name in ready):
            self.stopped = f"the first device, {wave.devices[0]}, failed"

    def _change(self, ready: Mapping[str, Device]) -> None:
        """Change prepared devices; hosts last, in a batch."""
        batch = {name: device for name, device in ready.items() if is_in_step(device)}
        others = {name: device for name, device in ready.items() if name not in batch}
        if not self.stopped:
            self._add_outcomes(each(self.job.runner, others, lambda name: others[name].change()))
        if batch and not self.stopped:
            self._add_outcomes(change(self.job, batch))

    def _device(self, name: str, wave: int) -> Device:
        """A device in this stage, or for a rehearsal in its first."""
        return Device(self.job, self.job.tasks.get(name) or self._stages[-1][name], wave)

    def _add_outcomes(self, found: Mapping[str, DeviceOutcome | None]) -> None:
        self.ended.update({name: outcome for name, outcome in found.items() if outcome is not None})
        self._check_failures()

    def _check_failures(self) -> None:
        """Stop if a device is unhealthy, or if more failed than allowed."""
        failures = [outcome for outcome in self.ended.values() if outcome.is_failure]
        unhealthy = next((outcome for outcome in failures if outcome.stops_all), None)
        if unhealthy is not None:
            self.stopped = self.stopped or f"{unhealthy.device} is not healthy"
        elif len(failures) > self.job.options.max_fail and not self.job.options.is_backward:
            names = ", ".join(outcome.device for outcome in failures)
            self.stopped = self.stopped or f"{len(failures)} failed, {self.job.options.max_fail} may: {names}"
        elif self.job.tasks.keys() - self.ended.keys() and (
            needed := [outcome.device for outcome in failures if self._is_needed(outcome.device)]
        ):
            self.stopped = self.stopped or f"the order of the others relies on {', '.join(needed)}; {GOES_ON}"
        if any(outcome.result is DeviceResult.NOT_STARTED for outcome in self.ended.values()):
            self.stopped = self.stopped or INTERRUPTED

    def _is_needed(self, name: str) -> bool:
        """Whether later steps were planned with the change of a device that failed."""
        job = self.job
        planned = job.plan.device(name) if job.plan.has_routing else None
        is_free = job.options.is_disruptive_allowed or job.options.is_backward
        return planned is not None and planned.role != "host" and bool(planned.changes) and not is_free


def untouched(
    plan: Plan, limit: tuple[str, ...] | None, missed_runs: ConfigState = ConfigState.AS_BEFORE
) -> list[DeviceOutcome]:
    """The outcomes of devices that are known before anything happens."""
    found = []
    for device in plan.devices:
        if limit is not None and device.name not in limit:
            found.append(DeviceOutcome(device.name, DeviceResult.EXCLUDED, ConfigState.AS_BEFORE))
        elif device.not_read and device.is_unchanged:
            reasons = tuple(f"{device.name}: not compared: {file}" for file in device.not_read)
            found.append(
                DeviceOutcome(device.name, DeviceResult.FAILED, ConfigState.UNKNOWN, reasons, exit_code=FAILED)
            )
        elif device.is_unchanged:
            found.append(DeviceOutcome(device.name, DeviceResult.UNCHANGED, ConfigState.INTENDED))
    for missed in plan.unreachable:
        if limit is not None and missed.name not in limit:
            found.append(DeviceOutcome(missed.name, DeviceResult.EXCLUDED, ConfigState.AS_BEFORE))
        else:
            reasons = (f"{missed.name}: {missed.reason}",)
            found.append(
                DeviceOutcome(missed.name, DeviceResult.UNREACHABLE, missed_runs, reasons, exit_code=UNREACHABLE)
            )
    return found


def not_started(plan: Plan, ended: Mapping[str, DeviceOutcome]) -> list[DeviceOutcome]:
    names = [device.name for device in plan.devices if device.name not in ended]
    return [DeviceOutcome(name, DeviceResult.NOT_STARTED, ConfigState.AS_BEFORE, exit_code=FAILED) for name in names]
