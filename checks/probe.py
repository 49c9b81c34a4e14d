"""Probe: packets of every size between NICs, along and across rails, arrive and come back."""

from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import median

from netkit.design import Host, Nic
from netkit.design.fabric import CableEnd
from netkit.design.layout import NIC_DISTANCES, NicDistance, nic_distance
from netkit.facts import Absent
from netkit.facts.device import Probe
from netkit.judge import CABLE_FAULTS, PASSED, CheckContext, Finding, fabric_check, fail, skip, warn
from netkit.judge.lookup import astray, is_astray

FEWEST = 4
"""The fewest paths of one distance that show what is usual."""
OF_SIZE = "see the MTU of every port on the path: netkit check links"
OF_ALL = "see netkit check links routes.lookups bgp"
OF_SOME = "see netkit check optics load.errors for the cables on the path"


@dataclass(frozen=True, slots=True)
class Way:
    """What one NIC sent to another."""

    near: CableEnd
    far: CableEnd
    distance: NicDistance
    leaves: tuple[str, str]
    probes: tuple[Probe, ...]
    """By size, the smallest first."""
    lost_percent: tuple[float, ...]
    """The loss of each size; what could not even be sent is lost."""
    allowed_percent: float
    astray: CableEnd | None = None
    """The NIC of the two whose packets to the other leave its host on a wrong way."""

    @property
    def is_bad(self) -> bool:
        """Whether it loses more than it may."""
        return max(self.lost_percent) > self.allowed_percent

    @property
    def is_ipv6(self) -> bool:
        return ":" in self.probes[0].destination

    @property
    def reason(self) -> Probe | None:
        """A probe with a reported reason for its loss, preferably from a router."""
        refused = [one for one in self.probes if one.reason and one.received < max(one.sent, 1)]
        return max(refused, key=lambda one: bool(one.router), default=None)

    @property
    def remedy(self) -> str:
        """What to do about the loss."""
        if min(self.lost_percent) <= self.allowed_percent < max(self.lost_percent) == 100:
            return OF_SIZE
        return OF_ALL if min(self.lost_percent) == 100 else OF_SOME

    @property
    def text(self) -> str:
        """The loss by size."""
        if len(set(self.lost_percent)) == 1:
            return f"{self.lost_percent[0]:.0f} % of every size"
        pairs = zip(self.lost_percent, self.probes, strict=True)
        return f"{', '.join(f'{lost:.0f} % of {one.size_bytes}' for lost, one in pairs)} bytes"


@fabric_check(
    layer="application",
    needs=["probes"],
    follows=[
        *(*CABLE_FAULTS, "links.mtu", "links.rails", "bgp", "watchdog"),
        *("routes.paths", "routes.static", "routes.addresses", "routes.default", "routes.duplicates"),
    ],
    reads=["lookups"],
)
def loss(context: CheckContext) -> Iterator[Finding]:
    """Packets of every size, up to the full MTU, arrive from every NIC, along its rail and across to others.

    Small packets pass where large ones are lost: a port on the path has a smaller MTU, or corrupts bits. If all paths
    of a NIC lose packets, suspect its own cable, else a path between two leaves. Packets that a host routes elsewhere
    do not count: see `netkit check routes.lookups`.
    """
    yield from _unread(context)
    bad, fine = list[Way](), set[CableEnd]()
    for way in _ways(context):
        if way.is_bad:
            bad.append(way)
        else:
            fine.update((way.near, way.far))
            yield from (PASSED for _ in way.probes)
    for nic in dict.fromkeys(way.astray for way in bad if way.astray):
        yield _of_nic(context, nic, [way for way in bad if way.astray == nic], cause=astray(nic))
    ways = [way for way in bad if way.astray is None]
    blamed = _blamed(ways, fine)
    for nic, explained in blamed.items():
        yield _of_nic(context, nic, explained)
    reported = {way for explained in blamed.values() for way in explained}
    yield from (_of_way(context, way) for way in ways if way not in reported)


@fabric_check(
    layer="application",
    needs=["probes"],
    follows=[
        *CABLE_FAULTS,
        "routes",
        "bgp",
        "pfc",
        "ecn-cnp.unmarked",
        "watchdog",
        "load.balance",
        "probe.loss",
    ],
    reads=[],
)
def latency(context: CheckContext) -> Iterator[Finding]:
    """No path between NICs takes much longer than others of the same distance.

    The quickest of several answers counts, which a busy host hardly delays. A slower path takes a detour through
    another rail, more switches, or out of the fabric; or a queue on it never empties. See
    `netkit check routes pfc`.
    """
    yield from _unread(context)
    timed = [(way, least) for way in _ways(context) if not way.is_bad and (least := way.probes[0].least_us) is not None]
    for distance in NIC_DISTANCES:
        alike = [(way, least) for way, least in timed if way.distance == distance]
        if len(alike) < FEWEST:
            if alike:
                yield skip("", f"{len(alike)} paths {distance}: too few to derive a usual value")
            continue
        usual = median(least for _, least in alike)
        for way, least in alike:
            if least - usual > context.limits.probe_outlier_us:
                text = f"to {way.far} ({distance}): the quickest answer took {least:.0f} µs, usual are {usual:.0f} µs"
                remedy, touched = "see netkit check routes load pfc", _touched(context, way)
                yield warn(way.near.port, text, remedy, device=way.near.device, touches=touched)
            else:
                yield PASSED


def _unread(context: CheckContext) -> Iterator[Finding]:
    for device in context.hosts:
        found = device.facts.probes
        if not device.is_reached:
            yield skip("", f"not reached: {device.observation.failure}", device=device.name)
        elif isinstance(found, Absent):
            yield skip("", f"no probes: {found.reason}", device=device.name)


