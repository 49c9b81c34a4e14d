"""Networks beside the rails: their switches, and how hosts are attached."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property

from netkit.design.blueprint import FEC, Blueprint, InstalledUnit
from netkit.design.external import EdgePanel, external_ports
from netkit.design.fabric import (
    Access,
    AccessPort,
    AccessVlan,
    Attachment,
    Cable,
    Cage,
    ManagementAddress,
    Switch,
    SwitchPair,
)
from netkit.design.hardware_lookup import model_problems, version_problems
from netkit.errors import HardwareError, Path, Problem
from netkit.hardware import Catalog, Split, SwitchModel
from netkit.intent.model import Intent, NetworkIntent, NetworkVlan
from netkit.platforms import PLATFORMS

PEER_VLAN = 4094
"""Carries the control traffic of a pair."""


@dataclass(frozen=True)
class NetworkPlan:
    """A network with its hardware looked up, before it is installed."""

    index: int
    entry: NetworkIntent
    model: SwitchModel
    split: Split

    @property
    def path(self) -> Path:
        return ("networks", self.index)

    @cached_property
    def names(self) -> tuple[str, ...]:
        given, count = self.entry.switches.names, 2 if self.entry.switches.pair else 1
        return given or tuple(f"{self.entry.name}{slot:02}" for slot in range(1, count + 1))

    @cached_property
    def panel(self) -> dict[str, tuple[int, int]]:
        """Every port by its name: cage, and port within."""
        naming, model = PLATFORMS[self.entry.switches.platform].port_name, self.model
        return {
            naming(model, self.split, cage, port): (cage, port)
            for cage in self.split.cages
            if cage <= model.cages
            for port in range(self.split.ports)
        }

    @cached_property
    def peer_ports(self) -> tuple[str, ...]:
        """The ports between the two switches: the first of each of the last cages."""
        firsts = [name for name, (_, port) in self.panel.items() if port == 0]
        return tuple(firsts[-self.entry.switches.peer_links :]) if self.entry.switches.pair else ()

    @cached_property
    def free_ports(self) -> tuple[str, ...]:
        """The ports in other cages than those between the two switches, in order."""
        taken = {self.panel[name][0] for name in self.peer_ports}
        return tuple(name for name, (cage, _) in self.panel.items() if cage not in taken)

    @cached_property
    def host_ports(self) -> tuple[str, ...]:
        """The ports that hosts may take, in order."""
        first = self.entry.hosts.first_port if self.entry.hosts else None
        return self.free_ports[self.free_ports.index(first) :] if first in self.free_ports else self.free_ports

    def kept_ports(self, intent: Intent) -> tuple[str, ...]:
        """The ports of hosts, installed or not: a server or a peer at one of them would move others.

        Where single hosts have ports of their own, only these are kept.
        """
        if self.entry.hosts and self.entry.hosts.ports:
            return tuple(port for host in self.entry.hosts.ports for port in self.ports_of(host, 0))
        return self.host_ports[: self.most_hosts(intent) * self.nics_per_switch]

    def ports_of(self, host: str, number: int) -> tuple[str, ...]:
        """The ports of a host on each switch: those that it is given, else those of its number."""
        given = self.entry.hosts.ports.get(host) if self.entry.hosts else None
        first = number * self.nics_per_switch
        ports = self.host_ports
        if given in self.free_ports:
            ports, first = self.free_ports, self.free_ports.index(given)
        return ports[first : first + self.nics_per_switch]

    def edge_panel(self, intent: Intent, device: str) -> EdgePanel:
        """The ports of a switch that a peer outside may take: no host is at one of them, up to the ceilings."""
        names = {*self.kept_ports(intent), *self.peer_ports}
        names |= {name for server in self.entry.servers for name in server.ports}
        kept = frozenset(self.panel[name][0] for name in names)
        return EdgePanel(device, self.model, self.entry.switches.platform, self.split, kept)

    @property
    def nics_per_switch(self) -> int:
        return -(-len(self.entry.hosts.interfaces) // len(self.names)) if self.entry.hosts else 0

    def attaches(self, pod: int, unit: int) -> bool:
        return (self.entry.pod is None or pod in self.entry.pod) and (
            self.entry.unit is None or unit in self.entry.unit
        )

    def number(self, intent: Intent, pod: int, unit: int, slot: int) -> int:
        """The number of a host among those that may be attached, from 0; nothing installed moves it."""
        ceilings = intent.ceilings
        units = self.entry.unit or range(1, ceilings.units + 1)
        pods = self.entry.pod or range(1, ceilings.pods + 1)
        place = pods.index(pod) * len(units) + units.index(unit)
        return place * ceilings.hosts_per_unit + slot - 1

    def most_hosts(self, intent: Intent) -> int:
        ceilings = intent.ceilings
        pods = len(self.entry.pod) if self.entry.pod else ceilings.pods
        return pods * (len(self.entry.unit) if self.entry.unit else ceilings.units) * ceilings.hosts_per_unit

    @property
    def host_vlan(self) -> NetworkVlan | None:
        """The VLAN of hosts, if it is one of the network's."""
        number = self.entry.hosts.vlan if self.entry.hosts else None
        return next((vlan for vlan in self.entry.vlans if number in {None, vlan.number}), None)


