"""Wave after wave, until all is done or the deploy has to stop."""

from collections.abc import Iterable, Mapping

from netkit.deploy import in_step
from netkit.deploy.device import Device
from netkit.deploy.fan_out import each
from netkit.deploy.job import Job
from netkit.deploy.shape import FAILED, DeviceOutcome, Result, State
from netkit.deploy.wave import Wave, waves
from netkit.plan import Plan
from netkit.plan.shape import DevicePlan

UNREACHABLE = 4
INTERRUPTED = "interrupted"


class Rollout:
    """What became of the devices so far, and whether to go on."""

    def __init__(self, job: Job, earlier: Iterable[DeviceOutcome] = ()) -> None:
        self._job = job
        self.ended: dict[str, DeviceOutcome] = {outcome.device: outcome for outcome in earlier}
        self.stopped = ""
        job.done.update(name for name, outcome in self.ended.items() if outcome.state is State.INTENDED)

    def run(self) -> None:
        """Change every device that has its turn."""
        self._weigh()
        self._plan_waves()
        if len(self._job.waves) > 1 and not self.stopped:
            self._look_at_all()
            self._plan_waves()
        for wave in tuple(self._job.waves):
            if self._job.is_stopping():
                self.stopped = self.stopped or INTERRUPTED
            if self.stopped:
                return
            self._run_wave(wave)

    def _plan_waves(self) -> None:
        todo = {name for name in self._job.tasks if name not in self.ended}
        changed = tuple(device for device in self._job.plan.devices if device.name in todo)
        self._job.waves[:] = waves(_with(self._job.plan, changed), self._job.fabric, self._job.options)

    def _look_at_all(self) -> None:
        """Find out what stands in the way of any device before the first one is changed."""
        names = [name for wave in self._job.waves for name in wave.devices]
        found = each(self._job.runner, names, lambda name: self._device(name, 0).prepare(is_rehearsal=True))
        self._take(found)

    def _run_wave(self, wave: Wave) -> None:
        for name in wave.devices:
            self._job.journal.step("wave", name, wave=wave.number)
        devices = {name: self._device(name, wave.number) for name in wave.devices}
        try:
            self._take(each(self._job.runner, wave.devices, lambda name: devices[name].prepare()))
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
        """Change prepared devices; hosts last, and in step."""
        together = {name: device for name, device in ready.items() if in_step.is_in_step(device)}
        alone = {name: device for name, device in ready.items() if name not in together}
        if not self.stopped:
            self._take(each(self._job.runner, alone, lambda name: alone[name].change()))
        if together and not self.stopped:
            self._take(in_step.change(self._job, together))

    def _device(self, name: str, wave: int) -> Device:
        return Device(self._job, self._job.tasks[name], wave)

    def _take(self, found: Mapping[str, DeviceOutcome | None]) -> None:
        self.ended.update({name: outcome for name, outcome in found.items() if outcome is not None})
        self._weigh()

    def _weigh(self) -> None:
        """Stop where health is worse, or where more failed than may."""
        failures = [outcome for outcome in self.ended.values() if outcome.is_failure]
        unhealthy = next((outcome for outcome in failures if outcome.stops_all), None)
        if unhealthy is not None:
            self.stopped = self.stopped or f"{unhealthy.device} is not healthy"
        elif len(failures) > self._job.options.max_fail and not self._job.options.is_backward:
            names = ", ".join(outcome.device for outcome in failures)
            self.stopped = self.stopped or f"{len(failures)} failed, {self._job.options.max_fail} may: {names}"
        if any(outcome.result is Result.NOT_STARTED for outcome in self.ended.values()):
            self.stopped = self.stopped or INTERRUPTED


def untouched(plan: Plan, limit: tuple[str, ...] | None, missed_runs: State = State.AS_BEFORE) -> list[DeviceOutcome]:
    """Return the outcomes of devices that are known before anything happens."""
    found = []
    for device in plan.devices:
        if limit is not None and device.name not in limit:
            found.append(DeviceOutcome(device.name, Result.EXCLUDED, State.AS_BEFORE))
        elif device.is_unchanged:
            found.append(_unchanged(device))
    for missed in plan.unreachable:
        if limit is not None and missed.name not in limit:
            found.append(DeviceOutcome(missed.name, Result.EXCLUDED, State.AS_BEFORE))
        else:
            reasons = (f"{missed.name}: {missed.reason}",)
            found.append(DeviceOutcome(missed.name, Result.UNREACHABLE, missed_runs, reasons, exit_code=UNREACHABLE))
    return found


def _unchanged(device: DevicePlan) -> DeviceOutcome:
    if device.not_read:
        reasons = tuple(f"{device.name}: not compared: {file}" for file in device.not_read)
        return DeviceOutcome(device.name, Result.FAILED, State.UNKNOWN, reasons, exit_code=FAILED)
    return DeviceOutcome(device.name, Result.UNCHANGED, State.INTENDED)


def not_started(plan: Plan, ended: Mapping[str, DeviceOutcome]) -> list[DeviceOutcome]:
    """Return the outcomes of devices that did not have their turn."""
    names = [device.name for device in plan.devices if device.name not in ended]
    return [DeviceOutcome(name, Result.NOT_STARTED, State.AS_BEFORE, exit_code=FAILED) for name in names]


def _with(plan: Plan, devices: tuple[DevicePlan, ...]) -> Plan:
    return Plan(plan.fabric, devices, plan.unreachable, plan.groups, plan.netkit)
