"""A proof: flows between NICs that reach each other before and after, the part of the fabric, the result."""

import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice

from netkit.deploy import DeviceOutcome, Outcome
from netkit.design.expectation import ways
from netkit.design.fabric import Fabric, Host, Nic, Switch
from netkit.errors import LabError, Problem
from netkit.lab.proof import Gap, NicPing, PingResult, TrafficPair, every_trip, over_each_family, sampled
from netkit.plan import Plan
from netkit.plan.intent_diff import IntentDiff
from netkit.plan.model import DevicePlan
from netkit.platforms.change import Risk

SAME_LEAF, SAME_UNIT, ACROSS = "same leaf", "same unit", "across units"
SCOPES = (SAME_LEAF, SAME_UNIT, ACROSS)
MOST_PER_SCOPE = 16
OVER_IPV6 = " over IPv6"


@dataclass(frozen=True, slots=True)
class ProofFlow:
    """A pair of NICs and its distance; traffic that stays on its leaf needs no spine."""

    scope: str
    call: TrafficPair


def flows(running: Fabric, intended: Fabric, most_per_scope: int = MOST_PER_SCOPE) -> tuple[ProofFlow, ...]:
    """Flows between NICs that keep their addresses, some of every scope."""
    nics = {(host.name, nic.interface): nic for host in running.hosts for nic in host.nics}
    known = ways(running)
    trips = list(every_trip(intended, is_across=False))
    if running.cross_rail == intended.cross_rail == "routed":
        trips += every_trip(intended, is_across=True)
    trips = [trip for trip in trips if _stays(nics, trip) and trip.to_nic.leaf in known[trip.nic.leaf]]
    return tuple(
        ProofFlow(scope, _call(trip))
        for scope in SCOPES
        for trip in over_each_family(
            sampled([trip for trip in trips if _scope(intended, trip) == scope], most_per_scope)
        )
        if _stays(nics, trip)
    )


def _stays(nics: Mapping[tuple[str, str], Nic], trip: NicPing) -> bool:
    was, far_was = nics.get((trip.host, trip.nic.interface)), nics.get((trip.to_host, trip.to_nic.interface))
    if was is None or far_was is None or (was.leaf, far_was.leaf) != (trip.nic.leaf, trip.to_nic.leaf):
        return False
    before = replace(trip, nic=was, to_nic=far_was)
    return (before.source, before.destination) == (trip.source, trip.destination)


def _scope(fabric: Fabric, trip: NicPing) -> str:
    near, far = fabric.switch(trip.nic.leaf), fabric.switch(trip.to_nic.leaf)
    if near.name == far.name:
        return SAME_LEAF
    return SAME_UNIT if (near.pod, near.unit) == (far.pod, far.unit) else ACROSS


def _call(trip: NicPing) -> TrafficPair:
    family = OVER_IPV6 if trip.is_ipv6 else ""
    name = f"{trip.host}:{trip.nic.interface} → {trip.to_host}:{trip.to_nic.interface}{family}"
    return TrafficPair(name, trip.host, trip.nic.interface, trip.source, trip.destination)


BEFORE = 0
"""The number of losses before the first wave."""


@dataclass(frozen=True, slots=True)
class WaveStart:
    """A wave of a deploy: the devices it changed, and when it began, in seconds since the epoch."""

    number: int
    devices: tuple[str, ...]
    began_s: float


@dataclass(frozen=True, slots=True)
class WaveSeen:
    """What was lost in a wave."""

    number: int
    devices: tuple[str, ...]
    lost: int
    longest_s: float


@dataclass(frozen=True, slots=True)
class ScopeSeen:
    """What was lost in a scope; `worst` is the flow with the longest gap."""

    scope: str
    flows: int
    sent: int
    lost: int
    longest_s: float
    worst: str


def by_wave(waves: Sequence[WaveStart], heard: Iterable[PingResult]) -> tuple[WaveSeen, ...]:
    """What each wave cost; a gap belongs to the wave in which it began."""
    began = [WaveStart(BEFORE, (), 0.0), *sorted(waves, key=lambda wave: wave.began_s)]
    gaps: dict[int, list[Gap]] = {wave.number: [] for wave in began}
    for gap in (gap for one in heard for gap in one.gaps):
        gaps[[wave.number for wave in began if wave.began_s <= gap.began_s][-1]].append(gap)
    return tuple(
        WaveSeen(wave.number, wave.devices, _lost(gaps[wave.number]), _longest_s(gaps[wave.number]))
        for wave in began
        if wave.number != BEFORE or gaps[BEFORE]
    )


def since_the_first(waves: Sequence[WaveStart], heard: Iterable[PingResult]) -> tuple[PingResult, ...]:
    """What was received, without losses before the first wave."""
    first_s = min((wave.began_s for wave in waves), default=float("inf"))
    return tuple(replace(one, gaps=tuple(gap for gap in one.gaps if gap.began_s >= first_s)) for one in heard)


