"""All that is known about one device: each kind of fact is there, or absent with a reason."""

from collections.abc import Mapping
from dataclasses import dataclass, fields

from netkit.facts.absent import NOT_ASKED, Absent
from netkit.facts.counter import Counters
from netkit.facts.host import HostFacts, NicFacts
from netkit.facts.optic import Line, Module
from netkit.facts.probe import Probe
from netkit.facts.qos import Buffer, PortQos, Watchdog
from netkit.facts.routing import BgpSession, Lookup
from netkit.facts.system import FileSystem, Interface, Neighbor, System


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
