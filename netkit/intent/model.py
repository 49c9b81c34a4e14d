"""The model of an intent: what a user may write, with every default in one place."""

from collections.abc import Mapping
from ipaddress import IPv4Network
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from netkit.intent.scalars import (
    Address,
    AddressV6,
    AddressWithLength,
    Asn,
    Breakout,
    CatalogName,
    ConfigPath,
    DottedName,
    Dscp,
    FromFile,
    Image,
    Interface,
    Label,
    LabelPrefix,
    Mac,
    Metres,
    Name,
    Namespace,
    Network,
    NetworkV6,
    ObjectName,
    Pci,
    Percent,
    PlatformName,
    PortName,
    Priority,
    RackName,
    ResourceName,
    SecretName,
    Serial,
    Server,
    ShortForm,
    Text,
    Timezone,
    Version,
    VlanNumber,
    name_pattern,
)
from netkit.intent.slots import Count, Numbers


class Strict(BaseModel):
    """The base of every part of an intent: frozen, without unknown keys."""

    model_config = ConfigDict(extra="forbid", frozen=True, str_strip_whitespace=True, defer_build=True)


class Ceilings(Strict):
    """How far the fabric may grow without renumbering anything. Changing a ceiling may renumber."""

    pods: int = Field(1, ge=1, le=4096, description="pods of a three-tier fabric")
    units: int = Field(ge=1, le=4096, description="scalable units in a pod")
    hosts_per_unit: int = Field(ge=1, le=1024, description="hosts in a scalable unit")
    addresses_per_nic: int = Field(
        1, ge=1, le=128, description="addresses of each rail NIC: the host's own, and one for each pod that shares it"
    )
    spines: int = Field(0, ge=0, le=1024, description="spines in a plane (two-tier) or in a pod (three-tier)")
    cores: int = Field(0, ge=0, le=1024, description="core switches in a plane")


class TierIntent(Strict):
    """What the switches of one tier are."""

    model: CatalogName = Field(description="switch model, a file of the hardware catalogue")
    platform: PlatformName = Field(description="network operating system")
    version: Version = Field(description="version of the network operating system")
    routing_mode: Literal["split", "unified"] = Field("split", description="sonic only: who owns FRR's configuration")
    object_names: dict[ObjectName, dict[ObjectName, ObjectName]] = Field(
        default_factory=dict,
        description="your names of route maps, profiles and other objects: by kind, netkit's name and yours",
    )


class LeafTier(TierIntent):
    """The leaves: hosts below, spines above."""

    host_breakout: Breakout = Field(description="how host-facing cages are split, such as 2x400G")
    uplink_breakout: Breakout | None = Field(None, description="how spine-facing cages are split")
    uplinks_per_spine: int = Field(1, ge=1, le=16, description="parallel links from a leaf to each spine")
    first_uplink_cage: int | None = Field(
        None, ge=1, description="default: the first cage of the upper half, or after the hosts"
    )


class SpineTier(TierIntent):
    """The spines: leaves below; in a three-tier fabric, core switches above."""

    slots: Count = Field(description="spines in each plane (two-tier) or pod (three-tier)")
    breakout: Breakout = Field(description="how leaf-facing cages are split")
    planes: int = Field(
        1, ge=1, le=16, description="two-tier only: rails are distributed over this many separate spine planes"
    )
    uplink_breakout: Breakout | None = Field(None, description="how core-facing cages are split")
    uplinks_per_core: int = Field(1, ge=1, le=16, description="parallel links from a spine to each core of its plane")
    first_uplink_cage: int | None = Field(
        None, ge=1, description="default: the first cage of the upper half, or after the leaves"
    )


class CoreTier(TierIntent):
    """The core layer of a three-tier fabric. Spine s of every pod reaches the cores of plane (s − 1) mod planes."""

    slots: Count = Field(description="core switches in each plane")
    breakout: Breakout = Field(description="how spine-facing cages are split")
    planes: int = Field(1, ge=1, le=1024, description="core planes")


class Switches(Strict):
    """The switch tiers."""

    leaf: LeafTier = Field(description="hosts below, spines above; one for each rail in a unit")
    spine: SpineTier | None = Field(None, description="not in a rail-only fabric")
    core: CoreTier | None = Field(None, description="three-tier fabrics only")


class CableIntent(Strict):
    """A run of cabling."""

    media: CatalogName = Field(description="media type, an entry of the hardware catalogue")
    length_m: Metres = Field(description="the longest cable of this kind, in metres")


class Cables(Strict):
    """Media and lengths by kind of link; the length decides the PFC headroom."""

    host: CableIntent = Field(description="between host and leaf")
    spine: CableIntent | None = Field(None, description="between leaf and spine")
    core: CableIntent | None = Field(None, description="between spine and core switch")


class Unit(Strict):
    """One or more scalable units: hosts connected to one leaf per rail."""

    pod: Numbers = Field((1,), description="pod, or a list such as 1-4")
    unit: Numbers = Field(description="number of the unit within the pod, or a list such as 1-15")
    hosts: Count = Field(description="hosts: a count, or slots such as 1-3,5")
    rails: Numbers | None = Field(None, description="rails whose leaf is installed, counted from 0; default: all")
    host_model: CatalogName | None = Field(None, description="instead of hosts.model")
    host_breakout: Breakout | None = Field(
        None, description="instead of switches.leaf.host_breakout, for NICs of another speed"
    )
    host_media: str | None = Field(None, description="instead of cables.host.media")
    host_cable_m: Metres | None = Field(None, description="instead of cables.host.length_m")
    spine_cable_m: Metres | None = Field(None, description="instead of cables.spine.length_m")
    host_names: dict[int, DottedName] = Field(
        default_factory=dict, description="names that differ from the pattern, by slot"
    )


