"""ECN and CNPs: switches mark, receivers answer with CNPs, senders receive them; both sides are compared."""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from math import ceil

from netkit.design import Port, Switch
from netkit.design.fabric import CableEnd
from netkit.facts import Absent
from netkit.facts.counter import place
from netkit.judge import (
    PASSED,
    CheckContext,
    DeviceContext,
    Finding,
    Verdict,
    device_check,
    fabric_check,
    fail,
    skip,
    warn,
)
from netkit.judge.bound import astray, least, most
from netkit.judge.cnp_path import CNP_READS, CnpLoss, Stray, hops, is_cut_off, losses, pair, sent_to, strays
from netkit.judge.delta import Delta
from netkit.judge.parity import HALF, RailSum, is_read, rail_sum, skew_s
from netkit.judge.pauses import PAUSE_COUNTERS, congestion, received_at, sent_at

MARKS = ("queue_ecn_marked/roce", "ecn_marked")
LOCATE = "compare the CNP queues of the hops and the settings of the NICs: netkit check qos"
NOT_MARKED = "packets are lost, and NICs answer losses with CNPs: netkit check load host.repeats; or a counter is wrong"
MOST_IGNORED_PERCENT = 1.0
WORTH_NAMING = 0.1
"""Of the CNPs that are missing, a place that loses a smaller part is not where to look."""
LONGEST_WINDOW_S = 3600
"""A longer window is not worth the wait: such windows began at different runs."""
LEAST_ANSWERED = 0.005
"""Of packets marked back to back a NIC answers one in fifty, at one CNP for each flow and every 4 µs."""
LEAST_MARKED = 0.1
"""Marked share of the packets from a queue beyond its maximum threshold, which it does not exceed all the time."""


@fabric_check(
    layer="congestion",
    needs=["counters"],
    window=True,
    follows=["ecn-cnp.marks", "qos", "load.discards", "links.cabling", "links.flaps", "watchdog"],
    reads=[*CNP_READS, *MARKS],
)
def parity(context: CheckContext) -> Iterator[Finding]:
    """Every CNP that a receiver sends arrives at a sender: the sums of a rail agree.

    A lost CNP does not slow its sender down: queues fill until PFC pauses everything. They are lost in a full queue,
    by a policer, or in a NIC. More handled than sent means that a sender slows down for losses, or that a NIC outside
    this set sends them. See `netkit check ecn-cnp.queue qos.nic`. A rail is judged only if all of its NICs were read,
    except those whose leaf has their port down; else only NICs that count fewer than their leaf delivers. The lower
    bound of the loss is judged, given the number of CNPs and how far apart their NICs were read; a loss that may be
    chance is skipped. CNPs without any mark by a switch are answers to losses, or come from a wrong counter.
    """
    for rail in context.fabric.rails:
        ends = [
            (device, name) for device in context.hosts for name, nic in device.nics.items() if nic.rail == rail.number
        ]
        designed = sum(nic.rail == rail.number for host in context.fabric.hosts for nic in host.nics)
        nics = [(device, name) for device, name in ends if not is_cut_off(context, device, name)]
        unread = sorted({device.name for device, name in nics if not is_read(partial(device.delta, place=name))})
        if not nics or len(nics) == len(unread):
            yield skip(f"rail {rail.number}", "its CNPs were not read")
        elif unread or len(ends) < designed:
            missing = ", ".join(unread[:4]) or "hosts that are not part of this run"
            yield skip(f"rail {rail.number}", f"not all of its NICs were read: {missing}")
            yield from _of_nics(context, rail.number, nics)
        else:
            yield from _judged(context, rail.number, nics)


