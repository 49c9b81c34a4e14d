"""The size of a fabric: what it holds, how oversubscribed it is, what is still free, what to order."""

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from netkit.design.fabric import SWITCH_ROLES, Fabric, Host, Link, Switch
from netkit.design.plugs import CableAssembly, Socket, module_at, runs, sockets
from netkit.hardware import Media, SwitchModel


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
        """Bandwidth below ÷ bandwidth above; None at the top."""
        return round(self.down_gbps / self.up_gbps, 2) if self.up_gbps else None


@dataclass(frozen=True, slots=True)
class Item:
    """Something to order."""

    what: str
    media: str
    form: str
    """The cage it is for, at both ends of a cable that brings its own; "" for fibre."""
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
    links = tuple(fabric.cables())
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
        links={kind: kinds[kind] for kind in ("host", *SWITCH_ROLES) if kinds[kind]},
        tiers=tuple(_tiers(fabric)),
        items=(*_modules(fabric, media), *_cables(fabric, links, media)),
    )


def optics_power(summary: Summary, media: Mapping[str, Media]) -> float | None:
    """The power of all modules and cables with electronics in W; None if a source is missing for one of them."""
    powers = [
        None if item.what.startswith("active") else _power(item, media)
        for item in summary.items
        if item.what.startswith(("optical module", "active"))
    ]
    return None if None in powers else sum(power for power in powers if power is not None)


def _power(item: Item, media: Mapping[str, Media]) -> float | None:
    power = media[item.media].power_in(item.form)
    return None if power is None else power * item.count


def switch_power(summary: Summary, models: Mapping[str, SwitchModel]) -> float | None:
    """The power of all switches without modules in W; None if a source is missing for one of them."""
    powers = [(models[tier.model].power_w, tier.switches) for tier in summary.tiers if tier.model in models]
    if len(powers) < len(summary.tiers) or any(power is None for power, _ in powers):
        return None
    return sum(power * count for power, count in powers if power is not None)


def _tiers(fabric: Fabric) -> Iterator[Tier]:
    for role in SWITCH_ROLES:
        switches = fabric.tier(role)
        if not switches:
            continue
        systems = sorted({(switch.platform, switch.version) for switch in switches})
        ports = [port for switch in switches for port in switch.ports]
        beside = [port for switch in switches if switch.access for port in switch.access.ports]
        yield Tier(
            role=role,
            model=", ".join(dict.fromkeys(switch.model.name for switch in switches)),
            platform=", ".join(dict.fromkeys(platform for platform, _ in systems)),
            version=", ".join(dict.fromkeys(version for _, version in systems)),
            switches=len(switches),
            ports_used=len(ports) + len(beside),
            ports_spare=sum(map(spare_ports, switches)),
            down_gbps=sum(port.speed_gbps for port in ports if port.role != "up")
            + sum(port.split.speed_gbps for port in beside if port.kind != "peer"),
            up_gbps=sum(port.speed_gbps for port in ports if port.role == "up"),
        )


def spare_ports(switch: Switch) -> int:
    """Count the ports that still fit: free ones in split cages, and empty cages split like the used ones."""
    taken = len(switch.ports) + len(switch.external) + (len(switch.access.ports) if switch.access else 0)
    in_use = sum(cage.split.ports for cage in switch.cages) - taken
    if not switch.cages:
        return 0
    split = switch.cages[0].split
    used = {cage.number for cage in switch.cages}
    blocked = {cage.number + 1 for cage in switch.cages if cage.split.blocks_next_cage}
    empty = [number for number in split.cages if number not in used | blocked and number <= switch.model.cages]
    spare = in_use + len(empty) * split.ports
    limit = switch.model.max_ports
    return spare if limit is None else min(spare, limit - taken)


def _modules(fabric: Fabric, media: Mapping[str, Media]) -> Iterator[Item]:
    """Yield the optical modules at both ends: one for each cage with an optical port."""
    at = sockets(fabric)
    cages: dict[Socket, str] = {}
    for link in fabric.cables():
        if media[link.cable.media].kind == "optical":
            for end in ((link.device, link.port), (link.peer, link.peer_port)):
                cages[at[end]] = link.cable.media
    counts = Counter(_module(fabric, socket, named, media) for socket, named in cages.items())
    for (device, name, form), count in sorted(counts.items(), key=lambda row: (row[0][0] != "switch", row[0])):
        yield Item(f"optical module, {device} end", name, form, None, count)


def _module(fabric: Fabric, socket: Socket, named: str, media: Mapping[str, Media]) -> tuple[str, str, str]:
    end = "host" if isinstance(fabric.device(socket.device), Host) else "switch"
    fitting = module_at(socket, named, media)
    return end, fitting or named, socket.form if fitting else f"none known for {socket.form}"


def _cables(fabric: Fabric, links: tuple[Link, ...], media: Mapping[str, Media]) -> Iterator[Item]:
    by_length: dict[tuple[str, float], list[Link]] = defaultdict(list)
    for link in links:
        by_length[(link.cable.media, link.cable.length_m)].append(link)
    at = sockets(fabric)
    for (name, length), group in sorted(by_length.items()):
        known = media[name]
        what = {"optical": "fibre", "aoc": "active optical cable", "dac": "copper cable"}.get(known.kind, known.kind)
        if known.kind == "optical":
            yield Item(what, name, "", length, len(group))
            continue
        forms = Counter[str]()
        for run in runs(group, at, known.ports_per_module):
            forms[_forms(run)] += 1 if run.trunk else len(run.links)
        for form, count in sorted(forms.items()):
            yield Item(what, name, form, length, count)


def _forms(run: CableAssembly) -> str:
    if run.trunk is None:
        return "fits no two cages"
    ends = f"{len(run.ends)} x {run.ends[0].form}" if len(run.ends) > 1 else run.ends[0].form
    return f"{run.trunk.form} to {ends}"
