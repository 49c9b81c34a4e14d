"""Configuration model of GPU hosts: the files of a host's rails, and the interfaces that netplan and networkd mean."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from netkit.platforms.bgp_reader import ANY, Version, interface_address, network, prefix_order, whole_number
from netkit.platforms.change import NOTHING, Constraint, Risk, RiskTable, Rule, Strategy
from netkit.platforms.compare import ConfigModel, Situation
from netkit.platforms.config import Config, Files, Path
from netkit.platforms.linux import file_kinds, install
from netkit.platforms.linux.file_kinds import JOIN
from netkit.platforms.linux.install import BESIDE
from netkit.platforms.linux.netplan import ITEM, read_item
from netkit.platforms.ownership import LEFT, declared
from netkit.platforms.routing import HostRail, HostRoute, HostRoutes, IpInterface, IpNetwork

DERIVED = "derived"
RAILS = ("netplan.yaml", "network", "ethernets")
SETTINGS = (
    "PRIORITY",
    "PFC",
    "DSCP_MAP",
    "PRIORITY_TO_CLASS",
    "CLASS_ALGORITHM",
    "CLASS_WEIGHT",
    "CLASSES_IN_USE",
)

RISKS = RiskTable(
    objects=((*RAILS, "*"), ("10-*.network",), ("15-netkit-*.network",), ("netplan.yaml",)),
    in_use=(
        (*RAILS, "*", "addresses"),
        ("10-*.network", "[Network]", "Address"),
        ("10-*.network", "[[]Match]", "Name"),
        ("15-netkit-*.network", "[[]Network]", "Address"),
    ),
    rules=(
        Rule((*RAILS, "*", "mtu"), Risk.PORT, "the NIC goes down and up", DERIVED),
        Rule((*RAILS, "*", "routes"), Risk.LOW, "a destination that was unreachable before", DERIVED, when="added"),
        Rule((*RAILS, "*", "routes"), Risk.SESSION, "flows of the rail may break", DERIVED),
        Rule((*RAILS, "*"), Risk.SESSION, "the rail is reconfigured", DERIVED),
        Rule(("netplan.yaml",), Risk.SESSION, "rails are reconfigured", DERIVED),
        Rule(("10-*.network", "[[]Link]", "MTUBytes"), Risk.PORT, "the NIC goes down and up", DERIVED),
        Rule(("10-*.network",), Risk.SESSION, "the rail is reconfigured", DERIVED),
        Rule(("15-netkit-*.netdev",), Risk.PORT, "the LAG goes down and up", DERIVED),
        Rule(("15-netkit-*.network", "[[]Link]", "MTUBytes"), Risk.PORT, "the interface goes down and up", DERIVED),
        Rule(("15-netkit-*.network",), Risk.SESSION, "the interface is reconfigured", DERIVED),
        Rule(("10-*.link",), Risk.LOW, "takes effect with the next boot or driver reload", DERIVED),
        Rule(("oif.conf",), Risk.SESSION, "lookups by interface may briefly find no route", DERIVED),
        Rule(("90-netkit-rails.conf",), Risk.LOW, source=DERIVED),
        *(Rule(("netkit-nic-qos", name), Risk.BUFFER, "the NIC reallocates its buffers", DERIVED) for name in SETTINGS),
        Rule(("netkit-nic-qos",), Risk.LOW, "the settings are applied again", DERIVED),
        Rule(("netkit-nic-qos@.service",), Risk.LOW, source=DERIVED),
        Rule(("70-netkit-rails.rules",), Risk.LOW, "takes effect with the next boot or driver reload", DERIVED),
        Rule(("nccl.conf",), Risk.LOW, "applies to jobs that start afterwards", DERIVED),
        Rule(
            ("mlxconfig.conf",),
            Risk.LOW,
            "takes effect after a firmware reset or a reboot, which you have to schedule",
            DERIVED,
        ),
        Rule(("nicctl.conf",), Risk.LOW, "takes effect when you run its commands", DERIVED),
    ),
)


# File → side effect, or what remains to be done after Ansible has installed it.
COSTS = {
    "netplan.yaml": "networkd reconfigures rails with changed settings, one after the other; others are not affected",
    "70-netkit-rails.rules": "udev rules: names of interfaces change with the next boot or driver reload",
    "netkit-nic-qos": "NIC QoS: brief packet loss on each rail with changed settings",
    "mlxconfig.conf": "firmware settings take effect after mlxfwreset or a reboot; drain the host before",
    "nicctl.conf": "QoS of AMD Pollara NICs changes when you run the commands in nicctl.conf",
    "nccl.conf": "running jobs keep the settings they started with",
}
CLASS_OF_ROCE = (("netkit-nic-qos", "PRIORITY"), ("netkit-nic-qos", "TOS"), ("nccl.conf", "NCCL_IB_TC"))
CLASS_CHANGES = (
    "RoCE gets another priority or DSCP: until all devices have it, its packets may be dropped; stop it first"
)


def strategy(situation: Situation) -> Strategy:
    """Apply the changes with the playbooks, in batches of hosts."""
    if not situation.changes:
        return Strategy(NOTHING)
    changed = dict.fromkeys(change.path[0] for change in situation.changes)
    has_rails = any(path[0] == "netplan.yaml" or path[0].endswith(".network") for path in situation.running)
    order = (
        "rail by rail, the same rail on all hosts of a batch; all together where a host carries no traffic"
        if has_rails
        else "all rails together where none has an address, else rail by rail"
    )
    steps = (
        "files staged on all hosts of a batch",
        f"hosts-apply under a timer, {order}",
        "links, addresses and routes verified",
    )
    costs = [COSTS[file] for file in changed if file in COSTS]
    if any(
        change.path in CLASS_OF_ROCE and None not in (change.running, change.intended) for change in situation.changes
    ):
        costs.insert(0, CLASS_CHANGES)
    return Strategy("ansible", steps, tuple(costs))


def constraints() -> Iterator[Constraint]:
    """Yield the side effects by file."""
    for file, cost in COSTS.items():
        yield Constraint(file, cost)


MAIN_TABLE = 254
DROPPING = frozenset({"unreachable", "blackhole", "prohibit"})
ON_LINK = frozenset({"", "unicast"})
# netplan's keys → networkd's settings.
ROUTE = {
    "to": "Destination", "via": "Gateway", "table": "Table", "type": "Type", "scope": "Scope", "metric": "Metric",
    "on-link": "GatewayOnLink", "from": "PreferredSource", "mtu": "MTUBytes",
}  # fmt: skip
RULE = {"from": "From", "to": "To", "table": "Table", "priority": "Priority"}
KNOWN_ROUTE = frozenset(
    {"Destination", "Gateway", "Table", "Type", "Scope", "Metric", "GatewayOnLink", "PreferredSource", "MTUBytes"}
)
GATEWAYS = frozenset({("gateway4",), ("gateway6",)})
KNOWN_RULE = frozenset({"From", "Table", "Priority", "Family", "OutgoingInterface"})
LAST_PRIORITY = 32_765
"""Of a rule without a priority: just before the kernel's rule for the main table."""
USUAL_METRIC_V6 = 1024
"""Of a route of IPv6 without a metric, or with 0."""
Settings = Mapping[str, str]


