"""The rows of the table of cables: found by the devices they join, and checked against the design."""

import difflib
import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from ipaddress import IPv4Interface, IPv4Network
from itertools import pairwise

from netkit.design.fabric import Fabric, Host, Port, Switch
from netkit.design.hardware_lookup import HardwareLookup, Variant, cable_of, unit_at
from netkit.design.layout import Position, front_panel
from netkit.errors import Path, Problem
from netkit.intent.model import CableEntry, Intent

LONGEST_LINK = 29
RAIL = re.compile(r"rail\d+")
LOWER_SPLIT = {
    "host": ("leaf", "host_breakout"),
    "spine": ("leaf", "uplink_breakout"),
    "core": ("spine", "uplink_breakout"),
}
"""Kind of link → the breakout of its lower switch."""


@dataclass(frozen=True, slots=True)
class GivenCable:
    """What a row has of a cable; None and "" stand for what the design chooses."""

    port: str = ""
    """At the host, or at the switch of the lower tier."""
    peer_port: str = ""
    length_m: float | None = None
    media: str | None = None
    label: str = ""
    address: str = ""
    """Of the lower end, with prefix length."""
    peer_address: str = ""


NOTHING_GIVEN = GivenCable()


class CableEntries:
    """The rows of the table of cables, by the ends of each cable."""

    def __init__(self, intent: Intent) -> None:
        self._links: dict[tuple[str, str, int], GivenCable] = {}
        self._nics: dict[tuple[str, str], GivenCable] = {}
        for entry in intent.tables.cables:
            here = (entry.device, entry.port or "", "")
            there = (entry.peer, entry.peer_port or "", "")
            if entry.address and entry.peer_address:
                own = link_address(entry.address)
                here = (*here[:2], str(own))
                there = (*there[:2], f"{entry.peer_address}/{own.network.prefixlen}")
            for (lower, near, address), (upper, far, peer_address) in ((here, there), (there, here)):
                label = entry.label or ""
                given = GivenCable(near, far, entry.length_m, entry.media, label, address, peer_address)
                self._links.setdefault((lower, upper, entry.link or 1), given)
                if RAIL.fullmatch(near):
                    self._nics.setdefault((lower, near), given)

    def link(self, lower: str, upper: str, number: int) -> GivenCable:
        """What is given of a link between switches, counted from 1 among those that join the same two."""
        return self._links.get((lower, upper, number), NOTHING_GIVEN) if self._links else NOTHING_GIVEN

    def nic(self, host: str, interface: str) -> GivenCable:
        return self._nics.get((host, interface), NOTHING_GIVEN) if self._nics else NOTHING_GIVEN


def link_address(address: IPv4Interface) -> IPv4Interface:
    """The address of a link with its length; without one it is a /31."""
    return IPv4Interface((address.ip, 31)) if address.network.prefixlen == 32 else address


@dataclass(frozen=True, slots=True)
class _Ends:
    """A row from its lower to its upper end."""

    kind: str
    lower: Switch | Host
    upper: Switch
    port: str
    peer_port: str
    port_path: Path
    peer_port_path: Path


def problems(fabric: Fabric, hardware: HardwareLookup, renamed: Mapping[str, str]) -> Iterator[Problem]:
    """Yield every row that does not fit the design, and every port that cannot have its cable."""
    if not hardware.intent.tables.cables:
        return
    parallel = Counter((link.device, link.peer) for link in fabric.links())
    panels: Panels = {}
    seen: dict[tuple[str, str, int | str], Path] = {}
    written: dict[tuple[str, str], Path] = {}
    for index, entry in enumerate(hardware.intent.tables.cables):
        path: Path = ("tables", "cables", index)
        found = [*_unknown(fabric, renamed, entry, path)]
        ends = None if found else _ends(fabric, entry, parallel, path)
        if ends is None:
            message = f"the design has no cable between {entry.device} and {entry.peer}"
            yield from found or [Problem(message, "`netkit design --cabling` lists the cables", path)]
            continue
        key = (ends.lower.name, ends.upper.name, ends.port if ends.kind == "host" else entry.link or 1)
        found = [*_of_link(ends, entry, parallel[(ends.lower.name, ends.upper.name)], path)]
        if key in seen:
            remedy = "keep one, or number parallel links in the column link"
            found.append(
                Problem(f"this link of {ends.lower.name} and {ends.upper.name} has a row already", remedy, path)
            )
        seen.setdefault(key, path)
        found += _of_ports(hardware, panels, ends)
        found += _of_addresses(hardware.intent, ends.kind, entry, path)
        of_host = _hardware_of(hardware, ends.upper) if ends.kind == "host" else hardware
        found += _of_media(of_host, ends.kind, entry, path)
        yield from found
        written[(ends.lower.name, ends.port)] = ends.port_path
        written[(ends.upper.name, ends.peer_port)] = ends.peer_port_path
    yield from _collisions(fabric, written)
    yield from _overlaps(fabric, {key[:2]: path for key, path in seen.items()})
    yield from _modules(fabric, seen)


