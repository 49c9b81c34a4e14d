"""The values that the templates of SONiC need."""

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from ipaddress import IPv4Address

from netkit.design.fabric import Bfd, ExternalPort, Fabric, Port, PortProfile, Snmp, Switch
from netkit.design.traffic import EcnThresholds, Headroom, LosslessProfile, WatchdogTimers
from netkit.errors import Problem, RenderError
from netkit.hardware import catalog
from netkit.platforms.frr import dialects as frr_dialects
from netkit.platforms.frr.view import FrrRouting, routing
from netkit.platforms.sonic.dialects import SonicDialect, dialect
from netkit.platforms.sonic.hardware import BufferPools, SonicHardware, hardware
from netkit.platforms.sonic.tables import CONTROL_LISTS, HIGHEST_PRIORITY
from netkit.render.output import Artifact

# Packets of the CPU (BGP, BFD, LLDP) use this queue whatever their DSCP.
CONTROL_QUEUE = 7
# Up to 202505 a patch may change only the green thresholds of the profile with this name. Changing the further profiles
# of port speeds with other thresholds takes a reload.
ECN_PROFILE = "AZURE_LOSSLESS"
BYTES_PER_S_PER_GBPS = 125_000_000
WATCHDOG_MIN_MS = 100

Numbers = dict[str, str]
"""A map of numbers, which are texts in CONFIG_DB."""


@dataclass(frozen=True, slots=True)
class StrictScheduler:
    """A strict queue; with a rate, in bytes a second, it is capped."""

    name: str
    rate: int | None


@dataclass(frozen=True, slots=True)
class SonicEcnProfile:
    """A WRED profile that marks and does not drop."""

    name: str
    thresholds: EcnThresholds


@dataclass(frozen=True, slots=True)
class HeadroomProfile:
    """A lossless ingress profile with explicit headroom."""

    name: str
    headroom: Headroom


@dataclass(frozen=True, slots=True)
class LosslessPort:
    """A port in use, and its profiles."""

    name: str
    ecn_profile: str
    cnp_scheduler: str
    headroom_profile: str


@dataclass(frozen=True, slots=True)
class SonicWatchdogTimes:
    """The watchdog's times within the range of PFC_WD."""

    poll_ms: int
    detection_ms: int
    restoration_ms: int
    action: str


@dataclass(frozen=True, slots=True)
class SonicQos:
    """All of a switch's QoS."""

    roce: int
    cnp: int
    best_effort: int
    best_effort_weight: int
    roce_weight: int
    dscp_to_class: Numbers
    class_to_queue: Numbers
    pfc_to_queue: Numbers
    control_queue: int | None
    strict_schedulers: tuple[StrictScheduler, ...]
    ecn_profiles: tuple[SonicEcnProfile, ...]
    ports: tuple[LosslessPort, ...]
    watchdog: SonicWatchdogTimes
    pools: BufferPools
    has_pool_shares: bool
    lossless_percent: int
    lossy_percent: int
    headroom_profiles: tuple[HeadroomProfile, ...]
    lossy_queues: tuple[str, ...]
    lossless_frame_bytes: int


