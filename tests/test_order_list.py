"""The order list: modules that fit the cage at each end of a link, and cables that fit both."""

from typing import Any

import pytest

from netkit.design import Fabric, capacity, listing
from netkit.hardware import Catalog
from tests import intents

MEDIA = Catalog().media()
HGX = {"model": "hgx-h100-xe9680"}
LEAF: dict[str, Any] = {"model": "SN4700", "host_breakout": "1x400G", "uplink_breakout": "1x400G"}
SN4700 = {"leaf": LEAF, "spine": {"model": "SN4700", "breakout": "1x400G"}}
SINGLE = {"leaf": {"host_breakout": "1x400G", "uplink_breakout": "1x400G"}, "spine": {"breakout": "1x400G"}}
PAIRS = {"leaf": {"uplinks_per_spine": 2}}
SWITCH, HOST, FIBRE = "optical module, switch end", "optical module, host end", "fibre"
COPPER, ACTIVE = "copper cable", "active optical cable"


def host(media: str) -> dict[str, Any]:
    return {"host": {"media": media, "length_m": 2}, "spine": {"media": "800G-2xDR4", "length_m": 2}}


def spine(media: str) -> dict[str, Any]:
    return {"host": {"media": "800G-2xDR4", "length_m": 2}, "spine": {"media": media, "length_m": 2}}


# Two units of two hosts with two rails: 4 leaves, 2 spines, 8 links to hosts and 8 to spines.
ORDERS: dict[str, tuple[dict[str, Any], set[tuple[str, str, str, int]]]] = {
    "twin cages in a DGX: two of its cages hold one rail each": (
        {"cables": host("800G-2xDR4")},
        {(SWITCH, "800G-2xDR4", "OSFP", 12), (HOST, "800G-2xDR4", "OSFP-RHS", 8), (FIBRE, "800G-2xDR4", "", 16)},
    ),
    "twin cages in a DGX: with all rails, four cages": (
        {"rails": 8, "ceilings": {"units": 2}, "units": [{"unit": 1, "hosts": 1}], "cables": host("800G-2xDR4")},
        {(SWITCH, "800G-2xDR4", "OSFP", 24), (HOST, "800G-2xDR4", "OSFP-RHS", 4), (FIBRE, "800G-2xDR4", "", 24)},
    ),
    "single flat-top cages in an HGX": (
        {"hosts": HGX, "cables": host("800G-2xDR4")},
        {(SWITCH, "800G-2xDR4", "OSFP", 12), (HOST, "400G-DR4", "OSFP-RHS", 8), (FIBRE, "800G-2xDR4", "", 16)},
    ),
    "QSFP-DD on an SN4700, twin-port in a DGX below it": (
        {"switches": SN4700, "cables": {**host("400G-DR4"), "spine": {"media": "400G-DR4", "length_m": 2}}},
        {
            (SWITCH, "400G-DR4", "QSFP-DD", 24),
            (HOST, "800G-2xDR4", "OSFP-RHS", 8),
            (FIBRE, "400G-DR4", "", 16),
        },
    ),
    "twin-port named, QSFP-DD needed": (
        {"switches": SN4700, "hosts": HGX, "cables": host("800G-2xDR4")},
        {(SWITCH, "400G-DR4", "QSFP-DD", 24), (HOST, "400G-DR4", "OSFP-RHS", 8), (FIBRE, "800G-2xDR4", "", 16)},
    ),
    "nobody tells of SR4 in a QSFP-DD": (
        {"switches": SN4700, "hosts": HGX, "cables": host("400G-SR4")},
        {
            (SWITCH, "400G-DR4", "QSFP-DD", 16),
            (SWITCH, "400G-SR4", "none known for QSFP-DD", 8),
            (HOST, "400G-SR4", "OSFP-RHS", 8),
            (FIBRE, "400G-SR4", "", 8),
            (FIBRE, "800G-2xDR4", "", 8),
        },
    ),
    "a copper splitter serves two HGX hosts": (
        {"hosts": HGX, "cables": host("800G-DAC-2x400")},
        {
            (SWITCH, "800G-2xDR4", "OSFP", 8),
            (COPPER, "800G-DAC-2x400", "OSFP to 2 x OSFP-RHS", 4),
            (FIBRE, "800G-2xDR4", "", 8),
        },
    ),
    "both rails of a DGX cage go to different leaves: no splitter fits": (
        {"rails": 8, "ceilings": {"units": 2}, "units": [{"unit": 1, "hosts": 1}], "cables": host("800G-DAC-2x400")},
        {
            (SWITCH, "800G-2xDR4", "OSFP", 16),
            (COPPER, "800G-DAC-2x400", "fits no two cages", 8),
            (FIBRE, "800G-2xDR4", "", 16),
        },
    ),
    "a twin cable runs from cage to cage where both of a cage's ports go to one spine": (
        {"switches": PAIRS, "cables": spine("800G-AOC-2x400")},
        {
            (SWITCH, "800G-2xDR4", "OSFP", 4),
            (HOST, "800G-2xDR4", "OSFP-RHS", 8),
            (ACTIVE, "800G-AOC-2x400", "OSFP to OSFP", 8),
            (FIBRE, "800G-2xDR4", "", 8),
        },
    ),
    "one uplink a spine: the ports of a cage part, and no twin cable fits": (
        {"cables": spine("800G-AOC-2x400")},
        {
            (SWITCH, "800G-2xDR4", "OSFP", 4),
            (HOST, "800G-2xDR4", "OSFP-RHS", 8),
            (ACTIVE, "800G-AOC-2x400", "fits no two cages", 8),
            (FIBRE, "800G-2xDR4", "", 8),
        },
    ),
    "cages of one port: a single cable fits, a splitter does not": (
        {
            "switches": SINGLE,
            "hosts": HGX,
            "cables": {**host("400G-DAC"), "spine": {"media": "800G-DAC-2x400", "length_m": 2}},
        },
        {
            (COPPER, "400G-DAC", "OSFP to OSFP-RHS", 8),
            (COPPER, "800G-DAC-2x400", "fits no two cages", 8),
        },
    ),
}


@pytest.mark.parametrize(("changes", "wanted"), ORDERS.values(), ids=ORDERS)
def test_ordered_parts_fit_their_ports(changes: dict[str, Any], wanted: set[tuple[str, str, str, int]]) -> None:
    fabric = built(changes)
    items = capacity.summarize(fabric, MEDIA).items

    assert {(item.what, item.media, item.form, item.count) for item in items} == wanted
    is_refused = any(form.startswith(("none known", "fits no")) for _, _, form, _ in wanted)
    warned = {note.path for note in fabric.notes if note.severity == "warning" and note.path[0] == "cables"}
    assert bool(warned) == is_refused


def test_the_cabling_names_the_module_at_each_end() -> None:
    fabric = built({"hosts": HGX, "cables": spine("800G-AOC-2x400")})
    ends = {(row.kind, row.from_module, row.to_module) for row in listing.cabling(fabric, MEDIA)}

    assert ends == {("host", "400G-DR4 OSFP-RHS", "800G-2xDR4 OSFP"), ("spine", "", "")}


def built(changes: dict[str, Any]) -> Fabric:
    return intents.fabric(intents.values(changes))
