"""Ports and PCI addresses → models, breakouts and media of the intent."""

from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property

from netkit.adopt.fabric_values import Assumptions, Values
from netkit.adopt.links import FoundLinks
from netkit.adopt.names import natural, some
from netkit.adopt.placement import Placement, slots_of
from netkit.adopt.survey import Survey, SurveyedSwitch
from netkit.design import lossless
from netkit.design.fabric import Cable
from netkit.design.hardware_lookup import version_problems
from netkit.errors import AdoptError, HardwareError, Problem
from netkit.hardware import Catalog, HostModel, Split, SwitchModel
from netkit.platforms import PLATFORMS
from netkit.platforms.existing import ExistingPort, most

TIERS = ("leaf", "spine", "core")
WORDS = {"leaf": "leaves", "spine": "spines", "core": "core switches"}
USUAL_GBPS, USUAL_M = 400, {"host": 30.0, "spine": 50.0, "core": 100.0}
STEPS_PER_M, LONGEST_M = 10, 10_000
ROUND_STEPS = (100, 50, 10, 5, 1)
"""Of a length, from the roundest: 10 m to 0.1 m."""


@dataclass
class HardwareSearch:
    """Finds hardware for what is installed."""

    survey: Survey
    links: FoundLinks
    placement: Placement
    catalog: Catalog
    guesses: Assumptions
    names: dict[tuple[str, str, str], frozenset[str]] = field(default_factory=dict)
    _by_headroom: dict[tuple[str, str, int, int], tuple[float, float] | None] = field(default_factory=dict)

    def tiers(self) -> Values:
        return {role: self._tier(role) for role in TIERS if self.placement.of_role(role)}

    def _switches(self, role: str, platform: str = "") -> list[SurveyedSwitch]:
        """The switches of a tier that run a NOS; by default the one of most of them."""
        found = [self.survey.switches[name] for name in self.placement.of_role(role) if name in self.survey.switches]
        usual = platform or most(switch.platform for switch in found)
        return [switch for switch in found if switch.platform == usual]

    def _tier(self, role: str) -> Values:
        switches = self._switches(role)
        platform, model = self.platform(role), self.model(role)
        if not switches:
            self.guesses.add("switches", f"{role}: {platform}, whose ports have the names that neighbours give")
        values: Values = {
            "model": model.name,
            "platform": platform,
            "version": self._stated_version(switches) or PLATFORMS[platform].newest_version,
        }
        if mode := most(switch.existing.routing_mode for switch in switches if switch.existing.routing_mode != "split"):
            values["routing_mode"] = mode
        if generated := [switch for switch in switches if switch.existing.generated]:
            left = ", ".join("/".join(path) for path in generated[0].existing.generated)
            names = some([switch.name for switch in generated])
            self.guesses.add("switches", f"routing of {names} is made by the NOS: {left} are left as they run")
        down = self.split(role, "down")
        values["host_breakout" if role == "leaf" else "breakout"] = down.mode
        if self.placement.of_role({"leaf": "spine", "spine": "core", "core": ""}[role] or "none"):
            values["uplink_breakout"] = self.split(role, "up").mode
            key = "uplinks_per_spine" if role == "leaf" else "uplinks_per_core"
            values[key] = self._parallel(role)
        if role != "leaf":
            values["slots"] = slots_of(self.placement.places[name].slot for name in self.placement.of_role(role))
            if self.placement.planes > 1 and (role == "core") == (self.placement.topology == "three-tier"):
                values["planes"] = self.placement.planes
        return values

    def platform(self, role: str) -> str:
        """The NOS of a tier; where no switch of it was read, one whose ports have the names others give them."""
        if switches := self._switches(role):
            return switches[0].platform
        names = {port for end in self.sides for name, port in [end] if name in self.placement.of_role(role)}
        usual = self._switches("leaf")[0].platform
        for platform in dict.fromkeys((usual, *PLATFORMS)):
            model = self.catalog.switch(PLATFORMS[platform].starting_point[0])
            if names <= frozenset().union(*(self._ports(model, platform, split) for split in model.splits)):
                return platform
        return usual

    def own_system(self, name: str) -> tuple[str, str] | None:
        """The NOS of one switch and its version, if its tier has another."""
        switch, role = self.survey.switches.get(name), self.placement.places[name].role
        if switch is None or switch.platform == self.platform(role):
            return None
        version = self._stated_version([switch]) or self._stated_version(self._switches(role, switch.platform))
        return switch.platform, version or PLATFORMS[switch.platform].newest_version

    @staticmethod
    def _stated_version(switches: Iterable[SurveyedSwitch]) -> str:
        """The release that most switches name; empty if none does, or netkit does not support it."""
        named = (
            switch.existing.version
            for switch in switches
            if switch.existing.version
            and not any(version_problems(switch.platform, switch.existing.version, switch.existing.routing_mode, ()))
        )
        return most(named) or ""

    def model(self, role: str, platform: str = "") -> SwitchModel:
        """The model that most switches of a tier with one NOS are; by default the usual one of the NOS."""
        platform = platform or self.platform(role)
        switches = self._switches(role, platform)
        votes = Counter(model for switch in switches for model in switch.existing.models)
        if votes:
            return self.catalog.switch(votes.most_common(1)[0][0])
        used = {port for switch in switches for port in self._used(switch)}
        usual = PLATFORMS[platform].starting_point[0]
        for name in dict.fromkeys((usual, *self.catalog.names("switches"))):
            model = self.catalog.switch(name)
            if platform not in model.platforms and not PLATFORMS[platform].runs_on_any_model:
                continue
            if used <= frozenset().union(*(self._ports(model, platform, split) for split in model.splits)):
                self.guesses.add("switches", f"{role}: model {name}, whose ports have these names")
                return model
        model = self.catalog.switch(usual)
        known = frozenset().union(*(self._ports(model, platform, split) for split in model.splits))
        strange = [(switch.name, sorted(self._used(switch) - known, key=natural)) for switch in switches]
        odd = [name for name, ports in strange if ports]
        port, example = next(ports[0] for _, ports in strange if ports), min(known, key=natural)
        message = f"ports of {some(odd)} have names such as {port}, which no model has on {PLATFORMS[platform].title}"
        raise AdoptError(Problem(message, f"ports have names such as {example} there; rename them, or add their model"))

    def own_model(self, name: str) -> str:
        """The model of one switch, if its configuration fits only others than that of its tier."""
        switch, role = self.survey.switches.get(name), self.placement.places[name].role
        usual = self.tier_models[(role, switch.platform if switch else "")]
        if switch is None or not switch.existing.models or usual in switch.existing.models:
            return usual
        return switch.existing.models[0]

    @cached_property
    def tier_models(self) -> Mapping[tuple[str, str], str]:
        """(role, NOS) → its usual model; of switches that were not read, that of the tier."""
        return {
            (role, platform): self.model(role, platform).name
            for role in TIERS
            for names in [self.placement.of_role(role)]
            for platform in (
                "",
                *sorted({self.survey.switches[one].platform for one in names if one in self.survey.switches}),
            )
            if names
        }

    @cached_property
    def sides(self) -> Mapping[tuple[str, str], str]:
        """(switch, port) → down or up."""
        order = {role: number for number, role in enumerate(TIERS)}
        found: dict[tuple[str, str], str] = {link.far: "down" for link in self.links.hosts}
        for link in self.links.switches:
            places = [self.placement.places.get(name) for name in link.devices]
            if None in places:
                continue
            lower = order[places[0].role] < order[places[1].role]  # type: ignore[union-attr]
            found[link.near], found[link.far] = ("up", "down") if lower else ("down", "up")
        return found

    def _used(self, switch: SurveyedSwitch) -> set[str]:
        return {port for port in switch.ports if (switch.name, port) in self.sides}

    def split(self, role: str, side: str) -> Split:
        """How most cages of a side are split; by default from the names of ports."""
        model = self.model(role)
        switches = self._switches(role)
        ports = [
            (switch, switch.ports[port])
            for switch in switches
            for port in self._used(switch)
            if self.sides[(switch.name, port)] == side
        ]
        stated = most(port.split for _, port in ports if port.split)
        if stated and (split := model.split(stated)):
            return split
        platform = self.platform(role)
        other = self._other_end(role, side)
        if not ports and other and self._switches(other[0]):
            same = self.split(*other)
            return model.split(same.mode) or next(one for one in model.splits if one.speed_gbps == same.speed_gbps)
        names, lanes = {port.name for _, port in ports}, most(port.lanes for _, port in ports)
        fitting = [
            split
            for split in model.splits
            if names <= self._ports(model, platform, split)
            and (not stated or split.mode.startswith(stated))
            and lanes in {None, split.lanes_per_port}
        ]
        fastest = max(split.ports * split.speed_gbps for split in model.splits)
        speeds = {port.speed_gbps for _, port in ports} - {None}
        is_host = (role, side) == ("leaf", "down")
        wanted = speeds or ({self.host_speed} if is_host else {fastest // split.ports for split in fitting})
        chosen = next((split for split in fitting if split.speed_gbps in wanted), None)
        if chosen is None:
            chosen = next(iter(fitting), model.splits[0])
        if not speeds:
            towards = "lower devices" if side == "down" else "higher switches"
            self.guesses.add(
                "switches", f"{role}: {chosen.mode} for ports to {towards}; no configuration has their speed"
            )
        return chosen

    def breakout(self, platform: str, model: SwitchModel, usual: Split, port: ExistingPort) -> str:
        """How the cage of a port outside the fabric is split; empty if as usual, or if no breakout has the port."""
        fitting = (
            split
            for split in (usual, *model.splits)
            if port.name in self._ports(model, platform, split)
            and split.mode.startswith(port.split)
            and port.lanes in {None, split.lanes_per_port}
            and port.speed_gbps in {None, split.speed_gbps}
        )
        split = next(fitting, usual)
        return "" if split == usual else split.mode

    @staticmethod
    def _other_end(role: str, side: str) -> tuple[str, str] | None:
        """The tier and the side at the other end of links between switches."""
        place = TIERS.index(role) + (1 if side == "up" else -1)
        return (TIERS[place], "down" if side == "up" else "up") if 0 <= place < len(TIERS) else None

    def ports(self, name: str, side: str) -> list[str]:
        """The ports that a switch has on a side, in order."""
        role, switch = self.placement.places[name].role, self.survey.switches.get(name)
        model, split = self.catalog.switch(self.own_model(name)), self.split(role, side)
        platform = switch.platform if switch else self.platform(role)
        return sorted(self._ports(model, platform, model.split(split.mode) or split), key=natural)

    @cached_property
    def side_speeds(self) -> Mapping[tuple[str, str], int]:
        """(role, side) → speed of most ports there, in Gb/s."""
        roles = {(self.placement.places[name].role, side) for (name, _), side in self.sides.items()}
        return {(role, side): self.split(role, side).speed_gbps for role, side in sorted(roles) if role in TIERS}

    def speed_of(self, switch: str, port: ExistingPort) -> int | None:
        """The speed of a port in Gb/s: its own, else that of others of its side; None if it is not in use."""
        place, side = self.placement.places.get(switch), self.sides.get((switch, port.name))
        return port.speed_gbps or (self.side_speeds.get((place.role, side)) if place and side else None)

    def _ports(self, model: SwitchModel, platform: str, split: Split) -> frozenset[str]:
        key = (model.name, platform, split.mode)
        if key not in self.names:
            name = PLATFORMS[platform].port_name
            try:
                self.names[key] = frozenset(
                    name(model, split, cage, port)
                    for cage in split.cages
                    if cage <= model.cages
                    for port in range(split.ports)
                )
            except (HardwareError, KeyError):
                self.names[key] = frozenset()
        return self.names[key]

    def _parallel(self, role: str) -> int:
        """The most links from a switch of a tier to one above."""
        roles = {name: place.role for name, place in self.placement.places.items()}
        lower = {
            link: next((end[0] for end in (link.near, link.far) if self.sides.get(end) == "up"), "")
            for link in self.links.switches
        }
        counts = Counter(frozenset(link.devices) for link, name in lower.items() if roles.get(name) == role)
        return max(counts.values(), default=1)

    # --- hosts and cables -------------------------------------------------------------------------------------------

    @cached_property
    def host_model(self) -> HostModel:
        return self.catalog.host(self._host_name())

    @property
    def host_speed(self) -> int:
        return self.host_model.speed_gbps

    def _host_name(self) -> str:
        votes = Counter(model for host in self.survey.hosts.values() for model in host.existing.models)
        if votes:
            return votes.most_common(1)[0][0]
        speed = most(
            switch.ports[port].speed_gbps
            for switch in self.survey.switches.values()
            for port in switch.host_ports
            if port in switch.ports
        )
        names = self.catalog.names("hosts")
        likely = speed or self._undivided_gbps() or USUAL_GBPS
        fitting = [name for name in names if self.catalog.host(name).speed_gbps == likely]
        with_rails = [name for name in fitting if len(self.catalog.host(name).rails) >= self.placement.rails]
        chosen = next(iter((*with_rails, *fitting, *names)))
        is_read = any(nic.pci for host in self.survey.hosts.values() for nic in host.existing.nics)
        why = "no model has NICs at the PCI addresses that were read" if is_read else "no PCI address of NICs was read"
        self.guesses.add("hosts", f"model {chosen}: {why}")
        return chosen

    def _undivided_gbps(self) -> int | None:
        """The speed of the cages towards hosts, if the names of their ports show that none is split."""
        model, platform = self.model("leaf"), self.platform("leaf")
        used = {(name, port) for (name, port), side in self.sides.items() if side == "down"}
        names = {port for switch in self._switches("leaf") for port in switch.ports if (switch.name, port) in used}
        fitting = [split for split in model.splits if names <= self._ports(model, platform, split)]
        return max(split.speed_gbps for split in fitting) if {split.ports for split in fitting} == {1} else None

    def own_host_model(self, name: str) -> str:
        host, usual = self.survey.hosts.get(name), self.host_model.name
        if host is None or not host.existing.models or usual in host.existing.models:
            return usual
        return host.existing.models[0]

    def hosts(self) -> Values:
        """The model and settings that most hosts have."""
        every = list(self.survey.hosts.values())
        values: Values = {"model": self.host_model.name}
        known = [nic.pci for nic in self.host_model.rails]
        if own := self._pci(known):
            values["pci"] = own
        mtu = most(nic.mtu_bytes for host in every for nic in host.existing.nics)
        backend = most(host.existing.backend or None for host in every)
        interface = most(host.existing.management_interface or None for host in every)
        rails = {link.near: self.placement.places[link.far[0]].rail for link in self.links.hosts}
        base = most(
            table - rails[(host.name, rail.interface)]
            for host in every
            for rail in host.routes.rails
            if (host.name, rail.interface) in rails
            for _, table in rail.tables
        )
        values |= {
            key: value
            for key, value in {
                "mtu_bytes": mtu,
                "backend": backend,
                "management_interface": interface,
                "table_base": base,
            }.items()
            if value is not None
        }
        return values

    def _pci(self, known: list[str]) -> list[str]:
        """The PCI addresses in the order of rails, where those of the model are missing or others."""
        rails = {link.near: self.placement.places[link.far[0]].rail for link in self.links.hosts}
        found = {
            rail: most(
                nic.pci or None
                for host in self.survey.hosts.values()
                for nic in host.existing.nics
                if rails.get((host.name, nic.interface)) == rail
                and (not host.existing.models or self.host_model.name in host.existing.models)
            )
            for rail in range(self.placement.rails)
        }
        if any(found.values()):
            wanted = [pci or (known[rail] if rail < len(known) else "") for rail, pci in found.items()]
            return [] if wanted == known[: len(wanted)] or not all(wanted) else [str(pci) for pci in wanted]
        if len(known) >= self.placement.rails:
            return []
        self.guesses.add("hosts", "pci: placeholders, since neither the files nor the model have them")
        return [f"0000:{rail + 1:02x}:00.0" for rail in range(self.placement.rails)]

    def cables(self) -> Values:
        """Media that fit the ports, and the longest cable that most ports are set for."""
        kinds = {"host": ("leaf", "down")}
        if self.placement.of_role("spine"):
            kinds["spine"] = ("leaf", "up")
        if self.placement.of_role("core"):
            kinds["core"] = ("spine", "up")
        values: Values = {}
        for kind, (role, side) in kinds.items():
            split = self.split(role, side)
            length = self.usual_length(kind)
            if length is None:
                length = USUAL_M[kind]
                self.guesses.add("cables", f"{kind}: {length:g} m, which decides the PFC headroom")
            values[kind] = {
                "media": self._media(kind, split, length),
                "length_m": int(length) if length == int(length) else length,
            }
        return values

    def usual_length(self, kind: str) -> float | None:
        """The length of most cables of a kind."""
        if kind == "host":
            return most(self.length((link.far,)) for link in self.links.hosts)
        upper = "spine" if kind == "spine" else "core"
        roles = {name: place.role for name, place in self.placement.places.items()}
        return most(
            self.length((link.near, link.far))
            for link in self.links.switches
            if upper in (ends := {roles.get(name) for name in link.devices}) and ("core" in ends) == (upper == "core")
        )

    def length(self, ends: Iterable[tuple[str, str]]) -> float | None:
        """The length that a cable is set for: the shortest of its ends, as some NOSes have one for all ports."""
        found = [one for one in map(self._lengths_at, ends) if one]
        if not found:
            return None
        first, longest = min(found, key=lambda one: one[1])
        return longest if any(low == high for low, high in found) else _roundest(first, longest)

    def _lengths_at(self, end: tuple[str, str]) -> tuple[float, float] | None:
        """The shortest and longest cable that a port is set for; where it only has headroom, those with it."""
        switch = self.survey.switches.get(end[0])
        port = switch.ports.get(end[1]) if switch else None
        if port and port.cable_m is not None:
            return port.cable_m, port.cable_m
        if port is None or not port.xoff_bytes or end not in self.sides:
            return None
        role = self.placement.places[end[0]].role
        split, name = self.split(role, self.sides[end]), self.own_model(end[0])
        key = (name, split.mode, port.xoff_bytes, port.mtu_bytes or 0)
        if key not in self._by_headroom:
            model = self.catalog.switch(name)
            self._by_headroom[key] = _lengths_with(model, split, port.mtu_bytes or 0, port.xoff_bytes)
        return self._by_headroom[key]

    def _media(self, kind: str, split: Split, length: float) -> str:
        fitting = [
            media
            for media in self.catalog.media().values()
            if (media.speed_gbps, media.ports_per_module) == (split.speed_gbps, split.ports)
            and (media.reach_m is None or media.reach_m >= length)
        ]
        optical = [media for media in fitting if media.kind == "optical"]
        if not fitting:
            message = f"no media is known for cages split as {split.mode} and {length:g} m"
            raise AdoptError(Problem(message, "describe the media in models/media.yaml of the current folder"))
        chosen = (optical or fitting)[0].name
        self.guesses.add("cables", f"{kind}: media {chosen}")
        return chosen


def _lengths_with(model: SwitchModel, split: Split, mtu_bytes: int, xoff_bytes: int) -> tuple[float, float] | None:
    """The shortest and the longest cable with a headroom; None if there is none."""

    def xoff(step: int) -> int:
        found = lossless.choose(model, split, Cable("", "", step / STEPS_PER_M), mtu_bytes, None)
        return found.xoff_bytes if found else 0

    steps = range(1, LONGEST_M * STEPS_PER_M + 1)
    first = bisect_left(steps, xoff_bytes, key=xoff) + 1
    last = bisect_right(steps, xoff_bytes, key=xoff)
    return (first / STEPS_PER_M, last / STEPS_PER_M) if first <= last else None


def _roundest(first: float, last: float) -> float:
    """The length in a range with the fewest digits, the shortest of several."""
    for unit in ROUND_STEPS:
        steps = -(-round(first * STEPS_PER_M) // unit) * unit
        if steps <= round(last * STEPS_PER_M):
            return steps / STEPS_PER_M
    return first
