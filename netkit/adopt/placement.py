"""Cables → topology: the role of each switch, its unit, rail, plane and slot, and the slot of each host."""

import re
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Literal

from netkit.adopt.links import End, FoundLinks
from netkit.adopt.names import NumberColumns, natural, separates
from netkit.adopt.survey import Survey, SurveyedHost, rails_of
from netkit.errors import AdoptError, Problem
from netkit.platforms.existing import most

Topology = Literal["two-tier", "three-tier", "rail-only"]
MOST_RAILS = 16
RAIL = "rail"
DIGITS = re.compile(r"\d+")


@dataclass(frozen=True, slots=True)
class Place:
    """Where a device is in the design. Numbers that its role does not have are 0."""

    role: str
    pod: int = 1
    unit: int = 0
    rail: int = 0
    plane: int = 0
    slot: int = 0


@dataclass(frozen=True)
class Placement:
    """The place of every device that has one."""

    topology: Topology
    rails: int
    planes: int
    places: Mapping[str, Place]
    leaf_of: Mapping[End, str] = field(default_factory=dict)
    """(host, NIC) → its leaf, also where the leaf was not read and no cable is known."""
    left_out: Mapping[str, str] = field(default_factory=dict)
    """Device → why it has no place."""

    def of_role(self, role: str) -> tuple[str, ...]:
        """Return the names of a role, in the order of their places."""
        return self._by_role.get(role, ())

    @cached_property
    def _by_role(self) -> Mapping[str, tuple[str, ...]]:
        def order(name: str) -> tuple[object, ...]:
            place = self.places[name]
            return place.pod, place.unit, place.plane, place.slot, place.rail, natural(name)

        found: dict[str, list[str]] = {}
        for name in sorted(self.places, key=order):
            found.setdefault(self.places[name].role, []).append(name)
        return {role: tuple(names) for role, names in found.items()}

    def numbers(self, name: str) -> dict[str, int]:
        """Return the fields a name pattern of the role may have."""
        place = self.places[name]
        keys = {
            "leaf": ("unit", "rail", "pod"),
            "spine": ("slot", "pod") if self.topology == "three-tier" else ("slot", "plane")[: self.planes],
            "core": ("slot", "plane"),
            "host": ("slot", "unit", "pod"),
        }[place.role]
        found = {key: getattr(place, key) for key in keys}
        if place.role == "spine" and self.topology == "two-tier":
            slots = max(one.slot for one in self.places.values() if one.role == "spine")
            found["number"] = place.plane * slots + place.slot
        return found


def place(survey: Survey, links: FoundLinks, *, by_names: bool) -> Placement:
    """Find the place of each device. With `by_names`, units and slots have the numbers that are in the names."""
    return _Placing(survey, links, by_names=by_names).done()