class NicIntent(Strict):
    """QoS settings that other software sets on the host NICs; they must agree with the lossless profile."""

    data_dscp: Dscp | None = Field(None, description="DSCP of RoCE data")
    cnp_dscp: Dscp | None = Field(None, description="DSCP of CNPs")
    cnp_priority: Priority | None = Field(None, description="priority of CNPs")
    dscp_to_priority: dict[Dscp, Priority] = Field(default_factory=dict, description="how DSCPs become priorities")


class Hosts(Strict):
    """The GPU hosts."""

    model: CatalogName = Field(description="host model, a file of the hardware catalogue")
    pci: tuple[Pci, ...] = Field(
        (), description="rail NICs in rail order, when the model's own map is missing or wrong"
    )
    pci_by_model: dict[CatalogName, tuple[Pci, ...]] = Field(
        default_factory=dict, description="the same for other host models, by name of the model"
    )
    mtu_bytes: int = Field(9000, ge=1280, le=9216, description="MTU of the rail NICs; that of switches is larger")
    backend: Literal["netplan", "networkd"] = Field(
        "netplan", description="software that configures the host's network"
    )
    management_interface: Interface = Field(
        "eno1", description="interface outside the fabric, which NCCL uses to bootstrap"
    )
    table_base: int = Field(100, ge=1, le=200, description="routing table of rail 0; rail k uses table_base + k")
    nic: NicIntent = Field(NicIntent.model_construct(), description="QoS settings that other software sets on the NICs")


RailMode = Literal["sriov", "host-device", "macvlan", "spectrum-x"]


class SteeringIntent(Strict):
    """When findings of checks keep jobs off a node: `netkit check --steer`."""

    checks: tuple[Text, ...] = Field(
        (
            "links.up",
            "links.speed",
            "links.flaps",
            "optics.light",
            "optics.flags",
            "optics.fec",
            "load.errors",
            "pfc.storms",
            "ecn-cnp.*",
            "host.pcie",
            "host.rdma",
            "host.repeats",
            "qos.nic",
            "routes.lookups",
            "routes.addresses",
        ),
        description="checks whose findings count, by name or glob",
    )
    verdict: Literal["warn", "fail"] = Field("warn", description="the mildest verdict that counts")
    bad_rounds: int = Field(2, ge=1, le=100, description="rounds in a row with a finding before a node is taken out")
    good_rounds: int = Field(3, ge=1, le=100, description="rounds in a row without one before it comes back")
    budget_percent: int = Field(5, ge=1, le=100, description="the most nodes that may be out at once; at least one")


class ClusterIntent(Strict):
    """What clusters of each kind have in common."""

    pod: Numbers | None = Field(None, description="pods of the fabric whose hosts are nodes; default: all")
    unit: Numbers | None = Field(None, description="units whose hosts are nodes, such as 1-8; default: all")
    domain: LabelPrefix | None = Field(
        None, description="domain that the cluster appends to host names, such as example.net"
    )
    image: Image = Field("nccl-tests:latest", description="image with nccl-tests, for acceptance jobs")
    steering: SteeringIntent = Field(
        SteeringIntent.model_construct(), description="when findings of checks keep jobs off a node"
    )


class KubernetesIntent(ClusterIntent):
    """A Kubernetes cluster whose nodes are hosts of the fabric."""

    mode: RailMode = Field("sriov", description="how a pod is attached to a rail")
    rail_modes: dict[int, RailMode] = Field(default_factory=dict, description="rails that are attached in another way")
    vfs: int = Field(
        8, ge=1, le=127, description="virtual functions of each rail NIC, or with macvlan pods that may share it"
    )
    nic_qos: Literal["netkit", "operator"] = Field(
        "netkit", description="what sets QoS and firmware of NICs: netkit's files on the hosts, or NVIDIA's operator"
    )
    pod_routes: Literal["main", "by-source"] = Field(
        "main", description="a rail's routes in a pod: in its main table, or in a table for each address"
    )
    namespace: Namespace = Field("default", description="namespace of networks, queues and jobs")
    operator_namespace: Namespace = Field(
        "nvidia-network-operator", description="namespace of policies and address pools"
    )
    operator_version: Version = Field(
        "26.4.1", description="version of the NVIDIA Network Operator, whose images are used"
    )
    image_registry: Image = Field("nvcr.io/nvidia/mellanox", description="registry of the operator's images")
    resource_prefix: LabelPrefix = Field("nvidia.com", description="prefix of the resource of a rail")
    resource: Annotated[str, name_pattern("rail")] = Field("rail{rail}", description="resource of a rail, with {rail}")
    network: Annotated[str, name_pattern("rail")] = Field("rail{rail}", description="network of a rail, with {rail}")
    gpu_resource: ResourceName = Field("nvidia.com/gpu", description="resource of a GPU")
    label_prefix: LabelPrefix = Field("fabric.netkit", description="prefix of the labels for the place of a node")
    scheduler: Literal["kueue", "volcano"] = Field("kueue", description="scheduler that places pods by topology")
    queue: Namespace = Field("gpu", description="queue of jobs on this fabric")