def _judged(context: CheckContext, rail: int, nics: Sequence[tuple[DeviceContext, str]]) -> Iterator[Finding]:
    found = rail_sum(partial(device.delta, place=name) for device, name in nics)
    text = found.text(has_ignored=_all_report(nics, "cnp_ignored"), has_marks=_all_report(nics, "ecn_received"))
    where, limits, loss = f"rail {rail}", context.limits, found.loss_percent
    windows = [device.window for device, _ in nics]
    skewed_s, window_s = skew_s(windows), min(ended_s - began_s for began_s, ended_s in windows)
    doubt = skewed_s / window_s
    surely, maybe = 100 * least(*found.astray, doubt), 100 * most(*found.astray, doubt)
    limit = min(limits.cnp_loss_fail_percent, limits.cnp_loss_warn_percent)
    if not found.sent and most(0, found.marked) < LEAST_ANSWERED:
        remedy = "see the notification point of the NICs: netkit check qos"
        say_sent = "CNPs are handled though no NIC counts one as sent" if found.handled else "no NIC sends CNPs"
        text = f"packets arrive with CE and {say_sent}: {text}"
        yield fail(where, text, remedy, cause=f"silence on {where}", touches=_switches(context, nics))
    elif surely >= limit and not found.sent:
        yield warn(where, f"more CNPs are handled than sent: {text}", "losses, or NICs outside this set, cause them")
    elif surely >= limit:
        say = fail if surely >= limits.cnp_loss_fail_percent else warn
        about = {"between": pair(nics), "hops": hops(context, rail), "surely": f"{surely:.1f} % or more"}
        places = [one for one in losses(context, nics) if one.packets >= WORTH_NAMING * found.astray[0]]
        yield _located(context, say, where, _lost(loss, text), places, about, _switches(context, nics))
    elif maybe < limit:
        yield PASSED
    else:
        yield skip(where, _undecided(found, text, (skewed_s, window_s), limit, maybe))
    if least(found.sent, found.sent) > HALF and not found.marked and _none_marks(context):
        yield warn(where, f"CNPs are sent though no switch marks a packet: {text}", NOT_MARKED)
    if least(found.ignored, found.heard) * 100 > MOST_IGNORED_PERCENT:
        say = warn if found.handled else fail
        remedy, touched = _remedy_for_ignored(context, nics, found), _switches(context, nics)
        yield say(where, f"senders ignore CNPs: {text}", remedy, cause=ignored_on(rail), touches=touched)


def _of_nics(context: CheckContext, rail: int, nics: Sequence[tuple[DeviceContext, str]]) -> Iterator[Finding]:
    """Yield NICs that lose CNPs by their own counters and those of their leaf; no other NIC has to be read for that."""
    limits, where = context.limits, f"rail {rail}"
    for device, name in nics:
        for one in losses(context, [(device, name)]):
            if one.end == CableEnd(device.name, name) and one.surely * 100 >= limits.cnp_loss_warn_percent:
                say = fail if one.surely * 100 >= limits.cnp_loss_fail_percent else warn
                yield _located(context, say, where, f"CNPs are lost in it: {one.text}", [one], {}, ())


def _switches(context: CheckContext, nics: Sequence[tuple[DeviceContext, str]]) -> Sequence[str]:
    """The switches that the CNPs of some NICs pass."""
    leaves = {device.nics[name].leaf for device, name in nics}
    return [one.name for one in context.fabric.switches if one.role != "leaf" or one.name in leaves]


def _undecided(found: RailSum, text: str, apart: tuple[float, float], limit: float, maybe: float) -> str:
    """Why a loss can be neither proven nor excluded."""
    if not found.sent and not found.heard:
        return f"no CNPs were sent: {text}"
    if 100 * most(*found.astray) < limit or 100 * least(*found.astray) >= limit:
        return f"{_lost(found.loss_percent, text)}; that may be since {_skew_text(*apart, limit)}"
    return f"too few CNPs to judge, up to {maybe:.0f} % may be lost: {text}"


def _remedy_for_ignored(context: CheckContext, nics: Sequence[tuple[DeviceContext, str]], found: RailSum) -> str:
    """What to do about CNPs that are ignored: NICs do so when they are off, or when others arrive as CNPs."""
    number = context.fabric.lossless.cnp.priority
    arrived = [device.delta("priority_rx_packets", place(name, number)) for device, name in nics]
    if all(delta.is_known for delta in arrived) and most(sum(delta.value for delta in arrived), found.heard) < HALF:
        return "they arrive on another priority than theirs: netkit check ecn-cnp.queue qos names the hop"
    return "see the reaction point of the NICs: netkit check qos"


