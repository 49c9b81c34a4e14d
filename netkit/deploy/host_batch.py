"""Hosts that change as a batch: each is prepared, verified and confirmed by itself; one run applies all."""

from collections.abc import Callable, Mapping, Sequence

from netkit.deploy.device import Device
from netkit.deploy.fan_out import each
from netkit.deploy.job import Job
from netkit.deploy.model import DeviceOutcome
from netkit.platforms.driver import InStep

Work = Callable[[InStep, Sequence[InStep]], Mapping[str, Exception]]


def is_in_step(device: Device) -> bool:
    """Whether a prepared device changes in step with others of its kind."""
    return isinstance(device.driver, InStep)


def change(job: Job, devices: Mapping[str, Device]) -> dict[str, DeviceOutcome]:
    """Change prepared devices; one that fails before anything is applied does not hold up the others."""
    staged = each(job.runner, devices, lambda name: devices[name].stage())
    ended = {name: outcome for name, outcome in staged.items() if outcome is not None}
    able = [device for name, device in devices.items() if name not in ended]
    against = _each_in_step(able, lambda first, others: first.check_in_step(others))
    ended |= each(job.runner, against, lambda name: devices[name].give_up(against[name]))
    ready = [device for device in able if device.name not in ended]
    errors = _applied(job, ready)
    for device in ready:
        device.note_strategy()
    names = [device.name for device in ready]
    return ended | each(job.runner, names, lambda name: devices[name].conclude(errors.get(name), is_half_possible=True))


def _applied(job: Job, devices: Sequence[Device]) -> Mapping[str, Exception]:
    """Apply what is staged; return what went wrong where."""

    def apply(first: InStep, others: Sequence[InStep]) -> Mapping[str, Exception]:
        for device in devices:
            device.begin()
        return first.commit_in_step(others, job.options.revert_s)

    return _each_in_step(devices, apply)


def _each_in_step(devices: Sequence[Device], work: Work) -> Mapping[str, Exception]:
    """Have the first driver work on all; an error of the run itself is one of every device."""
    drivers = [device.driver for device in devices if isinstance(device.driver, InStep)]
    try:
        return work(drivers[0], drivers[1:]) if drivers else {}
    except Exception as error:
        return {device.name: error for device in devices}
