"""The tables of the intent: what is installed, less the columns that the design fills in the same way."""

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from ipaddress import IPv4Interface, IPv4Network, IPv6Interface

from netkit.adopt.fabric_values import Addressing
from netkit.adopt.hardware_values import HardwareSearch
from netkit.adopt.ipv6_values import AddressingV6
from netkit.adopt.links import End, FoundLinks
from netkit.adopt.names import natural
from netkit.adopt.placement import Placement, told_asn
from netkit.adopt.survey import Survey
from netkit.design import Fabric
from netkit.design import tables as designed
from netkit.design.entries import KEYS, keys_of
from netkit.platforms.routing import HostRail

Row = dict[str, object]
OWN = {
    "devices": (
        "name",
        "model",
        "platform",
        "version",
        "serial",
        "rack",
        "rack_unit",
        "management",
        "management_gateway",
        "loopback",
        "asn",
        "prefix",
        "vlan",
        "vlan_gateway",
        "management_v6",
        "loopback_v6",
        "prefix_v6",
    ),
    "cables": ("port", "peer_port", "length_m", "address", "peer_address"),
    "rails": ("prefix", "vlan", "prefix_v6"),
    "nics": ("address", "gateway", "mac", "address_v6", "gateway_v6"),
}
"""Columns that are compared; the others find the row."""
BOTH_ENDS = {"address", "peer_address"}
CABLE_ENDS = (("device", "port"), ("peer", "peer_port"))


