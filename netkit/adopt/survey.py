"""Files of devices → what each says about the design: which NOS it runs, its ports, addresses and routing."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from ipaddress import IPv4Interface

from netkit.errors import ConfigError
from netkit.platforms import HOSTS, PLATFORMS
from netkit.platforms.compare import MODELS
from netkit.platforms.config import Config, Files
from netkit.platforms.existing import EXISTING, ExistingHost, ExistingPort, ExistingSwitch, heading, models_named
from netkit.platforms.linux.existing import existing_host, host_config, host_files
from netkit.platforms.routing import HostRoutes, Router


@dataclass(frozen=True)
class SurveyedSwitch:
    """A switch whose configuration was read."""

    name: str
    platform: str
    existing: ExistingSwitch
    router: Router

    @cached_property
    def ports(self) -> Mapping[str, ExistingPort]:
        return {port.name: port for port in self.existing.ports}

    @cached_property
    def addresses(self) -> Mapping[str, IPv4Interface]:
        """The first address of each interface."""
        found: dict[str, IPv4Interface] = {}
        for interface, address in self.router.addresses:
            found.setdefault(interface, address)
        return found

    @cached_property
    def fabric_ports(self) -> frozenset[str]:
        """The ports with a BGP session to another switch."""
        return frozenset(neighbor.interface for neighbor in self.router.neighbors)

    @cached_property
    def members(self) -> Mapping[str, str]:
        """Access port → the interface of its VLAN, if that has an address."""
        return {port: interface for port, interface in self.router.members if interface in self.addresses}

    @cached_property
    def host_ports(self) -> tuple[str, ...]:
        """The ports with an address of their own, or in a VLAN with one, outside the external networks."""
        external = {neighbor.interface for neighbor in self.router.external}

        def is_external(port: str) -> bool:
            network = self.addresses[port].network
            return any(peer in map(str, network) for peer in external) if network.prefixlen > 23 else False

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
        whole = [address for _, address in self.router.addresses if address.network.prefixlen == 32]
        named = (address for address in whole if str(address.ip) == self.router.router_id)
        return next(named, whole[0] if whole else None)


@dataclass(frozen=True)
class SurveyedHost:
    """A GPU host whose files were read."""

    name: str
    existing: ExistingHost
    routes: HostRoutes


@dataclass(frozen=True)
class Survey:
    """Every device that was read, and the reason for each that was not."""

    switches: Mapping[str, SurveyedSwitch] = field(default_factory=dict)
    hosts: Mapping[str, SurveyedHost] = field(default_factory=dict)
    unread: Mapping[str, str] = field(default_factory=dict)


def survey(devices: Iterable[tuple[str, Files]]) -> Survey:
    """Read the files of devices; the platform of each follows from its files."""
    switches: dict[str, SurveyedSwitch] = {}
    hosts: dict[str, SurveyedHost] = {}
    unread: dict[str, str] = {}
    for name, files in devices:
        try:
            found = _device(name, files)
        except ConfigError as error:
            unread[name] = str(error.problems[0])
            continue
        if isinstance(found, SurveyedSwitch):
            switches[name] = found
        elif isinstance(found, SurveyedHost):
            hosts[name] = found
        else:
            unread[name] = "no file of a known platform describes a port of the fabric"
    return Survey(switches, hosts, unread)


def _device(name: str, files: Files) -> SurveyedSwitch | SurveyedHost | None:
    """Read a device as the platform of which it has the most files, and then the most ports."""
    found: list[tuple[int, int, SurveyedSwitch | SurveyedHost]] = []
    for platform in (*PLATFORMS, HOSTS):
        model = MODELS[platform]
        is_host = model.host_routes is not None
        own = host_files(files) if is_host else {file: text for file, text in files.items() if model.reads(file)}
        if own and (device := _as(platform, name, host_config(own) if is_host else model.parse(own), own)):
            ports = device.ports if isinstance(device, SurveyedSwitch) else device.existing.nics
            if ports:
                found.append((len(own), len(ports), device))
    return max(found, key=lambda one: one[:2], default=(0, 0, None))[2]


def _as(platform: str, name: str, config: Config, files: Files) -> SurveyedSwitch | SurveyedHost | None:
    model = MODELS[platform]
    if model.host_routes is not None:
        return SurveyedHost(name, existing_host(config), model.host_routes(config))
    try:
        read = EXISTING[platform]
    except (KeyError, AttributeError, ImportError):
        return None
    if model.router is None:
        return None
    existing, above = read(config), heading(platform, files)
    existing = replace(
        existing,
        models=existing.models or models_named(above.model),
        version=existing.version or above.version,
    )
    return SurveyedSwitch(name, platform, existing, model.router(config))


def rails_of(host: SurveyedHost) -> Iterator[tuple[str, IPv4Interface]]:
    """Yield (interface, address) of the NICs of a host that have an address."""
    for rail in host.routes.rails:
        if rail.addresses:
            yield rail.interface, rail.addresses[0]
