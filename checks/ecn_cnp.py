"""ECN and CNPs: switches mark, receivers answer, senders hear it; both sides are always counted."""

from collections.abc import Iterator, Sequence
from functools import partial

from netkit.facts.counter import place
from netkit.judge import PASSED, Finding, Scene, Seen, fabric_check, fail, skip, warn
from netkit.judge.parity import RailSum, is_read, rail_sum

LOCATE = "compare the CNP queues of the hops and the settings of the NICs: netkit check qos"
MOST_IGNORED_PERCENT = 1.0
SHARE = 0.5
"""Of what a leaf delivers to a NIC, the NIC must count this part; below it, the NIC swallows."""


@fabric_check(layer="congestion", needs=["counters"], window=True)
def parity(scene: Scene) -> Iterator[Finding]:
    """Every CNP that a receiver sends arrives at a sender: the sums of a rail agree.

    CNPs that never arrive slow nobody down: queues fill until PFC pauses everybody. They are lost where they ride a
    queue that is full, where a policer eats them, or in a NIC. More handled than sent means that a sender slows down
    for losses, or that a NIC outside this set sends them. A rail of which not all NICs were read is not judged.
    """
    for rail in scene.fabric.rails:
        nics = [(seen, name) for seen in scene.hosts for name, nic in seen.nics.items() if nic.rail == rail.number]
        unread = sorted({seen.name for seen, name in nics if not is_read(partial(seen.delta, place=name))})
        if not nics or len(nics) == len(unread):
            yield skip(f"rail {rail.number}", "its CNPs were not read")
        elif unread or len(nics) < _designed(scene, rail.number):
            missing = ", ".join(unread[:4]) or "hosts that are not part of this run"
            yield skip(f"rail {rail.number}", f"not all of its NICs were read: {missing}")
        else:
            yield from _judged(scene, rail.number, nics)


def _designed(scene: Scene, rail: int) -> int:
    return sum(nic.rail == rail for host in scene.fabric.hosts for nic in host.nics)


def _judged(scene: Scene, rail: int, nics: Sequence[tuple[Seen, str]]) -> Iterator[Finding]:
    found = rail_sum(partial(seen.delta, place=name) for seen, name in nics)
    where, limits, text, loss = f"rail {rail}", scene.limits, str(found), found.loss_percent
    if not found.is_enough(limits.cnp_minimum):
        yield from _few(where, found, limits.cnp_minimum, text)
        return
    if not found.sent:
        yield warn(where, f"CNPs are handled that nobody sent: {text}", "losses, or NICs outside this set, cause them")
    elif abs(loss) >= limits.cnp_loss_fail_percent:
        yield fail(where, _lost(loss, text), LOCATE, cause=where, places=_places(scene, nics) or "not located")
    elif abs(loss) >= limits.cnp_loss_warn_percent:
        yield warn(where, _lost(loss, text), LOCATE, cause=where, places=_places(scene, nics) or "not located")
    else:
        yield PASSED
    if found.ignored * 100 > MOST_IGNORED_PERCENT * found.heard:
        yield warn(where, f"senders ignore CNPs: {text}", "see the reaction point of the NICs: netkit check qos")


def _few(where: str, found: RailSum, minimum: int, text: str) -> Iterator[Finding]:
    if found.marked >= minimum:
        remedy = "see the notification point of the NICs: netkit check qos"
        yield fail(where, f"packets arrive with CE and nobody sends CNPs: {text}", remedy, cause=where)
    else:
        yield skip(where, f"too few CNPs to judge, {minimum} are needed: {text}")


def _lost(loss: float, text: str) -> str:
    words = f"{loss:.1f} % of its CNPs never arrive" if loss > 0 else f"{-loss:.1f} % more CNPs arrive than are sent"
    return f"{words}: {text}"


def _places(scene: Scene, nics: Sequence[tuple[Seen, str]]) -> str:
    """Return where CNPs are lost, as far as queues of leaves tell: NICs that count less than their leaf delivers."""
    queue = scene.fabric.lossless.cnp.priority
    found = []
    for seen, name in nics:
        nic = seen.nics[name]
        leaf = scene.devices.get(nic.leaf)
        delivered = leaf.delta("queue_tx_packets", place(nic.leaf_port, queue)) if leaf else None
        counted = seen.delta("cnp_handled", name).value + seen.delta("cnp_ignored", name).value
        if delivered is not None and delivered.is_known and counted < SHARE * delivered.value:
            found.append(f"{seen.name}:{name} counts {counted} of the {delivered.value} its leaf delivers")
    return "; ".join(found)


@fabric_check(layer="congestion", needs=["counters"], window=True)
def marks(scene: Scene) -> Iterator[Finding]:
    """What switches mark arrives marked, and is answered.

    Marks that no receiver counts were cleared on the way; marks that no receiver answers mean that its notification
    point is off. A queue that is long and marks nothing means that ECN is off at that port.
    """
    marked = sum(_marked(scene, seen) for seen in scene.switches)
    received = sum(delta.value for seen in scene.hosts for delta in seen.deltas("ecn_received").values())
    sent = sum(delta.value for seen in scene.hosts for delta in seen.deltas("cnp_sent").values())
    unread = [seen.name for seen in scene.hosts if not seen.deltas("cnp_sent")]
    text = f"switches mark {marked}, NICs receive {received} with CE and send {sent} CNPs"
    if marked < scene.limits.cnp_minimum:
        yield skip("", f"too few marks to judge: {text}")
    elif unread:
        yield skip("", f"not all hosts were read: {', '.join(unread[:4])}")
    elif not received and not sent:
        yield fail("", f"marks do not arrive: {text}", "some hop clears ECN, or the NICs' notification point is off")
    elif not sent:
        yield fail("", f"marks are not answered: {text}", "see the notification point of the NICs: netkit check qos")
    else:
        yield PASSED


def _marked(scene: Scene, seen: Seen) -> int:
    """Return the marks of a switch; where queues are counted, of the RoCE queue."""
    queue = scene.fabric.lossless.roce.priority
    by_queue = [seen.delta("queue_ecn_marked", place(port, queue)) for port in seen.ports]
    by_port = [seen.delta("ecn_marked", port) for port in seen.ports]
    chosen = by_queue if any(delta.is_known for delta in by_queue) else by_port
    return sum(delta.value for delta in chosen)
