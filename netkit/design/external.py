"""Ports to networks outside the fabric: from the intent to switches, reasons to refuse them, and valley paths.

Lossless traffic on a valley path (leaf–spine–leaf–spine–leaf) closes a cycle of pauses, and the fabric deadlocks. A
switch admits a valley when it passes a route it learned from above on to another switch above, and that switch accepts
it. A switch accepts whatever does not already carry its own AS number; with allowas-in, anything. What is accepted
counts, not only what is best with one link down: two failures, or one and a drain, make it best.
"""

import difflib
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from ipaddress import IPv4Network

from netkit.design.blueprint import FEC
from netkit.design.cable_entries import numbered
from netkit.design.fabric import EdgeRule, ExternalPort, Fabric, Switch
from netkit.errors import Path, Problem
from netkit.hardware import Split, SwitchModel
from netkit.intent.model import EdgeFilterIntent, External, Intent
from netkit.platforms import PLATFORMS

DEFAULT_ROUTE = IPv4Network("0.0.0.0/0")
LOOPBACK_LENGTH = 32


@dataclass(frozen=True, slots=True)
class EdgePanel:
    """The ports of a switch that a peer outside may take."""

    device: str
    model: SwitchModel
    platform: str
    split: Split
    """The default split of a cage."""
    kept: frozenset[int] = frozenset()
    """Cages for links of the fabric, in use or up to the ceilings."""

    def ports(self, entry: External) -> Iterator[tuple[Split, int, int, str]]:
        """Yield every port of the breakout of an entry: the split, the cage, the port within and its name."""
        naming = PLATFORMS[self.platform].port_name
        split = self.model.split(entry.breakout) if entry.breakout else self.split
        for cage in split.cages if split else ():
            for port in range(split.ports if split and cage <= self.model.cages else 0):
                if split:
                    yield split, cage, port, naming(self.model, split, cage, port)

    def place(self, entry: External) -> tuple[Split, int, int] | None:
        """How the cage of a port is split, the cage, and the port within; None if there is no such port."""
        return next((place[:3] for place in self.ports(entry) if place[3] == entry.port), None)

    def example(self, entry: External, taken: Collection[int]) -> str:
        """A port that is free."""
        return next((name for _, cage, _, name in self.ports(entry) if cage not in taken), "")


def external_ports(intent: Intent, panel: EdgePanel, names: Iterable[str]) -> Iterator[ExternalPort]:
    """Yield the ports of a switch towards the outside; one that does not exist or is taken is reported later."""
    used = set(names)
    for entry in intent.external:
        found = panel.place(entry) if entry.device == panel.device else None
        if found is None or entry.port in used:
            continue
        used.add(entry.port)
        split, cage, lane_port = found
        yield ExternalPort(
            peer_name=entry.name,
            name=entry.port,
            cage=cage,
            lane_port=lane_port,
            split=split,
            fec=FEC[split.speed_gbps],
            mtu_bytes=entry.mtu_bytes,
            address=str(entry.address),
            peer=str(entry.peer),
            peer_asn=entry.asn,
            accepted=tuple(map(str, entry.accept)),
            announced=tuple(map(str, entry.announce)),
            max_prefixes=entry.max_prefixes,
            has_bfd=entry.bfd,
            denied=tuple(_denied(intent, entry)),
        )


def _denied(intent: Intent, entry: External) -> Iterator[EdgeRule]:
    """Yield what a port drops: packets that pretend to come from the fabric, and those to its control plane."""
    if entry.filter is None:
        return
    sources, destinations = _filtered(intent, entry.filter)
    number = entry.filter.first_number
    for index, network in enumerate(sources):
        yield EdgeRule(number + 10 * index, source=str(network))
    for index, network in enumerate(destinations, len(sources)):
        yield EdgeRule(number + 10 * index, destination=str(network))


