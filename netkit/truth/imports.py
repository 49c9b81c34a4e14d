"""Records of a source of truth → the tables of an intent, which then designs what the source holds."""

import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from ipaddress import IPv4Interface, IPv4Network, IPv6Interface, IPv6Network, ip_network
from pathlib import Path

from pydantic import ValidationError

from netkit import design
from netkit.adopt import placement as adopted
from netkit.adopt.links import FoundLink, FoundLinks
from netkit.adopt.names import natural
from netkit.adopt.placement import Place
from netkit.adopt.survey import Survey, SurveyedSwitch
from netkit.design import tables
from netkit.design.entries import keys_of
from netkit.design.fabric import Fabric, Host, Switch
from netkit.errors import DesignError, NetkitError, Problem
from netkit.hardware import Catalog
from netkit.intent import Intent, complaint
from netkit.platforms import PLATFORMS
from netkit.platforms.existing import ExistingSwitch
from netkit.platforms.routing import Router
from netkit.truth.difference import TruthInventory

HOST_WORDS = ("host", "server", "gpu", "node", "compute")
SWITCH_WORDS = ("leaf", "spine", "core", "switch", "tor", "super")
RAIL_NAME = re.compile(r"rail\d{1,2}")
LEAF_LENGTH_V6 = 64
OF_ONE_DEVICE = ("serial", "rack", "rack_unit")
Row = dict[str, object]
Prefix = IPv4Network | IPv6Network
PLURALS = {"leaf": "units or rails", "spine": "spines", "core": "core switches", "host": "hosts"}


