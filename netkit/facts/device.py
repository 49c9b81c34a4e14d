"""Facts of one device: what it said of itself, and what could not be read."""

from collections.abc import Mapping
from dataclasses import dataclass, fields

from netkit.facts.counter import Counters
from netkit.facts.host import BgpSession, HostFacts, Lookup, NicFacts
from netkit.facts.optic import Line, Module
from netkit.facts.qos import Buffer, PortQos, Watchdog


@dataclass(frozen=True, slots=True)
class Absent:
    """A fact that is not there."""

    reason: str


NOT_ASKED = Absent("nobody asked for it")


@dataclass(frozen=True, slots=True)
class Probe:
    """Packets of one size from one NIC to another that must not be cut into pieces on their way."""

    source: str
    interface: str
    destination: str
    size_bytes: int
    """Of the whole IP packet."""
    sent: int = 0
    received: int = 0
    least_us: float | None = None
    """The quickest answer; what the host itself adds under load is least in it."""
    usual_us: float | None = None
    most_us: float | None = None
    reason: str = ""
    """What the kernel or a router on the way said of packets that did not pass."""
    router: str = ""
    """The address of the router that said so; empty for the host's own kernel."""


@dataclass(frozen=True, slots=True)
class System:
    """A device and what it runs. None and empty where it does not tell."""

    hostname: str = ""
    version: str = ""
    model: str = ""
    serial: str = ""
    uptime_s: float | None = None
    boot: str = ""
    """What changes with each boot, such as the kernel's boot id."""
    kernel: str = ""


@dataclass(frozen=True, slots=True)
class Interface:
    """One port or NIC."""

    is_up: bool | None = None
    is_enabled: bool | None = None
    speed_gbps: float | None = None
    mtu_bytes: int | None = None
    fec: str = ""
    """`rs`, `fc`, `none`, or as the device says it; empty when it does not tell."""
    mac: str = ""
    description: str = ""
    alias: str = ""
    """What the device calls the port beside, such as the name it announces to its neighbours."""
    link_up_s: float | None = None
    """How long the link took to come up the last time."""
    outage_s: float | None = None
    """How long the link was gone the last time; 0 when it was not, as far back as the device tells."""
    outage_ended_ago_s: float | None = None
    """How long ago it came back; None when it was not gone."""


@dataclass(frozen=True, slots=True)
class Neighbor:
    """Who is at the other end of a cable, by LLDP."""

    system: str
    port: str = ""
    """The port id the neighbor announces: a name, or the MAC address of a NIC."""
    description: str = ""
    """The port description: where the id is an address, often the interface name."""
    age_s: float | None = None


@dataclass(frozen=True, slots=True)
class FileSystem:
    """A file system that the device, or whoever configures it, writes to."""

    size_bytes: int | None = None
    used_bytes: int | None = None
    free_bytes: int | None = None
    """What is left for programs: what is kept for root is not."""
    files: int | None = None
    """How many files it can hold; not told where there is no such limit."""
    free_files: int | None = None
    is_read_only: bool | None = None
    kind: str = ""
    """Such as `ext4` or `tmpfs`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """The facts of one device. Ports are called as the design calls them."""

    system: System | Absent = NOT_ASKED
    file_systems: Mapping[str, FileSystem] | Absent = NOT_ASKED
    """Where it is mounted, or as the device calls it → a file system that is written to."""
    interfaces: Mapping[str, Interface] | Absent = NOT_ASKED
    neighbors: Mapping[str, tuple[Neighbor, ...]] | Absent = NOT_ASKED
    """Port → who is there by LLDP, the freshest first."""
    modules: Mapping[str, Module] | Absent = NOT_ASKED
    lines: Mapping[str, Line] | Absent = NOT_ASKED
    sessions: Mapping[str, BgpSession] | Absent = NOT_ASKED
    routes: Mapping[str, tuple[str, ...]] | Absent = NOT_ASKED
    """Prefix → the interfaces its next hops are on, those in the forwarding table."""
    qos: Mapping[str, PortQos] | Absent = NOT_ASKED
    watchdogs: Mapping[str, Watchdog] | Absent = NOT_ASKED
    """`port/priority` → the watchdog there."""
    buffers: Mapping[str, Buffer] | Absent = NOT_ASKED
    """`port/priority` → how full its queue is."""
    adaptive_routing: Mapping[str, bool] | Absent = NOT_ASKED
    """Port → whether adaptive routing works there."""
    lookups: tuple[Lookup, ...] | Absent = NOT_ASKED
    probes: tuple[Probe, ...] | Absent = NOT_ASKED
    nics: Mapping[str, NicFacts] | Absent = NOT_ASKED
    host: HostFacts | Absent = NOT_ASKED
    counters: Counters | Absent = NOT_ASKED


KINDS = tuple(field.name for field in fields(Facts))
