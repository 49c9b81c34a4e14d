"""A peer outside a fabric, in a lab of each NOS: its default route arrives, and only the summary is advertised."""

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from tests.command import ROOT
from tests.lab.running import RunningLab, intent, needs_lab, on_platform, running, until, write_fabric
from tests.lanes import daily

PEER = {
    "name": "isp-a",
    "device": "spine01",
    "address": "203.0.113.1/31",
    "peer": "203.0.113.0",
    "asn": 64512,
    "announce": ["10.128.0.0/16"],
}
UNWANTED = "198.18.0.0/15"
"""Other prefixes that the router of a lab announces."""
HALVES = ["10.128.0.0/17", "10.128.128.0/17"]
WITH_BFD = ("frr", "sonic")
"""FRR 8.4 needs the local address, or one end may run without BFD; other NOSes do not configure it."""
NOSES = {
    "frr": ("frr", "", "8.4.4", "swp60s0"),
    "nvue": ("nvue", "", "5.16.1", "swp60s0"),
    "sonic": ("sonic", "", "202411", "Ethernet472"),
    "sonic-unified": ("sonic", "", "202511", "Ethernet472"),
    "eos": ("eos", "DCS-7060X6-64PE", "4.35.1F", "Ethernet60/1"),
}


def values(name: str) -> dict[str, Any]:
    platform, model, version, port = NOSES[name]
    found = on_platform(platform, intent(purpose="lab", services={}), model=model, version=version)
    if name.endswith("unified"):
        found["routing"] = {"bfd": {"interval_ms": 300, "multiplier": 3}}
        for tier in found["switches"].values():
            tier["routing_mode"] = "unified"
    return {**found, "external": [{**PEER, "port": port, "bfd": platform in WITH_BFD}]}


def routes(lab: RunningLab, device: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(lab.run(device, "/usr/bin/vtysh", "-c", "show ip route json"))
    return found


def bfd(lab: RunningLab) -> list[str]:
    peers = json.loads(lab.run("spine01", "/usr/bin/vtysh", "-c", "show bfd peers json"))
    return [peer["status"] for peer in peers if peer["peer"] == "203.0.113.0"]


def announced(lab: RunningLab) -> list[str]:
    shown = "show bgp ipv4 unicast neighbors 203.0.113.0 advertised-routes json"
    return sorted(json.loads(lab.run("spine01", "/usr/bin/vtysh", "-c", shown))["advertisedRoutes"])


@needs_lab
@pytest.mark.parametrize("name", daily(NOSES, "frr"))
def test_a_fabric_accepts_a_default_route_and_advertises_a_summary(name: str, tmp_path: Path) -> None:
    fabric = write_fabric(tmp_path / "small", values(name))
    with running(fabric) as lab:
        until(lambda: "0.0.0.0/0" in routes(lab, "leaf01"), "a default route on leaf01")
        assert "0.0.0.0/0" not in routes(lab, "spine02")
        assert UNWANTED not in routes(lab, "spine01")
        assert announced(lab) == ["10.128.0.0/16"]
        lab.run("leaf01", "ping", "-c", "2", "-W", "5", "-I", "10.128.0.0", "203.0.113.0")
        wanted = ["up"] if NOSES[name][0] in WITH_BFD else []
        until(lambda: bfd(lab) == wanted, "BFD to the peer")
        of_lab = ("--fabric", fabric, "--lab", lab.name)
        assert "nothing to change" in lab.netkit("plan", *of_lab).stdout
        checked = lab.netkit("check", "external", *of_lab, "--window", "2", "--format", "json")
        assert checked.returncode == 0, checked.stdout
        found = json.loads(checked.stdout)
        assert found["verdict"] == "clean", checked.stdout
        changed = values(name)
        changed["external"][0] |= {"accept": ["0.0.0.0/0", UNWANTED], "announce": HALVES, "max_prefixes": 50}
        write_fabric(fabric, changed)
        deployed = lab.netkit("deploy", *of_lab, "--yes", "--disruptive", "--busy")
        assert deployed.returncode == 0, deployed.stdout + deployed.stderr
        until(lambda: UNWANTED in routes(lab, "leaf01"), "the route that is accepted now")
        until(lambda: announced(lab) == HALVES, "two summaries instead of one")
        assert "nothing to change" in lab.netkit("plan", *of_lab).stdout


SLOW_ZEBRA = """
cp /usr/lib/frr/zebra /run/zebra
printf '#!/bin/sh\\nsleep 3\\nexec /run/zebra "$@"\\n' > /run/slow-zebra
chmod 755 /run/slow-zebra
mount --bind /run/slow-zebra /usr/lib/frr/zebra
"""


@needs_lab
def test_bfd_starts_where_zebra_is_slow(tmp_path: Path) -> None:
    """A session with an address does not depend on zebra: it is up before a bgpd that found no zebra tries again."""
    with running(write_fabric(tmp_path / "small", values("frr"))) as lab:
        until(lambda: bfd(lab) == ["up"], "BFD to the peer")
        lab.run("spine01", "sh", "-c", SLOW_ZEBRA)
        lab.shell("spine01", "systemctl restart frr")
        until(lambda: bfd(lab) == ["up"], "BFD to the peer after the restart")


@needs_lab
@pytest.mark.whole
def test_the_shipped_fabric_with_two_providers_runs(tmp_path: Path) -> None:
    fabric = Path(shutil.copytree(ROOT / "inventory" / "internet-edge", tmp_path / "internet-edge"))
    with running(fabric) as lab:
        until(lambda: "0.0.0.0/0" in routes(lab, "leaf08"), "a default route on leaf08")
        hops = {hop["ip"] for hop in routes(lab, "leaf08")["0.0.0.0/0"][0]["nexthops"]}
        assert len(hops) == 6  # three links to each of the two spines with a peer
        checked = lab.netkit("check", "external", "bgp", "routes", "--fabric", fabric, "--lab", lab.name)
        assert checked.returncode == 0, checked.stdout
