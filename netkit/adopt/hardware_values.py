"""Ports and PCI addresses → models, breakouts and media of the intent."""

from bisect import bisect_left, bisect_right
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from netkit.adopt.fabric_values import Assumptions, Values
from netkit.adopt.links import FoundLinks
from netkit.adopt.names import natural, some
from netkit.adopt.placement import Placement, slots_of
from netkit.adopt.survey import Survey, SurveyedHost, SurveyedSwitch
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


Unit = tuple[int, int]
"""Pod and number."""
SwitchPort = tuple[SurveyedSwitch, ExistingPort]


@dataclass
class HardwareSearch:
    """Finds hardware for what is installed."""

    survey: Survey
    links: FoundLinks
    placement: Placement
    catalog: Catalog
    guesses: Assumptions
    names: dict[tuple[str, str, str], frozenset[str]] = field(default_factory=dict)
    _unit_models: dict[Unit, HostModel] = field(default_factory=dict)
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

    @cached_property
    def unit_splits(self) -> Mapping[Unit, Split]:
        """How the leaves of units split cages towards hosts, where those have another speed than most."""
        usual, ports = self.split("leaf", "down"), defaultdict[Unit, list[ExistingPort]](list)
        for name, port in (link.far for link in self.links.hosts):
            switch = self.survey.switches.get(name)
            if switch and port in switch.ports and (unit := self._unit(name)):
                ports[unit].append(switch.ports[port])
        known = self._ports(self.model("leaf"), self.platform("leaf"), usual)
        return {
            unit: split
            for unit, found in ports.items()
            if most(port.speed_gbps for port in found) not in {None, usual.speed_gbps}
            or not {port.name for port in found} <= known
            if (split := self.split("leaf", "down", unit)) != usual
        }

    def _unit(self, name: str) -> Unit | None:
        """The unit of a leaf or host."""
        place = self.placement.places.get(name)
        return (place.pod, place.unit) if place and place.role in {"leaf", "host"} else None

    def _unit_text(self, unit: Unit) -> str:
        pods = {place.pod for place in self.placement.places.values()}
        return f"unit {unit[1]}" + (f" of pod {unit[0]}" if len(pods) > 1 else "")

    def split_at(self, name: str, side: str) -> Split:
        """How a switch splits the cages of a side."""
        key, unit = (self.placement.places[name].role, side), self._unit(name)
        if unit in self.unit_splits and unit and side == "down":
            return self.unit_splits[unit]
        return self._side_splits.get(key) or self.split(*key)

    def split(self, role: str, side: str, unit: Unit | None = None) -> Split:
        """How most cages of a side are split, of all or of a unit; by default from the names of ports."""
        model = self.model(role)
        switches = [one for one in self._switches(role) if unit in {None, self._unit(one.name)}]
        ports = [
            (switch, switch.ports[port])
            for switch in switches
            for port in self._used(switch)
            if self.sides[(switch.name, port)] == side
        ]
        is_host = (role, side) == ("leaf", "down")
        if is_host and unit is None:
            ports = self._usual_ports(ports)
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
        host = self.unit_model(unit) if unit else self.host_model
        wanted = speeds or ({host.speed_gbps} if is_host else {fastest // split.ports for split in fitting})
        chosen = next((split for split in fitting if split.speed_gbps in wanted), None)
        if chosen is None:
            chosen = next(iter(fitting), model.splits[0])
        if not speeds:
            lower = f"hosts of {self._unit_text(unit)}" if unit else "lower devices"
            towards = lower if side == "down" else "higher switches"
            self.guesses.add(
                "switches", f"{role}: {chosen.mode} for ports to {towards}; no configuration has their speed"
            )
        return chosen

    def _usual_ports(self, ports: list[SwitchPort]) -> list[SwitchPort]:
        """The ports of units with the speed of most; those of one unit if no breakout has all of them."""
        units, speed = defaultdict[Unit | None, list[SwitchPort]](list), most(port.speed_gbps for _, port in ports)
        for switch, port in ports:
            units[self._unit(switch.name)].append((switch, port))
        alike = [found for found in units.values() if most(port.speed_gbps for _, port in found) == speed]
        usual = [one for found in alike for one in found]
        model, platform, names = self.model("leaf"), self.platform("leaf"), {port.name for _, port in usual}
        is_one = any(names <= self._ports(model, platform, split) for split in model.splits)
        return usual if is_one else max(units.values(), key=len)

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
        model, split = self.catalog.switch(self.own_model(name)), self.split_at(name, side)
        platform = switch.platform if switch else self.platform(role)
        return sorted(self._ports(model, platform, model.split(split.mode) or split), key=natural)

    @cached_property
    def _side_splits(self) -> Mapping[tuple[str, str], Split]:
        """(role, side) → how most cages there are split."""
        roles = {(self.placement.places[name].role, side) for (name, _), side in self.sides.items()}
        return {(role, side): self.split(role, side) for role, side in sorted(roles) if role in TIERS}

    def speed_of(self, switch: str, port: ExistingPort) -> int | None:
        """The speed of a port in Gb/s: its own, else that of others of its side; None if it is not in use."""
        side = self.sides.get((switch, port.name))
        is_placed = switch in self.placement.places and side is not None
        return port.speed_gbps or (self.split_at(switch, str(side)).speed_gbps if is_placed else None)

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

    def unit_model(self, unit: Unit) -> HostModel:
        """The model of most hosts of a unit."""
        if unit not in self._unit_models:
            self._unit_models[unit] = self.catalog.host(self._host_name(unit))
        return self._unit_models[unit]

    def _host_name(self, unit: Unit | None = None) -> str:
        hosts = [host for host in self.survey.hosts.values() if unit in {None, self._unit(host.name)}]
        votes = Counter(model for host in hosts for model in host.existing.models)
        if votes:
            return votes.most_common(1)[0][0]
        speed = most(
            switch.ports[port].speed_gbps
            for switch in self.survey.switches.values()
            if unit in {None, self._unit(switch.name)}
            for port in switch.host_ports
            if port in switch.ports
        )
        names = self.catalog.names("hosts")
        likely = speed or self._undivided_gbps(unit) or USUAL_GBPS
        fitting = [name for name in names if self.catalog.host(name).speed_gbps == likely]
        with_rails = [name for name in fitting if len(self.catalog.host(name).rails) >= self.placement.rails]
        chosen = next(iter((*with_rails, *fitting, *names)))
        is_read = any(nic.pci for host in hosts for nic in host.existing.nics)
        why = "no model has NICs at the PCI addresses that were read" if is_read else "no PCI address of NICs was read"
        self.guesses.add("hosts", f"model {chosen}: {why}")
        return chosen

    def _undivided_gbps(self, unit: Unit | None) -> int | None:
        """The speed of the cages towards hosts, if the names of their ports show that none is split."""
        model, platform = self.model("leaf"), self.platform("leaf")
        ends = ((name, port) for (name, port), side in self.sides.items() if side == "down")
        used = {(name, port) for name, port in ends if unit in {None, self._unit(name)}}
        names = {port for switch in self._switches("leaf") for port in switch.ports if (switch.name, port) in used}
        fitting = [split for split in model.splits if names <= self._ports(model, platform, split)]
        return max(split.speed_gbps for split in fitting) if {split.ports for split in fitting} == {1} else None

    def own_host_model(self, name: str) -> str:
        host, unit = self.survey.hosts.get(name), self._unit(name)
        usual = (self.unit_model(unit) if unit in self.unit_splits and unit else self.host_model).name
        if host is None or not host.existing.models or usual in host.existing.models:
            return usual
        return host.existing.models[0]

    def hosts(self) -> Values:
        """The model and settings that most hosts have."""
        every = list(self.survey.hosts.values())
        values: Values = {"model": self.host_model.name}
        if own := self._pci(self.host_model, every):
            values["pci"] = own
        by_model: dict[str, list[SurveyedHost]] = {self.unit_model(unit).name: [] for unit in self.unit_splits}
        for host in every:
            if (unit := self._unit(host.name)) and unit in self.unit_splits:
                by_model[self.unit_model(unit).name].append(host)
        pci = {name: self._pci(self.catalog.host(name), hosts) for name, hosts in by_model.items()}
        if others := {name: own for name, own in pci.items() if own and name != self.host_model.name}:
            values["pci_by_model"] = others
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

    def _pci(self, model: HostModel, hosts: Sequence[SurveyedHost]) -> list[str]:
        """The PCI addresses in the order of rails, where those of the model are missing or others."""
        known = [nic.pci for nic in model.rails]
        rails = {link.near: self.placement.places[link.far[0]].rail for link in self.links.hosts}
        found = {
            rail: most(
                nic.pci or None
                for host in hosts
                for nic in host.existing.nics
                if rails.get((host.name, nic.interface)) == rail
                and (not host.existing.models or model.name in host.existing.models)
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

    def of_unit(self, unit: Unit) -> Values:
        """What a unit has of its own towards hosts."""
        if (split := self.unit_splits.get(unit)) is None:
            return {}
        own: Values = {
            "host_breakout": split.mode,
            "host_media": self._media(
                f"host of {self._unit_text(unit)}", split, self.usual_length("host") or USUAL_M["host"]
            ),
        }
        model = self.unit_model(unit).name
        return own if model == self.host_model.name else {"host_model": model, **own}

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
        split, name = self.split_at(end[0], self.sides[end]), self.own_model(end[0])
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
