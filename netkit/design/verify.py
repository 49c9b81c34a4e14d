"""Reasons to refuse a design: ceilings, duplicates, headroom, adaptive routing, valleys."""

import fnmatch
from collections.abc import Callable, Iterable, Iterator, Mapping

from netkit.design import cable_entries, clusters, entries, lossless, nic_entries
from netkit.design.entries import EntryPlaces
from netkit.design.external import valleys
from netkit.design.fabric import Fabric, Host, PortProfile, Switch
from netkit.design.hardware_lookup import HardwareLookup, cable_of
from netkit.errors import Path, Problem
from netkit.intent.model import Intent
from netkit.platforms import PLATFORMS

EXAMPLES = 3
WRITTEN = frozenset({"tables", "overrides", "units"})
"""Sections of the intent that give single devices values; others give a rule."""
ROCE_PACKET_BYTES = 4096  # the largest RDMA MTU; headers come on top
_REMEDIES = {
    "name": "put enough fields such as {number:02} into the pattern, or give the device another name",
    "loopback": "give each switch its own",
    "management address": "give each switch its own",
    "AS number": "give each leaf, each pod's spines and the core their own",
    "leaf prefix": "give each leaf its own",
    "MAC address": "give each port its own",
}


def ceilings(intent: Intent) -> Iterator[Problem]:
    """Yield every slot beyond its ceiling, and every unit that is described twice."""
    limit = intent.ceilings
    seen: dict[tuple[int, int], int] = {}
    for index, entry in enumerate(intent.units):
        path: Path = ("units", index)
        yield from _beyond(entry.pod, limit.pods, "pods", (*path, "pod"))
        yield from _beyond(entry.unit, limit.units, "units", (*path, "unit"))
        yield from _beyond(entry.hosts, limit.hosts_per_unit, "hosts_per_unit", (*path, "hosts"))
        unknown = sorted(set(entry.rails or ()) - set(range(intent.rails)))
        if unknown:
            yield Problem(
                f"there is no rail {unknown[0]}", f"use 0 to {intent.rails - 1}, or raise rails", (*path, "rails")
            )
        yield from _host_names(entry.host_names, entry.hosts, len(entry.pod) * len(entry.unit), (*path, "host_names"))
        for place in ((pod, unit) for pod in entry.pod for unit in entry.unit):
            if place in seen:
                name = f"unit {place[1]} of pod {place[0]}" if limit.pods > 1 else f"unit {place[1]}"
                yield Problem(f"{name} is described in units[{seen[place]}] too", "describe it once", (*path, "unit"))
            seen.setdefault(place, index)
    for role, ceiling in (("spine", "spines"), ("core", "cores")):
        tier = getattr(intent.switches, role)
        if tier:
            yield from _beyond(tier.slots, getattr(limit, ceiling), ceiling, ("switches", role, "slots"))
    units = sum(len(entry.pod) * len(entry.unit) for entry in intent.units)
    if intent.topology == "rail-only" and units > 1:
        message = f"a rail-only fabric connects the hosts of a rail with one leaf, but there are {units} units"
        yield Problem(message, "use one unit, or set topology: two-tier and add spines", ("units",))


def _beyond(slots: tuple[int, ...], limit: int, ceiling: str, path: Path) -> Iterator[Problem]:
    if slots and limit and (slots[-1] > limit or slots[0] < 1):
        wrong = slots[-1] if slots[-1] > limit else slots[0]
        remedy = (
            f"raise ceilings.{ceiling} (which may renumber) or use a lower number" if wrong > limit else "count from 1"
        )
        yield Problem(f"{wrong} is outside 1 to {limit}, the ceiling", remedy, path)


def _host_names(names: Iterable[int], slots: tuple[int, ...], units: int, path: Path) -> Iterator[Problem]:
    for slot in names:
        if slot not in slots:
            yield Problem(
                f"slot {slot} has no host", "name a slot of this unit's hosts, or remove the line", (*path, slot)
            )
        elif units > 1:
            message = f"the name for slot {slot} would be given to a host in each of {units} units"
            yield Problem(message, "give the unit its own entry", (*path, slot))


