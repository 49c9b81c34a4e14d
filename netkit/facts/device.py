"""Facts of one device, and why some are missing."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields

from netkit.facts.counter import Counters
from netkit.facts.host import BgpSession, HostFacts, Lookup, NicFacts
from netkit.facts.optic import Line, Module
from netkit.facts.qos import Buffer, PortQos, Watchdog


@dataclass(frozen=True, slots=True)
class Absent:
    """A fact that is missing."""

    reason: str


NOT_ASKED = Absent("not requested")


@dataclass(frozen=True, slots=True)
class Probe:
    """Unfragmented packets of one size from one NIC to another."""

    source: str
    interface: str
    destination: str
    size_bytes: int
    """Size of the IP packet."""
    sent: int = 0
    received: int = 0
    least_us: float | None = None
    """The fastest reply, which is least affected by the host's own load."""
    usual_us: float | None = None
    most_us: float | None = None
    reason: str = ""
    """Error from the kernel or a router on the path."""
    router: str = ""
    """The address of that router; empty for the host's own kernel."""


@dataclass(frozen=True, slots=True)
class System:
    """A device and its software. None or empty where a value is not exposed."""

    hostname: str = ""
    version: str = ""
    model: str = ""
    serial: str = ""
    uptime_s: float | None = None
    boot: str = ""
    """A value that changes with each boot, such as the kernel's boot ID."""
    kernel: str = ""


@dataclass(frozen=True, slots=True)
class Interface:
    """One port or NIC."""

    is_up: bool | None = None
    is_enabled: bool | None = None
    speed_gbps: float | None = None
    mtu_bytes: int | None = None
    fec: str = ""
    """`rs`, `fc`, `none`, or the device's own word; empty if unknown."""
    mac: str = ""
    description: str = ""
    alias: str = ""
    """Another name of the port, such as the one announced by LLDP."""
    link_up_s: float | None = None
    """How long the link last took to come up."""
    outage_s: float | None = None
    """Duration of the last link outage; 0 if there was none in the device's records."""
    outage_ended_ago_s: float | None = None
    """How long ago it ended; None if there was none."""


@dataclass(frozen=True, slots=True)
class Neighbor:
    """An LLDP neighbour."""

    system: str
    port: str = ""
    """The announced port ID: a name, or the MAC address of a NIC."""
    description: str = ""
    """The port description, often the interface name if the ID is a MAC address."""
    age_s: float | None = None


def without_domain(name: str, find: Callable[[str], object]) -> str:
    """Return the device that a name stands for, perhaps with its domain; if none is found, all before the first dot.

    Names of devices may have dots too: RZ1.leaf01.example.com is leaf01.example.com of no RZ1, but RZ1.leaf01.
    """
    labels = name.split(".")
    names = (".".join(labels[:count]) for count in range(len(labels), 0, -1))
    return next(filter(find, names), labels[0])


@dataclass(frozen=True, slots=True)
class Lag:
    """A LAG as one of its ends has it."""

    is_up: bool | None = None
    members: Mapping[str, bool] = field(default_factory=dict)
    """NIC → whether it carries the LAG: its link is up, and LACP has it in the aggregator in use. Empty on switches."""
    partner: str = ""
    """MAC address of the LACP partner; empty: none, or not exposed."""


@dataclass(frozen=True, slots=True)
class Mlag:
    """The pair that a switch forms with another one, as it sees it."""

    is_peer_alive: bool | None = None
    is_backup_active: bool | None = None
    """Whether the other switch also answers at its management address."""
    role: str = ""
    peer_role: str = ""
    """In the device's own words."""


@dataclass(frozen=True, slots=True)
class FileSystem:
    """A file system that is written to in operation or by configuration."""

    size_bytes: int | None = None
    used_bytes: int | None = None
    free_bytes: int | None = None
    """Free space without the part reserved for root."""
    files: int | None = None
    """Maximum number of files; None without a limit."""
    free_files: int | None = None
    is_read_only: bool | None = None
    kind: str = ""
    """Type, such as `ext4` or `tmpfs`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """The facts of one device. Ports have the names of the design."""

    system: System | Absent = NOT_ASKED
    file_systems: Mapping[str, FileSystem] | Absent = NOT_ASKED
    """Mount point or the device's own name → file system."""
    interfaces: Mapping[str, Interface] | Absent = NOT_ASKED
    neighbors: Mapping[str, tuple[Neighbor, ...]] | Absent = NOT_ASKED
    """Port → LLDP neighbours, the most recent first."""
    lags: Mapping[str, Lag] | Absent = NOT_ASKED
    """Interface of a host, or number of a LAG on a switch → LAG."""
    mlag: Mlag | Absent = NOT_ASKED
    modules: Mapping[str, Module] | Absent = NOT_ASKED
    lines: Mapping[str, Line] | Absent = NOT_ASKED
    sessions: Mapping[str, BgpSession] | Absent = NOT_ASKED
    routes: Mapping[str, tuple[str, ...]] | Absent = NOT_ASKED
    """Prefix → interfaces of the next hops in the forwarding table."""
    qos: Mapping[str, PortQos] | Absent = NOT_ASKED
    watchdogs: Mapping[str, Watchdog] | Absent = NOT_ASKED
    """`port/priority` → PFC watchdog."""
    buffers: Mapping[str, Buffer] | Absent = NOT_ASKED
    """`port/priority` → queue occupancy."""
    adaptive_routing: Mapping[str, bool] | Absent = NOT_ASKED
    """Port → whether adaptive routing is active."""
    lookups: tuple[Lookup, ...] | Absent = NOT_ASKED
    probes: tuple[Probe, ...] | Absent = NOT_ASKED
    nics: Mapping[str, NicFacts] | Absent = NOT_ASKED
    host: HostFacts | Absent = NOT_ASKED
    counters: Counters | Absent = NOT_ASKED


KINDS = tuple(field.name for field in fields(Facts))