def _unknown(fabric: Fabric, renamed: Mapping[str, str], entry: CableEntry, path: Path) -> Iterator[Problem]:
    for key in ("device", "peer"):
        name = getattr(entry, key)
        if fabric.device(name) is None:
            close = [renamed[name]] if name in renamed else difflib.get_close_matches(name, fabric.names, 1)
            remedy = f"did you mean {close[0]}?" if close else "`netkit design --addresses` lists the names"
            yield Problem(f"no device is called {name}", remedy, (*path, key))


def _ends(fabric: Fabric, entry: CableEntry, parallel: Counter[tuple[str, str]], path: Path) -> _Ends | None:
    """The ends of a row; None if the design does not cable these devices to each other."""
    port, peer_port = (entry.port or "", (*path, "port")), (entry.peer_port or "", (*path, "peer_port"))
    names = (entry.device, entry.peer)
    if names not in parallel:
        names, port, peer_port = names[::-1], peer_port, port
    lower, upper = fabric.device(names[0]), fabric.device(names[1])
    if names not in parallel or lower is None or not isinstance(upper, Switch):
        return None
    kind = "host" if isinstance(lower, Host) else {"leaf": "spine"}.get(lower.role, "core")
    return _Ends(kind, lower, upper, port[0], peer_port[0], port[1], peer_port[1])


def _of_link(ends: _Ends, entry: CableEntry, count: int, path: Path) -> Iterator[Problem]:
    """Yield a rail that is missing or goes to another leaf, and a number beyond those of the parallel links."""
    if isinstance(ends.lower, Host):
        nics = {nic.interface: nic for nic in ends.lower.nics}
        nic = nics.get(ends.port)
        if nic is None:
            what = f"no NIC {ends.port}" if ends.port else "several NICs"
            remedy = f"name the NIC by its rail: {', '.join(nics)}"
            yield Problem(f"{ends.lower.name} has {what}", remedy, ends.port_path)
        elif nic.leaf != ends.upper.name:
            message = f"{ends.port} of {ends.lower.name} belongs to {nic.leaf}, as those of its peers"
            yield Problem(message, f"wire it to {nic.leaf}", ends.port_path)
    elif (entry.link or 1) > count:
        key = "uplinks_per_spine" if ends.kind == "spine" else "uplinks_per_core"
        message = f"{ends.lower.name} and {ends.upper.name} have no link {entry.link}"
        yield Problem(message, f"use {count} or less, or raise {key}", (*path, "link"))


Panels = dict[tuple[Variant, str], tuple[dict[str, Position], str]]
"""Hardware and side → the ports there by name, and how their cages are split."""


def _hardware_of(hardware: HardwareLookup, switch: Switch) -> HardwareLookup:
    unit = unit_at(hardware.intent, switch.pod, switch.unit)
    return hardware.variant(switch.role, switch.model.name, switch.platform, unit)


