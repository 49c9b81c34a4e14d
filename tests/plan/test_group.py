"""Equal changes form one group, whatever their names, addresses and AS numbers."""

import pytest

from netkit import plan
from netkit.design import Fabric
from netkit.design.fabric import Switch
from netkit.plan import Running
from netkit.platforms.compare import MODELS
from netkit.render import Engine, render
from tests import intents
from tests.plan.scenes import VERSIONS, staged

LEAVES, SPINES = ("leaf01", "leaf02", "leaf03", "leaf04"), ("spine01", "spine02")
HOSTS = ("gpu01", "gpu02", "gpu05", "gpu06")
GROUPS = {
    "description": (("leaf01",),),
    "new-spine": (LEAVES,),
    "removed-host": (LEAVES,),
    "asn": (LEAVES, SPINES),
    "breakout": (LEAVES, SPINES),
    "host-mtu": (HOSTS,),
    "new-unit": (HOSTS, SPINES),
}


@pytest.mark.parametrize("platform", VERSIONS)
@pytest.mark.parametrize("name", GROUPS)
def test_devices_that_change_alike_are_one_group(platform: str, name: str) -> None:
    scene = staged(platform, name)
    assert plan.make(scene.fabric, scene.running, scene.intended).groups == GROUPS[name]


@pytest.mark.parametrize("attachment", ["p2p", "vlan"])
@pytest.mark.parametrize("platform", VERSIONS)
def test_from_empty_every_tier_is_one_group(platform: str, attachment: str) -> None:
    values = intents.on_platform(platform, VERSIONS[platform], {"attachment": attachment, "host_routes": "per-leaf"})
    fabric = intents.fabric(values)
    intended = {
        found.device: {file: text for file, text in found.files.items() if is_read(fabric, found.device, file)}
        for found in render(fabric, (*fabric.switches, *fabric.hosts), Engine())
    }
    running = {name: Running(dict.fromkeys(files, "")) for name, files in intended.items()}
    assert plan.make(fabric, running, intended).groups == (HOSTS, LEAVES, SPINES)


def is_read(fabric: Fabric, device: str, file: str) -> bool:
    found = fabric.device(device)
    return MODELS[found.platform if isinstance(found, Switch) else "linux"].reads(file)


def test_an_extra_route_is_another_group() -> None:
    scene = staged("nvue", "description")
    files = {name: {"netplan.yaml": scene.intended[name]["netplan.yaml"]} for name in HOSTS}
    route = "        - {to: 10.128.0.8/29, via: 10.128.0.0, table: 100}\n"
    assert route in files["gpu01"]["netplan.yaml"]
    intended = {**files, "gpu01": {"netplan.yaml": files["gpu01"]["netplan.yaml"].replace(route, "")}}
    running = {name: Running({"netplan.yaml": None}) for name in HOSTS}
    assert plan.make(scene.fabric, running, intended).groups == (HOSTS[1:], HOSTS[:1])


def test_another_value_is_another_group() -> None:
    scene = staged("nvue", "ecn-threshold")
    running = dict(scene.running)
    text = str(scene.intended["leaf03"]["startup.yaml"]).replace("max-threshold: 900000", "max-threshold: 900001")
    running["leaf03"] = Running({"startup.yaml": text})
    groups = plan.make(scene.fabric, running, scene.intended).groups
    assert groups == (("leaf01", "leaf02", "leaf04"), SPINES, ("leaf03",))


def test_an_address_from_outside_the_pools_is_another_group() -> None:
    scene = staged("nvue", "description")
    running = {name: scene.intended[name] for name in LEAVES}
    texts = {name: files["startup.yaml"] for name, files in running.items()}
    texts["leaf01"] = texts["leaf01"].replace("192.0.2.2:", "192.0.2.77:")
    texts["leaf02"] = texts["leaf02"].replace("192.0.2.2:", "192.0.2.78:")
    made = plan.make(scene.fabric, {name: Running({"startup.yaml": text}) for name, text in texts.items()}, running)
    assert made.groups == (("leaf01",), ("leaf02",))
