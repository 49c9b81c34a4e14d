"""The rows of the table of NICs: addresses of hosts, and of the links to them, checked against the design."""

import difflib
from collections.abc import Collection, Iterator, Mapping
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Interface, IPv6Network

from netkit.design.entries import EntryPlaces
from netkit.design.fabric import Fabric, Host, Nic
from netkit.design.numbering import Numbering, dotted_quad
from netkit.errors import Path, Problem
from netkit.intent.model import Intent, NicEntry


class NicEntries:
    """The rows of the table of NICs by host and rail."""

    def __init__(self, intent: Intent) -> None:
        self._rows: dict[tuple[str, int], NicEntry] = {}
        for entry in intent.tables.nics:
            self._rows.setdefault((entry.host, entry.rail), entry)

    def at(self, host: str, rail: int) -> NicEntry | None:
        return self._rows.get((host, rail)) if self._rows else None


def problems(fabric: Fabric, intent: Intent, renamed: Mapping[str, str]) -> Iterator[Problem]:
    """Yield every row that does not fit the design, and every address that contradicts another."""
    seen: dict[tuple[str, int], int] = {}
    refused: set[tuple[str, int]] = set()
    leaves = fabric.tier("leaf") if intent.tables.nics else ()
    prefixes = {leaf.name: IPv4Network(leaf.leaf_prefix, strict=False) for leaf in leaves}
    for index, entry in enumerate(intent.tables.nics):
        path: Path = ("tables", "nics", index)
        host = fabric.device(entry.host)
        if not isinstance(host, Host):
            known = [one.name for one in fabric.hosts]
            close = [renamed[entry.host]] if entry.host in renamed else difflib.get_close_matches(entry.host, known, 1)
            remedy = f"did you mean {close[0]}?" if close else "`netkit design --addresses` lists the names"
            yield Problem(f"no host is called {entry.host}", remedy, (*path, "host"))
            continue
        nic = next((one for one in host.nics if one.rail == entry.rail), None)
        if nic is None:
            rails = ", ".join(str(one.rail) for one in host.nics)
            yield Problem(f"{host.name} has no NIC on rail {entry.rail}", f"use one of {rails}", (*path, "rail"))
        elif (host.name, nic.rail) in seen:
            yield Problem(f"{host.name} has a row of rail {nic.rail} already", "keep one", path)
        else:
            seen[(host.name, nic.rail)] = index
            wrong = (
                *_of_nic(fabric, nic, prefixes[nic.leaf], entry, path),
                *_of_nic_v6(fabric, nic, entry, path),
            )
            yield from wrong
            if wrong:
                refused.add((host.name, nic.rail))
            own = intent.overrides.get(host.name)
            if own and entry.mac and nic.rail in own.macs:
                yield Problem(f"overrides has this MAC address of {host.name} too", "give it once", (*path, "mac"))
    if intent.tables.nics or any(entry.prefix or entry.vlan_gateway for entry in intent.tables.devices):
        yield from _shared(fabric, intent, seen, refused)
        yield from _shared_v6(fabric, seen, refused)
        if intent.clusters.kubernetes and intent.ceilings.addresses_per_nic > 1:
            yield from _pods(fabric, intent, seen)


def _of_nic(fabric: Fabric, nic: Nic, leaf: IPv4Network, entry: NicEntry, path: Path) -> Iterator[Problem]:
    """Yield an address outside the prefix of the leaf or the link, or one that no device can have there."""
    if entry.gateway and fabric.attachment == "vlan":
        yield Problem("the gateway is one for all hosts of a leaf", "give vlan_gateway of the leaf", (*path, "gateway"))
        return
    if entry.address is None:
        if entry.gateway:
            yield Problem("a gateway without the address of the host", "give address too", (*path, "gateway"))
        return
    if entry.address not in leaf:
        message = f"{entry.address} is outside {leaf}, the prefix of {nic.leaf}"
        yield Problem(message, "use an address within it, or give the leaf another prefix", (*path, "address"))
        return
    address, gateway = int(entry.address), int(entry.gateway or IPv4Address(nic.gateway))
    mask = (1 << (32 - nic.prefix_length)) - 1
    network = f"{dotted_quad(address & ~mask)}/{nic.prefix_length}"
    key = "gateway" if entry.gateway else "address"
    if gateway & ~mask != address & ~mask:
        message = f"{dotted_quad(gateway)} is not on the link {network}"
        yield Problem(message, "use its other address", (*path, "gateway"))
    elif gateway == address:
        yield Problem(f"{dotted_quad(gateway)} would be gateway and host", "give each its own", (*path, key))
    for column, value in (("address", address), *((("gateway", gateway),) if entry.gateway else ())):
        if nic.prefix_length < 31 and value & mask in {0, mask}:
            message = f"{dotted_quad(value)} is the first or last address of {network}, which no device can have"
            yield Problem(message, "use one between them", (*path, column))


