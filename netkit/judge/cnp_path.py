"""The way of CNPs hop by hop: where they leave their queue, and where they are lost."""

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from netkit.design import Switch
from netkit.facts import Absent
from netkit.facts.counter import place
from netkit.judge.bound import astray, least, most
from netkit.judge.context import CableEnd, CheckContext, DeviceContext
from netkit.judge.delta import Delta
from netkit.judge.parity import HALF, skew_s

HEARD = ("cnp_handled", "cnp_ignored")
ASKED_APART_S = 0.5
"""CNPs and packets by priority are read in two places of a host, on a busy one so long one after the other."""


class Stray(NamedTuple):
    """CNPs that were sent to a device in their queue, and that did not go on in it."""

    sender: CableEnd
    receiver: CableEnd
    sent: int
    kept: int
    """How many of these the receiver passed on, or received, in their queue."""
    others: tuple[CableEnd, ...] = ()
    """Who may have sent them instead: counts do not distinguish them."""


class CnpLoss(NamedTuple):
    """One place that CNPs are lost at."""

    end: CableEnd
    packets: int
    text: str


def is_cut_off(scene: CheckContext, seen: DeviceContext, nic: str) -> bool:
    """Whether a NIC that was not read neither sent nor heard anything: its leaf has the port down, all the time."""
    far = scene.far(seen.name, nic)
    leaf = scene.devices.get(far.device) if far else None
    if seen.delta("cnp_sent", nic).is_known or far is None or leaf is None or isinstance(leaf.facts.interfaces, Absent):
        return False
    state = leaf.facts.interfaces.get(far.port)
    moved = [leaf.delta(name, far.port) for name in ("tx_packets", "rx_packets", "carrier_changes", "link_downs")]
    is_still = any(delta.is_known for delta in moved[:2]) and not any(delta.value for delta in moved)
    return state is not None and state.is_up is False and is_still


def losses(scene: CheckContext, nics: Sequence[tuple[DeviceContext, str]]) -> tuple[CnpLoss, ...]:
    """Return where CNPs of a rail are lost, the greatest loss first: in NICs, or in queues that are full."""
    found = [loss for seen, nic in nics for loss in (*_swallowed(scene, seen, nic), *_withheld(scene, seen, nic))]
    leaves = {seen.nics[nic].leaf for seen, nic in nics}
    ways = [one for one in scene.switches if one.name in leaves or not _is_leaf(one)]
    found += [loss for seen in ways for loss in _dropped(scene, seen)]
    return tuple(sorted(found, key=lambda loss: -loss.packets))


def _is_leaf(seen: DeviceContext) -> bool:
    return isinstance(seen.device, Switch) and seen.device.role == "leaf"


def _swallowed(scene: CheckContext, seen: DeviceContext, nic: str) -> Iterator[CnpLoss]:
    delivered = sent_to(scene, seen.name, nic)
    counted = _total(seen.delta(name, nic) for name in HEARD)
    if delivered is not None and least(delivered.value - counted, delivered.value, _doubt(scene, seen, nic)) > 0:
        text = f"{seen.name}:{nic} counts {counted} of the {delivered.value} its leaf delivers"
        yield CnpLoss(CableEnd(seen.name, nic), delivered.value - counted, text)


def _withheld(scene: CheckContext, seen: DeviceContext, nic: str) -> Iterator[CnpLoss]:
    number = scene.fabric.lossless.cnp.priority
    counted, left = seen.delta("cnp_sent", nic), seen.delta("priority_tx_packets", place(nic, number))
    doubt = min(1.0, 2 * ASKED_APART_S / seen.window_s) if seen.window_s else 1.0
    if counted.is_known and left.is_known and least(counted.value - left.value, counted.value, doubt) > 0:
        text = (
            f"{seen.name}:{nic} counts {counted.value} as sent, and {left.value} packets leave it on priority {number}"
        )
        yield CnpLoss(CableEnd(seen.name, nic), counted.value - left.value, text)


def _dropped(scene: CheckContext, seen: DeviceContext) -> Iterator[CnpLoss]:
    for port in seen.ports:
        drops = seen.delta("queue_drops", place(port, scene.fabric.lossless.cnp.priority))
        if drops.value:
            yield CnpLoss(
                CableEnd(seen.name, port), drops.value, f"{seen.name}:{port} drops {drops.value} in their queue"
            )


def pair(nics: Sequence[tuple[DeviceContext, str]]) -> str:
    """Return the NICs between which most CNPs of a rail are lost: the top sender and the least receiver."""
    sent = {CableEnd(seen.name, nic): seen.delta("cnp_sent", nic).value for seen, nic in nics}
    heard = {CableEnd(seen.name, nic): _total(seen.delta(name, nic) for name in HEARD) for seen, nic in nics}
    sender = max(sent, key=lambda end: sent[end])
    others = [end for end in heard if end != sender]
    return f"{sender} to {min(others, key=lambda end: heard[end])}" if others else str(sender)


def hops(scene: CheckContext, rail: int) -> str:
    """Return the hops of a rail that do not treat CNPs as intended, by their settings; a spine is one of all rails."""
    found = [
        told
        for seen in scene.devices.values()
        for port in (*seen.ports, *seen.nics)
        if _is_of_rail(seen, port, rail) and (told := _odd(scene, seen, port))
    ]
    profile = scene.fabric.lossless
    return "; ".join(found) or f"all that report it map DSCP {profile.cnp_dscp} to priority {profile.cnp.priority}"


def _is_of_rail(seen: DeviceContext, port: str, rail: int) -> bool:
    if port in seen.nics:
        return seen.nics[port].rail == rail
    return isinstance(seen.device, Switch) and (seen.device.role != "leaf" or seen.device.rail == rail)


