"""Same changes, one group; names, addresses and AS numbers aside."""

import pytest

from netkit import plan
from netkit.plan import Running
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


def test_another_value_is_another_group() -> None:
    scene = staged("nvue", "ecn-threshold")
    running = dict(scene.running)
    text = str(scene.intended["leaf03"]["startup.yaml"]).replace("max-threshold: 900000", "max-threshold: 900001")
    running["leaf03"] = Running({"startup.yaml": text})
    groups = plan.make(scene.fabric, running, scene.intended).groups
    assert groups == (("leaf01", "leaf02", "leaf04"), SPINES, ("leaf03",))


def test_a_wrong_address_from_outside_the_pools_is_another_group() -> None:
    scene = staged("nvue", "description")
    running = {name: scene.intended[name] for name in LEAVES}
    texts = {name: files["startup.yaml"] for name, files in running.items()}
    texts["leaf01"] = texts["leaf01"].replace("192.0.2.2:", "192.0.2.77:")
    texts["leaf02"] = texts["leaf02"].replace("192.0.2.2:", "192.0.2.78:")
    made = plan.make(scene.fabric, {name: Running({"startup.yaml": text}) for name, text in texts.items()}, running)
    assert made.groups == (("leaf01",), ("leaf02",))
