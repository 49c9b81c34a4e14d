"""Management access lists in a lab of each NOS: a switch reverts a list that locks netkit out."""

import copy
from pathlib import Path
from typing import Any

import pytest

from tests.lab.running import RunningLab, intent, needs_lab, on_platform, running, until, write_fabric
from tests.lanes import daily

NOSES = {"nvue": ("", "5.16.1"), "sonic": ("", "202411"), "eos": ("DCS-7060X6-64PE", "4.35.1F")}
HERE, ELSEWHERE = "192.0.2.0/24", "198.51.100.0/24"
"""In a lab, netkit comes from the gateway of the management network, 192.0.2.1."""


def values(name: str, *allow: str) -> dict[str, Any]:
    model, version = NOSES[name]
    found = on_platform(name, intent(name=f"access-{name}", purpose="lab", services={}), model=model, version=version)
    return {**copy.deepcopy(found), "management": {**found["management"], "allow": list(allow)}}


def logs_in(lab: RunningLab) -> bool:
    return lab.ssh("leaf01", "true").returncode == 0


@needs_lab
@pytest.mark.parametrize("name", daily(NOSES, "nvue"))
def test_a_list_without_netkit_is_reverted_by_the_switch(name: str, tmp_path: Path) -> None:
    fabric = write_fabric(tmp_path / "small", values(name))
    with running(fabric) as lab:
        of_lab = ("--fabric", fabric, "--lab", lab.name)
        write_fabric(fabric, values(name, HERE))
        deployed = lab.netkit("deploy", *of_lab, "--yes")
        assert deployed.returncode == 0, deployed.stdout + deployed.stderr
        assert "nothing to change" in lab.netkit("plan", *of_lab).stdout
        assert logs_in(lab)
        write_fabric(fabric, values(name, ELSEWHERE))
        refused = lab.netkit("deploy", *of_lab, "--yes", "--confirm-within", "20", "--limit", "leaf01")
        assert refused.returncode == 4, refused.stdout + refused.stderr
        assert "leaf01: reverted, runs its earlier configuration" in refused.stdout
        assert logs_in(lab)
        write_fabric(fabric, values(name, HERE))
        assert "nothing to change" in lab.netkit("plan", *of_lab).stdout
        write_fabric(fabric, values(name))
        removed = lab.netkit("deploy", *of_lab, "--yes", "--limit", "leaf01")
        assert removed.returncode == 0, removed.stdout + removed.stderr
        assert "nothing to change" in lab.netkit("plan", *of_lab, "--limit", "leaf01").stdout


PEER = {
    "name": "isp-a",
    "device": "spine01",
    "address": "203.0.113.1/31",
    "peer": "203.0.113.0",
    "asn": 64512,
    "announce": ["10.128.0.0/16"],
}
PORTS = {"nvue": "swp60s0", "sonic": "Ethernet472", "eos": "Ethernet60/1"}


def is_answered(lab: RunningLab) -> bool:
    """Whether a reply from an external peer reaches an address of leaf01."""
    ping = ("ping", "-c", "1", "-W", "2", "-I", "10.128.0.0", "203.0.113.0")
    return lab.lab("exec", "leaf01", "--", *ping).returncode == 0


@needs_lab
@pytest.mark.parametrize("name", daily(NOSES, "sonic"))
def test_an_external_port_drops_what_its_filter_denies(name: str, tmp_path: Path) -> None:
    def edge(filter_: dict[str, Any] | None) -> dict[str, Any]:
        return {**values(name), "name": f"edge-{name}", "external": [{**PEER, "port": PORTS[name], "filter": filter_}]}

    fabric = write_fabric(tmp_path / "small", edge({}))
    with running(fabric) as lab:
        of_lab = ("--fabric", fabric, "--lab", lab.name)
        until(lambda: is_answered(lab), "an answer of the peer")
        assert "nothing to change" in lab.netkit("plan", *of_lab).stdout
        for given, is_open in (({"deny_to": ["10.128.0.0/29"]}, False), (None, True)):
            write_fabric(fabric, edge(given))
            deployed = lab.netkit("deploy", *of_lab, "--yes")
            assert deployed.returncode == 0, deployed.stdout + deployed.stderr
            assert is_answered(lab) == is_open
            assert "nothing to change" in lab.netkit("plan", *of_lab).stdout
