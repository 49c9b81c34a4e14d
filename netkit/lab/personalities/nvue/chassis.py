"""The switch below the configuration: which ports it has once its cages are broken out."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from netkit.hardware import Split, SwitchModel
from netkit.lab.personalities.nvue.schema import version_key
from netkit.lab.personalities.nvue.tree import Tree, child

CAGE = re.compile(r"swp(\d+)")
SUBPORT = re.compile(r"swp(\d+)s(\d)")


@dataclass(frozen=True, slots=True)
class Chassis:
    """A switch model with a release of Cumulus Linux on it."""

    model: SwitchModel
    release: str

    @property
    def version(self) -> tuple[int, ...]:
        """Return the release as numbers to compare."""
        return version_key(self.release)

    def split(self, ways: int, speed_gbps: int = 0) -> Split | None:
        """Return how the model splits a cage this many ways; without a speed, the fastest way."""
        found = [split for split in self.model.splits if split.ports == ways and speed_gbps in {0, split.speed_gbps}]
        return max(found, key=lambda split: split.speed_gbps, default=None)

    def speeds(self, ways: int) -> frozenset[int]:
        """Return the speeds ports have when a cage is split this many ways."""
        return frozenset(split.speed_gbps for split in self.model.splits if split.ports == ways)


def breakout(interfaces: Tree, cage: str) -> str:
    """Return the breakout a cage is configured for: 1x when there is none."""
    return next(iter(child(interfaces, cage, "link", "breakout")), "1x")


def ways(mode: str) -> int:
    """Return how many ports a breakout makes; none when the cage is disabled."""
    return 0 if mode == "disabled" else int(mode.removesuffix("x"))


def port_ways(interfaces: Tree, chassis: Chassis) -> Mapping[str, int]:
    """Return every port the switch has with this configuration, and how many ways its cage is split."""
    return dict(_ports(interfaces, chassis))


def _ports(interfaces: Tree, chassis: Chassis) -> Iterator[tuple[str, int]]:
    for number in range(1, chassis.model.cages + 1):
        cage = f"swp{number}"
        count = ways(breakout(interfaces, cage))
        if count == 1:
            yield cage, 1
        else:
            yield from ((f"{cage}s{sub}", count) for sub in range(count))


def cage_of(port: str) -> str:
    """Return the cage a port is in."""
    found = CAGE.match(port)
    return found[0] if found else port


def blocked_cages(interfaces: Tree, chassis: Chassis) -> Iterator[tuple[str, str]]:
    """Yield each cage that a neighbour's breakout needs disabled, and that neighbour."""
    for name in interfaces:
        found = CAGE.fullmatch(name)
        split = chassis.split(ways(breakout(interfaces, name))) if found else None
        if found and split and split.blocks_next_cage:
            yield f"swp{int(found[1]) + 1}", name