@dataclass(slots=True)
class _Draft:
    """A rail under construction."""

    addresses: list[IpInterface] = field(default_factory=list)
    routes: list[tuple[int, HostRoute]] = field(default_factory=list)
    """With the metric."""


def host_routes(config: Config) -> HostRoutes:
    """Build the routing model of a host; rules by outgoing interface may be in a separate file."""

    def read(version: Version) -> _Reader:
        reader = _Reader(config, version)
        for path, value in config.items():
            if path[0] == NETPLAN:
                if path[1:3] == ("network", "ethernets") and len(path) > 4:
                    reader.netplan(reader.netplan_names[path[3]], path[4:], value)
                elif version == 4 and path[4:5] in {("routes",), ("routing-policy",), *GATEWAYS}:
                    words = " ".join(part.removeprefix(ITEM) for part in (*path[4:], value))
                    reader.unknown.add(f"{path[3]}: {words.strip()}")
            elif path[0].endswith((".network", "oif.conf")) and not path[0].startswith(BESIDE):
                reader.unit(path[0], path[1:], value)
        return reader

    found = read(4)
    return replace(found.done(), v6=read(6).done()) if found.has_ipv6 else found.done()


class _Reader:
    """The routing of a host under construction."""

    def __init__(self, config: Config, version: Version) -> None:
        self.version: Version = version
        self.has_ipv6 = False
        self.names = {file: settings.get("name", "") for file, settings in unit_settings(config).items()}
        self.netplan_names = netplan_names(config)
        self.rails: dict[str, _Draft] = {}
        self.rules: list[tuple[int, IpNetwork, int]] = []
        """(priority, source, table): a rule applies to the whole host, whichever interface it is written beside."""
        self.bound: dict[str, int] = {}
        self.unknown: set[str] = set()

    def rail(self, name: str) -> _Draft:
        """Find or add a rail."""
        return self.rails.setdefault(name, _Draft())

    def netplan(self, name: str, path: Path, value: str) -> None:
        """Parse an entry of an interface in netplan: a gateway, or an item of a list."""
        if path in GATEWAYS:
            self.route(name, {"Gateway": value}, f"{name}: {path[0]} {value}")
        if len(path) != 2:
            return
        key, item = path[0], path[1].removeprefix(ITEM)
        found: Any = read_item(item, value)
        if key == "addresses":
            for address in found if isinstance(found, dict) else (item,):  # an address may have options
                self.address(name, address)
            return
        if key not in {"routes", "routing-policy"}:
            return
        words = ROUTE if key == "routes" else RULE
        settings = (
            {words.get(str(one), str(one)): str(text) for one, text in found.items()} if isinstance(found, dict) else {}
        )
        origin = f"{name}: {key} {item} {value}".strip()
        if key == "routes":
            self.route(name, {"Destination": ""} | settings, origin)
        else:
            self.rule(settings, origin)

    def unit(self, file: str, path: tuple[str, ...], value: str) -> None:
        """Parse an entry of a unit: a setting of a section, or a block as one line."""
        name = self.names.get(file, "")
        head, *rows = path[0].split(JOIN)
        settings = dict(row.partition("=")[::2] for row in rows)
        origin = f"{file}: {path[0]}"
        if path[0] == "[Network]" and len(path) > 1:
            key, _, item = path[1].partition("=")
            if key == "Address":
                self.address(name, value or item)
            elif key == "Gateway":
                self.route(name, {"Gateway": value or item}, f"{file}: Gateway={value or item}")
        elif head == "[Address]":
            self.address(name, settings.get("Address", ""))
        elif head == "[Route]":
            self.route(name, settings, origin)
        elif head == "[RoutingPolicyRule]":
            self.rule(settings, origin)

    def address(self, name: str, text: str) -> None:
        """Parse an address; the other family is ignored."""
        found = interface_address(text, self.version)
        self.has_ipv6 |= ":" in text
        if found is not None:
            self.rail(name).addresses.append(found)

    def route(self, name: str, settings: Settings, origin: str) -> None:
        """Parse a route; without a destination it is the default route."""
        text, kind, table = settings.get("Destination", "default"), settings.get("Type", ""), _table(settings)
        if text == "default":
            text = str(ANY[6 if ":" in settings.get("Gateway", "") else 4])
        if (":" in text) != (self.version == 6):
            return
        prefix, via = network(text, self.version), settings.get("Gateway", "")
        metric = whole_number(settings.get("Metric", "0"))
        if self.version == 6:
            metric = metric or USUAL_METRIC_V6
        gateway = interface_address(via, 6 if ":" in via else 4)
        is_known = not settings.keys() - KNOWN_ROUTE and kind in DROPPING | ON_LINK and bool(gateway or not via)
        if prefix is None or table is None or metric is None or not is_known:
            self.unknown.add(origin)
            return
        route = HostRoute(prefix, str(gateway.ip) if gateway else "", table, kind in DROPPING)
        self.rail(name).routes.append((metric, route))

    def rule(self, settings: Settings, origin: str) -> None:
        """Parse a rule: by source address, or by the interface a socket is bound to."""
        text, table, out = settings.get("From", ""), _table(settings), settings.get("OutgoingInterface", "")
        families = {"ipv4": (4,), "ipv6": (6,), "both": (4, 6)}.get(
            settings.get("Family", ""), (6 if ":" in text else 4,)
        )
        if self.version not in families:
            return
        source, priority = network(text, self.version), whole_number(settings.get("Priority", str(LAST_PRIORITY)))
        is_before_main = priority is not None and priority <= LAST_PRIORITY
        if table is None or not is_before_main or settings.keys() - KNOWN_RULE or (source is None) == (not out):
            self.unknown.add(origin)
        elif priority is not None and source is not None:
            self.rules.append((priority, source, table))
        else:
            self.bound[out] = table

    def done(self) -> HostRoutes:
        """Build the model, in an order that does not depend on the files."""
        lowest: dict[tuple[int, IpNetwork], int] = {}
        for metric, route in (each for draft in self.rails.values() for each in draft.routes):
            place = route.table, route.prefix
            lowest[place] = min(metric, lowest.get(place, metric))
        rules = sorted(self.rules, key=_rule_order)
        rails = (
            HostRail(
                name,
                tuple(sorted(draft.addresses, key=lambda one: (prefix_order(one.network), int(one.ip)))),
                tuple(
                    route
                    for metric, route in sorted(draft.routes, key=_route_order)
                    if metric == lowest[route.table, route.prefix]
                ),
                tuple(
                    (source, table) for _, source, table in rules if any(one.ip in source for one in draft.addresses)
                ),
                self.bound.get(name),
            )
            for name, draft in sorted(self.rails.items())
        )
        return HostRoutes(tuple(rails), tuple(sorted(self.unknown)))