def fabric(designed: Fabric, hardware: HardwareLookup, renamed: Mapping[str, str]) -> Iterator[Problem]:
    """Yield the problems that only show on the whole fabric."""
    yield from _duplicates(designed, hardware, renamed)
    yield from _names_in_clusters(designed, hardware.intent)
    yield from _host_name(designed, hardware.intent)
    yield from _headroom(designed, hardware.intent)
    if hardware.intent.lossless.headroom:
        yield from _given_headroom(designed)
    if hardware.intent.lossless.ecn:
        yield from _ecn(designed, hardware.intent)
    yield from _adaptive_routing(designed, hardware.intent)
    yield from _watchdog(designed)
    yield from _vlans(designed, hardware.intent)
    found = list(valleys(designed))
    if found:
        routing = hardware.intent.routing
        given = EntryPlaces.of(designed, hardware.intent).asn_path() or ("overrides",)
        path = ("routing", "leaf_export") if routing.leaf_export == "all" else given
        more = f" (and {len(found) - 1} more switches)" if len(found) > 1 else ""
        yield Problem(
            f"the routing admits a valley path for the lossless class: {found[0]}{more}",
            "keep leaf_export: local, spine_asn: shared and allowas_in: false,"
            " or pauses can block each other in a cycle",
            ("routing", "allowas_in") if routing.allowas_in else path,
        )


def _duplicates(designed: Fabric, hardware: HardwareLookup, renamed: Mapping[str, str]) -> Iterator[Problem]:
    intent = hardware.intent
    devices: tuple[Switch | Host, ...] = (*designed.switches, *designed.hosts)
    rows = EntryPlaces.of(designed, intent)
    by_name = _names_path(designed, intent)
    found = list(_twice("name", ((device.name, device.name) for device in devices), lambda name, _: by_name(name)))
    yield from found
    if found:
        return  # the numbers of a device are found by its name
    yield from entries.problems(designed, intent)
    yield from cable_entries.problems(designed, hardware, renamed)
    yield from nic_entries.problems(designed, intent, renamed)
    by_loopback = _owners(intent, rows, "loopback", ("pools", "loopbacks"))
    yield from _twice("loopback", ((switch.loopback, switch.name) for switch in designed.switches), by_loopback)
    of_ipv6 = [(switch.loopback_v6, switch.name) for switch in designed.switches if switch.loopback_v6]
    yield from _twice("loopback", of_ipv6, _owners(intent, rows, "loopback_v6", ("pools", "loopbacks_v6")))
    managed = [(switch.management.address, switch.name) for switch in designed.switches if switch.management]
    managed += [(host.management, host.name) for host in designed.hosts if host.management]
    gateways = {(switch.management.gateway, "the gateway") for switch in designed.switches if switch.management}
    by_management = _owners(intent, rows, "management", ("management", "gateway"))
    yield from _twice("management address", (*managed, *sorted(gateways)), by_management)
    managed_v6 = [(switch.management.address_v6, switch.name) for switch in designed.switches if switch.management]
    gateways_v6 = {(switch.management.gateway_v6, "the gateway") for switch in designed.switches if switch.management}
    taken = [(address, name) for address, name in (*managed_v6, *sorted(gateways_v6)) if address]
    by_management = _owners(intent, rows, "management_v6", ("management", "gateway_v6"))
    yield from _twice("management address", taken, by_management)
    # Above the leaves, the spines of a pod may share an AS number, and so may the cores.
    leaves = [(str(leaf.asn), leaf.name) for leaf in designed.tier("leaf")]
    spines = {(str(spine.asn), f"the spines of pod {spine.pod}") for spine in designed.tier("spine")}
    cores = {(str(core.asn), "the core") for core in designed.tier("core")}
    numbers = (*leaves, *sorted(spines | cores))
    yield from _twice("AS number", numbers, _owners(intent, rows, "asn", ("pools", "asn_base")))
    prefixes = ((leaf.leaf_prefix, leaf.name) for leaf in designed.tier("leaf"))
    yield from _twice("leaf prefix", prefixes, _owners(intent, rows, "prefix", ("pools", "hosts")))
    of_ipv6 = [(leaf.leaf_prefix_v6, leaf.name) for leaf in designed.tier("leaf") if leaf.leaf_prefix_v6]
    yield from _twice("leaf prefix", of_ipv6, _owners(intent, rows, "prefix_v6", ("pools", "hosts_v6")))
    macs = [(nic.mac, f"{host.name} {nic.interface}") for host in designed.hosts for nic in host.nics if nic.mac]
    macs += [(switch.system_mac, switch.name) for switch in designed.switches if switch.system_mac]
    yield from _twice("MAC address", macs, lambda holder, _: _mac_path(intent, holder))


