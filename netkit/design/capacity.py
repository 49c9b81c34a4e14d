"""The size of a fabric: what it holds, how oversubscribed it is, what is still free, what to order."""

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from netkit.design.fabric import Fabric, Link, Switch
from netkit.hardware import Media


@dataclass(frozen=True, slots=True)
class Tier:
    """One tier of switches."""

    role: str
    model: str
    platform: str
    version: str
    switches: int
    ports_used: int
    ports_spare: int
    down_gbps: int
    up_gbps: int

    @property
    def oversubscription(self) -> float | None:
        """Return bandwidth below ÷ bandwidth above; None at the top."""
        return round(self.down_gbps / self.up_gbps, 2) if self.up_gbps else None


@dataclass(frozen=True, slots=True)
class Item:
    """Something to order."""

    what: str
    media: str
    length_m: float | None
    count: int


@dataclass(frozen=True, slots=True)
class Summary:
    """A fabric in figures."""

    name: str
    topology: str
    attachment: str
    gpus: int
    hosts: int
    rails: int
    units: int
    switches: int
    links: Mapping[str, int]
    tiers: tuple[Tier, ...]
    items: tuple[Item, ...]


def summarize(fabric: Fabric, media: Mapping[str, Media]) -> Summary:
    """Return the figures of a fabric."""
    links = tuple(fabric.links())
    kinds = Counter(link.kind for link in links)
    return Summary(
        name=fabric.name,
        topology=fabric.topology,
        attachment=fabric.attachment,
        gpus=sum(host.model.gpus for host in fabric.hosts),
        hosts=len(fabric.hosts),
        rails=len(fabric.rails),
        units=len({(leaf.pod, leaf.unit) for leaf in fabric.tier("leaf")}),
        switches=len(fabric.switches),
        links={kind: kinds[kind] for kind in ("host", "spine", "core") if kinds[kind]},
        tiers=tuple(_tiers(fabric)),
        items=(*_modules(fabric, media), *_cables(links, media)),
    )


def _tiers(fabric: Fabric) -> Iterator[Tier]:
    for role in ("leaf", "spine", "core"):
        switches = fabric.tier(role)
        if not switches:
            continue
        first = switches[0]
        ports = [port for switch in switches for port in switch.ports]
        yield Tier(
            role=role,
            model=first.model.name,
            platform=first.platform,
            version=", ".join(sorted({switch.version for switch in switches})),
            switches=len(switches),
            ports_used=len(ports),
            ports_spare=sum(map(spare_ports, switches)),
            down_gbps=sum(port.speed_gbps for port in ports if port.role != "up"),
            up_gbps=sum(port.speed_gbps for port in ports if port.role == "up"),
        )


def spare_ports(switch: Switch) -> int:
    """Return how many more ports fit: free ones in split cages, and empty cages split as the used ones are."""
    in_use = sum(cage.split.ports for cage in switch.cages) - len(switch.ports)
    if not switch.cages:
        return 0
    split = switch.cages[0].split
    used = {cage.number for cage in switch.cages}
    blocked = {cage.number + 1 for cage in switch.cages if cage.split.blocks_next_cage}
    empty = [number for number in split.cages if number not in used | blocked and number <= switch.model.cages]
    spare = in_use + len(empty) * split.ports
    limit = switch.model.max_ports
    return spare if limit is None else min(spare, limit - len(switch.ports))


def _modules(fabric: Fabric, media: Mapping[str, Media]) -> Iterator[Item]:
    """Yield the optical modules: one for each cage that has an optical port, at both ends."""
    switch_cages: Counter[str] = Counter()
    for switch in fabric.switches:
        cages = {port.cage: port.profile.cable.media for port in switch.ports}
        switch_cages.update(name for name in cages.values() if media[name].kind == "optical")
    host_cages: Counter[str] = Counter()
    host_media = {link.cable.media for link in fabric.links() if link.kind == "host"}
    for name in host_media:
        if media[name].kind == "optical":
            host_cages[name] = sum(-(-len(host.nics) // (host.model.ports_per_cage or 1)) for host in fabric.hosts)
    for name, count in sorted(switch_cages.items()):
        yield Item("optical module, switch end", name, None, count)
    for name, count in sorted(host_cages.items()):
        yield Item("optical module, host end", name, None, count)


def _cables(links: tuple[Link, ...], media: Mapping[str, Media]) -> Iterator[Item]:
    runs = Counter((link.cable.media, link.cable.length_m) for link in links)
    for (name, length), count in sorted(runs.items()):
        known = media[name]
        what = {"optical": "fibre", "aoc": "active optical cable", "dac": "copper cable"}.get(known.kind, known.kind)
        per_cable = 1 if known.kind == "optical" else known.ports_per_module
        yield Item(what, name, length, -(-count // per_cable))
