"""Whether the fabric before a change can run on the cables of the fabric after it."""

from dataclasses import replace

from netkit.prove.proof import cut, obstacle
from tests import intents

FABRIC = intents.fabric(intents.BASE)


def test_a_fabric_runs_on_its_own_cables() -> None:
    assert obstacle(FABRIC, FABRIC) == ""


def test_new_units_are_no_obstacle() -> None:
    grown = intents.fabric(intents.values({"units": [{"unit": "1-3", "hosts": 2}]}))
    assert obstacle(FABRIC, grown) == ""


def test_removed_devices_are_no_obstacle_once_they_are_cut_out() -> None:
    small = intents.fabric(intents.values({"units": [{"unit": 1, "hosts": 2}]}))
    assert obstacle(FABRIC, small).startswith("earlier cables no longer exist: ")
    assert obstacle(cut(FABRIC, small.names), small) == ""


def test_other_ports_are_an_obstacle() -> None:
    other = intents.fabric(intents.values({"switches": {"leaf": {"host_breakout": "1x400G"}}}))
    assert "earlier cables no longer exist: gpu01:rail0–leaf01:swp1s0" in obstacle(FABRIC, other)


def test_another_nos_or_version_is_an_obstacle() -> None:
    other = intents.fabric(intents.on_platform("sonic", "202505"))
    assert obstacle(FABRIC, other).startswith("leaf01 becomes another device: nvue 5.16.1 SN5600 → sonic 202505")


def test_fabrics_without_a_common_device_are_an_obstacle() -> None:
    assert obstacle(replace(FABRIC, switches=(), hosts=()), FABRIC) == "no device of the earlier fabric remains"