@dataclass(frozen=True)
class TruthImport:
    """The tables that a source of truth gives to a fabric."""

    fabric: Fabric
    """With its networks beside the rails, which get no rows."""
    inventory: TruthInventory
    left_out: dict[str, str] = field(default_factory=dict)
    """Device of the source → why it has no row."""

    @cached_property
    def interconnect(self) -> Fabric:
        """The part of the fabric that the tables describe."""
        return self.fabric.without_networks

    @cached_property
    def names(self) -> Mapping[str, str]:
        """Name in the design → name in the source, of every device at a place of the design."""
        roles = {name: role for name in self.inventory.records.devices if (role := self._role(name))}
        placing = adopted.place(_survey(roles), self._links(roles), by_names=False)
        self.left_out.update({name: why for name, why in placing.left_out.items() if name in roles})
        return _matched_names(self.interconnect, placing.places, self.left_out)

    def _role(self, name: str) -> str:
        """Host or switch; empty for a device outside this fabric."""
        device, known = self.inventory.devices[name], self.fabric.device(name)
        if known is not None:
            return "host" if isinstance(known, Host) else "" if known.access else "switch"
        every: tuple[Switch | Host, ...] = (*self.interconnect.hosts, *self.interconnect.switches)
        models = {one.model.name: "host" if isinstance(one, Host) else "switch" for one in every}
        role_name = device.role.lower()
        by_word = [("host", HOST_WORDS), ("switch", SWITCH_WORDS)]
        return next(
            (role for role, words in by_word if any(word in role_name for word in words)), models.get(device.model, "")
        )

    def _links(self, roles: Mapping[str, str]) -> FoundLinks:
        found: dict[str, list[FoundLink]] = {"host": [], "switch": []}
        peers = sorted(self.inventory.records.peers.items())
        beside = {link.port for link in self.fabric.access_links()}
        by_rail = {device for (device, port), _ in peers if RAIL_NAME.fullmatch(port)}
        for near, far in peers:
            one, other = roles.get(near[0]), roles.get(far[0])
            if one == "host" and (near[1] in beside or (near[0] in by_rail and not RAIL_NAME.fullmatch(near[1]))):
                continue  # a NIC on a network beside the rails
            if one == "host" and other == "switch":
                found["host"].append(FoundLink(near, far, "description"))
            elif one == other == "switch" and near < far:
                found["switch"].append(FoundLink(near, far, "description"))
        return FoundLinks(tuple(found["switch"]), tuple(found["host"]), ())

    # --- tables -----------------------------------------------------------------------------------------------------

    def tables(self) -> Mapping[str, list[Row]]:
        """The rows of each table. What the source does not have gets no row, and is designed by rule."""
        rows = {name: [dict(row) for row in make(self.interconnect)] for name, make in tables.TABLES.items()}
        return {
            "devices": [self._device(row) for row in rows["devices"] if row["name"] in self.names],
            "cables": [*self._cables(rows["cables"])],
            "rails": [self._rail(row) for row in rows["rails"]],
            "nics": [self._nic(row) for row in rows["nics"] if row["host"] in self.names],
        }

    def _device(self, row: Row) -> Row:
        known, name = self.interconnect.device(str(row["name"])), self.names[str(row["name"])]
        device = self.inventory.devices[name]
        found: Row = {"name": name}
        if name != row["name"]:
            found.update(dict.fromkeys(OF_ONE_DEVICE, ""))
        record = self.inventory.records.devices[name]
        found |= {key: value for key in OF_ONE_DEVICE if (value := getattr(record, key))}
        management = self._address(name, self._management_port(known, name))
        if management:
            found["management"] = str(management.ip if isinstance(known, Host) else management)
        if isinstance(known, Switch):
            found |= {"asn": device.asn} if device.asn else {}
            loopback_port = PLATFORMS[known.platform].loopback_port
            if loopback := self._address(name, loopback_port):
                found["loopback"] = str(loopback.ip)
            if known.role == "leaf":
                found |= self._leaf(known, name)
            of_ipv6 = {
                "loopback_v6": self._address_v6(name, loopback_port),
                "management_v6": self._address_v6(name, self._management_port(known, name)),
            }
            found |= {key: str(one.ip) for key, one in of_ipv6.items() if one and key in row}
            if "prefix_v6" in row and (prefix := self._leaf_prefix_v6(known, name)):
                found["prefix_v6"] = str(prefix)
        return {**row, **found}

    def _management_port(self, known: Switch | Host | None, name: str) -> str:
        usual = known.management_interface if isinstance(known, Host) else ""
        if isinstance(known, Switch):
            usual = PLATFORMS[known.platform].management_port
        return usual if (name, usual) in self.inventory.addresses else self.inventory.devices[name].management_port

    def _leaf(self, leaf: Switch, name: str) -> Row:
        found: Row = {}
        prefix = self._leaf_prefix(leaf, name)
        if prefix:
            found["prefix"] = str(prefix)
        number, gateway = self._gateway(leaf, name)
        if gateway:
            found["vlan_gateway"] = str(gateway.ip)
        if number:
            usual = self._rail_vlan(leaf.rail)
            found["vlan"] = "" if number == usual else number
        return found

    def _leaf_prefix(self, leaf: Switch, name: str) -> IPv4Network | None:
        """The network of the gateway, or the one around the addresses of the ports to hosts."""
        if leaf.vlan:
            _, gateway = self._gateway(leaf, name)
            return gateway.network if gateway else None
        addresses = [found for port in self._host_ports(name) if (found := self._address(name, port))]
        length = self.interconnect.leaf_prefix_length
        around = {
            IPv4Network((int(one.ip), length), strict=False) for one in addresses if one.network.prefixlen >= length
        }
        return around.pop() if len(around) == 1 else None

    def _leaf_prefix_v6(self, leaf: Switch, name: str) -> IPv6Network | None:
        """The /64 around the gateway, or around the ports to hosts."""
        vlan = PLATFORMS[leaf.platform].vlan_port.format(number=self._gateway(leaf, name)[0])
        ports = [vlan] if leaf.vlan else self._host_ports(name)
        addresses = [found for port in ports if (found := self._address_v6(name, port))]
        around = {IPv6Network((int(one.ip), LEAF_LENGTH_V6), strict=False) for one in addresses}
        return around.pop() if len(around) == 1 else None

    def _host_ports(self, leaf: str) -> list[str]:
        peers = self.inventory.records.peers
        return [port for (device, port), peer in peers.items() if device == leaf and peer[0] in self._hosts]

    @cached_property
    def _hosts(self) -> frozenset[str]:
        return frozenset(self.names[host.name] for host in self.interconnect.hosts if host.name in self.names)

    def _gateway(self, leaf: Switch, name: str) -> tuple[int, IPv4Interface | None]:
        """The VLAN of a leaf and the address there."""
        before, _, after = PLATFORMS[leaf.platform].vlan_port.partition("{number}")
        for (device, port), address in self.inventory.addresses.items():
            number = port.removeprefix(before).removesuffix(after)
            if device == name and f"{before}{number}{after}" == port and number.isdecimal():
                return int(number), IPv4Interface(address)
        return 0, None

    def _leaves(self, rail: int) -> Iterator[tuple[Switch, str]]:
        for leaf in self.interconnect.tier("leaf"):
            if leaf.rail == rail and leaf.name in self.names:
                yield leaf, self.names[leaf.name]

    def _rail_vlan(self, rail: int) -> int:
        numbers = Counter(number for leaf, name in self._leaves(rail) if (number := self._gateway(leaf, name)[0]))
        return numbers.most_common(1)[0][0] if numbers else 0

    def _rail(self, row: Row) -> Row:
        """The VLAN of a rail, and its prefixes."""
        rail, found = int(str(row["rail"])), dict[str, object]()
        for column, of_leaf in (("prefix", self._leaf_prefix), ("prefix_v6", self._leaf_prefix_v6)):
            if column in row and (prefix := self._rail_prefix(rail, ip_network(str(row[column])), of_leaf)):
                found[column] = str(prefix)
        if vlan := self._rail_vlan(rail):
            found["vlan"] = vlan
        return {**row, **found}

    def _rail_prefix(
        self, rail: int, designed: Prefix, of_leaf: Callable[[Switch, str], Prefix | None]
    ) -> Prefix | None:
        """The largest prefix that has all leaves of a rail and none of other rails; None: the designed one will do."""
        prefixes = {
            one.number: [prefix for leaf, name in self._leaves(one.number) if (prefix := of_leaf(leaf, name))]
            for one in self.interconnect.rails
        }
        own = prefixes.pop(rail)
        others = [prefix for some in prefixes.values() for prefix in some]

        def fits(network: Prefix) -> bool:
            has_own = all(one.version == network.version and one.subnet_of(network) for one in own)  # type: ignore[arg-type]
            return has_own and not any(map(network.overlaps, others))

        known = [one for one in map(ip_network, self.inventory.prefixes) if own and fits(one)]
        if not known or designed in known:
            return None
        largest = min(known, key=lambda one: one.prefixlen)
        return largest if largest not in own or not fits(designed) else None

    def _cables(self, rows: Iterable[Row]) -> Iterator[Row]:
        """Yield a row for each cable of the design, with the ports that the source joins."""
        known: dict[tuple[str, str], list[tuple[str, str]]] = defaultdict(list)
        for (device, port), (peer, peer_port) in self.inventory.records.peers.items():
            known[(device, peer)].append((port, peer_port))
        parallel: dict[tuple[str, str], list[Row]] = defaultdict(list)
        for row in rows:
            parallel[(str(row["device"]), str(row["peer"]))].append(row)
        for (device, peer), some in parallel.items():
            ends = self.names.get(device, device), self.names.get(peer, peer)
            found = sorted(known[ends], key=lambda ports: tuple(map(natural, ports)))
            same = [(str(row["port"]), str(row["peer_port"])) for row in some]
            rest = iter([ports for ports in found if ports not in same])
            for row, ports in zip(some, same, strict=True):
                joined = ports if ports in found else next(rest, None)
                if joined:
                    yield {**row, **self._cable(row, ends, joined)}

    def _cable(self, row: Row, ends: tuple[str, str], ports: tuple[str, str]) -> Row:
        is_host = not row["link"]
        found: Row = {"device": ends[0], "port": row["port"] if is_host else ports[0], "peer": ends[1]}
        found["peer_port"] = ports[1]
        cable = self.inventory.cables.get((ends[0], ports[0]))
        if cable and cable.length_m is not None:
            found["length_m"] = f"{cable.length_m:.12g}"
        own, peer = self._address(ends[0], ports[0]), self._address(ends[1], ports[1])
        if "address" in row and own and peer:
            found |= {"address": str(own), "peer_address": str(peer.ip)}
        return found | ({"label": cable.label} if cable and cable.label else {})

    def _nic(self, row: Row) -> Row:
        """The address of a NIC, and of the port that it is cabled to."""
        host = self.interconnect.device(str(row["host"]))
        name = self.names[str(row["host"])]
        if not isinstance(host, Host):
            return row
        nic = next(one for one in host.nics if one.rail == row["rail"])
        found: Row = {"host": name}
        if name != row["host"]:
            found["mac"] = ""
        leaf = self.names.get(nic.leaf)
        peers = self.inventory.records.peers
        port = next(
            (port for (device, port), peer in peers.items() if device == name and peer[0] == leaf), nic.interface
        )
        if address := self._address(name, port):
            found["address"] = str(address.ip)
        gateway = self._address(*peers[(name, port)]) if (name, port) in peers else None
        if row["gateway"] and gateway:
            found["gateway"] = str(gateway.ip)
        of_ipv6 = {"address_v6": (name, port), "gateway_v6": peers.get((name, port), ("", ""))}
        found |= {key: str(one.ip) for key, end in of_ipv6.items() if key in row and (one := self._address_v6(*end))}
        return {**row, **found}

    def _address(self, device: str, port: str) -> IPv4Interface | None:
        found = self.inventory.addresses.get((device, port))
        return IPv4Interface(found) if found else None

    def _address_v6(self, device: str, port: str) -> IPv6Interface | None:
        found = self.inventory.addresses_v6.get((device, port))
        return IPv6Interface(found) if found else None


