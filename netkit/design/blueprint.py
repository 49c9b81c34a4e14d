"""The shared state while a fabric is designed: names, overrides, port profiles, installed units."""

import difflib
import fnmatch
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from functools import cached_property
from ipaddress import IPv6Address

from netkit.design import lossless
from netkit.design.cable_entries import NOTHING_GIVEN, CableEntries, GivenCable
from netkit.design.entries import AS_OVERRIDES, DeviceEntries
from netkit.design.fabric import Cable, Cage, PortProfile, PortRole
from netkit.design.hardware_lookup import HardwareLookup, HostPorts, cable_of
from netkit.design.layout import Layout, Layouts, Position, front_panel
from netkit.design.nic_entries import NicEntries
from netkit.design.numbering import Numbering
from netkit.errors import Problem
from netkit.hardware import Split
from netkit.intent.model import DeviceEntry, Intent, Override, Unit
from netkit.platforms import PLATFORMS

FEC = {25: "fc", 50: "rs", 100: "rs", 200: "rs", 400: "rs", 800: "rs", 1600: "rs"}
NO_OVERRIDE = Override()
PATTERNS = {
    "two-tier": {
        "leaf": "leaf-u{unit:02}-r{rail}",
        "spine": "spine{number:02}",
        "core": "",
        "host": "gpu-u{unit:02}-{slot:02}",
    },
    "three-tier": {
        "leaf": "leaf-p{pod:02}-u{unit:02}-r{rail}",
        "spine": "spine-p{pod:02}-{slot:02}",
        "core": "core-{plane:02}-{slot:02}",
        "host": "gpu-p{pod:02}-u{unit:02}-{slot:02}",
    },
    "rail-only": {"leaf": "leaf-u{unit:02}-r{rail}", "spine": "", "core": "", "host": "gpu-u{unit:02}-{slot:02}"},
}


@dataclass(frozen=True, slots=True)
class InstalledUnit:
    """An installed unit, and the entry of the intent it comes from."""

    pod: int
    unit: int
    entry: Unit
    rails: tuple[int, ...]