def by_scope(flows: Sequence[ProofFlow], heard: Iterable[PingResult]) -> tuple[ScopeSeen, ...]:
    """What each scope lost."""
    known = {one.name: one for one in heard}
    return tuple(
        _seen_scope(scope, found)
        for scope in SCOPES
        if (found := [known[flow.call.name] for flow in flows if flow.scope == scope and flow.call.name in known])
    )


def mute(heard: Iterable[PingResult]) -> Iterator[str]:
    """Yield the flows that could not even be started."""
    yield from (f"{one.name}: {one.problem}" for one in heard if not one.sent)


def _seen_scope(scope: str, heard: Sequence[PingResult]) -> ScopeSeen:
    worst = max(heard, key=lambda one: _longest_s(one.gaps))
    gaps = [gap for one in heard for gap in one.gaps]
    sent = sum(one.sent for one in heard)
    return ScopeSeen(scope, len(heard), sent, _lost(gaps), _longest_s(gaps), worst.name if worst.gaps else "")


def _lost(gaps: Iterable[Gap]) -> int:
    return sum(gap.lost for gap in gaps)


def _longest_s(gaps: Iterable[Gap]) -> float:
    return round(max((gap.ended_s - gap.began_s for gap in gaps), default=0.0), 2)


MOST_DEVICES = 40
HOSTS_PER_LEAF = 2
Group = Sequence[str]


@dataclass(frozen=True, slots=True)
class LabPart:
    """The part of a fabric that is booted."""

    fabric: Fabric
    left_out: tuple[str, ...] = ()
    unseen: tuple[tuple[str, ...], ...] = ()
    """Groups of similarly changing devices of which none is booted."""
    witnesses: tuple[str, ...] = ()
    """Leaves of another unit that are booted beside those that change."""


def choose(fabric: Fabric, groups: Iterable[Group], most: int = MOST_DEVICES) -> LabPart:
    """A part of the fabric in which the change shows; devices of a group change alike.

    Raise LabError if `most` devices are too few for any useful part.
    """
    if len(fabric.names) <= most:
        return LabPart(fabric)
    changing = [tuple(name for name in group if fabric.device(name) is not None) for group in groups]
    part = _Slice(fabric, most, [group for group in changing if group])
    part.fill()
    kept = frozenset(part.names)
    return LabPart(
        cut(fabric, kept),
        tuple(name for name in fabric.names if name not in kept),
        tuple(group for group in part.groups if kept.isdisjoint(group)),
        tuple(name for name in part.witnesses if name in kept),
    )


def cut(fabric: Fabric, kept: Iterable[str]) -> Fabric:
    """A fabric with only some of its devices, and the cables between them."""
    names = frozenset(kept)
    return replace(
        fabric,
        switches=tuple(_switch(one, names) for one in fabric.switches if one.name in names),
        hosts=tuple(
            replace(one, nics=tuple(nic for nic in one.nics if nic.leaf in names))
            for one in fabric.hosts
            if one.name in names
        ),
        notes=(),
    )


def _switch(switch: Switch, names: frozenset[str]) -> Switch:
    ports = tuple(port for port in switch.ports if port.peer in names)
    there = {port.name for port in ports} | {port.name for port in switch.external}
    cages = tuple(cage for cage in switch.cages if not there.isdisjoint(cage.ports))
    neighbors = tuple(name for name in switch.drain_neighbors if name in names)
    return replace(switch, ports=ports, cages=cages, drain_neighbors=neighbors)


