"""The design of a switch, read from an NVUE tree.

References are followed and names ignored, so that profiles and peer groups may have any. `qos roce` is short for a set
of numbers; what is set beside it takes precedence. Where ports differ in what is one value in an intent, most ports
count.

Sources of the defaults: Cumulus Linux user guide, Quality of Service, and BGP.
"""

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import asdict

from netkit.platforms.bgp_reader import interface_address, is_address
from netkit.platforms.config import Config, Files, Tree, nested
from netkit.platforms.existing import (
    ExistingEcn,
    ExistingHeading,
    ExistingLag,
    ExistingPort,
    ExistingQos,
    ExistingServices,
    ExistingSessions,
    ExistingSwitch,
    addresses_v6,
    most,
    number,
    numbers,
)
from netkit.platforms.nvue import dialects
from netkit.platforms.nvue.routing import FILE, ON, SWITCH

OFF = frozenset({"off", "disabled", "disable", "false"})
PORT = re.compile(r"(swp\d+)(s\d+)?")
BREAKOUT = re.compile(r"(\d)x(?:(\d+)G)?")
SPEED = re.compile(r"(\d{1,4})G")
HEADER = re.compile(r"[\s\[{\"-]{0,50}header\b(.{0,500}?)\bset\b", re.DOTALL)
HEADER_MODEL = re.compile(r"\bmodel\W+(\w[\w-]*)")
HEADER_VERSION = re.compile(r"\bversion\W+Cumulus Linux (\d[\w.]*)")
FOR_ALL = "default-global"
"""The profile of every port that names no other."""

# Modes of `qos roce` that have these classes; lossy-multi-tc has others, which no public table lists in full.
ROCE_MODES = frozenset({"lossless", "lossless-single-ipool", "lossy"})
PFC_CABLE_M = 10
ECN = ExistingEcn(dialects.ECN_MIN_BYTES, dialects.ECN_MAX_BYTES, dialects.ECN_PERCENT)
"""Of the RoCE mode, and of a profile that leaves some of it out."""
WATCHDOG_POLL_MS, WATCHDOG_POLLS = 100, 3
KEEPALIVE_S, HOLD_S, CONNECT_S = 3, 9, 10
BFD_INTERVAL_MS, BFD_MULTIPLIER = 300, 3
SYSLOG_PORT, SYSLOG_PROTOCOL = 514, "udp"
SSH, ITSELF = 22, "127.0.0.1/32"
PRIORITIES = 8


def existing(config: Config) -> ExistingSwitch:
    tree = nested(config)
    interfaces = _trees(tree, "interface")
    qos = _Qos(_tree(tree, "qos"), {name: row for name, row in interfaces.items() if _is_port(name, interfaces)})
    address, gateway = _management(tree, interfaces)
    timers = _timers(_tree(tree, "vrf", "default", "router", "bgp"), _tree(tree, "router", "bfd", "profile"))
    return ExistingSwitch(
        hostname=_text(tree, "system", "hostname"),
        management=address,
        management_gateway=gateway,
        allow=_allow(tree),
        ports=tuple(_port(name, interfaces, qos, tree) for name in qos.ports),
        vlans=_vlans(tree, interfaces),
        vlan_names={
            vlan: name
            for row in interfaces.values()
            if (vlan := _number(row, "vlan")) and (name := _text(row, "description"))
        },
        vlan_gateways={
            vlan: address.partition("/")[0]
            for row in interfaces.values()
            if (vlan := _number(row, "vlan"))
            for family in ("ipv4", "ip")
            for address in list(filter(interface_address, _tree(row, family, "vrr", "address")))[:1]
        },
        vlan_mtu_bytes=most(_number(row, "link", "mtu") for row in interfaces.values() if _number(row, "vlan")),
        lags=tuple(_lag(name, row) for name, row in interfaces.items() if _tree(row, "bond", "member")),
        qos=qos.read(),
        services=_services(tree),
        **asdict(timers),
        adaptive_routing=_is_on(_tree(tree, "router", "adaptive-routing")),
        addresses_v6=addresses_v6(
            (name, address)
            for name, row in interfaces.items()
            for family in ("ipv6", "ip")
            for address in _tree(row, family, "address")
        ),
        gateways_v6=tuple(
            via
            for vrf in _trees(tree, "vrf")
            for via in _tree(tree, "vrf", vrf, "router", "static", "::/0", "via")
            if is_address(via)
        ),
    )


