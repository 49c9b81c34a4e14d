"""Hosts that change as a batch: each is prepared, verified and confirmed on its own; one run commits all."""

from collections.abc import Callable, Mapping, Sequence

from netkit.deploy.device import Device
from netkit.deploy.fan_out import each
from netkit.deploy.job import Job
from netkit.deploy.model import DeviceOutcome
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
