"""The switch state of an EOS configuration, with EOS's defaults."""

import ipaddress
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from netkit.lab.personalities.eos.configuration import EosSection
from netkit.lab.personalities.eos.routing import frr
from netkit.lab.state import (
    CODE_POINTS,
    PRIORITIES,
    STP_PRIORITIES,
    EcnState,
    FilterRule,
    GnmiState,
    PortState,
    QosState,
    SchedulerState,
    SnmpState,
    SnmpV3User,
    SwitchState,
    VlanState,
    WatchdogState,
)

DEFAULT_CLASS_OF_EIGHT = (1, 0, 2, 3, 4, 5, 6, 7)
"""The traffic class of DSCP 0-7, 8-15 and so on."""
BYTES_PER_UNIT = {"bytes": 1, "kbytes": 1000, "mbytes": 1_000_000, "segments": 256}
ANYONE = "0.0.0.0/0"
DEFAULT_ACTION = "errdisable"


@dataclass(frozen=True, slots=True)
class EosTxQueue:
    """A transmit queue as configured; strict by default."""

    number: int
    is_strict: bool = True
    weight_percent: int = 0
    ecn: EcnState | None = None
    is_ecn_counted: bool = False


@dataclass(frozen=True, slots=True)
class EosQosProfile:
    """A QoS profile."""

    name: str
    trust: str = ""
    has_pfc: bool = False
    no_drop: frozenset[int] = frozenset()
    has_watchdog: bool = True
    queues: Mapping[int, EosTxQueue] | None = None

    def queue(self, number: int) -> EosTxQueue:
        return (self.queues or {}).get(number, EosTxQueue(number))


@dataclass(frozen=True, slots=True)
class EosWatchdogSettings:
    """The global PFC watchdog settings; without a timeout the watchdog is off."""

    timeout_s: float = 0
    recovery_s: float = 0
    polling_s: float = 0
    action: str = DEFAULT_ACTION
    override: str = ""


def profiles(config: EosSection) -> dict[str, EosQosProfile]:
    return {name: _profile(name, section) for (name,), section in config.sections("qos", "profile")}


def profile_of(config: EosSection, port: EosSection) -> EosQosProfile:
    """The QoS profile of a port; a missing profile is silently accepted and has no effect."""
    name = port.word("service-profile")
    return profiles(config).get(name, EosQosProfile(name))


def _profile(name: str, section: EosSection) -> EosQosProfile:
    found = [
        _queue(int(rest[0]), queue)
        for keyword in ("tx-queue", "uc-tx-queue")
        for rest, queue in section.sections(keyword)
    ]
    return EosQosProfile(
        name=name,
        trust=section.word("qos", "trust"),
        has_pfc=section.has("priority-flow-control", "on"),
        no_drop=frozenset(int(rest[0]) for rest in section.find("priority-flow-control", "priority")),
        has_watchdog=not section.is_off("priority-flow-control", "pause", "watchdog"),
        queues={queue.number: queue for queue in found},
    )


def _queue(number: int, section: EosSection) -> EosTxQueue:
    return EosTxQueue(
        number=number,
        is_strict=not section.is_off("priority"),
        weight_percent=int(section.word("bandwidth", "percent") or 0),
        ecn=_ecn(section),
        is_ecn_counted=section.has("random-detect", "ecn", "count"),
    )


def _ecn(section: EosSection) -> EcnState | None:
    found = section.one("random-detect", "ecn", "minimum-threshold")
    if found is None:
        return None
    low, low_unit, _, high, high_unit, _, probability, *_ = found
    # The queue length of a threshold in milliseconds depends on the port speed, which is not known here.
    to_bytes = {**BYTES_PER_UNIT, "milliseconds": 0}
    return EcnState(int(low) * to_bytes[low_unit], int(high) * to_bytes[high_unit], int(probability))


def watchdog_times(config: EosSection) -> EosWatchdogSettings:
    """The global watchdog settings; a polling interval longer than half the timeout is reduced, as EOS does."""
    start = ("priority-flow-control", "pause", "watchdog")
    timeout = float(config.word(*start, "default", "timeout") or 0)
    recovery = float(config.word(*start, "default", "recovery-time") or 0)
    longest = min(timeout, recovery or timeout) / 2
    polling = float(config.word(*start, "default", "polling-interval") or 0)
    return EosWatchdogSettings(
        timeout_s=timeout,
        recovery_s=recovery,
        polling_s=min(polling, longest) if polling else longest,
        action=config.word(*start, "action") or DEFAULT_ACTION,
        override=config.word(*start, "override", "action"),
    )


