"""The switch state of a configuration: QoS with the defaults of the RoCE mode, ports, VLANs and services."""

from collections.abc import Iterator, Mapping
from ipaddress import IPv4Address, IPv4Interface

from netkit.lab.personalities.nvue.frr import frr_text
from netkit.lab.personalities.nvue.rules import is_lossless, port_speed_gbps
from netkit.lab.personalities.nvue.schema import SVI, CumulusSwitch, port_ways
from netkit.lab.personalities.nvue.tree import Tree, addresses, child, has, is_on, number, text
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

# Defaults of the RoCE mode: Cumulus Linux user guide, RDMA over Converged Ethernet.
ROCE_PRIORITY, CNP_PRIORITY, BEST_EFFORT_CLASS = 3, 6, 0
ROCE_CLASS_OF = {ROCE_PRIORITY: 3, CNP_PRIORITY: 6}
ROCE_SCHEDULERS = {0: SchedulerState("weighted", 50), 3: SchedulerState("weighted", 50), 6: SchedulerState("strict")}
PLAIN_WEIGHTS = (12, 13)
DEFAULT_ECN = EcnState(150_000, 1_500_000, 100)
ROCE_CABLE_M, PFC_CABLE_M = 100, 10
POLL_MS, ROBUSTNESS = 100, 3


