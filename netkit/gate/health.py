"""The health gate of a deploy: the vitals of a device before and after its change.

The gates in netkit.deploy cover sessions and the rails of hosts. This one adds what a lossless fabric needs: the
lossless class loses no more than before, no watchdog trips, pauses do not rise, leaves are reached over as many ports,
and optical power is as before.
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from ipaddress import IPv4Network
from typing import cast

from pydantic import TypeAdapter

from netkit.deploy.clock import CLOCK, DeployClock
from netkit.deploy.gate import ChainedAnswer, Gate, GateAnswer, GateQuestion, Moment, ask_first
from netkit.design import Fabric, Host, Switch
from netkit.design.expectation import LeafReach, without_drains
from netkit.facts import Absent, Facts, Sample
from netkit.facts.counter import COUNTERS, Scope
from netkit.judge.delta import deltas
from netkit.observe.assemble import Replies, facts, sample
from netkit.platforms import PLATFORMS
from netkit.platforms.change import Risk
from netkit.platforms.view import View, Viewer

LOSSES = ("buffer_drops", "queue_drops")
TRIPS = "watchdog_detected"
PAUSES = ("rx_pause", "tx_pause")
DAMAGE = "rx_errors"
OF_QUEUE, OF_NIC = SENT = ("queue_tx_bytes", "rdma_tx_bytes")
UNWANTED = frozenset({*LOSSES, TRIPS, DAMAGE})
"""Any of these is worse where there was none before."""
IDLE_BYTES_PER_S = 100_000
"""Traffic on an idle lossless queue: less than a millionth of a port."""
MANY_PAUSES_PER_S = 100
STEADY = 1.25
"""A loss that was there before varies up to this many times its rate."""
WORSE_BY = 2.0
"""Pauses are worse from this many times the earlier rate."""
Rates = Mapping[str, float]
"""Counter and place → counts per second; unknown ones are missing."""
Marks = Mapping[Scope, tuple[str, ...]]
"""How the places of the lossless class end in a counter for each priority, and in one for each queue."""


@dataclass(frozen=True, slots=True)
class Vitals:
    """The vital signs of one device."""

    rates: Rates = field(default_factory=dict)
    widths: Mapping[str, int] | None = None
    """Prefix → ports it is reached over; None when the device does not report."""
    rx_power_dbm: Mapping[str, float] | None = None
    """Port → received power of its weakest lane; None if no module reports it."""


def vitals(
    facts: Facts,
    samples: Sequence[Sample],
    prefixes: Iterable[str],
    lossless: Marks,
    local: frozenset[str] = frozenset(),
) -> Vitals:
    """Extract the vitals from facts and samples; only leaf prefixes count. `local` are ports towards hosts."""
    routes, modules = facts.routes, facts.modules
    rx_power_dbm: dict[str, float] = {}
    if not isinstance(modules, Absent):
        for port, module in modules.items():
            values = [lane.rx_dbm for lane in module.lanes.values() if lane.rx_dbm is not None]
            rx_power_dbm |= {port: min(values)} if values else {}
    return Vitals(
        dict(_rates(tuple(samples), lossless)),
        None if isinstance(routes, Absent) else dict(_widths(routes, prefixes, local)),
        rx_power_dbm or None,
    )


def _widths(
    routes: Mapping[str, Collection[str]], prefixes: Iterable[str], local: frozenset[str]
) -> Iterator[tuple[str, int]]:
    """Yield the number of ports for each prefix.

    While lengths are being changed, it is that of a wider or of narrower routes; of a summary that the device itself
    announces, and discards, it is that of the routes inside. While leaves get other prefixes, what is inside may be
    the device's own, of its hosts: a VLAN, or one of the ports in `local`.
    """

    def is_remote(ways: Collection[str]) -> bool:
        return bool(ways) and not all(way in local or way.lower().startswith("vlan") for way in ways)

    known: dict[IPv4Network, int] | None = None
    every = dict.fromkeys(prefixes)
    others = (one for one in routes.keys() - every.keys() if "." in one and not one.endswith("/32"))
    narrow = {IPv4Network(one): len(routes[one]) for one in others if is_remote(routes[one])}
    for prefix in every:
        wanted = IPv4Network(prefix)
        if routes.get(prefix):
            # A leaf whose prefix gets longer announces both: hosts are reached over the old one as long as it is there.
            inside = [width for one, width in narrow.items() if one.subnet_of(wanted)]
            yield prefix, max(len(routes[prefix]), min(inside, default=0))
            continue
        if known is None:
            known = {IPv4Network(one): len(ways) for one, ways in routes.items() if "." in one and is_remote(ways)}
        wider = [one for one in known if one.prefixlen and wanted.subnet_of(one)] if prefix not in routes else []
        inside = [width for one, width in known.items() if one != wanted and one.subnet_of(wanted)]
        if wider or inside:
            yield prefix, known[max(wider, key=lambda one: one.prefixlen)] if wider else min(inside)


def _rates(samples: tuple[Sample, ...], lossless: Marks) -> Iterator[tuple[str, float]]:
    for name in (*LOSSES, *PAUSES, TRIPS, DAMAGE, *SENT):
        for place, delta in deltas(name, samples).items():
            if delta.is_known and (name in {DAMAGE, OF_NIC} or place.endswith(lossless[COUNTERS[name].scope])):
                yield f"{name} {place}", delta.per_s


def _sent(found: Sample, lossless: Marks) -> Iterator[int]:
    """Yield what each port has sent of the lossless class."""
    for name in SENT:
        for place, count in found.counters.get(name, {}).items():
            if name == OF_NIC or place.endswith(lossless[COUNTERS[name].scope]):
                yield count


def busy(now: Vitals) -> tuple[str, ...] | None:
    """Where lossless traffic flows; None if the device does not report it."""
    moving = {key: rate for key, rate in now.rates.items() if key.startswith(SENT)}
    if not moving:
        return None
    return tuple(
        f"{key.partition(' ')[2]} sends {rate * 8 / 1e9:.1f} Gb/s of the lossless class"
        for key, rate in moving.items()
        if rate > IDLE_BYTES_PER_S
    )


def moving_bytes_per_s(now: Vitals) -> float:
    """How much lossless traffic a device sends."""
    return sum(rate for key, rate in now.rates.items() if key.startswith(SENT))


def worse(before: Vitals, after: Vitals, ending: frozenset[str], trend_db: float) -> Iterator[str]:
    """Yield how a device is worse than before."""
    for key, rate in after.rates.items():
        name, _, place = key.partition(" ")
        was = before.rates.get(key, 0.0)
        most = STEADY * was if name in UNWANTED else max(MANY_PAUSES_PER_S, WORSE_BY * was)
        if name in WORDS and rate > most:
            yield f"{place}: {WORDS[name]}, {rate:.0f} a second, {was:.0f} before"
    if not ending and after.widths is not None:
        for prefix, width in (before.widths or {}).items():
            now = after.widths.get(prefix, 0)
            if now < width:
                lost = f"reaches {prefix} over {now} ports, {width} before"
                yield lost if now else f"does not reach {prefix} any more"
    for port, dbm in (after.rx_power_dbm or {}).items():
        loss_db = (before.rx_power_dbm or {}).get(port, dbm) - dbm
        if loss_db > trend_db:
            yield f"{port}: receives {loss_db:.1f} dB less optical power than before"


WORDS = {
    "buffer_drops": "loses lossless packets for lack of buffer",
    "queue_drops": "drops lossless packets",
    TRIPS: "its PFC watchdog trips",
    DAMAGE: "packets arrive damaged",
    "rx_pause": "is paused",
    "tx_pause": "pauses its neighbour",
}


def unreported(before: Vitals, after: Vitals) -> Iterator[str]:
    """Yield what a device no longer reports: that is not a sign of health."""
    for name in (*LOSSES, TRIPS, *PAUSES):
        if _has(before, name) and not _has(after, name):
            yield f"does not report {name.replace('_', ' ')} any more"
    if before.widths and after.widths is None:
        yield "does not report its routes any more"


def _has(vital: Vitals, name: str) -> bool:
    return any(key.startswith(f"{name} ") for key in vital.rates)


WINDOW_S, POLL_S = 1.0, 0.5
COMPARED = frozenset({"counters", "routes"})
"""Facts that are compared after every change except changes of descriptions."""
LIGHT = frozenset({"modules"})
"""Also compared after a change that takes links down; reading modules is slow."""
CLASSES = frozenset({"qos"})
"""Also read where a change may move the lossless class: it still uses the running priority, whatever is intended."""
MOST_NAMED = 3
WAIT, GOES_ON = "deploy again when it is idle;", "--disruptive --busy proceeds"
MOVED_SHARE = 0.05
"""A drained device may still send this part of what it sent before."""
ADAPTER = TypeAdapter(Vitals)
ViewsOf = Callable[[str], Sequence[View]]


class HealthGate:
    """Asks another gate first, then compares the vitals of the device with those from before."""

    def __init__(
        self, fabric: Fabric, others: Gate, views: ViewsOf, *, trend_db: float = 2.0, clock: DeployClock = CLOCK
    ) -> None:
        self._fabric, self._others, self._views, self._trend_db, self._clock = fabric, others, views, trend_db, clock
        self._lossless = fabric.lossless.lossless_priorities
        self._prefixes = {leaf.leaf_prefix: leaf.name for leaf in fabric.tier("leaf") if leaf.leaf_prefix}
        self._left = without_drains(fabric)

    def __call__(self, question: GateQuestion) -> GateAnswer:
        first = ask_first(self._others, question, self._clock)
        if not first.others.is_healthy or question.risk is Risk.NONE:
            return first.without_more()
        if question.moment is Moment.BEFORE:
            return self._before(question, first)
        if "vitals" not in first.kept:
            return GateAnswer("inconclusive", (f"{question.device}: it was not read before the change",))
        if first.kept["vitals"] is None:
            return first.others
        before = ADAPTER.validate_python(first.kept["vitals"])
        if question.moment is Moment.DRAINED:
            return self._drained(question, before, first.left_s)
        return self._after(question, before, first.left_s)

    def _before(self, question: GateQuestion, first: ChainedAnswer) -> GateAnswer:
        nothing = GateAnswer("healthy", sample=first.sample(vitals=None), is_blank=True)
        if first.others.is_blank and self._is_unused(question):
            return nothing
        now = self._look(question)
        kept = first.sample(vitals=asdict(now))
        if not question.needs_idle:
            is_blank = first.others.is_blank and not busy(now) and not any((now.widths or {}).values())
            return nothing if is_blank else GateAnswer("healthy", sample=kept)
        moving = busy(now)
        if moving is None:
            reason = f"does not report whether lossless traffic flows; {GOES_ON} without knowing"
            return GateAnswer("inconclusive", (f"{question.device}: {reason}",), kept)
        named = "; ".join(moving[:MOST_NAMED])
        more = f" and {len(moving) - MOST_NAMED} more" if len(moving) > MOST_NAMED else ""
        reasons = (f"{question.device}: {named}{more}; {WAIT} {GOES_ON} anyway",) if moving else ()
        return GateAnswer("worse" if reasons else "healthy", reasons, kept)

    def _drained(self, question: GateQuestion, before: Vitals, left_s: float) -> GateAnswer:
        """Poll until traffic has moved, or the time limit is reached."""
        was = moving_bytes_per_s(before)
        deadline_s = self._clock.steady_s() + left_s
        while True:
            rate = moving_bytes_per_s(self._look(question)) if was else 0.0
            if rate <= MOVED_SHARE * was:
                return GateAnswer("healthy")
            if self._clock.steady_s() >= deadline_s:
                text = f"still sends {rate * 8 / 1e9:.1f} Gb/s of the lossless class though it is drained"
                return GateAnswer("worse", (f"{question.device}: {text}",))

    def _after(self, question: GateQuestion, before: Vitals, left_s: float) -> GateAnswer:
        """Poll until all is as it was, or the time limit is reached."""
        deadline_s = self._clock.steady_s() + left_s
        before = replace(before, widths=self._kept_widths(question, before.widths or {}))
        while True:
            now = self._look(question)
            found = tuple(worse(before, now, question.ending, self._trend_db))
            silent = tuple(unreported(before, now))
            if not found and not silent:
                return GateAnswer("healthy")
            if self._clock.steady_s() >= deadline_s:
                reasons = tuple(f"{question.device}: {one}" for one in found or silent)
                return GateAnswer("worse" if found else "inconclusive", reasons)
            self._clock.sleep_s(POLL_S)

    def _kept_widths(self, question: GateQuestion, before: Mapping[str, int]) -> Mapping[str, int]:
        """The widths to expect: those from before, without what is drained now, and what the plan says will go.

        An interrupted run may have begun with another intent, with prefixes that nobody looks for now.
        """
        name, fewer, known = question.device, question.narrowed, self._prefixes
        before = {one: min(width, fewer.get(known[one], width)) for one, width in before.items() if one in known}
        if self._left is self._fabric or not isinstance(self._fabric.device(name), Switch):
            return before
        wanted = LeafReach(self._left).widths(self._left.switch(name))
        return {prefix: min(width, wanted.get(prefix, width)) for prefix, width in before.items()}

    def _is_unused(self, question: GateQuestion) -> bool:
        """Whether a device without sessions carries nothing, as far as that shows without waiting.

        A switch that reaches no leaf, and has sent nothing of the lossless class since its counters began, is idle. A
        switch without a lossless class has no such counter.
        """
        if isinstance(self._fabric.device(question.device), Host):
            return not question.needs_idle
        views = self._compared(question)
        replies = _replies(cast("Viewer", question.reader), views)
        found = sample([view for view in views if view.counts], replies)
        lossless = self._lossless_on(question.device, facts(views, replies))
        sent = [*_sent(found, lossless)] if found is not None else []
        widths = self._vitals(question, views, replies, []).widths or {}
        return (bool(sent) or not question.needs_idle) and not any((*sent, *widths.values()))

    def _look(self, question: GateQuestion) -> Vitals:
        """Read the device: its counters over a moment, its routes, and received optical power if links went down."""
        viewer = cast("Viewer", question.reader)
        views = self._compared(question, LIGHT if question.risk >= Risk.PORT else frozenset())
        counting = [view for view in views if view.counts]
        first, ahead_s = sample(counting, _replies(viewer, counting)), self._clock.ahead_s()
        self._clock.sleep_s(WINDOW_S)
        replies = _replies(viewer, views)
        last, moved_s = sample(counting, replies), self._clock.ahead_s() - ahead_s
        # Samples carry wall-clock times, and the clock may have been set in between.
        samples = [replace(first, at_s=first.at_s + moved_s)] if first is not None else []
        samples += [last] if last is not None else []
        return self._vitals(question, views, replies, samples)

    def _compared(self, question: GateQuestion, more: frozenset[str] = frozenset()) -> list[View]:
        """The views that are compared."""
        wanted, classes = COMPARED | more, CLASSES if question.risk >= Risk.BUFFER else frozenset()
        return [
            view
            for view in self._views(question.device)
            if view.yields & wanted or (view.yields & classes and not view.is_costly)
        ]

    def _vitals(
        self, question: GateQuestion, views: Sequence[View], replies: Replies, samples: Sequence[Sample]
    ) -> Vitals:
        device = self._fabric.device(question.device)
        far = [prefix for prefix, leaf in self._prefixes.items() if leaf != question.device]
        local = frozenset(port.name for port in device.host_ports) if isinstance(device, Switch) else frozenset()
        found = facts(views, replies)
        return vitals(found, samples, far, self._lossless_on(question.device, found), local)

    def _lossless_on(self, name: str, found: Facts) -> Marks:
        """The lossless class of a device, intended and running; none if its switches have no PFC and may drop."""
        device = self._fabric.device(name)
        leaves = {nic.leaf for nic in device.nics} if isinstance(device, Host) else {name}
        switches = (self._fabric.device(leaf) for leaf in leaves)
        has_pfc = all(not PLATFORMS[one.platform].lacks("pfc") for one in switches if isinstance(one, Switch))
        numbers = {(priority, priority) for priority in self._lossless}
        for port in () if isinstance(found.qos, Absent) else found.qos.values():
            running = {*(port.pfc_rx or ()), *(port.pfc_tx or ())}
            numbers |= {(priority, (port.priority_to_class or {}).get(priority, priority)) for priority in running}
        priorities, queues = zip(*numbers, strict=True) if has_pfc and numbers else ((), ())
        return {
            "priority": tuple(f"/{one}" for one in priorities),
            "queue": tuple(f"/{one}" for one in queues),
        }


def _replies(viewer: Viewer, views: Sequence[View]) -> Replies:
    commands = tuple(dict.fromkeys(command for view in views for command in view.commands))
    return dict(zip(commands, viewer.ask(commands), strict=True))
