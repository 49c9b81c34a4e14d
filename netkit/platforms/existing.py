"""The design of a device, read from its running configuration, in one form for every NOS: the input of `adopt`.

Each platform reads its own configuration (module `existing`, attribute `EXISTING`), whoever wrote it. A value that the
configuration does not contain is None or empty; nothing is assumed. Optional: `HEADING` reads the lines above it.
Routing comes from `ConfigModel.router` and `ConfigModel.host_routes`.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from ipaddress import IPv6Interface
from typing import TypeVar

from netkit.hardware import Catalog
from netkit.platforms.config import Config, Files, Path
from netkit.platforms.registry import Parts, optional

T = TypeVar("T")
LONGEST_NUMBER = 18
"""Digits; int() refuses thousands of them."""
WIDEST = 64
"""Of a range such as 0-63: nothing that is counted has more than DSCPs."""


@dataclass(frozen=True, slots=True)
class ExistingEcn:
    """ECN marking of the lossless queue of a port."""

    min_bytes: int
    max_bytes: int
    probability_percent: int
    units: tuple[str, str] | None = None
    """Those of both thresholds, where the NOS has several."""


@dataclass(frozen=True, slots=True)
class ExistingPort:
    """A front-panel port that the configuration names."""

    name: str
    description: str = ""
    split: str = ""
    """How its cage is split, such as 2x400G; 2x where the speed follows from the model; empty: not known."""
    lanes: int | None = None
    """Of the port, not of its cage."""
    speed_gbps: int | None = None
    mtu_bytes: int | None = None
    vlan: int | None = None
    """Its untagged VLAN."""
    tagged: tuple[int, ...] = ()
    cable_m: float | None = None
    is_lossless: bool = False
    ecn: ExistingEcn | None = None
    xoff_bytes: int | None = None
    """Headroom that is given, not computed by the switch."""
    denied: tuple[tuple[int, str, str], ...] = ()
    """(number, source, destination) of what its access list drops; none where that does anything else."""
    alias: str = ""
    """Its other name, which the switch announces by LLDP."""


@dataclass(frozen=True, slots=True)
class ExistingLag:
    """A LAG of ports, of one switch or of a pair."""

    name: str
    members: tuple[str, ...]
    description: str = ""
    vlan: int | None = None
    """Its untagged VLAN."""
    tagged: tuple[int, ...] = ()
    is_between: bool = False
    """Whether it joins the two switches of a pair."""


@dataclass(frozen=True, slots=True)
class ExistingQos:
    """The classes of traffic."""

    dscp_to_priority: Mapping[int, int] = field(default_factory=dict)
    lossless: tuple[int, ...] = ()
    """Priorities with PFC."""
    strict: tuple[int, ...] = ()
    """Priorities whose queue is served first; without those that a NOS reserves for its own packets."""
    weights: Mapping[int, int] = field(default_factory=dict)
    """Priority → share of its queue, of those in use."""
    cnp_shape_percent: int | None = None
    watchdog_poll_ms: int | None = None
    watchdog_detection_ms: int | None = None
    watchdog_restoration_ms: int | None = None
    watchdog_action: str = ""
    pool_percent: int | None = None


@dataclass(frozen=True, slots=True)
class ExistingServices:
    """Services beside the fabric. SNMP and login without their secrets."""

    ntp: tuple[str, ...] = ()
    dns: tuple[str, ...] = ()
    syslog: tuple[tuple[str, int, str], ...] = ()
    """(address, port, protocol); 514 and udp, which is syslog's own, where the configuration has none"""
    snmp_users: tuple[str, ...] = ()
    snmp_location: str = ""
    snmp_contact: str = ""
    users: tuple[str, ...] = ()
    timezone: str = ""


@dataclass(frozen=True, slots=True)
class ExistingSessions:
    """The timers of most sessions; None: no BGP, no BFD, or a NOS without this timer. What those by address have."""

    keepalive_s: int | None = None
    hold_s: int | None = None
    connect_s: int | None = None
    bfd_interval_ms: int | None = None
    bfd_multiplier: int | None = None
    limits: Mapping[str, int] = field(default_factory=dict)
    """Address of a neighbour → the prefixes that it may announce."""
    with_bfd: frozenset[str] = frozenset()
    """Addresses of neighbours with BFD."""


