"""The designed fabric: typed, frozen, and free of any NOS's syntax. Every later stage reads only this."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from ipaddress import IPv4Address, IPv4Network
from typing import ClassVar, Literal, NamedTuple

from netkit.design.clusters import Cluster
from netkit.design.traffic import EcnThresholds, Headroom, LosslessProfile
from netkit.errors import Problem
from netkit.hardware import HostModel, Split, SwitchModel
from netkit.platforms import HOSTS

EDGE_LIST = "NETKIT-EDGE-"
"""The beginning of the name of the access list of a peer outside."""
ACCESS_LIST = "NETKIT-MANAGEMENT"
"""The access list of the management of a switch."""
Role = Literal["leaf", "spine", "core", "storage", "frontend", "oob", "host"]
SWITCH_ROLES: tuple[Role, ...] = ("leaf", "spine", "core", "storage", "frontend", "oob")
PortRole = Literal["host", "up", "down"]
Approved = Mapping[str, tuple[str, ...]]


@dataclass(frozen=True, slots=True)
class PathRule:
    """Part of the configuration of some devices, with the patterns of owns.yaml."""

    path: str
    devices: frozenset[str] | None = None
    """Names; None: all."""


@dataclass(frozen=True, slots=True)
class Cable:
    """A cable as designed."""

    media: str
    kind: str
    length_m: float


@dataclass(frozen=True, slots=True)
class PortProfile:
    """What ports of one kind share."""

    role: PortRole
    split: Split
    mtu_bytes: int
    fec: str
    cable: Cable
    ecn: EcnThresholds
    headroom: Headroom | None

    @property
    def speed_gbps(self) -> int:
        return self.split.speed_gbps


@dataclass(frozen=True, slots=True)
class Port:
    """One end of a link, after breakout."""

    name: str
    cage: int
    lane_port: int
    peer: str
    peer_port: str
    peer_asn: int
    address: str
    profile: PortProfile
    label: str
    """Of the cable, as given; empty: both ends."""
    address_v6: str = ""
    """With prefix length; empty: IPv4 only."""
    peer_address: str = ""
    """Of the other switch; empty: the session is unnumbered."""

    @property
    def role(self) -> PortRole:
        return self.profile.role

    @property
    def neighbor(self) -> str:
        """What BGP calls the other end: its address, or the port."""
        return self.peer_address or self.name

    @property
    def split(self) -> Split:
        return self.profile.split

    @property
    def speed_gbps(self) -> int:
        return self.profile.split.speed_gbps

    @property
    def fec(self) -> str:
        return self.profile.fec

    @property
    def cable(self) -> Cable:
        return self.profile.cable

    @property
    def description(self) -> str:
        """The interface description, which names the other end."""
        return f"{self.peer}:{self.peer_port}"


@dataclass(frozen=True, slots=True)
class Cage:
    """A front-panel cage in use, and the names of all ports it is split into."""

    number: int
    split: Split
    ports: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Vlan:
    """The host VLAN of a leaf and its gateway."""

    number: int
    name: str
    subnet: str
    gateway: str
    gateway_v6: str = ""
    """With prefix length; empty: IPv4 only."""


@dataclass(frozen=True, slots=True)
class EdgeRule:
    """Packets that may not enter a port, by source or destination; the other one is empty."""

    number: int
    source: str = ""
    destination: str = ""


@dataclass(frozen=True, slots=True)
class ExternalPort:
    """A routed port to a network outside the fabric, and the BGP session over it. It is never lossless."""

    peer_name: str
    name: str
    cage: int
    lane_port: int
    split: Split
    fec: str
    mtu_bytes: int
    address: str
    """With prefix length."""
    peer: str
    peer_asn: int
    accepted: tuple[str, ...]
    announced: tuple[str, ...]
    max_prefixes: int
    has_bfd: bool
    denied: tuple[EdgeRule, ...] = ()
    """Packets that the port drops; none: it has no access list."""

    @property
    def access_list(self) -> str:
        """The access list of what is dropped; empty if there is none."""
        return f"{EDGE_LIST}{self.peer_name}" if self.denied else ""

    @property
    def last_number(self) -> int:
        """The number of the rule that lets everything else in."""
        return max((rule.number for rule in self.denied), default=0) + 10

    @property
    def own_address(self) -> str:
        """The address without its length: where the session starts from."""
        return self.address.partition("/")[0]

    @property
    def inbound(self) -> str:
        """The prefix list of what is accepted."""
        return f"EXTERNAL-IN-{self.peer_name}"

    @property
    def outbound(self) -> str:
        """The prefix list of what is announced."""
        return f"EXTERNAL-OUT-{self.peer_name}"


@dataclass(frozen=True, slots=True)
class AccessPort:
    """A switched port of a network beside the rails. It is never lossless."""

    name: str
    cage: int
    lane_port: int
    split: Split
    fec: str
    peer: str
    peer_port: str
    """Empty: not known."""
    kind: Literal["host", "server", "peer"]
    lag: int
    """Of hosts and servers, the same on both switches of a pair; 0: none."""
    untagged: int
    """VLAN; 0: none."""
    tagged: tuple[int, ...]
    cable: Cable | None

    @property
    def speed_gbps(self) -> int:
        return self.split.speed_gbps

    @property
    def description(self) -> str:
        return f"{self.peer}:{self.peer_port}" if self.peer_port else self.peer


@dataclass(frozen=True, slots=True)
class AccessVlan:
    """A VLAN of a network beside the rails, as one of its switches has it."""

    number: int
    name: str
    prefix: str
    """Empty, as the next two: without a gateway."""
    address: str
    """Of the switch, with prefix length."""
    gateway: str
    """What both switches of a pair answer for, with prefix length; empty for a single switch, which has it itself."""
    gateway_mac: str


@dataclass(frozen=True, slots=True)
class SwitchPair:
    """The other switch of a pair, and what both have in common."""

    partner: str
    backup: str
    """Management address of the other."""
    mac: str
    """Of the system that hosts see, in the range that NVIDIA keeps for it."""
    is_first: bool
    has_session: bool
    """Whether they exchange over BGP what they learn from outside."""


@dataclass(frozen=True, slots=True)
class AccessLag:
    """The ports of a switch that form a LAG, with those of the other switch of a pair that have its number."""

    number: int
    ports: tuple[AccessPort, ...]

    @property
    def peer(self) -> str:
        return self.ports[0].peer

    @property
    def untagged(self) -> int:
        return self.ports[0].untagged

    @property
    def tagged(self) -> tuple[int, ...]:
        return self.ports[0].tagged


@dataclass(frozen=True, slots=True)
class Access:
    """What a switch of a network beside the rails has that others have not."""

    network: str
    mtu_bytes: int
    vlans: tuple[AccessVlan, ...]
    ports: tuple[AccessPort, ...]
    pair: SwitchPair | None

    @property
    def lags(self) -> tuple[AccessLag, ...]:
        """The LAGs towards hosts and servers."""
        found: dict[int, list[AccessPort]] = {}
        for port in self.ports:
            if port.lag:
                found.setdefault(port.lag, []).append(port)
        return tuple(AccessLag(number, tuple(ports)) for number, ports in sorted(found.items()))

    @property
    def peer_links(self) -> tuple[AccessPort, ...]:
        return tuple(port for port in self.ports if port.kind == "peer")


@dataclass(frozen=True, slots=True)
class StaticRoute:
    """A static route of a switch."""

    prefix: str
    vias: tuple[str, ...]
    """The next hops; none: packets are dropped."""


@dataclass(frozen=True, slots=True)
class ManagementAddress:
    """Out-of-band address of a switch."""

    address: str
    prefix_length: int
    gateway: str
    allowed: tuple[str, ...] = ()
    """Networks from which SSH, SNMP and the API are reached; empty: all."""
    address_v6: str = ""
    """Empty: IPv4 only."""
    prefix_length_v6: int = 0
    gateway_v6: str = ""

    def admits(self, address: str) -> bool:
        """Whether an address reaches the switch."""
        found = IPv4Address(address) if address else None
        return not self.allowed or found is None or any(found in IPv4Network(one) for one in self.allowed)


@dataclass(frozen=True, slots=True)
class Switch:
    """A leaf, spine or core switch."""

    name: str
    role: Role
    number: int
    pod: int
    unit: int
    rail: int
    slot: int
    plane: int
    model: SwitchModel
    platform: str
    version: str
    routing_mode: str
    object_names: Mapping[str, Mapping[str, str]]
    """Kind → netkit's name of a route map, a profile and such → the name in use."""
    asn: int
    loopback: str
    management: ManagementAddress | None
    serial: str
    """Of the chassis, as given; empty: not known. So are the next two."""
    rack: str
    rack_unit: int | None
    system_mac: str
    mtu_bytes: int
    leaf_prefix: str
    link_length: int
    """Prefix length of the routed links to hosts."""
    vlan: Vlan | None
    adaptive_routing: bool
    drain: bool
    drain_neighbors: tuple[str, ...]
    ports: tuple[Port, ...]
    cages: tuple[Cage, ...]
    external: tuple[ExternalPort, ...] = ()
    loopback_v6: str = ""
    """Empty: the fabric routes IPv4 only."""
    leaf_prefix_v6: str = ""
    link_length_v6: int = 0
    access: Access | None = None
    static: tuple[StaticRoute, ...] = ()
    """Of the default VRF."""
    management_static: tuple[StaticRoute, ...] = ()
    """Of the management VRF, beside its default route."""

    @property
    def summaries(self) -> tuple[str, ...]:
        """The prefixes that are announced outside as one, while the parts stay in the fabric as they are."""
        whole = {vlan.prefix for vlan in self.access.vlans} if self.access else set()
        return tuple(
            dict.fromkeys(prefix for port in self.external for prefix in port.announced if prefix not in whole)
        )

    @property
    def aggregates(self) -> tuple[str, ...]:
        """The prefix that summarises the links to hosts; none for a single link or a subnet."""
        is_summary = self.leaf_prefix and self.vlan is None and not self.leaf_prefix.endswith(f"/{self.link_length}")
        return (self.leaf_prefix,) if is_summary else ()

    @property
    def aggregates_v6(self) -> tuple[str, ...]:
        """The same of IPv6."""
        return (self.leaf_prefix_v6,) if self.leaf_prefix_v6 and self.vlan is None else ()

    @property
    def fabric_ports(self) -> tuple[Port, ...]:
        """The ports towards other switches: one BGP session each."""
        return tuple(port for port in self.ports if port.profile.role != "host")

    @property
    def has_sessions_by_address(self) -> bool:
        return any(port.peer_address for port in self.fabric_ports)

    @property
    def cabled(self) -> "tuple[Port | AccessPort, ...]":
        """The ports whose cable is designed: of rails, and of networks beside them."""
        return (*self.ports, *(port for port in self.access.ports if port.cable)) if self.access else self.ports

    @property
    def ports_of_hosts(self) -> Mapping[str, str]:
        """Port → host, of rails and of networks beside them."""
        beside = {port.name: port.peer for port in self.access.ports if port.kind == "host"} if self.access else {}
        return {**{port.name: port.peer for port in self.host_ports}, **beside}

    @property
    def host_ports(self) -> tuple[Port, ...]:
        return tuple(port for port in self.ports if port.profile.role == "host")