def qos_view(lossless: LosslessProfile, switch: Switch, hardware: SonicHardware, words: SonicDialect) -> SonicQos:
    profiles = _distinct(switch.ports)
    ecn_profiles = _ecn_profiles(profiles)
    roce, cnp, rest = lossless.roce, lossless.cnp, lossless.best_effort
    has_control = CONTROL_QUEUE not in {roce.priority, cnp.priority, rest.priority}
    return SonicQos(
        roce=roce.priority,
        cnp=cnp.priority,
        best_effort=rest.priority,
        # A DWRR scheduler takes 1 to 100; the intent may give all to one class.
        best_effort_weight=max(1, rest.weight),
        roce_weight=max(1, roce.weight),
        dscp_to_class=_numbers(lossless.priority_to_class[priority] for priority in lossless.dscp_to_priority),
        class_to_queue=_numbers(lossless.priority_to_class),
        pfc_to_queue=_numbers(range(8)),
        control_queue=CONTROL_QUEUE if has_control else None,
        strict_schedulers=tuple(_strict_schedulers(lossless, profiles, has_control=has_control)),
        ecn_profiles=ecn_profiles,
        ports=tuple(_qos_ports(lossless, switch, hardware, ecn_profiles)),
        watchdog=_watchdog(lossless.watchdog),
        pools=hardware.pools,
        has_pool_shares=words.has_pool_percentage,
        lossless_percent=lossless.pool_percent,
        lossy_percent=100 - lossless.pool_percent,
        headroom_profiles=tuple(_headroom_profiles(profiles, switch, hardware)),
        lossy_queues=tuple(_ranges(queue for queue in range(8) if queue != roce.priority)),
        lossless_frame_bytes=catalog.lossless_frame_bytes(),
    )


def _distinct(ports: Iterable[Port]) -> tuple[PortProfile, ...]:
    """Each port profile once: a switch has two or three, however many ports."""
    return tuple({id(port.profile): port.profile for port in ports}.values())


def _qos_ports(
    lossless: LosslessProfile, switch: Switch, hardware: SonicHardware, ecn_profiles: tuple[SonicEcnProfile, ...]
) -> Iterator[LosslessPort]:
    ecn_names = {profile.thresholds: profile.name for profile in ecn_profiles}
    profiles_by_id = {
        id(profile): (
            ecn_names[profile.ecn],
            _cnp_scheduler(lossless, profile.speed_gbps),
            _explicit_headroom(profile, switch, hardware) or "NULL",
        )
        for profile in _distinct(switch.ports)
    }
    for port in switch.ports:
        yield LosslessPort(port.name, *profiles_by_id[id(port.profile)])


def _numbers(values: Iterable[int]) -> Numbers:
    return {str(number): str(value) for number, value in enumerate(values)}


def cable_length(profile: PortProfile) -> str:
    """The CABLE_LENGTH value: the vendor's table row, so that switch and design get the same headroom."""
    room = profile.headroom
    length = room.table_cable_m if room and room.table_cable_m else profile.cable.length_m
    return f"{math.ceil(length)}m"


def _cnp_scheduler(lossless: LosslessProfile, speed_gbps: int) -> str:
    return "scheduler.cnp" if lossless.cnp.shape_percent is None else f"scheduler.cnp-{speed_gbps}g"


