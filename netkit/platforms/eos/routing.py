"""Routing model from an EOS configuration, and eos.cfg with retained routing."""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from netkit.platforms.bgp_reader import (
    Peer,
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
from netkit.platforms.routing import BgpNeighbor, IpInterface, RetainedRouting, Router

FILE = "eos.cfg"
DEFAULT_PATHS = 1
BGP_DISTANCE = 200
PEER_FILTER = "peer-filter "
ACCEPT_ANY = "10 match as-range 1-4294967295 result accept"
FAMILIES: Mapping[Version, str] = {4: "address-family ipv4", 6: "address-family ipv6"}
"""Over the same sessions. Not verified on a switch: that the lines of a family replace those of the process."""
MANAGEMENT_VRFS = ("MGMT", "mgmt", "management")
READ = (
    "interface ", "ip prefix-list ", "route-map ", "router ", "ip route ", "ip routing", "no ip routing", "maintenance",
    "mlag configuration", "group ", "ip community-list ", "ipv6 unicast-routing", "vrf instance ", "ipv6 prefix-list ",
    "ipv6 route ",
)  # fmt: skip

# Prefixes of lines that do not affect which routes exist.
HARMLESS_ROUTERS = ("router bfd", "router multicast", "router igmp", "router pim", "router traffic-engineering")
HARMLESS_TO_BGP = (
    "router-id", "timers bgp", "bgp log-neighbor-changes", "no bgp log-neighbor-changes", "graceful-restart",
    "distance bgp", "update wait-", "bgp default ipv4-unicast", "bgp bestpath as-path multipath-relax",
    "bgp bestpath tie-break", "bgp bestpath ecmp-fast", "no bgp default ipv6-unicast",
)  # fmt: skip
HARMLESS_TO_NEIGHBOR = (
    "bfd", "description", "graceful-restart", "next-hop-self", "rib-in pre-policy retain", "send-community", "timers",
    "idle-restart-timer", "auto-local-addr", "maximum-routes 0",
)  # fmt: skip
SPEED = re.compile(r"(?:forced )?(\d+)g(?:full|-\d+)?")
"""In Gb/s, unless it is negotiated."""
Section = list[tuple[Path, str]]


def router(config: Config) -> Router:
    """Build the routing model of a configuration."""
    top: dict[str, str] = {}
    sections: dict[str, Section] = {}
    for path, value in config.items():
        head = path[0]
        if len(path) > 1:
            sections.setdefault(head, []).append((path[1:], value))
        elif head.startswith(READ):
            top[head] = f"{head} {value}" if value else head
    of_bgp = (sections.get(head, ()) for head, line in top.items() if line.startswith("router bgp "))
    has_ipv6 = any(path[0] == FAMILIES[6] for section in of_bgp for path, _ in section)
    found = _Reader(top, sections, 4).done()
    return replace(found, v6=_Reader(top, sections, 6).done()) if has_ipv6 else found


def any_as(path: Path, value: str, asn: int) -> dict[Path, str]:
    """The entry of a BGP neighbor with a filter that accepts any AS number in place of its own."""
    own = f" remote-as {asn}"
    if not path[-1].startswith("neighbor interface ") or not value.endswith(own):
        return {}
    any_filter = f"{PEER_FILTER}NETKIT-ANY"
    return {path: f"{value.removesuffix(own)} peer-filter NETKIT-ANY", (any_filter,): "", (any_filter, ACCEPT_ANY): ""}


def keeping(files: Files, kept: RetainedRouting) -> Files:
    """Add retained routing to the intended eos.cfg; every other line stays unchanged."""
    lines = files[FILE].splitlines(keepends=True)
    for name, rule in kept.rules:
        words = rule_words(rule)
        if rule.shortest == rule.longest:  # EOS prints `eq`
            words = words.replace(f"ge {rule.shortest} le {rule.longest}", f"eq {rule.shortest}")
        header = f"{'ip' if rule.prefix.version == 4 else 'ipv6'} prefix-list {name}"
        insert_line(lines, _after(lines, header), f"   seq {rule.number} {words}")
    for aggregate in kept.aggregates:
        found = [place for place, line in enumerate(lines, start=1) if line.startswith("router bgp ")]
        if not found:
            raise no_place(FILE, "router bgp")
        insert_line(lines, found[0], f"   {aggregate_words(aggregate)}")
    return {**files, FILE: "".join(lines)}


def _after(lines: list[str], header: str) -> int:
    """Find the end of the section below a header; a missing header is added at the end."""
    found = [place for place, line in enumerate(lines) if line.strip() == header and not line.startswith(" ")]
    if not found:
        place = len(lines) - 1 if lines and lines[-1].strip() == "end" else len(lines)
        insert_line(lines, place, header)
        insert_line(lines, place + 1, "!")
        return place + 1
    place = found[0] + 1
    while place < len(lines) and lines[place].startswith(" "):
        place += 1
    return place


class _Reader(RouterReader):
    """A router under construction from eos.cfg."""

    def __init__(self, top: Mapping[str, str], sections: Mapping[str, Section], version: Version) -> None:
        super().__init__(top.values(), version)
        self.lines = frozenset(top.values())
        self.sections = sections
        self.addresses: dict[str, list[IpInterface]] = {}
        self.members: dict[str, str] = {}
        self.down: set[str] = set()
        self.speeds: dict[str, int] = {}
        self.with_ipv6: set[str] = set()
        self.numbered: set[str] = set()
        """Interfaces with an address of any family."""
        self.carrying: set[str] = set()
        """Groups that accept IPv6 next hops for IPv4 routes."""
        self.filters = {
            head.removeprefix(PEER_FILTER): [line_of(path, value) for path, value in inner]
            for head, inner in sections.items()
            if head.startswith(PEER_FILTER)
        }
        self.guarded: dict[str, set[str]] = {}
        """Group → directions in which a missing route map denies everything; "" is every group."""
        # The other switch of a pair announces what it learns from outside; no path of the fabric passes there.
        self.partner = dict(sections.get("mlag configuration", ())).get(("peer-address",), "")
        self.is_relaxed = True
        self.max_paths = DEFAULT_PATHS
        for head, line in top.items():
            self._top(line, sections.get(head, ()))

    def _top(self, line: str, inner: Sequence[tuple[Path, str]]) -> None:
        if line.startswith("interface "):
            self._interface(line.removeprefix("interface "), inner)
        elif line.startswith(f"{self.word} prefix-list "):
            self._prefix_list(line, inner)
        elif line.startswith("route-map "):
            self.read_route_map(line, inner)
        elif line.startswith("router bgp "):
            for path, value in sorted(inner, key=lambda entry: len(entry[0])):  # families last
                self._of_bgp(path, line_of(path, value))
        elif line.startswith(f"{self.word} route "):
            words = line.split(" ")
            route = static_route(words[2:], self.version, BGP_DISTANCE)
            if route is not None:
                self.static.append(route)
            elif words[2] != "vrf" or words[3] not in MANAGEMENT_VRFS:
                self.unknown.append(line)
        elif (line.startswith("router ") and not line.startswith(HARMLESS_ROUTERS)) or line == "no ip routing":
            self.unknown.append(line)

    def _interface(self, name: str, inner: Sequence[tuple[Path, str]]) -> None:
        found: list[IpInterface] = []
        vrf = ""
        for path, value in inner:
            if len(path) > 1:
                continue
            match path[0].split(" "):
                case ["shutdown"]:
                    self.down.add(name)
                case ["vrf"]:
                    vrf = value
                case [word, "address", *words] if word == self.word:
                    address = interface_address(words[-1], self.version) or interface_address(words[0], self.version)
                    found += [address] if address else []
                    self.unknown += [] if address else [f"interface {name}: {path[0]}"]
                case ["switchport", "access", "vlan"]:
                    self.members[name] = f"Vlan{value}"
                case ["speed"] if speed := SPEED.fullmatch(value):
                    self.speeds[name] = int(speed[1])
            if path[0].startswith(("ipv6 enable", "ipv6 address ")):
                self.with_ipv6.add(name)
        if found and not vrf:
            self.addresses[name] = found
        if not vrf and any(path[0].startswith(("ip address ", "ipv6 address ")) for path, _ in inner):
            self.numbered.add(name)

    def _prefix_list(self, line: str, inner: Iterable[tuple[Path, str]]) -> None:
        _, _, name, *rest = line.split(" ")
        rules = self.lists.setdefault(name, [])
        rows = [" ".join(rest)] if rest else [line_of(path, value) for path, value in inner]
        for row in rows:
            words = row.split(" ", 2)
            number = whole_number(words[1]) if words[0] == "seq" and len(words) > 2 else None
            rule = None if number is None else prefix_rule(number, words[2], self.version)
            if rule is not None:
                rules.append(rule)
            elif words[0] not in {"remark", "description"}:
                self.unknown.append(f"{self.word} prefix-list {name}: {row}")

    def _of_bgp(self, path: Path, line: str) -> None:
        if len(path) > 1:
            if path[0] == FAMILIES[self.version]:
                self._of_instance(line)
            elif path[0] not in FAMILIES.values() and not path[0].startswith(
                tuple(f"vrf {name}" for name in MANAGEMENT_VRFS)
            ):
                self.unknown.append(f"{path[0]}: {line}")
        elif not line.startswith(("address-family ", "vrf ")):
            self._of_instance(line)

    def _of_instance(self, line: str) -> None:
        match line.split(" "):
            case ["neighbor", "interface", name, *options]:
                peer = self.peers.of(name)
                peer.is_interface = True
                of_interface(peer, options)
                self._filter(peer, options, line)
            case ["neighbor", name, *_] if name == self.partner:
                pass
            case ["neighbor", name, *words]:
                self._neighbor(self.peers.of(name), words, line)
            case ["no", "neighbor", name, "activate"]:
                self.peers.of(name).is_activated = False
            case ["router-id", text]:
                self.router_id = text
            case ["shutdown", *_]:
                self.is_shut_down = True
            case ["no", "bgp", "default", "ipv4-unicast"]:
                self.is_active = False
            case ["no", "bgp", "bestpath", "as-path", "multipath-relax"]:
                self.is_relaxed = False
            case ["maximum-paths", paths, *_] if paths.isdecimal():
                self.max_paths = int(paths)
            case ["bgp", "missing-policy", *words] if "direction" in words and words[-1] == "deny":
                self.guarded.setdefault("", set()).add(words[words.index("direction") + 1])
            case _:
                if not self.is_announcement(line) and not line.startswith(HARMLESS_TO_BGP):
                    self.unknown.append(line)

    def _filter(self, peer: Peer, options: list[str], line: str) -> None:
        """Parse a filter of AS numbers."""
        if options[-2:-1] != ["peer-filter"]:
            return
        if self.filters.get(options[-1]) == [ACCEPT_ANY]:
            peer.remote = "external"
        else:
            self.unknown.append(line)

    def _neighbor(self, peer: Peer, words: list[str], line: str) -> None:
        match words:
            case ["peer", "group"]:
                peer.is_group = True
            case ["peer", "group", group]:
                peer.group = group
            case ["remote-as", text]:
                peer.remote = text
            case ["shutdown", *_]:
                peer.is_shut_down = True
            case _:
                self._neighbor_policy(peer, words, line)

    def _neighbor_policy(self, peer: Peer, words: list[str], line: str) -> None:
        match words:
            case ["missing-policy", "address-family", family, "direction", direction, "action", action]:
                if action == "deny" and family in {"all", f"ipv{self.version}"}:
                    self.guarded.setdefault(peer.name, set()).add(direction)
            case ["next-hop", "address-family", "ipv6", "originate"]:
                self.carrying.add(peer.name)
            case _:
                # The limit of a neighbour by address ends a session that no route of hosts comes from.
                is_limit = words[0] == "maximum-routes"
                is_warning = is_limit and (words[-1] == "warning-only" or is_address(peer.name))
                is_known = is_warning or " ".join(words).startswith(HARMLESS_TO_NEIGHBOR)
                if not self.is_policy(peer, words) and not is_known:
                    self.unknown.append(line)

    def done(self) -> Router:
        """Build the router, in an order that does not depend on the file."""
        over_ipv6 = "ip routing ipv6 interfaces" in self.lines
        routes_ipv6 = "ipv6 unicast-routing" in self.lines
        has_ipv6 = routes_ipv6 and (over_ipv6 or self.version == 6)
        is_routing = routes_ipv6 if self.version == 6 else over_ipv6 or "ip routing" in self.lines
        addresses = in_family(self.addresses, self.version)
        neighbors = self.peers.neighbors(self.asn, is_active=self.is_active)
        external = self.external()
        groups = {peer.name: peer.group or peer.name for peer in self.peers.all()}
        ports = {one.address: one.interface for one in Router(addresses=addresses, external=external).sessions}
        is_drained, drained = self._maintenance()

        def drains(one: BgpNeighbor) -> bool:
            places = {one.interface, groups[one.interface], ports.get(one.interface, one.interface)}
            return one.is_drained or not drained.isdisjoint(places)

        every = self.guarded.get("", set())
        guards = {
            one.interface: len(every | self.guarded.get(groups[one.interface], set()) & {"in", "out"}) == 2
            for one in neighbors or external
        }
        if neighbors and len(set(guards.values())) > 1:
            self.unknown.extend(f"neighbor {name}: no missing-policy" for name, is_on in guards.items() if not is_on)
        return Router(
            asn=self.asn if is_routing else 0,
            router_id=self.router_id,
            addresses=addresses,
            members=tuple(sorted((port, vlan) for port, vlan in self.members.items() if vlan in self.numbered)),
            down=frozenset(self.down),
            speeds=dict(sorted(self.speeds.items())),
            prefix_lists=in_order(self.lists),
            route_maps=clauses_in_order(self.maps),
            neighbors=tuple(
                replace(
                    one,
                    is_active=one.is_active
                    and has_ipv6
                    and not self.is_shut_down
                    and one.interface in self.with_ipv6
                    and (self.version == 6 or not self.carrying.isdisjoint({one.interface, groups[one.interface]})),
                    is_drained=drains(one),
                )
                for one in neighbors
            )
            if is_routing
            else (),
            external=tuple(replace(one, is_drained=drains(one)) for one in external)
            if is_routing and not self.is_shut_down
            else (),
            redistributed=self.redistributed,
            networks=tuple(sorted(self.networks, key=prefix_order)),
            aggregates=tuple(sorted(self.aggregates, key=lambda aggregate: prefix_order(aggregate.prefix))),
            static=routes_in_order(self.static),
            max_paths=self.max_paths,
            needs_same_path=not self.is_relaxed,
            is_drained=is_drained,
            requires_policy=bool(guards) and all(guards.values()),
            unknown=self.all_unknown(),
        )

    def _maintenance(self) -> tuple[bool, set[str]]:
        """Whether the switch is in maintenance, and the interfaces, neighbors and peer groups that are."""
        inside = self.sections.get("maintenance", ())
        quiesced = {path[0] for path, _ in inside if path[1:] == ("quiesce",)}
        drained = {unit.split(" ", 1)[1] for unit in quiesced if not unit.startswith("unit ")}
        for path, _ in inside:
            if path[0] in quiesced and len(path) == 2 and path[1].startswith("group "):
                rows = (line_of(inner, value) for inner, value in self.sections.get(path[1], ()))
                drained.update(row.split(" ")[-1] for row in rows if row.startswith(("interface ", "neighbor ")))
        return "unit System" in quiesced, drained
