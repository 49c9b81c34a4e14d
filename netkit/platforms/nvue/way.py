"""How changes get onto a switch that runs NVUE, and what that costs."""

import re
from collections.abc import Iterable, Iterator

from netkit.platforms.change import NOTHING, Change, Constraint, Strategy
from netkit.platforms.compare import Situation
from netkit.platforms.config import Config, Path
from netkit.platforms.platform import version_key

SUB_PORT = re.compile(r"(swp\d+)s\d+")

# What applying a branch does beside the change itself (Cumulus Linux user guide: Quality of Service, Adaptive Routing,
# BFD). Unverified on a switch. Of one branch the first that fits holds.
COSTS: dict[Path, str] = {
    ("qos", "pfc-watchdog"): "PFC watchdog: switchd reloads",
    ("qos",): "QoS: switchd reloads, with a moment of loss on every port",
    ("router", "bfd", "state"): "BFD on or off: FRR restarts, and every BGP session with it",
    ("router", "adaptive-routing"): "adaptive routing: switchd reloads, with a moment of loss on every port",
}
RESTARTING_SWITCHD = "adaptive routing: up to 5.12 switchd restarts, and traffic stops for seconds"
LAST_RESTARTING = (5, 12)


def way(situation: Situation) -> Strategy:
    """Return how the changes are made: one patch, or two where ports of a cage go away."""
    if not situation.changes:
        return Strategy(NOTHING)
    cages = sorted(joined_cages(situation.changes, situation.running))
    patch = "nv config patch, nv config apply with a timed revert, confirm"
    steps: tuple[str, ...] = (patch,)
    if cages:
        named = ", ".join(cages)
        first = f"remove the ports of {named} and apply"
        steps = (first, f"change the breakout of {named} with all the rest: {patch}")
    return Strategy("patch", steps, tuple(_costs(situation)))


def joined_cages(changes: Iterable[Change], running: Config) -> set[str]:
    """Return cages whose breakout changes while their ports are configured; NVUE wants the ports gone before."""
    broken = {change.path[1] for change in changes if is_breakout(change) and not change.is_addition}
    ports = (SUB_PORT.fullmatch(path[1]) for path in running if path[0] == "interface")
    return broken & {port[1] for port in ports if port}


def is_breakout(change: Change) -> bool:
    """Whether a change is of how the cage of a port is split."""
    return change.path[0] == "interface" and change.path[2:4] == ("link", "breakout")


def _costs(situation: Situation) -> Iterator[str]:
    paths = (_device_wide(change.path) for change in situation.changes)
    heads = {next((head for head in COSTS if path[: len(head)] == head), None) for path in paths}
    for head, cost in COSTS.items():
        if head in heads:
            restarts = head[1:] == ("adaptive-routing",) and version_key(situation.version)[:2] <= LAST_RESTARTING
            yield RESTARTING_SWITCHD if restarts else cost


def _device_wide(path: Path) -> Path:
    return path[2:] if path[0] == "interface" else path


def limits() -> Iterator[Constraint]:
    """Yield what changes cost, and what is refused."""
    for path, cost in COSTS.items():
        yield Constraint(" ".join(path), cost.partition(": ")[2])
    yield Constraint("interface * link breakout", "two applies when ports of the cage are configured")
