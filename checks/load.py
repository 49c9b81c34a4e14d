"""Load: the lossless class loses nothing, uplinks share, and adaptive routing works everywhere or nowhere."""

from collections.abc import Iterator, Sequence
from statistics import mean

from netkit.design import Port, Switch
from netkit.facts import Absent
from netkit.facts.counter import place
from netkit.judge import PASSED, CheckContext, DeviceContext, Finding, device_check, fail, skip, warn
from netkit.judge.bound import least_rate
from netkit.platforms import PLATFORMS

DISCARDS_PER_S = 1.0
"""NICs drop fewer than this as announcements without a listener."""
LOST = "see whether PFC is on at both ends and the headroom fits the cable: netkit check qos"


@device_check(
    layer="congestion",
    needs=["counters"],
    window=True,
    follows=["qos", "pfc.priority", "watchdog", "links.flaps", "links.up", "pfc.storms"],
)
def lossless(context: CheckContext, device: DeviceContext) -> Iterator[Finding]:
    """The lossless class loses no packet.

    One lost packet makes RDMA send much of a message again. At ingress it is lost for lack of headroom: PFC is off or
    too late at one end. At egress a watchdog drops it, or the queue is not lossless. See
    `netkit check qos pfc.symmetry watchdog`.
    """
    for port in (*device.ports, *device.nics):
        for priority in context.fabric.lossless.lossless_priorities:
            at = place(port, priority)
            counted = {name: device.delta(name, at) for name in ("buffer_drops", "queue_drops")}
            known = {name: delta for name, delta in counted.items() if delta.is_known}
            if not _has_lossless(context, device, port):
                yield skip(at, "the switch at this cable has no lossless class")
            elif not known:
                yield skip(at, "drops by priority are not reported")
            elif any(delta.value for delta in known.values()):
                shown = ", ".join(f"{name.replace('_', ' ')} {delta.value}" for name, delta in known.items())
                yield fail(at, f"packets of the lossless class were lost: {shown}", LOST)
            else:
                yield PASSED


@device_check(
    layer="congestion",
    needs=["counters"],
    on="host",
    window=True,
    follows=["qos", "host.pcie", "host.acs", "watchdog", "links.flaps", "links.cabling"],
)
def discards(context: CheckContext, device: DeviceContext) -> Iterator[Finding]:
    """A NIC drops nothing, including classes without PFC, which `load.lossless` does not judge.

    At ingress the host is too slow: rings that are too short, PCIe, or busy cores; see `netkit check
    host.pcie host.acs`. TCP is affected, and so are CNPs if their class has no PFC. Less than one a second is not
    a finding: kernels also count announcements without a listener there.
    """
    for nic in device.nics:
        drops = [device.delta(name, nic) for name in ("rx_drops", "tx_drops")]
        if not drops[0].is_known:
            yield skip(nic, f"what it drops is not known: {drops[0].state}")
            continue
        received, sent = (delta.value if delta.is_known else 0 for delta in drops)
        others = max(0, received - _lossless_drops(context, device, nic))
        if least_rate(others + sent, drops[0].seconds) > DISCARDS_PER_S:
            text = f"dropped {others} received packets and {sent} to be sent, not counting lossless ones"
            yield warn(nic, text, "see its rings and PCIe: ethtool -g and -S, netkit check host")
        else:
            yield PASSED


def _lossless_drops(context: CheckContext, device: DeviceContext, nic: str) -> int:
    """What the lossless class lost, which another check judges."""
    places = (place(nic, priority) for priority in context.fabric.lossless.lossless_priorities)
    counted = (device.delta("buffer_drops", at) for at in places)
    return sum(delta.value for delta in counted if delta.is_known)


@device_check(
    layer="link",
    needs=["counters"],
    window=True,
    follows=[
        "optics.flags",
        "optics.light",
        "optics.lanes",
        "optics.loss",
        "optics.trend",
        "optics.bits",
        "optics.fec",
        "links.flaps",
    ],
)
def errors(context: CheckContext, device: DeviceContext) -> Iterator[Finding]:
    """No packets arrive damaged.

    A damaged packet is a lost packet. Check the optics of both ends: `netkit check optics`.
    """
    for port in device.cabled:
        damaged = device.delta("rx_errors", port)
        if not damaged.is_known:
            yield skip(port, f"damaged packets are not known: {damaged.state}")
        elif damaged.value:
            text = f"{damaged.value} packets arrived damaged in {damaged.seconds:.0f} s"
            yield fail(port, text, "see netkit check optics for both ends", cause=context.way_in(device.name, port))
        else:
            yield PASSED


