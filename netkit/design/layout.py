"""Which cage of a switch serves what, and the distance of two NICs.

Positions follow slots and ceilings, so nothing moves when a device comes or goes.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Literal

from netkit.design.fabric import Fabric, Nic, Switch
from netkit.design.hardware_lookup import TOPOLOGY_TIERS, HardwareLookup, Variant
from netkit.errors import Path, Problem
from netkit.hardware import Split, SwitchModel
from netkit.intent.model import SpineTier
from netkit.platforms import PLATFORMS
from netkit.platforms.platform import PortName

NicDistance = Literal["same leaf", "same unit", "across spines", "across cores"]
NIC_DISTANCES: tuple[NicDistance, ...] = ("same leaf", "same unit", "across spines", "across cores")


@dataclass(frozen=True, slots=True)
class Position:
    """A port's place on the front panel, and its name in the NOS."""

    cage: int
    port: int
    name: str


@dataclass(frozen=True, slots=True)
class Layout:
    """The positions of one tier: towards lower devices, and towards higher ones."""

    down: tuple[Position, ...]
    up: tuple[Position, ...]


Layouts = dict[Variant, Layout]
"""Tier, model and NOS → its layout."""


def arrange(hardware: HardwareLookup) -> tuple[Layouts, list[Problem]]:
    """Lay out every model of every tier, and report where its ports do not suffice for the ceilings."""
    layouts: Layouts = {}
    problems: list[Problem] = []
    needs = _needs(hardware)
    for role in TOPOLOGY_TIERS[hardware.intent.topology]:
        down, up = needs[role]
        layouts[hardware.key(role)], found = _arrange_tier(hardware, role, down, up)
        problems += found
        for key, variant in hardware.variants.items():
            if key[0] == role:
                layouts[key], found = _arrange_tier(variant, role, down, up)
                problems += (replace(problem, path=variant.written) for problem in found)
    return layouts, problems