def _names_in_clusters(designed: Fabric, intent: Intent) -> Iterator[Problem]:
    """Yield names that clusters need for something else."""
    place = _names_path(designed, intent)
    for kind in clusters.KINDS:
        if getattr(intent.clusters, kind) and kind in designed.names:
            message = f"a device is called {kind}, as the folder of the cluster's rendered files"
            yield Problem(message, "rename it", place(kind))
    if intent.clusters.kubernetes is None:
        return
    known: dict[str, str] = {}
    for host in clusters.members(designed.hosts, intent.clusters.kubernetes):
        other = known.setdefault(host.name.lower(), host.name)
        if other != host.name:
            paths = [place(name) for name in (host.name, other)]
            path = next((path for path in paths if path[0] in {"tables", "units"}), paths[0])
            message = f"{other} and {host.name} are one node in Kubernetes, whose names are lower-case"
            yield Problem(message, "rename one of them", path)


def _host_name(designed: Fabric, intent: Intent) -> Iterator[Problem]:
    """Yield the first name that its switch does not accept as host name."""
    for switch in designed.switches:
        if message := PLATFORMS[switch.platform].wrong_name(switch.name):
            yield Problem(message, "use hyphens or dots", _names_path(designed, intent)(switch.name))
            return


def _names_path(designed: Fabric, intent: Intent) -> Callable[[str], Path]:
    roles = {host.name: "host" for host in designed.hosts}
    roles.update((switch.name, switch.role) for switch in designed.switches)
    given: dict[str, Path] = {
        name: ("units", index, "host_names", slot)
        for index, unit in enumerate(intent.units)
        for slot, name in unit.host_names.items()
    }
    rows = EntryPlaces.of(designed, intent)
    return lambda name: rows.names.get(name) or given.get(name, ("names", roles[name]))


def _owners(intent: Intent, rows: EntryPlaces, key: str, default: Path) -> Callable[[str, str], Path]:
    """A lookup of where a device's value is written: in a table, in its override, or in the pool."""
    written = {name for name, override in intent.overrides.items() if key in override.model_fields_set}

    def path(holder: str, value: str) -> Path:
        if row := rows.shared_path(value) if holder.startswith("the ") else rows.path(holder, key):
            return row
        own = next((name for name in written if name == holder or fnmatch.fnmatchcase(holder, name)), None)
        if own is None and holder.startswith("the "):  # a shared number: any override of the kind may have caused it
            own = min(written, default=None)
        return ("overrides", own, key) if own else default

    return path


def _mac_path(intent: Intent, holder: str) -> Path:
    name, _, interface = holder.partition(" ")
    for index, entry in enumerate(intent.tables.nics):
        if entry.mac and (entry.host, f"rail{entry.rail}") == (name, interface):
            return ("tables", "nics", index, "mac")
    own = next((glob for glob in intent.overrides if glob == name or fnmatch.fnmatchcase(name, glob)), name)
    return ("overrides", own, *(("macs", int(interface.removeprefix("rail"))) if interface else ("system_mac",)))