def _route_order(found: tuple[int, HostRoute]) -> tuple[object, ...]:
    metric, route = found
    return route.table, prefix_order(route.prefix), metric, route.gateway


def _rule_order(found: tuple[int, IpNetwork, int]) -> tuple[object, ...]:
    priority, source, table = found
    return priority, prefix_order(source), table


def _table(settings: Settings) -> int | None:
    text = settings.get("Table", str(MAIN_TABLE))
    return MAIN_TABLE if text == "main" else int(text) if text.isascii() and text.isdecimal() else None


KINDS = {
    "netplan.yaml": file_kinds.NETPLAN,
    "oif.conf": file_kinds.UNIT,
    "10-*.network": file_kinds.UNIT,
    "10-*.link": file_kinds.UNIT,
    "15-netkit-*.netdev": file_kinds.UNIT,
    "15-netkit-*.network": file_kinds.UNIT,
    "90-netkit-rails.conf": file_kinds.SYSCTL,
    "netkit-nic-qos": file_kinds.SCRIPT,
    "netkit-nic-qos@.service": file_kinds.UNIT,
    "nccl.conf": file_kinds.SHELL,
    "mlxconfig.conf": file_kinds.SHELL,
    "nicctl.conf": file_kinds.WHOLE,
    "70-netkit-rails.rules": file_kinds.WHOLE,
}


