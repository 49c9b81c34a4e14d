"""Devices whose changes are the same but for names and addresses: approved once, shown once."""

import re
from collections.abc import Iterable, Mapping
from ipaddress import IPv4Network, IPv6Network, ip_address, ip_network

from netkit.design.fabric import Fabric, Host, Switch
from netkit.plan.model import DevicePlan
from netkit.platforms.change import Change
from netkit.platforms.compare import natural

PRIVATE_ASNS = range(4_200_000_000, 4_294_967_295)  # RFC 6996
WORD = re.compile(r"\d+(?:\.\d+){3}/\d+|[\w.-]+")
LINK_LENGTH = 31

Shape = tuple[object, ...]


def grouped(fabric: Fabric, devices: Iterable[DevicePlan]) -> tuple[tuple[str, ...], ...]:
    """The names of devices with the same changes, group by group, the largest first."""
    groups: dict[Shape, list[str]] = {}
    pooled = _Pooled(ip_network(pool) for pool in (fabric.host_pool, fabric.loopback_pool) if pool)
    for device in devices:
        if device.changes:
            groups.setdefault(_shape(fabric, device, pooled), []).append(device.name)
    named = (tuple(sorted(names, key=lambda name: natural((name,)))) for names in groups.values())
    return tuple(sorted(named, key=lambda names: (-len(names), natural(names))))


def _shape(fabric: Fabric, device: DevicePlan, pooled: "_Pooled") -> Shape:
    words = _words(fabric, device.name)
    designed = fabric.device(device.name)
    vlan = designed.vlan if isinstance(designed, Switch) else None
    words_of_vlan = words | ({str(vlan.number): "<number of vlan>"} if vlan else {})

    def plain(text: str, known: Mapping[str, str]) -> str:
        return known.get(text) or WORD.sub(lambda found: _stand_in(found[0], known, pooled), text)

    def shape(change: Change) -> Shape:
        known = words_of_vlan if _is_of_vlan(change) else words
        sides = (change.running, change.intended)
        if _is_description(change):
            values = tuple(side if side is None else "<description>" for side in sides)
        else:
            values = tuple(side if side is None else plain(side, known) for side in sides)
        return (tuple(plain(part, known) for part in change.path), *values, change.risk)

    # Descriptions differ on every device; they count only if nothing else changes.
    is_all = all(map(_is_description, device.changes))
    changes = (shape(change) for change in device.changes if is_all or not _is_description(change))
    return (device.platform, device.role, device.way.method, device.not_read, *sorted(changes, key=repr))


def _is_of_vlan(change: Change) -> bool:
    """Whether a plain number in a change may be that of a VLAN."""
    return any(word in part.lower() for part in (*change.path, change.intended or "") for word in ("vlan", "bridge"))


def _is_description(change: Change) -> bool:
    return change.path[-1].endswith("description")


def _stand_in(word: str, words: Mapping[str, str], pooled: "_Pooled") -> str:
    """The placeholder for a word; a network is not a device's own address, even if it starts with it."""
    if whole := words.get(word):
        return whole
    address, slash, length = word.partition("/")
    own = None if slash and pooled.is_network(word) else words.get(address)
    return (own or pooled[address]) + slash + length


class _Pooled(dict[str, str]):
    """Placeholders for addresses and AS numbers that netkit may have assigned to something now removed.

    Devices have most words in common, so each is looked at once.
    """

    def __init__(self, pools: Iterable[IPv4Network | IPv6Network]) -> None:
        self._pools = tuple(pools)
        self._networks: dict[str, bool] = {}

    def __missing__(self, word: str) -> str:
        self[word] = found = self._placeholder(word)
        return found

    def _placeholder(self, word: str) -> str:
        if word.isdecimal() and len(word) == 10 and int(word) in PRIVATE_ASNS:
            return "<ASN>"
        if word.count(".") != 3:
            return word
        try:
            address = ip_address(word)
        except ValueError:
            return word
        return "<address>" if any(address in pool for pool in self._pools) else word

    def is_network(self, word: str) -> bool:
        if word not in self._networks:
            try:
                self._networks[word] = ip_network(word).prefixlen < LINK_LENGTH
            except ValueError:
                self._networks[word] = False
        return self._networks[word]


def _words(fabric: Fabric, name: str) -> dict[str, str]:
    """The names, addresses and numbers of a device, each with its placeholder."""
    device = fabric.device(name)
    words = dict.fromkeys(fabric.names, "<device>") | {name: "<self>"}
    if isinstance(device, Switch):
        words |= _of_switch(device)
    elif isinstance(device, Host):
        words |= _of_host(device)
    words.pop("", None)
    return words


def _of_switch(switch: Switch) -> dict[str, str]:
    words = {port.description: f"<peer of {port.name}>" for port in switch.ports}
    words |= {_address(port.address): f"<address of {port.name}>" for port in switch.ports}
    words |= {str(port.peer_asn): "<peer's ASN>" for port in switch.fabric_ports}
    words |= {str(switch.asn): "<ASN>", switch.loopback: "<loopback>", switch.leaf_prefix: "<prefix>"}
    if switch.management:
        words[switch.management.address] = "<management>"
    if switch.vlan:
        words |= {_address(switch.vlan.gateway): "<gateway>", switch.vlan.name: "<vlan>"}
        words |= {f"{word}{switch.vlan.number}": "<interface of vlan>" for word in ("vlan", "Vlan")}
    return words


def _of_host(host: Host) -> dict[str, str]:
    words = {}
    for nic in host.nics:
        words[nic.address] = f"<address of {nic.interface}>"
        words[nic.gateway] = f"<gateway of {nic.interface}>"
        words[nic.mac] = f"<MAC of {nic.interface}>"
    return words


def _address(prefix: str) -> str:
    return prefix.partition("/")[0]