def port_qos(tree: Tree, interface: Tree) -> QosState:
    qos, own = child(tree, "qos"), child(interface, "qos")
    lossless, cable_m = _pfc(qos, own)
    dscp_map = _profile(qos, own, "mapping")
    trust = text(dscp_map, "trust") or ("both" if is_on(qos, "roce") else "l2")
    priorities = (
        number(dscp_map, "dscp", str(dscp), "switch-priority", default=dscp // 8) for dscp in range(CODE_POINTS)
    )
    return QosState(
        priority_of_dscp=tuple(priorities) if trust in {"l3", "both"} else (),
        class_of_priority=_classes(qos),
        pfc_priorities=lossless,
        ecn=_ecn(qos, own),
        schedulers=_schedulers(qos, own),
        watchdog=_watchdog(qos, own) if lossless else None,
        cable_length_m=cable_m,
    )


def _profile(qos: Tree, own: Tree, kind: str) -> Tree:
    return child(qos, kind, text(own, kind, "profile") or "default-global")


def _classes(qos: Tree) -> tuple[int, ...]:
    configured = child(qos, "egress-queue-mapping", "default-global", "switch-priority")
    defaults = list(range(PRIORITIES))
    if is_on(qos, "roce"):
        defaults = [ROCE_CLASS_OF.get(priority, BEST_EFFORT_CLASS) for priority in range(PRIORITIES)]
    return tuple(
        number(configured, str(priority), "traffic-class", default=default) for priority, default in enumerate(defaults)
    )


def _pfc(qos: Tree, own: Tree) -> tuple[frozenset[int], float]:
    profile = _profile(qos, own, "pfc")
    configured = frozenset(map(int, child(profile, "switch-priority")))
    if configured:
        is_enabled = text(profile, "rx") != "disable" and text(profile, "tx") != "disable"
        return configured if is_enabled else frozenset(), number(profile, "cable-length", default=PFC_CABLE_M)
    if is_lossless(qos):
        return frozenset({ROCE_PRIORITY}), number(qos, "roce", "cable-length", default=ROCE_CABLE_M)
    return frozenset(), 0


def _ecn(qos: Tree, own: Tree) -> Mapping[int, EcnState]:
    marked = {0: DEFAULT_ECN, 3: DEFAULT_ECN} if is_on(qos, "roce") else {0: DEFAULT_ECN}
    classes = child(_profile(qos, own, "congestion-control"), "traffic-class")
    if text(own, "congestion-control", "profile"):
        marked = {}
    for name in classes:
        configured = child(classes, name)
        marked[int(name)] = EcnState(
            number(configured, "min-threshold", default=DEFAULT_ECN.min_bytes),
            number(configured, "max-threshold", default=DEFAULT_ECN.max_bytes),
            number(configured, "probability", default=DEFAULT_ECN.probability_percent),
        )
        if text(configured, "ecn") in {"disable", "disabled"}:
            del marked[int(name)]
    return dict(sorted(marked.items()))


def _schedulers(qos: Tree, own: Tree) -> Mapping[int, SchedulerState]:
    classes = child(_profile(qos, own, "egress-scheduler"), "traffic-class")
    if classes:
        return {
            int(name): SchedulerState("strict")
            if text(classes, name, "mode") == "strict"
            else SchedulerState("weighted", number(classes, name, "bw-percent"))
            for name in sorted(classes)
        }
    if is_on(qos, "roce"):
        return ROCE_SCHEDULERS
    return {number_: SchedulerState("weighted", PLAIN_WEIGHTS[number_ % 2]) for number_ in range(PRIORITIES)}


def _watchdog(qos: Tree, own: Tree) -> WatchdogState | None:
    if not has(own, "pfc-watchdog") or text(own, "pfc-watchdog", "state") == "disable":
        return None
    poll_ms = number(qos, "pfc-watchdog", "polling-interval", default=POLL_MS)
    robustness = number(qos, "pfc-watchdog", "robustness", default=ROBUSTNESS)
    return WatchdogState(detection_ms=poll_ms * robustness, restoration_ms=poll_ms)


DEFAULT_MTU = 9216
GNMI_PORT = 9339
DEFAULT_HOSTNAME = "cumulus"


def switch_state(tree: Tree, chassis: CumulusSwitch) -> SwitchState:
    """The state of a valid configuration."""
    lldp, server = child(tree, "system", "lldp"), child(tree, "system", "gnmi-server")
    gnmi = None
    if is_on(server) and child(server, "listening-address"):
        gnmi = GnmiState(number(server, "port", default=GNMI_PORT), is_cumulus=True)
    return SwitchState(
        hostname=text(tree, "system", "hostname") or DEFAULT_HOSTNAME,
        ports=tuple(_ports(tree, chassis)),
        vlans=tuple(_vlans(tree)),
        has_peer=is_on(tree, "mlag"),
        loopback_addresses=addresses(child(tree, "interface", "lo")),
        frr=frr_text(tree),
        snmp=_snmp(tree),
        gnmi=gnmi,
        has_lldp=is_on(lldp, default=True),
        adaptive_routing=is_on(tree, "router", "adaptive-routing"),
        access=dict(_access(tree)),
    )


SERVICES = {"ssh": ("tcp", 22), "https": ("tcp", 8765), "snmp": ("udp", 161), "gnmi": ("tcp", GNMI_PORT)}


def _access(tree: Tree) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Yield the services that an access list of the control plane denies, and the sources it permits before."""
    for name in child(tree, "system", "control-plane", "acl"):
        rules = child(tree, "acl", name, "rule")
        for service, (protocol, port) in SERVICES.items():
            permitted: list[str] = []
            for rank in sorted(rules, key=int):
                match = child(rules, rank, "match", "ip")
                ports = child(match, protocol, "dest-port")
                if text(match, "protocol") not in {"", protocol} or (ports and str(port) not in ports):
                    continue
                if has(rules, rank, "action", "deny"):
                    yield service, tuple(permitted)
                    break
                permitted.append(text(match, "source-ip") or "0.0.0.0/0")


class StateCache:
    """Caches the state of the applied configuration."""

    def __init__(self) -> None:
        self._cached: tuple[Tree, SwitchState] | None = None

    def of(self, tree: Tree, chassis: CumulusSwitch) -> SwitchState:
        """The state of a configuration. Trees are immutable, so the same tree has the same state."""
        cached = self._cached
        if cached is None or cached[0] is not tree:
            cached = self._cached = (tree, switch_state(tree, chassis))
        return cached[1]


def _ports(tree: Tree, chassis: CumulusSwitch) -> Iterator[PortState]:
    interfaces = child(tree, "interface")
    is_adaptive = is_on(tree, "router", "adaptive-routing")
    bond_of = {port: bond for bond in interfaces for port in child(interfaces, bond, "bond", "member")}
    every = tuple(map(int, child(tree, "bridge", "domain", "br_default", "vlan")))
    for name in port_ways(interfaces, chassis):
        if name in interfaces:
            interface, bond = child(interfaces, name), bond_of.get(name, name)
            bridged = child(interfaces, bond, "bridge", "domain")
            domain = child(bridged, "br_default")
            is_trunk = "br_default" in bridged and not has(domain, "access")
            yield PortState(
                name=name,
                is_enabled=is_up(tree, interface) and is_up(tree, child(interfaces, bond)),
                mtu_bytes=number(interface, "link", "mtu", default=DEFAULT_MTU),
                addresses=addresses(interface),
                access_vlan=number(domain, "access") or number(domain, "untagged"),
                tagged_vlans=(tuple(map(int, child(domain, "vlan"))) or every) if is_trunk else (),
                description=text(interface, "description"),
                speed_gbps=port_speed_gbps(interfaces, name, chassis),
                fec=text(interface, "link", "fec"),
                adaptive_routing=is_adaptive and is_on(interface, "router", "adaptive-routing"),
                qos=port_qos(tree, interface),
                rules=tuple(_rules(tree, interface)),
            )


def _rules(tree: Tree, interface: Tree) -> Iterator[FilterRule]:
    """Yield the rules of the access lists of a port that match by address alone."""
    for name in child(interface, "acl"):
        rules = child(tree, "acl", name, "rule")
        for rank in sorted(rules, key=int):
            match = child(rules, rank, "match", "ip")
            yield FilterRule(has(rules, rank, "action", "permit"), text(match, "source-ip"), text(match, "dest-ip"))


def is_up(tree: Tree, interface: Tree) -> bool:
    """Whether an interface is administratively up, which is the default for a configured one."""
    in_maintenance = text(tree, "maintenance", "unit", "all-interfaces", "mode") == "enabled"
    return not (has(interface, "link", "state", "down") or in_maintenance)


def _vlans(tree: Tree) -> Iterator[VlanState]:
    known = child(tree, "bridge", "domain", "br_default", "vlan")
    interfaces = child(tree, "interface")
    gateways = {
        number(interfaces, name, "vlan", default=int(name.removeprefix("vlan"))): name
        for name in interfaces
        if SVI.fullmatch(name)
    }
    priority = _priority(tree) if is_on(tree, "mlag") else 0
    for vlan in sorted(map(int, known)):
        interface = child(interfaces, gateways.get(vlan, "-"))
        family = child(interface, "ipv4") or child(interface, "ip")
        # The gateway answers with the MAC address of either switch: the lab has no virtual one.
        shared = child(family, "vrr", "address") if is_on(family, "vrr") else ()
        yield VlanState(
            number=vlan,
            stp_priority=priority,
            interface=gateways.get(vlan, f"vlan{vlan}"),
            addresses=(*addresses(interface), *(f"{one.partition('/')[0]}/32" for one in shared)),
            mtu_bytes=number(interface, "link", "mtu", default=DEFAULT_MTU),
            is_enabled=is_up(tree, interface),
        )


def _priority(tree: Tree) -> int:
    """The priority of spanning trees: the switch with the lower management address comes first."""
    own = [IPv4Interface(one).ip for one in addresses(child(tree, "interface", "eth0")) if "/" in one]
    other = [IPv4Address(one) for one in child(tree, "mlag", "backup")]
    return STP_PRIORITIES[bool(own and other and own[0] > other[0])]


def snmp_tree(tree: Tree) -> Tree:
    """The configuration of the SNMP agent at the release's path."""
    return child(tree, "system", "snmp-server") or child(tree, "service", "snmp-server")


def _snmp(tree: Tree) -> SnmpState | None:
    agent = snmp_tree(tree)
    if not is_on(agent):
        return None
    users = child(agent, "username")
    return SnmpState(
        users=tuple(
            SnmpV3User(name, auth, priv)
            for name in sorted(users)
            for auth, below in child(users, name, "auth-sha").items()
            for priv in (child(below, "encrypt-aes") if isinstance(below, dict) else ())
        ),
        communities=tuple(sorted(child(agent, "readonly-community"))),
        location=text(agent, "system-location"),
        contact=text(agent, "system-contact"),
    )
