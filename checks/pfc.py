"""PFC: pauses by rate and by time, only on lossless priorities, and their origin."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from netkit.design import Host, Port
from netkit.design.fabric import CableEnd
from netkit.facts import Absent
from netkit.facts.counter import parts, place
from netkit.facts.qos import Buffer
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
from netkit.judge.bound import least
from netkit.judge.parity import skew_s
from netkit.judge.pauses import PAUSE_COUNTERS, Pauses, congestion, received, received_at, sent, sent_at
from netkit.judge.peak import peak

SLOW_HOST = "see PCIe, GPU and IOMMU of the host, and which job runs there: netkit check host"
INCAST = "more arrives for this port than it can send: see the job's placement, and uplink balance: netkit check load"
BURSTS = "see what sends to it at once, and the balance of uplinks: netkit check load; netkit watch shows it live"
OLD_PEAK = "its watermark is older than the window, and hides peaks within it; clear it on the device"
MOST_MISSING = 0.25
"""If the other end does not take part in PFC, more than this part of the pauses never arrives."""
BUSY = 0.1
"""A port that carries a smaller part of its speed is not full."""
STRONG = 0.2
"""Of the strongest pauses that a switch receives, those weaker than this part are not followed."""


@device_check(
    layer="congestion", needs=["counters"], window=True, follows=["watchdog.storms", "watchdog.trips", "pfc.storms"]
)
def rate(context: CheckContext, device: DeviceContext) -> Iterator[Finding]:
    """Ports are rarely paused.

    Pauses are the last resort of a lossless fabric: ECN should slow senders down long before. A paused port
    delays all traffic that leaves through it. `netkit check pfc.origin` names the cause. Where a device only
    counts pauses of all priorities together, as some do over SNMP, those are judged.
    """
    lossless = context.fabric.lossless.lossless_priorities
    for port in (*device.ports, *device.nics):
        for priority in lossless:
            for pauses, is_sent in ((received(device, port, priority), False), (sent(device, port, priority), True)):
                if priority == lossless[0] or not pauses.is_total:
                    yield _judged(context, CableEnd(device.name, port), priority, pauses, is_sent=is_sent)


def _pauses_on(way: str, priority: int) -> str:
    """One name for the pauses that go along a cable in one direction."""
    return way and f"{way}: pauses of priority {priority}"


def _judged(context: CheckContext, end: CableEnd, priority: int, pauses: Pauses, *, is_sent: bool) -> Finding:
    at = place(end.port, priority)
    if not pauses.is_known:
        return skip(at, f"pauses are not known: {pauses.frames.state}")
    verdict = pauses.verdict(context)
    if verdict is Verdict.PASS:
        return PASSED
    say, far = fail if verdict is Verdict.FAIL else warn, context.far(end.device, end.port)
    words, way = (f"holds up {far}", context.way) if is_sent else (f"is held up by {far}", context.way_in)
    cause = _pauses_on(way(end.device, end.port), priority)
    window = f"{pauses.frames.seconds or pauses.time_us.seconds:.0f} s"
    return say(at, f"{words}: {pauses}", "netkit check pfc.origin names the cause", cause=cause, window=window)


@device_check(
    layer="congestion",
    needs=["buffers", "counters"],
    on="switch",
    window=True,
    follows=["pfc.origin", "pfc.rate", "pfc.storms", "watchdog.storms", "watchdog.trips", "qos"],
)
def headroom(context: CheckContext, device: DeviceContext) -> Iterator[Finding]:
    """No lossless queue nearly fills its headroom.

    Headroom holds the packets that arrive after a pause was sent. When it is full, lossless packets are lost; its peak
    warns before that. A cable longer than designed, a slow other end or a wrong MTU fills it: compare
    `netkit design --explain`. Only a peak reached within the window is judged; netkit clears no watermark.
    """
    for port in device.ports.values():
        reserved = port.profile.headroom.xoff_bytes if port.profile.headroom else 0
        for number in context.fabric.lossless.lossless_priorities if reserved else ():
            at = place(port.name, number)
            found = peak(device, at, "headroom_peak_bytes")
            if found is None:
                yield skip(at, "the device does not report how full its headroom was")
                continue
            percent = 100 * found.bytes / reserved
            if percent <= context.limits.headroom_warn_percent:
                yield PASSED
            elif not found.is_new:
                yield skip(at, OLD_PEAK)
            else:
                text = f"{found.bytes:,} of {reserved:,} bytes of its headroom were full, {percent:.0f} %"
                cause = _pauses_on(context.way(device.name, port.name), number)
                yield warn(at, text, "see cable length, MTU and the other end: netkit design --explain", cause=cause)


@device_check(
    layer="congestion",
    needs=["buffers", "counters"],
    on="switch",
    window=True,
    follows=["pfc.origin", "pfc.rate", "pfc.storms", "watchdog.storms", "watchdog.trips", "qos", "links.flaps"],
)
def bursts(context: CheckContext, device: DeviceContext) -> Iterator[Finding]:
    """No queue of RoCE data fills up between two readings that both find it short.

    A burst of milliseconds fills a queue beyond the point where every packet is marked, pauses neighbours, and is over
    before the next reading: rates and averages stay low. The cause is many senders to one receiver at once, or a few
    flows hashed to one uplink. Only a peak reached within the window is judged, where the device keeps watermarks.
    netkit clears no watermark: use `sonic-clear queue watermark` and the like.
    """
    number = context.fabric.lossless.roce.priority
    for port in device.ports.values():
        at, ecn = place(port.name, number), port.profile.ecn
        found = peak(device, at, "peak_bytes")
        if found is None:
            yield skip(at, "the device keeps no watermark of its queue")
        elif found.bytes <= ecn.max_bytes or (found.most_at_looks or 0) >= ecn.min_bytes:
            yield PASSED
        elif not found.is_new:
            yield skip(at, OLD_PEAK)
        else:
            held = "" if found.most_at_looks is None else f", {found.most_at_looks:,} at most at both readings"
            text = f"its RoCE queue held {found.bytes:,} bytes in between{held}; all is marked from {ecn.max_bytes:,}"
            yield warn(at, text, BURSTS, cause=congestion(device.name, port.name))


@device_check(layer="qos", needs=["counters"], window=True, follows=["qos"])
def priority(context: CheckContext, device: DeviceContext) -> Iterator[Finding]:
    """No pauses are seen on a priority that is not lossless.

    One end treats another priority as lossless: their maps differ, and RoCE is unprotected in its queue. Compare
    the QoS of both ends: `netkit check qos`.
    """
    lossless = context.fabric.lossless.lossless_priorities
    for name, words in (("rx_pause", "arrive"), ("tx_pause", "are sent")):
        for at, delta in device.deltas(name).items():
            port, number = parts(at)
            if port not in device.ports and port not in device.nics:
                continue
            if number not in lossless and delta.is_known and delta.value:
                text = f"pauses {words} on priority {number}, which is not lossless: {delta.value}"
                yield fail(at, text, "compare the QoS of both ends: netkit check qos")
            elif delta.is_known:
                yield PASSED


@fabric_check(
    layer="congestion",
    needs=["counters"],
    window=True,
    follows=["qos", "links.flaps", "links.up", "watchdog.storms", "watchdog.trips"],
    reads=PAUSE_COUNTERS,
)
def symmetry(context: CheckContext) -> Iterator[Finding]:
    """The pauses that one end of a link sends are received at the other end.

    If they differ, one end does not use PFC on this priority, and loses packets instead of pausing.
    `netkit check qos.link` shows which end.
    """
    for near, near_port, far, far_port in context.links():
        for number in context.fabric.lossless.lossless_priorities:
            yield _compared(near, near_port, far, far_port, number)
            yield _compared(far, far_port, near, near_port, number)


def _compared(
    sender: DeviceContext, sender_port: str, receiver: DeviceContext, receiver_port: str, number: int
) -> Finding:
    of_sender, of_receiver = sent(sender, sender_port, number), received(receiver, receiver_port, number)
    out, into = of_sender.frames, of_receiver.frames
    at = place(receiver_port, number)
    if not (out.is_known and into.is_known) or of_sender.is_total != of_receiver.is_total:
        return skip(at, "not both ends count pauses", device=receiver.name)
    if skew_s((sender.window, receiver.window)) > MOST_MISSING * min(sender.window_s, receiver.window_s):
        return skip(at, f"it and {sender.name} were not read at the same moment", device=receiver.name)
    doubt = skew_s((sender.window, receiver.window)) / min(sender.window_s, receiver.window_s)
    if least(abs(out.value - into.value), max(out.value, into.value), doubt) <= MOST_MISSING:
        return PASSED
    text = f"{sender.name}:{sender_port} sends {out.per_s:.0f} pauses a second, {into.per_s:.0f} arrive"
    return warn(at, text, "see whether PFC is on at both ends: netkit check qos", device=receiver.name)


@device_check(
    layer="host", needs=["counters"], on="host", window=True, follows=["host.pcie", "host.acs", "watchdog.storms"]
)
def storms(context: CheckContext, device: DeviceContext) -> Iterator[Finding]:
    """No NIC pauses its leaf for so long that its own storm protection triggers.

    The NIC cannot deliver what it receives: PCIe, IOMMU or the GPU are slow, or its driver hangs. See
    `netkit check host`; take the host out of service and load the driver again.
    """
    del context
    for nic in device.nics:
        counted = [device.delta(name, nic) for name in ("pause_storm_warnings", "pause_storm_errors")]
        if not any(delta.is_known for delta in counted):
            yield skip(nic, "the NIC does not report pause storms")
        elif any(delta.value for delta in counted):
            yield fail(nic, f"paused its leaf without end: {sum(delta.value for delta in counted)} alarms", SLOW_HOST)
        else:
            yield PASSED


@dataclass(frozen=True, slots=True)
class Origin:
    """Where congestion begins: a host NIC, or the egress port of a switch; no port if it is unknown."""

    end: CableEnd
    is_nic: bool
    priority: int
    is_seen: bool = True
    """Whether the device was read; if not, the trace ends, and pauses may begin beyond it."""


@fabric_check(
    layer="congestion",
    needs=["counters"],
    window=True,
    follows=["watchdog.storms", "pfc.storms", "host.pcie", "host.acs", "links.speed"],
    reads=[*PAUSE_COUNTERS, "buffers", "ecn_marked", "queue_ecn_marked/lossless", "tx_bytes"],
)
def origin(context: CheckContext) -> Iterator[Finding]:
    """No port causes congestion that spreads.

    The trace follows the data from a port that receives pauses to the neighbour that sends them, until a device sends
    pauses without receiving any on its egress ports. That device is the origin: a host NIC that cannot keep up, or a
    switch port with more traffic than it can carry. All other paused ports are victims.
    The trace ends at a switch that was not read; the finding names it: read that switch too.
    """
    for number in context.fabric.lossless.lossless_priorities:
        spread = _Spread(context, number)
        yield from (PASSED for _ in range(spread.calm))
        yield from (_blamed(context, one, held) for one, held in spread.victims())
        yield from (_in_cycle(context, end, number) for end in spread.in_cycles())


def _blamed(context: CheckContext, one: Origin, held: Sequence[CableEnd]) -> Finding:
    victims = tuple(dict.fromkeys(context.cable(end.device, end.port) for end in held))
    cables = "1 cable" if len(victims) == 1 else f"{len(victims)} cables"
    own = context.cable(one.end.device, one.end.port) if one.is_nic else congestion(one.end.device, one.end.port)
    say, text, remedy = _words(one)
    return say(
        place(one.end.port, one.priority) if one.end.port else "",
        text.format(cables=cables),
        remedy,
        device=one.end.device,
        cause=own,
        explains=[_pauses_on(way, one.priority) for way in _ways(context, held)],
        victims="; ".join(victims),
    )


def _ways(context: CheckContext, held: Sequence[CableEnd]) -> Iterator[str]:
    """Yield cables and devices whose pauses an origin explains: ports it pauses, and those that switches pause in turn.

    Not everybody counts the pauses that arrive.
    """
    yield from (context.way_in(end.device, end.port) for end in held)
    senders = dict.fromkeys(far.device for end in held if (far := context.far(end.device, end.port)))
    for name in senders:
        device = context.devices.get(name)
        yield from (context.way(name, port) for port in (device.ports if device else ()))


def _words(one: Origin) -> tuple[Callable[..., Finding], str, str]:
    """The kind of finding, its text and the remedy."""
    if one.is_nic:
        return fail, "this NIC causes pauses on {cables}", SLOW_HOST
    if not one.is_seen:
        text = "pauses on {cables} come from here, but this switch did not report its own: they may begin beyond it"
        return warn, text, f"look again with {one.end.device}, once it can be read: netkit check pfc"
    if one.end.port:
        return fail, "this egress port causes pauses on {cables}", INCAST
    return fail, "this switch causes pauses on {cables}; it does not report which of its egress ports is full", INCAST


def _in_cycle(context: CheckContext, end: CableEnd, number: int) -> Finding:
    text = "is held up in a cycle: every port waits for the next one, and none can send"
    remedy = "see that the watchdog is on everywhere: netkit check watchdog; then whether routes go down and up again"
    own = context.cable(end.device, end.port)
    return fail(place(end.port, number), text, remedy, device=end.device, cause=own)


class _Spread:
    """Where the pauses of one priority come from: each port that is held up, and what holds it up in turn."""

    def __init__(self, context: CheckContext, number: int) -> None:
        self._context, self._number = context, number
        self.calm = 0
        """Ports that are known not to be held up."""
        self._behind: dict[CableEnd | Origin, dict[CableEnd, None]] = {}
        """What holds up → which ports it holds up."""
        self._explained: set[CableEnd] = set()
        self._follow(self._held())

    def victims(self) -> Iterator[tuple[Origin, tuple[CableEnd, ...]]]:
        """Yield each origin with the ports that are held up because of it."""
        for one in [one for one in self._behind if isinstance(one, Origin)]:
            reached: dict[CableEnd, None] = {}
            todo: list[CableEnd | Origin] = [one]
            while todo:
                new = [end for end in self._behind.get(todo.pop(), ()) if end not in reached]
                reached.update(dict.fromkeys(new))
                todo += new
            self._explained |= reached.keys()
            yield one, tuple(reached)

    def in_cycles(self) -> Iterator[CableEnd]:
        """Yield ports that are held up and that no origin explains, once those were asked for."""
        held = dict.fromkeys(end for ends in self._behind.values() for end in ends)
        yield from (end for end in held if end not in self._explained)

    def _held(self) -> list[CableEnd]:
        """The ports that receive pauses, and count the others."""
        held: list[CableEnd] = []
        for device in self._context.devices.values():
            for port in (*device.ports, *device.nics):
                pauses = self._received(device, port)
                if pauses.verdict(self._context) is not Verdict.PASS:
                    held.append(CableEnd(device.name, port))
                elif pauses.is_known:
                    self.calm += 1
        return held

    def _received(self, device: DeviceContext, port: str) -> Pauses:
        return received_at(self._context, device, port, self._number)

    def _follow(self, todo: list[CableEnd]) -> None:
        """Go from each port that is held up to what holds it up, once each; pauses may form a cycle."""
        known: set[CableEnd] = set()
        while todo:
            held = todo.pop()
            if held in known:
                continue
            known.add(held)
            for one in self._holders(held):
                self._behind.setdefault(one, {})[held] = None
                if isinstance(one, CableEnd):
                    todo.append(one)

    def _holders(self, held: CableEnd) -> Iterator[CableEnd | Origin]:
        """Yield what holds up a port: ports further on that are held up themselves, or where it begins."""
        sender = self._context.far(held.device, held.port)
        if sender is None:
            return
        if isinstance(self._context.fabric.device(sender.device), Host):
            yield Origin(sender, is_nic=True, priority=self._number)
            return
        device = self._context.devices.get(sender.device)
        if device is None or not self._reports_others(device, sender.port):
            yield Origin(sender, is_nic=False, priority=self._number, is_seen=False)
            return
        onward = [CableEnd(sender.device, port) for port in self._onward(device, sender.port)]
        if onward:
            yield from onward
        else:
            full = self._fullest(device, sender.port)
            yield Origin(CableEnd(sender.device, full), is_nic=False, priority=self._number)

    def _reports_others(self, device: DeviceContext, entry: str) -> bool:
        """Whether a switch reports the pauses of any port other than the ingress port."""
        return any(self._received(device, port).is_known for port in device.ports if port != entry)

    def _onward(self, device: DeviceContext, entry: str) -> Iterator[str]:
        """Yield the other ports of a switch that are held up themselves: data that waits there fills its buffers."""
        held = {port: self._received(device, port) for port in device.ports if port != entry}
        most = max((pauses.strength for pauses in held.values()), default=0.0)
        for port, pauses in held.items():
            if pauses.verdict(self._context) is not Verdict.PASS and pauses.strength >= STRONG * most:
                yield port

    def _fullest(self, device: DeviceContext, entry: str) -> str:
        """The egress port of a switch where congestion begins; empty if the facts do not show it.

        If no queue is known to be full, marks alone may come from an incast that pauses no sender: a port that may hold
        up all ports that are paused is more likely than one that may not.
        """
        levels = {port: self._fullness(device, designed) for port, designed in device.ports.items() if port != entry}
        if not any(level and level[0] for level in levels.values()):
            apart = {port: level for port, level in levels.items() if any(level) and not self._pauses(device, port)}
            levels = apart or levels
        fullest = max(levels, key=lambda port: levels[port], default="")
        return fullest if fullest and any(levels[fullest]) else ""

    def _pauses(self, device: DeviceContext, port: str) -> bool:
        """Whether a switch holds up what is at the other end of a port."""
        return sent_at(self._context, device, port, self._number).verdict(self._context) is not Verdict.PASS

    def _fullness(self, device: DeviceContext, port: Port) -> tuple[float, ...]:
        """How congested a port is: by its queue, its marks, how long its queue was, and how much it carries.

        Where counters stand still, the levels of queues are old as well.
        """
        if port.name in device.still:
            return ()
        queue = place(port.name, self._number)
        buffers = device.facts.buffers
        level = (None if isinstance(buffers, Absent) else buffers.get(queue)) or Buffer()
        least = port.profile.ecn.min_bytes
        used, peak = (held if held and held >= least else 0 for held in (level.used_bytes, level.peak_bytes))
        marks = max(device.delta("queue_ecn_marked", queue).per_s, device.delta("ecn_marked", port.name).per_s)
        use = device.delta("tx_bytes", port.name).per_s * 8 / 1e9 / port.speed_gbps
        return used, marks, peak, use if use >= BUSY else 0.0
