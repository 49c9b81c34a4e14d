"""One number changes in the intent of a fabric made by hand: its line changes on every switch, and no other."""

import copy
from pathlib import Path
from typing import Any

import pytest

from netkit import design
from netkit.adopt.fit import compared
from netkit.adopt.proposal import validated
from netkit.hardware import Catalog
from netkit.project.adopting import adopted
from netkit.render import Engine
from tests import intents
from tests.adopt.by_hand import BY_HAND, MAX_BYTES, MIN_BYTES
from tests.lab.running import intent, on_platform
from tests.platforms.samples import files_of

VERSIONS = {"frr": "8.4.4", "nvue": "5.16.1", "sonic": "202411", "eos": "4.35.1F"}
ECN = ("lossless", "ecn", 400)
WATCHDOG = ("lossless", "watchdog", "detection_polls")
EOS_ECN = "random-detect ecn minimum-threshold"
Case = tuple[tuple[str | int, ...], int, dict[str, tuple[str, ...]]]
CASES: dict[str, list[Case]] = {
    "nvue": [
        ((*ECN, "min_bytes"), MIN_BYTES + 1, {"min-threshold": ("300000", "300001")}),
        ((*ECN, "max_bytes"), MAX_BYTES + 1, {"max-threshold": ("1200000", "1200001")}),
        ((*ECN, "probability_percent"), 50, {"probability": ("100", "50")}),
        (WATCHDOG, 5, {"robustness": ("4", "5")}),
    ],
    "sonic": [
        ((*ECN, "min_bytes"), MIN_BYTES + 1, {"green_min_threshold": ("300000", "300001")}),
        ((*ECN, "max_bytes"), MAX_BYTES + 1, {"green_max_threshold": ("1200000", "1200001")}),
        ((*ECN, "probability_percent"), 50, {"green_drop_probability": ("100", "50")}),
        (WATCHDOG, 5, {"detection_time": ("200", "500")}),
    ],
    "eos": [
        (
            (*ECN, "min_bytes"),
            350_000,
            {
                EOS_ECN: tuple(
                    f"{count} kbytes maximum-threshold 1200000 bytes max-mark-probability 100 weight 0"
                    for count in (300, 350)
                )
            },
        ),
        (
            (*ECN, "min_bytes"),
            350_001,
            {
                EOS_ECN: tuple(
                    f"{count} maximum-threshold 1200000 bytes max-mark-probability 100 weight 0"
                    for count in ("300 kbytes", "350001 bytes")
                )
            },
        ),
        (WATCHDOG, 5, {"priority-flow-control pause watchdog default timeout": ("0.2", "0.5")}),
    ],
}


BFD = ("routing.bfd.interval_ms", "routing.bfd.multiplier")
TIMERS = ("routing.keepalive_s", "routing.hold_s")
WITHOUT_EFFECT = {
    "nvue": ("lossless.pool_percent", *TIMERS),  # pools of the RoCE mode, and FRR's own timers
    "sonic": (*TIMERS, "routing.connect_s", *BFD),  # on each group, or by default
    "eos": BFD,  # by default
}


@pytest.mark.parametrize("platform", CASES)
def test_a_number_changes_its_line_only(platform: str) -> None:
    model = "DCS-7060X6-64PE" if platform == "eos" else ""
    values = on_platform(platform, intent(purpose="lab"), version=VERSIONS[platform], model=model)
    fabric = intents.fabric(values)
    files = {**files_of(fabric), **{one.name: BY_HAND[platform](one, fabric) for one in fabric.switches}}
    found = adopted(
        "own", files, {(link.device, link.port): (link.peer, link.peer_port) for link in fabric.links()}, Path()
    )
    assert found.remaining == {}
    assert found.without_effect == {key: ["leaf", "spine"] for key in WITHOUT_EFFECT[platform]}
    for where, number, expected in CASES[platform]:
        changed: Any = copy.deepcopy(found.proposal.values | {"leave": list(found.leave)})
        section = changed
        for key in where[:-1]:
            section = section[key]
        section[where[-1]] = number
        other = design.build(validated(changed, found.proposal.tables), Catalog())
        for name, comparison in compared(other, [one.name for one in other.switches], files, Engine()):
            lines = {one.path[-1]: (one.running, one.intended) for one in comparison.changes}
            assert lines == expected, name