def _ways(context: CheckContext) -> Iterator[Way]:
    """Yield what was probed of this fabric."""
    ends = {
        one: (CableEnd(host.name, nic.interface), nic)
        for host in context.fabric.hosts
        for nic in host.nics
        for one in nic.addresses
    }
    for device in context.hosts:
        found = device.facts.probes
        if isinstance(found, Absent):
            continue
        pairs: dict[tuple[str, str], list[Probe]] = {}
        for one in found:
            pairs.setdefault((one.source, one.destination), []).append(one)
        for (source, destination), probes in pairs.items():
            near, far = ends.get(source), ends.get(destination)
            if near is not None and far is not None:
                yield _way(context, near, far, probes)


def _way(context: CheckContext, near: tuple[CableEnd, Nic], far: tuple[CableEnd, Nic], probes: list[Probe]) -> Way:
    (one, nic), (other, other_nic) = near, far
    leaves = (nic.leaf, other_nic.leaf) if nic.leaf <= other_nic.leaf else (other_nic.leaf, nic.leaf)
    probes.sort(key=lambda probe: probe.size_bytes)
    lost = tuple(100 * (probe.sent - probe.received) / probe.sent if probe.sent else 100.0 for probe in probes)
    apart = nic_distance(context.fabric, nic, other_nic)
    found = Way(one, other, apart, leaves, tuple(probes), lost, context.limits.probe_loss_percent)
    return replace(found, astray=_astray(context, found, nic, other_nic)) if found.is_bad else found


def _astray(context: CheckContext, way: Way, near: Nic, far: Nic) -> CableEnd | None:
    """The end whose packets, or whose answers, leave its host on a wrong way."""
    for end, other in ((way.near, far), (way.far, near)):
        device = context.devices.get(end.device)
        if device is not None and is_astray(context, device, end.port, other, is_ipv6=way.is_ipv6):
            return end
    return None


def _blamed(bad: Iterable[Way], fine: Container[CableEnd]) -> Mapping[CableEnd, tuple[Way, ...]]:
    """NICs with only bad paths, and the paths they explain; those that explain most come first."""
    touching: dict[CableEnd, list[Way]] = {}
    for way in bad:
        for end in (way.near, way.far):
            touching.setdefault(end, []).append(way)
    suspects = {end: found for end, found in touching.items() if end not in fine and len(found) > 1}

    def has_local_reason(end: CableEnd) -> bool:
        """Whether the host's own kernel reported why packets did not leave by a NIC."""
        reasons = (way.reason for way in suspects[end] if way.near == end)
        return any(one is not None and not one.router for one in reasons)

    blamed: dict[CableEnd, tuple[Way, ...]] = {}
    explained: set[Way] = set()
    for end in sorted(suspects, key=lambda end: (-len(suspects[end]), not has_local_reason(end), str(end))):
        fresh = tuple(way for way in suspects[end] if way not in explained)
        if fresh:
            blamed[end] = fresh
            explained.update(fresh)
    return blamed


def _of_nic(context: CheckContext, nic: CableEnd, bad: Sequence[Way], cause: str = "") -> Finding:
    worst = max(bad, key=lambda way: (sum(way.lost_percent), way.reason is not None))
    scopes = [one for one in NIC_DISTANCES if any(way.distance == one for way in bad)]
    paths = "paths that its routes lead elsewhere" if cause else "paths from and to this NIC"
    text = f"all {len(bad)} {paths} lose packets, {worst.text}{_reason_text(context, worst)}"
    host = context.fabric.device(nic.device)
    leaf = next((one.leaf for one in host.nics if one.interface == nic.port), "") if isinstance(host, Host) else ""
    ways = ", ".join(scopes)
    beyond = [leaf] if leaf and "same leaf" not in scopes else []  # what is wrong at an uplink spares the leaf's own
    return fail(nic.port, text, worst.remedy, device=nic.device, cause=cause, touches=beyond, ways=ways)


def _of_way(context: CheckContext, way: Way) -> Finding:
    over = " over IPv6" if way.is_ipv6 else ""
    text = f"to {way.far} ({way.distance}){over} loses {way.text}{_reason_text(context, way)}"
    cause = f"leaf {way.leaves[0]}" if way.distance == "same leaf" else f"way {way.leaves[0]} — {way.leaves[1]}"
    return fail(way.near.port, text, way.remedy, device=way.near.device, cause=cause, touches=_touched(context, way))


def _touched(context: CheckContext, way: Way) -> Iterator[str]:
    """Yield what a path may use: the cables of both NICs, then all cables of their leaves."""
    yield from (context.cable(end.device, end.port) for end in (way.near, way.far))
    for leaf in dict.fromkeys(way.leaves):
        yield from (context.cable(leaf, port.name) for port in context.fabric.switch(leaf).fabric_ports)
    yield from dict.fromkeys(way.leaves)


def _reason_text(context: CheckContext, way: Way) -> str:
    """The reported reason for the loss, and the device that reported it."""
    probe = way.reason
    if probe is None:
        return ""
    return f"; {_router(context, probe.router) if probe.router else 'the kernel'} reports: {probe.reason}"


def _router(context: CheckContext, address: str) -> str:
    for switch in context.fabric.switches:
        ports = [one for port in switch.ports for one in (port.address, port.address_v6)]
        own = (switch.loopback, switch.loopback_v6, *ports)
        if any(one.partition("/")[0] == address for one in own):
            return switch.name
    return address