class SlurmIntent(ClusterIntent):
    """A Slurm cluster whose nodes are hosts of the fabric."""

    version: Version = Field("22.05", description="version of slurmctld; 25.05 and later read topology.yaml")
    topology: Literal["tree", "block"] = Field("tree", description="topology plugin; block needs 23.11")
    partition: Name = Field("gpu", description="partition of the nodes")
    cpus: int | None = Field(None, ge=1, le=4096, description="CPUs of a node, as slurmd -C prints them")
    memory_mb: int | None = Field(None, ge=1, description="memory of a node in MB, as slurmd -C prints it")
    gpu_type: Name | None = Field(None, description="type of the GPUs in gres, such as h100")
    container: Literal["none", "apptainer", "pyxis"] = Field("none", description="how jobs start their image")


class Clusters(Strict):
    """Clusters that run on the hosts. A host belongs to one at most."""

    kubernetes: KubernetesIntent | None = Field(None, description="rendered to OUT/kubernetes")
    slurm: SlurmIntent | None = Field(None, description="rendered to OUT/slurm")


class Pools(Strict):
    """Address and AS number pools."""

    loopbacks: Network = Field(description="one address for each switch")
    hosts: Network = Field(description="split evenly into one prefix per rail")
    loopbacks_v6: NetworkV6 | None = Field(
        None, description="IPv6: one address for each switch, with the same offset as its IPv4 address in loopbacks"
    )
    hosts_v6: NetworkV6 | None = Field(
        None, description="IPv6, with loopbacks_v6: split evenly into one prefix per rail, with a /64 for each leaf"
    )
    asn_base: Asn = Field(4_200_000_000, description="core = base, spines = base + pod, leaves from base + 10000")
    first_vlan: int = Field(100, ge=2, le=4000, description="VLAN of rail 0 with vlan attachment")
    leaf_length: int | None = Field(
        None,
        ge=8,
        le=31,
        description="prefix length of a leaf's hosts; default: the smallest prefix that fits the ceilings",
    )
    link_length: int | None = Field(
        None, ge=24, le=31, description="p2p only: prefix length of the link to a NIC; default: the smallest that fits"
    )
    links: Network | None = Field(
        None,
        description="a /31 for each link between switches, whose BGP sessions then use these addresses; "
        "default: unnumbered sessions",
    )


class Roce(Strict):
    """The RDMA class: lossless."""

    priority: Priority = Field(3, description="the priority that PFC pauses")
    dscp: tuple[Dscp, ...] = Field((26,), min_length=1, description="DSCP of RoCE data packets")
    weight: Percent = Field(90, description="share of a port under load, in percent")


class Cnp(Strict):
    """Congestion notification packets: served first, never paused."""

    priority: Priority = Field(6, description="priority, served first; not that of RoCE")
    dscp: Dscp = Field(48, description="DSCP of CNP packets")
    shape_percent: int | None = Field(
        10, ge=1, le=100, description="rate limit of the strict queue, if the NOS can shape it"
    )


class BestEffort(Strict):
    """Everything else."""

    priority: Priority = Field(0, description="priority of all other traffic")
    weight: Percent = Field(10, description="share of a port under load, in percent")


EcnUnit = Literal["bytes", "kbytes", "mbytes"]


class EcnIntent(Strict):
    """Queue lengths at which marking starts and is certain, and the probability in between."""

    min_bytes: int = Field(ge=1, description="queue length at which marking starts")
    max_bytes: int = Field(ge=1, description="queue length from which every packet is marked")
    probability_percent: int = Field(100, ge=1, le=100, description="probability of marking just below max_bytes")
    min_unit: EcnUnit = Field(
        "bytes",
        description="EOS: unit of min_bytes in its configuration, if that is a multiple of 1000 or 1000000 bytes",
    )
    max_unit: EcnUnit = Field("bytes", description="EOS: unit of max_bytes in its configuration, likewise")


class WatchdogIntent(Strict):
    """PFC watchdog: drops the packets of a queue that is paused for too long."""

    poll_ms: int = Field(100, ge=10, le=1000, description="milliseconds between two readings of a queue")
    detection_polls: int = Field(3, ge=2, le=50, description="polls until a storm is declared")
    restoration_polls: int = Field(6, ge=2, le=600, description="quiet polls until the queue is lossless again")
    action: Literal["drop", "forward"] = Field(
        "drop", description="what the switch does with packets of a queue in a storm"
    )


class HeadroomIntent(Strict):
    """Headroom given by the user for one port speed, instead of the vendor's table or the formula."""

    xoff_bytes: int = Field(ge=1, description="buffer for packets that arrive after a pause was sent")