def _needs(hardware: HardwareLookup) -> dict[str, tuple[int, int]]:
    """The ports down and up that each tier needs with every ceiling reached."""
    intent, ceilings = hardware.intent, hardware.intent.ceilings
    spine, core = intent.switches.spine, intent.switches.core
    spine_links = intent.switches.leaf.uplinks_per_spine if spine else 0
    needs = {"leaf": (ceilings.hosts_per_unit, ceilings.spines * spine_links)}
    if spine:
        leaves = ceilings.units * leaves_per_plane(hardware)
        needs["spine"] = (leaves * spine_links, ceilings.cores * spine.uplinks_per_core if core else 0)
    if spine and core:
        spines = ceilings.pods * -(-ceilings.spines // core.planes)
        needs["core"] = (spines * spine.uplinks_per_core, 0)
    return needs


def leaves_per_plane(hardware: HardwareLookup) -> int:
    """How many leaves of a unit share a spine plane."""
    spine = hardware.intent.switches.spine
    return -(-hardware.intent.rails // (spine.planes if spine else 1))


def _arrange_tier(hardware: HardwareLookup, role: str, down: int, up: int) -> tuple[Layout, list[Problem]]:
    model, tier = hardware.models[role], hardware.tier(role)
    naming = PLATFORMS[tier.platform].port_name
    split, up_split = hardware.down_split(role), hardware.up_split(role)
    what = "hosts" if role == "leaf" else "leaves" if role == "spine" else "spines"
    down_key = "host_breakout" if role == "leaf" else "breakout"
    positions = _positions(model, split, 1)
    down_cages = -(-down // split.ports)
    first = getattr(tier, "first_uplink_cage", None) or max(model.cages // 2 + 1, down_cages + 1)
    problems = _too_few(model, split, positions, down, what, ("switches", role, down_key))
    ups: tuple[Position, ...] = ()
    if up_split and up:
        positions = [position for position in positions if position.cage < first]
        below = f"{what} below cage {first}, where the uplinks start"
        problems = _too_few(model, split, positions, down, below, ("switches", role, down_key))
        available = _positions(model, up_split, first)
        above = "spines" if role == "leaf" else "cores"
        above = f"links to {above} from cage {first} on"
        problems += _too_few(model, up_split, available, up, above, ("switches", role, "uplink_breakout"))
        ups = tuple(_named(model, up_split, naming, available[:up]))
    problems += _port_limit(model, split, down, up_split, up, ("switches", role))
    return Layout(tuple(_named(model, split, naming, positions[:down])), ups), problems


def _positions(model: SwitchModel, split: Split, first: int) -> list[Position]:
    return [
        Position(cage, port, "") for cage in split.cages if first <= cage <= model.cages for port in range(split.ports)
    ]


def _named(model: SwitchModel, split: Split, naming: PortName, positions: list[Position]) -> Iterator[Position]:
    for position in positions:
        yield Position(position.cage, position.port, naming(model, split, position.cage, position.port))


def front_panel(hardware: HardwareLookup, role: str, side: str) -> dict[str, Position]:
    """Every port that a switch of a tier could have on a side, by name, whether the design uses it or not."""
    split = hardware.up_split(role) if side == "up" else hardware.down_split(role)
    if split is None:
        return {}
    model, naming = hardware.models[role], PLATFORMS[hardware.tier(role).platform].port_name
    return {position.name: position for position in _named(model, split, naming, _positions(model, split, 1))}


def _too_few(
    model: SwitchModel, split: Split, positions: list[Position], needed: int, what: str, path: Path
) -> list[Problem]:
    if needed <= len(positions):
        return []
    message = f"{model.name} split as {split.mode} has {len(positions)} ports for {what}; the ceilings need {needed}"
    return [Problem(message, "lower the ceilings, split the cages further, or choose a larger model", path)]


def _port_limit(
    model: SwitchModel, split: Split, down: int, up_split: Split | None, up: int, path: Path
) -> list[Problem]:
    ports = -(-down // split.ports) * split.ports + (-(-up // up_split.ports) * up_split.ports if up_split else 0)
    if model.max_ports is None or ports <= model.max_ports:
        return []
    message = f"{model.name} takes {model.max_ports} ports in all, the ceilings need {ports}"
    return [Problem(message, "lower the ceilings, or choose a larger model", (*path, "model"))]


def plane_of_rail(hardware: HardwareLookup, rail: int) -> int:
    """The spine plane of a rail's leaves."""
    spine = hardware.intent.switches.spine
    return rail % spine.planes if spine else 0


def leaf_place(hardware: HardwareLookup, unit: int, rail: int) -> int:
    """The place of a leaf among the leaves below its spines."""
    spine = hardware.intent.switches.spine
    planes = spine.planes if spine else 1
    return (unit - 1) * leaves_per_plane(hardware) + rail // planes


def spine_place(hardware: HardwareLookup, pod: int, slot: int) -> int:
    """The place of a spine among the spines below its core plane."""
    core = hardware.intent.switches.core
    planes = core.planes if core else 1
    return (pod - 1) * -(-hardware.intent.ceilings.spines // planes) + (slot - 1) // planes


def core_plane(hardware: HardwareLookup, slot: int) -> int:
    core = hardware.intent.switches.core
    return (slot - 1) % core.planes if core else 0


def parallel_links(hardware: HardwareLookup, tier: str) -> int:
    """The number of parallel links from each switch of a tier to each one above."""
    if tier == "leaf":
        return hardware.intent.switches.leaf.uplinks_per_spine
    spine: SpineTier | None = hardware.intent.switches.spine
    return spine.uplinks_per_core if spine else 0


def nic_distance(fabric: Fabric, near: Nic, far: Nic) -> NicDistance:
    """The distance of two NICs; those in one unit on two leaves also meet at a spine."""
    one, other = fabric.switch(near.leaf), fabric.switch(far.leaf)
    if one is other:
        return "same leaf"
    if one.pod != other.pod:
        return "across cores"
    return "same unit" if one.unit == other.unit else "across spines"


def is_joined(fabric: Fabric, one: Switch, other: Switch) -> bool:
    """Whether a path connects two leaves: spine planes, and the rails of a rail-only fabric, are separate."""
    ends = one.name, other.name
    if ends not in fabric.joined_leaves:
        fabric.joined_leaves[ends] = one.name == other.name or _is_joined(fabric, one, other)
    return fabric.joined_leaves[ends]


def _is_joined(fabric: Fabric, one: Switch, other: Switch) -> bool:
    above, beyond = _above(one), _above(other)
    if above & beyond or one.pod == other.pod:
        return bool(above & beyond)
    return bool(_tops(fabric, above) & _tops(fabric, beyond))


def _tops(fabric: Fabric, names: frozenset[str]) -> frozenset[str]:
    return frozenset[str]().union(*(_above(fabric.switch(name)) for name in names))


def _above(switch: Switch) -> frozenset[str]:
    return frozenset(port.peer for port in switch.fabric_ports if port.role == "up")