@dataclass(frozen=True)
class Installed:
    """What is installed, in the form of the tables."""

    survey: Survey
    links: FoundLinks
    placement: Placement
    addressing: Addressing
    hardware: HardwareSearch
    ipv6: AddressingV6
    known: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    """Device → columns that another source has."""

    def rows(self, fabric: Fabric) -> dict[str, list[Row]]:
        """Return the complete tables, with the keys that the topology of the fabric has."""
        devices = list(self._devices(fabric))
        return {
            "devices": self._with_free_addresses([*devices, *_renamed(devices, fabric)], fabric),
            "cables": list(self._cables()),
            "rails": list(self._rails()),
            "nics": list(self._nics()),
        }

    def _devices(self, fabric: Fabric) -> Iterator[Row]:
        for role in ("leaf", "spine", "core", "host"):
            for name in self.placement.of_role(role):
                place = self.placement.places[name]
                row: Row = {"role": role, **{key: getattr(place, key) for key in keys_of(fabric, role)}, "name": name}
                own = {"model": self.hardware.own_host_model(name)} if role == "host" else self._of_switch(name)
                yield {**row, **own, **self.known.get(name, {})}

    def _with_free_addresses(self, rows: list[Row], fabric: Fabric) -> list[Row]:
        """Give switches that were not read addresses that no other has, where those by design are taken."""
        design = {_key("devices", row): row for row in map(dict, designed.TABLES["devices"](fabric))}
        for column, pool in (
            ("loopback", self.addressing.loopbacks),
            ("management", None),
            ("loopback_v6", self.ipv6.loopbacks),
            ("management_v6", self.ipv6.management),
        ):
            taken = {str(row[column]) for row in rows if row.get(column)}
            for row in rows:
                own = str(design.get(_key("devices", row), {}).get(column, ""))
                if row["role"] == "host" or row.get(column) or own not in taken:
                    continue
                network, length = (pool, "") if pool else ((net := IPv4Interface(own).network), f"/{net.prefixlen}")
                free = (f"{network[place]}{length}" for place in range(network.num_addresses - 2, 1, -1))
                row[column] = next((address for address in free if address not in taken), "")
                taken.add(str(row[column]))
        return rows

    def _of_switch(self, name: str) -> Row:
        row: Row = {"model": self.hardware.own_model(name)}
        if system := self.hardware.own_system(name):
            row |= dict(zip(("platform", "version"), system, strict=True))
        switch = self.survey.switches.get(name)
        if switch is None:
            prefix = self.addressing.leaf_prefixes.get(name)
            asn, of_ipv6 = told_asn(self.survey, self.links, name), self.ipv6.leaf_prefixes.get(name)
            row |= ({"prefix": str(prefix)} if prefix else {}) | ({"asn": asn} if asn else {})
            return row | ({"prefix_v6": str(of_ipv6)} if of_ipv6 else {})
        existing = switch.existing
        if existing.management and existing.management_gateway:  # an intent has no address without one
            row |= {"management": existing.management, "management_gateway": existing.management_gateway}
        if loopback := switch.loopback:
            row["loopback"] = str(loopback.ip)
        if switch.asn:
            row["asn"] = switch.asn
        if prefix := self.addressing.leaf_prefixes.get(name):
            row["prefix"] = str(prefix)
        if self.addressing.attachment == "vlan" and switch.members:
            (interface, _), *_ = Counter(switch.members.values()).most_common()
            row["vlan"] = self._own_vlan(name)
            row["vlan_gateway"] = str(switch.addresses[interface].ip)
        for column, pool, own in (
            ("management_v6", self.ipv6.management, switch.management_v6),
            ("loopback_v6", self.ipv6.loopbacks, switch.loopback_v6),
        ):
            if pool and own and own.ip in pool:
                row[column] = str(own.ip)
        if prefix_v6 := self.ipv6.leaf_prefixes.get(name):
            row["prefix_v6"] = str(prefix_v6)
        return row

    def _cables(self) -> Iterator[Row]:
        rails = {name: place.rail for name, place in self.placement.places.items()}
        for link in sorted(self.links.hosts, key=lambda one: (natural(one.near[0]), rails.get(one.far[0], 0))):
            host, leaf = link.devices
            if host in self.placement.places and leaf in self.placement.places:
                row: Row = {
                    "device": host,
                    "port": f"rail{rails[leaf]}",
                    "peer": leaf,
                    "peer_port": link.far[1],
                    "link": "",
                }
                yield row | self._length((link.far,))
        yield from self._switch_cables()

    def _switch_cables(self) -> Iterator[Row]:
        groups: dict[tuple[str, str], list[tuple[str, str]]] = defaultdict(list)
        for link in self.links.switches:
            ends = (link.near, link.far) if self.hardware.sides.get(link.near) == "up" else (link.far, link.near)
            if all(end[0] in self.placement.places for end in ends):
                groups[(ends[0][0], ends[1][0])].append((ends[0][1], ends[1][1]))
        for (lower, upper), ports in sorted(groups.items(), key=lambda one: (natural(one[0][0]), natural(one[0][1]))):
            for number, (port, peer_port) in enumerate(sorted(ports, key=lambda one: natural(one[0])), 1):
                row: Row = {"device": lower, "port": port, "peer": upper, "peer_port": peer_port, "link": number}
                yield row | self._length(((lower, port), (upper, peer_port))) | self._addresses(row)

    def _addresses(self, row: Row) -> Row:
        """Return the addresses at both ends of a link between switches, from either end."""
        ends = [(str(row[device]), str(row[port])) for device, port in CABLE_ENDS]
        found: list[tuple[str, str, int]] = []
        for device, port in ends:
            switch = self.survey.switches.get(device)
            session = next((one for one in switch.sessions if one.interface == port), None) if switch else None
            if switch and session and session.address:
                here = switch.addresses[port]
                found.append((str(here.ip), session.address, here.network.prefixlen))
            else:
                found.append(("", "", 0))
        (own, peer, length), (far_own, far_peer, far_length) = found
        address, peer_address = own or far_peer, far_own or peer
        return {"address": f"{address}/{length or far_length}", "peer_address": peer_address} if address else {}

    def _length(self, ends: Sequence[tuple[str, str]]) -> Row:
        length = self.hardware.length(ends)
        return {} if length is None else {"length_m": f"{length:.12g}"}

    @cached_property
    def _vlans(self) -> Mapping[str, int]:
        """Leaf → its VLAN."""
        found: dict[str, int] = {}
        for name in self.placement.of_role("leaf") if self.addressing.attachment == "vlan" else ():
            switch = self.survey.switches.get(name)
            if switch and switch.members:
                (interface, _), *_ = Counter(switch.members.values()).most_common()
                for vlan, one in switch.existing.vlans.items():
                    if one == interface:
                        found[name] = vlan
        return found

    @cached_property
    def _rail_vlans(self) -> Mapping[int, int]:
        """Rail → the VLAN of most of its leaves."""
        found: dict[int, list[int]] = defaultdict(list)
        for name, vlan in self._vlans.items():
            found[self.placement.places[name].rail].append(vlan)
        return {rail: Counter(numbers).most_common(1)[0][0] for rail, numbers in found.items()}

    def _own_vlan(self, leaf: str) -> int | str:
        """Return the VLAN of a leaf that differs from that of its rail."""
        vlan = self._vlans.get(leaf)
        return "" if vlan is None or vlan == self._rail_vlans[self.placement.places[leaf].rail] else vlan

    def unseen_cables(self, seen: list[Row], fabric: Fabric) -> Iterator[Row]:
        """Yield cables of the design that nothing names, such as those of a switch that was not read, on free ports."""
        known = {_key("cables", row) for row in seen}
        taken = {(row[end], row[port]) for row in seen for end, port in CABLE_ENDS}
        by_design = {_key("cables", row): row for row in map(dict, designed.TABLES["cables"](fabric))}
        is_own = any("address" in row and row["address"] != _own(by_design, row, "address") for row in seen)
        networks = self._free_links(fabric.link_pool) if is_own else iter(())
        for designed_row in designed.TABLES["cables"](fabric):
            row = {key: designed_row[key] for key in ("device", "port", "peer", "peer_port", "link")}
            if _key("cables", row) in known:
                continue
            for (end, port), side in zip(CABLE_ENDS, ("up", "down"), strict=True):
                name = str(row[end])
                if (row[end], row[port]) in taken and self.placement.places[name].role != "host":
                    free = (one for one in self.hardware.ports(name, side) if (name, one) not in taken)
                    row[port] = next(free, row[port])
                taken.add((row[end], row[port]))
            if "address" in designed_row and (network := next(networks, None)):
                row |= {"address": f"{network[1]}/31", "peer_address": str(network[0])}
            yield row

    def _free_links(self, pool: str) -> Iterator[IPv4Network]:
        """Yield networks of the end of a pool that no link has, for links that nothing names."""
        whole = IPv4Network(pool)
        for number in range(int(whole.broadcast_address) - 1, int(whole.network_address) - 1, -2):
            network = IPv4Network((number, 31))
            if not any(network.overlaps(one) for one in self.addressing.links):
                yield network

    def unseen_nics(self, seen: list[Row], fabric: Fabric) -> Iterator[Row]:
        """Yield NICs of hosts that were not read with free addresses, where those by design are taken."""
        known, taken = {_key("nics", row) for row in seen}, {str(row.get("address")) for row in seen}
        for host in fabric.hosts:
            for nic in host.nics:
                row: Row = {"host": host.name, "rail": nic.rail}
                if _key("nics", row) in known or nic.address not in taken or self.addressing.attachment == "p2p":
                    continue
                network = IPv4Network(fabric.switch(nic.leaf).leaf_prefix)
                places = range(network.num_addresses - 2, 1, -1)
                free = (str(network[place]) for place in places if str(network[place]) not in {nic.gateway, *taken})
                row["address"] = next(free, nic.address)
                taken.add(str(row["address"]))
                yield row

    def _rails(self) -> Iterator[Row]:
        for rail in range(self.placement.rails):
            prefix, vlan = self.addressing.rail_prefixes.get(rail), self._rail_vlans.get(rail)
            row: Row = {"rail": rail}
            row |= ({"prefix": str(prefix)} if prefix else {}) | ({"vlan": vlan} if vlan else {})
            prefix_v6 = self.ipv6.rail_prefixes.get(rail)
            yield row | ({"prefix_v6": str(prefix_v6)} if prefix_v6 else {})

    def _nics(self) -> Iterator[Row]:
        ends = {link.near: link.far for link in self.links.hosts}
        for host in sorted(self.survey.hosts.values(), key=lambda one: natural(one.name)):
            nics = {nic.interface: nic for nic in host.existing.nics}
            rows = []
            for rail in host.routes.rails:
                leaf = self.placement.leaf_of.get((host.name, rail.interface), "")
                if host.name not in self.placement.places or leaf not in self.placement.places or not rail.addresses:
                    continue
                row: Row = {"host": host.name, "rail": self.placement.places[leaf].rail}
                row["address"] = str(rail.addresses[0].ip)
                if self.addressing.attachment == "p2p":
                    row["gateway"] = self._gateway(ends.get((host.name, rail.interface)), rail)
                nic = nics.get(rail.interface)
                if nic and nic.mac:
                    row["mac"] = nic.mac
                row |= self._nic_v6(nic.address_v6 if nic else None, leaf, ends.get((host.name, rail.interface)))
                rows.append(row)
            yield from sorted(rows, key=lambda row: str(row["rail"]).zfill(3))
        yield from self._unread_nics()

    def _nic_v6(self, address: IPv6Interface | None, leaf: str, end: End | None) -> Row:
        """Return the IPv6 address of a NIC, and that of the port of its leaf."""
        prefix = self.ipv6.leaf_prefixes.get(leaf)
        if address is None or prefix is None or address.ip not in prefix:
            return {}
        switch = self.survey.switches.get(end[0]) if end else None
        gateway = switch.existing.addresses_v6.get(end[1]) if end and switch else None
        is_routed = self.addressing.attachment == "p2p" and gateway is not None and gateway.network == address.network
        row: Row = {"address_v6": str(address.ip)}
        return row | ({"gateway_v6": str(gateway.ip)} if gateway and is_routed else {})

    def _gateway(self, end: End | None, rail: HostRail) -> str:
        """Return the address of the port of a leaf; if that was not read, the gateway of the NIC."""
        switch = self.survey.switches.get(end[0]) if end else None
        if end and switch and end[1] in switch.addresses:
            return str(switch.addresses[end[1]].ip)
        return next((route.gateway for route in rail.routes if route.gateway), "")

    def _unread_nics(self) -> Iterator[Row]:
        """Yield rows of hosts that were not read, from the ports of leaves."""
        for link in self.links.hosts:
            host, (leaf, port) = link.near[0], link.far
            switch = self.survey.switches.get(leaf)
            if host in self.survey.hosts or switch is None or port not in switch.addresses:
                continue
            gateway = switch.addresses[port]
            others = [address for address in gateway.network.hosts() if address != gateway.ip]
            if host in self.placement.places and others:
                rail = self.placement.places[leaf].rail
                yield {"host": host, "rail": rail, "address": str(others[0]), "gateway": str(gateway.ip)}