class Lossless(Strict):
    """The lossless profile, from which the settings of both switches and hosts are derived."""

    roce: Roce = Field(Roce.model_construct(), description="the RDMA class")
    cnp: Cnp = Field(Cnp.model_construct(), description="congestion notification packets")
    best_effort: BestEffort = Field(BestEffort.model_construct(), description="everything else")
    ecn: dict[int, EcnIntent] = Field(
        default_factory=dict, description="by port speed in Gb/s; default: 3 µs and 30 µs at line rate"
    )
    headroom: dict[int, HeadroomIntent] = Field(default_factory=dict, description="by port speed in Gb/s")
    watchdog: WatchdogIntent = Field(
        WatchdogIntent.model_construct(), description="PFC watchdog, which frees queues that stay paused"
    )
    pool_percent: int = Field(90, ge=1, le=99, description="share of the packet buffer for the lossless class")


class BfdIntent(Strict):
    """BFD timers of the fabric sessions."""

    interval_ms: int = Field(300, ge=50, le=60_000, description="milliseconds between two packets")
    multiplier: int = Field(3, ge=2, le=50, description="missed packets in a row after which the session is down")


class StaticRouteIntent(Strict):
    """A static route of switches. Routes to the same prefix with different next hops share the traffic."""

    prefix: Network = Field(description="destination prefix")
    via: Address | None = Field(None, description="next hop, in a network of the switch")
    discard: bool = Field(False, description="drop the packets instead of forwarding them")
    vrf: Literal["default", "management"] = Field("default", description="routing table of the route")
    devices: Text = Field("", description="which switches, as --limit names them; default: all")


class RoutingIntent(Strict):
    """Routing. The defaults prevent valley paths; see docs/design.md before changing them."""

    leaf_export: Literal["local", "all"] = Field("local", description="what leaves announce to spines")
    spine_asn: Literal["shared", "unique"] = Field(
        "shared", description="one AS number for all spines of a pod, or one for each"
    )
    allowas_in: bool = Field(False, description="accept routes that already carry the own AS number")
    keepalive_s: int = Field(3, ge=1, le=60, description="seconds between two BGP keepalives")
    hold_s: int = Field(
        9, ge=3, le=180, description="BGP hold time: a session without messages for this many seconds is closed"
    )
    connect_s: int = Field(10, ge=1, le=240, description="seconds between two connection attempts")
    max_paths: int = Field(64, ge=1, le=128, description="equal-cost paths that may share the traffic of one route")
    bfd: BfdIntent = Field(BfdIntent.model_construct(), description="BFD, which detects silent link failures")
    static: tuple[StaticRouteIntent, ...] | None = Field(
        None, description="static routes; with a list, even an empty one, netkit removes all others of the default VRF"
    )


class Management(Strict):
    """Out-of-band addresses of the switches; hosts keep their own."""

    pool: Network = Field(description="one address for each switch")
    gateway: Address = Field(description="default gateway of the management network")
    first_offset: int = Field(10, ge=1, description="offset of the first switch in the pool")
    allow: tuple[Network, ...] = Field(
        (),
        max_length=50,
        description="networks that may reach SSH, SNMP and the API of the switches; default: all",
    )
    pool_v6: NetworkV6 | None = Field(
        None, description="IPv6: one address for each switch, with the same offset as its IPv4 address in pool"
    )
    gateway_v6: AddressV6 | None = Field(None, description="with pool_v6: default gateway")


class SyslogServerIntent(Strict):
    """One syslog collector."""

    address: Server = Field(description="address of the collector")
    port: int = Field(514, ge=1, le=65_535, description="it listens on")
    protocol: Literal["udp", "tcp"] = Field("udp", description="transport protocol")


class SnmpIntent(Strict):
    """SNMPv3 read access. Secrets are given by name; their values are never written to a file."""

    user: Name = Field("netkit", description="of SNMPv3")
    auth_secret: SecretName | None = Field(None, description="name of the authentication secret")
    priv_secret: SecretName | None = Field(None, description="name of the privacy secret")
    location: Text = Field("", description="the location that SNMP reports")
    contact: Text = Field("", description="the contact that SNMP reports")


class LoginIntent(Strict):
    """The account that netkit logs in with; only a password hash is configured."""

    user: Name = Field("netkit", description="its name")
    password_hash_secret: SecretName | None = Field(
        None, description="name of the secret that is the hash of its password"
    )


class ServicesIntent(Strict):
    """Services that every switch uses."""

    ntp: tuple[Server, ...] = Field((), description="time servers")
    dns: tuple[Server, ...] = Field((), description="name servers")
    syslog: tuple[SyslogServerIntent, ...] = Field((), description="syslog collectors")
    snmp: SnmpIntent | None = Field(None, description="read access for monitoring")
    login: LoginIntent | None = Field(None, description="the account that netkit creates for itself")
    timezone: Timezone = Field("Etc/UTC", description="time zone of clocks and logs")


class Names(Strict):
    """Name patterns. {number} counts up to the ceilings, so it is stable too."""

    leaf: Annotated[str, name_pattern("unit", "rail", "pod", "number", marks="._-")] | None = Field(
        None, description="with {unit}, {rail}, {pod}, {number}"
    )
    spine: Annotated[str, name_pattern("slot", "pod", "plane", "number", marks="._-")] | None = Field(
        None, description="with {slot}, {pod}, {plane}, {number}"
    )
    core: Annotated[str, name_pattern("slot", "plane", "number", marks="._-")] | None = Field(
        None, description="with {slot}, {plane}, {number}"
    )
    host: Annotated[str, name_pattern("slot", "unit", "pod", "number", marks="._-")] | None = Field(
        None, description="with {slot}, {unit}, {pod}, {number}"
    )