@dataclass(frozen=True, slots=True)
class ExistingSwitch(ExistingSessions):
    """A switch as its running configuration describes it."""

    hostname: str = ""
    models: tuple[str, ...] = ()
    """Models of the catalogue that the configuration fits; empty: it does not name the model."""
    routing_mode: str = "split"
    """As the intent has it."""
    generated: tuple[Path, ...] = ()
    """Configuration that a NOS makes by itself, in a mode that netkit does not render."""
    version: str = ""
    """Release, where the configuration names it."""
    asn: int | None = None
    """Of a switch without BGP, where the NOS keeps it anyway."""
    system_mac: str = ""
    management: str = ""
    """Address with prefix length."""
    management_gateway: str = ""
    allow: tuple[str, ...] | None = None
    """The networks that may log in; empty: no list, or one that says more; None: the NOS has none."""
    access_lists: Mapping[str, str] = field(default_factory=dict)
    """netkit's list → the one that serves the same, where its place does not show which."""
    ports: tuple[ExistingPort, ...] = ()
    vlans: Mapping[int, str] = field(default_factory=dict)
    """VLAN → its interface in the routing model."""
    vlan_names: Mapping[int, str] = field(default_factory=dict)
    vlan_mtu_bytes: int | None = None
    """Of most gateways of VLANs."""
    vlan_gateways: Mapping[int, str] = field(default_factory=dict)
    """VLAN → the address that both switches of a pair answer for."""
    lags: tuple[ExistingLag, ...] = ()
    pair_name: str = ""
    """What both switches of a pair call it, where the NOS has that."""
    qos: ExistingQos = ExistingQos()
    services: ExistingServices = ExistingServices()
    adaptive_routing: bool | None = None
    addresses_v6: Mapping[str, IPv6Interface] = field(default_factory=dict)
    """The first of each interface, whatever its VRF; not link-local ones."""
    gateways_v6: tuple[str, ...] = ()
    """Of default routes, whatever their VRF."""


@dataclass(frozen=True, slots=True)
class ExistingHeading:
    """Data about the switch in the lines above its configuration; empty: none."""

    model: str = ""
    """In the vendor's words, such as DCS-7060X6-64PE-F."""
    version: str = ""


@dataclass(frozen=True, slots=True)
class ExistingNic:
    """A NIC of a host that its network configuration names and gives addresses."""

    interface: str
    pci: str = ""
    """PCI address such as 0000:18:00.0, where names are bound to them."""
    mac: str = ""
    mtu_bytes: int | None = None
    note: str = ""
    """Comment or description that may name the other end."""
    address_v6: IPv6Interface | None = None
    address: str = field(default="", compare=False)
    """The last one of IPv4, with prefix length."""
    routes: tuple[str, ...] = field(default=(), compare=False)
    """Prefixes behind a gateway, in the main table; of units of networkd only."""


@dataclass(frozen=True, slots=True)
class ExistingNicQos:
    """What the host sets on its NICs."""

    priority: int | None = None
    """The lossless one."""
    dscp: int | None = None
    """Of RoCE data."""
    cnp_dscp: int | None = None
    cnp_priority: int | None = None
    dscp_to_priority: Mapping[int, int] = field(default_factory=dict)
    weights: Mapping[int, int] = field(default_factory=dict)
    """Traffic class → share, of those in use that are not strict."""


@dataclass(frozen=True, slots=True)
class ExistingHost:
    """A GPU host as its files describe it. Its name is that of its folder: no file of the network contains it."""

    models: tuple[str, ...] = ()
    """Models of the catalogue with rail NICs at these PCI addresses; empty: none, or the addresses are not known."""
    backend: str = ""
    """As the intent has it: netplan or networkd."""
    management_interface: str = ""
    nics: tuple[ExistingNic, ...] = ()
    qos: ExistingNicQos = ExistingNicQos()


EXISTING: Mapping[str, Callable[[Config], ExistingSwitch]] = Parts("existing", "EXISTING", has_hosts=False)


def heading(platform: str, files: Files) -> ExistingHeading:
    """Read model and release where the NOS writes them into its configurations."""
    read: Callable[[Files], ExistingHeading] | None = getattr(optional(platform, "existing"), "HEADING", None)
    return read(files) if read else ExistingHeading()


@cache
def models_named(name: str) -> tuple[str, ...]:
    """The model of the shipped catalogue with a vendor's name for it, which may add the direction of air."""
    known = Catalog().names("switches")
    fitting = [model for model in known if name in {model, f"M{model}"} or name.startswith(f"{model}-")]
    return tuple(sorted(fitting, key=len)[-1:])


def addresses_v6(rows: Iterable[tuple[str, str]]) -> dict[str, IPv6Interface]:
    """The first IPv6 address by interface, of all (interface, address) there are."""
    found: dict[str, IPv6Interface] = {}
    for name, text in rows:
        if ":" in text and "/" in text and name not in found and (address := interface_v6(text)):
            found[name] = address
    return found


def interface_v6(text: str) -> IPv6Interface | None:
    """Parse an IPv6 address with prefix length; None if it is invalid or link-local."""
    try:
        address = IPv6Interface(text)
    except ValueError:
        return None
    return None if address.is_link_local else address


def number(text: str | None) -> int | None:
    """Parse a decimal number; None for anything else."""
    text = (text or "").strip()
    return int(text) if text.isascii() and text.isdecimal() and len(text) <= LONGEST_NUMBER else None


def numbers(text: str) -> Iterator[int]:
    """Yield the numbers of a list such as 0-2,4."""
    for part in text.split(","):
        low, dash, high = part.partition("-")
        first, last = number(low), number(high if dash else low)
        if first is not None and last is not None:
            yield from range(first, min(last, first + WIDEST) + 1)


def most(values: Iterable[T | None]) -> T | None:
    """The most frequent value, the first of several; None if there is none."""
    counted = Counter(value for value in values if value is not None)
    return counted.most_common(1)[0][0] if counted else None
