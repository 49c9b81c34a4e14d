"""A storage network beside the rails, in a lab: LAGs to a switch pair, a gateway, an external peer, and changes."""

import json
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from tests import intents
from tests.command import ROOT, environment
from tests.lab.running import RunningLab, intent, needs_lab, on_platform, running, until, until_clean, write_fabric
from tests.lanes import is_whole

GATEWAY, OTHER_HOST, PROVIDER = "10.200.0.1", "10.200.0.17", "203.0.113.0"


def values(**entry: Any) -> dict[str, Any]:
    found = on_platform("nvue", intent(purpose="lab", services={}), version="5.16.1")
    return {**found, "name": "beside", "networks": [intents.storage(**entry)], "external": [intents.STORAGE_PEER]}


def on_eos(**entry: Any) -> dict[str, Any]:
    found = on_platform("eos", intent(purpose="lab", services={}), model="DCS-7060X6-64PE", version="4.35.1F")
    return {
        **found,
        "name": "beside-eos",
        "networks": [intents.storage_eos(**{"hosts": {"routes": ["0.0.0.0/0"]}, **entry})],
        "external": [intents.EOS_PEER],
    }


ON = {"nvue": values, "eos": on_eos}


def answers(lab: RunningLab, host: str, *targets: str) -> bool:
    return all(
        " 0% packet loss" in lab.run(host, "sh", "-c", f"ping -c 2 -i 0.2 -W 1 {target} || true") for target in targets
    )


def default_route(lab: RunningLab, switch: str) -> dict[str, str]:
    """Where the default route of a switch leads: to an external peer, or to the other switch of the pair."""
    routes = json.loads(lab.run(switch, "/usr/bin/vtysh", "-c", "show ip route json"))
    hops = routes.get("0.0.0.0/0", [{}])[0].get("nexthops", [])
    ways = ({"ip": hop["ip"]} if "." in hop["ip"] else {"interface": hop["interfaceName"]} for hop in hops)
    return next(ways, {})


def deployed(lab: RunningLab, fabric: Path, changed: dict[str, Any]) -> str:
    """Deploy a change and return the output; the second run has nothing to do."""
    write_fabric(fabric, changed)
    of_lab = ("--fabric", fabric, "--lab", lab.name)
    done = lab.netkit("deploy", *of_lab, "--yes", "--disruptive", "--busy")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "nothing to change" in lab.netkit("plan", *of_lab).stdout
    return done.stdout + done.stderr


def running_config(lab: RunningLab, switch: str) -> str:
    return lab.run(switch, "Cli", "-p", "15", "-c", "show running-config")


@needs_lab
def test_unconfigured_devices_get_a_network_which_changes_and_leaves_the_hosts_and_comes_back(tmp_path: Path) -> None:
    given: dict[str, Any] = {"hosts": {"routes": ["0.0.0.0/0"]}}
    fabric = write_fabric(tmp_path / "small", values(**given))
    with running(fabric, "--bare") as lab:
        of_lab = ("--fabric", fabric, "--lab", lab.name)
        deployed(lab, fabric, values(**given))
        until(lambda: answers(lab, "gpu01", GATEWAY, OTHER_HOST, PROVIDER), "the network and the provider behind it")
        assert default_route(lab, "storage02") == {"interface": "peerlink.4094"}

        if is_whole():
            # An additional VLAN: both switches change, never together.
            given["vlans"] = [*intents.STORAGE["vlans"], {"number": 202, "prefix": "10.202.0.0/24"}]
            report = deployed(lab, fabric, values(**given))
            assert {"wave 1, canary: storage01", "wave 2: storage02"} <= set(report.splitlines())

            # Hosts: another route and MTU.
            given |= {"hosts": {"routes": ["203.0.113.0/31"]}, "mtu_bytes": 4000}
            deployed(lab, fabric, values(**given))
            until(lambda: answers(lab, "gpu01", GATEWAY, OTHER_HOST, PROVIDER), "the network after a change")
            assert "mtu 4000" in lab.run("gpu01", "ip", "link", "show", "bond0")

        # The LAG is removed, and restored by rollback.
        gone = values(**given)
        gone["networks"][0].pop("hosts")
        run = re.findall(r"^run (\S+)", deployed(lab, fabric, gone), re.MULTILINE)[0]
        assert "bond0" not in lab.run("gpu01", "ip", "-br", "link")
        back = lab.netkit("rollback", run, *of_lab, "--yes", "--disruptive", "--busy")
        assert back.returncode == 0, back.stdout + back.stderr
        until(lambda: answers(lab, "gpu01", GATEWAY, OTHER_HOST, PROVIDER), "the network after a rollback")


