"""Counters: whether what other checks rest on can be trusted within this window."""

from collections import Counter
from collections.abc import Iterator

from netkit.facts import COUNTERS, Absent
from netkit.facts.counter import parts
from netkit.judge import PASSED, CheckContext, DeviceContext, Finding, device_check, fabric_check, skip, warn
from netkit.judge.context import still
from netkit.judge.delta import CounterState

AGAIN = "look again; should it come back, see who clears counters, and whether a driver or a daemon restarts"


@device_check(layer="reach", needs=["counters"], window=True, follows=[])
def resets(context: CheckContext, device: DeviceContext) -> Iterator[Finding]:
    """No counter began anew within the window.

    Somebody cleared them, a driver or a daemon was loaded again, or the device rebooted. What they counted before is
    lost, so other checks skip them this time: a quiet window says less than it seems. A counter that ran over the end
    of its range is no reset; it goes on counting. Whoever clears counters clears all of a port, so that a few that fell
    while most went on are narrow ones, which run over their end more often than anybody looks. Look again; when nobody
    cleared them, see why it restarted.
    """
    del context
    system = device.facts.system
    uptime_s = None if isinstance(system, Absent) else system.uptime_s
    if uptime_s is not None and uptime_s < device.window_s:
        yield warn(
            "", f"started {uptime_s:.0f} s ago, within the window: its counters say nothing", "see why it restarted"
        )
        return
    told, anew = _told(device), _anew(device)
    going_on = _going_on(device) if anew else Counter[str]()
    for port in (*device.ports, *device.nics):
        if anew[port] and going_on[port] > anew[port]:
            yield skip(port, f"{anew[port]} of its counters run over their end between two looks: others go on")
        elif anew[port]:
            text = f"{anew[port]} of its counters began anew within {device.window_s:.0f} s"
            yield warn(port, text, AGAIN, cause=f"counters of {device.name}", state=CounterState.RESET)
        elif port in told:
            yield PASSED
        else:
            yield skip(port, "the device counts nothing there")


def _told(device: DeviceContext) -> set[str]:
    """Return the ports of which anything is counted."""
    last = device.observation.samples[-1].counters
    return {at for name, counts in last.items() if _is_of_port(name) for at in counts}


def _anew(device: DeviceContext) -> Counter[str]:
    """Return how many counters of each port began anew; most only rise, and need no second look."""
    first, last = device.observation.samples[0], device.observation.samples[-1]
    found = Counter[str]()
    for name, counts in last.counters.items():
        earlier = first.counters.get(name, {})
        if first.boot == last.boot and all(count >= earlier.get(at, 0) for at, count in counts.items()):
            continue
        is_of_port = _is_of_port(name)
        anew = (at for at, delta in device.deltas(name).items() if delta.state is CounterState.RESET)
        found.update(at if is_of_port else parts(at)[0] for at in anew)
    return found


def _going_on(device: DeviceContext) -> Counter[str]:
    """Return how many counters of each port had counted before and are no lower now."""
    first, last = device.observation.samples[0], device.observation.samples[-1]
    found = Counter[str]()
    for name, counts in last.counters.items():
        is_of_port = _is_of_port(name)
        for at, earlier in first.counters.get(name, {}).items():
            found[at if is_of_port else parts(at)[0]] += 0 < earlier <= counts.get(at, 0)
    return found


def _is_of_port(name: str) -> bool:
    return name not in COUNTERS or COUNTERS[name].scope == "port"


@fabric_check(layer="reach", needs=["counters"], window=True, follows=[])
def stuck(context: CheckContext) -> Iterator[Finding]:
    """Counters count: what one end sends, the other end sees arrive.

    A device whose counters stand still hides everything that other checks look for, though its traffic may be well.
    Its counter daemon may have died: restart it, and look again.
    """
    for near, near_port, far, far_port in context.links():
        for one, port, other, other_port in ((near, near_port, far, far_port), (far, far_port, near, near_port)):
            yield _counting(one, port, other, other_port)


def _counting(device: DeviceContext, port: str, far: DeviceContext, far_port: str) -> Finding:
    """Judge the counters of one end by what the other end sent and received."""
    ends = (device.observation.samples, port), (far.observation.samples, far_port)
    match still(device.deltas, far.deltas, *ends):
        case None:
            return skip(port, f"{far.name} and it did not both count bytes over the same time", device=device.name)
        case False:
            return PASSED
    text = f"its counters stand still while {far.name}:{far_port} counts"
    remedy = "see whether its counter daemon runs"
    return warn(port, text, remedy, device=device.name, cause=f"counters of {device.name}")
