"""A designed fabric → the objects that a source of truth is to hold, in the order in which they need each other."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from ipaddress import IPv4Interface, ip_interface

from netkit.design.fabric import Fabric, Host, Switch
from netkit.platforms import PLATFORMS

Key = tuple[str, ...]
"""What finds an object among those of its kind."""
LOWEST_RACK_U = 48
PRIVATE_ASNS = (range(64512, 65535), range(4200000000, 4294967295))


@dataclass(frozen=True, slots=True)
class Ref:
    """Another wanted object."""

    kind: str
    key: Key


@dataclass(frozen=True, slots=True)
class Wanted:
    """An object that should exist."""

    kind: str
    key: Key
    managed: Mapping[str, object] = field(default_factory=dict)
    """Values that are kept as the intent has them."""
    initial: Mapping[str, object] = field(default_factory=dict)
    """Values that an object gets when it is created, and that are whose it is afterwards."""
    claimed: Mapping[str, object] = field(default_factory=dict)
    """Values that an object has or does not have yet; one with another value is left unchanged."""


def wanted(fabric: Fabric, site: str) -> list[Wanted]:
    """What a fabric needs at a site."""
    every: tuple[Switch | Host, ...] = (*fabric.switches, *fabric.hosts)
    found = [
        Wanted("site", (site,)),
        *_models(every),
        *_racks(every, site),
        Wanted("custom field", ("asn",), claimed={"type": "integer"}),
        *(_device(device, site) for device in every),
        *_ports(fabric),
        *_cables(fabric),
        *_prefixes(fabric),
        *_addresses(fabric),
        *(Wanted("asn", (str(asn),)) for asn in sorted({one.asn for one in fabric.switches}) if _is_private(asn)),
    ]
    return list({(one.kind, one.key): one for one in reversed(found)}.values())[::-1]


def _is_private(asn: int) -> bool:
    return any(asn in numbers for numbers in PRIVATE_ASNS)


def _models(every: Iterable[Switch | Host]) -> Iterator[Wanted]:
    models = {device.model.name: device.model for device in every}.values()
    yield from (Wanted("manufacturer", (model.vendor,)) for model in models)
    for model in models:
        maker = Ref("manufacturer", (model.vendor,))
        height = {"u_height": model.height_u or 1}
        yield Wanted("device type", (model.vendor, model.name), initial={"manufacturer": maker, **height})
    yield from (Wanted("role", (role,)) for role in dict.fromkeys(map(_role, every)))


def _role(device: Switch | Host) -> str:
    return device.role if isinstance(device, Switch) else "host"


def _racks(every: Iterable[Switch | Host], site: str) -> Iterator[Wanted]:
    tops: dict[str, int] = {}
    for device in every:
        if device.rack:
            top = (device.rack_unit or 1) + (device.model.height_u or 1) - 1
            tops[device.rack] = max(top, tops.get(device.rack, LOWEST_RACK_U))
    for rack, top in sorted(tops.items()):
        yield Wanted("rack", (site, rack), initial={"site": Ref("site", (site,)), "u_height": top})


def _device(device: Switch | Host, site: str) -> Wanted:
    managed: dict[str, object] = {"serial": device.serial} if device.serial else {}
    if device.rack:
        managed["rack"] = Ref("rack", (site, device.rack))
    if device.rack and device.rack_unit:
        managed |= {"position": device.rack_unit, "face": "front"}
    if isinstance(device, Switch):
        managed["asn"] = device.asn
    model = device.model
    initial = {"device_type": Ref("device type", (model.vendor, model.name)), "role": Ref("role", (_role(device),))}
    return Wanted("device", (device.name,), managed, initial, {"site": Ref("site", (site,))})


def _ports(fabric: Fabric) -> Iterator[Wanted]:
    for switch in fabric.switches:
        platform = PLATFORMS[switch.platform]
        if switch.management:
            yield _port(switch.name, platform.management_port, "management")
        yield _port(switch.name, platform.loopback_port, "virtual")
        if switch.vlan:
            yield _port(switch.name, platform.vlan_port.format(number=switch.vlan.number), "virtual")
        yield from (_port(switch.name, port.name, f"{port.speed_gbps}G") for port in switch.ports)
        yield from _beside_ports(switch)
        yield from (_port(switch.name, port.name, f"{port.split.speed_gbps}G") for port in switch.external)
    for host in fabric.hosts:
        if host.management:
            yield _port(host.name, host.management_interface, "management")
        yield from (_port(host.name, nic.interface, f"{host.model.speed_gbps}G") for nic in host.nics)
        for one in host.attachments:
            yield from _lag(host.name, one.interface, one.members)


def _beside_ports(switch: Switch) -> Iterator[Wanted]:
    """Yield what a switch of a network beside the rails has, and the NICs of hosts on it."""
    access, platform = switch.access, PLATFORMS[switch.platform]
    if access is None:
        return
    for vlan in access.vlans:
        if vlan.address:
            yield _port(switch.name, platform.vlan_port.format(number=vlan.number), "virtual")
    for port in access.ports:
        yield _port(switch.name, port.name, f"{port.speed_gbps}G")
        if port.kind == "host":
            yield _port(port.peer, port.peer_port, f"{port.speed_gbps}G")
    for lag in access.lags:
        yield from _lag(switch.name, platform.lag_port.format(number=lag.number), [port.name for port in lag.ports])


def _lag(device: str, name: str, members: Iterable[str]) -> Iterator[Wanted]:
    """Yield a LAG and its members; nothing if it has none."""
    for number, member in enumerate(members):
        if number == 0:
            yield _port(device, name, "lag")
        yield Wanted("lag member", (device, member), claimed={"lag": Ref("interface", (device, name))})


def _port(device: str, name: str, kind: str) -> Wanted:
    return Wanted("interface", (device, name), initial={"device": Ref("device", (device,)), "type": kind})


def _cables(fabric: Fabric) -> Iterator[Wanted]:
    for link in fabric.cables():
        one, other = sorted([(link.device, link.port), (link.peer, link.peer_port)])
        managed: dict[str, object] = {"length": round(link.cable.length_m, 2)}
        if link.label:
            managed["label"] = link.label
        yield Wanted("cable", (*one, *other), managed, {"a": Ref("interface", one), "b": Ref("interface", other)})


def _prefixes(fabric: Fabric) -> Iterator[Wanted]:
    """Yield prefixes, larger ones first; the first of several equal ones counts, and that has addresses."""
    ends = [prefix for switch in fabric.switches for prefix in _networks(switch)]
    ends += filter(None, [fabric.loopback_pool, fabric.loopback_pool_v6])
    pools = [*(rail.prefix for rail in fabric.rails), fabric.host_pool]
    pools += filter(None, [*(rail.prefix_v6 for rail in fabric.rails), fabric.host_pool_v6])
    for prefix in pools:
        if prefix not in ends:
            yield Wanted("prefix", (prefix,), initial={"is_container": True})
    for prefix in dict.fromkeys(ends):
        yield Wanted("prefix", (prefix,), initial={"is_container": False})


def _networks(switch: Switch) -> Iterator[str]:
    yield from filter(None, [switch.leaf_prefix, switch.leaf_prefix_v6])
    yield from (_network(address) for address in _management(switch))
    if switch.access:
        yield f"{switch.loopback}/32"  # which the pool of loopbacks does not have
    yield from (vlan.prefix for vlan in (switch.access.vlans if switch.access else ()) if vlan.prefix)
    yield from (_network(port.address) for port in switch.external)
    yield from (_network(port.address) for port in switch.fabric_ports if port.role == "up" and port.address)


def _management(switch: Switch) -> Iterator[str]:
    """The addresses of the management port, with their lengths."""
    if one := switch.management:
        yield f"{one.address}/{one.prefix_length}"
        if one.address_v6:
            yield f"{one.address_v6}/{one.prefix_length_v6}"


def _network(address: str) -> str:
    return str(ip_interface(address).network)


def _addresses(fabric: Fabric) -> Iterator[Wanted]:
    """Yield every address with its interface, and then the primary addresses of each device.

    What both switches of a pair answer for is at no single interface, and left out.
    """
    primary: dict[tuple[str, bool], str] = {}
    """By device, and whether it is of IPv6."""
    for switch in fabric.switches:
        yield from (_address(address, switch.name, port) for address, port in _of_switch(switch))
        for address in (*_loopbacks(switch), *_management(switch)):
            primary[(switch.name, ":" in address)] = address
    managed = [one.management for one in fabric.switches if one.management]
    networks = {IPv4Interface(f"{one.address}/{one.prefix_length}").network for one in managed}
    for host in fabric.hosts:
        for nic in host.nics:
            yield _address(f"{nic.address}/{nic.prefix_length}", host.name, nic.interface)
            if nic.address_v6:
                yield _address(f"{nic.address_v6}/{nic.prefix_length_v6}", host.name, nic.interface)
        yield from (_address(one.address, host.name, one.interface) for one in host.attachments)
        if host.management:
            own = IPv4Interface(host.management)
            length = next((one.prefixlen for one in networks if own.ip in one), own.network.prefixlen)
            primary[(host.name, False)] = str(own)
            yield _address(f"{own.ip}/{length}", host.name, host.management_interface)
    for (device, is_ipv6), address in primary.items():
        kind, column = ("primary IPv6 address", "primary_ip6") if is_ipv6 else ("primary address", "primary_ip4")
        yield Wanted(kind, (device,), {column: Ref("address", (_host_part(address),))})


def _loopbacks(switch: Switch) -> list[str]:
    return [f"{switch.loopback}/32", *([f"{switch.loopback_v6}/128"] if switch.loopback_v6 else [])]


def _of_switch(switch: Switch) -> Iterator[tuple[str, str]]:
    """Yield each address with its port."""
    platform = PLATFORMS[switch.platform]
    yield from ((address, platform.loopback_port) for address in _loopbacks(switch))
    yield from ((address, platform.management_port) for address in _management(switch))
    vlans = [(switch.vlan.number, (switch.vlan.gateway, switch.vlan.gateway_v6))] if switch.vlan else []
    vlans += [(vlan.number, (vlan.address, "")) for vlan in (switch.access.vlans if switch.access else ())]
    for number, addresses in vlans:
        yield from ((one, platform.vlan_port.format(number=number)) for one in addresses if one)
    for port in switch.ports:
        yield from ((one, port.name) for one in (port.address, port.address_v6) if one)
    yield from ((port.address, port.name) for port in switch.external)


def _address(address: str, device: str, port: str) -> Wanted:
    place = Ref("interface", (device, port))
    return Wanted(
        "address", (_host_part(address),), {"address": str(ip_interface(address))}, claimed={"interface": place}
    )


def _host_part(address: str) -> str:
    return str(ip_interface(address).ip)
