"""Surveyed devices → an intent that designs the same fabric; tables hold what the design would number differently."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from ipaddress import ip_network

from pydantic import ValidationError

from netkit import design
from netkit.adopt import fabric_values
from netkit.adopt.external_values import externals, static_routes
from netkit.adopt.fabric_values import Addressing, Assumptions, Values
from netkit.adopt.hardware_values import HardwareSearch
from netkit.adopt.ipv6_values import AddressingV6, addressing_v6
from netkit.adopt.links import End, FoundLinks, find_links
from netkit.adopt.names import pattern
from netkit.adopt.network_values import FoundNetworks, networks
from netkit.adopt.placement import Placement, place, slots_of, spans
from netkit.adopt.survey import Survey
from netkit.adopt.table_rows import Installed, Row, needed
from netkit.design import Fabric
from netkit.design.blueprint import PATTERNS
from netkit.design.numbering import Numbering
from netkit.errors import AdoptError, DesignError, HardwareError, NetkitError, Problem
from netkit.hardware import Catalog
from netkit.intent import complaint
from netkit.intent.model import Intent
from netkit.platforms import PLATFORMS
from netkit.platforms.routing import IpNetwork
from netkit.render import Engine, render

WIDEST_POOLS = {"loopbacks": 8, "hosts": 8, "loopbacks_v6": 48, "hosts_v6": 32}
"""Prefix lengths up to which pools are widened."""
OUTSIDE = {("external",): "peers outside", ("routing", "static"): "static routes"}
SETTINGS = frozenset({"hosts", "lossless", "routing", "services"})
Path = tuple[str, ...]


@dataclass(frozen=True)
class FoundIntent:
    """An intent, the fabric it designs, and what is uncertain about it."""

    values: Values
    """Without the tables."""
    tables: Mapping[str, list[Row]]
    intent: Intent
    fabric: Fabric
    placement: Placement
    links: FoundLinks
    guesses: tuple[tuple[str, str], ...]
    unattached: int = 0
    """Hosts and switches of networks beside the rails that are not in the intent."""

    @property
    def invented(self) -> int:
        """The number of devices that the design adds to those that were found."""
        tiers = (*self.fabric.tier("leaf"), *self.fabric.tier("spine"), *self.fabric.tier("core"))
        return len(tiers) + len(self.fabric.hosts) - len(self.placement.places)

    @property
    def cells(self) -> int:
        """Of tables, and of ports that single hosts have in networks."""
        ports = sum(len(one.hosts.ports) for one in self.intent.networks if one.hosts)
        return ports + sum(len(row) for rows in self.tables.values() for row in rows)


@dataclass(frozen=True)
class Adoption:
    """A fabric to adopt: what was read of it, and what else an intent is proposed from."""

    name: str
    survey: Survey
    catalog: Catalog
    neighbors: Mapping[End, End] = field(default_factory=dict)
    """By LLDP."""
    known: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    """Device → columns of the table of devices that another source has."""
    listed: Mapping[End, End] = field(default_factory=dict)
    recorded: Mapping[End, End] = field(default_factory=dict)
    """Cables in a source of truth."""


def propose(source: Adoption) -> FoundIntent:
    """Propose the intent with the fewest devices of its own, then cells in tables: numbers in order, or from names."""
    links = find_links(source.survey, source.neighbors, source.listed, source.recorded)
    found: list[FoundIntent] = []
    refused: list[NetkitError] = []
    for by_names in (False, True):
        if found and not (found[0].cells or found[0].invented or found[0].unattached):
            break
        try:
            found.append(_with_ipv6(source, links, place(source.survey, links, by_names=by_names)))
        except (AdoptError, DesignError, HardwareError) as error:
            refused.append(error)
    if not found:
        raise AdoptError((*_damaged(source.survey), *_unknown_ends(links), *_explained(refused[0], source.survey)))
    return min(found, key=lambda one: (one.invented, one.unattached, one.cells))


def _wrong_names(survey: Survey) -> Iterable[Problem]:
    """Yield the switches whose NOS does not accept the name of their folder, whatever their own host name is."""
    for name, switch in sorted({**survey.switches, **survey.beside}.items()):
        platform = PLATFORMS[switch.platform]
        if message := platform.wrong_name(name):
            other = name.replace(platform.refused_mark, "-")
            yield Problem(
                message, f"rename its folder or backup, and in lists of devices and cables, such as to {other}"
            )


def _damaged(survey: Survey) -> Iterable[Problem]:
    """Yield the likely cause where a design is refused: devices whose files cannot be parsed."""
    return [Problem(f"{name} cannot be read: {survey.unread[name]}") for name in sorted(survey.damaged)]


def _unknown_ends(links: FoundLinks) -> Iterable[Problem]:
    """Yield the likely cause of a design that is refused: cables that nothing names."""
    if links.dangling:
        (device, port), count = links.dangling[0], len(links.dangling)
        message = f"the other end of {count} ports is unknown, such as {device} {port}"
        yield Problem(message, "describe the ports, or list the cables with --cables")


def _explained(error: NetkitError, survey: Survey) -> Iterable[Problem]:
    if isinstance(error, AdoptError):
        return error.problems
    wrong = list(_wrong_names(survey))
    if {one.message for one in wrong} & {one.message for one in error.problems}:
        return wrong
    remedy = "an intent cannot describe these devices as they are; adopt only some of them"
    return [Problem(f"{'.'.join(map(str, one.path))}: {one.message}", remedy) for one in error.problems]


def _with_ipv6(source: Adoption, links: FoundLinks, placement: Placement) -> FoundIntent:
    """Propose an intent with the IPv6 of most devices; if the design refuses that, it is left as it runs."""
    guesses = Assumptions()
    addresses = fabric_values.addressing(source.survey, placement, guesses)
    placement = replace(placement, rails=max((placement.rails - 1, *addresses.rail_prefixes)) + 1)
    if ipv6 := addressing_v6(source.survey, placement, addresses, guesses):
        kept = Assumptions(list(guesses.found))
        try:
            return _proposal(source, links, placement, addresses, ipv6, kept)
        except (AdoptError, DesignError) as error:
            guesses.add("pools", f"IPv6 is left as it runs: {error.problems[0].message}")
    return _proposal(source, links, placement, addresses, AddressingV6(), guesses)


def _proposal(
    source: Adoption,
    links: FoundLinks,
    placement: Placement,
    addresses: Addressing,
    ipv6: AddressingV6,
    guesses: Assumptions,
) -> FoundIntent:
    hardware = HardwareSearch(source.survey, links, placement, source.catalog, guesses)
    beside = networks(source.survey, placement, source.catalog, guesses)
    values = _values(source, placement, hardware, addresses, beside, guesses)
    bare, values = _bare(source, _of_ipv6(values, ipv6), guesses)
    if "management" not in values:
        ipv6 = replace(ipv6, management=None)
    installed = Installed(source.survey, links, placement, addresses, hardware, ipv6, source.known)
    rows = installed.rows(bare)
    tables = needed({table: rows[table] for table in ("devices", "rails")}, bare)
    if "asn" in tables.get("devices", [{}])[0]:
        values = values | {"pools": _without(values["pools"], "asn_base")}
    # Cables and NICs are found by names, so they are compared once the devices have theirs.
    named = designed(source, values, tables) if tables else bare
    cables = [*rows["cables"], *installed.unseen_cables(rows["cables"], named)]
    nics = [*rows["nics"], *installed.unseen_nics(rows["nics"], named)]
    tables |= needed({"cables": cables, "nics": nics}, named)
    values, kept = _with_networks(source, values, beside, tables, guesses)
    in_networks = {name: one for name, one in beside.hardware.items() if name in kept}
    left_out = {name: why for name, why in placement.left_out.items() if name not in kept}
    unattached = beside.unattached + len(source.survey.beside) - len(kept)
    placement = replace(placement, left_out=left_out)
    peers = externals(source.survey, hardware, in_networks, guesses)
    values = _with_accepted(source, values, ("external",), peers, tables, guesses)
    fabric = designed(source, values, tables)
    if static := static_routes(source.survey, fabric):
        values = _with_accepted(source, values, ("routing", "static"), static, tables, guesses)
        fabric = designed(source, values, tables)
    intent = validated(values, tables)
    return FoundIntent(values, tables, intent, fabric, placement, links, tuple(guesses.found), unattached)


def _with_networks(
    source: Adoption, values: Values, beside: FoundNetworks, tables: Mapping[str, list[Row]], guesses: Assumptions
) -> tuple[Values, frozenset[str]]:
    """Add the networks beside the rails but those that the design refuses; return their switches too."""
    kept: list[Values] = []
    names = frozenset[str]()
    for entry in beside.entries:
        changed = values | {"networks": [*kept, entry]}
        try:
            fabric = designed(source, changed, tables)
        except NetkitError as error:
            own = f"{entry['name']}: "
            guesses.found = [one for one in guesses.found if one[0] != "networks" or not one[1].startswith(own)]
            guesses.add("networks", f"{entry['name']} is left out: {error.problems[0].message}")
        else:
            kept.append(entry)
            names = frozenset(switch.name for switch in fabric.switches if switch.access)
    return values | ({"networks": kept} if kept else {}), names


def _with_accepted(
    source: Adoption,
    values: Values,
    key: Path,
    entries: list[Values],
    tables: Mapping[str, list[Row]],
    guesses: Assumptions,
) -> Values:
    """Add peers outside or static routes; those that the design or a NOS refuses are left as they run."""
    while entries:
        section: object = {**_without(values[key[0]], key[1]), key[1]: entries} if key[1:] else entries
        changed = values | {key[0]: section}
        try:
            fabric = designed(source, changed, tables)
            list(render(fabric, [switch for switch in fabric.switches if switch.external], Engine()))
        except NetkitError as error:
            at = len(key)
            refused = {one.path[at]: one for one in error.problems if one.path[:at] == key and len(one.path) > at}
            problem, count = next(iter(refused.values()), error.problems[0]), len(refused) or len(entries)
            guesses.add(key[0], f"{count} {OUTSIDE[key]} are left as they run, such as: {problem.message}")
            entries = [one for index, one in enumerate(entries) if refused and index not in refused]
        else:
            return changed
    return values


def _of_ipv6(values: Values, ipv6: AddressingV6) -> Values:
    """Add the pools of IPv6."""
    pools, management = values["pools"], values.get("management")
    found = {"loopbacks_v6": ipv6.loopbacks, "hosts_v6": ipv6.hosts}
    if isinstance(pools, dict):
        values = values | {"pools": pools | {key: str(pool) for key, pool in found.items() if pool}}
    if ipv6.management and isinstance(management, dict):
        own = {"pool_v6": str(ipv6.management), "gateway_v6": ipv6.management_gateway}
        values = values | {"management": management | own}
    return values


def _without(values: object, key: str) -> Values:
    return {one: value for one, value in values.items() if one != key} if isinstance(values, dict) else {}


def _bare(source: Adoption, values: Values, guesses: Assumptions) -> tuple[Fabric, Values]:
    """Design without tables: pools without room for all are widened, management and settings that are refused left."""
    while True:
        try:
            return designed(source, values, {}), values
        except DesignError as error:
            short = {problem.path[:2]: problem.message for problem in error.problems}
            pools = values["pools"]
            wider = {
                key: str(ip_network(str(pools[key])).supernet())
                for key, widest in WIDEST_POOLS.items()
                if isinstance(pools, dict) and ("pools", key) in short and not str(pools[key]).endswith(f"/{widest}")
                if "overlaps" not in short[("pools", key)]
            }
            if message := short.get(("management", "allow")):
                values = values | {"management": _without(values["management"], "allow")}
                guesses.add("management", f"allow is left as it runs: {message}")
            elif message := short.get(("management", "pool")) or short.get(("management", "gateway")):
                values = _without(values, "management")
                guesses.add("management", f"it is left as it runs: {message}")
            elif wider and isinstance(pools, dict):
                values = values | {"pools": pools | wider}
            elif (fewer := _without_refused(values, _settings(error.problems), guesses)) != values:
                values = fewer
            else:
                raise


def validated(values: Values, tables: Mapping[str, list[Row]]) -> Intent:
    """Return the intent; a value that an intent cannot have is refused by its path."""
    rows = {
        table: [{key: cell for key, cell in row.items() if cell not in {None, ""}} for row in found]
        for table, found in tables.items()
    }
    try:
        return Intent.model_validate(values | ({"tables": rows} if rows else {}))
    except ValidationError as error:
        raise AdoptError(
            replace(one, message=f"{'.'.join(map(str, one.path))}: {one.message}", path=())
            for one in complaint.problems(error.errors(include_url=False))
        ) from None


def designed(source: Adoption, values: Values, tables: Mapping[str, list[Row]]) -> Fabric:
    """The fabric that values and tables design, without notes."""
    return design.build(validated(values, tables), source.catalog, has_notes=False)


def _values(
    source: Adoption,
    placement: Placement,
    hardware: HardwareSearch,
    addresses: Addressing,
    beside: FoundNetworks,
    guesses: Assumptions,
) -> Values:
    survey = source.survey
    tiers = hardware.tiers()
    platforms = {str(tier["platform"]) for tier in tiers.values() if isinstance(tier, dict)}
    platforms |= {switch.platform for name, switch in survey.switches.items() if name in placement.places}
    values: Values = {
        "name": source.name,
        "purpose": "lab" if any(PLATFORMS[one].missing_lossless for one in platforms) else "production",
        "topology": placement.topology,
        "rails": placement.rails,
        "attachment": addresses.attachment,
        **_host_routing(survey, placement, addresses, hardware),
        "ceilings": _ceilings(placement, *(beside.ceilings or (0, 0))),
        "switches": tiers,
        "hosts": hardware.hosts(),
        "units": _units(placement, hardware),
        "cables": hardware.cables(),
        "pools": {"loopbacks": str(addresses.loopbacks), "hosts": str(addresses.hosts)},
        "lossless": fabric_values.lossless(survey, hardware.speed_of),
        "routing": fabric_values.routing(survey, placement),
        "services": fabric_values.services(survey, guesses),
        "names": _names(placement),
    }
    if base := fabric_values.asn_base(survey, placement):
        values["pools"] |= {"asn_base": base}  # type: ignore[operator]
    if management := fabric_values.management(survey, placement, guesses):
        values["management"] = management
    adaptive = fabric_values.of_most(survey.switches.values(), lambda switch: switch.existing.adaptive_routing)
    if adaptive is not None:
        values["adaptive_routing"] = adaptive
    values = within_limits(values, guesses)
    values |= {"pools": values["pools"] | _lengths(values, addresses)}  # type: ignore[operator]
    if addresses.links and not addresses.unnumbered:
        values["pools"] |= {"links": str(fabric_values.link_pool(addresses, values))}  # type: ignore[operator]
    return values


def _lengths(values: Values, addresses: Addressing) -> Values:
    """Give the lengths of prefixes that do not follow from the ceilings."""
    numbering = Numbering(validated(values, {}))
    lengths: Values = {}
    if addresses.attachment == "p2p" and addresses.link_length != numbering.longest_link:
        lengths["link_length"] = addresses.link_length
        numbering = Numbering(validated(values | {"pools": values["pools"] | lengths}, {}))  # type: ignore[operator]
    if addresses.leaf_length != numbering.longest_leaf:
        lengths["leaf_length"] = addresses.leaf_length
    return lengths


def _host_routing(survey: Survey, placement: Placement, addresses: Addressing, hardware: HardwareSearch) -> Values:
    """Return what routes hosts have: to each leaf or to rails, and whether to other rails too."""
    rail_of: dict[IpNetwork, int] = {
        prefix: placement.places[leaf].rail for leaf, prefix in addresses.leaf_prefixes.items()
    }
    rail_of |= {prefix: rail for rail, prefix in addresses.rail_prefixes.items()}
    ends = {link.near: placement.places[link.far[0]].rail for link in hardware.links.hosts}
    reached = [
        rail_of[route.prefix] != ends[(host.name, rail.interface)]
        for host in survey.hosts.values()
        for rail in host.routes.rails
        for route in rail.routes
        if route.gateway and route.prefix in rail_of and (host.name, rail.interface) in ends
    ]
    is_separate = placement.topology == "rail-only" or (placement.topology == "two-tier" and placement.planes > 1)
    is_routed = any(reached) if reached else not is_separate
    has_rails = addresses.rail_prefixes or not (survey.hosts or addresses.leaf_prefixes)
    return {
        "host_routes": "supernet" if has_rails else "per-leaf",
        "cross_rail": "routed" if is_routed and not is_separate else "blocked",
    }


def _ceilings(placement: Placement, units: int, hosts_per_unit: int) -> Values:
    places = placement.places.values()

    def most(role: str, key: str) -> int:
        return max((getattr(place, key) for place in places if place.role == role), default=0)

    ceilings: Values = {
        "units": max(units, most("leaf", "unit")),
        "hosts_per_unit": max(1, hosts_per_unit, most("host", "slot")),
    }
    if placement.topology == "three-tier":
        ceilings["pods"] = most("leaf", "pod")
        ceilings["cores"] = most("core", "slot")
    return ceilings | ({} if placement.topology == "rail-only" else {"spines": most("spine", "slot")})


def _units(placement: Placement, hardware: HardwareSearch) -> list[Values]:
    """Return the units, those that are alike in one entry."""
    hosts: dict[tuple[int, int], list[int]] = {}
    rails: dict[tuple[int, int], list[int]] = {}
    for one in placement.places.values():
        if one.role == "host":
            hosts.setdefault((one.pod, one.unit), []).append(one.slot)
        elif one.role == "leaf":
            rails.setdefault((one.pod, one.unit), []).append(one.rail)
    alike: dict[tuple[int, int | str, str, str], list[int]] = {}
    own: dict[str, Values] = {}
    for (pod, unit), found in sorted(rails.items()):
        every = sorted(found) == list(range(placement.rails))
        slots = slots_of(hosts.get((pod, unit), [1]))
        ports = hardware.of_unit((pod, unit))
        own[str(ports)] = ports
        alike.setdefault((pod, slots, "" if every else spans(found), str(ports)), []).append(unit)
    entries: list[Values] = []
    for (pod, slots, found_rails, ports_key), units in alike.items():
        entry: Values = {"pod": pod} if placement.topology == "three-tier" else {}
        entry |= {"unit": units[0] if len(units) == 1 else spans(units), "hosts": slots}
        entries.append(entry | ({"rails": found_rails} if found_rails else {}) | own[ports_key])
    return entries


def _names(placement: Placement) -> Values:
    """Return the patterns that make the names of whole roles, where they are not those of the design."""
    found: Values = {}
    for role, usual in PATTERNS[placement.topology].items():
        numbers = {name: placement.numbers(name) for name in placement.of_role(role)} if usual else {}
        made = pattern(numbers, (usual,)) if numbers else None
        if made and made != usual and all(f"{{{key}" in made for key in _distinct(placement, role, made)):
            found[role] = made
    return found


def _distinct(placement: Placement, role: str, made: str) -> Iterator[str]:
    """Yield the fields with which a pattern gives every place its own name, also those not installed yet."""
    if "{number" not in made:
        yield "slot" if role != "leaf" else "rail"
        yield from ("unit",) if role in {"leaf", "host"} else ()
        yield from ("pod",) if role in {"leaf", "host"} and placement.topology == "three-tier" else ()
        is_in_planes = role == ("core" if placement.topology == "three-tier" else "spine")
        yield from ("plane",) if is_in_planes and placement.planes > 1 else ()


def within_limits(values: Values, guesses: Assumptions) -> Values:
    """Leave out what the intent refuses of these settings; `leave` then keeps it as it runs."""
    while True:
        try:
            Intent.model_validate(values)
        except ValidationError as error:
            refused = _settings(complaint.problems(error.errors(include_url=False)))
            fewer = _without_refused(values, refused, guesses)
            if fewer == values:
                return values
            values = fewer
        else:
            return values


def _settings(problems: Iterable[Problem]) -> Iterator[tuple[Path, str]]:
    """Yield the path of each setting that is refused, of a list as a whole, and what is wrong with it."""
    for one in problems:
        path = _keys(one.path)
        if len(path) > 1 and path[0] in SETTINGS:
            yield path, one.message


def _without_refused(values: Values, refused: Iterable[tuple[Path, str]], guesses: Assumptions) -> Values:
    """Return the values without settings; without the rest of lossless where the one that is refused is not given."""
    for path, message in refused:
        for one in (path, path[:1]) if path[0] == "lossless" else (path,):
            fewer = _without_path(values, one)
            if fewer != values:
                guesses.add(path[0], f"{'.'.join(one[1:]) or 'all'} by default: {message}")
                values = fewer
                break
    return values


def _keys(path: Sequence[object]) -> Path:
    found: list[str] = []
    for key in path:
        if not isinstance(key, str):
            break
        found.append(key)
    return tuple(found)


def _without_path(values: Values, path: Path) -> Values:
    key, *rest = path
    inner = values.get(key)
    if rest:
        return values | {key: _without_path(inner, tuple(rest))} if isinstance(inner, dict) else values
    return {one: value for one, value in values.items() if one != key}
