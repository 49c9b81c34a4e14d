"""IPv6 beside IPv4 in a lab of each NOS: loopbacks reach each other over every spine, and nothing is left to change."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests import intents
from tests.lab.running import RunningLab, intent, needs_lab, on_platform, running, until, write_fabric
from tests.test_ipv6 import V6

NOSES = {
    "frr": ("frr", "", "8.4.4"),
    "nvue": ("nvue", "", "5.16.1"),
    "nvue-old": ("nvue", "", "5.14.0"),
    "sonic": ("sonic", "", "202411"),
    "sonic-unified": ("sonic", "", "202511"),
    "eos": ("eos", "DCS-7060X6-64PE", "4.35.1F"),
}


def values(name: str) -> dict[str, Any]:
    platform, model, version = NOSES[name]
    found = on_platform(platform, intent(purpose="lab", services={}), model=model, version=version)
    if name.endswith("unified"):
        found["routing"] = {"bfd": {"interval_ms": 300, "multiplier": 3}}
        for tier in found["switches"].values():
            tier["routing_mode"] = "unified"
    intents.merge(found, V6)
    return found


def ways(lab: RunningLab, device: str, prefix: str) -> int:
    """Return over how many next hops a route leads."""
    found = json.loads(lab.run(device, "/usr/bin/vtysh", "-c", "show ipv6 route bgp json"))
    return sum(len(route["nexthops"]) for route in found.get(prefix, ()))


@needs_lab
@pytest.mark.parametrize(
    "name",
    [
        "frr",
        "eos",
        *(pytest.param(name, marks=pytest.mark.whole) for name in ("nvue", "nvue-old", "sonic", "sonic-unified")),
    ],
)
def test_loopbacks_reach_each_other(name: str, tmp_path: Path) -> None:
    fabric = write_fabric(tmp_path / "small", values(name))
    with running(fabric) as lab:
        until(lambda: ways(lab, "leaf01", "2001:db8:255::2/128") == 2, "both spines on the way to leaf02")
        lab.run("leaf01", "ping", "-c", "2", "-W", "5", "-I", "2001:db8:255::1", "2001:db8:255::2")
        assert "nothing to change" in lab.netkit("plan", "--fabric", fabric, "--lab", lab.name).stdout