class Override(Strict):
    """Differing settings of one device, or of all that a glob matches."""

    version: Version | None = Field(None, description="of the network operating system")
    asn: Asn | None = Field(None, description="AS number")
    loopback: Address | None = Field(None, description="address of the loopback")
    management: AddressWithLength | None = Field(None, description="out-of-band address, with prefix length")
    adaptive_routing: bool | None = Field(
        None, description="adaptive routing; refused if only part of the fabric has it"
    )
    drain: bool = Field(False, description="graceful shutdown of the whole switch")
    drain_neighbors: tuple[DottedName, ...] = Field((), description="graceful shutdown towards these neighbours only")
    macs: dict[int, Mac] = Field(default_factory=dict, description="hosts: MAC address of the NIC, by rail")
    leaves: dict[int, DottedName] = Field(
        default_factory=dict, description="hosts: leaf that the rail's NIC is connected to, by rail"
    )
    rack: RackName | None = Field(None, description="its rack; for hosts also a label for schedulers")
    system_mac: Mac | None = Field(
        None, description="switches: base MAC address, if the configuration of the NOS contains it"
    )


class DeviceEntry(Strict):
    """A row of the table of devices: the place of a device in the design, and its own values."""

    role: Literal["leaf", "spine", "core", "host"] = Field(description="with the next five, the place in the design")
    pod: int | None = Field(None, ge=1, description="of a leaf, spine or host; default: 1")
    unit: int | None = Field(None, ge=1, description="of a leaf or host")
    rail: int | None = Field(None, ge=0, description="of a leaf, counted from 0")
    plane: int | None = Field(None, ge=0, description="of a two-tier spine or a core switch, from 0; default: 0")
    slot: int | None = Field(None, ge=1, description="of a spine, core switch or host")
    name: DottedName | None = Field(None, description="name, instead of the pattern's")
    model: CatalogName | None = Field(
        None,
        description="model, instead of that of the tier or unit: a switch splits cages alike; "
        "the NICs of a host have the speed of the others of its unit",
    )
    platform: PlatformName | None = Field(
        None, description="switches: network operating system, instead of that of the tier; with its version"
    )
    version: Version | None = Field(None, description="switches: version of the network operating system")
    serial: Serial | None = Field(None, description="serial number of the chassis")
    rack: RackName | None = Field(None, description="its rack")
    rack_unit: int | None = Field(None, ge=1, le=100, description="lowest rack unit that it occupies")
    management: AddressWithLength | None = Field(
        None, description="out-of-band address, with prefix length; of hosts, only the address that netkit connects to"
    )
    management_gateway: Address | None = Field(None, description="switches: instead of management.gateway")
    loopback: Address | None = Field(None, description="switches: within pools.loopbacks")
    asn: Asn | None = Field(None, description="switches: AS number")
    prefix: Network | None = Field(None, description="leaves: prefix of its hosts, with the length of all leaves")
    vlan: VlanNumber | None = Field(None, description="leaves, with vlan attachment: VLAN, instead of that of the rail")
    vlan_gateway: Address | None = Field(
        None, description="leaves, with vlan attachment: gateway; default: the first address of the prefix"
    )
    management_v6: AddressV6 | None = Field(None, description="switches: within management.pool_v6")
    loopback_v6: AddressV6 | None = Field(None, description="switches: within pools.loopbacks_v6")
    prefix_v6: NetworkV6 | None = Field(None, description="leaves: of its hosts, a /64 within pools.hosts_v6")


class RailEntry(Strict):
    """A row of the table of rails."""

    rail: int = Field(ge=0, description="counted from 0")
    prefix: Network | None = Field(
        None, description="prefix of the rail within pools.hosts, which contains those of its leaves"
    )
    vlan: VlanNumber | None = Field(None, description="with vlan attachment: VLAN, instead of first_vlan + rail")
    prefix_v6: NetworkV6 | None = Field(
        None, description="prefix of the rail within pools.hosts_v6, which contains those of its leaves"
    )


class NicEntry(Strict):
    """A row of the table of NICs: a rail NIC of a host, and its addresses."""

    host: DottedName = Field(description="its current name")
    rail: int = Field(ge=0, description="counted from 0")
    address: Address | None = Field(None, description="address of the NIC, in the prefix of its leaf")
    gateway: Address | None = Field(None, description="p2p only: address of the leaf's port; default: the other end")
    mac: Mac | None = Field(None, description="MAC address of the NIC")
    address_v6: AddressV6 | None = Field(None, description="of the NIC, within the IPv6 prefix of its leaf")
    gateway_v6: AddressV6 | None = Field(None, description="p2p only: of the leaf's port; default: the other end")


class CableEntry(Strict):
    """A row of the table of cables: the devices it connects, in any order, and its own values."""

    device: DottedName = Field(
        description="current name of a device; with peer and link, identifies the cable in the design"
    )
    port: PortName | None = Field(None, description="switches: port, as named by the NOS; hosts: rail0, rail1 …")
    peer: DottedName = Field(description="the device at the other end")
    peer_port: PortName | None = Field(None, description="the port there")
    link: int | None = Field(None, ge=1, description="number of the link between two switches; default: 1")
    length_m: Metres | None = Field(None, description="instead of that of its kind")
    media: CatalogName | None = Field(None, description="instead of that of its kind")
    label: Label | None = Field(None, description="text of its label; default: both ends")
    address: AddressWithLength | None = Field(
        None,
        description="between switches: address of device and prefix length; default: by pools.links, else unnumbered",
    )
    peer_address: Address | None = Field(None, description="with address: address of the peer, in the same network")