def _filtered(intent: Intent, given: EdgeFilterIntent) -> tuple[tuple[IPv4Network, ...], tuple[IPv4Network, ...]]:
    """The sources and the destinations that are dropped."""
    management = (intent.management.pool,) if intent.management else ()
    links = (intent.pools.links,) if intent.pools.links else ()
    control = (intent.pools.loopbacks, *links, *management)
    sources = (intent.pools.hosts, *control) if given.deny_from is None else given.deny_from
    return sources, control if given.deny_to is None else given.deny_to


def takers(fabric: Fabric, prefix: str) -> frozenset[str]:
    """The switches that get a route from outside: those of its peers, and all that they pass it on to."""
    found: set[str] = set()
    for origin in fabric.switches:
        if any(prefix in port.accepted for port in origin.external):
            waiting = [origin]
            while waiting:
                switch = waiting.pop()
                found.add(switch.name)
                for port in switch.fabric_ports:
                    is_passed = port.role == "down" or passes_up(fabric, switch)
                    if is_passed and port.peer not in found and port.peer_asn != origin.asn:
                        waiting.append(fabric.switch(port.peer))
    return frozenset(found)


def problems(designed: Fabric, intent: Intent, panels: Mapping[str, EdgePanel]) -> Iterator[Problem]:
    """Yield what is wrong with peers outside the fabric."""
    names: set[str] = set()
    ports: dict[tuple[str, str], str] = {}
    networks: list[tuple[IPv4Network, External]] = []
    for index, entry in enumerate(intent.external):
        path: Path = ("external", index)
        if entry.name.lower() in names:
            yield Problem(f"{entry.name} is the name of another peer", "give each peer its own", (*path, "name"))
        names.add(entry.name.lower())
        if wrong := _device_problem(designed, entry, path):
            yield wrong
            continue
        switch = designed.switch(entry.device)
        yield from _port(panels[entry.device], switch, entry, path)
        if (entry.device, entry.port) in ports:
            message = f"{entry.port} of {entry.device} leads to {ports[entry.device, entry.port]}"
            yield Problem(message, "give each peer its own port", (*path, "port"))
        ports.setdefault((entry.device, entry.port), entry.name)
        yield from _addresses(intent, entry, path)
        for network, other in networks:
            if network.overlaps(entry.address.network):
                message = f"{entry.address.network} overlaps {network} of {other.name}"
                yield Problem(message, "give each link its own network", (*path, "address"))
        networks.append((entry.address.network, entry))
        owner = next((one.name for one in designed.switches if one.asn == entry.asn), "")
        if owner:
            yield Problem(f"{entry.asn} is the AS number of {owner}", "give that of the peer", (*path, "asn"))
        yield from _prefixes(designed, intent, entry, path)
        yield from _filter(intent, entry, path)


def _filter(intent: Intent, entry: External, path: Path) -> Iterator[Problem]:
    """Yield the rules of a filter that would drop the session itself."""
    if entry.filter is None:
        return
    sources, destinations = _filtered(intent, entry.filter)
    for key, networks, address in (("deny_from", sources, entry.peer), ("deny_to", destinations, entry.address.ip)):
        for network in networks:
            if address in network:
                message = f"{network} has {address}: the session to {entry.name} would end"
                yield Problem(message, "deny networks without the addresses of the link", (*path, "filter", key))
    if not sources and not destinations:
        yield Problem("nothing is denied", "name networks, or leave out filter", (*path, "filter"))


def _device_problem(designed: Fabric, entry: External, path: Path) -> Problem | None:
    device = designed.device(entry.device)
    if not isinstance(device, Switch):
        known = [switch.name for switch in designed.switches if switch.role != "leaf"]
        close = difflib.get_close_matches(entry.device, known, 1)
        remedy = f"did you mean {close[0]}?" if close else "name a spine or core switch, or one of networks"
        return Problem(f"there is no switch {entry.device}", remedy, (*path, "device"))
    if device.role == "leaf":
        message = f"{entry.device} is a leaf, which announces its own routes only: routes from outside would not spread"
        return Problem(message, "name a spine or core switch, or one of networks", (*path, "device"))
    if not device.fabric_ports and device.access is None:
        message = f"{entry.device} has no link to another switch, so nothing reaches {entry.name}"
        return Problem(message, "name another switch, or install what is below this one first", (*path, "device"))
    return None


