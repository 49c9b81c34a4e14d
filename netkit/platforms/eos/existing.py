"""The design of a switch, read from an EOS configuration.

References are followed and names ignored, so that profiles and peer groups may have any; lines of an interface take
precedence over its profile. Where ports differ in what is one value in an intent, most ports count.
"""

import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator
from dataclasses import asdict, dataclass, field
from functools import cached_property, lru_cache
from itertools import takewhile

from netkit.platforms.bgp_reader import interface_address, is_address
from netkit.platforms.config import Config, Files
from netkit.platforms.eos.dialects import ECN_UNIT_BYTES, TIMEZONES, WATCHDOG_ACTIONS, alpha_within
from netkit.platforms.eos.routing import FILE
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

PORT = re.compile(r"Ethernet\d+(?:/\d+)*")
SPEED = re.compile(r"(?:forced |auto )?(\d{1,4})g(?:full|-(\d))?")
DEVICE = re.compile(r"^! device: .* \(([\w-]+), EOS-(\w[\w.]*)\)$", re.MULTILINE)
HEADING_LENGTH = 1000
LANES_PER_CAGE = 8
QUEUE = re.compile(r"(?:uc-)?tx-queue (\d)")
CLASS_TO_QUEUE = re.compile(r"qos map traffic-class ([\d ,-]+) to (?:uc-)?tx-queue (\d)")
DSCP = re.compile(r"qos map dscp (\d{1,2}) to traffic-class ([0-7])")
TRUST = re.compile(r"qos trust (\S+)")
SHAPE = re.compile(r"shape rate (\d{1,10})(?: (percent|kbps))?")
PORT_TIMER = re.compile(r"priority-flow-control pause watchdog port timer (.+)")
PORT_ACTION = re.compile(r"priority-flow-control pause watchdog port action (\S+)")
BFD = re.compile(r"(?:bfd )?interval (\d{1,6}) min[-_]rx \d{1,6} multiplier (\d{1,3})(?: default)?")
ECN = re.compile(
    r"random-detect ecn minimum-threshold (\d{1,12}) (\w+) maximum-threshold (\d{1,12}) (\w+)"
    r"(?: max-mark-probability (\d{1,3}))?.*"
)
RULE = re.compile(r"(\d{1,9}) (permit|deny) ip (any|[\d.]+/\d+) (any|[\d.]+/\d+)")
PERMIT = re.compile(r"(?:\d+ )?permit (host )?(\S+)")
SECONDS = re.compile(r"\d{1,5}(?:\.\d{1,6})?")
# The map of DSCPs in blocks of eight; lines that equal it may be missing in a running configuration.
CLASS_OF_BLOCK = (1, 0, 2, 3, 4, 5, 6, 7)
KEEPALIVE_S, HOLD_S = 60, 180
BFD_INTERVAL_MS, BFD_MULTIPLIER = 300, 3
SYSLOG_PORT, SYSLOG_PROTOCOL = 514, "udp"
KBPS_PER_GBPS = 1_000_000
MMU = "platform trident mmu queue profile "


@dataclass(slots=True)
class _Section:
    """A line, without its key, and the lines below it by key."""

    value: str = ""
    inner: dict[str, "_Section"] = field(default_factory=dict)

    def rows(self) -> Iterator[tuple[str, "_Section"]]:
        for key, section in self.inner.items():
            yield f"{key} {section.value}" if section.value else key, section

    def lines(self) -> list[str]:
        return [line for line, _ in self.rows()]

    def get(self, key: str) -> str:
        """The value of a line that has one."""
        return self.inner[key].value if key in self.inner else ""

    def below(self, key: str) -> "_Section":
        return self.inner.get(key) or _Section()