@needs_lab
@pytest.mark.whole
def test_unconfigured_eos_switches_get_the_whole_configuration(tmp_path: Path) -> None:
    fabric = write_fabric(tmp_path / "small", on_eos())
    with running(fabric, "--bare") as lab:
        deployed(lab, fabric, on_eos())
        until(lambda: answers(lab, "gpu01", GATEWAY, OTHER_HOST), "the network")


FAULTS = {
    ("link-flap", "storage01:swp1"): {("links.flaps", "storage01:swp1"), ("links.flaps", "gpu01:nic0")},
    ("slow-link-up", "gpu02:nic0", "seconds=600"): {
        *(("links.up", end) for end in ("storage01:swp2", "gpu02:nic0")),
        *(("lag.ports", "storage01:swp2"), ("lag.members", "gpu02:nic0")),
    },
    ("wrong-mtu", "gpu01:nic1"): {("links.mtu", "gpu01:nic1")},
    ("wrong-cable", "storage02:swp1"): {
        ("links.cabling", end) for end in ("storage02:swp1", "storage02:swp2", "gpu01:nic1", "gpu02:nic1")
    },
}
"""Faults of ports beside the rails, and all findings of each."""


def found(lab: RunningLab, fabric: Path) -> set[tuple[str, str]]:
    """The failures, by check and place."""
    checked = lab.netkit("check", "--fabric", fabric, "--lab", lab.name, "--window", "6", "--format", "json")
    return {
        (one["check"], f"{one['device']}:{one['place']}")
        for result in json.loads(checked.stdout)["results"]
        for one in result["findings"]
        if one["verdict"] not in {"pass", "skipped"}
    }


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningLab]:
    """A lab for a test that restores it, and for a last one that changes it."""
    with running(write_fabric(tmp_path_factory.mktemp("pair") / "small", values())) as booted:
        yield booted


@needs_lab
def test_checks_find_faults_of_ports_beside_the_rails(lab: RunningLab) -> None:
    fabric = lab.fabric
    of_lab = ("--fabric", fabric, "--lab", lab.name)
    assert found(lab, fabric) == set()
    for words in FAULTS:
        assert lab.netkit("lab", "break", *words, *of_lab).returncode == 0
    refused = lab.netkit("lab", "break", "pfc-off", "storage01:swp1", *of_lab)
    assert "storage01:swp1 is at a network beside the rails: pfc-off would not show" in refused.stderr
    until(lambda: found(lab, fabric) == set.union(*FAULTS.values()), "every fault is found, and nothing else")
    assert lab.netkit("lab", "heal", "--all", *of_lab).returncode == 0
    until(lambda: found(lab, fabric) == set(), "nothing is found any more")


DRIFT = {("drift.configuration", "storage01:"), ("drift.configuration", "storage02:")}
CHANGING = re.compile(r" 1 (loading|applying|reconnecting|verifying)")