class Tables(Strict):
    """Names and numbers of your own, in CSV files beside fabric.yaml or in it. The design fills empty cells."""

    devices: Annotated[tuple[DeviceEntry, ...], FromFile()] = Field(
        (), description="names, places, addresses and AS numbers of devices"
    )
    cables: Annotated[tuple[CableEntry, ...], FromFile()] = Field(
        (), description="ports, lengths, media and labels of cables"
    )
    rails: Annotated[tuple[RailEntry, ...], FromFile()] = Field((), description="prefixes and VLANs of rails")
    nics: Annotated[tuple[NicEntry, ...], FromFile()] = Field((), description="addresses of the rail NICs of hosts")

    @classmethod
    def columns(cls) -> Mapping[str, type[BaseModel]]:
        """The model of a row of each table."""
        return {"devices": DeviceEntry, "cables": CableEntry, "rails": RailEntry, "nics": NicEntry}


class EdgeFilterIntent(Strict):
    """Packets from a peer outside that are dropped. All others may enter."""

    deny_from: tuple[Network, ...] | None = Field(
        None, description="sources that are dropped; default: all pools of the fabric"
    )
    deny_to: tuple[Network, ...] | None = Field(
        None, description="destinations that are dropped; default: the pools of switches"
    )
    first_number: int = Field(
        10, ge=10, le=9000, description="number of the first rule; the others follow in steps of 10"
    )


class NetworkSwitches(Strict):
    """The switches of a network beside the rails: a pair that its hosts see as one, or a single switch."""

    model: CatalogName = Field(description="switch model, a file of the hardware catalogue")
    platform: PlatformName = Field(description="network operating system")
    version: Version = Field(description="version of the network operating system")
    breakout: Breakout = Field(description="how cages are split, such as 1x100G")
    pair: bool = Field(True, description="two switches with MLAG; false: one switch")
    peer_links: int = Field(2, ge=1, le=8, description="links between the two, in the last cages")
    peer_cable: CableIntent | None = Field(None, description="cable of these links; required for a pair")
    asn: Asn = Field(description="AS number of both switches")
    loopback: Address = Field(
        description="loopback of the first switch, outside pools.loopbacks; the second has the next address"
    )
    management: Address | None = Field(
        None, description="management address of the first switch, in management.pool; the second has the next"
    )
    names: tuple[DottedName, ...] = Field(
        (), description="names of the switches; default: the name of the network with 01 and 02"
    )


class NetworkVlan(Strict):
    """A VLAN of a network beside the rails."""

    number: VlanNumber = Field(description="of the VLAN")
    name: Name | None = Field(None, description="name on the switches; default: vlan and its number")
    prefix: Network | None = Field(
        None,
        description="the first address is the gateway, the next two are those of a pair; default: layer 2 only",
    )
    gateway: Address | None = Field(None, description="gateway in the prefix; default: its first address")
    switch_addresses: tuple[Address, ...] = Field(
        (),
        max_length=2,
        description="of a pair: the addresses of both switches; default: the second and third of the prefix",
    )


class NetworkHosts(Strict):
    """How GPU hosts are attached to a network beside the rails."""

    interfaces: tuple[Interface, ...] = Field(
        min_length=1, max_length=8, description="NICs of a host, connected to the switches in turn"
    )
    bond: Interface = Field("bond0", description="name of their LAG; a single NIC forms none")
    vlan: VlanNumber | None = Field(None, description="untagged; default: the first of vlans")
    first_port: PortName | None = Field(
        None, description="port of the first host up to the ceilings, from which the others follow; default: the first"
    )
    ports: dict[DottedName, PortName] = Field(
        default_factory=dict, description="first port of single hosts, by name; the same on both switches of a pair"
    )
    first_address: int = Field(16, ge=4, description="offset in the prefix of the first host up to the ceilings")
    routes: tuple[Network, ...] = Field((), description="prefixes behind the gateway; 0.0.0.0/0 for all that is left")
    media: CatalogName = Field(description="of the cables, an entry of the hardware catalogue")
    length_m: Metres = Field(description="the longest cable, in metres")


class NetworkServer(Strict):
    """Another attached device, such as storage. netkit configures only the switch ports."""

    name: Name = Field(description="name in port descriptions")
    ports: tuple[PortName, ...] = Field(min_length=1, description="its ports, the same on both switches of a pair")
    lag: bool = Field(True, description="whether its ports form a LAG")
    vlan: VlanNumber | None = Field(None, description="untagged; default: none if tagged is given, else the first")
    tagged: tuple[VlanNumber, ...] = Field((), description="tagged VLANs")


