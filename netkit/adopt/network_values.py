"""Networks beside the rails: pairs of switches with MLAG or single ones, their VLANs, and what is attached to them."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from ipaddress import IPv4Interface, IPv4Network
from itertools import islice, takewhile

from netkit.adopt.fabric_values import Assumptions, Values
from netkit.adopt.links import STRICT
from netkit.adopt.names import natural
from netkit.adopt.placement import Placement
from netkit.adopt.survey import Survey, SurveyedSwitch
from netkit.design.networks import PEER_VLAN
from netkit.hardware import Catalog, Split, SwitchModel
from netkit.platforms import PLATFORMS
from netkit.platforms.bgp_reader import interface_address
from netkit.platforms.existing import ExistingLag, ExistingNic, most

Hardware = tuple[SwitchModel, Split]
NAME = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9-]{0,61}[A-Za-z0-9])?")
ODD = re.compile(r"[^A-Za-z0-9]+")
MOST_LETTERS = 60
Ceilings = tuple[int, int]
"""Units of a pod, and hosts of a unit."""
Ends = tuple[list[tuple[str, str]], ...]
"""On each switch, the (port, NIC) of a host."""
MOST = 128
ROLES = ("oob", "frontend", "storage")
USUAL_ASN = 4_200_090_000
HOST_CABLE_M, PEER_CABLE_M = 3, 1
LEAST_OFFSET = 4
"""Of hosts in their prefix: behind the gateway and the addresses of a pair."""


@dataclass(frozen=True)
class FoundNetworks:
    """Networks as the intent has them, the switches they have, and the ceilings that the ports of hosts follow."""

    entries: tuple[Values, ...] = ()
    hardware: Mapping[str, Hardware] = field(default_factory=dict)
    """By switch."""
    ceilings: Ceilings | None = None
    unattached: int = 0
    """Hosts at ports that the design does not give them: their ports are those of servers."""


def networks(survey: Survey, placement: Placement, catalog: Catalog, guesses: Assumptions) -> FoundNetworks:
    """Find the networks; one whose hardware or loopback is not known is left out."""
    found: list[tuple[_Network, Hardware]] = []
    for switches in _groups(survey, guesses):
        one = _Network(survey, placement, catalog, switches).with_unnamed()
        without = [switch.name for switch in switches if switch.loopback is None]
        if without or one.hardware is None:
            why = f"{without[0]} has no loopback" if without else "no model has the names and speeds of its ports"
            guesses.add("networks", f"{one.name} is left out: {why}")
        else:
            found.append((one, one.hardware))
            for host, ends in one.unnamed.items():
                ports = ", ".join(port for port, _ in ends[0])
                guesses.add("networks", f"{one.name}: {ports} of {host}, by its place; descriptions do not name it")
    ceilings = next((one.ceilings for one, _ in found if one.ends and one.ceilings), None)
    names = [one.name for one, _ in found]
    entries = tuple(
        one.values(name if names.count(name) == 1 else _name(one.first.name), hardware, ceilings, index, guesses)
        for index, (name, (one, hardware)) in enumerate(zip(names, found, strict=True))
    )
    by_name = {switch.name: hardware for one, hardware in found for switch in one.switches}
    unattached = sum(len(one.ends) for (one, _), entry in zip(found, entries, strict=True) if "hosts" not in entry)
    return FoundNetworks(entries, by_name, ceilings, unattached)


def _name(text: str) -> str:
    """The text as a name of an intent; empty if it has no letter or digit."""
    return ODD.sub("-", text)[:MOST_LETTERS].strip("-")


def _groups(survey: Survey, guesses: Assumptions) -> Iterator[tuple[SurveyedSwitch, ...]]:
    """Yield the switches of each network, of a pair the one with the lower loopback first."""
    taken: set[str] = set()
    for name in sorted(survey.beside, key=natural):
        switch = survey.beside[name]
        between = [lag for lag in switch.existing.lags if lag.is_between]
        said = [lag.description for lag in between]
        ports = (switch.ports[port].description for lag in between for port in lag.members if port in switch.ports)
        said += [match[1] for match in map(STRICT.fullmatch, ports) if match]
        other = next((survey.beside[one] for one in said if one in survey.beside and one != name), None)
        alike = [one for one in survey.beside.values() if between and _pair_key(one) == _pair_key(switch)]
        if other is None and len(alike) == 2:
            other = next(one for one in alike if one is not switch)
        pair = (switch, other) if other else (switch,)
        if between and not other:
            guesses.add(
                "networks", f"{name} is left out: it is one of a pair, and nothing names the other or it was not read"
            )
        elif name not in taken:
            taken |= {one.name for one in pair}
            yield tuple(sorted(pair, key=lambda one: int(one.loopback.ip) if one.loopback else 0))


def _pair_key(switch: SurveyedSwitch) -> object:
    """What both switches of a pair have, if neither names the other: the ports between them, VLANs and prefixes."""
    existing = switch.existing
    prefixes = {vlan: switch.addresses[one].network for vlan, one in existing.vlans.items() if one in switch.addresses}
    between = [lag.members for lag in existing.lags if lag.is_between]
    return switch.platform, existing.pair_name, between, sorted(existing.vlans), prefixes


@dataclass(frozen=True)
class _Attached:
    """Ports of one switch with one description: those of a LAG, or a single one."""

    ports: tuple[str, ...]
    name: str
    vlan: int | None
    tagged: tuple[int, ...]
    is_lag: bool

    @property
    def use(self) -> object:
        return self.vlan, self.tagged, self.is_lag


@dataclass(frozen=True)
class _Network:
    survey: Survey
    placement: Placement
    catalog: Catalog
    switches: tuple[SurveyedSwitch, ...]
    unnamed: Mapping[str, Ends] = field(default_factory=dict)
    """Hosts that no description names."""

    def with_unnamed(self) -> "_Network":
        """Find the ports of hosts that no description names by the rule that those of the others follow."""
        first = self.first_number(self.ceilings) if self.ends and self.ceilings else None
        if self.ceilings is None or first is None:
            return self
        hosts = [
            name for name, place in self.placement.places.items() if place.role == "host" and name not in self.ends
        ]
        found = {host: self._by_place(host, first + self._place(host, self.ceilings)) for host in hosts}
        return replace(self, unnamed={host: ends for host, ends in found.items() if ends})

    def _by_place(self, host: str, number: int) -> Ends:
        """Return the ports of a host with this number; none unless they are in use like those of the other hosts."""
        ports = self.host_ports[number * self.per_switch :][: self.per_switch]
        if len(ports) < self.per_switch:
            return ()
        own = self.survey.hosts.get(host)
        networks = [address.network for address in self.first.addresses.values()]
        addresses = [nic.address for nic in own.existing.nics if interface_address(nic.address)] if own else []
        is_attached = any(IPv4Interface(one).ip in network for one in addresses for network in networks)
        usual = most(one.use for one in self._attached(self.first) if set(one.ports) & self._ports_of_hosts)
        for switch in self.switches:
            found = [one for one in self._attached(switch) if set(one.ports) & set(ports)]
            if {one.use for one in found} != {usual} or {port for one in found for port in one.ports} != set(ports):
                return ()
        count = len(self.switches)
        nics = [self.interfaces[index::count] for index in range(count)]
        return tuple(list(zip(ports, one, strict=True)) for one in nics) if is_attached or not own else ()

    @property
    def first(self) -> SurveyedSwitch:
        return self.switches[0]

    @property
    def name(self) -> str:
        both = zip(self.first.name, self.switches[-1].name, strict=False)
        shared = "".join(one for one, _ in takewhile(lambda letters: letters[0] == letters[1], both))
        return _name(self.first.existing.pair_name or shared.rstrip("0123456789-_.")) or "network"

    @cached_property
    def between(self) -> ExistingLag | None:
        return next((lag for lag in self.first.existing.lags if lag.is_between), None)

    @cached_property
    def hardware(self) -> Hardware | None:
        """The first model with these ports, of those that the configuration names or of all.

        The last cages are those between a pair.
        """
        ports = {port for switch in self.switches for lag in switch.existing.lags for port in lag.members}
        ports |= {one.name for switch in self.switches for one in switch.existing.ports if one.vlan or one.tagged}
        ports = ports or {one.name for switch in self.switches for one in switch.existing.ports}
        known = [self.first.ports[name] for name in ports if name in self.first.ports]
        speed, lanes = most(port.speed_gbps for port in known), most(port.lanes for port in known)
        for name in self.first.existing.models or self.catalog.names("switches"):
            model = self.catalog.switch(name)
            for split in model.splits if self.first.platform in model.platforms else ():
                panel, between = self._panel(model, split), set(self.between.members if self.between else ())
                firsts = [one for one, (_, port) in panel.items() if port == 0]
                fits = (
                    ports <= panel.keys()
                    and speed in {None, split.speed_gbps}
                    and lanes in {None, split.lanes_per_port}
                )
                if fits and between == set(firsts[len(firsts) - len(between) :]):
                    return model, split
        return None

    def _panel(self, model: SwitchModel, split: Split) -> dict[str, tuple[int, int]]:
        naming = PLATFORMS[self.first.platform].port_name
        cages = [cage for cage in split.cages if cage <= model.cages]
        return {naming(model, split, cage, port): (cage, port) for cage in cages for port in range(split.ports)}

    @cached_property
    def host_ports(self) -> list[str]:
        """The ports that hosts may take, in order."""
        if self.hardware is None:
            return []
        panel = self._panel(*self.hardware)
        taken = {panel[port][0] for port in self.between.members} if self.between else set()
        return [name for name, (cage, _) in panel.items() if cage not in taken]

    @cached_property
    def ends(self) -> Mapping[str, Ends]:
        """Host → on each switch its (port, NIC), by descriptions, or else by its place."""
        found: dict[str, Ends] = {}
        for index, switch in enumerate(self.switches):
            for port in switch.existing.ports:
                match = STRICT.fullmatch(port.description)
                place = self.placement.places.get(match[1]) if match else None
                if match and place and place.role == "host" and port.name in self.host_ports:
                    found.setdefault(match[1], tuple([] for _ in self.switches))[index].append((port.name, match[2]))
        return {**found, **self.unnamed}

    @cached_property
    def interfaces(self) -> tuple[str, ...]:
        """The NICs of most hosts, dealt to the switches in turn."""
        return most(self._dealt(ends) for ends in self.ends.values()) or ()

    @staticmethod
    def _dealt(ends: Sequence[list[tuple[str, str]]]) -> tuple[str, ...]:
        rows = range(max(map(len, ends)))
        return tuple(own[row][1] for row in rows for own in ends if row < len(own))

    @property
    def per_switch(self) -> int:
        return -(-len(self.interfaces) // len(self.switches))

    def _number(self, host: str) -> int | None:
        """Return the number of a host by its ports; None if they are not those of a host."""
        own = self.ends[host]
        first = self.host_ports.index(own[0][0][0]) if own[0] else -1
        wanted = self.host_ports[first : first + self.per_switch]
        fits = all([port for port, _ in ports] == wanted[: len(ports)] for ports in own)
        return first // self.per_switch if fits and first >= 0 and first % self.per_switch == 0 else None

    @cached_property
    def numbers(self) -> dict[str, int | None]:
        return {host: self._number(host) for host in self.ends}

    @cached_property
    def ceilings(self) -> Ceilings | None:
        """The lowest ceilings with which all hosts have the ports that the design gives them, or else the addresses."""
        hosts = [place for place in self.placement.places.values() if place.role == "host"]
        least_units, least_slots = (max((getattr(one, key) for one in hosts), default=1) for key in ("unit", "slot"))
        is_alike = all(self._dealt(ends) == self.interfaces for ends in self.ends.values())
        most_units = MOST if any(one.pod > 1 for one in hosts) else least_units
        every = [
            (units, slots) for slots in range(least_slots, MOST + 1) for units in range(least_units, most_units + 1)
        ]
        fits = (one for by_port in (self.first_number, self._offset) for one in every if by_port(one) is not None)
        is_even = len(self.interfaces) % len(self.switches) == 0  # as the design has it
        return next(fits, None) if is_alike and is_even else None

    def first_number(self, ceilings: Ceilings) -> int | None:
        """Return the place of the first host up to the ceilings; None if the hosts are in no such order."""
        first = -1
        for host, number in self.numbers.items():
            own = -1 if number is None else number - self._place(host, ceilings)
            if own < 0 or first not in {-1, own}:
                return None
            first = own
        return first if first >= 0 else None

    def values(
        self, name: str, hardware: Hardware, ceilings: Ceilings | None, index: int, guesses: Assumptions
    ) -> Values:
        """Return the network as the intent has it."""
        role = next((role for role in ROLES if role in name), "storage")
        guesses.add("networks", f"{name}: role {role}, length and media of cables")
        vlans, (model, split) = list(self._vlans()), hardware
        switches = self._switches(name, model, split, guesses) | {"asn": self.first.asn or USUAL_ASN + index}
        values: Values = {"name": name, "role": role, "switches": switches, "vlans": vlans}
        first = self.first_number(ceilings) if self.ceilings and ceilings else None
        hosts = (
            self._with_ports(vlans, split, ceilings)
            if first is None
            else self._hosts(vlans, split, first, self.numbers)
        )
        values |= {"hosts": hosts} if hosts else {}
        interface = hosts.get("bond") or next(iter(self.interfaces), "")
        existing = self.first.existing
        switched = (port for port in existing.ports if port.name not in self.first.addresses)
        mtu = most(port.mtu_bytes for port in switched) or existing.vlan_mtu_bytes
        mtu = mtu or most(nic.mtu_bytes for _, nic in self._nics if nic.interface == interface)
        servers = list(self._servers(vlans, has_hosts=bool(hosts)))
        return values | ({"servers": servers} if servers else {}) | ({"mtu_bytes": mtu} if mtu else {})

    def _switches(self, name: str, model: SwitchModel, split: Split, guesses: Assumptions) -> Values:
        existing, known = self.first.existing, PLATFORMS[self.first.platform]
        if not existing.models:
            guesses.add("networks", f"{name}: model {model.name}, whose ports have these names")
        names = [switch.name for switch in self.switches]
        values: Values = {
            "model": model.name,
            "platform": self.first.platform,
            "version": existing.version if existing.version in known.tested_versions else known.newest_version,
            "breakout": split.mode,
            "pair": len(names) > 1,
            "loopback": str(self.first.loopback.ip) if self.first.loopback else "",
        }
        if existing.management:
            values["management"] = existing.management.partition("/")[0]
        if names != [f"{name}{slot:02}" for slot in range(1, len(names) + 1)]:
            values["names"] = names
        if self.between:
            media = self._media(split, PEER_CABLE_M)
            values |= {
                "peer_links": len(self.between.members),
                "peer_cable": {"media": media, "length_m": PEER_CABLE_M},
            }
        return values

    def _media(self, split: Split, length_m: int) -> str:
        fitting = [
            media.name
            for media in self.catalog.media().values()
            if (media.speed_gbps, media.ports_per_module) == (split.speed_gbps, split.ports)
            and (media.reach_m is None or media.reach_m >= length_m)
        ]
        return min(fitting, key=lambda name: ("DAC" not in name, name), default="")

    def _vlans(self) -> Iterator[Values]:
        existing = self.first.existing
        for vlan in sorted(existing.vlans):
            if vlan == PEER_VLAN:
                continue
            address, name = self.first.addresses.get(existing.vlans[vlan]), existing.vlan_names.get(vlan, "")
            own: Values = {"number": vlan}
            own |= {"name": name} if NAME.fullmatch(name) and name != f"vlan{vlan}" else {}
            yield own | (self._gateway(vlan, address) if address else {})

    def _gateway(self, vlan: int, address: IPv4Interface) -> Values:
        """Return the prefix of a VLAN, with the gateway and the addresses of a pair where they are not the first."""
        network, existing = address.network, self.first.existing
        gateway = str(address.ip) if len(self.switches) == 1 else existing.vlan_gateways.get(vlan, "")
        own = [one.addresses.get(one.existing.vlans.get(vlan, "")) for one in self.switches]
        addresses = [str(one.ip) for one in own if one]
        values: Values = {"prefix": str(network)}
        usual = list(map(str, islice(network, 4)))  # fewer in a /31 or /32, which the design refuses
        values |= {"gateway": gateway} if gateway and [gateway] != usual[1:2] else {}
        is_own = len(addresses) == 2 and addresses != usual[2:]
        return values | ({"switch_addresses": addresses} if is_own else {})

    def _hosts(self, vlans: list[Values], split: Split, first: int, numbers: Mapping[str, int | None]) -> Values:
        vlan = most(one.vlan for one in self._attached(self.first) if set(one.ports) & self._ports_of_hosts)
        values: Values = {"interfaces": list(self.interfaces)}
        values |= {"vlan": vlan} if vlan != vlans[0]["number"] else {}
        values |= {"first_port": self.host_ports[first * self.per_switch]} if first else {}
        prefix = next(
            (IPv4Network(str(one["prefix"])) for one in vlans if one["number"] == vlan and "prefix" in one), None
        )
        nics = [(host, nic, IPv4Interface(nic.address).ip) for host, nic in self._nics if prefix]
        offsets = (
            int(ip) - int(prefix[0]) + first - (numbers[host] or 0) for host, _, ip in nics if prefix and ip in prefix
        )
        values |= {"first_address": offset} if (offset := most(offsets)) else {}
        bond = most(nic.interface for _, nic, ip in nics if prefix and ip in prefix)
        values |= {"bond": bond} if bond and len(self.interfaces) > 1 else {}
        routes = most(nic.routes for _, nic, ip in nics if prefix and ip in prefix) or ()
        return values | {"routes": list(routes), "media": self._media(split, HOST_CABLE_M), "length_m": HOST_CABLE_M}

    def _with_ports(self, vlans: list[Values], split: Split, ceilings: Ceilings | None) -> Values:
        """Return hosts with the first port of each; none if NICs, ports or addresses do not follow one rule."""
        places = [name for name, one in self.placement.places.items() if one.role == "host"]
        firsts = {host: own[0][0][0] for host, own in self.ends.items() if own[0]}
        if ceilings is None or self._offset(ceilings) is None or firsts.keys() != set(places):
            return {}
        for host, port in firsts.items():
            at = self.host_ports.index(port)
            wanted = self.host_ports[at : at + self.per_switch]
            if any([name for name, _ in own] != wanted for own in self.ends[host]):
                return {}
        numbers = {host: self._place(host, ceilings) for host in firsts}
        return self._hosts(vlans, split, 0, numbers) | {"ports": firsts}

    def _place(self, host: str, ceilings: Ceilings) -> int:
        """Return the number of a host up to the ceilings."""
        (units, slots), place = ceilings, self.placement.places[host]
        return ((place.pod - 1) * units + place.unit - 1) * slots + place.slot - 1

    def _offset(self, ceilings: Ceilings) -> int | None:
        """Return the place of the first host in the prefix of the VLAN; None if addresses follow no such rule."""
        vlan = most(one.vlan for one in self._attached(self.first) if set(one.ports) & self._ports_of_hosts)
        gateway, found = self.first.addresses.get(self.first.existing.vlans.get(vlan or 0, "")), -1
        for host, nic in self._nics if gateway else ():
            ip = IPv4Interface(nic.address).ip
            if gateway and ip in gateway.network:
                own = int(ip) - int(gateway.network[0]) - self._place(host, ceilings)
                if found not in {-1, own}:
                    return None
                found = own
        return found if found >= LEAST_OFFSET else None

    @cached_property
    def _nics(self) -> list[tuple[str, ExistingNic]]:
        """The interfaces of attached hosts with an address, each with its host."""
        hosts = (self.survey.hosts[host] for host in self.ends if host in self.survey.hosts)
        return [(host.name, nic) for host in hosts for nic in host.existing.nics if interface_address(nic.address)]

    @cached_property
    def _ports_of_hosts(self) -> frozenset[str]:
        return frozenset(port for ends in self.ends.values() for port, _ in ends[0])

    def _attached(self, switch: SurveyedSwitch) -> Iterator[_Attached]:
        """Yield what is attached to a switch, but the other switch."""
        members: set[str] = set()
        for lag in switch.existing.lags:
            members |= set(lag.members)
            if not lag.is_between:
                yield _Attached(lag.members, lag.description, lag.vlan, lag.tagged, is_lag=True)
        for port in switch.existing.ports:
            if port.name not in members and (port.vlan or port.tagged):
                yield _Attached((port.name,), port.description, port.vlan, port.tagged, is_lag=False)

    def _servers(self, vlans: list[Values], *, has_hosts: bool) -> Iterator[Values]:
        """Yield what is attached beside the hosts, by the ports of the first switch."""
        names: set[str] = set()
        for one in self._attached(self.first):
            if has_hosts and set(one.ports) & self._ports_of_hosts:
                continue
            words = [one.name.partition(":")[0], *one.ports, "server"]
            offered = (_name("-".join(words[:count])) for count in range(1, len(words) + 1))
            name = next((one for one in offered if one and one not in names), f"server{len(names)}")
            names.add(name)
            own: Values = {
                "name": name,
                "ports": list(one.ports),
            }
            own |= {} if one.is_lag else {"lag": False}
            own |= {"vlan": one.vlan} if one.vlan and (one.tagged or one.vlan != vlans[0]["number"]) else {}
            yield own | ({"tagged": list(one.tagged)} if one.tagged else {})
