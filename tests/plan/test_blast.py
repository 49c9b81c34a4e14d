"""The impact of a change: sessions, links, rails, hosts, GPUs, and whether another path exists."""

import json

import pytest

from netkit import plan
from netkit.plan import Blast, Running
from netkit.platforms.change import Risk
from tests.plan.scenes import staged


def blast(platform: str, scene: str, device: str) -> Blast:
    played = staged(platform, scene)
    made = plan.make(played.fabric, {device: played.running[device]}, {device: played.intended[device]})
    return made.devices[0].blast


def by_hand(device: str, find: str, put: str, platform: str = "nvue") -> Blast:
    played = staged(platform, "description")
    text = {name: str(content).replace(find, put) for name, content in played.intended[device].items()}
    assert text != played.intended[device]
    made = plan.make(played.fabric, {device: Running(text)}, {device: played.intended[device]})
    return made.devices[0].blast


def test_buffers_of_a_leaf_affect_every_link_and_host() -> None:
    found = blast("nvue", "ecn-threshold", "leaf01")
    assert found == Blast(
        links=(
            "gpu01:rail0–leaf01:swp1s0",
            "gpu02:rail0–leaf01:swp1s1",
            "leaf01:swp33s0–spine01:swp1s0",
            "leaf01:swp33s1–spine02:swp1s0",
        ),
        rails=(0,),
        hosts=("gpu01", "gpu02"),
        gpus=("gpu01:rail0", "gpu02:rail0"),
        is_disruptive=True,
    )


def test_sessions_of_a_whole_leaf_cut_its_hosts_off() -> None:
    found = blast("eos", "asn", "leaf02")
    assert found.sessions == ("leaf02:Ethernet33/1–spine01:Ethernet1/5", "leaf02:Ethernet33/5–spine02:Ethernet1/5")
    assert (found.links, found.rails, found.hosts) == ((), (1,), ("gpu01", "gpu02"))
    assert found.is_disruptive


def test_one_uplink_of_a_leaf_leaves_another_path() -> None:
    found = by_hand(
        "leaf01",
        "remote-as: 4200000001\n                type: unnumbered\n              swp33s1",
        "remote-as: 65000\n                type: unnumbered\n              swp33s1",
    )
    assert found.sessions == ("leaf01:swp33s0–spine01:swp1s0",)
    assert (found.hosts, found.gpus, found.is_disruptive) == ((), (), False)


def test_a_spine_has_other_paths_around_it() -> None:
    found = blast("nvue", "ecn-threshold", "spine01")
    assert len(found.links) == 4
    assert (found.rails, found.hosts, found.is_disruptive) == ((0, 1), (), False)


def test_the_only_spine_affects_every_host() -> None:
    played = staged("nvue", "only-spine")
    made = plan.make(played.fabric, played.running, played.intended)
    device = made.device("spine01")
    assert device is not None
    assert device.risk is Risk.SESSION
    assert device.blast.hosts == ("gpu01", "gpu02", "gpu05", "gpu06")
    assert len(device.blast.gpus) == 8
    assert device.blast.is_disruptive


@pytest.mark.parametrize("platform", ["nvue", "sonic", "eos", "frr"])
def test_a_host_that_left_the_fabric_is_still_named(platform: str) -> None:
    found = blast(platform, "removed-host", "leaf01")
    assert found.hosts == ("gpu02",)
    assert found.gpus == ("gpu02:rail0",)
    assert [link for link in found.links if "gpu02" in link]
    assert not [link for link in found.links if "gpu01" in link]


def test_an_unused_port_affects_nothing() -> None:
    for platform in ("nvue", "sonic", "eos", "frr"):
        assert blast(platform, "new-spine", "leaf01") == Blast()


def test_a_factory_fresh_switch_carries_no_traffic() -> None:
    played = staged("sonic", "description")
    tables = json.loads(played.intended["leaf01"]["config_db.json"])
    cages = {f"Ethernet{number}": {"lanes": f"{number}", "admin_status": "down"} for number in range(0, 512, 8)}
    factory = json.dumps({"DEVICE_METADATA": tables["DEVICE_METADATA"], "PORT": cages})
    running = Running({"config_db.json": factory, "frr.conf": ""})
    made = plan.make(played.fabric, {"leaf01": running}, {"leaf01": played.intended["leaf01"]})
    (device,) = made.devices
    assert (device.risk, device.way.method) == (Risk.REBOOT, "reload")
    assert device.blast == Blast()


def test_a_description_affects_nothing() -> None:
    for platform in ("nvue", "sonic", "eos", "frr"):
        assert blast(platform, "description", "leaf01") == Blast()


def test_one_port_affects_its_own_host_only() -> None:
    found = by_hand(
        "leaf01",
        "speed 400g-4\n   error-correction encoding reed-solomon\n   no switchport\n   ip address 10.128.0.0/31",
        "speed 200g-4\n   error-correction encoding reed-solomon\n   no switchport\n   ip address 10.128.0.0/31",
        "eos",
    )
    assert (found.hosts, found.gpus) == (("gpu01",), ("gpu01:rail0",))
    assert found.links == ("gpu01:rail0–leaf01:Ethernet1/1",)


def test_a_host_affects_the_rails_that_change() -> None:
    found = by_hand("gpu01", "addresses: [10.128.128.1/31]", "addresses: [10.128.128.9/31]")
    assert found == Blast(
        links=("gpu01:rail1–leaf02:swp1s0",),
        rails=(1,),
        hosts=("gpu01",),
        gpus=("gpu01:rail1",),
        is_disruptive=True,
    )


def test_a_host_names_the_rail_that_its_intent_no_longer_has() -> None:
    found = blast("nvue", "removed-rail", "gpu01")
    assert (found.hosts, found.gpus, found.is_disruptive) == (("gpu01",), ("gpu01:rail0", "gpu01:rail1"), True)


def test_one_link_counts_once_for_both_its_ends() -> None:
    played = staged("nvue", "ecn-threshold")
    whole = plan.make(played.fabric, played.running, played.intended).blast
    assert len(whole.links) == len(set(whole.links)) == len(tuple(played.fabric.links()))
    assert (whole.rails, len(whole.hosts), len(whole.gpus)) == ((0, 1), 4, 8)