def _of_ports(hardware: HardwareLookup, panels: Panels, ends: _Ends) -> Iterator[Problem]:
    """Yield the ports that the model of a switch does not have at the speed of the link."""
    for device, side, port, path in (
        (ends.lower, "up", ends.port, ends.port_path),
        (ends.upper, "down", ends.peer_port, ends.peer_port_path),
    ):
        if not isinstance(device, Switch) or not port:
            continue
        own = _hardware_of(hardware, device)
        key = own.key(device.role), side
        if key not in panels:
            split = own.up_split(device.role) if side == "up" else own.down_split(device.role)
            panels[key] = front_panel(own, device.role, side), split.mode if split else ""
        names, mode = panels[key]
        if port not in names:
            message = f"{device.model.name} split as {mode} has no port {port}"
            yield Problem(message, f"use one of {next(iter(names))} to {next(reversed(names))}", path)


def _of_addresses(intent: Intent, kind: str, entry: CableEntry, path: Path) -> Iterator[Problem]:
    """Yield addresses that the ends of a link cannot have."""
    at = (*path, "address" if entry.address else "peer_address")
    if entry.address is None and entry.peer_address is None:
        return
    if kind == "host":
        yield Problem("the address of a NIC is in the table of NICs", "clear it here", at)
    elif intent.pools.loopbacks_v6:
        message = "a session between IPv4 addresses has no next hop for routes of IPv6"
        yield Problem(message, "clear it, or remove the IPv6 pools of the fabric", at)
    elif entry.address is None or entry.peer_address is None:
        yield Problem("a link has two addresses", "give address and peer_address", at)
    else:
        own = link_address(entry.address)
        usable = set(own.network.hosts()) if own.network.prefixlen >= LONGEST_LINK else set()
        if not {own.ip, entry.peer_address} <= usable or own.ip == entry.peer_address:
            message = f"{own} and {entry.peer_address} are not the two ends of a link"
            yield Problem(message, f"give two addresses of one network, a /{LONGEST_LINK} to /31", at)
        for name, pool in numbered(intent).items():
            if own.network.overlaps(pool):
                yield Problem(
                    f"{own.network} overlaps {name} {pool}", "addresses of links must be outside all pools", at
                )


def numbered(intent: Intent) -> Mapping[str, IPv4Network]:
    """The networks of the fabric other than its links."""
    management = {"management.pool": intent.management.pool} if intent.management else {}
    return {"pools.loopbacks": intent.pools.loopbacks, "pools.hosts": intent.pools.hosts, **management}


def _overlaps(fabric: Fabric, rows: Mapping[tuple[str, str], Path]) -> Iterator[Problem]:
    """Yield links between switches whose networks overlap; the design gives each its own."""
    links = sorted(
        (IPv4Interface(port.address).network, switch.name, port)
        for switch in fabric.switches
        for port in switch.ports
        if port.role == "up" and port.peer_address
    )
    for (one, name, port), (other, other_name, other_port) in pairwise(links):
        if one.overlaps(other):
            found = [
                rows.get(ends) or rows.get(ends[::-1]) for ends in ((name, port.peer), (other_name, other_port.peer))
            ]
            message = (
                f"the link of {other_name} and {other_port.peer} has {other}, that of {name} and {port.peer} {one}"
            )
            path = next(filter(None, reversed(found)), ("tables", "cables"))
            yield Problem(message, "give each link its own network", (*path, "address"))


def _of_media(hardware: HardwareLookup, kind: str, entry: CableEntry, path: Path) -> Iterator[Problem]:
    if entry.media is None and entry.length_m is None:
        return
    split = hardware.splits[LOWER_SPLIT[kind]]
    media = hardware.media.get(entry.media or cable_of(hardware.intent, kind).media)
    if media is None:
        close = difflib.get_close_matches(str(entry.media), hardware.media, 1, 0.6)
        remedy = f"did you mean {close[0]}?" if close else f"use one of {', '.join(sorted(hardware.media))}"
        yield Problem(f"no media {entry.media!r}", remedy, (*path, "media"))
        return
    if media.speed_gbps != split.speed_gbps or media.ports_per_module < split.ports:
        made_for = f"{media.ports_per_module}x{media.speed_gbps}G"
        message = f"{media.name} is for cages of {made_for}, this one is split as {split.mode}"
        fitting = sorted(
            name
            for name, each in hardware.media.items()
            if each.speed_gbps == split.speed_gbps and each.ports_per_module == split.ports
        )
        yield Problem(message, f"choose media for it: {', '.join(fitting) or 'none known'}", (*path, "media"))
    if entry.length_m is not None and media.reach_m is not None and entry.length_m > media.reach_m:
        message = f"{media.name} reaches {media.reach_m:g} m, the cable is {entry.length_m:g} m"
        yield Problem(message, "shorten it or choose other media", (*path, "length_m"))