@needs_lab
def test_a_deploy_stops_before_the_second_switch_of_a_pair_if_a_lag_lost_its_link(
    lab: RunningLab, tmp_path: Path
) -> None:
    fabric = lab.fabric
    of_lab = ("--fabric", fabric, "--lab", lab.name)
    whole = set(found(lab, fabric))
    vlans = [*intents.STORAGE["vlans"], {"number": 202, "prefix": "10.202.0.0/24"}]
    write_fabric(fabric, values(vlans=vlans))
    said = tmp_path / "said.txt"
    words = (sys.executable, "-m", "netkit", "deploy", *of_lab, "--yes", "--disruptive", "--busy")
    shows = {key: text for key, text in environment(NETKIT_LAB_DIR=str(lab.home)).items() if key != "NETKIT_PROGRESS"}
    with said.open("w") as out, subprocess.Popen(words, stdout=out, stderr=out, cwd=ROOT, env=shows) as deploy:
        until(lambda: CHANGING.search(said.read_text()) is not None, "the first switch changes")
        assert lab.netkit("lab", "break", "slow-link-up", "storage01:swp1", "seconds=900", *of_lab).returncode == 0
        assert deploy.wait(300) == 1
    text = said.read_text()
    lost = "the link of gpu01 is not back (swp1): it would be cut off when the other switch changes"
    assert f"storage01: reverted, runs its earlier configuration: after the change, its health is worse: {lost}" in text
    assert "not started, running their earlier configuration: storage02" in text
    broken = {("links.up", "storage01:swp1"), ("links.up", "gpu01:nic0")}
    assert found(lab, fabric) - whole - DRIFT == broken | {
        ("lag.ports", "storage01:swp1"),
        ("lag.members", "gpu01:nic0"),
    }
    if not is_whole():
        return  # what follows happens to a pair with EOS too

    # Once the link is back, the same deploy succeeds.
    assert lab.netkit("lab", "heal", "--all", *of_lab).returncode == 0
    until(lambda: found(lab, fabric) <= whole | DRIFT, "the link is back")
    deployed(lab, fabric, values(vlans=vlans))

    # A change that takes links down does not start where a host has no other.
    for port in ("storage02:swp63", "storage02:swp64", "gpu02:nic1"):
        assert lab.netkit("lab", "break", "slow-link-up", port, "seconds=900", *of_lab).returncode == 0
    paired = {("lag.pair", f"{name}:") for name in ("storage01", "storage02")}
    alone = {("lag.ports", "storage02:swp2"), ("lag.members", "gpu02:nic1")}
    assert {one for one in found(lab, fabric) if one[0].startswith("lag.")} == paired | alone
    write_fabric(fabric, values(vlans=vlans, mtu_bytes=4000))
    refused = lab.netkit("deploy", *of_lab, "--yes", "--disruptive", "--limit", "storage01")
    reason = "gpu02 has no link to storage02: the change would cut it off; --busy proceeds anyway"
    assert refused.returncode == 1
    assert reason in refused.stdout + refused.stderr


