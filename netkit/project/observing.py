"""Looking at the devices of a fabric: what the checks of a run need, over one connection each."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from netkit import plan as planning
from netkit.design import Fabric
from netkit.design.select import Device, select
from netkit.facts import Snapshot
from netkit.observe import NATIVE, Collected, CollectOptions, Target, collect, subject, target
from netkit.plan import Plan, Running, Unreachable
from netkit.platforms.view import Viewer
from netkit.project.deadline import NEVER, Deadline
from netkit.project.fleet import Fleet, fleet
from netkit.project.planning import compared
from netkit.project.project import Project
from netkit.project.rendering import intended

SNMP_AT_ONCE = 8
"""Two seconds of Python for a leaf of 64 ports, one after the other: more at once only makes each of them later."""
NOT_CONFIGURED = "only the platform's own commands show it: check drift --source native"


class OnlyViewing:
    """A driver of which nothing but looking is left."""

    def __init__(self, viewer: Viewer) -> None:
        self.open = viewer.open
        self.close = viewer.close
        self.ask = viewer.ask
        self.running_files = viewer.running_files
        self.os_version = viewer.os_version


@dataclass(frozen=True, slots=True)
class Looking:
    """How a run looks at its devices."""

    devices: Sequence[Device]
    options: CollectOptions
    is_light: bool = False
    has_probes: bool = True
    """Whether hosts send packets to each other."""
    deadline: Deadline = NEVER


def look(project: Project, fleet: Fleet, looking: Looking) -> Snapshot:
    """Return what the devices are like now, and what differs from the intent when configurations are read too."""
    targets = [
        looked_at(
            project.fabric,
            device,
            is_light=looking.is_light,
            source=_source(fleet, device),
            has_probes=looking.has_probes,
        )
        for device in looking.devices
    ]

    def viewer(name: str) -> Viewer:
        return looking.deadline.bound(OnlyViewing(fleet.viewer(name)))

    rounds = 2 if looking.options.window_s else 1
    with project.feedback.progress("looking", rounds * len(targets)) as count:
        options = _in_time(_paced(looking.options, fleet), looking.deadline)
        found = collect(project.fabric.name, targets, viewer, options, count)
    if not looking.options.has_config:
        return found.snapshot
    return replace(found.snapshot, plan=planning.write(_differences(project, looking.devices, found)))


def snapshot(project: Project, limit: str, *, window_s: float, is_light: bool, source: str) -> Snapshot:
    """Return what chosen devices are like now, with the differences of their configurations."""
    looking = Looking(select(project.fabric, limit), CollectOptions(window_s=window_s, has_config=True), is_light)
    return look(project, fleet(project, source=source), looking)


def looked_at(
    fabric: Fabric, device: Device, *, is_light: bool = True, source: str = NATIVE, has_probes: bool = True
) -> Target:
    """Return a device with what there is to ask it."""
    whole = subject(fabric, device)
    wanted = whole if has_probes else replace(whole, probes=())
    return target(_platform(device), wanted, source=source, is_light=is_light)


def _paced(options: CollectOptions, fleet: Fleet) -> CollectOptions:
    """Return options under which devices meet their deadlines: answers of SNMP cost this machine's time to read."""
    is_slow = any(origin.source == "snmp" for origin in fleet.origins.values())
    return replace(options, parallel=min(options.parallel, SNMP_AT_ONCE)) if is_slow else options


def _in_time(options: CollectOptions, deadline: Deadline) -> CollectOptions:
    return replace(options, deadline_s=min(options.deadline_s, deadline.share_s(options.window_s)))


def _platform(device: Device) -> str:
    return device.platform


def _source(fleet: Fleet, device: Device) -> str:
    return fleet.origin(_platform(device)).source


def _differences(project: Project, devices: Sequence[Device], found: Collected) -> Plan:
    read = {device.name: _read(device.name, found) for device in devices}
    return compared(project, read, intended(project, devices))


def _read(name: str, found: Collected) -> Running | Unreachable:
    config = found.configs.get(name)
    if config is None:
        return Unreachable(found.snapshot.devices[name].failure or NOT_CONFIGURED)
    return Running(config.files, config.version)
