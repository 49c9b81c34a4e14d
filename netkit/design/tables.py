"""The fabric as the tables of an intent: with them, an intent designs the same fabric again."""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping

from netkit.design.entries import keys_of
from netkit.design.fabric import Fabric, Host, Switch

TableRow = Mapping[str, object]
"""Column → value; columns that are not there are empty."""


def devices(fabric: Fabric) -> Iterator[TableRow]:
    """Yield a row for each device."""
    vlans = _vlans(fabric)
    systems = {role: {one.platform for one in fabric.tier(role)} for role in ("leaf", "spine", "core")}
    for switch in fabric.switches:
        management, is_mixed = switch.management, len(systems.get(switch.role, ())) > 1
        yield {
            **_place(fabric, switch),
            "model": switch.model.name,
            **({"platform": switch.platform, "version": switch.version} if is_mixed else {}),
            "management": f"{management.address}/{management.prefix_length}" if management else "",
            "management_gateway": management.gateway if management else "",
            "loopback": switch.loopback,
            "asn": switch.asn,
            "prefix": switch.leaf_prefix,
            "vlan": switch.vlan.number if switch.vlan and switch.vlan.number != vlans[switch.rail] else "",
            "vlan_gateway": switch.vlan.gateway.partition("/")[0] if switch.vlan else "",
            **_given(
                management_v6=management.address_v6 if management else "",
                loopback_v6=switch.loopback_v6,
                prefix_v6=switch.leaf_prefix_v6,
            ),
        }
    for host in fabric.hosts:
        yield {**_place(fabric, host), "model": host.model.name, "management": host.management}


def _place(fabric: Fabric, device: Switch | Host) -> TableRow:
    role = device.role if isinstance(device, Switch) else "host"
    return {
        "role": role,
        **{key: getattr(device, key) for key in keys_of(fabric, role)},
        "name": device.name,
        "serial": device.serial,
        "rack": device.rack,
        "rack_unit": device.rack_unit,
    }


def _given(**cells: str) -> TableRow:
    """The columns of IPv6, which only a fabric with IPv6 has."""
    return {column: cell for column, cell in cells.items() if cell}


def cables(fabric: Fabric) -> Iterator[TableRow]:
    """Yield a row for each cable, lower end first."""
    links: Counter[tuple[str, str]] = Counter()
    ports = {(switch.name, port.name): port for switch in fabric.switches for port in switch.ports if port.peer_address}
    for link in fabric.links():
        links[(link.device, link.peer)] += 1
        by_address = ports.get((link.device, link.port))
        yield {
            "device": link.device,
            "port": link.port,
            "peer": link.peer,
            "peer_port": link.peer_port,
            "link": "" if link.kind == "host" else links[(link.device, link.peer)],
            "length_m": f"{link.cable.length_m:.12g}",
            "media": link.cable.media,
            "label": link.label,
            **({"address": by_address.address, "peer_address": by_address.peer_address} if by_address else {}),
        }


def rails(fabric: Fabric) -> Iterator[TableRow]:
    """Yield a row for each rail."""
    vlans = _vlans(fabric)
    for rail in fabric.rails:
        of_ipv6 = _given(prefix_v6=rail.prefix_v6)
        yield {"rail": rail.number, "prefix": rail.prefix, "vlan": vlans.get(rail.number), **of_ipv6}


def _vlans(fabric: Fabric) -> Mapping[int, int]:
    """The VLAN that most leaves of each rail have."""
    found: dict[int, list[int]] = defaultdict(list)
    for leaf in fabric.tier("leaf"):
        if leaf.vlan:
            found[leaf.rail].append(leaf.vlan.number)
    return {rail: Counter(numbers).most_common(1)[0][0] for rail, numbers in found.items()}


def nics(fabric: Fabric) -> Iterator[TableRow]:
    """Yield a row for each rail NIC."""
    for host in fabric.hosts:
        for nic in host.nics:
            gateway, gateway_v6 = (nic.gateway, nic.gateway_v6) if fabric.attachment == "p2p" else ("", "")
            of_ipv6 = _given(address_v6=nic.address_v6, gateway_v6=gateway_v6)
            row = {"host": host.name, "rail": nic.rail, "address": nic.address, "gateway": gateway, "mac": nic.mac}
            yield {**row, **of_ipv6}


TABLES: Mapping[str, Callable[[Fabric], Iterator[TableRow]]] = {
    "devices": devices,
    "cables": cables,
    "rails": rails,
    "nics": nics,
}
