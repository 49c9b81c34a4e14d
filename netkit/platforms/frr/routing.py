"""Routing model from frr.conf and netplan, and frr.conf with retained routing."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

from netkit.platforms.bgp_reader import (
    RouterReader,
    Version,
    aggregate_words,
    clauses_in_order,
    in_family,
    in_order,
    insert_line,
    interface_address,
    is_address,
    line_of,
    no_place,
    of_interface,
    prefix_order,
    prefix_rule,
    routes_in_order,
    rule_words,
    static_route,
    whole_number,
)
from netkit.platforms.config import Config, Files, Path
from netkit.platforms.frr.files import FRR_CONF, NETPLAN
from netkit.platforms.linux.netplan import ITEM, read_item
from netkit.platforms.routing import Clause, IpInterface, RetainedRouting, Router, RouterRoute

MAIN_TABLE = frozenset({"", "254", "main"})
FAMILIES: Mapping[Version, tuple[str, ...]] = {
    4: ("address-family ipv4 unicast", "address-family ipv4"),
    6: ("address-family ipv6 unicast", "address-family ipv6"),
}
DEFAULT_PATHS = 256  # compiled into Debian's FRR, and the default without `maximum-paths`

# Prefixes of lines that do not affect which routes exist. Lines that are neither here nor parsed are reported.
# fmt: off
HARMLESS = (
    "exit-vrf",
    "frr ", "hostname", "domainname", "log ", "no log ", "service ", "no service ", "debug ", "password", "enable ",
    "line ", "agentx", "banner ", "fpm ", "no fpm ", "no zebra nexthop", "zebra nexthop", "zebra route-map",
    "ip forwarding", "ipv6 forwarding", "no ipv6 forwarding", "ip nht resolve-via-default",
    "bgp community-list", "bgp as-path access-list", "bgp large-community-list", "bgp extcommunity-list", "bfd", "end",
    "access-list", "ipv6 access-list",
    "key chain", "username ", "mgmt ", "no ip prefix-list sequence-number",
)
HARMLESS_TO_BGP = (
    "bgp log-neighbor-changes", "no bgp log-neighbor-changes", "timers bgp", "bgp graceful-restart",
    "no bgp graceful-restart", "bgp bestpath compare-routerid", "coalesce-time", "bgp suppress-fib-pending",
    "bgp default show-", "no bgp default show-", "read-quanta", "write-quanta", "bgp update-delay",
    "bgp minimum-holdtime", "no bgp default ipv6-unicast", "bgp default ipv4-unicast",
)
HARMLESS_TO_NEIGHBOR = (
    "description", "bfd", "timers", "capability extended-nexthop", "capability dynamic", "advertisement-interval",
    "next-hop-self", "soft-reconfiguration", "send-community", "enforce-first-as", "sender-as-path-loop-detection",
    "update-source",
)
# fmt: on


Section = list[tuple[Path, str]]


@dataclass(slots=True)
class Wiring:
    """Interfaces of the default VRF, configured outside FRR."""

    addresses: dict[str, list[IpInterface]] = field(default_factory=dict)
    members: dict[str, str] = field(default_factory=dict)
    """Port → its bridge or VLAN."""
    down: set[str] = field(default_factory=set)
    speeds: dict[str, int] = field(default_factory=dict)
    """In Gb/s."""
    without_ipv6: set[str] = field(default_factory=set)
    """Interfaces without a link-local address, where unnumbered BGP finds no neighbour."""
    unknown: list[str] = field(default_factory=list)
    static: list[RouterRoute] = field(default_factory=list)

    def address(self, name: str, text: str, *versions: Version) -> None:
        """Add an address of any of these families."""
        for version in versions:
            if (found := interface_address(text, version)) is not None:
                self.addresses.setdefault(name, []).append(found)


def router(config: Config) -> Router:
    """Build the routing model of a Linux switch."""
    return bgp(config, _netplan(config))


def _netplan(config: Config) -> Wiring:
    wired = Wiring()
    elsewhere: set[str] = set()
    with_ipv6: set[str] = set()
    routes: list[tuple[str, str, str]] = []
    for path, value in config.items():
        if path[0] != NETPLAN or len(path) < 5 or path[1] != "network":
            continue
        kind, name, key = path[2:5]
        item = path[5].removeprefix(ITEM) if len(path) > 5 else ""
        if key == "addresses":
            wired.address(name, item, 4, 6)
        elif key == "interfaces" and kind == "vrfs":
            elsewhere.add(item)
        elif key == "interfaces" and kind == "bridges":
            wired.members[item] = name
        elif key == "activation-mode" and value in {"off", "manual"}:
            wired.down.add(name)
        elif key == "link-local":
            (with_ipv6 if item == "ipv6" else wired.without_ipv6).add(name)
        elif key == "routes":
            routes.append((name, item, value))
    wired.without_ipv6 -= with_ipv6
    for name in elsewhere:
        wired.addresses.pop(name, None)
    wired.members = {port: bridge for port, bridge in wired.members.items() if bridge not in elsewhere}
    for name, item, value in routes:
        route = read_item(item, value)
        is_main = not isinstance(route, dict) or str(route.get("table", "")) in MAIN_TABLE
        if is_main and name not in elsewhere:
            wired.unknown.append(f"{name}: route {item} {value}".strip())
    return wired


def bgp(config: Config, wired: Wiring) -> Router:
    """Build the routing model from frr.conf, with the interfaces from `wired`."""
    top: list[str] = []
    sections: dict[str, Section] = {}
    heads: dict[str, str] = {}
    for path, value in config.items():
        if path[0] != FRR_CONF:
            continue
        if len(path) == 2:
            line = f"{path[1]} {value}" if value else path[1]
            top.append(line)
            heads[line] = path[1]
        else:
            sections.setdefault(path[1], []).append((path[2:], value))
    return read(top, {line: sections[head] for line, head in heads.items() if head in sections}, wired)


def read(lines: Iterable[str], sections: Mapping[str, Section], wired: Wiring) -> Router:
    """Build the routing model from top-level lines and the sections below them."""
    lines = tuple(lines)

    def of(version: Version) -> Router:
        reader = _Reader(lines, wired, version)
        for line in lines:
            reader.top(line, sections.get(line, ()))
        return reader.done()

    own = (path for line in lines if line.startswith("router bgp ") for path, _ in sections.get(line, ()))
    has_ipv6 = any(path[0] in FAMILIES[6] for path in own)
    return replace(of(4), v6=of(6)) if has_ipv6 else of(4)


def keeping(files: Files, kept: RetainedRouting) -> Files:
    """Add retained routing to the intended frr.conf; every other line stays unchanged."""
    lines = files[FRR_CONF].splitlines(keepends=True)
    for name, rule in kept.rules:
        head = f"{'ip' if rule.prefix.version == 4 else 'ipv6'} prefix-list {name} "
        found = [place for place, line in enumerate(lines) if line.startswith(head)]
        end = len(lines) - 1 if lines and lines[-1].strip() == "end" else len(lines)
        place = found[-1] + 1 if found else end
        insert_line(lines, place, f"{head}seq {rule.number} {rule_words(rule)}")
    for aggregate in kept.aggregates:
        insert_line(lines, _in_family(lines, aggregate.prefix.version), f"  {aggregate_words(aggregate)}")
    return {**files, FRR_CONF: "".join(lines)}


def _in_family(lines: Iterable[str], version: Version) -> int:
    """Find the first line of an address family in the default VRF."""
    is_ours = False
    for place, line in enumerate(lines, start=1):
        if not line.startswith((" ", "!")):
            is_ours = line.startswith("router bgp ") and len(line.split()) == 3
        elif is_ours and line.strip() in FAMILIES[version]:
            return place
    raise no_place(FRR_CONF, FAMILIES[version][0])


class _Reader(RouterReader):
    """A router under construction from frr.conf."""

    def __init__(self, lines: Iterable[str], wired: Wiring, version: Version) -> None:
        super().__init__(lines, version)
        self.wired = wired
        self.unknown += wired.unknown
        self.static += (route for route in wired.static if route.prefix.version == version)
        self.has_policy = True
        self.is_drained = self.is_relaxed = False
        self.max_paths = DEFAULT_PATHS
        self.install_map = ""

    def top(self, line: str, inner: Iterable[tuple[Path, str]]) -> None:
        """Parse a line of the top level and its section."""
        if line.startswith(f"{self.word} prefix-list "):
            self._prefix_list(line)
        elif line.startswith("route-map "):
            self.read_route_map(line, inner)
        elif line.startswith("interface "):
            self._interface(line, inner)
        elif line.startswith("router bgp ") and line.count(" ") == 2:
            self._bgp(inner)
        elif (
            line.startswith(f"{self.word} route ")
            and (route := static_route(line.split()[2:], self.version)) is not None
        ):
            self.static.append(route)
        elif line.startswith(f"{self.word} protocol bgp route-map "):
            self.install_map = line
        elif line.startswith("vrf "):
            is_management = line.split()[1].lower() in {"mgmt", "management"}
            rows = [line_of(path, value) for path, value in inner]
            self.unknown.extend(
                f"{line}: {row}" for row in rows if row.startswith(f"{self.word} ") and not is_management
            )
        elif line == "frr defaults datacenter":
            self.has_policy = False  # unless it was turned back on, which the model cannot distinguish from the default
            self.unknown.append(line)
        elif not line.startswith(
            (*HARMLESS, *(f"{self.other_word} {what} " for what in ("prefix-list", "protocol bgp route-map", "route")))
        ):
            self.unknown.append(line)

    def _prefix_list(self, line: str) -> None:
        _, _, name, *rest = line.split(" ")
        rules = self.lists.setdefault(name, [])
        has_number = rest[:1] == ["seq"] and len(rest) > 2
        number = whole_number(rest[1]) if has_number else 5 + max((rule.number for rule in rules), default=0)
        rule = None if number is None else prefix_rule(number, " ".join(rest[2:] if has_number else rest), self.version)
        if rule is not None:
            rules.append(rule)
        elif rest[:1] != ["description"]:
            self.unknown.append(line)

    def _interface(self, line: str, inner: Iterable[tuple[Path, str]]) -> None:
        words = line.split(" ")
        if len(words) > 2:  # in a VRF
            return
        for path, value in inner:
            row = line_of(path, value)
            match row.split(" "):
                case ["shutdown"]:
                    self.wired.down.add(words[1])
                case [word, "address", text, *_] if word == self.word and interface_address(text, self.version):
                    self.wired.address(words[1], text, self.version)
                case [word, *_] if word == self.word:
                    self.unknown.append(f"{line}: {row}")

    def _bgp(self, inner: Iterable[tuple[Path, str]]) -> None:
        for path, value in inner:
            line = line_of(path, value)
            if len(path) == 1 and line.startswith("address-family "):
                if line not in (*FAMILIES[4], *FAMILIES[6]):
                    self.unknown.append(line)
            elif len(path) > 1 and path[0] not in FAMILIES[self.version]:
                continue
            elif line.startswith("neighbor "):
                self._neighbor(line)
            elif len(path) > 1:
                self._of_family(line)
            else:
                self._of_instance(line)

    def _of_instance(self, line: str) -> None:
        match line.split(" "):
            case ["bgp", "router-id", text]:
                self.router_id = text
            case ["bgp", "graceful-shutdown"]:
                self.is_drained = True
            case ["bgp", "shutdown", *_]:
                self.is_shut_down = True
            case ["no", "bgp", "ebgp-requires-policy"]:
                self.has_policy = False
            case ["no", "bgp", "default", "ipv4-unicast"]:
                self.is_active = False
            case ["bgp", "bestpath", "as-path", "multipath-relax", *_]:
                self.is_relaxed = True
            case _:
                if not line.startswith(HARMLESS_TO_BGP):
                    self.unknown.append(line)

    def _of_family(self, line: str) -> None:
        match line.split(" "):
            case ["maximum-paths", text] if text.isdecimal():
                self.max_paths = int(text)
            case ["maximum-paths", "ibgp", *_]:
                pass
            case ["no", "neighbor", name, "activate"]:
                self.peers.of(name).is_activated = False
            case _:
                if not self.is_announcement(line):
                    self.unknown.append(line)

    def _neighbor(self, line: str) -> None:
        _, name, *words = line.split(" ")
        peer = self.peers.of(name)
        match words:
            case ["peer-group"]:
                peer.is_group = True
            case ["peer-group", group]:
                peer.group = group
            case ["interface", *options]:
                peer.is_interface = True
                of_interface(peer, [word for word in options if word != "v6only"])
            case ["remote-as", text]:
                peer.remote = text
            case ["shutdown"] | ["shutdown", "message", *_]:
                peer.is_shut_down = True
            case ["graceful-shutdown"]:
                peer.is_drained = True
            case _:
                # The limit of a neighbour by address ends a session that no route of hosts comes from.
                is_warning = words[0] == "maximum-prefix" and (words[-1] == "warning-only" or is_address(name))
                is_known = is_warning or " ".join(words).startswith(HARMLESS_TO_NEIGHBOR)
                if not self.is_policy(peer, words) and not is_known:
                    self.unknown.append(line)

    def done(self) -> Router:
        """Build the router, in an order that does not depend on the file."""
        wired, maps = self.wired, clauses_in_order(self.maps)
        if self.install_map:
            first = next(iter(maps.get(self.install_map.split(" ")[4], ())), None)
            if first is None or first != Clause(first.number, is_permit=True):  # it does not permit everything
                self.unknown.append(self.install_map)
        neighbors = self.peers.neighbors(self.asn, is_active=self.is_active)
        if self.is_shut_down or wired.without_ipv6:
            dead = {one.interface for one in neighbors if self.is_shut_down or one.interface in wired.without_ipv6}
            neighbors = tuple(replace(one, is_active=one.is_active and one.interface not in dead) for one in neighbors)
        return Router(
            asn=self.asn,
            router_id=self.router_id,
            addresses=in_family(wired.addresses, self.version),
            members=tuple(sorted(wired.members.items())),
            down=frozenset(wired.down),
            speeds=dict(sorted(wired.speeds.items())),
            prefix_lists=in_order(self.lists),
            route_maps=maps,
            neighbors=neighbors,
            external=() if self.is_shut_down else self.external(),
            redistributed=self.redistributed,
            networks=tuple(sorted(self.networks, key=prefix_order)),
            aggregates=tuple(sorted(self.aggregates, key=lambda aggregate: prefix_order(aggregate.prefix))),
            static=routes_in_order(self.static),
            max_paths=self.max_paths,
            needs_same_path=bool(self.asn) and not self.is_relaxed,
            is_drained=self.is_drained,
            requires_policy=self.has_policy,
            unknown=self.all_unknown(),
        )