def class_of_dscp(config: EosSection) -> tuple[int, ...]:
    result = [DEFAULT_CLASS_OF_EIGHT[dscp // 8] for dscp in range(CODE_POINTS)]
    for dscp, _, _, traffic_class in config.find("qos", "map", "dscp"):
        result[int(dscp)] = int(traffic_class)
    return tuple(result)


def of_class(config: EosSection, *targets: str) -> tuple[int, ...]:
    """The queue or priority group of each traffic class; by default the one of the same number."""
    result = list(range(PRIORITIES))
    for traffic_class, _, target, number in config.find("qos", "map", "traffic-class"):
        if target in targets:
            result[int(traffic_class)] = int(number)
    return tuple(result)


def port_qos(config: EosSection, port: EosSection, *, is_routed: bool) -> QosState:
    """The QoS state of a port. By default a routed port trusts DSCP and a switched port trusts CoS."""
    profile = profile_of(config, port)
    trust = profile.trust or ("dscp" if is_routed else "cos")
    is_pfc_on = profile.has_pfc and not config.has("priority-flow-control", "all", "off")
    times = watchdog_times(config)
    watchdog = None
    if is_pfc_on and profile.has_watchdog and times.timeout_s:
        watchdog = WatchdogState(round(times.timeout_s * 1000), round(times.recovery_s * 1000))
    queues = profile.queues or {}
    return QosState(
        priority_of_dscp=class_of_dscp(config) if trust == "dscp" else (),
        class_of_priority=of_class(config, "tx-queue", "uc-tx-queue"),
        pfc_priorities=frozenset(
            priority for priority in profile.no_drop if priority in of_class(config, "priority-group")
        )
        if is_pfc_on
        else frozenset(),
        ecn={number: queue.ecn for number, queue in queues.items() if queue.ecn},
        schedulers={
            number: SchedulerState("strict") if queue.is_strict else SchedulerState("weighted", queue.weight_percent)
            for number, queue in queues.items()
        },
        watchdog=watchdog,
    )


FACTORY_HOSTNAME = "localhost"
DEFAULT_MTU, SWITCHED_MTU = 1500, 9214
FEC_WORDS = {"reed-solomon": "rs", "fire-code": "fc"}
MANAGEMENT = "Management1"
GNMI_PORT = 6030


@dataclass(frozen=True, slots=True)
class EosMlag:
    """The configuration of MLAG, where it is complete."""

    domain: str
    interface: str
    peer: str
    link: str
    backup: str
    is_first: bool
    """Whether it becomes primary; the lab decides by the addresses of the pair, EOS by priority and system MAC."""


def mlag(config: EosSection) -> EosMlag | None:
    """The MLAG of a switch; one that lacks a setting, or whose interface has no address, stays off."""
    section = config.section("mlag", "configuration")
    names = (section.word("domain-id"), section.word("local-interface"), section.word("peer-address"))
    own = config.section("interface", names[1]).word("ip", "address").partition("/")[0]
    link = section.word("peer-link")
    if not (all(names) and own and link) or section.has("shutdown"):
        return None
    backup = section.word("peer-address", "heartbeat")
    return EosMlag(*names, link, backup, ipaddress.IPv4Address(own) < ipaddress.IPv4Address(names[2]))


def members(config: EosSection, channel: str) -> tuple[str, ...]:
    """The ports of a port channel."""
    number = channel.removeprefix("Port-Channel")
    found = config.sections("interface")
    return tuple(name for (name,), section in found if section.word("channel-group") == number)


def switched(config: EosSection, section: EosSection) -> EosSection:
    """The section with the VLANs of a port: that of its port channel, if it is a member."""
    number = section.word("channel-group")
    return config.section("interface", f"Port-Channel{number}") if number else section


def tagged_vlans(config: EosSection, section: EosSection) -> tuple[int, ...]:
    """The VLANs that a trunk carries with a tag: a VLAN with a trunk group only if the trunk has it too."""
    if is_routed(section) or section.word("switchport", "mode") != "trunk":
        return ()
    groups = {rest[0] for rest in section.find("switchport", "trunk", "group")}
    allowed, native = section.word("switchport", "trunk", "allowed", "vlan"), native_vlan(section)
    ranges = [part.partition("-") for part in allowed.split(",") if part]
    numbers = {vlan for low, _, high in ranges for vlan in range(int(low), int(high or low) + 1)}
    between = mlag(config)
    return tuple(
        int(number)
        for (number,), vlan in config.sections("vlan")
        if is_vlan(config, number)
        and number != native
        and (not allowed or int(number) in numbers)
        and ((kept := {rest[0] for rest in vlan.find("trunk", "group")}) == set() or kept & groups)
        and (between is None or between.interface != f"Vlan{number}")  # a separate interface in the lab
    )


def native_vlan(section: EosSection) -> str:
    return section.word("switchport", "trunk", "native", "vlan") or "1"


def switch_state(config: EosSection, kernel_names: Mapping[str, str]) -> SwitchState:
    pair = mlag(config)
    return SwitchState(
        hostname=config.word("hostname") or FACTORY_HOSTNAME,
        ports=tuple(_port(config, name) for name in kernel_names),
        vlans=tuple(_vlans(config)),
        has_peer=pair is not None,
        peer_addresses=addresses(config.section("interface", pair.interface)) if pair else (),
        loopback_addresses=tuple(
            address
            for (name,), section in config.sections("interface")
            if name.startswith("Loopback") and not section.has("shutdown")
            for address in addresses(section)
        ),
        frr=frr(config, kernel_names),
        snmp=snmp(config),
        gnmi=gnmi(config),
        has_lldp=not config.is_off("lldp", "run"),
        adaptive_routing=is_dynamic(config),
        access=dict(_access(config)),
    )


def _access(config: EosSection) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Yield the services of the management VRF with an access list, and the permitted sources."""
    vrf = management_vrf(config)
    ssh, api = config.section("management", "ssh"), config.section("management", "api", "http-commands")
    for section, service in ((ssh, "ssh"), (config, "snmp")):
        start = ("ip", "access-group") if service == "ssh" else ("snmp-server", "ipv4", "access-list")
        for name, *rest in section.find(*start):
            if ("vrf" in rest and rest[rest.index("vrf") + 1] == vrf) or ("vrf" not in rest and vrf == "default"):
                yield service, _permitted(config, name)
    if name := api.section("vrf", vrf).word("ip", "access-group"):
        yield "https", _permitted(config, name)


def _permitted(config: EosSection, name: str) -> tuple[str, ...]:
    """What a standard list permits; a list that does not exist permits everything."""
    rules = [entry.words for entry in config.section("ip", "access-list", "standard", name).sorted()]
    if not rules:
        return (ANYONE,)
    return tuple(ANYONE if rule[-1] == "any" else rule[-1] for rule in rules if rule[1] == "permit")


def addresses(section: EosSection) -> tuple[str, ...]:
    """The addresses of an interface, of IPv4 and IPv6."""
    return tuple(rest[0] for word in ("ip", "ipv6") for rest in section.find(word, "address"))


def is_dynamic(config: EosSection) -> bool:
    """Whether dynamic load balancing replaces hashing."""
    return config.word("ip", "hardware", "fib", "load-balance", "distribution") == "dynamic"


def is_routed(section: EosSection) -> bool:
    """Whether a port is routed; ports are switched by default."""
    return section.is_off("switchport")


def access_vlan(config: EosSection, section: EosSection) -> int:
    """The VLAN of a switched port, or 0; the default VLAN 1 bridges nothing in the lab."""
    is_trunk = section.word("switchport", "mode") == "trunk"
    number = native_vlan(section) if is_trunk else section.word("switchport", "access", "vlan")
    return int(number) if not is_routed(section) and number and is_vlan(config, number) else 0


def is_vlan(config: EosSection, number: str) -> bool:
    """Whether a VLAN exists and is active."""
    return ("vlan", number) in config.entries and config.section("vlan", number).word("state") != "suspend"


def _port(config: EosSection, name: str) -> PortState:
    section = config.section("interface", name)
    routed, bridged = is_routed(section), switched(config, section)
    return PortState(
        name=name,
        is_enabled=not (section.has("shutdown") or bridged.has("shutdown")),
        mtu_bytes=int(section.word("mtu") or DEFAULT_MTU) if routed else SWITCHED_MTU,
        addresses=addresses(section) if routed else (),
        access_vlan=0 if routed else access_vlan(config, bridged),
        tagged_vlans=() if routed else tagged_vlans(config, bridged),
        description=section.word("description"),
        speed_gbps=speed_gbps(section),
        fec=fec(section),
        adaptive_routing=routed and is_dynamic(config),
        qos=port_qos(config, section, is_routed=routed),
        rules=tuple(_rules(config, section.word("ip", "access-group"))),
    )


def _rules(config: EosSection, name: str) -> Iterator[FilterRule]:
    """Yield the rules of an access list, in the order of their numbers; a list that does not exist has none."""
    rules = [entry.words for entry in config.section("ip", "access-list", name).sorted()]
    for _, action, _, source, destination in sorted(rules, key=lambda words: int(words[0])):
        yield FilterRule(action == "permit", *("" if word == "any" else word for word in (source, destination)))


def speed_gbps(section: EosSection) -> int:
    """The configured speed; 0 means that of the module."""
    speed = section.word("speed").partition("g")[0]
    return int(speed) if speed.isdigit() else 0


def fec(section: EosSection) -> str:
    """The configured FEC; empty means that of the module."""
    if section.is_off("error-correction", "encoding"):
        return "none"
    return FEC_WORDS.get(section.word("error-correction", "encoding"), "")


def _vlans(config: EosSection) -> Iterator[VlanState]:
    """Yield the VLANs; a VLAN without an active gateway still switches.

    The lab has no virtual MAC address: either switch of a pair answers for the gateway with its own.
    """
    pair = mlag(config)
    for (number,), _ in config.sections("vlan"):
        if not is_vlan(config, number) or (pair and pair.interface == f"Vlan{number}"):
            continue
        gateway = config.section("interface", f"Vlan{number}")
        yield VlanState(
            number=int(number),
            interface=f"Vlan{number}",
            addresses=() if gateway.has("shutdown") else (*addresses(gateway), *virtual_addresses(config, gateway)),
            stp_priority=STP_PRIORITIES[not pair.is_first] if pair else 0,
            mtu_bytes=int(gateway.word("mtu") or DEFAULT_MTU),
        )


def virtual_addresses(config: EosSection, gateway: EosSection) -> Iterator[str]:
    """Yield the virtual addresses that a switch answers for; without a virtual MAC address, none."""
    if config.one("ip", "virtual-router", "mac-address"):
        yield from (f"{rest[0]}/32" for rest in gateway.find("ip", "virtual-router", "address"))


def management_vrf(config: EosSection) -> str:
    return config.section("interface", MANAGEMENT).word("vrf") or "default"


def gnmi(config: EosSection) -> GnmiState | None:
    """The gNMI server if it listens in the management VRF."""
    server = config.section("management", "api", "gnmi")
    for _, transport in server.sections("transport", "grpc"):
        if not transport.has("shutdown") and (transport.word("vrf") or "default") == management_vrf(config):
            port = int(transport.word("port") or GNMI_PORT)
            return GnmiState(port, has_tls=bool(transport.word("ssl", "profile")))
    return None


def snmp_vrfs(config: EosSection) -> tuple[str, ...]:
    named = tuple(rest[0] for rest in config.find("snmp-server", "vrf") if len(rest) == 1)
    return named if config.is_off("snmp-server", "vrf", "default") else ("default", *named)


def snmp(config: EosSection) -> SnmpState | None:
    """The SNMP agent if it answers in the management VRF."""
    users = tuple(_snmp_users(config))
    communities = tuple(rest[0] for rest in config.find("snmp-server", "community"))
    if management_vrf(config) not in snmp_vrfs(config) or not (users or communities):
        return None
    return SnmpState(
        users=users,
        communities=communities,
        location=config.word("snmp-server", "location"),
        contact=config.word("snmp-server", "contact"),
    )


def _snmp_users(config: EosSection) -> Iterator[SnmpV3User]:
    """Yield the users whose group has a read view, with auth and priv keys."""
    for name, group, _, *rest in config.find("snmp-server", "user"):
        words = dict(zip(rest[::3], zip(rest[1::3], rest[2::3], strict=False), strict=False))
        access = config.one("snmp-server", "group", group, "v3") or ()
        if "auth" not in words or "priv" not in words or "read" not in access:
            continue
        view = access[access.index("read") + 1]
        if any(rest[-1] == "included" for rest in config.find("snmp-server", "view", view)):
            yield SnmpV3User(name, words["auth"][1], words["priv"][1])