def _none_marks(context: CheckContext) -> bool:
    """Whether every switch counts its marks, and has none: then NICs do not answer congestion."""
    marks = [_marks_at(context, device, port) for device in context.switches for port in device.ports]
    is_whole = len(context.switches) == len(context.fabric.switches)
    return is_whole and all(delta.is_known and not delta.value for delta in marks)


def _all_report(nics: Sequence[tuple[DeviceContext, str]], counter: str) -> bool:
    return all(device.delta(counter, name).is_known for device, name in nics)


def _skew_text(skewed_s: float, window_s: float, least_percent: float) -> str:
    """How far the windows differ, and which window would be long enough."""
    enough_s = 100 * skewed_s / max(least_percent, 0.1)
    text = f"its NICs were not read at the same moment, {skewed_s:.1f} s apart in {window_s:.0f} s"
    return text if enough_s > LONGEST_WINDOW_S else f"{text}: give --window {ceil(enough_s)}"


def _lost(loss: float, text: str) -> str:
    words = f"{loss:.1f} % of its CNPs never arrive" if loss > 0 else f"{-loss:.1f} % more CNPs arrive than are sent"
    return f"{words}: {text}"


def _located(
    context: CheckContext,
    say: Callable[..., Finding],
    rail: str,
    text: str,
    lost: Sequence[CnpLoss],
    about: Mapping[str, str],
    switches: Sequence[str],
) -> Finding:
    """A finding at the place with the greatest loss, as far as counters show."""
    if not lost:
        places = "not located: no NIC and no queue counts what is missing; a policer would not show"
        return say(rail, text, LOCATE, cause=rail, touches=switches, places=places, **about)
    end = lost[0].end
    places = "; ".join(loss.text for loss in lost)
    own = f"CNPs lost at {end}"
    itself = [own] if _loses_itself(context, end) else []
    return say(end.port, text, LOCATE, device=end.device, cause=own, explains=itself, rail=rail, places=places, **about)


def _loses_itself(context: CheckContext, end: CableEnd) -> bool:
    """Whether a NIC loses CNPs though it is set for them and its link stays up: what else is wrong is another cause."""
    device, profile = context.devices[end.device], context.fabric.lossless
    shown = None if isinstance(device.facts.qos, Absent) else device.facts.qos.get(end.port)
    if end.port not in device.nics or shown is None:
        return False
    found = shown.cnp_dscp, shown.cnp_priority, (shown.dscp_to_priority or {}).get(profile.cnp_dscp)
    wanted = profile.cnp_dscp, profile.cnp.priority, profile.cnp.priority
    is_set = all(one in {None, other} for one, other in zip(found, wanted, strict=True))
    return is_set and not any(device.delta(name, end.port).value for name in ("carrier_changes", "link_downs"))


def ignored_on(rail: int) -> str:
    """The cause name of CNPs that arrive and are ignored."""
    return f"CNPs ignored on rail {rail}"


@fabric_check(
    layer="congestion",
    needs=["counters"],
    window=True,
    follows=["qos", "ecn-cnp.queue"],
    reads=[*CNP_READS, *MARKS, "nics"],
)
def marks(context: CheckContext) -> Iterator[Finding]:
    """Marked packets arrive marked, and are answered.

    If no receiver counts the marks, they were cleared on the path; if no receiver answers them, its notification point
    is off: see `netkit check qos.nic qos.ecn`. A long queue without marks means that ECN is off at that port.
    """
    mute = tuple(_mute(context))
    for end, count in mute:
        text = f"answers none of the {count} packets that its leaf marks towards it"
        yield fail(end.port, text, _answering(context, end), device=end.device)
    if not mute:
        yield _of_all(context)


def _answering(context: CheckContext, end: CableEnd) -> str:
    """How to make a NIC answer marks; what AMD's NICs are set to is not read."""
    nics = context.devices[end.device].facts.nics
    driver = "" if isinstance(nics, Absent) or end.port not in nics else nics[end.port].driver
    if driver == "ionic":
        return "its DCQCN is not set up: run the commands of /etc/netkit/nicctl.conf on the host, at each boot"
    return "see its notification point: netkit check qos.nic"