def parse(files: Files) -> Config:
    return file_kinds.parse(files, KINDS)


def text(config: Config) -> dict[str, str]:
    return file_kinds.text(config, KINDS)


MODEL = ConfigModel(
    "linux",
    tuple(KINDS),
    parse,
    text,
    declared("host"),
    RISKS,
    strategy,
    tuple(constraints()),
    host_routes=host_routes,
    list_file=install.LIST,
)


def with_left(intended: Files, running: Mapping[str, str | None]) -> Files:
    """The intended files with what `leave` of the intent keeps of the running ones.

    Only the files with such parts are written again, and then without comments. A file that is left as a whole and is
    not there is not made.
    """
    ownership = MODEL.ownership.on(intended)
    present = {file: text for file, text in running.items() if text is not None and MODEL.reads(file)}
    have, want = MODEL.read(present), MODEL.read({file: text for file, text in intended.items() if MODEL.reads(file)})
    left = {path: value for path, value in have.items() if ownership.precedence(path) == LEFT}
    merged = {path: value for path, value in want.items() if ownership.precedence(path) != LEFT} | left
    touched = {path[0] for path in left} | {path[0] for path in want if ownership.precedence(path) == LEFT}
    written = MODEL.text({path: value for path, value in merged.items() if path[0] in touched})
    kept = {file: text for file, text in intended.items() if file not in touched or file in written or file in present}
    return {**kept, **{file: written.get(file, "") for file in touched if file in kept or file in written}}


