"""Slots → numbers → addresses, and what a change of the intent alters of them on existing devices.

Numbering is pure arithmetic on the ceilings: nothing depends on what else is installed. Pools are cut so that the
outermost ceiling can be raised without moving anything: leaves fill the lower half of a pool from the bottom, spines
its third quarter, core switches the last.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from ipaddress import IPv4Network, IPv6Address, IPv6Network

from netkit.design.fabric import Fabric, Host, Port, Switch
from netkit.intent.model import Intent

LEAF_ASN_OFFSET = 10_000
LEAF_LENGTH_V6 = 64
Values = Mapping[tuple[str, str], str]
"""Quantity and place → the number, as people write it."""


def bits_for(count: int) -> int:
    """The number of bits that distinguish `count` values."""
    return max(count - 1, 0).bit_length()


def dotted_quad(value: int) -> str:
    """Format an IPv4 address; much faster than ipaddress for whole fabrics."""
    return f"{value >> 24}.{value >> 16 & 255}.{value >> 8 & 255}.{value & 255}"


@dataclass(frozen=True)
class Numbering:
    """The numbers of one intent."""

    intent: Intent

    def unit_index(self, pod: int, unit: int) -> int:
        """The index of a unit among all units up to the ceilings."""
        return (pod - 1) * self.intent.ceilings.units + unit - 1

    def leaf_number(self, pod: int, unit: int, rail: int) -> int:
        return self.unit_index(pod, unit) * self.intent.rails + rail

    def spine_number(self, pod: int, plane: int, slot: int) -> int:
        """The number of a spine, from 0. Two-tier fabrics count planes, three-tier fabrics pods."""
        group = plane if self.intent.topology == "two-tier" else pod - 1
        return group * self.intent.ceilings.spines + slot - 1

    def core_number(self, plane: int, slot: int) -> int:
        return plane * self.intent.ceilings.cores + slot - 1

    def host_number(self, pod: int, unit: int, slot: int) -> int:
        return self.unit_index(pod, unit) * self.intent.ceilings.hosts_per_unit + slot - 1

    @cached_property
    def counts(self) -> dict[str, int]:
        """The number of devices of each role at the ceilings."""
        ceilings, switches = self.intent.ceilings, self.intent.switches
        planes = switches.spine.planes if switches.spine and self.intent.topology == "two-tier" else 1
        core_planes = switches.core.planes if switches.core else 0
        return {
            "leaf": ceilings.pods * ceilings.units * self.intent.rails,
            "spine": ceilings.pods * planes * ceilings.spines,
            "core": core_planes * ceilings.cores,
            "host": ceilings.pods * ceilings.units * ceilings.hosts_per_unit,
        }

    def asn(self, role: str, pod: int, number: int) -> int:
        base = self.intent.pools.asn_base
        if role == "leaf":
            return base + LEAF_ASN_OFFSET + number
        if role == "core":
            return base
        return base + 1 + number if self.intent.routing.spine_asn == "unique" else base + pod

    def loopback(self, role: str, number: int) -> str:
        return dotted_quad(_in_pool(self.intent.pools.loopbacks, role, number, 1))

    def management(self, role: str, number: int) -> str:
        """The out-of-band address of a switch; the intent must have a management pool."""
        management = self.intent.management
        return dotted_quad(_in_pool(management.pool, role, number, management.first_offset)) if management else ""

    def loopback_v6(self, role: str, number: int) -> str:
        """The IPv6 loopback, at the place in its pool that the IPv4 one has; empty without a pool."""
        pools = self.intent.pools
        return str(pools.loopbacks_v6[_offset(pools.loopbacks, role, number, 1)]) if pools.loopbacks_v6 else ""

    def management_v6(self, role: str, number: int) -> str:
        """The out-of-band IPv6 address; empty without a pool."""
        management = self.intent.management
        if management is None or management.pool_v6 is None:
            return ""
        return str(management.pool_v6[_offset(management.pool, role, number, management.first_offset)])

    @cached_property
    def rail_length(self) -> int:
        """The default prefix length of a rail."""
        return self.intent.pools.hosts.prefixlen + bits_for(self.intent.rails)

    @cached_property
    def own_rails(self) -> dict[int, IPv4Network]:
        """The prefixes that a table gives rails."""
        return {entry.rail: entry.prefix for entry in self.intent.tables.rails if entry.prefix}

    @cached_property
    def own_rails_v6(self) -> dict[int, IPv6Network]:
        """The same of IPv6."""
        return {entry.rail: entry.prefix_v6 for entry in self.intent.tables.rails if entry.prefix_v6}

    @cached_property
    def vlans(self) -> dict[int, int]:
        """The VLANs that a table gives rails."""
        return {entry.rail: entry.vlan for entry in self.intent.tables.rails if entry.vlan}

    @cached_property
    def link_length(self) -> int:
        """The prefix length of a routed link to a host NIC."""
        return self.intent.pools.link_length or self.longest_link

    @cached_property
    def longest_link(self) -> int:
        """The prefix length that just suffices: a /31, or room for gateway, host, pods and broadcast."""
        addresses = self.intent.ceilings.addresses_per_nic
        return 31 if addresses == 1 else 32 - bits_for(addresses + 3)

    @cached_property
    def leaf_length(self) -> int:
        """The prefix length of a leaf."""
        return self.intent.pools.leaf_length or self.longest_leaf

    @cached_property
    def longest_leaf(self) -> int:
        """The prefix length that just suffices: a link for each host, or one subnet with gateway and broadcast."""
        hosts, addresses = self.intent.ceilings.hosts_per_unit, self.intent.ceilings.addresses_per_nic
        if self.intent.attachment == "p2p":
            return self.link_length - bits_for(hosts)
        return 32 - bits_for((hosts + 1) * addresses + 2)

    def host_address(self, leaf_base: int, slot: int) -> tuple[int, int]:
        """The gateway and the address of the NIC in a slot; the addresses of its pods follow.

        A subnet is cut into blocks of `addresses_per_nic` behind its network address. The gateway is the first address
        of block 0, and the host in slot n that of block n: each block has the same number of addresses left for pods.
        """
        if self.intent.attachment == "vlan":
            return leaf_base + 1, leaf_base + 1 + slot * self.intent.ceilings.addresses_per_nic
        link = leaf_base + ((slot - 1) << (32 - self.link_length))
        gateway = link if self.link_length == 31 else link + 1
        return gateway, gateway + 1

    def rail_prefix(self, rail: int) -> str:
        own = self.own_rails.get(rail)
        return str(own) if own else f"{dotted_quad(self.rail_base(rail))}/{self.rail_length}"

    def rail_base(self, rail: int) -> int:
        """The first address of a rail, as an integer."""
        if own := self.own_rails.get(rail):
            return int(own.network_address)
        return int(self.intent.pools.hosts.network_address) + (rail << (32 - self.rail_length))

    def leaf_base(self, pod: int, unit: int, rail: int) -> int:
        """The first address of a leaf's prefix, as an integer."""
        return self.rail_base(rail) + (self.unit_index(pod, unit) << (32 - self.leaf_length))

    @cached_property
    def link_length_v6(self) -> int:
        """The IPv6 prefix length of a routed link to a host NIC, with the same bits for hosts as that of IPv4."""
        return self.link_length + 96

    @cached_property
    def rail_length_v6(self) -> int:
        """The IPv6 prefix length of a rail; the intent must have a pool."""
        pool = self.intent.pools.hosts_v6
        return (pool.prefixlen if pool else 0) + bits_for(self.intent.rails)

    def rail_prefix_v6(self, rail: int) -> str:
        """The IPv6 prefix of a rail; empty without a pool."""
        if own := self.own_rails_v6.get(rail):
            return str(own)
        return f"{IPv6Address(self.rail_base_v6(rail))}/{self.rail_length_v6}" if self.intent.pools.hosts_v6 else ""

    def rail_base_v6(self, rail: int) -> int:
        pool = self.intent.pools.hosts_v6
        if own := self.own_rails_v6.get(rail):
            return int(own.network_address)
        return int(pool.network_address) + (rail << (128 - self.rail_length_v6)) if pool else 0

    def leaf_base_v6(self, pod: int, unit: int, rail: int) -> int:
        """The first IPv6 address of a leaf's prefix, as an integer; 0 without a pool."""
        first = self.rail_base_v6(rail)
        return first + (self.unit_index(pod, unit) << (128 - LEAF_LENGTH_V6)) if first else 0

    def link_addresses(self, role: str, lower: int, slot: int, link: int) -> tuple[int, int]:
        """The addresses of the lower and the upper end of a link between switches; the intent must have a pool.

        `lower` is the number of the lower switch, `slot` that of the upper one; `link` counts parallel links from 0.
        """
        pool, ceilings, switches = self.intent.pools.links, self.intent.ceilings, self.intent.switches
        first = int(pool.network_address) if pool else 0
        if role == "leaf":
            place = (lower * ceilings.spines + slot - 1) * switches.leaf.uplinks_per_spine + link
        else:
            first += pool.num_addresses // 2 if pool else 0
            parallel = switches.spine.uplinks_per_core if switches.spine else 1
            place = (lower * ceilings.cores + slot - 1) * parallel + link
        return first + 2 * place + 1, first + 2 * place

    def link_needs(self) -> dict[str, tuple[int, int]]:
        """Return, by role of the lower switch, the addresses of links needed at the ceilings and those available."""
        pool, ceilings, switches = self.intent.pools.links, self.intent.ceilings, self.intent.switches
        if pool is None or switches.spine is None:
            return {}
        leaves = 2 * self.counts["leaf"] * ceilings.spines * switches.leaf.uplinks_per_spine
        if switches.core is None:
            return {"leaf": (leaves, pool.num_addresses)}
        spines = 2 * self.counts["spine"] * ceilings.cores * switches.spine.uplinks_per_core
        return {"leaf": (leaves, pool.num_addresses // 2), "spine": (spines, pool.num_addresses // 2)}

    def pool_needs(self) -> dict[str, tuple[int, int]]:
        """Return, by role, the loopbacks needed at the ceilings and those available."""
        pool, needs = self.intent.pools.loopbacks, self.counts
        return {role: (needs[role] + 1, _share(pool, role)[1]) for role in ("leaf", "spine", "core") if needs[role]}

    def management_needs(self) -> dict[str, tuple[int, int]]:
        """The same for the management pool."""
        management, needs = self.intent.management, self.counts
        if not management:
            return {}
        shares = {role: _share(management.pool, role)[1] for role in ("leaf", "spine", "core")}
        last = {"leaf": 0, "spine": 0, "core": 1}  # the broadcast address ends the cores' part
        return {
            role: (needs[role] + management.first_offset + last[role], shares[role]) for role in shares if needs[role]
        }


def _share(pool: IPv4Network, role: str) -> tuple[int, int]:
    """The start and the size of a role's part of a pool."""
    size = pool.num_addresses
    return {"leaf": (0, size // 2), "spine": (size // 2, size // 4), "core": (size * 3 // 4, size // 4)}[role]


def _offset(pool: IPv4Network, role: str, number: int, first: int) -> int:
    return _share(pool, role)[0] + first + number


def _in_pool(pool: IPv4Network, role: str, number: int, first: int) -> int:
    return int(pool.network_address) + _offset(pool, role, number, first)


@dataclass(frozen=True, slots=True)
class RenumberedValue:
    """A number that changed, at one place or at many."""

    quantity: str
    running: str
    intended: str
    places: tuple[str, ...]
    """Several places with different numbers show the first as an example."""


def renumbered(running: Fabric, intended: Fabric) -> tuple[RenumberedValue, ...]:
    """The changed numbers of devices in both designs, equal changes together."""
    found: dict[tuple[str, ...], list[tuple[str, str, str]]] = {}
    devices: tuple[Switch | Host, ...] = (*intended.switches, *intended.hosts)
    for device in devices:
        known = running.device(device.name)
        if known is None or type(known) is not type(device):
            continue
        before, after = dict(_values(known)), dict(_values(device))
        for key in before.keys() & after.keys():
            if before[key] != after[key]:
                quantity, place = key
                same = (quantity,) if quantity in OWN else (quantity, before[key], after[key])
                found.setdefault(same, []).append((place, before[key], after[key]))
    values = []
    for (quantity, *_), rows in sorted(found.items()):
        rows.sort()
        _, was, now = rows[0]
        values.append(RenumberedValue(quantity, was, now, tuple(place for place, _, _ in rows)))
    return tuple(values)


OWN = frozenset({"AS number", "loopback", "prefix", "management address", "port address", "NIC address", "NIC gateway"})
"""Numbers that are unique to each place."""


def _values(device: Switch | Host) -> Iterator[tuple[tuple[str, str], str]]:
    yield ("model", device.name), device.model.name
    if isinstance(device, Host):
        for nic in device.nics:
            yield ("NIC address", f"{device.name}:{nic.interface}"), f"{nic.address}/{nic.prefix_length}"
            yield ("NIC gateway", f"{device.name}:{nic.interface}"), nic.gateway
        return
    management = device.management
    own = {
        "NOS": f"{device.platform} {device.version}",
        "AS number": str(device.asn),
        "loopback": device.loopback,
        "prefix": device.leaf_prefix,
        "management address": f"{management.address}/{management.prefix_length}" if management else "",
        "MTU": f"{device.mtu_bytes} bytes",
    }
    yield from (((quantity, device.name), value) for quantity, value in own.items())
    yield from ((("port address", f"{device.name}:{port.name}"), port.address) for port in device.ports)
    yield from (((f"{quantity} of {of}", device.name), value) for of, quantity, value in _thresholds(device))


def _thresholds(switch: Switch) -> Iterator[tuple[str, str, str]]:
    """Yield the thresholds of each kind of port."""
    kinds: dict[str, Port] = {}
    for port in switch.ports:
        kinds.setdefault(f"{switch.role} ports of {port.speed_gbps}G towards {TOWARDS[port.role]}", port)
    for kind, port in kinds.items():
        ecn, headroom = port.profile.ecn, port.profile.headroom
        yield kind, "ECN minimum", f"{ecn.min_bytes:,} bytes"
        yield kind, "ECN maximum", f"{ecn.max_bytes:,} bytes"
        yield kind, "ECN probability", f"{ecn.probability_percent} %"
        yield kind, "cable length", f"{port.profile.cable.length_m:g} m"
        if headroom is not None:
            yield kind, "headroom", f"{headroom.size_bytes:,} bytes"
            yield kind, "XOFF", f"{headroom.xoff_bytes:,} bytes"


TOWARDS = {"host": "hosts", "up": "the tier above", "down": "the tier below"}