def _port(panel: EdgePanel, switch: Switch, entry: External, path: Path) -> Iterator[Problem]:
    """Yield what is wrong with a port: not there, taken, or needed when the fabric grows to its ceilings."""
    model = panel.model
    if entry.breakout and model.split(entry.breakout) is None:
        offered = ", ".join(split.mode for split in model.splits)
        yield Problem(
            f"{model.name} has no breakout {entry.breakout}", f"use one it has: {offered}", (*path, "breakout")
        )
        return
    found = panel.place(entry)
    if found is None:
        example = panel.example(entry, panel.kept)
        remedy = f"use a free one, such as {example}" if example else "give the breakout that it comes from"
        yield Problem(f"{switch.name} has no port {entry.port}", remedy, (*path, "port"))
        return
    split, at, _ = found
    blocked = {cage.number + 1 for cage in switch.cages if cage.split.blocks_next_cage}
    others = {one.cage for one in switch.external if one.name != entry.port and one.split != split}
    if at in panel.kept | blocked | others or (split.blocks_next_cage and at + 1 in panel.kept):
        example = panel.example(entry, panel.kept | blocked | others)
        message = f"cage {at} of {switch.name} is for links within the fabric, in use or up to the ceilings"
        yield Problem(
            message, f"use a free one, such as {example}" if example else "lower the ceilings", (*path, "port")
        )
    total = sum(cage.split.ports for cage in switch.cages)
    if model.max_ports is not None and total > model.max_ports:
        message = f"{model.name} takes {model.max_ports} ports in all, {switch.name} would have {total}"
        yield Problem(message, "use a coarser breakout, or fewer ports", (*path, "port"))


def _addresses(intent: Intent, entry: External, path: Path) -> Iterator[Problem]:
    network, own = entry.address.network, entry.address.ip
    hosts = set(network.hosts()) if network.prefixlen >= LOOPBACK_LENGTH - 8 else None
    if entry.peer not in network or (hosts is not None and entry.peer not in hosts):
        remedy = f"name the other end of {network}; is the prefix length in address right?"
        yield Problem(f"{entry.peer} is not an address of a peer in {network}", remedy, (*path, "peer"))
    elif entry.peer == own:
        yield Problem(f"{own} would be the address of both ends", "give the peer's", (*path, "peer"))
    if hosts is not None and own not in hosts:
        yield Problem(f"{own} is not an address of a port in {network}", "use one within", (*path, "address"))
    for name, pool in _networks(intent).items():
        if network.overlaps(pool):
            message = f"{network} overlaps {name} {pool}"
            yield Problem(message, "addresses of links to the outside must be outside all pools", (*path, "address"))


def _networks(intent: Intent) -> Mapping[str, IPv4Network]:
    """The fabric's own networks."""
    return {**numbered(intent), **({"pools.links": intent.pools.links} if intent.pools.links else {})}


