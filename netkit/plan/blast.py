"""What changes touch: sessions, links, rails, hosts and GPUs."""

import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace

from netkit.design.fabric import Access, Fabric, Host, Port, Switch
from netkit.plan.model import Blast
from netkit.platforms import PLATFORMS
from netkit.platforms.change import Change, Risk, RiskTable
from netkit.platforms.compare import ConfigComparison, ConfigModel
from netkit.platforms.config import Config, Path

WORD = re.compile(r"[ |,]")
BESIDE = "15-netkit-"
"""The files of a host for networks beside the rails."""
ADDRESS = re.compile(r"\d+(?:\.\d+){3}")
SVI = re.compile(r"[vV]lan\d+")
OF_BOTH = re.compile(r"vrr|virtual")
"""In the lines of a gateway that both switches of a pair answer for."""
MEMBERSHIP = frozenset({"vlan", "access", "untagged", "tagged", "trunk"})
"""Words of the settings that put a port into a VLAN."""
PORT = re.compile(r"(?:swp|Ethernet)\d+\S*")


@dataclass(frozen=True, slots=True)
class Departed:
    """A port in use that the fabric no longer has, and the peer named in its description."""

    name: str
    peer: str
    is_uplink: bool


@dataclass(frozen=True, slots=True)
class TouchedPorts:
    """The ports that a set of changes takes down, or on which it loses frames."""

    down: frozenset[str]
    lossy: frozenset[str]

    @property
    def all(self) -> frozenset[str]:
        return self.down | self.lossy


def of_switch(fabric: Fabric, switch: Switch, found: ConfigComparison, model: ConfigModel, whole: Risk) -> Blast:
    """What the changes of a switch touch; `whole` is the risk of the strategy for the whole switch.

    Only ports that carry traffic on the running switch count.
    """
    changes, running, risks = found.changes, found.running, model.risks
    used = {name for path in risks.used(running) for name in words(path)}
    if switch.access:
        return _of_access(switch, switch.access, changes, used, risks, whole)
    by_address = _by_address(switch, found, model)
    reach = _reach(switch, [_on_port(change, by_address) for change in changes], used, risks, whole)
    ports = [port for port in switch.ports if port.name in used]
    hit = [port for port in ports if port.name in reach.all]
    names = reach.all & used - {port.name for port in switch.ports}
    gone = [_departed(name, running, is_session=name in by_address.values()) for name in sorted(names)]
    nics = [*_cut_off(fabric, switch, ports, reach), *_left(switch, gone)]
    return Blast(
        sessions=(
            *(_link(switch, port) for port in hit if port.name in reach.down and port.role != "host"),
            *(f"{switch.name}:{port.name}–{port.peer}" for port in gone if port.is_uplink),
        ),
        links=(
            *(_link(switch, port) for port in hit if port.name in reach.lossy),
            *(f"{switch.name}:{port.name}–{port.peer}" for port in gone),
        ),
        rails=tuple(sorted(_rails(fabric, switch, hit, gone))),
        hosts=tuple(dict.fromkeys(host for host, _ in nics)),
        gpus=tuple(f"{host}:{interface}" for host, interface in nics),
        is_disruptive=bool(nics),
        ports=tuple(port.name for port in hit if port.name in reach.down and port.role != "host"),
    )


def _by_address(switch: Switch, found: ConfigComparison, model: ConfigModel) -> Mapping[str, str]:
    """The port of each neighbour by address within the fabric, if a change names one."""
    is_named = any(ADDRESS.fullmatch(word) for change in found.changes for word in words(change.path))
    if model.router is None or not (is_named and found.changes):
        return {}
    outside = {port.name for port in switch.external}
    designed = {port.peer_address: port.name for port in switch.fabric_ports if port.peer_address}
    sessions = model.router(found.whole).sessions
    return designed | {one.address: one.interface for one in sessions if one.address and one.interface not in outside}


def _on_port(change: Change, by_address: Mapping[str, str]) -> Change:
    """A change with the ports of the neighbours that its path names by address."""
    ports = tuple(by_address[word] for word in words(change.path) if word in by_address)
    return replace(change, path=(*change.path, *ports)) if ports else change