def _of_nic_v6(fabric: Fabric, nic: Nic, entry: NicEntry, path: Path) -> Iterator[Problem]:
    """Yield an IPv6 address outside the prefix of the leaf, and a gateway that is not at the other end of the link."""
    prefix = fabric.switch(nic.leaf).leaf_prefix_v6
    if entry.gateway_v6 and (fabric.attachment == "vlan" or entry.address_v6 is None):
        message = "a gateway without the address of the host, or of a whole VLAN"
        yield Problem(message, "clear it; with p2p attachment, give address_v6 too", (*path, "gateway_v6"))
    elif entry.address_v6 is None:
        return
    elif not prefix:
        yield Problem("there is no pools.hosts_v6", "give it too, or clear the cell", (*path, "address_v6"))
    elif entry.address_v6 not in IPv6Network(prefix):
        message = f"{entry.address_v6} is outside {prefix}, the prefix of {nic.leaf}"
        yield Problem(message, "use an address within it, or give the leaf another prefix", (*path, "address_v6"))
    else:
        link, gateway = IPv6Interface(f"{entry.address_v6}/{nic.prefix_length_v6}"), IPv6Address(nic.gateway_v6)
        key = "gateway_v6" if entry.gateway_v6 else "address_v6"
        if gateway not in link.network:
            yield Problem(f"{gateway} is not on the link {link.network}", "use its other address", (*path, key))
        elif gateway == link.ip:
            yield Problem(f"{gateway} would be gateway and host", "give each its own", (*path, key))


def _shared_v6(
    fabric: Fabric, rows: Mapping[tuple[str, int], int], refused: Collection[tuple[str, int]]
) -> Iterator[Problem]:
    """Yield IPv6 addresses, and links, that two NICs have of which one has a row."""
    is_routed = fabric.attachment == "p2p"
    holders: dict[str, tuple[str, int]] = {}
    for host in fabric.hosts:
        for nic in host.nics:
            own = (host.name, nic.rail)
            if not nic.address_v6 or own in refused:
                continue
            link = str(IPv6Interface(f"{nic.address_v6}/{nic.prefix_length_v6}").network)
            value = link if is_routed else nic.address_v6
            other = holders.setdefault(value, own)
            index = rows.get(own, rows.get(other))
            if other != own and index is not None:
                message = (
                    f"{value} would belong to {' and to '.join(f'{name} rail{rail}' for name, rail in (own, other))}"
                )
                yield Problem(message, "give the other one its own too", ("tables", "nics", index, "address_v6"))


def _shared(
    fabric: Fabric, intent: Intent, rows: Mapping[tuple[str, int], int], refused: Collection[tuple[str, int]]
) -> Iterator[Problem]:
    """Yield addresses, and links, that two NICs or a NIC and a leaf have."""
    length, gateways = fabric.link_length if fabric.attachment == "p2p" else 32, EntryPlaces.of(fabric, intent)
    leaves = ((leaf.name, leaf.vlan) for leaf in fabric.tier("leaf"))
    holders: dict[int, tuple[str, int]] = {
        int(IPv4Address(vlan.gateway.partition("/")[0])): (name, -1) for name, vlan in leaves if vlan
    }
    for host in fabric.hosts:
        for nic in host.nics:
            own = (host.name, nic.rail)
            if own in refused:
                continue
            value = int(IPv4Address(nic.address)) >> (32 - length) << (32 - length)
            other = holders.setdefault(value, own)
            if other == own:
                continue
            index = rows.get(own, rows.get(other))
            path: Path = ("tables", "nics", index, "address") if index is not None else ()
            path = path or gateways.path(other[0], "vlan_gateway")
            if path:  # without a row of either, two leaves have one prefix, which is reported there
                shown = dotted_quad(value) + ("" if length == 32 else f"/{length}")
                ends = [name if rail < 0 else f"{name} rail{rail}" for name, rail in (own, other)]
                message = f"{shown} would belong to {' and to '.join(ends)}"
                yield Problem(message, "give the other one its own too", path)


def _pods(fabric: Fabric, intent: Intent, rows: Mapping[tuple[str, int], int]) -> Iterator[Problem]:
    """Yield addresses with which those of pods cannot be counted: all links and blocks are cut in one way."""
    numbering = Numbering(intent)
    for host in fabric.hosts:
        for nic in host.nics:
            leaf = int(IPv4Network(fabric.switch(nic.leaf).leaf_prefix, strict=False).network_address)
            address, gateway = int(IPv4Address(nic.address)), int(IPv4Address(nic.gateway))
            if fabric.attachment == "p2p":
                link = address & ~((1 << (32 - nic.prefix_length)) - 1)
                is_fitting = (gateway - link, address - link) == (1, 2)
                where = "the gateway is the first address of a link, and the host the second"
            else:
                block = intent.ceilings.addresses_per_nic
                is_fitting = gateway == leaf + 1 and (address - leaf - 1) % block == 0
                last = leaf + (1 << (32 - numbering.leaf_length)) - 1
                is_fitting = is_fitting and address + block <= last
                where = f"the gateway is the first address of the prefix, and each host the first of a block of {block}"
            if not is_fitting:
                index = rows.get((host.name, nic.rail))
                path: Path = ("tables", "nics", index, "address") if index is not None else ("tables", "devices")
                message = f"{host.name} rail {nic.rail} has no place for pods: {where}"
                yield Problem(message, "number it so, or leave it to the design", path)
                return