def _prefixes(designed: Fabric, intent: Intent, entry: External, path: Path) -> Iterator[Problem]:
    networks = _networks(intent)
    for prefix in entry.accept:
        overlapped = next((name for name, own in networks.items() if prefix.overlaps(own)), "")
        if overlapped and prefix != DEFAULT_ROUTE:
            message = f"{prefix} overlaps {overlapped}: traffic to it would leave the fabric"
            yield Problem(message, "accept the default route, or prefixes that are not the fabric's", (*path, "accept"))
    if entry.max_prefixes < len(entry.accept):
        message = (
            f"{len(entry.accept)} prefixes are accepted: a peer that announces all of them would exceed the limit and "
            "lose the session"
        )
        yield Problem(message, f"allow {len(entry.accept)} or more", (*path, "max_prefixes"))
    longest = {"pools.loopbacks": LOOPBACK_LENGTH - 1, "pools.hosts": designed.leaf_prefix_length - 1}
    access = designed.switch(entry.device).access
    for prefix in entry.announce:
        if access:
            own = [vlan.prefix for vlan in access.vlans if vlan.prefix]
            if not any(IPv4Network(one).subnet_of(prefix) for one in own):
                message = f"{prefix} holds none of the prefixes of {access.network}"
                yield Problem(message, f"use {' or '.join(own) or 'a VLAN with a prefix'}", (*path, "announce"))
            continue
        pool = next((name for name in longest if prefix.subnet_of(networks[name])), "")
        if not pool:
            message = f"{prefix} is not a summary of the fabric's addresses"
            remedy = f"use {intent.pools.hosts}, {intent.pools.loopbacks}, or a part of them"
            yield Problem(message, remedy, (*path, "announce"))
        elif prefix.prefixlen > longest[pool]:
            message = f"{prefix} summarises nothing: {pool} has no longer routes"
            yield Problem(message, f"use a length of {longest[pool]} or less", (*path, "announce"))


@dataclass(frozen=True, slots=True)
class Valley:
    """A path that goes down and up again at one switch, and the link whose loss makes it the shortest."""

    path: tuple[str, ...]
    turn: str
    failed_link: tuple[str, str]

    def __str__(self) -> str:
        return f"{' → '.join(self.path)} once {self.failed_link[0]}–{self.failed_link[1]} is down"


def valleys(fabric: Fabric) -> Iterator[Valley]:
    """Yield one example for each switch that admits a valley path."""
    below = {
        switch.name: frozenset(port.peer for port in switch.ports if port.role == "down")
        for switch in fabric.switches
        if switch.role != "leaf"
    }
    for switch in fabric.switches:
        valley = _valley(fabric, switch, below) if passes_up(fabric, switch) else None
        if valley:
            yield valley


def passes_up(fabric: Fabric, switch: Switch) -> bool:
    """Whether the switch announces upwards what it learned from above."""
    if switch.role == "leaf":
        return fabric.routing.leaf_exports_all
    return switch.role == "spine"


def _above(switch: Switch) -> Mapping[str, int]:
    return {port.peer: port.peer_asn for port in switch.ports if port.role == "up"}


def _valley(fabric: Fabric, turn: Switch, below: Mapping[str, frozenset[str]]) -> Valley | None:
    """A valley at a switch: it learns a route from one switch above, and another above accepts it."""
    above = _above(turn)
    is_lax = fabric.routing.allowas_in
    for first, first_asn in above.items():
        second = next((name for name, asn in above.items() if name != first and (is_lax or asn != first_asn)), None)
        onward = _onward(fabric, turn, fabric.switch(first), below) if second else ()
        if second and onward:
            source = next((name for name in sorted(below[second]) if name not in {onward[0], turn.name}), None)
            failed = onward[0] if onward[0] in below[second] else next(iter(_above(fabric.switch(second))), turn.name)
            return Valley(
                (*((source,) if source else ()), second, turn.name, first, *onward), turn.name, (second, failed)
            )
    return None


def _onward(fabric: Fabric, turn: Switch, first: Switch, below: Mapping[str, frozenset[str]]) -> tuple[str, ...]:
    """The rest of a path from the switch above, as far as the switch below accepts the route."""
    for name in sorted(below[first.name] - {turn.name}):
        if fabric.routing.allowas_in or fabric.switch(name).asn != turn.asn:
            return (name,)
    for core in _above(first) if turn.role == "leaf" else ():
        for spine in sorted(below[core] - {first.name}):
            if fabric.switch(spine).pod != turn.pod:
                return core, spine, min(below[spine])
    return ()
