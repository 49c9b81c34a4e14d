"""The fabric as Nornir sees it."""

import json
from pathlib import Path

import pytest
from nornir import InitNornir
from nornir.core.plugins.inventory import InventoryPluginRegister

from netkit.access.inventory import NetkitInventory
from netkit.errors import AccessError
from tests import intents
from tests.lab.running import write_fabric

HOST_COUNT = 4


@pytest.fixture
def fabric(tmp_path: Path) -> Path:
    return write_fabric(tmp_path / "ai1", intents.BASE)


def test_devices_are_in_the_groups_of_their_place(fabric: Path) -> None:
    found = NetkitInventory(str(fabric)).load()
    groups = {name: [group.name for group in host.groups] for name, host in found.hosts.items()}
    assert groups["leaf01"] == ["role_leaf", "rail_0", "unit_1", "platform_nvue"]
    assert groups["spine01"] == ["role_spine", "plane_0", "platform_nvue"]
    assert groups["gpu01"] == ["role_host", "unit_1", "platform_linux"]
    assert set(found.groups) == {group for names in groups.values() for group in names}


def test_each_device_can_be_opened_by_napalm_and_netmiko(fabric: Path) -> None:
    (fabric / "access.yaml").write_text("key_file: id\n", encoding="utf-8")
    leaf = NetkitInventory(str(fabric)).load().hosts["leaf01"]
    napalm = leaf.get_connection_parameters("napalm")
    assert (napalm.hostname, napalm.platform, napalm.username) == (leaf.hostname, "nvue", "netkit")
    assert napalm.extras is not None
    assert napalm.extras["optional_args"]["key_file"] == str(fabric / "id")
    netmiko = leaf.get_connection_parameters("netmiko")
    assert netmiko.platform == "linux"
    assert netmiko.extras is not None
    assert (netmiko.extras["ssh_strict"], netmiko.extras["alt_key_file"]) == (True, str(fabric / "known_hosts"))


def test_nornir_runs_on_the_fabric_by_the_name_of_the_plugin(fabric: Path) -> None:
    InventoryPluginRegister.register("NetkitInventory", NetkitInventory)
    nornir = InitNornir(
        inventory={"plugin": "NetkitInventory", "options": {"fabric": str(fabric)}}, logging={"enabled": False}
    )
    leaves = nornir.filter(role="leaf", rail="1")
    done = leaves.run(lambda task: task.host.platform, name="platform")
    assert {name: result.result for name, result in done.items()} == dict.fromkeys(leaves.inventory.hosts, "nvue")
    assert len(leaves.inventory.hosts) == 2
    assert len(nornir.filter(filter_func=lambda host: host.has_parent_group("role_host")).inventory.hosts) == HOST_COUNT


def test_with_a_lab_only_its_devices_are_there(fabric: Path, tmp_path: Path) -> None:
    lab = tmp_path / "lab"
    lab.mkdir()
    with pytest.raises(AccessError, match="no lab runs in"):
        NetkitInventory(str(fabric), lab=str(lab)).load()
    entry = {"address": "127.64.0.1", "port": 22, "https_port": 8765, "login": "cumulus", "personality": "nvue"}
    (lab / "lab.json").write_text(json.dumps({"devices": {"leaf01": entry}}), encoding="utf-8")
    found = NetkitInventory(str(fabric), lab=str(lab)).load()
    assert [(name, host.hostname) for name, host in found.hosts.items()] == [("leaf01", "127.64.0.1")]
