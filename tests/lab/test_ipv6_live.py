"""IPv6 beside IPv4 in a lab of each NOS: loopbacks and hosts reach each other, and the plan is empty."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests import intents
from tests.lab.running import RunningLab, intent, needs_lab, on_platform, running, until, write_fabric
from tests.lanes import daily
from tests.test_ipv6 import SERVICES, V6

NOSES = {
    "frr": ("frr", "", "8.4.4"),
    "nvue": ("nvue", "", "5.16.1"),
    "nvue-old": ("nvue", "", "5.14.0"),
    "sonic": ("sonic", "", "202411"),
    "sonic-unified": ("sonic", "", "202511"),
    "eos": ("eos", "DCS-7060X6-64PE", "4.35.1F"),
}
WITH_VLAN = ("eos", "nvue", "sonic-unified")


def values(name: str) -> dict[str, Any]:
    platform, model, version = NOSES[name]
    found = on_platform(platform, intent(purpose="lab", services={}), model=model, version=version)
    if name.endswith("unified"):
        found["routing"] = {"bfd": {"interval_ms": 300, "multiplier": 3}}
        for tier in found["switches"].values():
            tier["routing_mode"] = "unified"
    intents.merge(found, {**V6, **SERVICES, "attachment": "vlan" if name in WITH_VLAN else "p2p"})
    return found


def ways(lab: RunningLab, device: str, prefix: str) -> int:
    """The number of next hops of a route."""
    found = json.loads(lab.run(device, "/usr/bin/vtysh", "-c", "show ipv6 route bgp json"))
    return sum(len(route["nexthops"]) for route in found.get(prefix, ()))


def found(lab: RunningLab) -> dict[str, list[str]]:
    """The findings of host checks, by check."""
    of_lab = ("--fabric", lab.fabric, "--lab", lab.name, "--window", "2", "--format", "json")
    judged = json.loads(lab.netkit("check", "routes", "probe.loss", *of_lab).stdout)
    wrong = {
        result["id"].partition("[")[0]: [
            one["text"] for one in result["findings"] if one["verdict"] in {"warn", "fail"}
        ]
        for result in judged["results"]
    }
    return {check: texts for check, texts in wrong.items() if texts}


@needs_lab
@pytest.mark.parametrize("name", daily(NOSES, "eos"))
def test_loopbacks_and_hosts_reach_each_other(name: str, tmp_path: Path) -> None:
    fabric = write_fabric(tmp_path / "small", values(name))
    with running(fabric) as lab:
        until(lambda: ways(lab, "leaf01", "2001:db8:255::2/128") == 2, "both spines on the way to leaf02")
        lab.run("leaf01", "ping", "-c", "2", "-W", "5", "-I", "2001:db8:255::1", "2001:db8:255::2")
        source = f"2001:db8:128::{2 if name in WITH_VLAN else 1}"
        for to in ("2001:db8:128::3", "2001:db8:128:8000::3"):
            lab.run("gpu01", "ping", "-c", "2", "-W", "5", "-I", source, to)
        assert "nothing to change" in lab.netkit("plan", "--fabric", fabric, "--lab", lab.name).stdout
        assert found(lab) == {}
        lab.run("gpu02", "ip", "-6", "route", "flush", "table", "100")
        lab.run("gpu02", "ip", "-6", "address", "flush", "dev", "rail1", "scope", "global")
        wrong = found(lab)
        assert wrong.keys() == {"routes.lookups", "routes.addresses", "probe.loss"}, wrong
        assert any("has no address, not 2001:db8:128:8000::3/" in text for text in wrong["routes.addresses"]), wrong
        assert any("over IPv6" in text for text in wrong["probe.loss"]), wrong
