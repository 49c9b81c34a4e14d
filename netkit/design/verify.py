"""What makes a design refuse: ceilings, pools, duplicates, headroom, adaptive routing, valleys."""

from collections import Counter
from collections.abc import Iterable, Iterator

from netkit.design.fabric import Fabric, Switch
from netkit.design.numbering import Numbering
from netkit.design.premises import Premises, version_problems
from netkit.design.valley import valleys
from netkit.errors import Path, Problem
from netkit.intent.model import Intent
from netkit.platforms import PLATFORMS

EXAMPLES = 3


def ceilings(intent: Intent) -> Iterator[Problem]:
    """Yield every slot beyond its ceiling, and every unit that is described twice."""
    limit = intent.ceilings
    seen: dict[tuple[int, int], int] = {}
    for index, entry in enumerate(intent.units):
        path: Path = ("units", index)
        yield from _beyond(entry.pod, limit.pods, "pods", (*path, "pod"))
        yield from _beyond(entry.unit, limit.units, "units", (*path, "unit"))
        yield from _beyond(entry.hosts, limit.hosts_per_unit, "hosts_per_unit", (*path, "hosts"))
        strange = sorted(set(entry.rails or ()) - set(range(intent.rails)))
        if strange:
            yield Problem(f"rail {strange[0]} does not exist", f"rails are 0 to {intent.rails - 1}", (*path, "rails"))
        yield from _host_names(entry.host_names, entry.hosts, len(entry.pod) * len(entry.unit), (*path, "host_names"))
        for place in ((pod, unit) for pod in entry.pod for unit in entry.unit):
            if place in seen:
                name = f"unit {place[1]} of pod {place[0]}" if limit.pods > 1 else f"unit {place[1]}"
                yield Problem(f"{name} stands in units[{seen[place]}] too", "describe it once", (*path, "unit"))
            seen.setdefault(place, index)
    for role, ceiling in (("spine", "spines"), ("core", "cores")):
        tier = getattr(intent.switches, role)
        if tier:
            yield from _beyond(tier.slots, getattr(limit, ceiling), ceiling, ("switches", role, "slots"))
    yield from _rail_only(intent)


def _beyond(slots: tuple[int, ...], limit: int, ceiling: str, path: Path) -> Iterator[Problem]:
    if slots and (slots[-1] > limit or slots[0] < 1):
        wrong = slots[-1] if slots[-1] > limit else slots[0]
        yield Problem(f"{wrong} is outside 1 to {limit} (ceilings.{ceiling})", "raise the ceiling or lower the slot", path)


def _host_names(names: Iterable[int], slots: tuple[int, ...], units: int, path: Path) -> Iterator[Problem]:
    for slot in names:
        if slot not in slots:
            yield Problem(f"slot {slot} has no host", "name hosts that exist", (*path, slot))
        elif units > 1:
            yield Problem("a name for one slot would name a host in several units", "give the unit its own entry", (*path, slot))


def _rail_only(intent: Intent) -> Iterator[Problem]:
    units = sum(len(entry.pod) * len(entry.unit) for entry in intent.units)
    if intent.topology == "rail-only" and units > 1:
        message = f"a rail-only fabric joins the hosts of a rail by one leaf, but there are {units} units"
        yield Problem(message, "use one unit, or add spines", ("units",))


def pools(intent: Intent, numbering: Numbering) -> Iterator[Problem]:
    """Yield every pool that is too small or overlaps another."""
    named = {"pools.loopbacks": intent.pools.loopbacks, "pools.hosts": intent.pools.hosts}
    if intent.management:
        named["management.pool"] = intent.management.pool
        if intent.management.gateway not in intent.management.pool:
            yield Problem(
                f"the gateway {intent.management.gateway} is outside {intent.management.pool}", "", ("management", "gateway")
            )
    names = list(named)
    for index, name in enumerate(names):
        for other in names[index + 1 :]:
            if named[name].overlaps(named[other]):
                message = f"{named[other]} overlaps {name} {named[name]}"
                yield Problem(message, "choose pools that do not overlap", tuple(other.split(".")))
    for needs, path, name in (
        (numbering.pool_needs(), ("pools", "loopbacks"), "loopbacks"),
        (numbering.management_needs(), ("management", "pool"), "management"),
    ):
        for role, (needed, there) in needs.items():
            if needed > there:
                share = {"leaf": "lower half", "spine": "third quarter", "core": "last quarter"}[role]
                message = f"the {share} of the {name} pool has {there} addresses for {role} switches, the ceilings need {needed}"
                yield Problem(message, "use a larger pool or lower the ceilings", path)
    units = intent.ceilings.pods * intent.ceilings.units
    if numbering.leaf_length < numbering.rail_length or units > numbering.units_per_rail or numbering.rail_length > 30:
        room = numbering.units_per_rail if numbering.leaf_length >= numbering.rail_length else 0
        message = f"{intent.pools.hosts} holds {room} leaf prefixes of /{numbering.leaf_length} on each rail, the ceilings need {units}"
        yield Problem(message, "use a larger pool or lower the ceilings", ("pools", "hosts"))