class _Placing:
    def __init__(self, survey: Survey, links: FoundLinks, *, by_names: bool) -> None:
        self.survey, self.links, self.by_names = survey, links, by_names
        self.neighbors: dict[str, set[str]] = defaultdict(set)
        for link in links.switches:
            one, other = link.devices
            self.neighbors[one].add(other)
            self.neighbors[other].add(one)
        self.leaf_of: dict[str, dict[str, str]] = defaultdict(dict)
        """Host → interface → leaf."""
        for link in links.hosts:
            self.leaf_of[link.near[0]][link.near[1]] = link.far[0]
        self.linked = {link.near[1] for link in links.hosts}
        self.roles = self._roles()
        self.places: dict[str, Place] = {}

    def done(self) -> Placement:
        leaves = self._with("leaf")
        if not leaves:
            message = "no switch has a port towards a host, so nothing shows which are the leaves"
            raise AdoptError(Problem(message, "add the files of leaves, or of their hosts"))
        unread = [leaf for leaf in leaves if leaf not in self.survey.switches]
        leaves = [leaf for leaf in leaves if leaf in self.survey.switches]
        rails = self._rails(leaves)
        units = self._units(leaves, rails)
        self._add_unread(unread, units, rails)
        topology: Topology = "three-tier" if self._with("core") else "two-tier" if self._with("spine") else "rail-only"
        planes = 1
        pods: dict[str, int] = {}
        if topology == "two-tier":
            planes = self._place_spines(rails)
        elif topology == "three-tier":
            pods, planes = self._place_pods()
        self._place_leaves(units, rails, pods)
        self._place_hosts(units)
        everything = (*self.survey.switches, *self.survey.hosts)
        left_out = {
            name: "no leaf below it was read" if self.neighbors[name] else "no cable of it was found"
            for name in everything
            if name not in self.places
        }
        left_out |= dict.fromkeys(self.survey.beside, "its network beside the rails has no place in an intent")
        left_out |= dict.fromkeys(
            (leaf for leaf in unread if leaf not in self.places), "neither it nor a host below it was read"
        )
        left_out |= dict(self.survey.unread)
        rail_count = max(rails.values()) + 1
        return Placement(topology, rail_count, planes, self.places, dict(self._leaves_of_nics(units, rails)), left_out)

    def _leaves_of_nics(self, units: list[tuple[str, ...]], rails: Mapping[str, int]) -> Iterator[tuple[End, str]]:
        unit_of = {leaf: group for group in units for leaf in group}
        for host, linked in self.leaf_of.items():
            by_rail = {rails[leaf]: leaf for leaf in unit_of[next(iter(linked.values()))]}
            for interface, rail in self._rail_numbers(host, linked).items():
                if leaf := linked.get(interface) or by_rail.get(rail):
                    yield (host, interface), leaf

    # --- roles ------------------------------------------------------------------------------------------------------

    def _roles(self) -> dict[str, str]:
        """Count the steps from the switches with host ports: leaves, spines, core switches."""
        found = {name: "leaf" for name, switch in self.survey.switches.items() if switch.host_ports}
        found |= {link.far[0]: "leaf" for link in self.links.hosts}
        layer = set(found)
        for role in ("spine", "core"):
            layer = {near for name in layer for near in self.neighbors[name] if near not in found}
            found |= dict.fromkeys(layer, role)
        unread = {name for name in layer if name not in self.survey.switches}
        is_leaf_missing = any(
            interface not in self.leaf_of.get(host.name, {})
            for host in self.survey.hosts.values()
            for interface in self._nics(host)
        )
        found |= dict.fromkeys(self._named_like_leaves(unread, found), "leaf")
        if not is_leaf_missing:
            return found
        # Nobody but hosts names the host ports of a leaf, so one that was not read looks like a core switch. But the
        # core switches have one AS number, and each leaf its own.
        numbers = {switch.asn for name, switch in self.survey.switches.items() if name in layer}
        return found | {name: "leaf" for name in unread if told_asn(self.survey, self.links, name) not in numbers}

    def _named_like_leaves(self, unread: Collection[str], roles: Mapping[str, str]) -> Iterator[str]:
        """Yield those with names and policies like leaves at the same spines, each with an AS number of its own."""
        policies = {
            (switch.name, one.interface): (switch.name, one.inbound, one.outbound)
            for switch in self.survey.switches.values()
            for one in switch.sessions
        }
        ends = [(near, far[0]) for link in self.links.switches for near, far in (link.ends, link.ends[::-1])]
        of_leaves = {policies[near] for near, name in ends if roles.get(name) == "leaf" and near in policies}
        names = {DIGITS.sub("", name) for name, role in roles.items() if role == "leaf"}
        numbers = Counter(told_asn(self.survey, self.links, name) for name in unread)
        for name in unread:
            alike = all(policies.get(near) in of_leaves for near, far in ends if far == name)
            asn = told_asn(self.survey, self.links, name)
            if alike and DIGITS.sub("", name) in names and (not asn or numbers[asn] == 1):
                yield name

    def _with(self, role: str) -> list[str]:
        return sorted((name for name, one in self.roles.items() if one == role), key=natural)

    # --- rails and units --------------------------------------------------------------------------------------------

    def _rails(self, leaves: Collection[str]) -> dict[str, int]:
        """Return the rail of each leaf: that of the NICs on it, as most hosts have it."""
        votes: dict[str, Counter[int]] = {leaf: Counter() for leaf in leaves}
        for host, by_interface in self.leaf_of.items():
            numbers = self._rail_numbers(host, by_interface)
            for interface, leaf in by_interface.items():
                votes[leaf][numbers[interface]] += 1
        found = {leaf: min(voted, key=lambda rail: (-voted[rail], rail)) for leaf, voted in votes.items() if voted}
        columns = NumberColumns.of(leaves)
        column = (
            columns.find(lambda values: all(values[leaf] == rail for leaf, rail in found.items())) if columns else None
        )
        for leaf in (leaf for leaf in leaves if leaf not in found):
            # A leaf without hosts: its rail is in its name, if the names of the others contain theirs.
            found[leaf] = columns.values(column)[leaf] if columns and column is not None else 0
        if max(found.values()) >= MOST_RAILS:
            message = f"hosts have NICs on {max(found.values()) + 1} rails, a fabric has at most {MOST_RAILS}"
            raise AdoptError(Problem(message, "adopt the hosts of one interconnect at a time"))
        return found

    def _add_unread(self, unread: list[str], units: list[tuple[str, ...]], rails: dict[str, int]) -> None:
        """Put leaves that only spines name where hosts below these have NICs without a leaf, in the order of names."""
        open_places: list[tuple[int, int]] = []
        for number, group in enumerate(units):
            hosts = [host for host, found in self.leaf_of.items() if not set(group).isdisjoint(found.values())]
            wanted = {
                rail
                for host in hosts
                for interface, rail in self._rail_numbers(host, self.leaf_of[host]).items()
                if interface not in self.leaf_of[host]
            }
            open_places += [(number, rail) for rail in sorted(wanted - {rails[leaf] for leaf in group})]
        for leaf in unread:
            same_spines = (
                (number, rail)
                for number, rail in open_places
                if any(self.neighbors[leaf] & self.neighbors[other] for other in units[number])
            )
            found = next(same_spines, None)
            if found is None:
                continue
            open_places.remove(found)
            number, rail = found
            rails[leaf] = rail
            units[number] = tuple(sorted((*units[number], leaf), key=natural))

    def _nics(self, host: SurveyedHost) -> Iterator[str]:
        """Yield the NICs on rails: not those for management or storage, without routes or a leaf on any host."""
        rails = {rail.interface: rail for rail in host.routes.rails}
        for interface, _ in rails_of(host):
            rail = rails[interface]
            is_routed = bool(rail.tables) or any(route.gateway and route.prefix.prefixlen for route in rail.routes)
            if interface in self.linked or (is_routed and interface != host.existing.management_interface):
                yield interface

    def _rail_numbers(self, host: str, interfaces: Iterable[str]) -> dict[str, int]:
        """Return the rail of each NIC: by its name rail0, rail1 …, else by the place of its PCI address or name."""
        known = self.survey.hosts.get(host)
        every = sorted({*interfaces, *self._nics(known)} if known else interfaces, key=natural)
        own = {one: one.removeprefix(RAIL) for one in every if one.startswith(RAIL)}
        if len(own) == len(every) and all(text.isdecimal() and len(text) < 3 for text in own.values()):
            return {one: int(text) for one, text in own.items()}
        order = {nic.interface: nic.pci for nic in known.existing.nics} if known else {}
        every.sort(key=lambda one: (order.get(one, ""), natural(one)))
        return {one: number for number, one in enumerate(every)}

    def _units(self, leaves: Iterable[str], rails: Mapping[str, int]) -> list[tuple[str, ...]]:
        """Return the leaves of each unit: those that share hosts."""
        groups = _joined(leaves, (list(by_interface.values()) for by_interface in self.leaf_of.values()))
        for group in groups:
            repeated = [rail for rail, count in Counter(rails[leaf] for leaf in group).items() if count > 1]
            if repeated:
                both = [leaf for leaf in group if rails[leaf] == repeated[0]]
                message = f"{' and '.join(both[:3])} are leaves of rail {repeated[0]} for the same hosts"
                raise AdoptError(Problem(message, "each rail of a unit has one leaf: check the NICs of these hosts"))
        return groups

    def _place_leaves(self, units: list[tuple[str, ...]], rails: Mapping[str, int], pods: Mapping[str, int]) -> None:
        by_pod: dict[int, list[tuple[str, ...]]] = defaultdict(list)
        for group in units:
            by_pod[pods.get(group[0], 1)].append(group)
        for pod, groups in by_pod.items():
            for group, number in zip(groups, self._group_numbers(groups), strict=True):
                for leaf in group:
                    self.places[leaf] = Place("leaf", pod, number, rails[leaf])

    def _group_numbers(self, groups: list[tuple[str, ...]]) -> Iterable[int]:
        """Return a number for each group of devices: by one in their names, else in the order of the names."""
        columns = NumberColumns.of(name for group in groups for name in group) if self.by_names else None
        column = columns.find(separates(groups)) if columns else None
        if columns is None or column is None:
            return range(1, len(groups) + 1)
        values = columns.values(column)
        return [values[group[0]] for group in groups]

    # --- hosts ------------------------------------------------------------------------------------------------------

    def _place_hosts(self, units: list[tuple[str, ...]]) -> None:
        ports: dict[str, tuple[tuple[int, str], ...]] = {}
        members: dict[tuple[str, ...], list[str]] = {group: [] for group in units}
        group_of = {leaf: group for group in units for leaf in group}
        first_port = {
            link.near[0]: link.far
            for link in sorted(self.links.hosts, key=lambda one: natural(one.near[1]), reverse=True)
        }
        for host, by_interface in self.leaf_of.items():
            members[group_of[next(iter(by_interface.values()))]].append(host)
            ports[host] = natural(first_port[host][1])
        every = [sorted(found, key=lambda host: (ports[host], natural(host))) for found in members.values()]
        slots = self._slots([found for found in every if found])
        for group, hosts in members.items():
            at = self.places[group[0]]
            for host in hosts:
                self.places[host] = Place("host", at.pod, at.unit, slot=slots[host])

    def _slots(self, units: list[list[str]]) -> dict[str, int]:
        """Return the slot of each host of a unit or spine of a pod: by a number in the names, or by order."""
        columns = NumberColumns.of(host for hosts in units for host in hosts) if self.by_names else None
        if columns:
            groups = separates(units)
            unit_column = columns.find(groups) if len(units) > 1 or columns.count > 1 else None

            def fits(values: Mapping[str, int]) -> bool:
                return all(
                    len({values[host] for host in hosts}) == len(hosts) and min(values[host] for host in hosts) > 0
                    for hosts in units
                )

            column = columns.find(fits, () if unit_column is None else (unit_column,))
            if column is not None:
                return columns.values(column)
        return {host: number for hosts in units for number, host in enumerate(hosts, 1)}

    # --- spines and core switches -----------------------------------------------------------------------------------

    def _place_spines(self, rails: Mapping[str, int]) -> int:
        """Place the spines of a two-tier fabric; return the number of planes."""
        spines = self._with("spine")
        lower = {name: self.neighbors[name] & rails.keys() for name in spines}
        groups = _joined((*rails, *spines), ([name, *found] for name, found in lower.items()))
        dealt = [
            ([name for name in group if name in lower], {rails[name] for name in group if name in rails})
            for group in groups
            if not lower.keys().isdisjoint(group) and not rails.keys().isdisjoint(group)
        ]
        for count in range(len(dealt), MOST_RAILS + 1):
            numbers = [{rail % count for rail in found} for _, found in dealt]
            if all(len(one) == 1 for one in numbers) and len(set(map(frozenset, numbers))) == len(dealt):
                slots = self._slots([sorted(members, key=natural) for members, _ in dealt])
                for (members, _), (plane,) in zip(dealt, numbers, strict=True):
                    for name in members:
                        self.places[name] = Place("spine", plane=plane, slot=slots[name])
                self._place_uncabled(set(range(count)).difference(*numbers), sorted(set(slots.values())))
                return count
        message = f"the leaves form {len(dealt)} groups with separate spines, but not by rail"
        remedy = "a plane of spines has every n-th rail: check the cables that descriptions or LLDP name"
        raise AdoptError(Problem(message, remedy))

    def _place_uncabled(self, planes: Iterable[int], slots: Collection[int]) -> None:
        """Place switches without cables as the spines of planes without leaves, in the order of their loopbacks."""
        spines = {switch.platform for name, switch in self.survey.switches.items() if name in self.places}
        spare = [
            switch
            for name, switch in self.survey.switches.items()
            if name not in self.roles and switch.platform in spines and switch.loopback
        ]
        spare.sort(key=lambda switch: (switch.loopback and switch.loopback.ip, natural(switch.name)))
        every = ((plane, slot) for plane in sorted(planes) for slot in slots)
        for switch, (plane, slot) in zip(spare, every, strict=False):
            self.places[switch.name] = Place("spine", plane=plane, slot=slot)

    def _place_pods(self) -> tuple[dict[str, int], int]:
        """Place spines and core switches of a three-tier fabric; return the pod of each leaf, and the core planes."""
        leaves, spines, cores = self._with("leaf"), self._with("spine"), self._with("core")
        below, above = set(leaves), set(cores)
        groups = _joined((*leaves, *spines), ([name, *(self.neighbors[name] & below)] for name in spines))
        groups = [group for group in groups if any(name in spines for name in group)]
        core_groups = _joined((*spines, *cores), ([name, *(self.neighbors[name] & above)] for name in spines))
        core_groups = [group for group in core_groups if any(name in above for name in group)]
        planes = len(core_groups)
        plane_of = {name: index for index, group in enumerate(core_groups) for name in group}
        pods: dict[str, int] = {}
        tops = [tuple(name for name in group if name in spines) for group in groups]
        every = self._slots([sorted(top, key=natural) for top in tops])
        for group, top, pod in zip(groups, tops, self._group_numbers(tops), strict=True):
            pods |= dict.fromkeys((name for name in group if name in below), pod)
            slots = {name: every[name] for name in top}
            if any(name in plane_of and (slot - 1) % planes != plane_of[name] for name, slot in slots.items()):
                slots = dict(_dealt(top, plane_of, planes))
            for name, slot in slots.items():
                self.places[name] = Place("spine", pod, slot=slot)
        by_plane = [[name for name in group if name in above] for group in core_groups]
        every = self._slots(by_plane)
        for index, names in enumerate(by_plane):
            for name in names:
                self.places[name] = Place("core", plane=index, slot=every[name])
        return pods, planes


