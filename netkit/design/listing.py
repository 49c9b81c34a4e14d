"""The fabric as tables: cables for an installer, addresses for everyone."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from netkit.design.fabric import Fabric, Host, Switch
from netkit.design.plugs import module_at, sockets
from netkit.hardware import Media


@dataclass(frozen=True, slots=True)
class CableRow:
    """One cable with both ends."""

    label: str
    from_device: str
    from_port: str
    from_cage: str
    to_device: str
    to_port: str
    to_cage: str
    kind: str
    speed_gbps: int
    media: str
    length_m: float
    from_module: str
    to_module: str
    from_rack: str
    to_rack: str
    from_rack_unit: str
    to_rack_unit: str


@dataclass(frozen=True, slots=True)
class AddressRow:
    """One address, AS number or prefix of a device."""

    device: str
    role: str
    what: str
    value: str


def cabling(fabric: Fabric, media: Mapping[str, Media]) -> Iterator[CableRow]:
    """Yield every cable; a label that is not given names both ends, whatever else is installed."""
    plugged = sockets(fabric)
    cages = {(switch.name, port.name): str(port.cage) for switch in fabric.switches for port in switch.ports}
    for host in fabric.hosts:
        known = {nic.pci: nic for nic in host.model.rails}
        for nic in host.nics:
            at = known.get(nic.pci)
            socket = f"{at.cage} P{at.cage_port}" if at and at.cage and at.cage_port else ""
            cages[(host.name, nic.interface)] = socket or nic.pci
    cages |= {(device, port): socket.cage for (device, port), socket in plugged.items() if (device, port) not in cages}
    racks = {switch.name: switch.rack for switch in fabric.switches}
    racks |= {host.name: host.rack for host in fabric.hosts}
    units = {switch.name: str(switch.rack_unit or "") for switch in fabric.switches}
    units |= {host.name: str(host.rack_unit or "") for host in fabric.hosts}
    for link in fabric.cables():
        ends = (plugged[(link.device, link.port)], plugged[(link.peer, link.peer_port)])
        modules = [(module_at(end, link.cable.media, media), end.form) for end in ends]
        from_module, to_module = (f"{module} {form}".rstrip() if module else "" for module, form in modules)
        yield CableRow(
            label=link.label or f"{link.device}:{link.port}=={link.peer}:{link.peer_port}",
            from_device=link.device,
            from_port=link.port,
            from_cage=cages[(link.device, link.port)],
            to_device=link.peer,
            to_port=link.peer_port,
            to_cage=cages[(link.peer, link.peer_port)],
            kind=link.kind,
            speed_gbps=link.speed_gbps,
            media=link.cable.media,
            length_m=link.cable.length_m,
            from_module=from_module,
            to_module=to_module,
            from_rack=racks[link.device],
            to_rack=racks[link.peer],
            from_rack_unit=units[link.device],
            to_rack_unit=units[link.peer],
        )


def addresses(fabric: Fabric) -> Iterator[AddressRow]:
    """Yield every address of every device, and its rack if known."""
    for switch in fabric.switches:
        yield from _of_switch(switch)
    for host in fabric.hosts:
        yield from _place(host, "host")
        if host.management:
            yield AddressRow(host.name, "host", "management", host.management)
        for nic in host.nics:
            yield AddressRow(host.name, "host", f"{nic.interface} ({nic.pci})", f"{nic.address}/{nic.prefix_length}")
            if nic.address_v6:
                shown = f"{nic.address_v6}/{nic.prefix_length_v6}"
                yield AddressRow(host.name, "host", f"{nic.interface} IPv6", shown)
        for one in host.attachments:
            yield AddressRow(host.name, "host", f"{one.interface} to {one.network}", one.address)


def _place(device: Switch | Host, role: str) -> Iterator[AddressRow]:
    """Yield the serial number and the rack of a device, where they are known."""
    if device.serial:
        yield AddressRow(device.name, role, "serial number", device.serial)
    if device.rack:
        unit = f", unit {device.rack_unit}" if device.rack_unit else ""
        yield AddressRow(device.name, role, "rack", f"{device.rack}{unit}")


def _ipv6(switch: Switch) -> Iterator[tuple[str, str]]:
    """Yield the IPv6 addresses of a switch; empty where it has none."""
    yield "loopback IPv6", f"{switch.loopback_v6}/128" if switch.loopback_v6 else ""
    if switch.management and switch.management.address_v6:
        yield "management IPv6", f"{switch.management.address_v6}/{switch.management.prefix_length_v6}"
    yield "leaf prefix IPv6", switch.leaf_prefix_v6
    if switch.vlan:
        yield f"vlan {switch.vlan.number} gateway IPv6", switch.vlan.gateway_v6
    yield from ((f"{port.name} IPv6", port.address_v6) for port in switch.host_ports)


def _of_switch(switch: Switch) -> Iterator[AddressRow]:
    yield from _place(switch, switch.role)
    yield AddressRow(switch.name, switch.role, "asn", str(switch.asn))
    yield AddressRow(switch.name, switch.role, "loopback", f"{switch.loopback}/32")
    if switch.management:
        address = f"{switch.management.address}/{switch.management.prefix_length}"
        yield AddressRow(switch.name, switch.role, "management", address)
    yield from (AddressRow(switch.name, switch.role, *row) for row in _ipv6(switch) if row[1])
    if switch.leaf_prefix:
        yield AddressRow(switch.name, switch.role, "leaf prefix", switch.leaf_prefix)
    if switch.vlan:
        yield AddressRow(switch.name, switch.role, f"vlan {switch.vlan.number} gateway", switch.vlan.gateway)
    for port in switch.ports:
        if port.address:
            yield AddressRow(switch.name, switch.role, port.name, port.address)
    for vlan in switch.access.vlans if switch.access else ():
        if vlan.address:
            yield AddressRow(switch.name, switch.role, f"vlan {vlan.number}", vlan.address)
        if vlan.gateway:
            yield AddressRow(switch.name, switch.role, f"vlan {vlan.number} gateway", vlan.gateway)
    for outside in switch.external:
        what = f"{outside.name} to {outside.peer_name}, AS {outside.peer_asn}"
        yield AddressRow(switch.name, switch.role, what, outside.address)