class _Slice:
    """Grows leaf by leaf, each with everything above it and a few hosts, while there is room."""

    def __init__(self, fabric: Fabric, most: int, groups: Sequence[Group]) -> None:
        self._fabric, self._most = fabric, most
        self._changing = frozenset(name for group in groups for name in group)
        self.groups = tuple(map(tuple, groups))
        self.names: set[str] = set()
        self.witnesses: tuple[str, ...] = ()

    def fill(self) -> None:
        """Add the first leaf, one beside it, a witness elsewhere, a representative of each group, then more."""
        first = next(
            (leaf for group in self.groups for leaf in self._representatives(group)), self._fabric.tier("leaf")[0]
        )
        if not self._add(first):
            smallest = len(self._wanted(first))
            remedy = f"--prove-devices {smallest}, if this machine has the resources"
            raise LabError(Problem(f"a leaf with all switches above it and its hosts has {smallest} devices", remedy))
        leaves = self._fabric.tier("leaf")
        near = [leaf for leaf in leaves if _unit(leaf) == _unit(first) and leaf.name != first.name]
        self._add_one_of(sorted(near, key=lambda leaf: leaf.name not in self._changing))
        before = frozenset(self.names)
        far = [leaf for leaf in leaves if _unit(leaf) != _unit(first)]  # first those of its rail that do not change
        self._add_one_of(sorted(far, key=lambda leaf: (leaf.rail != first.rail, leaf.name in self._changing)))
        self.witnesses = tuple(leaf.name for leaf in leaves if leaf.name in self.names - before)
        for group in self.groups[1:]:
            if self.names.isdisjoint(group):
                self._add_one_of(islice(self._representatives(group), 1), group)
        for leaf in leaves:
            if leaf.name in self._changing:
                self._add(leaf)

    def _add_one_of(self, leaves: Iterable[Switch], wanted: Group = ()) -> bool:
        return any(self._add(leaf, wanted) for leaf in leaves)

    def _add(self, leaf: Switch, wanted: Group = ()) -> bool:
        """Add a leaf if it fits, else the same with one host."""
        for hosts in (HOSTS_PER_LEAF, 1):
            more = self._wanted(leaf, wanted, hosts)
            if len(self.names | more) <= self._most:
                self.names |= more
                return True
        return False

    def _wanted(self, leaf: Switch, wanted: Group = (), hosts: int = HOSTS_PER_LEAF) -> set[str]:
        below = dict.fromkeys(port.peer for port in leaf.host_ports)
        order = sorted(below, key=lambda name: (name not in wanted, name not in self.names, name not in self._changing))
        return {leaf.name, *_above(self._fabric, leaf), *order[:hosts]}

    def _representatives(self, group: Group) -> Iterator[Switch]:
        """Yield the leaves that show the change of a group: those in it, or below a device in it."""
        for name in group:
            if (device := self._fabric.device(name)) is not None:
                yield from self._leaves_of(device)

    def _leaves_of(self, device: Switch | Host) -> Iterator[Switch]:
        if isinstance(device, Host):
            yield from (self._fabric.switch(nic.leaf) for nic in device.nics)
        elif device.role == "leaf":
            yield device
        else:
            below = (self._fabric.switch(port.peer) for port in device.ports if port.role == "down")
            yield from (leaf for one in below for leaf in self._leaves_of(one))


def _unit(leaf: Switch) -> tuple[int, int]:
    return leaf.pod, leaf.unit


def _above(fabric: Fabric, switch: Switch) -> Iterator[str]:
    for name in dict.fromkeys(port.peer for port in switch.ports if port.role == "up"):
        yield name
        yield from _above(fabric, fabric.switch(name))


FAILED = 1


@dataclass(frozen=True, slots=True)
class Booted:
    """The devices the lab had, and those it had not, counted by role."""

    roles: dict[str, int]
    left_out: dict[str, int]
    unseen: tuple[tuple[str, ...], ...] = ()
    witnesses: tuple[str, ...] = ()
    added: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Examined:
    """The final examination of the lab."""

    sessions: int
    widest: int
    """Next hops to the leaf that is reached over the most."""
    pairs: int
    of_pairs: int
    packet_bytes: int
    lacking: int = 0
    unsettled: int = 0
    """Devices that a second plan would change again."""
    blocked: int = 0
    """Pairs across rails that were tried, and do not reach each other, as designed."""


@dataclass(frozen=True, slots=True)
class Proof:
    """The result of a proof. If nothing had to be proven, there are no failures."""

    failures: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    exit_code: int = 0
    booted: Booted | None = None
    obstacle: str = ""
    """Why the change was not rolled out from before to after."""
    devices: tuple[DeviceOutcome, ...] = ()
    waves: tuple[WaveSeen, ...] = ()
    scopes: tuple[ScopeSeen, ...] = ()
    untried: tuple[str, ...] = ()
    """Booted devices on which the lab had less to change than the fabric has."""
    examined: Examined | None = None
    took_s: float = 0.0

    @property
    def sent(self) -> int:
        """The packets sent during the rollout."""
        return sum(one.sent for one in self.scopes)

    @property
    def is_unmeasured(self) -> bool:
        """Whether NICs reach each other in the end, and no traffic could show what they lose on the way."""
        is_rolled = bool(self.waves) and not self.obstacle
        return is_rolled and not self.scopes and self.examined is not None and self.examined.of_pairs > 0

    @property
    def lost(self) -> int:
        """How many of them got no answer."""
        return sum(one.lost for one in self.scopes)

    @property
    def longest_s(self) -> float:
        """The longest time a flow got no answer."""
        return max((one.longest_s for one in self.scopes), default=0.0)


