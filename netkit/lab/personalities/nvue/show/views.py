"""Which view answers which path; `*` stands for a name, and the limits after `@` for releases."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress

from netkit.lab.personalities.nvue.schema import is_within
from netkit.lab.personalities.nvue.show import counters, interface, phy, routing
from netkit.lab.personalities.nvue.show.look import NvueShowContext, Shown
from netkit.lab.personalities.nvue.system import NvueCommandError, NvueSystem

View = Callable[[NvueShowContext], Shown]
VIEWS: tuple[tuple[str, View], ...] = (
    ("interface", interface.interfaces),
    ("interface lldp", interface.all_ports),
    ("interface qos-congestion-control @>=5.14", interface.aspect("qos-congestion-control")),
    ("interface qos-roce-counters @>=5.14", interface.aspect("qos-roce-counters")),
    ("interface qos-roce-status @>=5.14", interface.aspect("qos-roce-status")),
    ("interface *", interface.interface),
    ("interface * counters qos", counters.qos_counters),
    ("interface * link phy health @>=5.15", phy.health),
    ("interface * link phy-detail @<5.15", phy.health),
    ("interface * qos congestion-control", counters.port_ecn),
    ("interface * qos pfc-watchdog", counters.watchdog),
    ("interface * qos roce counters", counters.roce_counters),
    ("interface * qos roce status", counters.port_roce),
    ("platform", phy.platform),
    ("platform transceiver", phy.all_modules),
    ("qos", counters.whole),
    ("qos roce", counters.roce),
    ("system", phy.system),
    ("vrf default router bfd peers @>=5.15", routing.bfd_peers),
    ("vrf default router bgp neighbor", routing.neighbors),
    ("vrf default router rib ipv4 route", routing.table),
)
"""What lies below a view is found in what the view shows."""

ASPECTS: Mapping[str, frozenset[str]] = {
    "interface": frozenset({*interface.PER_PORT, "lldp"}),
    "vrf default router bgp neighbor": frozenset({"brief", "detail"}),
}
"""What `--view` may ask of a path."""


def find(words: Sequence[str], version: tuple[int, ...]) -> tuple[View, tuple[str, ...]] | None:
    """Return the view of a path and the names the path holds."""
    for said, view in VIEWS:
        pattern, *limits = said.split(" @")
        steps = pattern.split()
        if len(steps) != len(words) or not all(is_within(version, limit) for limit in limits):
            continue
        if all(step in {"*", word} for step, word in zip(steps, words, strict=True)):
            return view, tuple(word for step, word in zip(steps, words, strict=True) if step == "*")
    return None


def found_below(system: NvueSystem, path: Sequence[str]) -> object:
    """Return what the nearest view above a path shows there; None when none shows it."""
    for length in range(len(path) - 1, 0, -1):
        found = find(path[:length], system.chassis.version)
        if found:
            shown: object = found[0](NvueShowContext(system, found[1]))
            for word in path[length:]:
                shown = shown.get(word) if isinstance(shown, Mapping) else None
            return shown
    return None


Steps = tuple[str, ...]


def included(system: NvueSystem, path: Sequence[str], patterns: Sequence[str], whole: Callable[[], object]) -> object:
    """Return the parts of an object that some patterns name; a part of ports that has a view is told by that view."""
    look, result = NvueShowContext(system), dict[str, object]()
    for steps in _steps(patterns):
        own = dict(_parts(look, steps[1:])) if tuple(path) == ("interface",) and steps[:1] == ("*",) else {}
        _add(result, own or _only(whole(), [steps]))
    return result


def _parts(look: NvueShowContext, steps: Steps) -> Iterator[tuple[str, object]]:
    """Yield what each port tells by the view of one part, in its place in the tree."""
    found = find(("interface", "*", *steps), look.system.chassis.version)
    for name in look.interfaces if found else ():
        with suppress(NvueCommandError):  # of what has no such part
            part: object = found[0](look.at(name)) if found else {}
            for word in reversed(steps):
                part = {word: part}
            yield name, part


def _add(result: dict[str, object], more: object) -> None:
    """Add parts to others."""
    for key, value in more.items() if isinstance(more, Mapping) else ():
        before = result.setdefault(key, value)
        if before is not value and isinstance(before, Mapping):
            result[key] = merged = dict(before)
            _add(merged, value)


def only(found: object, patterns: Sequence[str]) -> object:
    """Return the parts that one of some patterns names; all of it when there are none."""
    return _only(found, list(_steps(patterns)))


def _steps(patterns: Sequence[str]) -> Iterator[Steps]:
    yield from (tuple(filter(None, pattern.split("/"))) for one in patterns for pattern in one.split(","))


def _only(found: object, patterns: Sequence[Steps]) -> object:
    if not patterns or not isinstance(found, Mapping) or any(not pattern for pattern in patterns):
        return found
    result: dict[str, object] = {}
    for key, value in found.items():
        rest_of = [pattern[1:] for pattern in patterns if pattern[0] in {"*", key}]
        kept = _only(value, rest_of) if rest_of else {}
        if rest_of and (kept != {} or value == {}):
            result[key] = kept
    return result