def told_asn(survey: Survey, links: FoundLinks, name: str) -> int | None:
    """Return the AS number that the neighbours of a switch expect of it."""
    return most(
        neighbor.remote_asn or None
        for link in links.switches
        for near, far in ((link.near, link.far), (link.far, link.near))
        if far[0] == name and (switch := survey.switches.get(near[0]))
        for neighbor in switch.sessions
        if neighbor.interface == near[1]
    )


def _dealt(spines: Iterable[str], plane_of: Mapping[str, int], planes: int) -> Iterator[tuple[str, int]]:
    """Yield slots such that slot s reaches core plane (s - 1) mod planes."""
    used: Counter[int] = Counter()
    for name in sorted(spines, key=natural):
        plane = plane_of.get(name, 0)
        yield name, used[plane] * planes + plane + 1
        used[plane] += 1


def _joined(names: Iterable[str], groups: Iterable[list[str]]) -> list[tuple[str, ...]]:
    """Merge groups that share a name; return them in the order of their first names."""
    parent = {name: name for name in names}

    def root(name: str) -> str:
        while parent[name] != name:
            parent[name] = parent[parent[name]]
            name = parent[name]
        return name

    for group in groups:
        for name in group[1:]:
            parent[root(name)] = root(group[0])
    found: dict[str, list[str]] = defaultdict(list)
    for name in parent:
        found[root(name)].append(name)
    joined = [tuple(sorted(group, key=natural)) for group in found.values()]
    return sorted(joined, key=lambda group: natural(group[0]))


def slots_of(numbers: Iterable[int]) -> int | str:
    """Write slots as a count, if they are the first ones, else as a list."""
    found = sorted(set(numbers))
    if found == list(range(1, len(found) + 1)):
        return len(found)
    written = spans(found)
    return written if len(found) > 1 else f"{written}-{written}"


def spans(numbers: Iterable[int]) -> str:
    """Write numbers as 1-3,5."""
    parts: list[list[int]] = []
    for number in sorted(set(numbers)):
        if parts and number == parts[-1][1] + 1:
            parts[-1][1] = number
        else:
            parts.append([number, number])
    return ",".join(str(low) if low == high else f"{low}-{high}" for low, high in parts)
