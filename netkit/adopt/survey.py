"""Files of devices → the design of each: its NOS, ports, addresses and routing."""

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property, lru_cache
from ipaddress import IPv4Address, IPv4Interface, IPv6Address, IPv6Interface, IPv6Network

from netkit.errors import ConfigError
from netkit.platforms import HOSTS, PLATFORMS
from netkit.platforms.compare import MODELS
from netkit.platforms.config import VERSION, Files
from netkit.platforms.existing import (
    EXISTING,
    ExistingHost,
    ExistingPort,
    ExistingSwitch,
    heading,
    models_named,
)
from netkit.platforms.linux.existing import existing_host, host_config, host_files
from netkit.platforms.registry import optional
from netkit.platforms.routing import BgpNeighbor, HostRoutes, Router

ROUTED_V6 = re.compile(r"([0-9a-fA-F:]+/\d{1,3})[\"']?,?\s+(?:via|Gateway)\b")
NETWORK_V6 = re.compile(r"(?<![\w:.])[0-9a-fA-F]{0,4}:[0-9a-fA-F:]*/\d{1,3}(?!\d)")


@dataclass(frozen=True)
class SurveyedSwitch:
    """A switch whose configuration was read."""

    name: str
    platform: str
    existing: ExistingSwitch
    router: Router
    networks_v6: frozenset[IPv6Network] = frozenset()
    """All IPv6 networks in its files."""
    numbered: frozenset[str] = frozenset()
    """Addresses of the neighbours that are other switches of the fabric."""

    @cached_property
    def sessions(self) -> tuple[BgpNeighbor, ...]:
        """The BGP sessions with other switches, by port."""
        return tuple(one for one in self.router.sessions if not one.address or one.address in self.numbered)

    @cached_property
    def external(self) -> tuple[BgpNeighbor, ...]:
        """The neighbours outside the fabric, by address."""
        return tuple(one for one in self.router.external if one.interface not in self.numbered)

    @cached_property
    def ports(self) -> Mapping[str, ExistingPort]:
        return {port.name: port for port in self.existing.ports}

    @cached_property
    def addresses(self) -> Mapping[str, IPv4Interface]:
        """The first address of each interface."""
        found: dict[str, IPv4Interface] = {}
        for interface, address in self.router.addresses:
            if isinstance(address, IPv4Interface):
                found.setdefault(interface, address)
        return found

    @cached_property
    def fabric_ports(self) -> frozenset[str]:
        """The ports with a BGP session to another switch."""
        return frozenset(neighbor.interface for neighbor in self.sessions)

    @cached_property
    def members(self) -> Mapping[str, str]:
        """Access port → the interface of its VLAN, if that has an address."""
        return {port: interface for port, interface in self.router.members if interface in self.addresses}

    @cached_property
    def host_ports(self) -> tuple[str, ...]:
        """The ports with an address, or in a VLAN with one, outside the external networks."""
        external = [IPv4Address(neighbor.interface) for neighbor in self.external]

        def is_external(port: str) -> bool:
            network = self.addresses[port].network
            return any(peer in network for peer in external)

        routed = (
            port
            for port in self.ports
            if port in self.addresses and port not in self.fabric_ports and not is_external(port)
        )
        return tuple(dict.fromkeys((*routed, *(port for port in self.members if port in self.ports))))

    @property
    def asn(self) -> int:
        """The AS number; 0 where none is known."""
        return self.router.asn or self.existing.asn or 0

    @property
    def loopback(self) -> IPv4Interface | None:
        """The address that is the router ID, else the first /32."""
        own = [address for _, address in self.router.addresses if isinstance(address, IPv4Interface)]
        whole = [address for address in own if address.network.prefixlen == 32]
        named = (address for address in whole if str(address.ip) == self.router.router_id)
        return next(named, whole[0] if whole else None)

    @property
    def loopback_v6(self) -> IPv6Interface | None:
        return next((one for one in self.existing.addresses_v6.values() if one.network.prefixlen == 128), None)

    @property
    def management_v6(self) -> IPv6Interface | None:
        """The address beside the gateway of a default route, on an interface that is not a port."""
        gateways = [IPv6Address(via) for via in self.existing.gateways_v6]
        own = ((name, one) for name, one in self.existing.addresses_v6.items() if name not in self.ports)
        return next((one for _, one in own if any(via in one.network for via in gateways)), None)