def _mute(context: CheckContext) -> Iterator[tuple[CableEnd, int]]:
    """Yield NICs that receive many marked packets and sent no CNP, with the number of marks."""
    for device in context.hosts:
        for name, nic in device.nics.items():
            leaf, sent = context.devices.get(nic.leaf), device.delta("cnp_sent", name)
            marks = _marks_at(context, leaf, nic.leaf_port).value if leaf is not None else 0
            doubt = skew_s((device.window, leaf.window)) / max(device.window_s, 1) if leaf is not None else 0
            if sent.is_known and not sent.value and most(0, marks - astray(marks, doubt)) < LEAST_ANSWERED:
                yield CableEnd(device.name, name), marks


def _of_all(context: CheckContext) -> Finding:
    marked = sum(_marks_at(context, device, port).value for device in context.switches for port in device.ports)
    received = sum(delta.value for device in context.hosts for delta in device.deltas("ecn_received").values())
    sent = sum(delta.value for device in context.hosts for delta in device.deltas("cnp_sent").values())
    ends = ((device, nic) for device in context.hosts for nic in device.nics if not is_cut_off(context, device, nic))
    unread = sorted({device.name for device, nic in ends if not device.delta("cnp_sent", nic).is_known})
    is_whole = len(context.hosts) == len(context.fabric.hosts)
    text = f"switches mark {marked}, NICs receive {received} with CE and send {sent} CNPs"
    is_answered = received and least(min(sent, marked), marked) >= LEAST_ANSWERED
    if not is_answered and most(0, marked) >= LEAST_ANSWERED:
        return skip("", f"too few marks to judge: {text}")
    if unread or not is_whole:
        missing = ", ".join(unread[:4]) or "hosts that are not part of this run"
        return skip("", f"not all hosts were read: {missing}")
    if not received and not sent:
        return fail("", f"marks do not arrive: {text}", "some hop clears ECN, or the NICs' notification point is off")
    if not sent:
        return fail("", f"marks are not answered: {text}", "see the notification point of the NICs: netkit check qos")
    return PASSED


def _marks_at(context: CheckContext, device: DeviceContext, port: str) -> Delta:
    """The marks of a port; where queues are counted, of the RoCE queue."""
    of_queue = device.delta("queue_ecn_marked", place(port, context.fabric.lossless.roce.priority))
    return of_queue if of_queue.is_known else device.delta("ecn_marked", port)


@device_check(
    layer="congestion",
    needs=["counters"],
    on="switch",
    window=True,
    follows=["qos.ecn", "watchdog.storms"],
    reads=[*MARKS, *PAUSE_COUNTERS, "buffers", "queue_tx_packets/roce"],
)
def unmarked(context: CheckContext, device: DeviceContext) -> Iterator[Finding]:
    """A congested switch marks packets.

    A RoCE queue beyond the threshold where every packet is marked, or a switch that pauses its neighbours while not
    paused itself, without a single mark: ECN does not work there, even if it is configured. No sender slows
    down, and only PFC is left. See `netkit check qos.ecn`; then reload the QoS of the switch.
    """
    silent = [port for port in device.ports.values() if _is_silent(context, device, port)]
    counted = [port for port in device.ports if _marks_at(context, device, port).is_known]
    remedy = "see netkit check qos.ecn; if it is as intended, load the QoS of the switch again"
    if not counted:
        yield skip("", "the device does not report what it marks")
    for port in silent:
        text = f"its RoCE queue holds more than {port.profile.ecn.max_bytes:,} bytes, and none of its packets is marked"
        yield fail(
            port.name,
            text,
            remedy,
            cause=f"marking of {device.name}",
            explains=[congestion(device.name, port.name), congestion(device.name, "")],
        )
    if counted and not silent and _pauses_unmarked(context, device):
        text, ports = "it pauses its neighbours without being paused, and none of its packets is marked", device.ports
        yield fail("", text, remedy, explains=[congestion(device.name, port) for port in ("", *ports)])
    elif counted and not silent:
        yield PASSED