@needs_lab
def test_a_pair_with_eos_serves_hosts_detects_a_lost_member_and_rolls_back(tmp_path: Path) -> None:
    fabric = write_fabric(tmp_path / "small", on_eos())
    with running(fabric) as lab:
        of_lab = ("--fabric", fabric, "--lab", lab.name)
        until(lambda: answers(lab, "gpu01", GATEWAY, OTHER_HOST, PROVIDER), "the network and the provider behind it")
        assert default_route(lab, "storage02") == {"ip": "169.254.0.0"}
        assert "nothing to change" in lab.netkit("plan", *of_lab).stdout
        until(lambda: found(lab, fabric) == set(), "nothing is found")

        # Another prefix changes on both switches and all hosts, or not at all, whether planned now or in a file.
        plan, vlans = tmp_path / "plan.json", intents.STORAGE["vlans"]
        moved = on_eos(vlans=[{**vlans[0], "prefix": "10.210.0.0/22"}, *vlans[1:]])
        write_fabric(fabric, {**moved, "external": [{**intents.EOS_PEER, "announce": ["10.210.0.0/22"]}]})
        assert lab.netkit("plan", *of_lab, "-o", plan).returncode == 0
        for words in ((), (plan,)):
            refused = lab.netkit("deploy", *words, *of_lab, "--yes", "--disruptive", "--limit", "storage01")
            assert refused.returncode == 3
            worse = "this leaves the fabric worse than it was: gpu01, gpu02 cut off from a network beside the rails"
            assert f"{worse}; change these with it: gpu01,gpu02,storage02" in refused.stdout + refused.stderr

        # An additional VLAN, which a server has too: both switches change, never together.
        more = {
            "vlans": [*intents.STORAGE["vlans"], {"number": 202, "prefix": "10.202.0.0/24"}],
            "servers": [{"name": "nas1", "ports": ["Ethernet45/1"], "vlan": 201, "tagged": [200, 202]}],
        }
        report = deployed(lab, fabric, on_eos(**more))
        assert {"wave 1, canary: storage01", "wave 2: storage02"} <= set(report.splitlines())
        assert "10.202.0.3/24" in lab.run("storage02", "ip", "-br", "address", "show", "Vlan202")

        # A host that lost a member is found, and blocks a change of the other switch that takes links down.
        assert (
            lab.netkit("lab", "break", "slow-link-up", "storage01:Ethernet1/1", "seconds=900", *of_lab).returncode == 0
        )
        lost = {
            *(("links.up", end) for end in ("storage01:Ethernet1/1", "gpu01:nic0")),
            *(("lag.ports", "storage01:Ethernet1/1"), ("lag.members", "gpu01:nic0")),
        }
        until(lambda: found(lab, fabric) == lost, "the lost member is found, and nothing else")
        until(lambda: answers(lab, "gpu01", GATEWAY, OTHER_HOST), "the other member carries")
        breaking = {**more, "servers": [{**more["servers"][0], "lag": False}]}
        write_fabric(fabric, on_eos(**breaking))
        refused = lab.netkit("deploy", *of_lab, "--yes", "--disruptive", "--limit", "storage02")
        assert refused.returncode == 1
        reason = "gpu01 has no link to storage01: the change would cut it off; --busy proceeds anyway"
        assert reason in refused.stdout + refused.stderr

        # Once healed, the change succeeds, and is rolled back.
        assert lab.netkit("lab", "heal", "--all", *of_lab).returncode == 0
        until(lambda: found(lab, fabric) <= DRIFT, "the link is back")
        before = running_config(lab, "storage02")
        run = re.findall(r"^run (\S+)", deployed(lab, fabric, on_eos(**breaking)), re.MULTILINE)[0]
        assert "Port-Channel89" in before
        assert "Port-Channel89" not in running_config(lab, "storage02")
        back = lab.netkit("rollback", run, *of_lab, "--yes", "--disruptive", "--busy")
        assert back.returncode == 0, back.stdout + back.stderr
        assert running_config(lab, "storage02") == before
        until(lambda: answers(lab, "gpu01", GATEWAY, OTHER_HOST, PROVIDER), "the network after a rollback")


@needs_lab
@pytest.mark.whole
@pytest.mark.parametrize(
    ("platform", "gone", "ports"),
    [
        *(("nvue", name, ("swp1", "swp2", "swp63", "swp64")) for name in ("storage01", "storage02")),
        ("eos", "storage01", ("et1_1", "et1_5", "et63_1", "et64_1")),
    ],
)
def test_the_other_switch_of_a_pair_takes_over(
    platform: str, gone: str, ports: tuple[str, ...], tmp_path: Path
) -> None:
    fabric = write_fabric(tmp_path / "small", ON[platform]())
    with running(fabric) as lab:
        until(lambda: answers(lab, "gpu01", GATEWAY, OTHER_HOST), "the network")
        for port in ports:
            lab.run(gone, "ip", "link", "set", port, "down")
        until(lambda: answers(lab, "gpu01", GATEWAY, OTHER_HOST), "the network over the switch that is left")


@needs_lab
@pytest.mark.whole
@pytest.mark.parametrize(("name", "host"), [("training-cluster", "gpu10"), ("hgx-256", "gpu32")])
def test_a_shipped_cluster_with_storage_runs(name: str, host: str, tmp_path: Path) -> None:
    fabric = Path(shutil.copytree(ROOT / "inventory" / name, tmp_path / name))
    with running(fabric) as lab:
        of_lab = ("--fabric", fabric, "--lab", lab.name)
        until(lambda: answers(lab, host, GATEWAY, "10.200.0.16"), "the storage network")
        if name == "training-cluster":
            for switch, peer in (("storage01", "203.0.113.0"), ("storage02", "203.0.113.2")):
                until(lambda: default_route(lab, switch) == {"ip": peer}, f"{switch}'s own provider")  # noqa: B023
        assert "nothing to change" in lab.netkit("plan", *of_lab).stdout
        until_clean(partial(lab.netkit, "check", *of_lab))