def needed(installed: Mapping[str, list[Row]], fabric: Fabric) -> dict[str, list[Row]]:
    """Return the tables with the columns in which any cell differs from the design, complete, and no others.

    A column is whole or absent: once it is there, later growth does not move any of its numbers.
    """
    found: dict[str, list[Row]] = {}
    for table, rows in installed.items():
        own = OWN[table]
        design = {_key(table, row): row for row in map(dict, designed.TABLES[table](fabric))}
        kept = [
            column
            for column in own
            if any(
                str(row[column]) != str(design.get(_key(table, row), {}).get(column))
                for row in rows
                if row.get(column) not in {None, ""}
            )
        ]
        if BOTH_ENDS & set(kept):
            kept = [column for column in own if column in kept or column in BOTH_ENDS]
        if kept:
            keys = [key for key in dict.fromkeys(key for row in rows for key in row) if key not in own]
            found[table] = [{key: row.get(key, "") for key in (*keys, *kept)} for row in rows]
            if table == "cables":
                found[table] = [_with_ports(short, row) for short, row in zip(found[table], rows, strict=True)]
    return found


def _with_ports(short: Row, row: Row) -> Row:
    """Name the NIC of a host in each row: the port finds it."""
    return {
        "device": row["device"],
        "port": row["port"] if not row["link"] or "port" in short else "",
        "peer": row["peer"],
    } | short


def _renamed(rows: list[Row], fabric: Fabric) -> Iterator[Row]:
    """Yield devices of the design that were not found, under other names where found ones have theirs."""
    taken, known = {str(row["name"]) for row in rows}, {_key("devices", row) for row in rows}
    for row in map(dict, designed.TABLES["devices"](fabric)):
        if row["name"] in taken and _key("devices", row) not in known:
            place = {key: row[key] for key in keys_of(fabric, str(row["role"]))}
            yield {"role": row["role"], **place, "name": f"{row['name']}-new"}


def _own(by_design: Mapping[tuple[str, ...], Row], row: Row, column: str) -> object:
    return by_design.get(_key("cables", row), {}).get(column)


def _key(table: str, row: Mapping[str, object]) -> tuple[str, ...]:
    """Return what finds a row."""
    if table == "devices":
        return (str(row["role"]), *(str(row.get(key, "")) for key in KEYS[str(row["role"])]))
    if table == "cables":
        is_host = not row["link"]
        return (str(row["device"]), str(row["peer"]), str(row["port"]) if is_host else str(row["link"]))
    return tuple(str(row[key]) for key in (("rail",) if table == "rails" else ("host", "rail")))