@dataclass(frozen=True)
class SurveyedHost:
    """A GPU host whose files were read."""

    name: str
    existing: ExistingHost
    routes: HostRoutes
    networks_v6: frozenset[IPv6Network] = frozenset()
    """All IPv6 networks in its files."""
    routed_v6: frozenset[IPv6Network] = frozenset()
    """Those with a next hop."""


@dataclass(frozen=True)
class NothingRead:
    """The reason why there is nothing to adopt of a device, and whether its files cannot be parsed at all."""

    reason: str
    is_damaged: bool = False


Read = SurveyedSwitch | SurveyedHost | NothingRead


@dataclass(frozen=True)
class Survey:
    """Every device that was read, and the reason for each that was not."""

    switches: Mapping[str, SurveyedSwitch] = field(default_factory=dict)
    hosts: Mapping[str, SurveyedHost] = field(default_factory=dict)
    beside: Mapping[str, SurveyedSwitch] = field(default_factory=dict)
    """Switches of networks beside the rails: VLANs or LAGs, no session to another switch, and nothing lossless."""
    unread: Mapping[str, str] = field(default_factory=dict)
    damaged: frozenset[str] = frozenset()
    """Those of them whose files cannot be parsed."""


def survey(devices: Iterable[tuple[str, Files]]) -> Survey:
    """Read the files of devices."""
    return survey_of((name, read_device(name, files)) for name, files in devices)


def read_device(name: str, files: Files) -> Read:
    """Read the files of a device; its platform follows from them."""
    try:
        found = _device(name, files)
    except ConfigError as error:
        return NothingRead(str(error.problems[0]), is_damaged=True)
    if found is None:
        is_known = host_files(files) or any(MODELS[one].reads(file) for one in PLATFORMS for file in files)
        return NothingRead("no port is configured on it" if is_known else "it has no file of a known platform")
    return found


def survey_of(devices: Iterable[tuple[str, Read]]) -> Survey:
    """The survey of devices that were read."""
    switches: dict[str, SurveyedSwitch] = {}
    hosts: dict[str, SurveyedHost] = {}
    unread: dict[str, NothingRead] = {}
    for name, found in devices:
        if isinstance(found, SurveyedSwitch):
            switches[name] = found
        elif isinstance(found, SurveyedHost):
            hosts[name] = found
        else:
            unread[name] = found
    every = dict(_with_numbered(switches))
    has_lossless = any(switch.existing.qos.lossless for switch in every.values())
    beside = {name: one for name, one in every.items() if (has_lossless or one.existing.lags) and _is_beside(one)}
    fabric = {name: one for name, one in every.items() if name not in beside}
    reasons = {name: one.reason for name, one in unread.items()}
    return Survey(fabric, hosts, beside, reasons, frozenset(name for name, one in unread.items() if one.is_damaged))


def _is_beside(switch: SurveyedSwitch) -> bool:
    existing = switch.existing
    has_vlans = bool(existing.lags) or any(port.vlan or port.tagged for port in existing.ports)
    has_vlans |= bool(existing.vlans) and all(port.name in switch.addresses for port in existing.ports)
    is_joined = any(session.interface in switch.ports for session in switch.sessions)
    return (
        PLATFORMS[switch.platform].renders_access and has_vlans and not is_joined and not switch.existing.qos.lossless
    )