@dataclass(frozen=True, slots=True)
class Nic:
    """A host NIC on a rail."""

    rail: int
    interface: str
    pci: str
    rdma: str
    mac: str
    address: str
    prefix_length: int
    gateway: str
    table: int
    leaf: str
    leaf_port: str
    address_v6: str = ""
    """Empty: IPv4 only."""
    prefix_length_v6: int = 0
    gateway_v6: str = ""

    @property
    def addresses(self) -> tuple[str, ...]:
        """The addresses, of IPv4 and, where the fabric has it, of IPv6."""
        return (self.address, self.address_v6) if self.address_v6 else (self.address,)


@dataclass(frozen=True, slots=True)
class Attachment:
    """How a host is attached to a network beside the rails: by a LAG of several NICs, or by one."""

    network: str
    interface: str
    """What has the address: the LAG, or the NIC."""
    members: tuple[str, ...]
    """NICs of the LAG; none where there is one NIC."""
    address: str
    """With prefix length."""
    gateway: str
    routes: tuple[str, ...]
    mtu_bytes: int

    @property
    def nics(self) -> tuple[str, ...]:
        return self.members or (self.interface,)


@dataclass(frozen=True, slots=True)
class Host:
    """A GPU host."""

    platform: ClassVar[str] = HOSTS
    name: str
    number: int
    pod: int
    unit: int
    slot: int
    model: HostModel
    mtu_bytes: int
    backend: str
    management_interface: str
    management: str
    """Its address outside the fabric, as given; empty: not known. So are the next three."""
    serial: str
    rack: str
    rack_unit: int | None
    nics: tuple[Nic, ...]
    attachments: tuple[Attachment, ...] = ()

    @property
    def nics_beside(self) -> tuple[str, ...]:
        """The NICs that lead to networks beside the rails."""
        return tuple(name for one in self.attachments for name in one.nics)

    @property
    def cabled(self) -> tuple[str, ...]:
        """Every NIC that the design cables."""
        return (*(nic.interface for nic in self.nics), *self.nics_beside)