def _tree(tree: Tree, *path: str) -> Tree:
    """The branch at a path; empty if there is none."""
    for key in path:
        inner = tree.get(key)
        if not isinstance(inner, dict):
            return {}
        tree = inner
    return tree


def _trees(tree: Tree, *path: str) -> dict[str, Tree]:
    """The objects at a path; those without settings are empty."""
    return {name: row if isinstance(row, dict) else {} for name, row in _tree(tree, *path).items()}


def _text(tree: Tree, *path: str) -> str:
    """The value at a path. An object with one name, as `{up: {}}`, is another form of the name."""
    found = _tree(tree, *path[:-1]).get(path[-1], "")
    return found if isinstance(found, str) else next(iter(found), "")


def _number(tree: Tree, *path: str) -> int | None:
    return number(_text(tree, *path))


def _keys(tree: Tree, *path: str) -> set[int]:
    """The numbers that are the keys at a path; a key may be a list or a range."""
    found = _tree(tree, *path[:-1]).get(path[-1], {})
    return {one for key in ([found] if isinstance(found, str) else found) for one in numbers(key)}


def _is_on(tree: Tree) -> bool:
    return any(_text(tree, key) in ON for key in SWITCH)


def _is_port(name: str, interfaces: Mapping[str, Tree]) -> bool:
    """Whether an interface is a port and not a cage that is split into ports or disabled by the one beside it."""
    match = PORT.fullmatch(name)
    breakout = _text(interfaces[name], "link", "breakout")
    return match is not None and (bool(match[2]) or not breakout or breakout.startswith("1x"))


def _port(name: str, interfaces: Mapping[str, Tree], qos: "_Qos", tree: Tree) -> ExistingPort:
    row, cage = interfaces[name], interfaces.get(_cage(name), {})
    split, speed_gbps = _split(name, interfaces)
    lossless = qos.lossless_of(name)
    return ExistingPort(
        name=name,
        description=_text(row, "description"),
        split=split,
        lanes=next((_number(mode, "lanes-per-port") for mode in _trees(cage, "link", "breakout").values()), None),
        speed_gbps=speed_gbps,
        mtu_bytes=_number(row, "link", "mtu"),
        vlan=next(filter(None, map(_untagged, _trees(row, "bridge", "domain").values())), None),
        tagged=_tagged(row),
        cable_m=qos.cable_m(name) if lossless else None,
        is_lossless=bool(lossless),
        ecn=next(filter(None, (qos.ecn(name, priority) for priority in lossless)), None),
        denied=_denied(row, tree),
    )


def _denied(row: Tree, tree: Tree) -> tuple[tuple[int, str, str], ...]:
    name = next((name for name, bound in _trees(row, "acl").items() if list(bound) == ["inbound"]), "")
    found = []
    for key, rule in sorted(_trees(tree, "acl", name, "rule").items(), key=lambda one: number(one[0]) or 0):
        match = _tree(rule, "match", "ip")
        if _text(rule, "action") != "deny" or not match or match.keys() - {"source-ip", "dest-ip"}:
            return ()
        found.append((number(key) or 0, _text(match, "source-ip"), _text(match, "dest-ip")))
    return tuple(found)


def _cage(name: str) -> str:
    """swp1 for swp1 and swp1s0."""
    return name.rpartition("s")[0] if name.count("s") > 1 else name


def _split(name: str, interfaces: Mapping[str, Tree]) -> tuple[str, int | None]:
    """How the cage of a port is split, and the speed of the port.

    NVUE needs no speed where the model has one for the breakout, so that a split may be 2x without a speed.
    """
    breakout = BREAKOUT.match(_text(interfaces.get(_cage(name), {}), "link", "breakout"))
    if breakout is None and _cage(name) != name:
        return "", _gbps(_text(interfaces[name], "link", "speed"))
    count, given = breakout.groups() if breakout else ("1", None)
    speed_gbps = _gbps(_text(interfaces[name], "link", "speed")) or number(given)
    return (f"{count}x{speed_gbps}G" if speed_gbps else f"{count}x"), speed_gbps


