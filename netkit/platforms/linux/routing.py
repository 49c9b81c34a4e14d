"""Routing model of a GPU host, from netplan's file or networkd's units."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from ipaddress import IPv4Interface, IPv4Network
from typing import Any

from netkit.platforms.bgp_reader import ANY, interface_address, network
from netkit.platforms.config import Config
from netkit.platforms.linux.install import BESIDE
from netkit.platforms.linux.interface_names import NETPLAN, netplan_names, unit_settings
from netkit.platforms.linux.netplan import ITEM, read_item
from netkit.platforms.linux.unit import JOIN
from netkit.platforms.routing import HostRail, HostRoute, HostRoutes

MAIN_TABLE = 254
DROPPING = frozenset({"unreachable", "blackhole", "prohibit"})
ON_LINK = frozenset({"", "unicast"})
# netplan's keys → networkd's settings.
ROUTE = {
    "to": "Destination", "via": "Gateway", "table": "Table", "type": "Type", "scope": "Scope", "metric": "Metric",
    "on-link": "GatewayOnLink", "from": "PreferredSource", "mtu": "MTUBytes",
}  # fmt: skip
RULE = {"from": "From", "to": "To", "table": "Table", "priority": "Priority"}
KNOWN_ROUTE = frozenset({"Destination", "Gateway", "Table", "Type", "Scope", "GatewayOnLink", "MTUBytes"})
KNOWN_RULE = frozenset({"From", "Table", "Priority", "Family", "OutgoingInterface"})
Settings = Mapping[str, str]


@dataclass(slots=True)
class _Draft:
    """A rail under construction."""

    addresses: list[IPv4Interface] = field(default_factory=list)
    routes: list[HostRoute] = field(default_factory=list)
    tables: list[tuple[IPv4Network, int]] = field(default_factory=list)


def host_routes(config: Config) -> HostRoutes:
    """Build the routing model of a host; rules by outgoing interface may be in a separate file."""
    reader = _Reader(config)
    for path, value in config.items():
        if path[0] == NETPLAN:
            if len(path) == 6 and path[1:3] == ("network", "ethernets"):
                reader.netplan(reader.netplan_names[path[3]], path[4], path[5].removeprefix(ITEM), value)
        elif path[0].endswith((".network", "oif.conf")) and not path[0].startswith(BESIDE):
            reader.unit(path[0], path[1:], value)
    return reader.done()


class _Reader:
    """The routing of a host under construction."""

    def __init__(self, config: Config) -> None:
        self.names = {file: settings.get("name", "") for file, settings in unit_settings(config).items()}
        self.netplan_names = netplan_names(config)
        self.rails: dict[str, _Draft] = {}
        self.bound: dict[str, int] = {}
        self.unknown: set[str] = set()

    def rail(self, name: str) -> _Draft:
        """Find or add a rail."""
        return self.rails.setdefault(name, _Draft())

    def netplan(self, name: str, key: str, item: str, value: str) -> None:
        """Parse an item of an interface's list in netplan."""
        found: Any = read_item(item, value)
        if key == "addresses":
            for address in found if isinstance(found, dict) else (item,):  # an address may have options of its own
                self.address(name, address)
            return
        if key not in {"routes", "routing-policy"}:
            return
        words = ROUTE if key == "routes" else RULE
        settings = (
            {words.get(str(one), str(one)): str(text) for one, text in found.items()} if isinstance(found, dict) else {}
        )
        if settings.get("Destination") == "default":
            settings["Destination"] = str(ANY)
        read = self.route if key == "routes" else self.rule
        read(name, settings, f"{name}: {key} {item} {value}".strip())

    def unit(self, file: str, path: tuple[str, ...], value: str) -> None:
        """Parse an entry of a unit: a setting of a section, or a block as one line."""
        name = self.names.get(file, "")
        head, *rows = path[0].split(JOIN)
        settings = dict(row.partition("=")[::2] for row in rows)
        origin = f"{file}: {path[0]}"
        if path[0] == "[Network]" and len(path) > 1 and path[1].partition("=")[0] == "Address":
            self.address(name, value or path[1].partition("=")[2])
        elif head == "[Address]":
            self.address(name, settings.get("Address", ""))
        elif head == "[Route]":
            self.route(name, {"Destination": str(ANY)} | settings, origin)
        elif head == "[RoutingPolicyRule]":
            self.rule(name, settings, origin)

    def address(self, name: str, text: str) -> None:
        """Parse an address; other families than IPv4 are ignored."""
        found = interface_address(text)
        if found is not None:
            self.rail(name).addresses.append(found)

    def route(self, name: str, settings: Settings, origin: str) -> None:
        prefix, kind, table = network(settings.get("Destination", "")), settings.get("Type", ""), _table(settings)
        if prefix is None or table is None or settings.keys() - KNOWN_ROUTE or kind not in DROPPING | ON_LINK:
            if ":" not in settings.get("Destination", ""):
                self.unknown.add(origin)
            return
        self.rail(name).routes.append(HostRoute(prefix, settings.get("Gateway", ""), table, kind in DROPPING))

    def rule(self, name: str, settings: Settings, origin: str) -> None:
        """Parse a rule: by source address, or by the interface a socket is bound to."""
        source, table = network(settings.get("From", "")), _table(settings)
        out = settings.get("OutgoingInterface", "")
        if settings.get("Family") == "ipv6" or ":" in settings.get("From", ""):
            return
        if table is None or settings.keys() - KNOWN_RULE or (source is None) == (not out):
            self.unknown.add(origin)
        elif source is not None:
            self.rail(name).tables.append((source, table))
        else:
            self.bound[out] = table

    def done(self) -> HostRoutes:
        """Build the model, in an order that does not depend on the files."""
        rails = (
            HostRail(
                name,
                tuple(sorted(draft.addresses)),
                tuple(sorted(draft.routes, key=lambda route: (route.table, route.prefix, route.gateway))),
                tuple(sorted(draft.tables)),
                self.bound.get(name),
            )
            for name, draft in sorted(self.rails.items())
        )
        return HostRoutes(tuple(rails), tuple(sorted(self.unknown)))


def _table(settings: Settings) -> int | None:
    text = settings.get("Table", str(MAIN_TABLE))
    return MAIN_TABLE if text == "main" else int(text) if text.isascii() and text.isdecimal() else None