def _collisions(fabric: Fabric, written: dict[tuple[str, str], Path]) -> Iterator[Problem]:
    """Yield ports with two cables, and cages that would be split in two ways."""
    for switch in fabric.switches:
        users: dict[str, list[Port]] = defaultdict(list)
        for port in switch.ports:
            users[port.name].append(port)
        for name, ports in users.items():
            if len(ports) > 1:
                message = f"{switch.name} {name} would have two cables: from {ports[0].peer} and from {ports[1].peer}"
                remedy = "set a port for the other one too, or use another port here"
                yield Problem(message, remedy, written.get((switch.name, name), ("tables", "cables")))
        yield from _splits(switch, written)
        total = sum(len(cage.ports) for cage in switch.cages)
        if switch.model.max_ports is not None and total > switch.model.max_ports:
            message = f"{switch.name} would have {total} ports, {switch.model.name} takes {switch.model.max_ports}"
            yield Problem(message, "use fewer cages", _first(switch, written))


def _splits(switch: Switch, written: dict[tuple[str, str], Path]) -> Iterator[Problem]:
    modes: dict[int, dict[str, Port]] = defaultdict(dict)
    for port in switch.ports:
        modes[port.cage].setdefault(port.profile.split.mode, port)
    for number, found in modes.items():
        if len(found) > 1:
            given = next((port for port in found.values() if (switch.name, port.name) in written), None)
            path = written[(switch.name, given.name)] if given else ("tables", "cables")
            message = f"cage {number} of {switch.name} would be split as {' and as '.join(sorted(found))}"
            yield Problem(message, "use a port of another cage", path)
    for cage in switch.cages:
        if cage.split.blocks_next_cage and cage.number + 1 in modes:
            message = (
                f"cage {cage.number} of {switch.name} split as {cage.split.mode} blocks the next one, which is used"
            )
            yield Problem(message, "use a port of another cage", _first(switch, written))


def _first(switch: Switch, written: dict[tuple[str, str], Path]) -> Path:
    found = (written[(switch.name, port.name)] for port in switch.ports if (switch.name, port.name) in written)
    return next(found, ("tables", "cables"))


def _modules(fabric: Fabric, rows: Mapping[tuple[str, str, int | str], Path]) -> Iterator[Problem]:
    """Yield cages whose ports have different media: one module serves all of them."""
    media: dict[tuple[str, str], tuple[str, Path]] = {}
    for switch in fabric.switches:
        links: Counter[str] = Counter()
        used: dict[int, tuple[str, Path]] = {}
        for port in switch.ports:
            links[port.peer] += 1
            number = port.peer_port if port.role == "host" else links[port.peer]
            path = rows.get((switch.name, port.peer, number)) or rows.get((port.peer, switch.name, number)) or ()
            one = (port.profile.cable.media, path)
            yield from _two_media(f"cage {port.cage} of {switch.name}", one, used.setdefault(port.cage, one))
            if port.role == "host":
                media[(port.peer, port.peer_port)] = one
    for host in fabric.hosts:
        cages = {nic.pci: nic.cage for nic in host.model.rails if nic.cage}
        of_host: dict[str, tuple[str, Path]] = {}
        for nic in host.nics:
            one, cage = media[(host.name, nic.interface)], cages.get(nic.pci)
            if cage:
                yield from _two_media(f"cage {cage} of {host.name}", one, of_host.setdefault(cage, one))


def _two_media(cage: str, one: tuple[str, Path], other: tuple[str, Path]) -> Iterator[Problem]:
    if one[0] != other[0]:
        message = f"{one[0]} and {other[0]} would share {cage}, which takes one module"
        yield Problem(message, "give both cables the same media", one[1] or other[1] or ("tables", "cables"))