def _gbps(text: str) -> int | None:
    match = SPEED.fullmatch(text)
    return int(match[1]) if match else None


def _untagged(domain: Tree) -> int | None:
    return _number(domain, "access") or _number(domain, "untagged")


def _tagged(row: Tree) -> tuple[int, ...]:
    domains = _trees(row, "bridge", "domain").values()
    return tuple(sorted({vlan for one in domains for vlan in _keys(one, "vlan") if vlan != _untagged(one)}))


def _lag(name: str, row: Tree) -> ExistingLag:
    return ExistingLag(
        name,
        tuple(_tree(row, "bond", "member")),
        _text(row, "description"),
        next(filter(None, map(_untagged, _trees(row, "bridge", "domain").values())), None),
        _tagged(row),
        _text(row, "type") == "peerlink",
    )


def _vlans(tree: Tree, interfaces: Mapping[str, Tree]) -> dict[int, str]:
    domains = _trees(tree, "bridge", "domain").values()
    found = {vlan: f"vlan{vlan}" for domain in domains for vlan in _keys(domain, "vlan")}
    for name, row in interfaces.items():
        vlan = _number(row, "vlan") or number(name.removeprefix("vlan"))
        if vlan is not None and "base-interface" not in row:
            found[vlan] = name
    return found


def _management(tree: Tree, interfaces: Mapping[str, Tree]) -> tuple[str, str]:
    for name, row in interfaces.items():
        family = _tree(row, "ipv4") or _tree(row, "ip")
        address = next(filter(interface_address, _tree(family, "address")), "")
        if name.startswith("eth") and address:
            vrf = _text(row, "vrf") or _text(family, "vrf") or "mgmt"
            routes = _tree(tree, "vrf", vrf, "router", "static", "0.0.0.0/0", "via")
            return address, next(filter(is_address, routes), _text(family, "gateway"))
    return "", ""


def _allow(tree: Tree) -> tuple[str, ...]:
    """Who may reach SSH by the list of the control plane; none where that does not drop everyone else."""
    for name, bound in _trees(tree, "system", "control-plane", "acl").items():
        rules = _trees(tree, "acl", name, "rule")
        found: list[str] = []
        for key in sorted(filter(str.isdecimal, rules), key=int) if "inbound" in bound else ():
            source, row = _text(rules[key], "match", "ip", "source-ip"), rules[key]
            if SSH not in _keys(row, "match", "ip", "tcp", "dest-port"):
                continue
            if not source and _text(row, "action") == "deny":
                return tuple(found)
            if _text(row, "action") != "permit" or not interface_address(source):
                break
            found += [str(interface_address(source))] if source != ITSELF else []
    return ()