NETPLAN = "netplan.yaml"
GLOB = frozenset("*?[!")
MAC = re.compile(r"(?:[0-9a-f]{2}[:-]){5}[0-9a-f]{2}")
PCI = r"[0-9a-f]{4}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-7]"
IN_PATH = re.compile(rf"pci-({PCI})", re.IGNORECASE)
UNIT_KEYS = {
    ("[Match]", "Name"): "name",
    ("[Match]", "MACAddress"): "mac",
    ("[Match]", "PermanentMACAddress"): "mac",
    ("[Match]", "Path"): "pci",
    ("[Link]", "Name"): "name",
    ("[Link]", "MTUBytes"): "mtu",
    ("[Link]", "Description"): "note",
    ("[Link]", "Alias"): "note",
    ("[Network]", "Description"): "note",
}
UnitSettings = dict[str, str]


def netplan_names(config: Config) -> dict[str, str]:
    """The interface of each entry of `ethernets`: what it sets or matches exactly, else its identifier."""
    found: dict[str, str] = {}
    for path, value in config.items():
        if path[:3] == (NETPLAN, "network", "ethernets") and len(path) > 4:
            found.setdefault(path[3], path[3])
            is_unset = found[path[3]] == path[3]
            if path[4:] == ("set-name",) or (path[4:] == ("match", "name") and is_unset):
                found[path[3]] = value
    return found


def unit_settings(config: Config) -> dict[str, UnitSettings]:
    """The name, MAC, PCI address, MTU and description in each unit of networkd and udev.

    A .network file without a name gets that of the .link file for the same MAC or PCI address.
    """
    found: dict[str, UnitSettings] = {}
    for path, value in config.items():
        if path[0].endswith((".network", ".link")):
            settings = found.setdefault(path[0], {})
            if len(path) == 3 and (key := UNIT_KEYS.get((path[1], path[2]))) and (text := _plain(key, value)):
                settings.setdefault(key, text)
    links = [settings for file, settings in found.items() if file.endswith(".link") and "name" in settings]
    for settings in found.values():
        if "name" not in settings and (own := next((link for link in links if _is_same(link, settings)), None)):
            settings["name"] = own["name"]
    return found


def mac(text: str) -> str:
    """A MAC in its usual form; empty for several of them, and for anything else."""
    text = text.strip().lower()
    return text.replace("-", ":") if MAC.fullmatch(text) else ""


def _plain(key: str, value: str) -> str:
    if key == "pci":
        match = IN_PATH.search(value)
        return match[1].lower() if match else ""
    return mac(value) if key == "mac" else value


def _is_same(link: Mapping[str, str], settings: Mapping[str, str]) -> bool:
    return any(key in settings and settings[key] == link.get(key) for key in ("mac", "pci"))