@dataclass(frozen=True, slots=True)
class Rail:
    """A rail: the NICs of one position in every host, and their prefix."""

    number: int
    prefix: str
    prefix_v6: str = ""


class CableEnd(NamedTuple):
    """One end of a cable."""

    device: str
    port: str

    def __str__(self) -> str:
        return f"{self.device}:{self.port}"


@dataclass(frozen=True, slots=True)
class Link:
    """A cable between two devices; the upper tier comes last."""

    device: str
    port: str
    peer: str
    peer_port: str
    kind: Role
    """Of the upper end, or `host`."""
    speed_gbps: int
    cable: Cable
    label: str


@dataclass(frozen=True, slots=True)
class Session:
    """A BGP session as one of its ends has it."""

    device: str
    port: str
    local_asn: int
    peer: str
    peer_port: str
    peer_asn: int
    direction: Literal["up", "down"]


@dataclass(frozen=True, slots=True)
class Bfd:
    """BFD timers."""

    interval_ms: int
    multiplier: int


@dataclass(frozen=True, slots=True)
class RoutingPolicy:
    """How routes propagate through the fabric."""

    leaf_exports_all: bool
    allowas_in: bool
    keepalive_s: int
    hold_s: int
    connect_s: int
    max_paths: int
    bfd: Bfd
    owns_static: bool = False
    """Whether static routes of the default VRF that the intent does not have are removed."""