class Blueprint:
    """The shared state of a design in progress."""

    def __init__(self, hardware: HardwareLookup, layouts: Layouts) -> None:
        self.hardware = hardware
        self.intent: Intent = hardware.intent
        self.layouts = layouts
        self.numbering = Numbering(hardware.intent)
        self.patterns = {
            role: getattr(self.intent.names, role) or pattern
            for role, pattern in PATTERNS[self.intent.topology].items()
        }
        self._profiles: dict[tuple[str, str, HostPorts, PortRole, float, str], PortProfile] = {}
        self._names: dict[tuple[str, int], str] = {}
        self._asns: dict[str, int] = {}
        self._cages: dict[tuple[str, str, str, int, str, int], Cage] = {}
        self._globs = {
            name: over for name, over in self.intent.overrides.items() if any(mark in name for mark in "*?[")
        }
        self._matched: set[str] = set()
        self._overrides: dict[str, Override] = {}
        self._entries = DeviceEntries(self.intent)
        self.cables, self._nics = CableEntries(self.intent), NicEntries(self.intent)
        self._panels: dict[tuple[str, str, str, HostPorts, str], dict[str, Position]] = {}
        self._entry_of: dict[str, DeviceEntry] = {}
        self._unit_of: dict[str, Unit | None] = {}
        self.renamed: dict[str, str] = {}
        """Name by the pattern → the given one."""

    @cached_property
    def places(self) -> tuple[InstalledUnit, ...]:
        """Every installed unit by pod and unit, whatever the order in the file."""
        every = range(self.intent.rails)
        places = [
            InstalledUnit(pod, unit, entry, entry.rails if entry.rails is not None else tuple(every))
            for entry in self.intent.units
            for pod in entry.pod
            for unit in entry.unit
        ]
        return tuple(sorted(places, key=lambda place: (place.pod, place.unit)))

    @cached_property
    def _units(self) -> dict[tuple[int, int], Unit]:
        return {(place.pod, place.unit): place.entry for place in self.places}

    @cached_property
    def pods(self) -> tuple[int, ...]:
        """The pods that have a unit."""
        return tuple(sorted({place.pod for place in self.places}))

    def leaf_name(self, pod: int, unit: int, rail: int) -> str:
        number = self.numbering.leaf_number(pod, unit, rail)
        name = self._name("leaf", number, (pod, unit, rail), pod=pod, unit=unit, rail=rail)
        self._unit_of[name] = self._units.get((pod, unit))
        return name

    def spine_name(self, pod: int, plane: int, slot: int) -> str:
        number = self.numbering.spine_number(pod, plane, slot)
        return self._name("spine", number, (pod, plane, slot), pod=pod, plane=plane, slot=slot)

    def core_name(self, plane: int, slot: int) -> str:
        return self._name("core", self.numbering.core_number(plane, slot), (plane, slot), plane=plane, slot=slot)

    def host_name(self, place: InstalledUnit, slot: int) -> str:
        number = self.numbering.host_number(place.pod, place.unit, slot)
        at = (place.pod, place.unit, slot)
        given = place.entry.host_names.get(slot, "")
        return self._name("host", number, at, given, pod=place.pod, unit=place.unit, slot=slot)

    def _name(self, role: str, number: int, at: tuple[int, ...], given: str = "", **fields: int) -> str:
        """Cache the name: every port that faces a device repeats it."""
        name = self._names.get((role, number))
        if name is None:
            entry = self._entries.at(role, *at)
            designed = self.patterns[role].format(number=number + 1, **fields)
            name = (entry and entry.name) or given or designed
            self._names[(role, number)] = name
            if name != designed:
                self.renamed[designed] = name
            if entry:
                self._entry_of[name] = entry
        return name

    def entry(self, name: str) -> DeviceEntry | None:
        """The row of a device in the table of devices."""
        return self._entry_of.get(name)

    def asn(self, role: str, name: str, pod: int, number: int) -> int:
        """The AS number of a switch: from its override, else by its number."""
        asn = self._asns.get(name)
        if asn is None:
            own = self.override(name).asn
            asn = self._asns[name] = own if own is not None else self.numbering.asn(role, pod, number)
        return asn

    def hardware_of(self, role: str, name: str) -> HardwareLookup:
        """The hardware with the model, the NOS and the host ports of a switch in its tier."""
        entry, unit = self.entry(name), self._unit_of.get(name)
        model, platform = (entry.model, entry.platform) if entry else (None, None)
        return self.hardware.variant(role, model, platform, unit)

    def layout(self, role: str, name: str) -> Layout:
        """Which ports of a switch serve what."""
        return self.layouts[self.hardware_of(role, name).key(role)]

    def cage(self, role: str, name: str, number: int, split: Split) -> Cage:
        """A cage of a switch, as one object that switches of one model share."""
        hardware = self.hardware_of(role, name)
        platform, model = hardware.tier(role).platform, hardware.models[role]
        key = (role, model.name, platform, number, split.mode, split.lanes_per_port)
        if key not in self._cages:
            naming = PLATFORMS[platform].port_name
            names = tuple(naming(model, split, number, port) for port in range(split.ports))
            self._cages[key] = Cage(number, split, names)
        return self._cages[key]

    def leaf_base(self, place: InstalledUnit, rail: int) -> int:
        """The first address of a leaf's prefix, as an integer."""
        entry = self.entry(self.leaf_name(place.pod, place.unit, rail))
        if entry and entry.prefix:
            return int(entry.prefix.network_address)
        return self.numbering.leaf_base(place.pod, place.unit, rail)

    def vlan_gateway(self, place: InstalledUnit, rail: int) -> int:
        """The gateway of a leaf's subnet, as an integer."""
        entry = self.entry(self.leaf_name(place.pod, place.unit, rail))
        return int(entry.vlan_gateway) if entry and entry.vlan_gateway else self.leaf_base(place, rail) + 1

    def host_address(self, place: InstalledUnit, rail: int, slot: int, host: str) -> tuple[int, int]:
        """The gateway and the address of a NIC, as integers."""
        gateway, address = self.numbering.host_address(self.leaf_base(place, rail), slot)
        own = self._nics.at(host, rail)
        if self.intent.attachment == "vlan":
            return self.vlan_gateway(place, rail), int(own.address) if own and own.address else address
        if own is None or own.address is None:
            return gateway, address
        address, length = int(own.address), self.numbering.link_length
        link = address & ~((1 << (32 - length)) - 1)
        return int(own.gateway) if own.gateway else address ^ 1 if length == 31 else link + 1, address

    def leaf_base_v6(self, place: InstalledUnit, rail: int) -> int:
        """The first IPv6 address of a leaf's prefix, as an integer; 0 without a pool."""
        entry = self.entry(self.leaf_name(place.pod, place.unit, rail))
        if entry and entry.prefix_v6:
            return int(entry.prefix_v6.network_address)
        return self.numbering.leaf_base_v6(place.pod, place.unit, rail)

    def host_address_v6(self, place: InstalledUnit, rail: int, slot: int, host: str) -> tuple[str, str]:
        """The IPv6 gateway and address of a NIC; empty without a pool."""
        base = self.leaf_base_v6(place, rail)
        if not base:
            return "", ""
        gateway, address = self.numbering.host_address(base, slot)
        own = self._nics.at(host, rail)
        if own and own.address_v6:
            address, length = int(own.address_v6), self.numbering.link_length_v6
            if self.intent.attachment == "p2p":
                link = address & ~((1 << (128 - length)) - 1)
                gateway = int(own.gateway_v6) if own.gateway_v6 else address ^ 1 if length == 127 else link + 1
        return str(IPv6Address(gateway)), str(IPv6Address(address))

    def mac(self, host: str, rail: int) -> str:
        own = self._nics.at(host, rail)
        return (own and own.mac) or self.override(host).macs.get(rail, "")

    def port_at(self, role: str, name: str, side: str, designed: Position, port: str) -> Position:
        """A given port of a switch; the designed one where none is given, or one that is refused later."""
        if not port:
            return designed
        hardware = self.hardware_of(role, name)
        key = (*hardware.key(role), side)
        if key not in self._panels:
            self._panels[key] = front_panel(hardware, role, side)
        return self._panels[key].get(port, designed)

    def override(self, name: str) -> Override:
        """The override of a device, as one shared object; call this once the device has its name."""
        if name not in self._overrides:
            self._overrides[name] = self._merged(name)
        return self._overrides[name]

    def _merged(self, name: str) -> Override:
        """Merge the overrides of a device; its own entry, and what a table has of it, wins over globs."""
        own, entry = self.intent.overrides.get(name), self.entry(name)
        globs = [(glob, over) for glob, over in self._globs.items() if fnmatch.fnmatchcase(name, glob)]
        self._matched.update([name] if own else [], (glob for glob, _ in globs))
        merged: dict[str, object] = {}
        for over in (*(over for _, over in globs), *([own] if own else [])):
            merged.update((key, getattr(over, key)) for key in over.model_fields_set)
        if entry:
            merged.update((key, getattr(entry, key)) for key in AS_OVERRIDES if getattr(entry, key) is not None)
        return NO_OVERRIDE.model_copy(update=merged) if merged else NO_OVERRIDE

    def unmatched(self, names: Collection[str]) -> Iterator[Problem]:
        """Yield the overrides that matched no device; call this with all names once everything is built."""
        for name in self.intent.overrides:
            if name not in self._matched:
                close = [self.renamed[name]] if name in self.renamed else difflib.get_close_matches(name, names, 1)
                remedy = "`netkit design --addresses` lists the names once this entry is removed"
                yield Problem(
                    "matches no device", f"did you mean {close[0]}?" if close else remedy, ("overrides", name)
                )

    def profile(
        self, tier: str, name: str, role: PortRole, length_m: float | None, own: GivenCable = NOTHING_GIVEN
    ) -> PortProfile:
        """The profile of a switch's ports of one kind, as one object that switches of its model share."""
        kind = {
            "host": "host",
            "up": "spine" if tier == "leaf" else "core",
            "down": "core" if tier == "core" else "spine",
        }[role]
        hardware = self.hardware_of(tier, name)
        cable = cable_of(hardware.intent, kind)
        lengths = (one for one in (own.length_m, length_m) if one is not None)
        length = next(lengths, cable.length_m)
        media = own.media if own.media and own.media in hardware.media else cable.media
        key = (tier, hardware.models[tier].name, hardware.host_ports, role, length, media)
        if key not in self._profiles:
            split = hardware.up_split(tier) if role == "up" else hardware.down_split(tier)
            if split is None:
                raise ValueError(f"the {tier} tier has no {role} ports")
            designed = Cable(media, hardware.media[media].kind, length)
            model, mtu = hardware.models[tier], hardware.mtu_bytes
            thresholds, room = lossless.of_ports(self.intent, model, split, designed, mtu)
            self._profiles[key] = PortProfile(role, split, mtu, FEC[split.speed_gbps], designed, thresholds, room)
        return self._profiles[key]
