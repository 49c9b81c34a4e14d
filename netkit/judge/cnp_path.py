"""The path of CNPs hop by hop: where they leave their queue, and where they are lost."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from netkit.design import Switch
from netkit.design.fabric import CableEnd
from netkit.facts import Absent
from netkit.facts.counter import place
from netkit.judge.bound import astray, least, most
from netkit.judge.context import CheckContext, DeviceContext
from netkit.judge.delta import Delta
from netkit.judge.parity import HALF, skew_s

HEARD = ("cnp_handled", "cnp_ignored")
CNP_READS = (
    *("interfaces", "qos", "cnp_sent", *HEARD, "ecn_received", "priority_rx_packets/cnp", "priority_tx_packets/cnp"),
    *("queue_tx_packets/cnp", "queue_drops/cnp", "rx_packets", "tx_packets", "carrier_changes", "link_downs"),
)
"""The facts and counters that the functions of this module read, and the sums of `parity`."""
ASKED_APART_S = 0.5
"""CNPs and packets by priority are read from two sources of a host, up to this far apart on a busy one."""


class Stray(NamedTuple):
    """CNPs that were sent to a device in their queue, and that left it in another one."""

    sender: CableEnd
    receiver: CableEnd
    sent: int
    kept: int
    """How many of these the receiver forwarded, or received, in their queue."""
    others: tuple[CableEnd, ...] = ()
    """Other possible senders, which the counts do not distinguish."""


class CnpLoss(NamedTuple):
    """One place where CNPs are lost."""

    end: CableEnd
    packets: int
    text: str
    surely: float = 0.0
    """The part of its CNPs that a NIC loses at least."""


def is_cut_off(context: CheckContext, device: DeviceContext, nic: str) -> bool:
    """Whether an unread NIC neither sent nor received anything: its leaf had the port down all the time."""
    far = context.far(device.name, nic)
    leaf = context.devices.get(far.device) if far else None
    if (
        device.delta("cnp_sent", nic).is_known
        or far is None
        or leaf is None
        or isinstance(leaf.facts.interfaces, Absent)
    ):
        return False
    state = leaf.facts.interfaces.get(far.port)
    moved = [leaf.delta(name, far.port) for name in ("tx_packets", "rx_packets", "carrier_changes", "link_downs")]
    is_still = any(delta.is_known for delta in moved[:2]) and not any(delta.value for delta in moved)
    return state is not None and state.is_up is False and is_still


def losses(context: CheckContext, nics: Sequence[tuple[DeviceContext, str]]) -> tuple[CnpLoss, ...]:
    """Where CNPs of a rail are lost, the greatest loss first: in NICs, or in full queues."""
    found = [
        loss for device, nic in nics for loss in (*_swallowed(context, device, nic), *_withheld(context, device, nic))
    ]
    leaves = {device.nics[nic].leaf for device, nic in nics}
    switches = [
        one
        for one in context.switches
        if one.name in leaves or not (isinstance(one.device, Switch) and one.device.role == "leaf")
    ]
    found += [loss for device in switches for loss in _dropped(context, device)]
    return tuple(sorted(found, key=lambda loss: -loss.packets))


def _swallowed(context: CheckContext, device: DeviceContext, nic: str) -> Iterator[CnpLoss]:
    delivered = sent_to(context, device.name, nic)
    counted = _total(device.delta(name, nic) for name in HEARD)
    if delivered is None or not all(device.delta(name, nic).is_known for name in HEARD[:1]):
        return
    surely = least(delivered.value - counted, delivered.value, _doubt(context, device, nic))
    if surely > 0:
        text = f"{device.name}:{nic} counts {counted} of the {delivered.value} its leaf delivers"
        yield CnpLoss(CableEnd(device.name, nic), delivered.value - counted, text, surely)


def _withheld(context: CheckContext, device: DeviceContext, nic: str) -> Iterator[CnpLoss]:
    number = context.fabric.lossless.cnp.priority
    counted, left = device.delta("cnp_sent", nic), device.delta("priority_tx_packets", place(nic, number))
    doubt = min(1.0, 2 * ASKED_APART_S / device.window_s) if device.window_s else 1.0
    surely = least(counted.value - left.value, counted.value, doubt) if counted.is_known and left.is_known else 0.0
    if surely > 0:
        sent = f"counts {counted.value} as sent, and {left.value} packets leave it on priority {number}"
        yield CnpLoss(CableEnd(device.name, nic), counted.value - left.value, f"{device.name}:{nic} {sent}", surely)


def _dropped(context: CheckContext, device: DeviceContext) -> Iterator[CnpLoss]:
    for port in device.ports:
        drops = device.delta("queue_drops", place(port, context.fabric.lossless.cnp.priority))
        if drops.value:
            yield CnpLoss(
                CableEnd(device.name, port), drops.value, f"{device.name}:{port} drops {drops.value} in their queue"
            )


def pair(nics: Sequence[tuple[DeviceContext, str]]) -> str:
    """The NICs between which most CNPs of a rail are lost: the top sender and the least receiver."""
    sent = {CableEnd(device.name, nic): device.delta("cnp_sent", nic).value for device, nic in nics}
    heard = {CableEnd(device.name, nic): _total(device.delta(name, nic) for name in HEARD) for device, nic in nics}
    sender = max(sent, key=lambda end: sent[end])
    others = [end for end in heard if end != sender]
    return f"{sender} to {min(others, key=lambda end: heard[end])}" if others else str(sender)


def hops(context: CheckContext, rail: int) -> str:
    """The hops of a rail that are not configured to treat CNPs as intended; spines belong to all rails."""
    found = [
        deviation
        for device in context.devices.values()
        for port in (*device.ports, *device.nics)
        if _is_of_rail(device, port, rail) and (deviation := _deviation(context, device, port))
    ]
    profile = context.fabric.lossless
    return "; ".join(found) or f"all that report it map DSCP {profile.cnp_dscp} to priority {profile.cnp.priority}"


def _is_of_rail(device: DeviceContext, port: str, rail: int) -> bool:
    if port in device.nics:
        return device.nics[port].rail == rail
    return isinstance(device.device, Switch) and (device.device.role != "leaf" or device.device.rail == rail)


def _deviation(context: CheckContext, device: DeviceContext, port: str) -> str:
    """How a hop treats CNPs if not as intended; empty if it does, or does not report."""
    profile, shown = context.fabric.lossless, device.facts.qos
    qos = None if isinstance(shown, Absent) else shown.get(port)
    if qos is None:
        return ""
    if qos.cnp_dscp not in {None, profile.cnp_dscp}:
        return f"{device.name}:{port} sends them with DSCP {qos.cnp_dscp}"
    priority = (qos.dscp_to_priority or {}).get(profile.cnp_dscp, profile.cnp.priority)
    return f"{device.name}:{port} maps them to priority {priority}" if priority != profile.cnp.priority else ""


def strays(context: CheckContext) -> tuple[Stray, ...]:
    """The cables behind which CNPs are no longer in their queue."""
    found = [one for device in context.switches for one in _of_switch(context, device)]
    missing = {rail.number: _missing(context, rail.number) for rail in context.fabric.rails}
    found += [one for device in context.hosts for nic in device.nics for one in _of_nic(context, device, nic, missing)]
    known = {end.device for one in found if not one.others for end in (one.sender, one.receiver)}
    return tuple(one for one in found if not (one.others and known & {end.device for end in (one.sender, *one.others)}))


def sent_to(context: CheckContext, device: str, port: str) -> Delta | None:
    """What the other end of a port sends to it in the CNP queue; None if that is not counted."""
    far = context.far(device, port)
    seen = context.devices.get(far.device) if far else None
    if far is None or seen is None:
        return None
    at = place(far.port, context.fabric.lossless.cnp.priority)
    is_switch = isinstance(seen.device, Switch)
    found = seen.delta("queue_tx_packets" if is_switch else "priority_tx_packets", at)
    return found if found.is_known else None


def _of_switch(context: CheckContext, device: DeviceContext) -> Iterator[Stray]:
    """Yield the ports where CNPs enter and leave their queue, on a switch that forwards fewer than it receives.

    A port that remarks their DSCP, or maps it to another priority, does so with all of them. So what is missing is what
    came in by one port, by all ports of one neighbour, or all there was.
    """
    queue = context.fabric.lossless.cnp.priority
    passed_on = [device.delta("queue_tx_packets", place(port, queue)) for port in device.ports]
    if not all(delta.is_known for delta in passed_on):
        return
    came = {port: delta.value for port in device.ports if (delta := sent_to(context, device.name, port)) is not None}
    kept = sum(delta.value for delta in passed_on)
    kept += sum(device.delta("queue_drops", place(port, queue)).value for port in device.ports)
    total = sum(came.values())
    slack = astray(total, max((_doubt(context, device, port) for port in came), default=0.0))
    if total - kept <= slack:
        return
    by_neighbor: dict[str, list[str]] = {}
    for port in came:
        by_neighbor.setdefault(device.ports[port].peer, []).append(port)
    for groups in ([[port] for port in came], list(by_neighbor.values()), [list(came)]):
        sums = [(sum(came[port] for port in group), group) for group in groups]
        alike = [group for count, group in sums if abs(count - (total - kept)) <= slack and most(0, count) < HALF]
        if alike:
            break
    else:
        alike = [[port] for port, count in came.items() if count]
    senders = [far for group in alike for port in group if (far := context.far(device.name, port))]
    for port in alike[0] if alike else ():
        others = tuple(one for one in senders if one != context.far(device.name, port)) if len(alike) > 1 else ()
        count = total if others else came[port]
        if count:
            yield from _stray(context, CableEnd(device.name, port), count, kept if others else 0, others)


def _of_nic(context: CheckContext, device: DeviceContext, nic: str, missing: Mapping[int, int]) -> Iterator[Stray]:
    """Yield what a NIC counts as CNPs but receives on another priority than theirs."""
    kept = device.delta("priority_rx_packets", place(nic, context.fabric.lossless.cnp.priority))
    heard = _total(device.delta(name, nic) for name in HEARD)
    sent = sent_to(context, device.name, nic)
    count = heard if sent is None else min(heard + missing[device.nics[nic].rail], sent.value)
    if kept.is_known and most(kept.value, count) < HALF:
        yield from _stray(context, CableEnd(device.name, nic), count if sent is None else sent.value, kept.value)


def _missing(context: CheckContext, rail: int) -> int:
    """How many of a rail's CNPs no NIC counts: one that swallows them still counts packets by priority."""
    nics = [(host, name) for host in context.hosts for name, nic in host.nics.items() if nic.rail == rail]
    sent, heard = (
        _total(host.delta(name, nic) for host, nic in nics for name in names) for names in (("cnp_sent",), HEARD)
    )
    return max(0, sent - heard)


def _doubt(context: CheckContext, device: DeviceContext, port: str) -> float:
    """The part of a device's window in which it and the other end of a port did not both count."""
    far = context.far(device.name, port)
    other = context.devices.get(far.device) if far else None
    shortest_s = min(device.window_s, other.window_s) if other else 0.0
    return skew_s((device.window, other.window)) / shortest_s if other and shortest_s else 0.0


def _total(deltas: Iterable[Delta]) -> int:
    return sum(delta.value for delta in deltas if delta.is_known)


def _stray(
    context: CheckContext, receiver: CableEnd, sent: int, kept: int, others: tuple[CableEnd, ...] = ()
) -> Iterator[Stray]:
    sender = context.far(receiver.device, receiver.port)
    if sender is not None:
        yield Stray(sender, receiver, sent, kept, others)
