"""The shared state while a fabric is designed: names, overrides, port profiles, installed units."""

import difflib
import fnmatch
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from functools import cached_property

from netkit.design import headroom, lossless
from netkit.design.fabric import Cable, Cage, PortProfile, PortRole
from netkit.design.hardware_lookup import HardwareLookup, cable_of
from netkit.design.layout import Layout
from netkit.design.numbering import Numbering
from netkit.errors import Problem
from netkit.hardware import Split
from netkit.intent.model import Intent, Override, Unit
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

    def __init__(self, hardware: HardwareLookup, layouts: dict[str, Layout]) -> None:
        self.hardware = hardware
        self.intent: Intent = hardware.intent
        self.layouts = layouts
        self.numbering = Numbering(hardware.intent)
        self.patterns = {
            role: getattr(self.intent.names, role) or pattern
            for role, pattern in PATTERNS[self.intent.topology].items()
        }
        self._profiles: dict[tuple[str, PortRole, float], PortProfile] = {}
        self._names: dict[tuple[str, int], str] = {}
        self._asns: dict[str, int] = {}
        self._cages: dict[tuple[str, int, str, int], Cage] = {}
        self._globs = {
            name: over for name, over in self.intent.overrides.items() if any(mark in name for mark in "*?[")
        }
        self._matched: set[str] = set()

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
    def pods(self) -> tuple[int, ...]:
        """The pods that have a unit."""
        return tuple(sorted({place.pod for place in self.places}))

    def leaf_name(self, pod: int, unit: int, rail: int) -> str:
        return self._name("leaf", self.numbering.leaf_number(pod, unit, rail), pod=pod, unit=unit, rail=rail)

    def spine_name(self, pod: int, plane: int, slot: int) -> str:
        return self._name("spine", self.numbering.spine_number(pod, plane, slot), pod=pod, plane=plane, slot=slot)

    def core_name(self, plane: int, slot: int) -> str:
        return self._name("core", self.numbering.core_number(plane, slot), plane=plane, slot=slot)

    def host_name(self, place: InstalledUnit, slot: int) -> str:
        given = place.entry.host_names.get(slot)
        number = self.numbering.host_number(place.pod, place.unit, slot)
        return given or self._name("host", number, pod=place.pod, unit=place.unit, slot=slot)

    def _name(self, role: str, number: int, **fields: int) -> str:
        """Cache the name: every port that faces a device repeats it."""
        name = self._names.get((role, number))
        if name is None:
            name = self._names[(role, number)] = self.patterns[role].format(number=number + 1, **fields)
        return name

    def asn(self, role: str, name: str, pod: int, number: int) -> int:
        """Return the AS number of a switch: from its override, else by its number."""
        asn = self._asns.get(name)
        if asn is None:
            own = self.override(name).asn
            asn = self._asns[name] = own if own is not None else self.numbering.asn(role, pod, number)
        return asn

    def cage(self, role: str, number: int, split: Split) -> Cage:
        """Return a cage of a tier's switches, as one shared object."""
        key = (role, number, split.mode, split.lanes_per_port)
        if key not in self._cages:
            naming, model = PLATFORMS[self.hardware.tier(role).platform].port_name, self.hardware.models[role]
            names = tuple(naming(model, split, number, port) for port in range(split.ports))
            self._cages[key] = Cage(number, split, names)
        return self._cages[key]

    def override(self, name: str) -> Override:
        """Merge the overrides of a device; its own entry wins over globs."""
        own = self.intent.overrides.get(name)
        globs = [(glob, over) for glob, over in self._globs.items() if fnmatch.fnmatchcase(name, glob)]
        if own is None and not globs:
            return NO_OVERRIDE
        self._matched.update([name] if own else [], (glob for glob, _ in globs))
        merged: dict[str, object] = {}
        for over in (*(over for _, over in globs), *([own] if own else [])):
            merged.update((key, getattr(over, key)) for key in over.model_fields_set)
        return Override.model_construct(**merged)  # type: ignore[arg-type]  # every value was validated above

    def unmatched(self, names: Collection[str]) -> Iterator[Problem]:
        """Yield the overrides that matched no device; call this with all names once everything is built."""
        for name in self.intent.overrides:
            if name not in self._matched:
                close = difflib.get_close_matches(name, names, 1)
                remedy = "`netkit design --addresses` lists the names once this entry is removed"
                yield Problem(
                    "matches no device", f"did you mean {close[0]}?" if close else remedy, ("overrides", name)
                )

    def profile(self, tier: str, role: PortRole, length_m: float | None) -> PortProfile:
        """Return the profile of a tier's ports of one kind, as one shared object."""
        kind = {
            "host": "host",
            "up": "spine" if tier == "leaf" else "core",
            "down": "core" if tier == "core" else "spine",
        }[role]
        cable = cable_of(self.intent, kind)
        length = cable.length_m if length_m is None else length_m
        key = (tier, role, length)
        if key not in self._profiles:
            hardware, split = self.hardware, self.split(tier, role)
            designed = Cable(cable.media, hardware.media[cable.media].kind, length)
            given = self.intent.lossless.headroom.get(split.speed_gbps)
            given_bytes = given.xoff_bytes if given else None
            room = headroom.choose(hardware.models[tier], split, designed, hardware.mtu_bytes, given_bytes)
            thresholds = lossless.ecn(self.intent.lossless, split.speed_gbps)
            self._profiles[key] = PortProfile(
                role, split, hardware.mtu_bytes, FEC[split.speed_gbps], designed, thresholds, room
            )
        return self._profiles[key]

    def split(self, tier: str, role: PortRole) -> Split:
        """Return the breakout of the cages behind a tier's ports of one kind."""
        split = self.hardware.up_split(tier) if role == "up" else self.hardware.down_split(tier)
        if split is None:
            raise ValueError(f"the {tier} tier has no {role} ports")
        return split