class NetworkIntent(Strict):
    """A network beside the rails, with its own switches. It is lossy Ethernet."""

    name: Name = Field(description="name of the network, such as storage")
    role: Literal["storage", "frontend", "oob"] = Field("storage", description="purpose; --limit selects by it")
    pod: Numbers | None = Field(None, description="pods whose hosts are attached; default: all")
    unit: Numbers | None = Field(None, description="units whose hosts are attached, such as 1-8; default: all")
    switches: NetworkSwitches = Field(description="the switches")
    vlans: tuple[NetworkVlan, ...] = Field(min_length=1, description="its VLANs")
    hosts: NetworkHosts | None = Field(None, description="how hosts are attached; default: not at all")
    servers: tuple[NetworkServer, ...] = Field((), description="other attached devices, such as storage")
    mtu_bytes: int = Field(9000, ge=1280, le=9216, description="MTU of host ports, LAGs and gateways")


class External(Strict):
    """A routed port to a network outside the fabric, and the BGP session over it."""

    name: Name = Field(description="name of the peer, such as isp-a; prefix lists have it too")
    device: DottedName = Field(description="the switch it is connected to, by its current name; not a leaf")
    port: PortName = Field(description="port there, as named by the NOS, in a cage that the ceilings do not need")
    breakout: Breakout | None = Field(
        None, description="how its cage is split; default: like those towards lower switches"
    )
    address: AddressWithLength = Field(description="address of the port, with prefix length, such as 203.0.113.1/31")
    peer: Address = Field(description="address of the peer, in the same network")
    asn: Asn = Field(description="AS number of the peer")
    accept: tuple[Network, ...] = Field(
        (IPv4Network("0.0.0.0/0"),), min_length=1, description="prefixes accepted from the peer, and no others"
    )
    announce: tuple[Network, ...] = Field(
        min_length=1,
        description="summaries of pools.hosts or pools.loopbacks, or prefixes of the switch's own network: "
        "what the peer gets, and nothing else",
    )
    max_prefixes: int = Field(
        100, ge=1, le=1_000_000, description="the session is closed if the peer announces more prefixes"
    )
    filter: EdgeFilterIntent | None = Field(None, description="an access list on the port; default: none")
    bfd: bool = Field(False, description="whether BFD runs with the peer")
    mtu_bytes: int = Field(1500, ge=1280, le=9216, description="of the port")


class PathRuleIntent(Strict):
    """Part of the configuration of some devices."""

    path: ConfigPath = Field(
        description="path as in `netkit platforms NAME`, with everything below it; a part may be a pattern"
    )
    devices: Text = Field("", description="which devices, as --limit names them; default: all")


class Firmware(Strict):
    """Approved firmware. A kind without a matching name is only compared with others of its kind."""

    nics: dict[Text, tuple[Text, ...]] = Field(
        default_factory=dict, description="PSID or part number of a NIC, or a glob: approved versions"
    )
    modules: dict[Text, tuple[Text, ...]] = Field(
        default_factory=dict, description="part number of a module or cable, or a glob: approved versions"
    )


class Thresholds(Strict):
    """Health thresholds of the checks."""

    cnp_loss_warn_percent: float = Field(
        1.0,
        ge=0,
        le=100,
        description="share of the CNPs sent on a rail that are never received, in percent; more warns",
    )
    cnp_loss_fail_percent: float = Field(5.0, ge=0, le=100, description="the same; more fails")
    pause_fraction_warn: float = Field(
        0.01, ge=0, le=1, description="fraction of the time that a port is paused; more warns"
    )
    pause_fraction_fail: float = Field(0.05, ge=0, le=1, description="the same; more fails")
    pause_rate_warn: float = Field(
        100, ge=0, description="pauses per second, if a device does not report pause time; more warns"
    )
    pause_rate_fail: float = Field(1000, ge=0, description="the same")
    headroom_warn_percent: float = Field(
        50, ge=0, le=100, description="peak use of the headroom of a lossless queue within the window; more warns"
    )
    ber_warn: float = Field(1e-6, ge=0, le=1, description="bit error rate before FEC; more warns")
    ber_fail: float = Field(2.4e-5, ge=0, le=1, description="the same; more fails")
    fec_symbols_warn: int = Field(
        8, ge=1, le=16, description="wrong symbols in a codeword, of which 15 can be corrected; this many warn"
    )
    fec_symbols_fail: int = Field(12, ge=1, le=16, description="the same")
    light_margin_db: float = Field(
        1.0, ge=0, description="optical power closer to the module's warning limit than this warns"
    )
    light_trend_db: float = Field(
        2.0, ge=0, description="received power that is lower than in earlier runs by more than this warns"
    )
    lane_spread_db: float = Field(
        3.0, ge=0, description="a larger difference of received power between the lanes of a module warns"
    )
    loss_outlier_db: float = Field(
        3.0, ge=0, description="a cable whose loss exceeds that of others of its kind by more than this warns"
    )
    temperature_warn_c: float = Field(70, description="temperature of a module without limits of its own; more warns")
    temperature_fail_c: float = Field(75, description="the same")
    link_up_warn_s: float = Field(30, ge=0, description="a link that takes longer to come up warns")
    disk_warn_percent: float = Field(
        90, ge=0, le=100, description="use of a file system that a device writes to, in space or files; more warns"
    )
    balance_percent: float = Field(
        25, ge=0, description="uplinks whose load is further from the mean of their switch warn"
    )
    balance_minimum_percent: float = Field(
        10, ge=0, le=100, description="use of uplinks below which balance is not judged"
    )
    probe_loss_percent: float = Field(0, ge=0, le=100, description="lost probes of one size and path; more fail")
    probe_outlier_us: float = Field(
        500, ge=0, description="a path whose fastest answer takes this much longer than usual for its distance warns"
    )
    busbw_warn_percent: float = Field(
        90, ge=0, le=100, description="bus bandwidth of a collective, relative to the NICs of a host; less warns"
    )
    busbw_fail_percent: float = Field(80, ge=0, le=100, description="the same")
    scaling_warn_percent: float = Field(
        90, ge=0, le=100, description="bus bandwidth over many hosts, relative to that over the fewest; less warns"
    )
    scaling_fail_percent: float = Field(75, ge=0, le=100, description="the same")
    straggler_percent: float = Field(
        85,
        ge=0,
        le=100,
        description="bandwidth of a run, relative to the fastest of its kind; a slower run contains a slow NIC",
    )
    line_rate_warn_percent: float = Field(
        97, ge=0, le=100, description="RDMA bandwidth, relative to the rate of the NIC; less warns"
    )
    line_rate_fail_percent: float = Field(95, ge=0, le=100, description="the same")
    rdma_outlier_us: float = Field(
        2, ge=0, description="RDMA latency that exceeds the usual one for its distance by more than this warns"
    )
    rdma_repeats_per_s: float = Field(
        1, ge=0, description="RDMA packets per second that a NIC retransmits or receives out of order; more warns"
    )
    load_minimum_percent: float = Field(
        80,
        ge=0,
        le=100,
        description="share of a NIC's rate; below this load, classes do not compete and are not judged",
    )
    share_margin_percent: float = Field(
        5,
        ge=0,
        le=100,
        description="percentage points by which the share of the lossless class may be below its weight under load",
    )