def _twice(what: str, pairs: Iterable[tuple[str, str]], place: Callable[[str, str], Path]) -> Iterator[Problem]:
    holders: dict[str, list[str]] = {}
    for value, holder in pairs:
        holders.setdefault(value, []).append(holder)
    repeated = [value for value, found in holders.items() if len(found) > 1]
    for value in repeated[:EXAMPLES]:
        found = holders[value]
        who = f"{len(found)} devices" if what == "name" else " and ".join(found[:2])
        more = (
            f" (and {len(repeated) - EXAMPLES} more)"
            if len(repeated) > EXAMPLES and value == repeated[EXAMPLES - 1]
            else ""
        )
        paths = [place(holder, value) for holder in found]
        path = next((path for path in reversed(paths) if path[0] in WRITTEN), paths[0])
        by_rule = [holder for holder, own in zip(found, paths, strict=True) if own[0] not in WRITTEN]
        remedy = _REMEDIES[what]
        if path[0] in WRITTEN and by_rule and what != "name" and not by_rule[0].startswith("the "):
            remedy = f"{by_rule[0]} has it by rule: give it another, in tables.devices or overrides"
        yield Problem(f"{what} {value} is used by {who}{more}", remedy, path)


def _headroom(designed: Fabric, intent: Intent) -> Iterator[Problem]:
    full: set[tuple[str, str]] = set()
    missing: set[tuple[str, str, str]] = set()
    rows = EntryPlaces.of(designed, intent)
    for switch in designed.switches:
        for port in switch.ports:
            kind = {"host": "host", "up": "spine" if switch.role == "leaf" else "core"}.get(port.role, "spine")
            if (
                port.profile.headroom is None
                and (switch.role, switch.model.name, kind) not in missing
                and designed.purpose == "production"
            ):
                missing.add((switch.role, switch.model.name, kind))
                yield Problem(
                    f"priority {designed.lossless.roce.priority} is lossless, but no source states the headroom of"
                    f" {switch.model.name} at {port.speed_gbps}G and {port.profile.cable.length_m:g} m",
                    f"give lossless.headroom for {port.speed_gbps}, or choose a model with a table",
                    _length_path(intent, kind, port.profile.cable.length_m),
                )
        total = headroom_total(switch)
        limit = headroom_limit(switch, designed.lossless.pool_percent)
        if limit is not None and total > limit and (switch.role, switch.model.name) not in full:
            full.add((switch.role, switch.model.name))
            yield Problem(
                f"{switch.name} needs {total:,} bytes of headroom,"
                f" {switch.model.name} has {limit:,} for the lossless class",
                "shorten the cables, use fewer ports, or lower lossless.headroom",
                rows.path(switch.name, "model") or ("switches", switch.role, "model"),
            )


def profiles(designed: Fabric) -> Iterator[tuple[Switch, PortProfile]]:
    """Yield every distinct port profile with the first switch that has it."""
    seen: set[int] = set()
    for switch in designed.switches:
        for port in switch.ports:
            if id(port.profile) not in seen:
                seen.add(id(port.profile))
                yield switch, port.profile


def _given_headroom(designed: Fabric) -> Iterator[Problem]:
    """Yield the headrooms of the intent that are smaller than what the cable alone delivers after a pause."""
    worst: dict[int, tuple[int, Switch, PortProfile]] = {}
    for switch, profile in profiles(designed):
        room, speed = profile.headroom, profile.speed_gbps
        least = lossless.least_bytes(switch.model, speed, profile.cable.length_m, profile.mtu_bytes)
        if room and room.origin == "intent" and room.xoff_bytes < least > worst.get(speed, (0,))[0]:
            worst[speed] = least, switch, profile
    for speed, (least, switch, profile) in sorted(worst.items()):
        over = f"over {profile.cable.length_m:g} m at {speed}G"
        yield Problem(
            f"{least:,} bytes still arrive at {switch.name} after a pause, {over}",
            "give more than that, plus the reaction of both ends, or remove the line to have netkit compute it",
            ("lossless", "headroom", speed, "xoff_bytes"),
        )


def _ecn(designed: Fabric, intent: Intent) -> Iterator[Problem]:
    """Yield ECN thresholds of the intent that always mark, or never."""
    reported: set[int] = set()
    for switch, profile in profiles(designed):
        speed, ecn = profile.speed_gbps, profile.ecn
        if speed not in intent.lossless.ecn or speed in reported:
            continue
        limit = headroom_limit(switch, designed.lossless.pool_percent)
        if ecn.max_bytes < ROCE_PACKET_BYTES:
            reported.add(speed)
            message = (
                f"{ecn.max_bytes} bytes are less than one RoCE packet of {ROCE_PACKET_BYTES}: every packet is marked"
            )
            path: Path = ("lossless", "ecn", speed, "max_bytes")
            yield Problem(message, "microseconds × Gb/s × 125 are bytes: 30 µs at 400G are 1500000", path)
        elif limit is not None and ecn.min_bytes > limit:
            reported.add(speed)
            message = f"{ecn.min_bytes:,} bytes are more than {switch.model.name} has for the lossless class, {limit:,}"
            path = ("lossless", "ecn", speed, "min_bytes")
            yield Problem(message, "no queue grows that long, so no packet is ever marked: lower it", path)


