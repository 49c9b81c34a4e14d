"""Maintenance mode: which ports a quiesced unit takes out of traffic, and by which route map."""

from collections.abc import Iterator
from dataclasses import dataclass

from netkit.lab.personalities.eos.tree import Section

BUILT_IN_UNIT = "System"
BUILT_IN_PROFILE = "Default"


@dataclass(frozen=True, slots=True)
class Drain:
    """One neighbour in maintenance: what is said of its routes, in which direction."""

    profile: str
    route_map: str
    directions: tuple[str, ...] = ("in", "out")


def drained_ports(config: Section, ports: tuple[str, ...]) -> dict[str, Drain]:
    """Return the drained ports; the routed neighbour on each gets what the drain says."""
    maintenance = config.section("maintenance")
    found: dict[str, Drain] = {}
    for (unit,), section in maintenance.sections("unit"):
        if not section.has("quiesce"):
            continue
        if unit == BUILT_IN_UNIT:
            found.update((port, _drain(maintenance, "")) for port in ports)
            continue
        for port, profile in _members(config, section):
            found[port] = _drain(maintenance, profile)
    return found


def units(config: Section) -> Iterator[tuple[str, bool, tuple[str, ...]]]:
    """Yield each unit, whether it is to be in maintenance, and its groups; the built-in one is always there."""
    seen = False
    for (unit,), section in config.section("maintenance").sections("unit"):
        seen = seen or unit == BUILT_IN_UNIT
        groups = tuple(rest[0] for kind in ("bgp", "interface") for rest in section.find("group", kind))
        yield unit, section.has("quiesce"), groups
    if not seen:
        yield BUILT_IN_UNIT, False, ()


def _members(config: Section, unit: Section) -> Iterator[tuple[str, str]]:
    """Yield the ports of a unit, and the BGP profile its group names."""
    for (group,) in unit.find("group", "interface"):
        section = config.section("group", "interface", group)
        for (port,) in section.find("interface"):
            yield port, section.word("maintenance", "profile", "bgp")
    for (group,) in unit.find("group", "bgp"):
        section = config.section("group", "bgp", group)
        for (neighbor,) in section.find("neighbor"):
            for rest in _bgp(config).find("neighbor", "interface"):
                if rest[2] == neighbor:
                    yield rest[0], section.word("maintenance", "profile", "bgp")


def _bgp(config: Section) -> Section:
    return next((section for _, section in config.sections("router", "bgp")), Section("bgp"))


def _drain(maintenance: Section, profile: str) -> Drain:
    """Return what a profile does; without one the default's, without a default what EOS does by itself."""
    default = next((rest[0] for rest in maintenance.find("profile", "bgp") if rest[1:] == ("default",)), "")
    name = profile or default
    found = maintenance.section("profile", "bgp", name).one("initiator", "route-map") if name else None
    if found is None:
        return Drain(name or BUILT_IN_PROFILE, "")
    directions = ("in", "out") if found[1] == "inout" else (found[1],)
    return Drain(name, found[0], directions)
