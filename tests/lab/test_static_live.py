"""Static routes in a lab of each NOS: installed, judged, and removed with an empty list."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.lab.running import RunningLab, intent, needs_lab, on_platform, running, write_fabric

NOSES = {
    "frr": ("frr", "", "8.4.4"),
    "nvue": ("nvue", "", "5.16.1"),
    "sonic": ("sonic", "", "202411"),
    "sonic-unified": ("sonic", "", "202511"),
    "eos": ("eos", "DCS-7060X6-64PE", "4.35.1F"),
}
ROUTES: list[dict[str, Any]] = [
    {"prefix": "198.18.0.0/16", "via": "10.128.0.1", "devices": "leaf01"},
    {"prefix": "198.19.0.0/16", "discard": True, "devices": "leaf01"},
]


def values(name: str, static: list[dict[str, Any]]) -> dict[str, Any]:
    platform, model, version = NOSES[name]
    found = on_platform(
        platform, intent(name=f"static-{name}", purpose="lab", services={}), model=model, version=version
    )
    if name.endswith("unified"):
        found["routing"] = {"bfd": {"interval_ms": 300, "multiplier": 3}}
        for tier in found["switches"].values():
            tier["routing_mode"] = "unified"
    return {**found, "routing": {**found["routing"], "static": static}}


def installed(lab: RunningLab) -> dict[str, list[str]]:
    """The static routes of leaf01 with their next hops; a discard route has none."""
    found = json.loads(lab.run("leaf01", "/usr/bin/vtysh", "-c", "show ip route static json"))
    return {prefix: [hop["ip"] for hop in ways[0]["nexthops"] if "ip" in hop] for prefix, ways in found.items()}


@needs_lab
@pytest.mark.parametrize(
    "name",
    ["frr", *(pytest.param(name, marks=pytest.mark.whole) for name in ("nvue", "sonic", "sonic-unified", "eos"))],
)
def test_static_routes_are_added_and_removed_with_the_intent(name: str, tmp_path: Path) -> None:
    fabric = write_fabric(tmp_path / "small", values(name, ROUTES))
    with running(fabric) as lab:
        of_lab = ("--fabric", fabric, "--lab", lab.name)
        assert installed(lab) == {"198.18.0.0/16": ["10.128.0.1"], "198.19.0.0/16": []}
        assert "nothing to change" in lab.netkit("plan", *of_lab).stdout
        checked = lab.netkit("check", "routes.static", *of_lab, "--window", "2")
        assert checked.returncode == 0, checked.stdout
        lab.run("leaf01", "/usr/bin/vtysh", "-c", "configure", "-c", "no ip route 198.18.0.0/16 10.128.0.1")
        checked = lab.netkit("check", "routes.static", *of_lab, "--window", "2")
        assert "no route to 198.18.0.0/16 by 10.128.0.1" in checked.stdout
        lab.run("leaf01", "/usr/bin/vtysh", "-c", "configure", "-c", "ip route 198.18.0.0/16 10.128.0.1")
        write_fabric(fabric, values(name, []))
        deployed = lab.netkit("deploy", *of_lab, "--yes")
        assert deployed.returncode == 0, deployed.stdout + deployed.stderr
        assert installed(lab) == {}
        assert "nothing to change" in lab.netkit("plan", *of_lab).stdout
