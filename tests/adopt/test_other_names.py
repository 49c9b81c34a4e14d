"""Lossless numbers and policies are read, whatever names they have and whether or not ports state their speed."""

import re

import pytest

from netkit.platforms.config import Files
from tests import intents
from tests.adopt.test_round_trip import adopted, files_of
from tests.random_intents import Values

NUMBERS: Values = {
    "lossless": {
        "roce": {"priority": 4, "dscp": [34], "weight": 70},
        "best_effort": {"weight": 30},
        "cnp": {"priority": 5, "dscp": 40, "shape_percent": 20},
        "ecn": {400: {"min_bytes": 500_000, "max_bytes": 2_000_000, "probability_percent": 30}},
        "pool_percent": 80,
    }
}
NAMES = {
    "nvue": ("ecn-400g", "underlay", "PL-", "RM-"),
    "eos": ("ROCE-400G", "LOSSLESS", "SPINES", "PL-", "RM-"),
    "sonic": ("PL-", "RM-"),
}
RELEASES = {"nvue": "5.16.1", "eos": "4.35.1F", "sonic": "202411"}


@pytest.mark.parametrize("platform", RELEASES)
def test_numbers_of_lossless_classes_are_read(platform: str) -> None:
    fabric = intents.fabric(intents.on_platform(platform, RELEASES[platform], NUMBERS))
    files = {name: renamed(own, NAMES[platform]) for name, own in files_of(fabric).items()}
    found = adopted(files).fabric
    assert [port.profile.ecn for switch in found.switches for port in switch.ports] == [
        port.profile.ecn for switch in fabric.switches for port in switch.ports
    ]
    shape = 20 if platform != "nvue" else 10  # NVUE has none, so that it stays netkit's default
    assert (found.lossless.cnp.shape_percent, found.lossless.roce, found.lossless.pool_percent) == (
        shape,
        fabric.lossless.roce,
        80,
    )


@pytest.mark.parametrize("export", ["local", "all"])
@pytest.mark.parametrize("platform", RELEASES)
def test_leaves_announce_what_their_policies_permit(platform: str, export: str) -> None:
    fabric = intents.fabric(intents.on_platform(platform, RELEASES[platform], {"routing": {"leaf_export": export}}))
    files = {name: renamed(own, NAMES[platform]) for name, own in files_of(fabric).items()}
    assert adopted(files).fabric.routing.leaf_exports_all == (export == "all")


@pytest.mark.parametrize("platform", RELEASES)
def test_policies_with_lists_that_do_not_exist_are_read(platform: str) -> None:
    fabric = intents.fabric(intents.on_platform(platform, RELEASES[platform]))
    files = {
        name: {file: re.sub(r"(ip[ -]prefix-list:? )PL-LOCAL", r"\1GONE", text) for file, text in own.items()}
        for name, own in files_of(fabric).items()
    }
    assert not adopted(files).fabric.routing.leaf_exports_all


def renamed(files: Files, names: tuple[str, ...]) -> Files:
    """Return the files with other names of profiles, groups, lists and maps."""
    found = dict(files)
    for place, name in enumerate(names):
        found = {file: text.replace(name, f"their-own-{place}") for file, text in found.items()}
    return found