class Intent(Strict):
    """The intent of a fabric."""

    name: Name = Field(description="name of the fabric")
    site: Name = Field("site", description="site of the fabric")
    purpose: Literal["production", "lab"] = Field(
        "production", description="a lab may use platforms without lossless Ethernet"
    )
    topology: Literal["two-tier", "three-tier", "rail-only"] = Field(
        "two-tier", description="tiers of switches above the hosts"
    )
    rails: int = Field(8, ge=1, le=16, description="NICs per host in the fabric; each unit has one leaf per rail")
    attachment: Literal["p2p", "vlan"] = Field(
        "p2p", description="a routed /31 for each NIC, or a VLAN and SVI per leaf"
    )
    host_routes: Literal["per-leaf", "supernet"] = Field(
        "supernet", description="one static route per leaf, or per rail"
    )
    cross_rail: Literal["routed", "blocked"] = Field("routed", description="whether a NIC reaches NICs on other rails")
    adaptive_routing: bool = Field(False, description="adaptive routing, on all switches or on none")
    ceilings: Ceilings = Field(description="how far the fabric may grow without renumbering")
    switches: Switches = Field(description="models, platforms and breakouts by tier")
    hosts: Hosts = Field(description="model and settings of the GPU hosts")
    units: tuple[Unit, ...] = Field(min_length=1, description="the installed units")
    clusters: Clusters = Field(Clusters.model_construct(), description="Kubernetes and Slurm clusters on the hosts")
    cables: Cables = Field(description="media and lengths by kind of link")
    pools: Pools = Field(description="addresses and AS numbers")
    management: Management | None = Field(None, description="out-of-band addresses of the switches")
    lossless: Lossless = Field(Lossless.model_construct(), description="classes, ECN, PFC watchdog, buffers")
    routing: RoutingIntent = Field(RoutingIntent.model_construct(), description="BGP and BFD")
    networks: tuple[NetworkIntent, ...] = Field(
        (), description="networks beside the rails: storage, front-end, out-of-band"
    )
    external: tuple[External, ...] = Field((), description="peers outside the fabric, such as providers")
    services: ServicesIntent = Field(ServicesIntent.model_construct(), description="NTP, DNS, syslog, SNMPv3, login")
    names: Names = Field(Names.model_construct(), description="name patterns")
    firmware: Firmware = Field(
        Firmware.model_construct(), description="approved versions of NICs and modules; read by checks only"
    )
    thresholds: Thresholds = Field(Thresholds.model_construct(), description="limits at which a check warns or fails")
    overrides: dict[str, Override] = Field(
        default_factory=dict, description="differing settings of single devices, by name or glob"
    )
    tables: Tables = Field(Tables.model_construct(), description="names and numbers of your own, for many devices")
    leave: tuple[Annotated[PathRuleIntent, ShortForm("path")], ...] = Field(
        (),
        description="parts that netkit neither compares nor changes: a path, or an entry with path and devices",
    )
    own: tuple[Annotated[PathRuleIntent, ShortForm("path")], ...] = Field(
        (), description="additional configuration that netkit owns, for your own templates; the same form"
    )


DIALECT = "https://json-schema.org/draft/2020-12/schema"


def json_schema() -> dict[str, Any]:
    """The schema editors check fabric.yaml with."""
    schema = Intent.model_json_schema()
    return {
        "$schema": DIALECT,
        "$comment": "written by `netkit schema`",
        **schema,
        "title": "netkit fabric",
    }
