"""Routing in an NVUE tree: reading it, and adding entries to it."""

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

import yaml

from netkit.platforms.bgp_reader import (
    ANY,
    GRACEFUL_SHUTDOWN,
    ClauseDraft,
    Peers,
    Version,
    as_number,
    bounded,
    clauses_in_order,
    in_family,
    in_order,
    interface_address,
    is_address,
    network,
    no_place,
    prefix_order,
    routes_in_order,
    static_route,
    whole_number,
)
from netkit.platforms.config import Config, Files, Path
from netkit.platforms.routing import (
    NO_MAP,
    Aggregate,
    Clause,
    IpInterface,
    IpNetwork,
    PrefixListEntry,
    RetainedRouting,
    Router,
    RouterRoute,
)

ON = frozenset({"on", "enabled", "enable", "true"})
SWITCH = frozenset({"state", "enable"})
SPEED = re.compile(r"(\d+)G")
"""What turns an object on: `enable: on` up to 5.14, `state: enabled` since."""
DEFAULT_PATHS = 64
DEFAULT_ALLOWAS_IN = 3
FILE = "startup.yaml"
BGP = ("vrf", "default", "router", "bgp")
FAMILIES: Mapping[Version, str] = {4: "ipv4-unicast", 6: "ipv6-unicast"}
INSIDE: Mapping[Version, frozenset[str]] = {4: frozenset({"ipv4", "ip"}), 6: frozenset({"ipv6", "ip"})}
"""What of an interface holds its addresses: `ip` up to 5.14."""

# Keys that do not affect which routes there are, by the object they are below.
HARMLESS = frozenset({"adaptive-routing", "bfd", "nexthop"})
HARMLESS_EVERYWHERE = frozenset({"convergence-wait", "graceful-restart", "policy-update-timer", "wait-for-install"})
HARMLESS_TO_BGP = frozenset({"route-reflection", "timers"})
HARMLESS_TO_NEIGHBOR = frozenset({"bfd", "capabilities", "description", "timers", "type"})
HARMLESS_TO_FAMILY = frozenset({"community-advertise", "nexthop-setting", "soft-reconfiguration"})


def router(config: Config) -> Router:
    def of(version: Version) -> Router:
        reader = _Reader(version)
        readers = {
            "interface": reader.interface,
            "router": reader.everywhere,
            "vrf": reader.vrf,
            "maintenance": reader.maintenance,
        }
        for path, value in config.items():
            read = readers.get(path[0])
            if read is not None and len(path) > 2 and not read(path, value):
                reader.unknown.add(".".join(path) + (f": {value}" if value else ""))
        return reader.done()

    family = (*BGP, "address-family", FAMILIES[6])
    has_ipv6 = any(config.get((*family, key), "") in ON for key in SWITCH)
    return replace(of(4), v6=of(6)) if has_ipv6 else of(4)


def keeping(files: Files, kept: RetainedRouting) -> Files:
    """Add retained configuration to intended files, and leave the rest as written."""
    text = files[FILE]
    document = yaml.compose(text, Loader=yaml.CSafeLoader)
    nodes = document.value if isinstance(document, yaml.SequenceNode) else [document]
    branches = (_below(node, "set") for node in nodes if isinstance(node, yaml.MappingNode))
    root = next((node for node in branches if isinstance(node, yaml.MappingNode)), None)
    if root is None:
        raise no_place(FILE, "`- set:`")
    added: dict[str, Any] = {}
    for name, rule in kept.rules:
        bounds = {"max-prefix-len": rule.longest, "min-prefix-len": rule.shortest}
        branch = _at(added, "router", "policy", "prefix-list", name)
        if _below(root, "router", "policy", "prefix-list", name) is None:
            branch["type"] = f"ipv{rule.prefix.version}"
        action = "permit" if rule.is_permit else "deny"
        _at(branch, "rule")[str(rule.number)] = {"action": action, "match": {str(rule.prefix): bounds}}
    is_new = _below(root, *BGP, "state") is not None
    for aggregate in kept.aggregates:
        option = {"summary-only": "enabled" if is_new else "on"} if aggregate.is_summary_only else {}
        family = FAMILIES[aggregate.prefix.version]
        _at(added, *BGP, "address-family", family, "aggregate-route")[str(aggregate.prefix)] = option
    if text.lstrip().startswith(("[", "{")):  # read from a switch
        config = json.loads(text)
        items = config if isinstance(config, list) else [config]
        _merge(next((item["set"] for item in items if "set" in item), items[0]), added)
        return {**files, FILE: json.dumps(config, indent=2) + "\n"}
    lines = text.splitlines(keepends=True)
    for place, column, missing in sorted(_insertions(root, added), key=lambda found: -found[0]):
        block = yaml.dump(missing, Dumper=yaml.CSafeDumper, default_flow_style=False)
        lines[place:place] = [f"{' ' * column}{line}\n" for line in block.splitlines()]
    return {**files, FILE: "".join(lines)}


