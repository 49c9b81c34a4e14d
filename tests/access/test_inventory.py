"""The fabric as Nornir sees it."""

from pathlib import Path

import pytest
from nornir import InitNornir
from nornir.core.plugins.inventory import InventoryPluginRegister

from netkit.access.endpoints import endpoints
from netkit.access.inventory import ansible_inventory
from netkit.access.settings import AccessSettings
from netkit.errors import LabError
from netkit.project.nornir_plugin import NetkitInventory
from tests import intents
from tests.lab.running import on_platform, write_fabric

HOST_COUNT = 4


@pytest.fixture
def fabric(tmp_path: Path) -> Path:
    return write_fabric(tmp_path / "ai1", intents.BASE)


def test_devices_are_in_groups_by_role_and_location(fabric: Path) -> None:
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


def test_a_lab_that_does_not_run_is_refused(fabric: Path) -> None:
    with pytest.raises(LabError, match="the lab other does not run"):
        NetkitInventory(str(fabric), lab="other").load()


def test_ansible_has_switches_and_hosts_in_the_same_groups_as_nornir() -> None:
    fabric = intents.fabric(intents.BASE)
    found = ansible_inventory(fabric, endpoints(fabric, AccessSettings(), Path()))["all"]
    assert isinstance(found, dict)
    groups = {name: [*group["hosts"]] for name, group in found["children"].items()}
    assert groups["role_leaf"] == [one.name for one in fabric.switches if one.role == "leaf"]
    assert groups["role_host"] == groups["platform_linux"] == [host.name for host in fabric.hosts]
    assert [*found["hosts"]] == [*fabric.names]
    assert {name for name, one in found["hosts"].items() if "netkit_rails" in one} == {*groups["role_host"]}


def test_ansible_reaches_a_switch_over_https_by_its_collection() -> None:
    fabric = intents.fabric(on_platform("eos", intents.BASE, model="DCS-7060X6-64PE", version="4.35.1F"))
    found = ansible_inventory(fabric, endpoints(fabric, AccessSettings(), Path()))["all"]
    assert isinstance(found, dict)
    leaf = found["hosts"]["leaf01"]
    assert {name: value for name, value in leaf.items() if name not in {"ansible_host", "ansible_user"}} == {
        "ansible_connection": "ansible.netcommon.httpapi",
        "ansible_network_os": "arista.eos.eos",
        "ansible_port": 443,
        "ansible_httpapi_use_ssl": True,
    }