@dataclass(frozen=True, slots=True)
class SyslogServer:
    """A syslog collector."""

    address: str
    port: int
    protocol: str


@dataclass(frozen=True, slots=True)
class Snmp:
    """SNMPv3 read access; secrets by name."""

    user: str
    auth_secret: str
    priv_secret: str
    location: str
    contact: str


@dataclass(frozen=True, slots=True)
class Login:
    """The account netkit logs in with; the password hash by name."""

    user: str
    password_hash_secret: str


@dataclass(frozen=True, slots=True)
class Services:
    """The services of every switch. Empty tuples mean: not configured."""

    ntp: tuple[str, ...]
    dns: tuple[str, ...]
    syslog: tuple[SyslogServer, ...]
    snmp: tuple[Snmp, ...]
    login: tuple[Login, ...]
    timezone: str


@dataclass(frozen=True)
class Fabric:
    """A whole fabric."""

    name: str
    site: str
    purpose: str
    topology: str
    attachment: Literal["p2p", "vlan"]
    host_routes: Literal["per-leaf", "supernet"]
    cross_rail: Literal["routed", "blocked"]
    rails: tuple[Rail, ...]
    loopback_pool: str
    host_pool: str
    lossless: LosslessProfile
    routing: RoutingPolicy
    services: Services
    switches: tuple[Switch, ...]
    hosts: tuple[Host, ...]
    nic_firmware: Approved = field(default_factory=dict)
    """PSID or part number of NICs, or a glob → approved versions."""
    module_firmware: Approved = field(default_factory=dict)
    """The same by part number of modules."""
    clusters: tuple[Cluster, ...] = ()
    loopback_pool_v6: str = ""
    host_pool_v6: str = ""
    link_pool: str = ""
    """Empty: sessions between switches are unnumbered, but those of links with addresses of their own."""
    leave: tuple[PathRule, ...] = ()
    own: tuple[PathRule, ...] = ()
    notes: tuple[Problem, ...] = ()
    _by_name: Mapping[str, Switch | Host] = field(init=False, repr=False, compare=False)
    _by_role: Mapping[str, tuple[Switch, ...]] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        by_name: dict[str, Switch | Host] = {switch.name: switch for switch in self.switches}
        by_name.update((host.name, host) for host in self.hosts)
        object.__setattr__(self, "_by_name", by_name)
        roles = {role: tuple(switch for switch in self.switches if switch.role == role) for role in SWITCH_ROLES}
        object.__setattr__(self, "_by_role", roles)

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(self._by_name)

    def device(self, name: str) -> Switch | Host | None:
        return self._by_name.get(name)

    def switch(self, name: str) -> Switch:
        """A switch; the name must be that of one."""
        device = self._by_name[name]
        if not isinstance(device, Switch):
            raise TypeError(f"{name} is a host, not a switch")
        return device

    @property
    def leaf_prefix_length(self) -> int:
        """The length of all leaf prefixes, the only host prefixes that propagate through the fabric."""
        return int(self.tier("leaf")[0].leaf_prefix.partition("/")[2])

    @property
    def link_length(self) -> int:
        """The prefix length of the routed links to hosts."""
        return self.tier("leaf")[0].link_length

    @property
    def without_networks(self) -> "Fabric":
        """The fabric of the rails alone."""
        switches = tuple(switch for switch in self.switches if switch.access is None)
        return self if len(switches) == len(self.switches) else replace(self, switches=switches)

    @cached_property
    def accepted_outside(self) -> tuple[str, ...]:
        """The prefixes that the fabric of the rails takes from outside, in order."""
        ports = (port for switch in self.switches if switch.access is None for port in switch.external)
        return tuple(dict.fromkeys(one for port in ports for one in port.accepted))

    @cached_property
    def nics_by_leaf(self) -> Mapping[str, Sequence[tuple[str, Nic]]]:
        """Leaf → its NICs with the names of their hosts, in the order of the hosts."""
        found: dict[str, list[tuple[str, Nic]]] = {}
        for host in self.hosts:
            for nic in host.nics:
                found.setdefault(nic.leaf, []).append((host.name, nic))
        return found

    @cached_property
    def nics_by_rail(self) -> Mapping[int, Sequence[tuple[str, Nic]]]:
        """The same by the number of the rail; each rail has an entry."""
        found: dict[int, list[tuple[str, Nic]]] = {rail.number: [] for rail in self.rails}
        for host in self.hosts:
            for nic in host.nics:
                found[nic.rail].append((host.name, nic))
        return found

    @cached_property
    def leaf_rings(self) -> Mapping[tuple[str, int, int], Sequence[Switch]]:
        """The leaves of a unit of a pod, of a rail of a pod, and of a rail in the same unit of all pods."""
        found: dict[tuple[str, int, int], list[Switch]] = {}
        for leaf in self.tier("leaf"):
            for ring in (("unit", leaf.pod, leaf.unit), ("rail", leaf.pod, leaf.rail), ("pods", leaf.rail, leaf.unit)):
                found.setdefault(ring, []).append(leaf)
        return found

    @cached_property
    def host_ports(self) -> Mapping[str, tuple[Port, ...]]:
        """Leaf → its ports towards hosts: each of its hosts asks which of them is its own."""
        return {leaf.name: leaf.host_ports for leaf in self.tier("leaf")}

    @cached_property
    def joined_leaves(self) -> dict[tuple[str, str], bool]:
        """What `layout.is_joined` has found out: each of the NICs of a leaf asks for the same."""
        return {}

    def tier(self, role: Role) -> tuple[Switch, ...]:
        return self._by_role[role]

    def links(self) -> Iterator[Link]:
        """Yield every cable once, lower end first."""
        for switch in self.switches:
            for port in switch.ports:
                cable = port.profile.cable
                if port.role == "up":
                    kind: Literal["spine", "core"] = "spine" if switch.role == "leaf" else "core"
                    ends = (switch.name, port.name, port.peer, port.peer_port)
                    yield Link(*ends, kind, port.speed_gbps, cable, port.label)
                elif port.role == "host":
                    ends = (port.peer, port.peer_port, switch.name, port.name)
                    yield Link(*ends, "host", port.speed_gbps, cable, port.label)

    def access_links(self) -> Iterator[Link]:
        """Yield every cable of the networks beside the rails once: those of hosts, and those between a pair."""
        for switch in self.switches:
            for port in switch.access.ports if switch.access else ():
                is_first = bool(switch.access and switch.access.pair and switch.access.pair.is_first)
                if port.cable and (port.kind == "host" or is_first):
                    ends = (port.peer, port.peer_port, switch.name, port.name)
                    yield Link(*ends, switch.role, port.split.speed_gbps, port.cable, "")

    def cables(self) -> Iterator[Link]:
        """Yield every cable once: of rails, and of networks beside them."""
        yield from self.links()
        yield from self.access_links()

    @cached_property
    def far_ends(self) -> Mapping[tuple[str, str], CableEnd]:
        """The other end of each cable, from both ends: device and port."""
        pairs = [(CableEnd(one.device, one.port), CableEnd(one.peer, one.peer_port)) for one in self.cables()]
        return {**dict(pairs), **{far: near for near, far in pairs}}

    @cached_property
    def speeds_gbps(self) -> Mapping[CableEnd, int]:
        """The speed of both ends of each cable."""
        return {
            end: one.speed_gbps
            for one in self.cables()
            for end in (CableEnd(one.device, one.port), CableEnd(one.peer, one.peer_port))
        }

    def sessions(self) -> Iterator[Session]:
        """Yield every BGP session from both its ends."""
        for switch in self.switches:
            for port in switch.ports:
                if port.role != "host":
                    yield Session(
                        switch.name, port.name, switch.asn, port.peer, port.peer_port, port.peer_asn, port.role
                    )