def _merge(tree: dict[str, Any], added: dict[str, Any]) -> None:
    for key, branch in added.items():
        if isinstance(tree.get(key), dict) and isinstance(branch, dict):
            _merge(tree[key], branch)
        else:
            tree[key] = branch


def _below(node: yaml.Node, *path: str) -> yaml.Node | None:
    """Find the node at a path; None if there is none."""
    for key in path:
        pairs = node.value if isinstance(node, yaml.MappingNode) else []
        found = next((inner for name, inner in pairs if name.value == key), None)
        if found is None:
            return None
        node = found
    return node


def _at(tree: dict[str, Any], *path: str) -> dict[str, Any]:
    """The branch at a path, creating it if it is missing."""
    for key in path:
        tree = tree.setdefault(key, {})
    return tree


def _insertions(node: yaml.MappingNode, added: dict[str, Any]) -> Iterator[tuple[int, int, dict[str, Any]]]:
    """Yield what to insert: the line to insert before, its column, and the branch."""
    missing = {}
    for key, branch in added.items():
        inner = _below(node, key)
        if inner is None:
            missing[key] = branch
        elif isinstance(inner, yaml.MappingNode) and not inner.flow_style:
            yield from _insertions(inner, branch)
        elif branch:
            raise no_place(FILE, f"block of lines at {key}, line {inner.start_mark.line + 1},")
    if missing:
        yield node.start_mark.line, node.start_mark.column, missing