def fabric(designed: Fabric, premises: Premises) -> Iterator[Problem]:
    """Yield everything that only shows on the whole fabric."""
    yield from _duplicates(designed)
    yield from _overrides(designed, premises.intent)
    yield from _headroom(designed)
    yield from _adaptive_routing(designed)
    yield from _watchdog(designed)
    found = list(valleys(designed))
    if found:
        more = f" (and {len(found) - 1} more switches)" if len(found) > 1 else ""
        yield Problem(
            f"the routing admits a valley path for the lossless class: {found[0]}{more}",
            "pauses could wait for each other in a circle: keep leaf_export: local, spine_asn: shared and allowas_in: false",
            ("routing",),
        )


def _duplicates(designed: Fabric) -> Iterator[Problem]:
    devices = (*designed.switches, *designed.hosts)
    yield from _twice("name", ((device.name, device.name) for device in devices), ("names",))
    yield from _twice("loopback", ((switch.loopback, switch.name) for switch in designed.switches), ("pools", "loopbacks"))
    managed = [(switch.management.address, switch.name) for switch in designed.switches if switch.management]
    gateways = {(switch.management.gateway, "the gateway") for switch in designed.switches if switch.management}
    yield from _twice("management address", (*managed, *gateways), ("management",))
    leaves = [(str(leaf.asn), leaf.name) for leaf in designed.tier("leaf")]
    others = {(str(switch.asn), switch.role) for switch in designed.switches if switch.role != "leaf"}
    yield from _twice("AS number", (*leaves, *sorted(others)), ("pools", "asn_base"))
    macs = [(nic.mac, f"{host.name} {nic.interface}") for host in designed.hosts for nic in host.nics if nic.mac]
    macs += [(switch.system_mac, switch.name) for switch in designed.switches if switch.system_mac]
    yield from _twice("MAC address", macs, ("overrides",))


def _twice(what: str, pairs: Iterable[tuple[str, str]], path: Path) -> Iterator[Problem]:
    pairs = list(pairs)
    counts = Counter(value for value, _ in pairs)
    repeated = [value for value, count in counts.items() if count > 1]
    for value in repeated[:EXAMPLES]:
        holders = [holder for found, holder in pairs if found == value]
        who = " and ".join(holders[:2]) if what != "name" else f"{len(holders)} devices"
        more = f" (and {len(repeated) - EXAMPLES} more)" if len(repeated) > EXAMPLES and value == repeated[EXAMPLES - 1] else ""
        yield Problem(f"{what} {value} is used by {who}{more}", "every one must be unique", path)


def _overrides(designed: Fabric, intent: Intent) -> Iterator[Problem]:
    for name, override in intent.overrides.items():
        path: Path = ("overrides", name)
        device = designed.device(name)
        keys = override.model_fields_set
        for_hosts, for_switches = keys & {"macs", "leaves"}, keys - {"macs", "leaves"}
        if isinstance(device, Switch):
            for key in sorted(for_hosts):
                yield Problem(f"{key} belongs to hosts, {name} is a switch", "remove it", (*path, key))
            neighbours = {port.peer for port in device.ports}
            for other in sorted(set(override.drain_neighbors) - neighbours):
                yield Problem(f"{name} has no neighbour {other}", "name a neighbour", (*path, "drain_neighbors"))
            if override.version:
                yield from version_problems(device.platform, override.version, device.routing_mode, path)
        elif device is not None:
            for key in sorted(for_switches):
                yield Problem(f"{key} belongs to switches, {name} is a host", "remove it", (*path, key))
            for nic in device.nics:
                wired = override.leaves.get(nic.rail, nic.leaf)
                if wired != nic.leaf:
                    yield Problem(
                        f"rail {nic.rail} of unit {device.unit} would land on two leaves: {name} on {wired}, its peers on {nic.leaf}",
                        f"wire it to {nic.leaf} {nic.leaf_port}",
                        (*path, "leaves", nic.rail),
                    )


