"""A dry run: everything that could stop a deploy, found by reading alone."""

from collections.abc import Callable, Mapping

from nornir.core.plugins.runners import RunnerPlugin

from netkit.deploy import preflight, refusal
from netkit.deploy.fan_out import each, threads
from netkit.deploy.job import code_of, is_access, text_of
from netkit.deploy.model import ConfigState, DeviceOutcome, DeviceResult, Options, Outcome
from netkit.deploy.rollout import untouched
from netkit.deploy.wave import waves
from netkit.design.fabric import Fabric
from netkit.plan import Plan
from netkit.platforms.config import Files
from netkit.platforms.driver import Reader


def rehearse(
    plan: Plan,
    fabric: Fabric,
    intended: Mapping[str, Files],
    *,
    connect: Callable[[str], Reader],
    options: Options,
    runner: RunnerPlugin | None = None,
) -> Outcome:
    """Return how a deploy would begin. It gets no handle that can change a device, and writes no journal."""
    limit = options.limit
    tasks = preflight.stages_of(plan, intended, None, limit, fabric)[0]
    refusal.check(plan, fabric, intended, tasks, options)
    wave_of = {name: wave.number for wave in reversed(waves(plan, fabric, options)) for name in wave.devices}

    def checked(name: str) -> DeviceOutcome:
        try:
            reader = connect(name)
            reader.open()
            try:
                preflight.check(preflight.read_device(reader, tasks[name]), tasks[name])
            finally:
                reader.close()
        except Exception as error:
            result = DeviceResult.UNREACHABLE if is_access(error) else DeviceResult.REFUSED
            return DeviceOutcome(name, result, ConfigState.AS_BEFORE, (text_of(error),), wave_of[name], code_of(error))
        return DeviceOutcome(name, DeviceResult.READY, ConfigState.AS_BEFORE, wave=wave_of[name])

    found = each(runner or threads(options.parallel), tasks, checked)
    outcomes = {outcome.device: outcome for outcome in (*untouched(plan, limit), *found.values())}
    names = [*(device.name for device in plan.devices), *(missed.name for missed in plan.unreachable)]
    return Outcome("", fabric.name, tuple(outcomes[name] for name in names), is_dry_run=True)