class _Reader:
    """Collects a tree leaf by leaf, in any order; each method returns whether it understands the leaf."""

    def __init__(self, version: Version) -> None:
        self.version: Version = version
        self.unknown: set[str] = set()
        self.static: set[RouterRoute] = set()
        self.addresses: dict[str, list[IpInterface]] = {}
        self.vrfs: dict[str, str] = {}
        self.access: dict[str, str] = {}
        self.svis: dict[str, str] = {}
        self.down: set[str] = set()
        self.speeds: dict[str, int] = {}
        self.rules: dict[tuple[str, str], dict[str, dict[str, str]]] = {}
        self.actions: dict[tuple[str, str], str] = {}
        self.clauses: dict[tuple[str, str], ClauseDraft] = {}
        self.prepended: list[tuple[ClauseDraft, str, set[int | None]]] = []
        self.denied: set[tuple[str, str]] = set()
        self.of_other: set[tuple[str, str]] = set()
        """Entries of route maps that no route of this family matches."""
        self.community_matches: dict[tuple[str, str], str] = {}
        self.communities: dict[str, set[str]] = {}
        self.bgp: dict[str, str] = {}
        self.peers = Peers()
        self.is_on: dict[str, bool] = {}
        self.is_relaxed = self.is_drained = False
        self.redistributes: dict[str, str] = {}
        self.networks: set[IpNetwork] = set()
        self.aggregates: dict[IpNetwork, bool] = {}
        self.max_paths = DEFAULT_PATHS

    def interface(self, path: Path, value: str) -> bool:
        name, key = path[1], path[2]
        if key in INSIDE[self.version]:
            if path[3:4] == ("address",) and len(path) > 4:
                address = interface_address(path[4], self.version)
                if address is not None:
                    self.addresses.setdefault(name, []).append(address)
            elif path[3:] == ("vrf",):
                self.vrfs[name] = value
        elif key == "link":
            if path[3:] == ("state", "down") or (path[3:] == ("state",) and value == "down"):
                self.down.add(name)
            elif path[3:] == ("speed",) and (speed := SPEED.fullmatch(value)):
                self.speeds[name] = int(speed[1])
        elif key == "vrf":
            self.vrfs[name] = value
        elif key == "vlan":
            self.svis[value] = name
        elif key == "bridge" and path[3:4] == ("domain",) and path[5:] in {("access",), ("untagged",)}:
            self.access[name] = value
        return True

    def maintenance(self, path: Path, value: str) -> bool:
        if path[1:] == ("unit", "all-protocols", "mode"):
            self.is_drained |= value in ON
            return True
        return value not in ON

    def everywhere(self, path: Path, value: str) -> bool:
        """Read a leaf of `router`, which applies to every VRF."""
        if path[1] == "bgp":
            if path[2] in SWITCH:
                self.is_on["everywhere"] = value in ON
            elif path[2] == "graceful-shutdown":
                self.is_drained |= value in ON
            elif path[2] in {"autonomous-system", "router-id"}:
                self.bgp.setdefault(path[2], value)
            else:
                return path[2] in HARMLESS_EVERYWHERE
            return True
        return self._policy(path[2:], value) if path[1] == "policy" else path[1] in HARMLESS

    def _policy(self, path: Path, value: str) -> bool:
        kind, name, *rest = path
        if kind == "as-path-list":
            return True  # unknown where a route map matches it
        if len(rest) < 3:
            return rest == ["type"]
        number, key, *inner = rest[1:]
        if kind == "prefix-list":
            return self._prefix_rule((name, number), key, inner, value)
        if kind == "community-list" and key == "community":
            self.communities.setdefault(name, set()).add(inner[0] if inner else value)
            return True
        if kind == "route-map":
            draft = self.clauses.setdefault((name, number), ClauseDraft())
            if (key, *inner) == ("match", "type") and value != f"ipv{self.version}":
                self.of_other.add((name, number))
            if not self._clause((name, number), draft, (key, *inner), value):
                draft.unknown.append(".".join((key, *inner)) + (f": {value}" if value else ""))
            return True
        return kind == "community-list" and key == "action"

    def _prefix_rule(self, place: tuple[str, str], key: str, inner: list[str], value: str) -> bool:
        if key == "action":
            self.actions[place] = inner[0] if inner else value
        elif key == "match" and inner:
            bounds = self.rules.setdefault(place, {}).setdefault(inner[0], {})
            if len(inner) > 1:
                bounds[inner[1]] = value
        else:
            return False
        return True

    def _clause(self, place: tuple[str, str], draft: ClauseDraft, path: Path, value: str) -> bool:
        line = ".".join(path)
        match path:
            case ("action",) | ("action", _):
                if "deny" in {value, path[-1]}:
                    self.denied.add(place)
            case ("match", "type"):
                return value in {"ipv4", "ipv6"}
            case ("match", "ip-prefix-list"):
                draft.prefix_lists = (*draft.prefix_lists, value)
            case ("match", "interface"):
                draft.interface = value
            case ("match", "community-list"):
                self.community_matches[place] = value
            case ("set", "local-preference"):
                draft.set_preference(value, f"{line}: {value}")
            case ("set", "community", word):
                draft.set_community([word], line)
            case ("set", "community"):
                draft.set_community(value.split(), f"{line}: {value}")
            case ("set", "as-path-prepend", "last-as") if value.isdecimal():
                draft.repeats = int(value)
            case ("set", "as-path-prepend", "as"):
                numbers = value.replace(",", " ").split()
                draft.prepends += len(numbers)
                self.prepended.append((draft, f"{line}: {value}", {as_number(number) for number in numbers}))
            case _:
                return False
        return True

    def vrf(self, path: Path, value: str) -> bool:
        """Read a leaf of a VRF; routing in any but the default one is only reported as unknown."""
        if path[1] == "mgmt" or path[2] != "router" or len(path) < 5:
            return True
        kind, key = path[3], path[4]
        if kind != "bgp" or path[1] != "default":
            is_static = kind == "static" and path[1] == "default"
            return self._static(key, path[5:]) if is_static else kind not in {"bgp", "eigrp", "ospf", "pbr", "static"}
        if key in {"neighbor", "peer-group"}:
            return len(path) < 6 or self._peer(key, path[5], path[6:], value)
        if key == "address-family":
            family = "".join(path[5:6])
            is_known = family in FAMILIES.values() or not (path[-1] in SWITCH and value in ON)
            return self._family(path[6:], value) if family == FAMILIES[self.version] else is_known
        if key in SWITCH:
            self.is_on["default"] = value in ON
        elif key in {"autonomous-system", "router-id"}:
            self.bgp[key] = value
        elif path[4:] == ("path-selection", "multipath", "aspath-ignore"):
            self.is_relaxed = value in ON
        else:
            return key in HARMLESS_TO_BGP
        return True

    def _static(self, text: str, path: Path) -> bool:
        version: Version = 6 if ":" in text else 4
        if path[:1] == ("distance",) and len(path) < 4:
            return True  # the next hops of the distance are paths of their own
        distance, path = (path[1:2], path[2:]) if path[:1] == ("distance",) else ((), path)
        route = static_route((text, path[1], *distance), version) if path[:1] == ("via",) and len(path) > 1 else None
        if route is not None and version == self.version:
            self.static.add(route)
        return route is not None or path[:1] in {("address-family",), ()}

    def _family(self, path: Path, value: str) -> bool:
        match path:
            case ("aggregate-route", text, *option) if (prefix := network(text, self.version)) is not None:
                is_summary = option == ["summary-only"] and value in ON
                self.aggregates[prefix] = self.aggregates.get(prefix, False) or is_summary
                return not option or option == ["summary-only"]
            case ("multipaths", "ebgp") if value.isdecimal():
                self.max_paths = int(value)
            case ("multipaths", "ibgp"):
                pass
            case ("redistribute", "connected", *key):
                self.redistributes[key[0] if key else ""] = value
                return not key or key[0] in {*SWITCH, "route-map"}
            case ("redistribute", _, key):
                return key in SWITCH and value not in ON
            case ("network", text, *option) if (prefix := network(text, self.version)) is not None:
                self.networks.add(prefix)
                return not option
            case (key,) if key in SWITCH:
                self.is_on["family"] = value in ON
            case _:
                return False
        return True

    def _peer(self, kind: str, name: str, path: Path, value: str) -> bool:
        peer = self.peers.of(name)
        peer.is_group = kind == "peer-group"
        peer.is_interface = kind == "neighbor" and not is_address(name)
        if path[:2] == ("address-family", FAMILIES[self.version]):
            return self._peer_family(name, path[2:], value)
        match path:
            case () | ("address-family", _):
                pass
            case ("peer-group",):
                peer.group = value
            case ("remote-as",):
                peer.remote = value
            case ("graceful-shutdown",):
                peer.is_drained = value in ON
            case ("shutdown",):
                peer.is_shut_down = value in ON
            case (key,) if key in SWITCH:
                peer.is_shut_down = value not in ON
            case ("address-family", family, *_):
                return family in FAMILIES.values() or not (path[-1] in SWITCH and value in ON)
            case _:
                return path[0] in HARMLESS_TO_NEIGHBOR
        return True

    def _peer_family(self, name: str, path: Path, value: str) -> bool:
        peer = self.peers.of(name)
        match path:
            case ():
                pass
            case ("policy", "inbound", "route-map"):
                peer.inbound = value
            case ("policy", "outbound", "route-map"):
                peer.outbound = value
            case ("aspath", "allow-my-asn", "occurrences") if value.isdecimal():
                peer.allowas_in = int(value)
            case ("aspath", "allow-my-asn", key) if key in SWITCH:
                if value not in ON:
                    peer.allowas_in = 0
                elif peer.allowas_in is None:
                    peer.allowas_in = DEFAULT_ALLOWAS_IN
            case (key,) if key in SWITCH:
                peer.is_activated = value in ON
            case ("prefix-limits", *_) if is_address(name):
                pass  # it ends a session that no route of hosts comes from
            case _:
                return path[0] in HARMLESS_TO_FAMILY
        return True

    def done(self) -> Router:
        """Build the router, in an order that does not depend on that of the file."""
        asn = as_number(self.bgp.get("autonomous-system", "")) or 0
        is_on = self.is_on.get("everywhere", False) and self.is_on.get("default", False)
        is_ipv4 = self.version == 4
        neighbors = self.peers.neighbors(asn, is_active=is_ipv4)
        if not self.is_on.get("family", True):
            neighbors = tuple(replace(neighbor, is_active=False) for neighbor in neighbors)
        if is_on and is_ipv4:
            self.unknown.update(self.peers.unknown())
        for draft, line, numbers in self.prepended:
            if numbers != {asn}:
                draft.unknown.append(line)
        wired = {name: found for name, found in self.addresses.items() if self.vrfs.get(name, "default") == "default"}
        connected = self.redistributes
        is_connected = "" in connected or any(connected.get(key, "") in ON for key in SWITCH)
        return Router(
            asn=asn if is_on else 0,
            router_id=self.bgp.get("router-id", ""),
            addresses=in_family(wired, self.version),
            members=tuple(sorted((port, self.svis[vlan]) for port, vlan in self.access.items() if vlan in self.svis)),
            down=frozenset(self.down),
            speeds=dict(sorted(self.speeds.items())),
            prefix_lists=in_order(self._prefix_lists()),
            route_maps=clauses_in_order(self._route_maps()),
            neighbors=neighbors if is_on else (),
            external=self.peers.external(asn, is_active=self.is_on.get("family", True)) if is_on and is_ipv4 else (),
            redistributed=connected.get("route-map", NO_MAP) if is_connected else None,
            networks=tuple(sorted(self.networks, key=prefix_order)),
            aggregates=tuple(
                Aggregate(prefix, self.aggregates[prefix]) for prefix in sorted(self.aggregates, key=prefix_order)
            ),
            static=routes_in_order(self.static),
            max_paths=self.max_paths,
            needs_same_path=not self.is_relaxed,
            is_drained=self.is_drained,
            requires_policy=False,
            unknown=tuple(sorted(self.unknown)),
        )

    def _prefix_lists(self) -> dict[str, list[PrefixListEntry]]:
        lists: dict[str, list[PrefixListEntry]] = {}
        other_version: Version = 6 if self.version == 4 else 4
        for (name, number), matches in self.rules.items():
            is_permit = self.actions.get((name, number)) == "permit"
            for text, bounds in matches.items():
                inside = ANY[self.version] if text == "any" else network(text, self.version)
                low, high = bounds.get("min-prefix-len", ""), bounds.get("max-prefix-len", "")
                if inside is None or whole_number(number) is None:
                    if network(text, other_version) is None:
                        self.unknown.add(f"prefix-list {name} rule {number}")
                    continue
                if text == "any" and not bounds:
                    low, high = "0", str(inside.max_prefixlen)
                lists.setdefault(name, []).append(bounded(int(number), inside, low, high, is_permit=is_permit))
        return lists

    def _route_maps(self) -> dict[str, list[Clause]]:
        maps: dict[str, list[Clause]] = {}
        for place, draft in self.clauses.items():
            if place in self.of_other:
                continue
            wanted = self.community_matches.get(place)
            if wanted is not None:
                draft.matches_graceful_shutdown = self.communities.get(wanted, {""}) <= GRACEFUL_SHUTDOWN
                if not draft.matches_graceful_shutdown:
                    draft.unknown.append(f"match.community-list: {wanted}")
            is_permit = place not in self.denied
            maps.setdefault(place[0], []).append(draft.done(whole_number(place[1]) or 0, is_permit=is_permit))
        return maps
