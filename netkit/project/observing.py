"""Read the devices of a fabric: the facts that the checks of a run need, over one connection each."""

from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace

from netkit import plan as planning
from netkit.design import Fabric
from netkit.design.select import Device, neighborhood, select
from netkit.facts import Snapshot
from netkit.observe import NATIVE, Collected, CollectOptions, Target, collect, subject, target
from netkit.plan import Running, Unreachable
from netkit.platforms.view import Viewer
from netkit.project.comparing import joined as joined_plans
from netkit.project.connections import Connections
from netkit.project.deadline import NEVER, Deadline
from netkit.project.planning import compared
from netkit.project.processes import Names, ProcessPool, T, Work, divided
from netkit.project.project import Feedback, Project
from netkit.project.rendering import intended

LOOKING = "looking"
SNMP_AT_ONCE = 8
"""A leaf of 64 ports takes two seconds of Python, under one interpreter lock: more at once only delay each other."""
LAB_AT_ONCE = 4
"""For each process: all devices of a lab share the cores of this machine, and more at once run into time limits."""
NOT_CONFIGURED = "only the platform's own commands show the configuration: check drift --source native"


class OnlyViewing:
    """A driver reduced to reading."""

    def __init__(self, viewer: Viewer) -> None:
        self.open = viewer.open
        self.close = viewer.close
        self.ask = viewer.ask
        self.running_files = viewer.running_files
        self.os_version = viewer.os_version


@dataclass(frozen=True, slots=True)
class Looking:
    """Which devices a run reads, and how."""

    devices: Sequence[Device]
    options: CollectOptions
    is_light: bool = False
    has_probes: bool = True
    """Let hosts send packets to each other."""
    deadline: Deadline = NEVER

    @property
    def rounds(self) -> int:
        """How often each device is read."""
        return 2 if self.options.window_s else 1

    def part(self, names: Collection[str]) -> "Looking":
        return replace(self, devices=[device for device in self.devices if device.name in names])


def look(project: Project, connections: Connections, looking: Looking) -> Snapshot:
    """Read the devices in this process; if configurations are read too, add their differences from the intent."""
    targets = [
        looked_at(
            project.fabric,
            device,
            is_light=looking.is_light,
            source=connections.origin(device.platform).source,
            has_probes=looking.has_probes,
        )
        # Unit by unit, so that counters of both ends of a cable are read at about the same time.
        for device in sorted(looking.devices, key=neighborhood)
    ]

    def viewer(name: str) -> Viewer:
        return looking.deadline.bound(OnlyViewing(connections.viewer(name)))

    with project.feedback.progress(LOOKING, looking.rounds * len(targets)) as count:
        limit_s = looking.deadline.share_s(looking.options.window_s)
        options = replace(looking.options, deadline_s=min(looking.options.deadline_s, limit_s))
        if any(origin.source == "snmp" for origin in connections.origins.values()):
            options = replace(options, parallel=min(options.parallel, SNMP_AT_ONCE))
        if project.lab:
            options = replace(options, parallel=min(options.parallel, LAB_AT_ONCE))
        found = collect(project.fabric.name, targets, viewer, options, count)
    seen = replace(found.snapshot, devices={one.name: found.snapshot.devices[one.name] for one in looking.devices})
    if not options.has_config:
        return seen
    running = {device.name: _running(device.name, found) for device in looking.devices}
    plan = compared(project, running, intended(project, looking.devices), is_part=True)
    return replace(seen, plan=planning.write(plan))


def snapshot(project: Project, limit: str, *, window_s: float, is_light: bool, source: str) -> Snapshot:
    """Read selected devices, and the differences of their configurations."""
    looking = Looking(select(project.fabric, limit), CollectOptions(window_s=window_s, has_config=True), is_light)
    connections = Connections.of(project, source=source)

    def part(names: Names, feedback: Feedback) -> Snapshot:
        return look(replace(project, feedback=feedback), connections, looking.part(names))

    with spread(project, looking, part) as parts:
        return joined(project.fabric, looking.devices, list(parts))


@contextmanager
def spread(project: Project, looking: Looking, part: Work[T]) -> Iterator[Iterator[T]]:
    """Yield what each part of the devices gives, read at the same time by as many processes as there are parts."""
    names = divided([device.name for device in sorted(looking.devices, key=neighborhood)], project.processes)
    total = len(looking.devices) * looking.rounds
    with ProcessPool(names, part, len(names), LOOKING) as found, project.feedback.progress(LOOKING, total) as count:
        yield found.results(project.feedback, count)


def joined(fabric: Fabric, devices: Sequence[Device], parts: Sequence[Snapshot]) -> Snapshot:
    """Join the snapshots of parts of the devices."""
    if len(parts) == 1:
        return parts[0]
    plans = [planning.read(part.plan) for part in parts if part.plan]
    plan = joined_plans(fabric, [device.name for device in devices], plans) if plans else None
    found = {name: one for part in parts for name, one in part.devices.items()}
    seen = {device.name: found[device.name] for device in devices}
    return Snapshot(fabric.name, max(part.taken_s for part in parts), seen, planning.write(plan) if plan else "")


def looked_at(
    fabric: Fabric, device: Device, *, is_light: bool = True, source: str = NATIVE, has_probes: bool = True
) -> Target:
    """A device with the commands to run on it."""
    whole = subject(fabric, device)
    wanted = whole if has_probes else replace(whole, probes=())
    return target(device.platform, wanted, source=source, is_light=is_light)


def _running(name: str, found: Collected) -> Running | Unreachable:
    config = found.configs.get(name)
    if config is None:
        return Unreachable(found.snapshot.devices[name].failure or NOT_CONFIGURED)
    return Running(config.files, config.version)