def _headroom(designed: Fabric) -> Iterator[Problem]:
    seen: set[tuple[str, str]] = set()
    missing: set[tuple[str, str]] = set()
    for switch in designed.switches:
        for port in switch.ports:
            kind = {"host": "host", "up": "spine" if switch.role == "leaf" else "core"}.get(port.role, "spine")
            if port.profile.headroom is None and (switch.role, kind) not in missing and designed.purpose == "production":
                missing.add((switch.role, kind))
                yield Problem(
                    f"priority {designed.lossless.roce.priority} is lossless, but nothing tells the headroom of {switch.model.name}"
                    f" at {port.speed_gbps}G and {port.profile.cable.length_m:g} m",
                    f"give lossless.headroom for {port.speed_gbps}",
                    ("cables", kind, "length_m"),
                )
        total = headroom_total(switch)
        limit = headroom_limit(switch, designed.lossless.pool_percent)
        if limit is not None and total > limit and (switch.role, switch.model.name) not in seen:
            seen.add((switch.role, switch.model.name))
            yield Problem(
                f"{switch.name} needs {total:,} bytes of headroom, {switch.model.name} has {limit:,} for the lossless class",
                "shorten the cables, use fewer ports, or lower lossless.headroom",
                ("switches", switch.role, "model"),
            )


def headroom_total(switch: Switch) -> int:
    """Return the headroom all ports of a switch need together."""
    rooms = (port.profile.headroom for port in switch.ports)
    return sum(max(room.size_bytes, room.xoff_bytes) for room in rooms if room)


def headroom_limit(switch: Switch, pool_percent: int) -> int | None:
    """Return the packet buffer the lossless class may use, or None when no source tells it."""
    return switch.model.buffer_bytes * pool_percent // 100 if switch.model.buffer_bytes else None


def _adaptive_routing(designed: Fabric) -> Iterator[Problem]:
    wanting = [switch for switch in designed.switches if switch.adaptive_routing]
    without = [switch for switch in designed.switches if not switch.adaptive_routing]
    if wanting and without:
        yield Problem(
            f"adaptive routing is on for {wanting[0].name} but off for {without[0].name}",
            "switch it on everywhere or nowhere: half of it drops a fabric to a few Mb/s",
            ("overrides", without[0].name) if len(without) <= len(wanting) else ("overrides", wanting[0].name),
        )
        return
    for role in ("leaf", "spine", "core"):
        for switch in designed.tier(role)[:1] if wanting else ():
            yield from _adaptive_model(switch, purpose=designed.purpose)


def _watchdog(designed: Fabric) -> Iterator[Problem]:
    watchdog = designed.lossless.watchdog
    for name in sorted({switch.platform for switch in designed.switches}):
        platform = PLATFORMS[name]
        for key, value, longest in (
            ("detection_polls", watchdog.detection_ms, platform.longest_detection_ms),
            ("restoration_polls", watchdog.restoration_ms, platform.longest_restoration_ms),
        ):
            if longest is not None and value > longest:
                message = f"{key} × poll_ms is {value} ms, {platform.title} takes at most {longest}"
                yield Problem(message, "use fewer or shorter polls", ("lossless", "watchdog", key))


def _adaptive_model(switch: Switch, *, purpose: str) -> Iterator[Problem]:
    speeds, platform = switch.model.adaptive_routing_speeds, PLATFORMS[switch.platform]
    if purpose == "production" and platform.lacks("adaptive_routing"):
        note = platform.capabilities["adaptive_routing"].note
        yield Problem(f"{platform.title} cannot switch adaptive routing on: {note}", "set adaptive_routing: false", ("adaptive_routing",))
    if not switch.model.adaptive_routing:
        yield Problem(f"{switch.model.name} has no adaptive routing", "switch it off or choose another model", ("adaptive_routing",))
        return
    for speed in sorted({port.speed_gbps for port in switch.fabric_ports}):
        if speeds and speed not in speeds:
            shown = ", ".join(f"{known}G" for known in speeds)
            yield Problem(
                f"{switch.model.name} has adaptive routing at {shown} only, {switch.role} links run at {speed}G", "", ("adaptive_routing",)
            )