def existing(config: Config) -> ExistingSwitch:
    top = _Section()
    for path, value in config.items():
        section = top
        for key in path:
            section = section.inner.setdefault(key, _Section())
        section.value = value
    interfaces = {
        key.removeprefix("interface "): section for key, section in top.inner.items() if key.startswith("interface ")
    }
    ports = {name: section for name, section in interfaces.items() if PORT.fullmatch(name)}
    qos = _Qos(top, ports)
    address, gateway = _management(top, interfaces)
    timers = _timers(top, interfaces)
    return ExistingSwitch(
        hostname=top.get("hostname"),
        management=address,
        management_gateway=gateway,
        allow=_allow(top),
        ports=tuple(_ports(ports, qos, top)),
        vlans=_vlans(top, interfaces),
        vlan_names={
            vlan: section.get("name")
            for key, section in top.inner.items()
            if key.startswith("vlan ") and section.get("name")
            for vlan in numbers(key.removeprefix("vlan "))
        },
        vlan_gateways={
            vlan: address
            for name, section in interfaces.items()
            for line in section.lines()
            if line.startswith("ip virtual-router address ") and is_address(address := line.split()[3])
            for vlan in numbers(name.removeprefix("Vlan"))
        },
        vlan_mtu_bytes=most(
            number(section.get("mtu")) for name, section in interfaces.items() if name.startswith("Vlan")
        ),
        lags=tuple(_lags(top, interfaces)),
        pair_name=top.below("mlag configuration").get("domain-id"),
        qos=qos.read(),
        services=_services(top),
        **asdict(timers),
        addresses_v6=addresses_v6(
            (name, line.split()[2])
            for name, section in interfaces.items()
            for line in section.lines()
            if line.startswith("ipv6 address ")
        ),
        gateways_v6=tuple(
            word
            for line in top.lines()
            if line.startswith("ipv6 route ")
            for _, is_default, via in [line.partition(" ::/0 ")]
            if is_default
            for word in via.split()[:2]
            if is_address(word)
        ),
        adaptive_routing=top.get("ip hardware fib load-balance distribution") == "dynamic",
    )


def _ports(ports: dict[str, _Section], qos: "_Qos", top: _Section) -> Iterator[ExistingPort]:
    speeds = {name: _speed(section.get("speed")) for name, section in ports.items()}
    # Most cages have four or eight lanes. The configuration only shows where all eight are used.
    has_eight = any(_last_lane(name, lanes) >= LANES_PER_CAGE for name, (_, lanes) in speeds.items())
    for name, section in ports.items():
        speed_gbps, lanes = speeds[name]
        count = 1 if "/" not in name else LANES_PER_CAGE // lanes if lanes and has_eight else None
        lossless = qos.lossless_of(name)
        yield ExistingPort(
            name=name,
            description=section.get("description"),
            split=f"{count}x{speed_gbps}G" if count and speed_gbps else "",
            lanes=lanes,
            speed_gbps=speed_gbps,
            mtu_bytes=number(section.get("mtu")),
            vlan=_untagged(section),
            tagged=_tagged(section),
            is_lossless=bool(lossless),
            ecn=next(filter(None, (qos.ecn(name, priority) for priority in lossless)), None),
            xoff_bytes=qos.headroom_bytes if lossless else None,
            denied=_denied(section, top),
        )


def _denied(section: _Section, top: _Section) -> tuple[tuple[int, str, str], ...]:
    words = (line.split() for line in section.lines() if line.startswith("ip access-group "))
    name = next((line[2] for line in words if line[3:] == ["in"]), "")
    lines = top.below(f"ip access-list {name}").lines()
    rules = [found.groups() for found in map(RULE.fullmatch, lines) if found]
    if [rule[1] for rule in rules] != [*["deny"] * (len(lines) - 1), "permit"] or rules[-1][2:] != ("any", "any"):
        return ()
    return tuple((int(rule[0]), rule[2].replace("any", ""), rule[3].replace("any", "")) for rule in rules[:-1])


def _speed(text: str) -> tuple[int | None, int | None]:
    """The speed in Gb/s and the lanes of a port."""
    match = SPEED.fullmatch(text)
    return (int(match[1]), number(match[2]) or None) if match else (None, None)