def look_up(intent: Intent, catalog: Catalog) -> tuple[list[NetworkPlan], list[Problem]]:
    """Look up the hardware of every network; what cannot be found is a problem."""
    plans, problems = list[NetworkPlan](), list[Problem]()
    for index, entry in enumerate(intent.networks):
        switches, path = entry.switches, ("networks", index, "switches")
        try:
            model = catalog.switch(switches.model)
        except HardwareError as error:
            problems += [one if one.file else replace(one, path=(*path, "model")) for one in error.problems]
            continue
        wrong = list(version_problems(switches.platform, switches.version, "split", path))
        wrong += model_problems(switches.platform, switches.version, model, path, is_known=not wrong)
        platform = PLATFORMS[switches.platform]
        if not platform.renders_access:
            able = ", ".join(name for name, one in PLATFORMS.items() if one.renders_access)
            message = f"netkit has no templates of {platform.title} for VLANs, LAG and MLAG"
            wrong.append(Problem(message, f"use one of: {able}", (*path, "platform")))
        split = model.split(switches.breakout)
        if split is None:
            offered = ", ".join(one.mode for one in model.splits)
            message = f"{model.name} has no breakout {switches.breakout}"
            wrong.append(Problem(message, f"use one it has: {offered}", (*path, "breakout")))
        problems += wrong
        if split and not wrong:
            plans.append(NetworkPlan(index, entry, model, split))
    return plans, problems


def switches(blueprint: Blueprint, plan: NetworkPlan) -> Iterator[Switch]:
    """Yield the switches of a network."""
    for slot, name in enumerate(plan.names):
        yield _switch(blueprint, plan, slot, name)


def _switch(blueprint: Blueprint, plan: NetworkPlan, slot: int, name: str) -> Switch:
    intent, override = blueprint.intent, blueprint.override(name)
    given, naming = plan.entry.switches, PLATFORMS[plan.entry.switches.platform].port_name
    ports = tuple(sorted(_ports(blueprint, plan, slot), key=lambda port: (port.cage, port.lane_port)))
    external = tuple(external_ports(intent, plan.edge_panel(intent, name), [port.name for port in ports]))
    splits = {port.cage: port.split for port in external} | {port.cage: port.split for port in ports}
    management = None
    if intent.management and given.management:
        address, pool = given.management + slot, intent.management
        management = ManagementAddress(str(address), pool.pool.prefixlen, str(pool.gateway))
    return Switch(
        name=name,
        role=plan.entry.role,
        number=slot,
        pod=0,
        unit=0,
        rail=-1,
        slot=slot + 1,
        plane=0,
        model=plan.model,
        platform=given.platform,
        version=override.version or given.version,
        routing_mode="split",
        object_names={},
        asn=given.asn,
        loopback=str(given.loopback + slot),
        management=management,
        serial="",
        rack=override.rack or "",
        rack_unit=None,
        system_mac=override.system_mac or "",
        mtu_bytes=plan.entry.mtu_bytes,
        leaf_prefix="",
        link_length=blueprint.numbering.link_length,
        vlan=None,
        adaptive_routing=False,
        drain=override.drain,
        drain_neighbors=(),
        ports=(),
        cages=tuple(
            Cage(number, split, tuple(naming(plan.model, split, number, port) for port in range(split.ports)))
            for number, split in sorted(splits.items())
        ),
        external=external,
        access=Access(
            network=plan.entry.name,
            mtu_bytes=plan.entry.mtu_bytes,
            vlans=tuple(_vlan(plan, vlan, slot) for vlan in plan.entry.vlans),
            ports=ports,
            pair=_pair(intent, plan, slot),
        ),
    )


def _pair(intent: Intent, plan: NetworkPlan, slot: int) -> SwitchPair | None:
    given = plan.entry.switches
    if not given.pair:
        return None
    backup = str(given.management + (1 - slot)) if given.management else ""
    # From a number that stays: another network must not change it, nor two pairs on one wire share it.
    low = int(given.loopback) & 0xFFFF
    mac = f"44:38:39:ff:{low >> 8:02x}:{low & 255:02x}"
    has_session = any(entry.device in plan.names for entry in intent.external)
    return SwitchPair(plan.names[1 - slot], backup, mac, slot == 0, has_session)


