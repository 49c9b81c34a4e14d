"""Model and release of a switch are read from the heading of its configuration, not guessed."""

from collections.abc import Mapping

import pytest

from netkit.adopt import FoundIntent
from netkit.platforms.config import Files
from tests import intents
from tests.adopt.test_round_trip import adopted, differences, files_of
from tests.random_intents import Values

WHOLE_CAGES: Values = {
    "switches": {
        "leaf": {"model": "SN4700", "host_breakout": "1x400G", "uplink_breakout": "1x400G"},
        "spine": {"model": "SN4700", "breakout": "1x400G"},
    },
    "cables": {kind: {"media": "400G-DR4", "length_m": 30} for kind in ("host", "spine")},
}
HEADINGS = [
    (
        "nvue",
        "5.15",
        WHOLE_CAGES,
        "startup.yaml",
        "- header:\n    model: MSN4700\n    rev-id: 1.0\n    version: Cumulus Linux 5.15\n",
        "SN4700",
    ),
    ("eos", "4.33.2F", {}, "eos.cfg", "! device: one (DCS-7060X6-64PE-F, EOS-4.33.2F)\n", "DCS-7060X6-64PE"),
    ("frr", "8.5", {}, "frr.conf", "frr version 8.5\n", "SN5600"),
]


@pytest.mark.parametrize(
    ("platform", "version", "changes", "file", "heading", "model"), HEADINGS, ids=["nvue", "eos", "frr"]
)
def test_model_and_release_are_read_from_the_heading(
    platform: str, version: str, changes: Values, file: str, heading: str, model: str
) -> None:
    files = files_of(intents.fabric(intents.on_platform(platform, version, changes)))
    found = adopted(with_heading(files, file, heading))
    tiers = found.values["switches"]
    assert isinstance(tiers, dict)
    assert {(tier["model"], tier["version"]) for tier in tiers.values()} == {(model, version)}
    assert guesses_of_release(found) == []
    assert differences(found, files) == {}


@pytest.mark.parametrize(("platform", "version"), [("sonic", "202505"), ("nvue", "5.15"), ("eos", "4.33.2F")])
def test_the_release_is_read_from_a_backup(platform: str, version: str) -> None:
    files = files_of(intents.fabric(intents.on_platform(platform, version)))
    switches = {name for name, own in files.items() if "netplan.yaml" not in own}
    found = adopted(
        {name: {**own, "os-version": f"{version}\n"} if name in switches else own for name, own in files.items()}
    )
    tiers = found.values["switches"]
    assert isinstance(tiers, dict)
    assert {tier["version"] for tier in tiers.values()} == {version}
    assert guesses_of_release(found) == []


def test_a_release_that_netkit_does_not_support_is_guessed() -> None:
    files = files_of(intents.fabric(intents.on_platform("eos", "4.35.1F")))
    found = adopted(with_heading(files, "eos.cfg", "! device: one (DCS-7060X6-64PE, EOS-4.28.3M)\n"))
    assert len(guesses_of_release(found)) == 2
    assert differences(found, files) == {}


def with_heading(files: Mapping[str, Files], file: str, heading: str) -> Mapping[str, Files]:
    return {name: {**own, file: heading + own[file]} if file in own else own for name, own in files.items()}


def guesses_of_release(found: FoundIntent) -> list[str]:
    return [text for key, text in found.guesses if key == "switches" and "version" in text]
