"""NVUE: golden files, the schema, and the rendered forms of settings."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from netkit.design import Fabric
from netkit.render import Engine, render
from tests import intents
from tests.conftest import Golden
from tests.lanes import examples
from tests.schema import nvue

VERSIONS = ("5.9.2", "5.12.0", "5.14.0", "5.16.1", "5.17.0")
ENGINE = Engine()


def rendered(fabric: Fabric, name: str) -> str:
    (device,) = render(fabric, [fabric.switch(name)], ENGINE)
    return device.files["startup.yaml"]


def is_new(version: str) -> bool:
    return tuple(map(int, version.split("."))) >= (5, 15)


@pytest.mark.parametrize("version", ["5.14.0", "5.16.1"])
@pytest.mark.parametrize("attachment", ["p2p", "vlan"])
@pytest.mark.parametrize("name", ["leaf01", "spine01"])
def test_files_equal_golden(golden: Golden, version: str, attachment: str, name: str) -> None:
    fabric = intents.fabric(intents.on_platform("nvue", version, {"attachment": attachment}))
    golden(f"nvue-{version}/{attachment}/{name}/startup.yaml", rendered(fabric, name))


@pytest.mark.parametrize("version", VERSIONS)
def test_every_switch_satisfies_the_schema(version: str) -> None:
    fabric = intents.fabric(intents.on_platform("nvue", version))
    assert fabric.switches
    for switch in fabric.switches:
        assert nvue.problems(rendered(fabric, switch.name), is_new=is_new(version)) == []


def test_schema_refuses_the_other_dialect() -> None:
    fabric = intents.fabric(intents.on_platform("nvue", "5.16.1"))
    assert nvue.problems(rendered(fabric, "leaf01"), is_new=False) != []


EXTRAS: list[dict[str, Any]] = [
    {"adaptive_routing": True},
    {"lossless": {"roce": {"priority": 4, "dscp": [34], "weight": 50}, "best_effort": {"weight": 50}}},
    {"lossless": {"ecn": {400: {"min_bytes": 200_000, "max_bytes": 900_000}}}},
    {"overrides": {"spine01": {"drain": True}, "leaf01": {"drain_neighbors": ["spine02"]}}},
    {"services": {"snmp": None, "login": None, "ntp": [], "dns": [], "syslog": []}},
    {"management": None},
    {"routing": {"bfd": {"interval_ms": 100, "multiplier": 5}, "max_paths": 128}},
    {"topology": "rail-only", "cross_rail": "blocked", "switches": {"spine": None}, "units": [{"unit": 1, "hosts": 4}]},
]


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("changes", EXTRAS, ids=[",".join(changes) for changes in EXTRAS])
def test_optional_parts_satisfy_the_schema(version: str, changes: dict[str, Any]) -> None:
    fabric = intents.fabric(intents.on_platform("nvue", version, changes))
    for switch in fabric.switches:
        assert nvue.problems(rendered(fabric, switch.name), is_new=is_new(version)) == []


def test_only_differences_from_the_roce_mode_are_rendered() -> None:
    weights = {"lossless": {"roce": {"weight": 50}, "best_effort": {"weight": 50}}}
    qos = nvue.tree(rendered(intents.fabric(intents.values(weights)), "leaf01"))["qos"]
    assert set(qos) == {"pfc-watchdog", "roce", "traffic-pool"}


def test_drains_are_rendered_where_they_were_requested() -> None:
    changes = {"overrides": {"spine01": {"drain": True}, "leaf01": {"drain_neighbors": ["spine02"]}}}
    fabric = intents.fabric(intents.values(changes))
    draining = {
        switch.name: nvue.tree(rendered(fabric, switch.name))["router"]["bgp"].get("graceful-shutdown")
        for switch in fabric.switches
    }
    assert {name for name, value in draining.items() if value == "enabled"} == {"spine01"}
    neighbors = nvue.tree(rendered(fabric, "leaf01"))["vrf"]["default"]["router"]["bgp"]["neighbor"]
    assert [name for name, entry in neighbors.items() if "graceful-shutdown" in entry] == ["swp33s1"]


@settings(max_examples=examples(25))
@given(
    priority=st.sampled_from([1, 2, 3, 4, 5]),
    cnp_priority=st.sampled_from([6, 7]),
    dscp=st.integers(0, 47),
    weight=st.integers(1, 99),
)
def test_every_dscp_maps_to_its_class(priority: int, cnp_priority: int, dscp: int, weight: int) -> None:
    lossless = {
        "roce": {"priority": priority, "dscp": [dscp], "weight": weight},
        "cnp": {"priority": cnp_priority},
        "best_effort": {"weight": 100 - weight},
    }
    fabric = intents.fabric(intents.values({"lossless": lossless}))
    text = rendered(fabric, "leaf01")
    assert nvue.problems(text, is_new=True) == []
    qos = nvue.tree(text)["qos"]
    # The RoCE mode's own maps, overlaid with what is rendered (user guide, RDMA over Converged Ethernet).
    to_priority = {number: number // 8 for number in range(64)}
    explicit = qos.get("mapping", {}).get("default-global", {}).get("dscp", {})
    to_priority |= {int(number): entry["switch-priority"] for number, entry in explicit.items()}
    to_class = {number: number if number in {3, 6} else 0 for number in range(8)}
    moved = qos.get("egress-queue-mapping", {}).get("default-global", {}).get("switch-priority", {})
    to_class |= {int(number): entry["traffic-class"] for number, entry in moved.items()}
    lossless_profile = fabric.lossless
    for traffic, own in ((lossless_profile.roce, 3), (lossless_profile.cnp, 6), (lossless_profile.best_effort, 0)):
        assert {number for number in range(64) if to_class[to_priority[number]] == own} == set(traffic.dscps)