def _vlan(plan: NetworkPlan, vlan: NetworkVlan, slot: int) -> AccessVlan:
    name, prefix = vlan.name or f"vlan{vlan.number}", vlan.prefix
    if prefix is None:
        return AccessVlan(vlan.number, name, "", "", "", "")
    shared = f"{vlan.gateway or prefix[1]}/{prefix.prefixlen}"
    if not plan.entry.switches.pair:
        return AccessVlan(vlan.number, name, str(prefix), shared, "", "")
    mac = f"00:00:5e:00:01:{vlan.number & 255:02x}"
    own = (vlan.switch_addresses or (prefix[2], prefix[3]))[slot]
    return AccessVlan(vlan.number, name, str(prefix), f"{own}/{prefix.prefixlen}", shared, mac)


def _ports(blueprint: Blueprint, plan: NetworkPlan, slot: int) -> Iterator[AccessPort]:
    """Yield the ports of a switch; a LAG has the number of its first port's place on the front panel."""
    every = tuple(vlan.number for vlan in plan.entry.vlans)
    places = {name: number for number, name in enumerate(plan.panel, start=1)}

    def port(name: str, peer: str, peer_port: str, kind: str, **of: object) -> AccessPort:
        cage, lane_port = plan.panel[name]
        fixed = {"untagged": 0, "tagged": (), "lag": 0, "cable": None, **of}
        return AccessPort(name, cage, lane_port, plan.split, FEC[plan.split.speed_gbps], peer, peer_port, kind, **fixed)  # type: ignore[arg-type]

    between = _cable(blueprint, given.media, given.length_m) if (given := plan.entry.switches.peer_cable) else None
    for name in plan.peer_ports:
        yield port(name, plan.names[1 - slot], name, "peer", tagged=every, cable=between)
    for server in plan.entry.servers:
        untagged = server.vlan or (0 if server.tagged else plan.entry.vlans[0].number)
        for name in server.ports:
            lag = places[server.ports[0]] if server.lag else 0
            yield port(name, server.name, "", "server", untagged=untagged, tagged=server.tagged, lag=lag)
    hosts, vlan = plan.entry.hosts, plan.host_vlan
    if hosts is None or vlan is None:
        return
    cable = _cable(blueprint, hosts.media, hosts.length_m)
    is_lag = len(hosts.interfaces) > 1
    for place, host_slot, host in _hosts(blueprint, plan):
        own = plan.ports_of(host, plan.number(blueprint.intent, place.pod, place.unit, host_slot))
        for name, interface in zip(own, hosts.interfaces[slot :: len(plan.names)], strict=False):
            lag = places[own[0]] if is_lag else 0
            yield port(name, host, interface, "host", untagged=vlan.number, lag=lag, cable=cable)


def _cable(blueprint: Blueprint, media: str, length_m: float) -> Cable:
    return Cable(media, blueprint.hardware.media[media].kind, length_m)


def _hosts(blueprint: Blueprint, plan: NetworkPlan) -> Iterator[tuple[InstalledUnit, int, str]]:
    for place in blueprint.places:
        if plan.attaches(place.pod, place.unit):
            for slot in place.entry.hosts:
                yield place, slot, blueprint.host_name(place, slot)


def attachments(blueprint: Blueprint, plans: Iterable[NetworkPlan]) -> dict[str, tuple[Attachment, ...]]:
    """How each host is attached to networks, by its name."""
    found: dict[str, tuple[Attachment, ...]] = {}
    for plan in plans:
        hosts, vlan = plan.entry.hosts, plan.host_vlan
        if hosts is None or vlan is None or vlan.prefix is None:
            continue
        is_lag = len(hosts.interfaces) > 1
        for place, slot, host in _hosts(blueprint, plan):
            number = plan.number(blueprint.intent, place.pod, place.unit, slot)
            found[host] = (
                *found.get(host, ()),
                Attachment(
                    network=plan.entry.name,
                    interface=hosts.bond if is_lag else hosts.interfaces[0],
                    members=hosts.interfaces if is_lag else (),
                    address=f"{vlan.prefix[hosts.first_address + number]}/{vlan.prefix.prefixlen}",
                    gateway=str(vlan.gateway or vlan.prefix[1]),
                    routes=tuple(map(str, hosts.routes)),
                    mtu_bytes=plan.entry.mtu_bytes,
                ),
            )
    return found