class _Qos:
    """The classes of traffic: those of `qos roce`, with what is set beside it."""

    def __init__(self, tree: Tree, ports: Mapping[str, Tree]) -> None:
        self.tree, self.ports = tree, ports
        roce = _tree(tree, "roce")
        is_off = any(_text(roce, key) in OFF for key in SWITCH)
        mode = "" if "roce" not in tree or is_off else _text(roce, "mode") or "lossless"
        self.has_roce = mode in ROCE_MODES
        self.is_lossless = self.has_roce and mode != "lossy"
        self.has_pools = mode == "lossless"
        self.classes = {
            one: dialects.CLASSES.get(one, dialects.REST_CLASS) if self.has_roce else one for one in range(PRIORITIES)
        }
        for key, row in _trees(tree, "egress-queue-mapping", FOR_ALL, "switch-priority").items():
            traffic_class = _number(row, "traffic-class")
            if traffic_class is not None:
                self.classes |= dict.fromkeys(numbers(key), traffic_class)
        self.lossless = tuple(sorted({one for name in ports for one in self.lossless_of(name)}))
        self.priorities = {traffic_class: self._priority(traffic_class) for traffic_class in self.classes.values()}

    def read(self) -> ExistingQos:
        schedulers = self._schedulers()
        poll_ms, polls = (_number(self.tree, "pfc-watchdog", key) for key in ("polling-interval", "robustness"))
        if poll_ms or polls or any(_is_watched(row) for row in self.ports.values()):
            poll_ms, polls = poll_ms or WATCHDOG_POLL_MS, polls or WATCHDOG_POLLS
        return ExistingQos(
            dscp_to_priority={dscp: self.priorities[self.classes[one]] for dscp, one in self._dscps().items()},
            lossless=self.lossless,
            strict=tuple(sorted(self.priorities[one] for one, weight in schedulers.items() if weight is None)),
            weights={self.priorities[one]: weight for one, weight in schedulers.items() if weight is not None},
            watchdog_poll_ms=poll_ms,
            watchdog_detection_ms=poll_ms * polls if poll_ms and polls else None,
            pool_percent=self._pool_percent(),
        )

    def _row(self, kind: str, name: str) -> tuple[str, Tree]:
        """The profile of a port: its name and its settings."""
        profile = _text(self.ports[name], "qos", kind, "profile") or FOR_ALL
        return profile, _tree(self.tree, kind, profile)

    def _most(self, kind: str) -> Tree:
        """The profile of most ports."""
        named = most(self._row(kind, name)[0] for name in self.ports)
        return _tree(self.tree, kind, named or FOR_ALL)

    def _priority(self, traffic_class: int) -> int:
        """The priority of a class: the lossless one, the one with its number, or the first."""
        members = [one for one, found in self.classes.items() if found == traffic_class]
        return min(members, key=lambda one: (one not in self.lossless, one != traffic_class, one))

    def lossless_of(self, name: str) -> tuple[int, ...]:
        """The priorities of a port that have PFC."""
        profile, row = self._row("pfc", name)
        if _text(row, "rx") in OFF and _text(row, "tx") in OFF:
            return ()
        found = {one for one in _keys(row, "switch-priority") if one < PRIORITIES}
        if not found and profile == FOR_ALL and self.is_lossless:
            return (dialects.ROCE_PRIORITY,)
        return tuple(sorted(found))

    def cable_m(self, name: str) -> float:
        own = _number(self._row("pfc", name)[1], "cable-length") or _number(self.tree, "roce", "cable-length")
        return float(own or (dialects.CABLE_M if self.has_roce else PFC_CABLE_M))

    def ecn(self, name: str, priority: int) -> ExistingEcn | None:
        profile, row = self._row("congestion-control", name)
        traffic_class = self.classes[priority]
        rows = (one for key, one in _trees(row, "traffic-class").items() if traffic_class in numbers(key))
        found = next(rows, None)
        if found is None:
            is_marked = profile == FOR_ALL and self.has_roce and traffic_class in dialects.WEIGHTS
            return ECN if is_marked else None
        if _text(found, "ecn") in OFF or _text(found, "mode") == "relative":
            return None
        low, high, percent = (_number(found, key) for key in ("min-threshold", "max-threshold", "probability"))
        return ExistingEcn(low or ECN.min_bytes, high or ECN.max_bytes, percent or ECN.probability_percent)

    def _dscps(self) -> dict[int, int]:
        """DSCP → switch priority; none where ports trust the priority of the frame only."""
        row = self._most("mapping")
        trust = _text(row, "trust")
        if trust not in {"l3", "both"} and (trust or not self.has_roce):
            return {}
        found = {dscp: dscp // 8 for dscp in range(64)}
        for key, one in _trees(row, "dscp").items():
            priority = _number(one, "switch-priority")
            if priority in self.classes:
                found |= {dscp: priority for dscp in numbers(key) if dscp in found}
        return found

    def _schedulers(self) -> dict[int, int | None]:
        """The weight of each class in use; None for one that is served first."""
        found: dict[int, int | None] = {**dialects.WEIGHTS, dialects.CNP_CLASS: None} if self.has_roce else {}
        for key, row in _trees(self._most("egress-scheduler"), "traffic-class").items():
            weight = _number(row, "bw-percent")
            if _text(row, "mode") == "strict":
                found |= dict.fromkeys(numbers(key))
            elif weight is not None:
                found |= dict.fromkeys(numbers(key), weight)
        return {one: weight for one, weight in sorted(found.items()) if one in self.priorities}

    def _pool_percent(self) -> int | None:
        pools = ("roce-lossless", "default-lossless")
        given = (_number(self.tree, "traffic-pool", pool, "memory-percent") for pool in pools)
        return next((one for one in given if one is not None), dialects.POOL_PERCENT if self.has_pools else None)


def _is_watched(port: Tree) -> bool:
    return _text(port, "qos", "pfc-watchdog", "state") in ON


def _timers(bgp: Tree, profiles: Tree) -> ExistingSessions:
    groups = _trees(bgp, "peer-group")
    sessions = [(row, groups.get(_text(row, "peer-group"), {})) for row in _trees(bgp, "neighbor").values()]
    # Groups without neighbours may be those of peers that connect by themselves.
    sessions = sessions or [(row, {}) for row in groups.values()]
    if not sessions:
        return ExistingSessions()
    keys = {"keepalive": KEEPALIVE_S, "hold": HOLD_S, "connection-retry": CONNECT_S}
    keepalive, hold, connect = (
        most(_number(own, "timers", key) or _number(group, "timers", key) or default for own, group in sessions)
        for key, default in keys.items()
    )
    bfd = Counter(_bfd(sessions, profiles))
    interval, multiplier = bfd.most_common(1)[0][0] if bfd else (None, None)
    named = [
        (name, (row, groups.get(_text(row, "peer-group"), {})))
        for name, row in _trees(bgp, "neighbor").items()
        if is_address(name)
    ]
    at = ("address-family", "ipv4-unicast", "prefix-limits", "inbound", "maximum")
    limits = {name: _number(own, *at) or _number(group, *at) for name, (own, group) in named}
    with_bfd = frozenset(name for name, one in named if any(_bfd([one], profiles)))
    return ExistingSessions(
        keepalive, hold, connect, interval, multiplier, {key: one for key, one in limits.items() if one}, with_bfd
    )


def _bfd(sessions: list[tuple[Tree, Tree]], profiles: Tree) -> Iterator[tuple[int, int]]:
    """Yield the interval and multiplier of each session with BFD: from its profile, or its own up to 5.14."""
    for own, group in sessions:
        row = _tree(own, "bfd") or _tree(group, "bfd")
        profile = _text(row, "profile")
        if profile or _is_on(row):
            timers = _tree(profiles, profile) if profile else row
            yield (
                _number(timers, "min-tx-interval") or BFD_INTERVAL_MS,
                _number(timers, "detect-multiplier") or BFD_MULTIPLIER,
            )


def _services(tree: Tree) -> ExistingServices:
    snmp = _tree(tree, "system", "snmp-server") or _tree(tree, "service", "snmp-server")
    return ExistingServices(
        ntp=tuple(_servers(tree, "ntp")),
        dns=tuple(_servers(tree, "dns")),
        syslog=tuple(
            (name, _number(row, "port") or SYSLOG_PORT, _text(row, "protocol") or SYSLOG_PROTOCOL)
            for name, row in _servers(tree, "syslog").items()
        ),
        snmp_users=tuple(_tree(snmp, "username")),
        snmp_location=_text(snmp, "system-location"),
        snmp_contact=_text(snmp, "system-contact"),
        users=tuple(_tree(tree, "system", "aaa", "user")),
        timezone=_text(tree, "system", "date-time", "timezone") or _text(tree, "system", "timezone"),
    )


def _servers(tree: Tree, kind: str) -> dict[str, Tree]:
    """The servers of the system, and of each VRF before 5.15 (syslog: 5.13)."""
    found = _trees(tree, "system", kind, "server")
    for vrf in _trees(tree, "service", kind).values():
        found |= _trees(vrf, "server")
    return found


def heading(files: Files) -> ExistingHeading:
    """Read the header that `nv config show` writes above the configuration."""
    header = HEADER.match(files.get(FILE, ""))
    if header is None:
        return ExistingHeading()
    model, version = HEADER_MODEL.search(header[1]), HEADER_VERSION.search(header[1])
    return ExistingHeading(model[1] if model else "", version[1] if version else "")


EXISTING = existing
HEADING = heading