def _of_access(
    switch: Switch, access: Access, changes: Iterable[Change], used: Collection[str], risks: RiskTable, whole: Risk
) -> Blast:
    """What the changes of a switch beside the rails touch; hosts of a pair keep their other link."""
    names = {port.name: port for port in access.ports}
    name = PLATFORMS[switch.platform].lag_port
    of_lag = {name.format(number=lag.number): [port.name for port in lag.ports] for lag in access.lags}
    hit = set[str](names) if whole >= Risk.BUFFER else set[str]()
    for change in changes:
        if change.risk >= Risk.SESSION:
            named = set(words(change.path))
            found = named & names.keys() | {port for name in named & of_lag.keys() for port in of_lag[name]}
            hit |= found or (names.keys() if not risks.is_local(change.risk) else set())
    ports = [names[name] for name in names if name in hit and name in used]
    moved = {port for port in _moved(access, tuple(changes), of_lag) if port in used}
    cut = [port for port in access.ports if port.name in moved or (port in ports and not access.pair)]
    hosts = tuple(dict.fromkeys(port.peer for port in cut if port.kind == "host"))
    return Blast(
        links=tuple(f"{port.description}–{switch.name}:{port.name}" for port in ports),
        hosts=hosts,
        is_disruptive=bool(hosts),
        moved=tuple(dict.fromkeys(port.peer for port in cut if port.kind == "host" and port.name in moved)),
    )


def _moved(access: Access, changes: Iterable[Change], of_lag: Mapping[str, list[str]]) -> Iterator[str]:
    """Yield the ports that leave a VLAN, or whose VLAN loses its gateway."""
    ports = {port.name: (port.name,) for port in access.ports} | {lag: tuple(of_lag[lag]) for lag in of_lag}
    before, after = (
        {
            (svi[0].lower(), address)
            for path in paths
            if (svi := SVI.search(" ".join(path))) and (OF_BOTH.search(" ".join(path)) or not access.pair)
            for address in ADDRESS.findall(" ".join(path))
        }
        for paths in _sides(changes)
    )
    gone = {int(svi.removeprefix("vlan")) for svi, _ in before - after}
    yield from (port.name for port in access.ports if gone & {port.untagged, *port.tagged})
    for change in changes:
        named = set(words(change.path))
        if change.running is not None and named & MEMBERSHIP:
            yield from (port for name in named & ports.keys() for port in ports[name])


def _sides(changes: Iterable[Change]) -> tuple[list[Path], list[Path]]:
    """What changes remove and what they add, with the values as last words."""
    removed = [(*change.path, change.running) for change in changes if change.running is not None]
    return removed, [(*change.path, change.intended) for change in changes if change.intended is not None]


def of_host(host: Host, changes: Iterable[Change], running: Config, risks: RiskTable) -> Blast:
    """What the changes of a host touch: its own rails, and how it is attached to other networks."""
    before, after = (
        {address for path in paths if path[0].startswith(BESIDE) for address in ADDRESS.findall(" ".join(path))}
        for paths in _sides(tuple(changes))
    )
    used = {name for path in risks.used(running) for name in words(path)}
    felt = [change.path for change in changes if change.risk >= Risk.SESSION]
    risky = [set(words(path)) for path in felt if not path[0].startswith(BESIDE)]
    beside = {path[0].removeprefix(BESIDE).partition(".")[0].removesuffix("-members") for path in felt}
    names = {nic.interface for nic in host.nics}
    is_all = any(not names & named for named in risky)
    nics = [nic for nic in host.nics if nic.interface in used and (is_all or any(nic.interface in n for n in risky))]
    return Blast(
        links=(
            *(f"{host.name}:{nic.interface}–{nic.leaf}:{nic.leaf_port}" for nic in nics),
            *(f"{host.name}:{one.interface}–{one.network}" for one in host.attachments if one.interface in beside),
        ),
        rails=tuple(sorted(nic.rail for nic in nics)),
        hosts=(host.name,) if nics else (),
        gpus=tuple(f"{host.name}:{nic.interface}" for nic in nics),
        is_disruptive=bool(nics),
        moved=(host.name,) if before - after else (),
    )