def _is_silent(context: CheckContext, device: DeviceContext, port: Port) -> bool:
    """Whether a queue is full, moves, and marks nothing."""
    queue = place(port.name, context.fabric.lossless.roce.priority)
    levels = device.facts.buffers
    level = None if isinstance(levels, Absent) else levels.get(queue)
    if level is None or (level.used_bytes or 0) <= port.profile.ecn.max_bytes:
        return False
    marks, moved = _marks_at(context, device, port.name), device.delta("queue_tx_packets", queue)
    is_still = moved.is_known and most(0, moved.value) >= LEAST_MARKED
    return marks.is_known and not marks.value and not is_still


def _pauses_unmarked(context: CheckContext, device: DeviceContext) -> bool:
    """Whether a switch is where pauses begin, and has not marked a packet on any port."""
    number = context.fabric.lossless.roce.priority
    marks = [_marks_at(context, device, port) for port in device.ports]
    if not all(delta.is_known for delta in marks) or any(delta.value for delta in marks):
        return False
    if all(sent_at(context, device, port, number).verdict(context) is Verdict.PASS for port in device.ports):
        return False
    arriving = [received_at(context, device, port, number) for port in device.ports]
    return all(pauses.is_known and pauses.verdict(context) is Verdict.PASS for pauses in arriving)


@fabric_check(layer="qos", needs=["counters"], window=True, follows=["qos", "routes.lookups"], reads=CNP_READS)
def queue(context: CheckContext) -> Iterator[Finding]:
    """CNPs stay in their own queue from hop to hop.

    A hop that gives them another DSCP, or maps theirs to another queue, lets them wait behind what causes the
    congestion, or get lost with it. The finding names the port behind which they are in another queue:
    compare the maps of the switch there with `netkit check qos.switch`.
    """
    found = strays(context)
    strayed = [_strayed(context, one) for one in found]
    blamed = Counter(one.device for one in strayed)
    for one in strayed:
        yield one._replace(cause=f"CNPs at {one.device}") if blamed[one.device] > 1 else one
    ends = [(device.name, port) for device in context.devices.values() for port in (*device.ports, *device.nics)]
    counts = [delta.value for end in ends if (delta := sent_to(context, *end)) is not None]
    if not found and most(0, max(counts, default=0)) < HALF:
        yield PASSED
    elif not found:
        yield skip("", "too few CNPs were counted on every cable to judge their path")


def _strayed(context: CheckContext, one: Stray) -> Finding:
    """Blame the receiver, unless it is known to map CNPs as intended."""
    explained = _explained(context, one)
    if one.others:
        names = " or ".join(map(str, (one.sender, *one.others)))
        text = f"of {one.sent} CNPs sent to it in their queue, {one.kept} stay in it; by {names}"
        remedy = "see netkit check qos on both ends of these cables"
        return fail("", text, remedy, device=one.receiver.device, explains=explained)
    shown = context.devices[one.receiver.device].facts.qos
    qos = None if isinstance(shown, Absent) else shown.get(one.receiver.port)
    profile = context.fabric.lossless
    is_mapped = qos is not None and (qos.dscp_to_priority or {}).get(profile.cnp_dscp) == profile.cnp.priority
    if is_mapped:
        text = f"gives CNPs another DSCP: {one.sent} leave in their queue, {one.kept} stay in it at {one.receiver}"
    else:
        text = f"takes CNPs out of their queue: {one.sender} sends {one.sent} in it, {one.kept} stay in it"
    end = one.sender if is_mapped else one.receiver
    remedy = "see netkit check qos on both ends of this cable"
    return fail(end.port, text, remedy, device=end.device, explains=explained)


def _explained(context: CheckContext, one: Stray) -> Iterator[str]:
    """Yield the consequences for CNPs beyond the port: NICs ignore them, or a full queue loses them.

    A NIC that counts fewer than its leaf delivers in their own queue loses them by itself.
    """
    near, far = (context.fabric.device(end.device) for end in (one.sender, one.receiver))
    rails = {device.rail for device in (near, far) if isinstance(device, Switch) and device.role == "leaf"}
    for rail in context.fabric.rails:
        if not rails or rail.number in rails or None in rails:
            yield from (f"rail {rail.number}", ignored_on(rail.number))