def booted(part: LabPart, fabric: Fabric, diff: IntentDiff) -> Booted:
    """Summarise the part of a fabric on which a change was tried."""
    roles = _roles(part.fabric)
    whole = _roles(fabric)
    left_out = {role: count - roles.get(role, 0) for role, count in whole.items() if count > roles.get(role, 0)}
    added = tuple(one.name for one in diff.added if part.fabric.device(one.name) is not None)
    return Booted(roles, left_out, part.unseen, part.witnesses, added, tuple(one.name for one in diff.removed))


def of_outcome(outcome: Outcome) -> Iterator[str]:
    """Yield the failures of a deploy."""
    for one in outcome.failures:
        yield f"{one.device} {one.result.value}: {'; '.join(one.reasons) or 'without a reason'}"
    if outcome.stopped:
        yield f"the deploy stopped: {outcome.stopped}"
    elif outcome.exit_code and not outcome.failures:
        yield f"the deploy ended with {outcome.exit_code}"


def of_loss(plan: Plan, flows: Sequence[ProofFlow], heard: Sequence[PingResult]) -> Iterator[str]:
    """Yield losses that the routing model did not predict.

    For changes that rearrange buffers or take down links, the model predicts routes, not frames: losses are then
    expected.
    """
    if plan.risk > Risk.SESSION:
        return
    left = [plan.partial.loss] if plan.partial else []
    losses = [plan.gone, *left, *(loss for step in plan.steps for loss in (step.during, step.after))]
    disrupted = frozenset(gpu for one in plan.devices if one.blast.is_disruptive for gpu in one.blast.gpus)
    calls = {flow.call.name: flow.call for flow in flows}
    for one in heard:
        lost = sum(gap.lost for gap in one.gaps)
        ends = one.name.removesuffix(OVER_IPV6).split(" → ")
        hosts, interfaces = zip(*(end.partition(":")[::2] for end in ends), strict=True)
        is_ipv6 = ":" in calls[one.name].destination
        is_predicted = any(loss.may_have_lost(hosts, interfaces, is_ipv6=is_ipv6) for loss in losses)
        if lost and disrupted.isdisjoint(ends) and not is_predicted:
            yield f"{one.name}: {lost} of {one.sent} packets lost; netkit predicted no loss: a defect of netkit"


def _roles(fabric: Fabric) -> dict[str, int]:
    found = {role: len(fabric.tier(role)) for role in ("leaf", "spine", "core")}
    return {role: count for role, count in {**found, "host": len(fabric.hosts)}.items() if count}


Place = tuple[str, ...]


def obstacle(running: Fabric, intended: Fabric) -> str:
    """Why a fabric cannot run on the devices and cables of another; empty if it can."""
    if not any(intended.device(name) for name in running.names):
        return "no device of the earlier fabric remains"
    return next(_replaced(running, intended), "") or _recabled(running, intended)


def _replaced(running: Fabric, intended: Fabric) -> Iterator[str]:
    for name in running.names:
        before, after = running.device(name), intended.device(name)
        if before is None or after is None or _make(before) == _make(after):
            continue
        yield f"{name} becomes another device: {_named(before)} → {_named(after)}"


def _make(device: Switch | Host) -> Place:
    if isinstance(device, Switch):
        return device.platform, device.version, device.model.name
    nics = (f"{nic.interface} {nic.pci} {nic.mac}" for nic in device.nics)
    return device.platform, device.backend, device.model.name, *nics


def _named(device: Switch | Host) -> str:
    return " ".join(_make(device)[:3])


def _recabled(running: Fabric, intended: Fabric) -> str:
    there = {place for place, _ in _cables(intended)}
    lacking = [text for place, text in _cables(running) if place not in there]
    if not lacking:
        return ""
    more = f", and {len(lacking) - 1} more" if len(lacking) > 1 else ""
    return f"earlier cables no longer exist: {lacking[0]}{more}"


def _cables(fabric: Fabric) -> Iterator[tuple[Place, str]]:
    for link in fabric.links():
        place = link.device, link.port, link.peer, link.peer_port
        yield place, f"{link.device}:{link.port}–{link.peer}:{link.peer_port}"


NUMBER = re.compile(r"\d+")
NOWHERE = "not tested: the change is only on ports to devices that are not booted"
Kind = tuple[tuple[str, ...], bool, bool]


def untried(wanted: Plan, tried: Plan, names: Collection[str]) -> tuple[str, ...]:
    """The devices on which the fabric's plan has a kind of change that the lab's plan lacks."""
    in_lab = {device.name: _kinds(device) for device in tried.devices}
    return tuple(
        one.name for one in wanted.changed if one.name in names and _kinds(one) - in_lab.get(one.name, frozenset())
    )


def _kinds(device: DevicePlan) -> frozenset[Kind]:
    """The kinds of changes, regardless of port numbers and neighbor addresses."""
    return frozenset(
        (tuple(NUMBER.sub("#", part) for part in change.path), change.is_addition, change.is_removal)
        for change in device.changes
    )
