"""BGP by address between switches, in a lab of each NOS: checks, drains, and the migration from unnumbered sessions."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.lab.running import RunningLab, intent, needs_lab, on_platform, running, until, write_fabric
from tests.lanes import daily, is_whole

NOSES = {
    "frr": ("frr", "", "8.4.4"),
    "nvue": ("nvue", "", "5.16.1"),
    "nvue-old": ("nvue", "", "5.14.0"),
    "sonic": ("sonic", "", "202411"),
    "sonic-unified": ("sonic", "", "202511"),
    "eos": ("eos", "DCS-7060X6-64PE", "4.35.1F"),
}
LINKS = "10.9.0.0/24"


def values(name: str, **changes: Any) -> dict[str, Any]:
    platform, model, version = NOSES[name]
    found = on_platform(platform, intent(name="links", purpose="lab", services={}), model=model, version=version)
    if name.endswith("unified"):
        found["routing"] = {"bfd": {"interval_ms": 300, "multiplier": 3}}
        for tier in found["switches"].values():
            tier["routing_mode"] = "unified"
    return {**found, **changes}


def numbered(name: str, **changes: Any) -> dict[str, Any]:
    found = values(name, **changes)
    return {**found, "pools": {**found["pools"], "links": LINKS}}


def peers(lab: RunningLab, device: str) -> dict[str, str]:
    shown = json.loads(lab.run(device, "/usr/bin/vtysh", "-c", "show bgp ipv4 unicast summary json"))
    return {name: peer["state"] for name, peer in shown["peers"].items()}


def wrong(lab: RunningLab) -> list[str]:
    """The findings of checks of sessions and routes."""
    of_lab = ("--fabric", lab.fabric, "--lab", lab.name, "--window", "2", "--format", "json")
    judged = json.loads(lab.netkit("check", "bgp", "routes", "links", *of_lab).stdout)
    assert {result["id"].partition(".")[0] for result in judged["results"]} >= {"bgp", "routes", "links"}
    return [
        f"{result['id']}: {one['text']}"
        for result in judged["results"]
        for one in result["findings"]
        if one["verdict"] in {"warn", "fail"}
    ]


def deploy(lab: RunningLab, *options: str) -> str:
    of_lab = ("--fabric", lab.fabric, "--lab", lab.name)
    deployed = lab.netkit("deploy", *of_lab, "--yes", "--busy", *options)
    assert deployed.returncode == 0, deployed.stdout + deployed.stderr
    assert "nothing to change" in lab.netkit("plan", *of_lab).stdout
    return deployed.stdout


@needs_lab
@pytest.mark.parametrize(
    "name",
    daily(NOSES, "eos"),
)
def test_numbered_sessions_are_established(name: str, tmp_path: Path) -> None:
    with running(write_fabric(tmp_path / "links", numbered(name)), name="links") as lab:
        assert peers(lab, "leaf01") == {"10.9.0.0": "Established", "10.9.0.2": "Established"}
        assert "nothing to change" in lab.netkit("plan", "--fabric", lab.fabric, "--lab", lab.name).stdout
        until(lambda: wrong(lab) == [], "no findings")
        write_fabric(lab.fabric, numbered(name, overrides={"leaf01": {"drain_neighbors": ["spine01"]}}))
        deploy(lab)
        until(lambda: wrong(lab) == [], "no findings with a drain")
        write_fabric(lab.fabric, numbered(name))
        deploy(lab)
        lab.run("spine01", "/usr/bin/vtysh", "-c", "clear bgp 10.9.0.1")
        until(lambda: wrong(lab) == [], "no findings after a session was cleared")


@needs_lab
@pytest.mark.parametrize("name", daily((name for name in NOSES if name != "nvue-old"), "eos"))
def test_one_session_by_address_runs_beside_unnumbered_ones(name: str, tmp_path: Path) -> None:
    row = {"device": "leaf01", "peer": "spine01", "address": "198.18.7.1/31", "peer_address": "198.18.7.0"}
    with running(write_fabric(tmp_path / "both", values(name)), name="both") as lab:
        until(lambda: wrong(lab) == [], "no findings")
        write_fabric(lab.fabric, values(name, tables={"cables": [row]}))
        deploy(lab, "--disruptive")
        until(lambda: wrong(lab) == [], "no findings")
        assert peers(lab, "leaf01")["198.18.7.0"] == "Established"
        assert len(peers(lab, "leaf01")) == 2


@needs_lab
def test_sessions_migrate_from_unnumbered_to_numbered(tmp_path: Path) -> None:
    with running(write_fabric(tmp_path / "links", values("frr")), name="links") as lab:
        write_fabric(lab.fabric, numbered("frr"))
        of_lab = ("--fabric", lab.fabric, "--lab", lab.name)
        refused = lab.netkit("deploy", *of_lab, "--yes", "--busy")
        assert refused.returncode == 3, refused.stdout + refused.stderr
        assert "do not reach each other until a later step; deploy with --disruptive" in refused.stderr
        assert peers(lab, "leaf01") == {"swp33s0": "Established", "swp33s1": "Established"}
        for intended in (numbered, values) if is_whole() else (numbered,):
            write_fabric(lab.fabric, intended("frr"))
            deploy(lab, "--disruptive")
            until(lambda: wrong(lab) == [], "no findings")
