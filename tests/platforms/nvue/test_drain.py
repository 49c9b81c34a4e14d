"""The drain of netkit: distinguished from an intended one, hidden, and undone completely."""

import json
from typing import Any

import pytest

from netkit.platforms.nvue import drain
from netkit.platforms.nvue.dialects import dialect
from netkit.platforms.nvue.patch import NvuePatch


def tree(shutdown: str = "", saves: str = "") -> dict[str, Any]:
    found: dict[str, Any] = {"router": {"bgp": {"autonomous-system": 65001}}, "system": {"hostname": "leaf01"}}
    if shutdown:
        found["router"]["bgp"]["graceful-shutdown"] = shutdown
    if saves:
        found["system"]["config"] = {"auto-save": {"state": saves}}
    return found


@pytest.mark.parametrize(
    ("applied", "startup", "is_own"),
    [
        (tree("enabled", "disabled"), tree(), True),
        (tree("enabled", "disabled"), tree("disabled", "enabled"), True),
        (tree("enabled", "disabled"), tree("enabled", "disabled"), False),
        (tree("enabled", "enabled"), tree(), False),
        (tree("enabled"), tree(), False),
        (tree("", "disabled"), tree(), False),
    ],
)
def test_a_drain_belongs_to_netkit_if_it_is_neither_saved_nor_being_saved(
    applied: dict[str, Any], startup: dict[str, Any], *, is_own: bool
) -> None:
    assert drain.is_own(applied, startup) is is_own


def test_each_release_is_drained_with_its_own_commands() -> None:
    assert drain.begun(dialect("5.16.1")).set == {
        "router": {"bgp": {"graceful-shutdown": "enabled"}},
        "system": {"config": {"auto-save": {"state": "disabled"}}},
    }
    assert drain.begun(dialect("5.14.0")).set == {
        "router": {"bgp": {"graceful-shutdown": "on"}},
        "system": {"config": {"auto-save": {"enable": "off"}}},
    }


@pytest.mark.parametrize("startup", [tree(), tree("disabled", "enabled"), tree("", "enabled")])
def test_without_its_drain_a_switch_runs_its_startup_configuration(startup: dict[str, Any]) -> None:
    shown = json.dumps([{"header": {"version": "x"}}, {"set": tree("enabled", "disabled")}])
    assert drain.tree_of(drain.unseen(shown, startup)) == startup


def test_the_end_of_a_drain_sets_old_values_and_unsets_new_ones() -> None:
    assert drain.ended(tree("", "enabled"), tree("enabled", "disabled")) == NvuePatch(
        unset={"router": {"bgp": {"graceful-shutdown": None}}},
        set={"system": {"config": {"auto-save": {"state": "enabled"}}}},
    )


def test_an_object_that_only_the_drain_created_is_removed_with_it() -> None:
    applied = {"router": {"bgp": {"graceful-shutdown": "enabled"}}, "system": tree("", "disabled")["system"]}
    assert drain.ended(tree(), applied) == NvuePatch(unset={"router": {"bgp": None}, "system": {"config": None}})
    assert drain.back(tree(), applied, drain.SHUTDOWN) == NvuePatch(unset={"router": {"bgp": None}})