@device_check(
    layer="congestion",
    needs=["counters"],
    on="switch",
    window=True,
    follows=["links.up", "links.flaps", "bgp", "routes.paths", "load.adaptive-routing", "links.speed"],
    reads=["interfaces", "sessions", "tx_bytes"],
)
def balance(context: CheckContext, device: DeviceContext) -> Iterator[Finding]:
    """The uplinks of a switch share the load, and so do parallel links to one neighbour, including those to a leaf.

    A few large flows that hash onto one link congest it while its neighbours idle. Adaptive routing, or more queue
    pairs per connection, spread them. Links that are down or drained are not compared; nor are links with
    almost no load, where sharing cannot be judged.
    """
    used = [port for port in device.ports.values() if port.role != "host" and _is_used(context, device, port)]
    groups = {"the uplinks of this switch": [port for port in used if port.role == "up"]}
    for port in used:
        if port.role != "up":
            groups.setdefault(f"its links to {port.peer}", []).append(port)
    for words, ports in groups.items():
        yield from _shared(context, device, words, ports)


def _shared(context: CheckContext, device: DeviceContext, words: str, ports: Sequence[Port]) -> Iterator[Finding]:
    """Judge how parallel links share their load."""
    rates = {port.name: device.delta("tx_bytes", port.name) for port in ports}
    known = {name: delta.per_s * 8 / 1e9 for name, delta in rates.items() if delta.is_known}
    if len(known) < 2:
        if len(ports) > 1:
            yield skip("", f"of {words} fewer than two are counted")
        return
    usual_gbps = mean(known.values())
    capacity_gbps = mean(port.speed_gbps for port in ports)
    if usual_gbps * 100 < context.limits.balance_minimum_percent * capacity_gbps:
        yield skip("", f"{words} carry {usual_gbps:.1f} Gb/s on average: too little to judge how they share")
        return
    for name, gbps in known.items():
        off_percent = abs(gbps - usual_gbps) / usual_gbps * 100
        if off_percent > context.limits.balance_percent:
            text = f"sends {gbps:.1f} Gb/s, {words} {usual_gbps:.1f} Gb/s on average"
            cause = f"balance of {words}, {device.name}"
            yield warn(name, text, "turn on adaptive routing, or more queue pairs", cause=cause)
        else:
            yield PASSED


def _is_used(context: CheckContext, device: DeviceContext, port: Port) -> bool:
    """Whether a port is up and not drained, by design or by what either end reports."""
    states, near, far = device.facts.interfaces, device.device, context.devices.get(port.peer)
    state = None if isinstance(states, Absent) else states.get(port.name)
    is_down = state is not None and state.is_up is False
    is_meant = any(
        one.drain or other in one.drain_neighbors
        for one, other in ((near, port.peer), (context.fabric.device(port.peer), near.name))
        if isinstance(one, Switch)
    )
    return not (is_down or is_meant or _drains(device, port.name) or (far and _drains(far, port.peer_port)))


def _drains(device: DeviceContext, port: str) -> bool:
    sessions = device.facts.sessions
    session = None if isinstance(sessions, Absent) else sessions.get(port)
    return session is not None and session.is_draining is True


@device_check(layer="qos", needs=["adaptive_routing"], on="switch", follows=[])
def adaptive_routing(context: CheckContext, device: DeviceContext) -> Iterator[Finding]:
    """Adaptive routing works on all ports to other switches, or on none, as the intent sets it.

    If only some ports have it, flows move onto paths that do not adapt, and packets arrive out of order without a
    benefit. `netkit plan` shows where it differs, `netkit deploy` sets it.
    """
    del context
    found = device.facts.adaptive_routing
    if isinstance(found, Absent) or not isinstance(device.device, Switch):
        return
    wanted = device.device.adaptive_routing
    for port in device.device.fabric_ports:
        if port.name not in found:
            yield skip(port.name, "the device does not report whether adaptive routing works there")
        elif found[port.name] != wanted:
            is_on = "on, and" if found[port.name] else "off, and"
            text = f"adaptive routing is {is_on} should be {'on' if wanted else 'off'} everywhere"
            yield fail(
                port.name, text, "netkit plan shows whether it is configured so", cause=f"adaptive {device.name}"
            )
        else:
            yield PASSED


def _has_lossless(context: CheckContext, device: DeviceContext, port: str) -> bool:
    """Whether the switch at a cable has a lossless class; a plain Linux switch has none, and drops when it is full."""
    far = context.far(device.name, port)
    ends = (device.device, context.fabric.device(far.device) if far else None)
    return not any(isinstance(end, Switch) and PLATFORMS[end.platform].lacks("pfc") for end in ends)