def redesigned(intent: Intent, rows: Mapping[str, list[Row]], catalog: Catalog, folder: Path) -> Fabric:
    """Design an intent with other tables; raise its problems as those of files in a folder."""
    given = {name: [_cells(row) for row in some] for name, some in rows.items()}
    values = {**intent.model_dump(exclude_unset=True), "tables": given}
    try:
        return design.build(Intent.model_validate(values), catalog)
    except ValidationError as error:
        problems = [complaint.problem(detail) for detail in error.errors(include_url=False)]
    except NetkitError as error:
        problems = list(error.problems)
    raise DesignError(_in_file(problem, folder) for problem in problems)


def _cells(row: Row) -> Row:
    return {key: value for key, value in row.items() if value not in {None, ""}}


def _in_file(problem: Problem, folder: Path) -> Problem:
    """A problem of a row with its file and line."""
    match problem.path:
        case ("tables", str(table), int(index), *rest):
            file, line = str(folder / f"{table}.csv"), index + 2
            return replace(problem, path=tuple(rest), file=file, line=line)
    return problem


def _survey(roles: Mapping[str, str]) -> Survey:
    """Switches of which only the cables are known."""
    nothing = ExistingSwitch(), Router()
    return Survey({name: SurveyedSwitch(name, "", *nothing) for name, role in roles.items() if role == "switch"})


