"""Counters: whether the counters that other checks use can be trusted within this window."""

from collections import Counter
from collections.abc import Iterator

from netkit.facts import COUNTERS, Absent
from netkit.facts.counter import parts
from netkit.judge import PASSED, CheckContext, DeviceContext, Finding, device_check, fabric_check, skip, warn
from netkit.judge.context import still
from netkit.judge.delta import CounterState, has_fallen

AGAIN = "check again; if it recurs, see what clears counters, and whether a driver or a daemon restarts"


@device_check(layer="reach", needs=["counters"], window=True, follows=[])
def resets(context: CheckContext, device: DeviceContext) -> Iterator[Finding]:
    """No counter was reset within the window.

    They were cleared, a driver or a daemon was reloaded, or the device rebooted. What they counted before is lost, so
    other checks skip them this time. A counter that wrapped at the end of its range is not a reset and
    continues. Clearing affects all counters of a port: a few that fell while most continued are narrow ones, which wrap
    between two readings. Check again; if they were not cleared, find out why the device restarted.
    """
    del context
    system = device.facts.system
    uptime_s = None if isinstance(system, Absent) else system.uptime_s
    if uptime_s is not None and uptime_s < device.window_s:
        yield warn(
            "", f"started {uptime_s:.0f} s ago, within the window: its counters cannot be used", "see why it restarted"
        )
        return
    counted, restarted = _counting_ports(device), _restarted(device)
    continued = _continued(device) if restarted else Counter[str]()
    for port in device.cabled:
        if restarted[port] and continued[port] > restarted[port]:
            yield skip(port, f"{restarted[port]} of its counters wrap between two readings; the others continue")
        elif restarted[port]:
            text = f"{restarted[port]} of its counters were reset within {device.window_s:.0f} s"
            yield warn(port, text, AGAIN, cause=f"counters of {device.name}", state=CounterState.RESET)
        elif port in counted:
            yield PASSED
        else:
            yield skip(port, "the device counts nothing there")


def _counting_ports(device: DeviceContext) -> set[str]:
    """The ports with any counter."""
    last = device.observation.samples[-1].counters
    return {at for name, counts in last.items() if _is_of_port(name) for at in counts}


def _restarted(device: DeviceContext) -> Counter[str]:
    """How many counters of each port were reset; most only rise, and need no closer look."""
    first, last = device.observation.samples[0], device.observation.samples[-1]
    found = Counter[str]()
    for name, counts in last.counters.items():
        if first.boot == last.boot and not has_fallen(first.counters.get(name, {}), counts):
            continue
        is_of_port = _is_of_port(name)
        restarted = (at for at, delta in device.deltas(name).items() if delta.state is CounterState.RESET)
        found.update(at if is_of_port else parts(at)[0] for at in restarted)
    return found


def _continued(device: DeviceContext) -> Counter[str]:
    """How many nonzero counters of each port have not fallen."""
    first, last = device.observation.samples[0], device.observation.samples[-1]
    found = Counter[str]()
    for name, counts in last.counters.items():
        is_of_port = _is_of_port(name)
        for at, earlier in first.counters.get(name, {}).items():
            found[at if is_of_port else parts(at)[0]] += 0 < earlier <= counts.get(at, 0)
    return found


def _is_of_port(name: str) -> bool:
    return name not in COUNTERS or COUNTERS[name].scope == "port"


@fabric_check(layer="reach", needs=["counters"], window=True, follows=[], reads=[])
def stuck(context: CheckContext) -> Iterator[Finding]:
    """Counters are not stuck: what one end sends, the other end counts as received.

    A device with stuck counters hides everything that other checks look for, though its traffic may be fine. Its
    counter daemon may have died: restart it, and check again.
    """
    for near, near_port, far, far_port in context.cables():
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
