"""Random valid intents for property tests: small fabrics of every topology, with gaps in every kind of slot."""

from typing import Any

from hypothesis import strategies as st

PLATFORMS: dict[str, dict[str, str]] = {
    "nvue": {"model": "SN5600", "platform": "nvue", "version": "5.16.1"},
    "sonic": {"model": "SN5600", "platform": "sonic", "version": "202411"},
    "eos": {"model": "DCS-7060X6-64PE", "platform": "eos", "version": "4.35.1F"},
    "frr": {"model": "SN5600", "platform": "frr", "version": "8.4.4"},
}
CEILINGS = {"units": 5, "hosts_per_unit": 6, "spines": 5, "pods": 3, "cores": 4}
Values = dict[str, Any]


def slots(ceiling: int) -> st.SearchStrategy[str]:
    """A strategy of slot lists up to a ceiling, such as `1,3`."""
    chosen = st.sets(st.integers(1, ceiling), min_size=1)
    return chosen.map(lambda found: ",".join(map(str, sorted(found))))


LOOPBACKS_V6 = {"loopbacks_v6": "2001:db8:255::/64"}
MANAGEMENT = {"pool": "198.18.0.0/20", "gateway": "198.18.0.1"}
MANAGEMENT_V6 = {"pool_v6": "2001:db8:18::/64", "gateway_v6": "2001:db8:18::1"}


@st.composite
def units(draw: st.DrawFn, ceilings: dict[str, int], rails: int, *, single: bool) -> list[Values]:
    """Entries for some of the possible units, in any order."""
    places = [(pod, number) for pod in range(1, ceilings["pods"] + 1) for number in range(1, ceilings["units"] + 1)]
    count = 1 if single else min(len(places), 4)
    chosen = draw(st.lists(st.sampled_from(places), min_size=1, max_size=count, unique=True))
    return [draw(unit(pod, number, ceilings, rails)) for pod, number in chosen]


@st.composite
def unit(draw: st.DrawFn, pod: int, number: int, ceilings: dict[str, int], rails: int) -> Values:
    """One unit: some hosts, all rails or some of them."""
    entry: Values = {"pod": pod, "unit": number, "hosts": draw(slots(ceilings["hosts_per_unit"]))}
    if draw(st.booleans()):
        some = draw(st.sets(st.integers(0, rails - 1), min_size=1))
        entry["rails"] = ",".join(map(str, sorted(some)))
    if draw(st.integers(0, 3)) == 0:
        entry["host_cable_m"] = draw(st.sampled_from([5, 45.5, 120]))
    return entry


@st.composite
def intents(draw: st.DrawFn, topologies: tuple[str, ...] = ("two-tier", "three-tier", "rail-only")) -> Values:
    """The values of a valid intent."""
    topology = draw(st.sampled_from(topologies))
    ceilings = {key: draw(st.integers(1, largest)) for key, largest in CEILINGS.items()}
    if topology != "three-tier":
        ceilings |= {"pods": 1, "cores": 0}
    if topology == "rail-only":
        ceilings["spines"] = 0
    if draw(st.integers(0, 3)) == 0:
        ceilings["addresses_per_nic"] = draw(st.sampled_from([2, 5, 6, 20]))
    rails = draw(st.integers(1, 8))
    tiers = draw(switches(topology, ceilings, rails))
    has_planes = tiers.get("spine", {}).get("planes", 1) > 1
    is_blocked = topology == "rail-only" or has_planes
    numbered: list[Values] = [] if topology == "rail-only" else [{"links": "10.8.0.0/14"}]
    return {
        "name": "random",
        "purpose": "lab" if any(tier["platform"] == "frr" for tier in tiers.values()) else "production",
        "topology": topology,
        "rails": rails,
        "attachment": draw(st.sampled_from(["p2p", "vlan"])),
        "host_routes": draw(st.sampled_from(["per-leaf", "supernet"])),
        "cross_rail": "blocked" if is_blocked else draw(st.sampled_from(["routed", "blocked"])),
        "ceilings": ceilings,
        "switches": tiers,
        "hosts": {"model": "dgx-h100", "mtu_bytes": draw(st.sampled_from([4200, 9000, 9214]))},
        "units": draw(units(ceilings, rails, single=topology == "rail-only")),
        "cables": {
            kind: {"media": "800G-2xDR4", "length_m": draw(st.sampled_from([3, 30, 100]))}
            for kind in ("host", "spine", "core")
        },
        "pools": {
            "loopbacks": "10.255.0.0/20",
            "hosts": "10.128.0.0/12",
            "first_vlan": draw(st.integers(2, 900)),
            **draw(st.sampled_from([{}, LOOPBACKS_V6, {**LOOPBACKS_V6, "hosts_v6": "2001:db8:128::/48"}, *numbered])),
        },
        "management": draw(st.sampled_from([None, MANAGEMENT, {**MANAGEMENT, **MANAGEMENT_V6}])),
        "routing": {"spine_asn": draw(st.sampled_from(["shared", "unique"]))},
    }