def _with_numbered(switches: Mapping[str, SurveyedSwitch]) -> Iterator[tuple[str, SurveyedSwitch]]:
    """Yield each switch with its neighbours by address within the fabric.

    These have the address of a switch that was read; or were not read, and have the policies of sessions within the
    fabric, or the AS number and the policies of another neighbor of the switch there.
    """
    owners = {str(one.ip): name for name, switch in switches.items() for _, one in switch.router.addresses}
    sessions = {name: [one for one in switch.router.sessions if one.address] for name, switch in switches.items()}
    known = {
        name: {one.address for one in found if owners.get(one.address, name) != name}
        for name, found in sessions.items()
    }
    policies = {
        (switch.platform, one.inbound, one.outbound)
        for name, switch in switches.items()
        for one in (switch.router.sessions if any(known.values()) else ())
        if (not one.address or one.address in known[name]) and one.inbound and one.outbound
    }
    for name, switch in switches.items():
        alike = {
            one.address
            for one in sessions[name]
            if (switch.platform, one.inbound, one.outbound) in policies and one.address not in owners
        }
        peers = {(one.remote_asn, one.inbound, one.outbound) for one in sessions[name] if one.address in known[name]}
        alike |= {
            one.address
            for one in sessions[name]
            if (one.remote_asn, one.inbound, one.outbound) in peers and one.remote_asn and one.address not in owners
        }
        yield name, replace(switch, numbered=frozenset(known[name] | alike))


def _device(name: str, files: Files) -> SurveyedSwitch | SurveyedHost | None:
    """Read a device as the platform of which it has the most files, and of several the one with the most ports."""
    fitting: dict[int, list[tuple[str, Files]]] = defaultdict(list)
    for platform in (HOSTS, *PLATFORMS):  # a lone netplan.yaml is more likely that of a host
        model = MODELS[platform]
        read = {file: text for file, text in files.items() if model.reads(file)}
        own = host_files(files) if platform == HOSTS else read
        fitting[len(own)].append((platform, own))
    for count in sorted(fitting.keys() - {0}, reverse=True):
        found = [
            device
            for platform, own in fitting[count]
            if (device := _as(platform, name, own, files.get(VERSION, "").strip()))
        ]
        if best := max(found, key=_ports, default=None):
            return best
    return None


def _ports(device: SurveyedSwitch | SurveyedHost) -> int:
    return len(device.ports if isinstance(device, SurveyedSwitch) else device.existing.nics)


def _as(platform: str, name: str, files: Files, read_version: str) -> SurveyedSwitch | SurveyedHost | None:
    """Read files as those of a platform; None if they describe no port, no VLAN and no loopback then."""
    model = MODELS[platform]
    found: SurveyedSwitch | SurveyedHost | None = None
    if model.host_routes is not None:
        config = host_config(files)
        host = existing_host(config)
        texts = files if any(nic.address_v6 for nic in host.nics) else {}
        networks, routed = _networks_v6(texts), _networks_v6(texts, ROUTED_V6)
        found = SurveyedHost(name, host, model.host_routes(config), networks, routed)
    elif model.router is not None and optional(platform, "existing"):
        config = model.parse(files)
        existing, above = EXISTING[platform](config), heading(platform, files)
        models, version = (
            existing.models or models_named(above.model),
            read_version or existing.version or above.version,
        )
        existing = replace(existing, models=models, version=version)
        networks = _networks_v6(files if existing.addresses_v6 else {})
        found = SurveyedSwitch(name, platform, existing, model.router(config), networks)
    is_switch = isinstance(found, SurveyedSwitch) and bool(found.existing.vlans or found.loopback)
    return found if found and (_ports(found) or is_switch) else None


def _networks_v6(files: Files, pattern: re.Pattern[str] = NETWORK_V6) -> frozenset[IPv6Network]:
    """Return the IPv6 networks in files, whatever they stand for: pools are among them."""
    tokens = {token for text in files.values() for token in pattern.findall(text)}
    return frozenset(filter(None, map(_network_v6, tokens)))


@lru_cache(10_000)
def _network_v6(text: str) -> IPv6Network | None:
    try:
        network = IPv6Network(text)
    except ValueError:
        return None
    return network if 0 < network.prefixlen < 128 else None


def rails_of(host: SurveyedHost) -> Iterator[tuple[str, IPv4Interface]]:
    """Yield (interface, address) of the NICs of a host that have an address."""
    for rail in host.routes.rails:
        if rail.addresses and isinstance(rail.addresses[0], IPv4Interface):
            yield rail.interface, rail.addresses[0]