def words(path: Path) -> Iterator[str]:
    """Yield the words of a path: `interface Ethernet1/1` is two, so is `Ethernet0|3`."""
    return (word for key in path for word in WORD.split(key))


def _reach(
    switch: Switch, changes: Iterable[Change], used: Collection[str], risks: RiskTable, whole: Risk
) -> TouchedPorts:
    everything = frozenset(port.name for port in switch.ports)
    down, lossy = set[str](), set[str]()
    for change in changes:
        if change.risk < Risk.SESSION:
            continue
        ports = _ports(switch, change, everything, used) if risks.is_local(change.risk) else everything
        if change.risk is not Risk.BUFFER:
            down |= ports
        if change.risk is not Risk.SESSION:
            lossy |= ports
    if whole >= Risk.PORT:
        down |= everything
    if whole >= Risk.BUFFER:
        lossy |= everything
    return TouchedPorts(frozenset(down), frozenset(lossy))


def _ports(switch: Switch, change: Change, everything: frozenset[str], used: Collection[str]) -> frozenset[str]:
    """The ports that a change names; all of them if it concerns the whole switch."""
    named = set(words(change.path))
    found = everything & named
    is_breakout = any("breakout" in key.lower() for key in change.path)
    for cage in switch.cages:
        if f"swp{cage.number}" in named or (is_breakout and named & set(cage.ports)):
            found |= frozenset(cage.ports)
    ports = frozenset(name for name in named if PORT.fullmatch(name))
    return found | ports.intersection(used) if ports else everything


def _departed(port: str, running: Config, *, is_session: bool) -> Departed:
    about = [path for path in running if port in words(path)]
    peer = next((running[path] for path in about if path[-1].endswith("description")), "?")
    return Departed(port, peer, is_session or any("neighbor" in set(words(path)) for path in about))


def _left(switch: Switch, gone: Iterable[Departed]) -> Iterator[tuple[str, str]]:
    """Yield hosts that the fabric no longer has, but that are still cabled to a leaf: (host, interface)."""
    for port in gone:
        if switch.role == "leaf" and not port.is_uplink:
            host, _, interface = port.peer.partition(":")
            yield host, interface or port.name


def _cut_off(fabric: Fabric, switch: Switch, ports: list[Port], reach: TouchedPorts) -> Iterator[tuple[str, str]]:
    """Yield the NICs that lose traffic and have no other path: (host, interface)."""
    if switch.role == "leaf":
        uplinks = {port.name for port in ports if port.role != "host"}
        is_isolated = bool(uplinks) and uplinks <= reach.down
        for port in ports:
            if port.role == "host" and (is_isolated or port.name in reach.all):
                yield port.peer, port.peer_port
        return
    below = {port.peer for port in ports if port.role == "down" and port.name in reach.all}
    for name in sorted(below):
        leaf = fabric.switch(name)
        if leaf.role == "leaf" and {port.peer for port in leaf.fabric_ports} == {switch.name}:
            yield from ((port.peer, port.peer_port) for port in leaf.host_ports)


def _rails(fabric: Fabric, switch: Switch, ports: list[Port], gone: list[Departed]) -> set[int]:
    """The rails whose traffic passes these ports."""
    if switch.role == "leaf":
        return {switch.rail} if ports or gone else set()
    names = [port.peer for port in ports if port.role == "down"]
    names += [port.peer.partition(":")[0] for port in gone]
    leaves = (fabric.device(name) for name in names)
    return {leaf.rail for leaf in leaves if isinstance(leaf, Switch) and leaf.role == "leaf"}


def _link(switch: Switch, port: Port) -> str:
    near, far = f"{switch.name}:{port.name}", f"{port.peer}:{port.peer_port}"
    return f"{near}–{far}" if port.role == "up" else f"{far}–{near}"