@st.composite
def guarded(draw: st.DrawFn, of: st.SearchStrategy[Values]) -> Values:
    """An intent with a list of management sources, if it has no IPv6."""
    values = draw(of)
    management = values["management"]
    if management is None or "pool_v6" in management or "loopbacks_v6" in values["pools"]:
        return values
    networks = st.sampled_from(["198.18.0.0/20", "203.0.113.0/24", "192.0.2.7/32", "10.0.0.0/8"])
    return {**values, "management": {**management, "allow": draw(st.lists(networks, unique=True, max_size=3))}}


def of_ipv4(values: Values) -> Values:
    """The values without those that make a fabric route IPv6 too."""
    kept = ("pools", "management")
    left = {key for part in kept for key in values[part] or {} if "_v6" in key}
    plain = {part: {key: value for key, value in (values[part] or {}).items() if key not in left} for part in kept}
    return {**values, **plain, "management": plain["management"] or None}


@st.composite
def switches(draw: st.DrawFn, topology: str, ceilings: dict[str, int], rails: int) -> dict[str, Values]:
    """The tiers of a topology, each on its own platform."""
    platform = st.sampled_from(sorted(PLATFORMS)).map(lambda name: dict(PLATFORMS[name]))
    tiers: dict[str, Values] = {"leaf": {**draw(platform), "host_breakout": "2x400G"}}
    if topology == "rail-only":
        return tiers
    tiers["leaf"] |= {"uplink_breakout": "2x400G", "uplinks_per_spine": draw(st.integers(1, 2))}
    tiers["spine"] = {**draw(platform), "breakout": "2x400G", "slots": draw(slots(ceilings["spines"]))}
    if topology == "two-tier":
        tiers["spine"]["planes"] = draw(st.integers(1, min(rails, 3)))
        return tiers
    tiers["spine"] |= {"uplink_breakout": "2x400G", "uplinks_per_core": draw(st.integers(1, 2))}
    tiers["core"] = {
        **draw(platform),
        "breakout": "2x400G",
        "slots": draw(slots(ceilings["cores"])),
        "planes": draw(st.integers(1, 3)),
    }
    return tiers


@st.composite
def grown(draw: st.DrawFn) -> tuple[Values, Values]:
    """Two intents that differ only in what is installed below the same ceilings, and in its order."""
    first = draw(intents())
    second: Values = {**first, "switches": {role: dict(tier) for role, tier in first["switches"].items()}}
    kept = draw(st.permutations(first["units"]))[: draw(st.integers(1, len(first["units"])))]
    changed = [
        draw(unit(entry["pod"], entry["unit"], first["ceilings"], first["rails"])) if draw(st.booleans()) else entry
        for entry in kept
    ]
    if first["topology"] != "rail-only":
        there = {(entry["pod"], entry["unit"]) for entry in first["units"]}
        others = draw(units(first["ceilings"], first["rails"], single=False))
        changed += [entry for entry in others if (entry["pod"], entry["unit"]) not in there]
    second["units"] = draw(st.permutations(changed))
    for role, ceiling in (("spine", "spines"), ("core", "cores")):
        if role in second["switches"]:
            second["switches"][role]["slots"] = draw(slots(first["ceilings"][ceiling]))
    return first, second