def _vlans(designed: Fabric, intent: Intent) -> Iterator[Problem]:
    """Yield the first host VLAN in a range that its switch reserves."""
    rows = EntryPlaces.of(designed, intent)
    of_rails: dict[int, Path] = {
        entry.rail: ("tables", "rails", index, "vlan") for index, entry in enumerate(intent.tables.rails) if entry.vlan
    }
    for switch in designed.switches:
        reserved = PLATFORMS[switch.platform].reserved_vlans
        if switch.vlan and switch.vlan.number in reserved:
            given = rows.path(switch.name, "vlan") or of_rails.get(switch.rail)
            yield Problem(
                f"{switch.name} would have VLAN {switch.vlan.number}:"
                f" {PLATFORMS[switch.platform].title} reserves {reserved[0]} to {reserved[-1]}",
                "choose one outside this range"
                if given
                else f"{intent.rails} rails take the numbers from first_vlan on: choose one outside this range",
                given or ("pools", "first_vlan"),
            )
            return


def _length_path(intent: Intent, kind: str, length_m: float) -> Path:
    """Where a cable length is written."""
    for index, unit in enumerate(intent.units):
        if getattr(unit, f"{kind}_cable_m", None) == length_m:
            return ("units", index, f"{kind}_cable_m")
    for index, entry in enumerate(intent.tables.cables):
        if entry.length_m == length_m != cable_of(intent, kind).length_m:
            return ("tables", "cables", index, "length_m")
    return ("cables", kind, "length_m")


def headroom_total(switch: Switch) -> int:
    """The headroom that all ports of a switch need together."""
    rooms = (port.profile.headroom for port in switch.ports)
    return sum(max(room.size_bytes, room.xoff_bytes) for room in rooms if room)


def headroom_limit(switch: Switch, pool_percent: int) -> int | None:
    """The packet buffer the lossless class may use; None if no source states it."""
    return switch.model.buffer_bytes * pool_percent // 100 if switch.model.buffer_bytes else None


def _adaptive_routing(designed: Fabric, intent: Intent) -> Iterator[Problem]:
    wanting = [switch for switch in designed.switches if switch.adaptive_routing]
    without = [switch for switch in designed.switches if not switch.adaptive_routing]
    if wanting and without:
        yield Problem(
            f"adaptive routing is on for {wanting[0].name} but off for {without[0].name}",
            "enable it everywhere or nowhere: with only a part, a fabric drops to a few Mb/s",
            _owners(intent, EntryPlaces.of(designed, intent), "adaptive_routing", ("adaptive_routing",))(
                (without if len(without) <= len(wanting) else wanting)[0].name, ""
            ),
        )
        return
    for role in ("leaf", "spine", "core"):
        models = {(one.model.name, one.platform): one for one in designed.tier(role)} if wanting else {}
        for switch in models.values():
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
        yield Problem(
            f"{platform.title} cannot switch adaptive routing on: {note}",
            "set adaptive_routing: false",
            ("adaptive_routing",),
        )
    if not switch.model.adaptive_routing:
        remedy = "set adaptive_routing: false, or choose another model"
        yield Problem(f"{switch.model.name} has no adaptive routing", remedy, ("adaptive_routing",))
        return
    for speed in sorted({port.speed_gbps for port in switch.fabric_ports}):
        if speeds and speed not in speeds:
            shown = ", ".join(f"{known}G" for known in speeds)
            yield Problem(
                f"{switch.model.name} has adaptive routing at {shown} only, {switch.role} links run at {speed}G",
                "choose such a breakout for the links between switches, or set adaptive_routing: false",
                ("adaptive_routing",),
            )