def _last_lane(name: str, lanes: int | None) -> int:
    return (number(name.rpartition("/")[2]) or 1) + (lanes or 1) - 1 if "/" in name else 1


def _untagged(section: _Section) -> int | None:
    if "no switchport" in section.inner:
        return None
    if section.get("switchport mode") != "trunk":
        return number(section.get("switchport access vlan"))
    return number(section.get("switchport trunk native vlan"))


def _tagged(section: _Section) -> tuple[int, ...]:
    if section.get("switchport mode") != "trunk":
        return ()
    untagged = _untagged(section)
    return tuple(vlan for vlan in numbers(section.get("switchport trunk allowed vlan")) if vlan != untagged)


def _lags(top: _Section, interfaces: dict[str, _Section]) -> Iterator[ExistingLag]:
    between = top.below("mlag configuration").get("peer-link")
    members: dict[str, list[str]] = {}
    for name, section in interfaces.items():
        if group := next((line.split()[1] for line in section.lines() if line.startswith("channel-group ")), ""):
            members.setdefault(f"Port-Channel{group}", []).append(name)
    for name, ports in members.items():
        section = interfaces.get(name, _Section())
        description = section.get("description")
        yield ExistingLag(
            name, tuple(ports), description, _untagged(section), _tagged(section), is_between=name == between
        )


def _vlans(top: _Section, interfaces: Iterable[str]) -> dict[int, str]:
    lists = (key.removeprefix("vlan ") for key in top.inner if key.startswith("vlan "))
    named = (name.removeprefix("Vlan") for name in interfaces if name.startswith("Vlan"))
    return {vlan: f"Vlan{vlan}" for text in (*lists, *named) for vlan in numbers(text)}


def _management(top: _Section, interfaces: dict[str, _Section]) -> tuple[str, str]:
    for name, section in interfaces.items():
        words = (line.split() for line in section.lines() if line.startswith("ip address "))
        address = next(
            (line[2] for line in words if len(line) > 2 and "/" in line[2] and interface_address(line[2])), ""
        )
        if name.startswith("Management") and address:
            vrf = section.get("vrf").removeprefix("forwarding ")
            start = f"ip route vrf {vrf} 0.0.0.0/0 " if vrf else "ip route 0.0.0.0/0 "
            routes = (line.removeprefix(start).split() for line in top.lines() if line.startswith(start))
            return address, next((word for route in routes for word in route[:2] if is_address(word)), "")
    return "", ""


def _allow(top: _Section) -> tuple[str, ...]:
    """The sources that the standard list of SSH permits; none where it has other lines."""
    groups = (line.split() for line in top.below("management ssh").lines() if line.startswith("ip access-group "))
    name = next((words[2] for words in groups), "")
    found: list[str] = []
    for line in top.below(f"ip access-list standard {name}").lines():
        match = PERMIT.fullmatch(line)
        network = match and interface_address(match[2] + ("" if "/" in match[2] else "/32"))
        if not match or not network:
            return ()
        found.append(str(network.network))
    return tuple(found)


@dataclass
class _PortQos:
    """The QoS of ports: their lines, and those of their queues."""

    lines: list[str]
    queues: dict[int, list[str]]

    def with_lines(self, section: _Section) -> "_PortQos":
        """Add the lines of another section, which come last; the same object if there are none."""
        lines, queues = list(self.lines), dict(self.queues)
        for line, inner in section.rows():
            if match := QUEUE.fullmatch(line):
                queue = int(match[1])
                queues[queue] = [*queues.get(queue, ()), *inner.lines()]
            elif line.startswith(("qos ", "priority-flow-control ")):
                lines.append(line)
        return self if (lines, queues) == (self.lines, self.queues) else _PortQos(lines, queues)

    @cached_property
    def lossless(self) -> tuple[int, ...]:
        """The priorities with PFC."""
        if not {"priority-flow-control on", "priority-flow-control mode on"} & set(self.lines):
            return ()
        words = (line.split() for line in self.lines if line.startswith("priority-flow-control priority "))
        return tuple(sorted({one for line in words if line[3:] == ["no-drop"] for one in numbers(line[2]) if one < 8}))

    def weight(self, queue: int) -> int | None:
        """The weight of a queue; None for one that is served first, which is the default."""
        words = (line.split() for line in self.queues[queue])
        weights = [number(line[2]) for line in words if line[:2] == ["bandwidth", "percent"] and len(line) == 3]
        order = [line for line in self.queues[queue] if line in {"no priority", "priority strict"}]
        return (weights or [None])[-1] or 0 if order[-1:] == ["no priority"] else None

    def last(self, pattern: re.Pattern[str]) -> re.Match[str] | None:
        """Match the last line that fits; those of the interface come last."""
        return next(filter(None, map(pattern.fullmatch, reversed(self.lines))), None)