def _odd(scene: CheckContext, seen: DeviceContext, port: str) -> str:
    """Return how a hop treats CNPs if that is not as intended; empty when it is, or is not reported."""
    profile, shown = scene.fabric.lossless, seen.facts.qos
    qos = None if isinstance(shown, Absent) else shown.get(port)
    if qos is None:
        return ""
    if qos.cnp_dscp not in {None, profile.cnp_dscp}:
        return f"{seen.name}:{port} sends them with DSCP {qos.cnp_dscp}"
    priority = (qos.dscp_to_priority or {}).get(profile.cnp_dscp, profile.cnp.priority)
    return f"{seen.name}:{port} maps them to priority {priority}" if priority != profile.cnp.priority else ""


def strays(scene: CheckContext) -> tuple[Stray, ...]:
    """Return the cables that CNPs leave in their queue and behind which they are in it no more."""
    found = [one for seen in scene.switches for one in _of_switch(scene, seen)]
    found += [one for seen in scene.hosts for nic in seen.nics for one in _of_nic(scene, seen, nic)]
    known = {end.device for one in found if not one.others for end in (one.sender, one.receiver)}
    return tuple(one for one in found if not (one.others and known & {end.device for end in (one.sender, *one.others)}))


def sent_to(scene: CheckContext, device: str, port: str) -> Delta | None:
    """Return what the other end of a port sends to it in the queue of CNPs; None where that is not counted."""
    far = scene.far(device, port)
    seen = scene.devices.get(far.device) if far else None
    if far is None or seen is None:
        return None
    at = place(far.port, scene.fabric.lossless.cnp.priority)
    is_switch = isinstance(seen.device, Switch)
    found = seen.delta("queue_tx_packets" if is_switch else "priority_tx_packets", at)
    return found if found.is_known else None


def _of_switch(scene: CheckContext, seen: DeviceContext) -> Iterator[Stray]:
    """Yield the ports that CNPs come in by and do not go on from, of a switch that sends on fewer than it is sent.

    A port that gives them another DSCP, or takes that for another priority, does so with all of them. So what is
    missing is what came by one port, or by all ports of one neighbour, or all there was.
    """
    queue = scene.fabric.lossless.cnp.priority
    passed_on = [seen.delta("queue_tx_packets", place(port, queue)) for port in seen.ports]
    if not all(delta.is_known for delta in passed_on):
        return
    came = {port: delta.value for port in seen.ports if (delta := sent_to(scene, seen.name, port)) is not None}
    kept = sum(delta.value for delta in passed_on)
    kept += sum(seen.delta("queue_drops", place(port, queue)).value for port in seen.ports)
    total = sum(came.values())
    slack = astray(total, max((_doubt(scene, seen, port) for port in came), default=0.0))
    if total - kept <= slack:
        return
    by_neighbor: dict[str, list[str]] = {}
    for port in came:
        by_neighbor.setdefault(seen.ports[port].peer, []).append(port)
    for groups in ([[port] for port in came], list(by_neighbor.values()), [list(came)]):
        sums = [(sum(came[port] for port in group), group) for group in groups]
        alike = [group for count, group in sums if abs(count - (total - kept)) <= slack and most(0, count) < HALF]
        if alike:
            break
    else:
        alike = [[port] for port, count in came.items() if count]
    senders = [far for group in alike for port in group if (far := scene.far(seen.name, port))]
    for port in alike[0] if alike else ():
        others = tuple(one for one in senders if one != scene.far(seen.name, port)) if len(alike) > 1 else ()
        count = total if others else came[port]
        if count:
            yield from _stray(scene, CableEnd(seen.name, port), count, kept if others else 0, others)


def _of_nic(scene: CheckContext, seen: DeviceContext, nic: str) -> Iterator[Stray]:
    """Yield what a NIC takes for CNPs and receives on another priority than theirs."""
    kept = seen.delta("priority_rx_packets", place(nic, scene.fabric.lossless.cnp.priority))
    heard = _total(seen.delta(name, nic) for name in HEARD)
    sent = sent_to(scene, seen.name, nic)
    count = heard if sent is None else min(heard + _missing(scene, seen.nics[nic].rail), sent.value)
    if kept.is_known and most(kept.value, count) < HALF:
        yield from _stray(scene, CableEnd(seen.name, nic), count if sent is None else sent.value, kept.value)


def _missing(scene: CheckContext, rail: int) -> int:
    """Return how many of a rail's CNPs no NIC counts: one that swallows them still counts packets by priority."""
    nics = [(host, name) for host in scene.hosts for name, nic in host.nics.items() if nic.rail == rail]
    sent, heard = (
        _total(host.delta(name, nic) for host, nic in nics for name in names) for names in (("cnp_sent",), HEARD)
    )
    return max(0, sent - heard)


def _doubt(scene: CheckContext, seen: DeviceContext, port: str) -> float:
    """Return in how much of its window a device and the one at the other end of a port did not both count."""
    far = scene.far(seen.name, port)
    other = scene.devices.get(far.device) if far else None
    shortest_s = min(seen.window_s, other.window_s) if other else 0.0
    return skew_s((seen.window, other.window)) / shortest_s if other and shortest_s else 0.0


def _total(deltas: Iterable[Delta]) -> int:
    return sum(delta.value for delta in deltas if delta.is_known)


def _stray(
    scene: CheckContext, receiver: CableEnd, sent: int, kept: int, others: tuple[CableEnd, ...] = ()
) -> Iterator[Stray]:
    sender = scene.far(receiver.device, receiver.port)
    if sender is not None:
        yield Stray(sender, receiver, sent, kept, others)