def _matched_names(fabric: Fabric, places: Mapping[str, Place], left_out: dict[str, str]) -> Mapping[str, str]:
    """Name in the design → name in the source. A device with a designed name keeps its place if cables allow it."""
    every: tuple[Switch | Host, ...] = (*fabric.switches, *fabric.hosts)
    designed = {one.name: _normal(fabric, one.role if isinstance(one, Switch) else "host", one) for one in every}
    moved = {name: _normal(fabric, place.role, place) for name, place in places.items()}
    pods = _matched(moved, designed, lambda place: None if place.role == "core" else (place.pod,))
    moved = {
        name: replace(place, pod=pods.get((place.pod,), (0,))[0]) if place.role != "core" else place
        for name, place in moved.items()
    }
    units = _matched(moved, designed, lambda place: (place.pod, place.unit) if place.unit else None)
    moved = {
        name: replace(place, unit=units.get((place.pod, place.unit), (0, -1))[1]) if place.unit else place
        for name, place in moved.items()
    }
    planes = _matched(moved, designed, _plane)
    groups: dict[Place, list[str]] = defaultdict(list)
    for name, place in moved.items():
        plane = planes.get(_plane(place) or (), (0, place.plane))[-1]
        groups[replace(place, plane=plane, slot=0)].append(name)
    found: dict[str, str] = {}
    uncabled = left_out.keys() & designed.keys()
    for group, members in groups.items():
        free = {place.slot: name for name, place in designed.items() if replace(place, slot=0) == group}
        kept = {name for name in members if name in free.values()}
        spare = iter([free[slot] for slot in sorted(free) if free[slot] not in kept | uncabled])
        for name in sorted(members, key=lambda one: (moved[one].slot, natural(one))):
            at = name if name in kept else next(spare, "")
            if at:
                found[at] = name
            else:
                left_out[name] = f"the intent has no place for it: increase the number of its {PLURALS[group.role]}"
    for name in left_out.keys() & designed.keys() - found.keys():  # its cables do not show its place
        found[name] = name
        del left_out[name]
    return found


def _plane(place: Place) -> tuple[int, ...] | None:
    """The names that identify the planes of spines and of core switches."""
    return (("spine", "core").index(place.role), place.plane) if place.role in {"spine", "core"} else None


def _normal(fabric: Fabric, role: str, place: Place | Switch | Host) -> Place:
    """A place with the numbers that count for its role."""
    return Place(role, **{key: getattr(place, key) for key in keys_of(fabric, role)})


def _matched(
    places: Mapping[str, Place], designed: Mapping[str, Place], key: Callable[[Place], tuple[int, ...] | None]
) -> Mapping[tuple[int, ...], tuple[int, ...]]:
    """Map numbers of groups in the source to those in the design: by the names in both, the rest in order."""
    votes: dict[tuple[int, ...], Counter[tuple[int, ...]]] = defaultdict(Counter)
    for name, place in places.items():
        if (group := key(place)) is not None:
            own = key(designed[name]) if name in designed else None
            votes[group].update([] if own is None else [own])
    free = sorted({own for place in designed.values() if (own := key(place)) is not None})
    found: dict[tuple[int, ...], tuple[int, ...]] = {}
    for group in sorted(votes, key=lambda one: (-max(votes[one].values(), default=0), one)):
        voted = [own for own, _ in votes[group].most_common() if own in free]
        fitting = voted or [own for own in free if own[:-1] == group[:-1]]
        if fitting:
            found[group] = fitting[0]
            free.remove(fitting[0])
    return found