class _Qos:
    """The classes of traffic of a switch, and those of each port."""

    def __init__(self, top: _Section, ports: dict[str, _Section]) -> None:
        self.top = top
        self.speeds = {name: _speed(section.get("speed"))[0] for name, section in ports.items()}
        self.lines = top.lines()
        self.profiles: dict[str, _PortQos] = {}
        self.ports = {name: self._of_port(section) for name, section in ports.items()}
        self.queues = {one: one for one in range(8)}
        for match in filter(None, map(CLASS_TO_QUEUE.fullmatch, self.lines)):
            self.queues |= dict.fromkeys(
                (one for one in numbers(match[1].replace(" ", ",")) if one in self.queues), int(match[2])
            )
        self.is_off = "priority-flow-control all off" in top.inner
        self.lossless = tuple(sorted({one for name in ports for one in self.lossless_of(name)}))
        self.priorities = {queue: self._priority(queue) for queue in self.queues.values()}
        applied = (key.removesuffix(" apply") for key in top.inner if key.startswith(MMU) and key.endswith(" apply"))
        self.mmu = top.below(next(applied, ""))
        self.headroom_bytes = number(self.mmu.get("ingress headroom bytes"))

    def _of_port(self, section: _Section) -> _PortQos:
        name = section.get("service-profile")
        if name not in self.profiles:
            self.profiles[name] = _PortQos([], {}).with_lines(self.top.below(f"qos profile {name}"))
        return self.profiles[name].with_lines(section)

    def _priority(self, queue: int) -> int:
        """The traffic class of a queue: the lossless one, the one with its number, or the first."""
        members = [one for one, found in self.queues.items() if found == queue]
        return min(members, key=lambda one: (one not in self.lossless, one != queue, one))

    def lossless_of(self, name: str) -> tuple[int, ...]:
        return () if self.is_off else self.ports[name].lossless

    def ecn(self, name: str, priority: int) -> ExistingEcn | None:
        lines = reversed(self.ports[name].queues.get(self.queues[priority], []))
        match = next(filter(None, map(ECN.fullmatch, lines)), None)
        if match is None or not {match[2], match[4]} <= ECN_UNIT_BYTES.keys():
            return None
        low, high = int(match[1]) * ECN_UNIT_BYTES[match[2]], int(match[3]) * ECN_UNIT_BYTES[match[4]]
        return ExistingEcn(low, high, int(match[5] or 100), (match[2], match[4]))

    def read(self) -> ExistingQos:
        dscps = self._dscps()
        schedulers = self._schedulers(set(dscps.values()))
        strict = tuple(sorted(self.priorities[queue] for queue, weight in schedulers.items() if weight is None))
        return ExistingQos(
            dscp_to_priority=dscps,
            lossless=self.lossless,
            strict=strict,
            weights={self.priorities[queue]: weight for queue, weight in schedulers.items() if weight},
            cnp_shape_percent=self._shape(queue for queue, weight in schedulers.items() if weight is None),
            watchdog_poll_ms=self._watchdog("polling-interval"),
            watchdog_detection_ms=self._watchdog("timeout"),
            watchdog_restoration_ms=self._watchdog("recovery-time"),
            watchdog_action=self._watchdog_action(),
            pool_percent=self._pool_percent(),
        )

    def _dscps(self) -> dict[int, int]:
        """DSCP → priority; none where nothing is configured, or ports trust the priority of the frame."""
        explicit = {int(match[1]): int(match[2]) for match in filter(None, map(DSCP.fullmatch, self.lines))}
        trust = most(match[1] for port in self.ports.values() if (match := port.last(TRUST)))
        if trust == "cos" or not (explicit or self.lossless):
            return {}
        classes = {dscp: CLASS_OF_BLOCK[dscp // 8] for dscp in range(64)}
        classes |= {dscp: one for dscp, one in explicit.items() if dscp in classes}
        return {dscp: self.priorities[self.queues[one]] for dscp, one in classes.items()}

    def _schedulers(self, priorities: Collection[int]) -> dict[int, int | None]:
        """The weight of each configured queue in use, as most ports have it; None: it is served first."""
        found: dict[int, Counter[int | None]] = {}
        for port in self.ports.values():
            for queue in port.queues:
                found.setdefault(queue, Counter())[port.weight(queue)] += 1
        used = {self.queues[one] for one in priorities} or set(self.priorities)
        return {queue: found[queue].most_common(1)[0][0] for queue in sorted(used & found.keys())}

    def _shape(self, strict: Iterable[int]) -> int | None:
        """The cap of strict queues as a share of the port."""
        wanted, found = set(strict), []
        for name, port in self.ports.items():
            for line in (line for queue in wanted for line in port.queues.get(queue, ())):
                match, speed_gbps = SHAPE.fullmatch(line), self.speeds[name]
                if match and match[2] == "percent":
                    found.append(int(match[1]))
                elif match and speed_gbps:
                    found.append(round(100 * int(match[1]) / (speed_gbps * KBPS_PER_GBPS)))
        return most(percent for percent in found if 1 <= percent <= 100)

    def _watchdog(self, key: str) -> int | None:
        own = (match[1].split() for port in self.ports.values() if (match := port.last(PORT_TIMER)))
        start = "priority-flow-control pause watchdog default"
        default = (line.split() for line in self.lines if line.startswith(start))
        return most(_milliseconds(_after(words, key)) for words in own) or most(
            _milliseconds(_after(words, key)) for words in default
        )

    def _watchdog_action(self) -> str:
        start = "priority-flow-control pause watchdog "
        override = next((line.split()[-1] for line in self.lines if line.startswith(f"{start}override action")), "")
        own = most(match[1] for port in self.ports.values() if (match := port.last(PORT_ACTION)))
        action = override or own or self.top.get(f"{start}action")
        return {theirs: ours for ours, theirs in WATCHDOG_ACTIONS.items()}.get(action, action)

    def _pool_percent(self) -> int | None:
        """The share that the limit of other queues leaves to lossless ones."""
        lossy = sorted(set(self.priorities) - {self.queues[one] for one in self.lossless})
        return _share_beside(most(self.mmu.get(f"egress unicast queue {queue} threshold") or None for queue in lossy))


@lru_cache(maxsize=100)
def _share_beside(alpha: str | None) -> int | None:
    """The percentage of the buffer that corresponds to an α of other queues: the roundest of those that fit."""
    fitting = [percent for percent in range(1, 100) if alpha_within(100 - percent) == alpha]
    return max(fitting, key=lambda percent: (percent % 10 == 0, percent % 5 == 0, percent), default=None)


def _milliseconds(text: str) -> int | None:
    return round(1000 * float(text)) if SECONDS.fullmatch(text) else None


def _timers(top: _Section, interfaces: dict[str, _Section]) -> ExistingSessions:
    lines = [line.split() for line in top.below("router bgp").lines()]
    groups: dict[str, str] = {}
    timers: dict[str, list[str]] = {}
    limits: dict[str, int | None] = {}
    with_bfd: set[str] = set()
    sessions: list[str] = []
    for words in lines:
        match words:
            case ["neighbor", "interface", name, *options]:
                sessions.append(name)
                groups[name] = dict(zip(options[::2], options[1::2], strict=False)).get("peer-group", "")
            case ["neighbor", name, "peer", "group", group] | ["neighbor", name, "peer-group", group]:
                sessions.append(name)
                groups[name] = group
            case ["neighbor", name, "remote-as", _] if is_address(name):
                sessions.append(name)
            case ["neighbor", name, "timers", *times]:
                timers[name] = times
            case ["neighbor", name, "bfd", *_]:
                with_bfd.add(name)
            case ["neighbor", name, "maximum-routes", count, *_]:
                limits[name] = number(count)
            case ["timers", "bgp", *times]:
                timers[""] = times
    sessions = list(dict.fromkeys(sessions))
    pairs = (timers.get(name) or timers.get(groups.get(name, "")) or timers.get("") or [] for name in sessions)
    keepalive_s, hold_s = most(_pair(words) for words in pairs) or (None, None)
    default = _bfd((*top.below("router bfd").lines(), *top.lines())) or (BFD_INTERVAL_MS, BFD_MULTIPLIER)
    bfd = most(
        _bfd(interfaces.get(name, _Section()).lines()) or default
        for name in sessions
        if {name, groups.get(name)} & with_bfd
    )
    interval_ms, multiplier = bfd or (None, None)
    named = [name for name in sessions if is_address(name)]
    return ExistingSessions(
        keepalive_s,
        hold_s,
        bfd_interval_ms=interval_ms,
        bfd_multiplier=multiplier,
        limits={name: limit for name in named if (limit := limits.get(name) or limits.get(groups.get(name, "")))},
        with_bfd=frozenset(name for name in named if {name, groups.get(name)} & with_bfd),
    )


def _pair(words: list[str]) -> tuple[int | None, int | None]:
    return (number(words[0]), number(words[1])) if len(words) > 1 else (KEEPALIVE_S, HOLD_S)


def _bfd(lines: Iterable[str]) -> tuple[int, int] | None:
    match = next(filter(None, map(BFD.fullmatch, lines)), None)
    return (int(match[1]), int(match[2])) if match else None


def _servers(top: _Section, *start: str) -> Iterator[list[str]]:
    """Yield the words after the start of a line, without the VRF that may stand after its first word or its last."""
    for line in top.lines():
        words = line.split()
        if "vrf" in words[:3]:
            place = words.index("vrf")
            del words[place : place + 2]
        if words[: len(start)] == list(start) and len(words) > len(start):
            yield words[len(start) :]


def _services(top: _Section) -> ExistingServices:
    zone = top.get("clock timezone")
    ntp = sorted(_servers(top, "ntp", "server"), key=lambda words: "prefer" not in words)
    return ExistingServices(
        ntp=tuple(words[0] for words in ntp),
        dns=tuple(word for words in _servers(top, "ip", "name-server") for word in takewhile(is_address, words)),
        syslog=tuple(
            (
                words[0],
                next(filter(None, map(number, words[1:])), SYSLOG_PORT),
                _after(words, "protocol") or SYSLOG_PROTOCOL,
            )
            for words in _servers(top, "logging", "host")
        ),
        snmp_users=tuple(words[0] for words in _servers(top, "snmp-server", "user") if "v3" in words[2:3]),
        snmp_location=top.get("snmp-server location"),
        snmp_contact=top.get("snmp-server contact"),
        users=tuple(dict.fromkeys(line.split()[1] for line in top.inner if line.startswith("username "))),
        timezone={theirs: ours for ours, theirs in TIMEZONES.items()}.get(zone, zone),
    )


def _after(words: list[str], key: str) -> str:
    """The word after a keyword; empty if there is none."""
    return words[words.index(key) + 1] if key in words[:-1] else ""


def heading(files: Files) -> ExistingHeading:
    """Read the comment that EOS writes above its configuration."""
    found = DEVICE.search(files.get(FILE, "")[:HEADING_LENGTH])
    return ExistingHeading(found[1], found[2]) if found else ExistingHeading()


EXISTING = existing
HEADING = heading