def _strict_schedulers(
    lossless: LosslessProfile, profiles: tuple[PortProfile, ...], *, has_control: bool
) -> Iterator[StrictScheduler]:
    """Yield the schedulers of control traffic and CNP. Rates are in bytes a second; unverified on a switch."""
    percent = lossless.cnp.shape_percent
    if has_control:
        yield StrictScheduler("scheduler.control", None)
    if percent is None:
        yield StrictScheduler("scheduler.cnp", None)
        return
    for speed in sorted({profile.speed_gbps for profile in profiles}):
        yield StrictScheduler(_cnp_scheduler(lossless, speed), speed * BYTES_PER_S_PER_GBPS * percent // 100)


def _ecn_profiles(profiles: tuple[PortProfile, ...]) -> tuple[SonicEcnProfile, ...]:
    """One profile per set of thresholds; the fastest ports use the one that can be patched."""
    speeds: dict[EcnThresholds, int] = {}
    for profile in profiles:
        speeds[profile.ecn] = max(profile.speed_gbps, speeds.get(profile.ecn, 0))
    fastest_first = sorted(speeds.items(), key=lambda item: -item[1])
    return tuple(
        SonicEcnProfile(f"{ECN_PROFILE}_{speed}G" if number else ECN_PROFILE, thresholds)
        for number, (thresholds, speed) in enumerate(fastest_first)
    )


def _watchdog(watchdog: WatchdogTimers) -> SonicWatchdogTimes:
    """Raise times to the shortest poll interval; the design has refused those that are too long."""
    poll = max(WATCHDOG_MIN_MS, watchdog.poll_ms)
    return SonicWatchdogTimes(
        poll_ms=poll,
        detection_ms=max(poll, watchdog.detection_ms),
        restoration_ms=max(poll, watchdog.restoration_ms),
        action=watchdog.action,
    )


def _explicit_headroom(profile: PortProfile, switch: Switch, hardware: SonicHardware) -> str:
    """The name of the profile with a port's explicit headroom; empty if the switch computes it."""
    room, speed, cable = profile.headroom, profile.speed_gbps, cable_length(profile)
    if hardware.is_dynamic:
        # "NULL": the switch computes the headroom from speed, cable and MTU. A value from the intent is fixed, under a
        # name that the switch does not use for computed profiles.
        return f"lossless_{speed * 1000}_{cable}_given" if room and room.origin == "intent" else ""
    if room is None:
        raise RenderError(
            Problem(
                f"no headroom is known for {switch.model.name} at {speed}G and {profile.cable.length_m:g} m",
                f"give lossless.headroom for {speed}",
            )
        )
    # buffermgrd looks for a profile with this name for each speed and cable, and uses an existing one unchanged, so
    # these values apply whether or not the lookup table of the image has them.
    return f"pg_lossless_{speed * 1000}_{cable}_profile"


def _headroom_profiles(
    profiles: tuple[PortProfile, ...], switch: Switch, hardware: SonicHardware
) -> Iterator[HeadroomProfile]:
    found: dict[str, Headroom] = {}
    for profile in profiles:
        name = _explicit_headroom(profile, switch, hardware)
        if name and profile.headroom:  # cables of almost one length share a name, and need the room of the longest
            found[name] = max(found.get(name, profile.headroom), profile.headroom, key=lambda room: room.xoff_bytes)
    for name, room in sorted(found.items()):
        yield HeadroomProfile(name, room)


def _ranges(numbers: Iterable[int]) -> Iterator[str]:
    """Yield 0-2, 4-7 for the numbers 0, 1, 2, 4, 5, 6, 7."""
    run: list[int] = []
    for number in (*numbers, -1):
        if run and number != run[-1] + 1:
            yield f"{run[0]}-{run[-1]}" if len(run) > 1 else str(run[0])
            run = []
        run.append(number)


# Both modes run frrcfgd (frr_mgmt_framework_config), because the container starts bfdd only together with it. In split
# mode it finds no BGP tables and does not touch FRR. bgpcfgd, which acts on BGP_DEVICE_GLOBAL (TSA), does not run then:
# a drain is FRR's graceful shutdown in both modes, and tsa_enabled stays false.
ROUTING_MODES = {"split": "split-unified", "unified": "unified"}
DEVICE_TYPES = {"leaf": "LeafRouter", "spine": "SpineRouter", "core": "SpineRouter"}
SNMP_USER_LENGTHS = range(4, 33)
# CONFIG_DB has BFD timers by peer address only, not of peer groups: FRR's defaults apply.
FRR_BFD = Bfd(interval_ms=300, multiplier=3)
# CONFIG_DB has no timers for ARP and MAC ageing. The image ages MACs after 600 s, and its arp_update probes every
# neighbour in a VLAN every few minutes, so that no MAC of a live host ages out and is flooded.
GNMI_PORT, LINK_LOCAL = 8080, "fe80::/10"
NO_HEADROOM = "0m"  # cable length for which the switch makes no lossless buffer
FLOOD_KBPS = 10_000  # unknown unicast of a host port: enough to relearn a host, too little to fill a lossless queue


@dataclass(frozen=True, slots=True)
class CageRow:
    """A cage with its breakout, under the name of its first port."""

    port: str
    mode: str


@dataclass(frozen=True, slots=True)
class PortRow:
    """A PORT row. A split cage has all its ports; those without a cable are down."""

    name: str
    alias: str
    index: int
    lanes: str
    speed: int
    mtu: int
    fec: str
    subport: int
    admin_status: str
    description: str
    cable: str


@dataclass(frozen=True, slots=True)
class SonicInterface:
    """A routed port: unnumbered, or with an address."""

    name: str
    link_local: str
    address: str | None
    address_v6: str | None = None


@dataclass(frozen=True, slots=True)
class AccessRow:
    """A rule of an access list of the control plane."""

    number: int
    field: str
    source: str

    @property
    def priority(self) -> int:
        return HIGHEST_PRIORITY - self.number


@dataclass(frozen=True, slots=True)
class AccessTable:
    """An access list of the control plane: the permitted sources of its services."""

    name: str
    services: tuple[str, ...]
    rules: tuple[AccessRow, ...]
    port: int | None = None


@dataclass(frozen=True, slots=True)
class SonicView:
    """Values of one switch that neither the design nor the dialect of its release has."""

    hardware: SonicHardware
    device_type: str
    buffer_model: str
    routing_mode: str
    service_vrf: str
    dns_routes: tuple[str, ...]
    dns_routes_v6: tuple[str, ...]
    snmp_users: tuple[Snmp, ...]
    cages: tuple[CageRow, ...]
    ports: tuple[PortRow, ...]
    interfaces: tuple[SonicInterface, ...]
    flood_kbps: int
    access: tuple[AccessTable, ...]
    edges: tuple[ExternalPort, ...]
    """Ports with an access list."""
    qos: SonicQos | None
    highest_priority: int = HIGHEST_PRIORITY


def artifacts(fabric: Fabric, switch: Switch) -> Iterator[Artifact]:
    words = dialect(switch.version)
    plan = routing(fabric, switch, frr_dialects.dialect(words.frr_version))
    view = build(fabric, switch, plan, words)
    context = {"fabric": fabric, "switch": switch, "view": view, "words": words, "routing": plan}
    yield Artifact("config_db.json", "sonic/config_db.json.j2", context)
    if switch.routing_mode == "split":
        # The container adds the zebra lines if they are missing; with them the file is unchanged.
        yield Artifact("frr.conf", "sonic/frr.conf.j2", {**context, "zebra_lines": words.zebra_lines})


def ztp(fabric: Fabric, switch: Switch) -> Iterator[Artifact]:
    """Yield what a factory-fresh switch needs to become reachable over the management network."""
    if switch.management is None:
        return
    logins = tuple(login for login in fabric.services.login if login.password_hash_secret)
    context = {"fabric": fabric, "switch": switch, "logins": logins}
    yield Artifact("ztp_config_db.json", "sonic/ztp_config_db.json.j2", context)
    yield Artifact("ztp.sh", "sonic/ztp.sh.j2", context)


def build(fabric: Fabric, switch: Switch, plan: FrrRouting, words: SonicDialect) -> SonicView:
    model = hardware(switch.model, switch.version)
    if switch.routing_mode == "unified" and plan.groups and fabric.routing.bfd != FRR_BFD:
        raise RenderError(
            Problem(
                "SONiC in unified mode cannot set the BFD timers of a peer group",
                f"use {FRR_BFD.interval_ms} ms × {FRR_BFD.multiplier}, or routing_mode: split",
                ("routing", "bfd"),
            )
        )
    snmp_users = tuple(snmp for snmp in fabric.services.snmp if snmp.auth_secret and snmp.priv_secret)
    for snmp in snmp_users:
        if len(snmp.user) not in SNMP_USER_LENGTHS:
            message = f"the SNMP user {snmp.user!r} is too short or too long for SONiC"
            raise RenderError(Problem(message, "use 4 to 32 characters", ("services", "snmp", "user")))
    if switch.management_static:
        message = f"{switch.name}: SONiC has no static routes in its management VRF"
        raise RenderError(Problem(message, "leave it out with devices", ("routing", "static")))
    interfaces = []
    for port in switch.ports:
        # Without link-local only, SONiC keeps IPv6 off on a port without an address, and the BGP session never starts.
        if port.address:
            interfaces.append(SonicInterface(port.name, "disable", port.address, port.address_v6 or None))
        elif port.role != "host":  # members of a host VLAN have none
            interfaces.append(SonicInterface(port.name, "enable", None))
    interfaces += [SonicInterface(outside.name, "disable", outside.address) for outside in switch.external]
    return SonicView(
        hardware=model,
        device_type=DEVICE_TYPES[switch.role],
        buffer_model="dynamic" if model.is_dynamic else "traditional",
        routing_mode=ROUTING_MODES[switch.routing_mode],
        service_vrf="mgmt" if switch.management else "default",
        dns_routes=tuple(f"{server}/32" for server in fabric.services.dns if ":" not in server),
        dns_routes_v6=tuple(f"{server}/128" for server in fabric.services.dns if ":" in server),
        snmp_users=snmp_users,
        cages=tuple(CageRow(cage.ports[0], model.breakout_mode(cage.split)) for cage in switch.cages),
        ports=tuple(_ports(switch, model)),
        interfaces=tuple(interfaces),
        flood_kbps=FLOOD_KBPS,
        access=tuple(_access(switch)),
        edges=tuple(port for port in switch.external if port.denied),
        qos=qos_view(fabric.lossless, switch, model, words) if switch.ports else None,
    )


def _access(switch: Switch) -> Iterator[AccessTable]:
    """Yield the permitted sources of the services of the control plane, then other packets that must pass.

    With the first list caclmgrd drops all that no list accepts, except BGP, ICMP and DHCP: BFD among the switches has
    to be in a list. No list can accept only BFD, so one for peers outside would open SSH to them.
    """
    networks = switch.management.allowed if switch.management else ()
    if not networks:
        return
    rules = tuple(AccessRow(number, "SRC_IP", network) for number, network in enumerate(networks, 1))
    peers = sorted((port.peer_address for port in switch.fabric_ports if port.peer_address), key=IPv4Address)
    addressed = tuple(AccessRow(number, "SRC_IP", f"{peer}/32") for number, peer in enumerate(peers, 1))
    link_local = (AccessRow(1, "SRC_IPV6", LINK_LOCAL),)
    others = link_local if 0 < len(peers) < len(switch.fabric_ports) else ()
    of_each = ((rules, None), (rules, GNMI_PORT), (addressed or link_local, None), (others, None))
    for (name, services), (rows, port) in zip(CONTROL_LISTS.items(), of_each, strict=True):
        if rows:
            yield AccessTable(name, services, rows, port)
    if any(port.has_bfd for port in switch.external):
        message = f"{switch.name}: with management.allow, SONiC drops BFD of peers outside the fabric"
        raise RenderError(Problem(message, "set bfd: false at the peer, or leave out management.allow", ("external",)))


def _ports(switch: Switch, hardware: SonicHardware) -> Iterator[PortRow]:
    """Yield all ports of all cages in use."""
    used = {port.name: port for port in switch.ports}
    outside = {port.name: port for port in switch.external}
    profiles = {port.cage: port.profile for port in switch.ports}
    external_cages = {port.cage: port for port in switch.external}
    cables = {id(port.profile): cable_length(port.profile) for port in switch.ports}
    for cage in switch.cages:
        split = cage.split
        for number, name in enumerate(cage.ports):
            port, external = used.get(name), external_cages.get(cage.number)
            profile = external or (port.profile if port else profiles[cage.number])
            description = outside[name].peer_name if name in outside else port.description if port else "unused"
            yield PortRow(
                name=name,
                alias=hardware.port_alias(split, cage.number, number),
                index=hardware.port_index_base + cage.number - 1,
                lanes=hardware.port_lanes(split, cage.number, number),
                speed=split.speed_gbps * 1000,
                mtu=profile.mtu_bytes,
                fec=profile.fec,
                subport=number + 1 if split.ports > 1 else 0,
                admin_status="up" if port or name in outside else "down",
                description=description,
                cable=NO_HEADROOM if external else cables[id(profile)],
            )
