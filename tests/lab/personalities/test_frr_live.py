"""Linux switches in a running lab: the real vtysh and frr-reload.py, netplan and systemd."""

import json
from collections.abc import Iterator

import pytest

from netkit import design
from netkit.design import Fabric
from netkit.hardware import Catalog
from netkit.intent import Intent
from tests.lab.personalities.test_frr_files import texts_of
from tests.lab.running import RunningLab, intent, needs_lab, on_platform, running, until, write_fabric

pytestmark = needs_lab
VALUES = on_platform("frr", intent(attachment="vlan", purpose="lab"), version="8.4.4")
FABRIC: Fabric = design.build(Intent.model_validate(VALUES), Catalog())
NETPLAN = "/etc/netplan/60-netkit.yaml"


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningLab]:
    with running(write_fabric(tmp_path_factory.mktemp("fabric"), VALUES)) as booted:
        yield booted


def is_established(lab: RunningLab, device: str) -> bool:
    found = lab.ssh(device, "vtysh -c 'show bgp ipv4 unicast summary json'")
    peers = json.loads(found.stdout).get("peers", {}) if found.returncode == 0 else {}
    states = {name: peer["state"] for name, peer in peers.items()}
    return states == {port.name: "Established" for port in FABRIC.switch(device).fabric_ports}


def link(lab: RunningLab, device: str, name: str) -> dict[str, object]:
    (found,) = json.loads(lab.run(device, "ip", "-d", "-j", "link", "show", "dev", name))
    return dict(found)


def test_files_are_at_their_paths(lab: RunningLab) -> None:
    texts = texts_of(FABRIC, "leaf01")
    assert lab.shell("leaf01", "cat /etc/frr/frr.conf") == texts["frr.conf"]
    assert lab.shell("leaf01", f"cat {NETPLAN}") == texts["netplan.yaml"]
    assert lab.shell("leaf01", "sysctl -n net.ipv4.conf.all.arp_announce") == "2\n"
    assert is_established(lab, "leaf01")


def test_bridges_learn_as_configured_in_netplan(lab: RunningLab) -> None:
    leaf = FABRIC.switch("leaf01")
    assert leaf.vlan is not None
    bridge = link(lab, "leaf01", f"vlan{leaf.vlan.number}")
    data = bridge["linkinfo"]["info_data"]  # type: ignore[index]
    assert (data["stp_state"], data["forward_delay"], data["ageing_time"]) == (0, 0, 180_000)
    assert link(lab, "leaf01", leaf.host_ports[0].name)["inet6_addr_gen_mode"] == "none"


def test_a_daemon_that_dies_is_restarted_with_the_saved_configuration(lab: RunningLab) -> None:
    before = lab.shell("leaf01", "vtysh -c 'show running-config'")
    for daemon in ("bgpd", "zebra"):
        number = lab.run("leaf01", "cat", f"/run/frr/{daemon}.pid").strip()
        lab.run("leaf01", "kill", "-KILL", number)
        until(lambda old=number, name=daemon: restarted(lab, name, old), f"{daemon} is restarted")  # type: ignore[misc]
        until(lambda: is_established(lab, "leaf01"), f"sessions are back after {daemon} died")
        assert lab.shell("leaf01", "vtysh -c 'show running-config'") == before


def restarted(lab: RunningLab, daemon: str, old: str) -> bool:
    return lab.run("leaf01", "sh", "-c", f"cat /run/frr/{daemon}.pid || true").strip() not in {"", old}


def test_frr_reload_accepts_an_edited_file(lab: RunningLab) -> None:
    edit = "sed -i 's/maximum-paths 64/maximum-paths 2/' /etc/frr/frr.conf"
    lab.shell("leaf01", f"{edit} && /usr/lib/frr/frr-reload.py --reload /etc/frr/frr.conf")
    assert "maximum-paths 2" in lab.shell("leaf01", "vtysh -c 'show running-config'")
    lab.shell("leaf01", "sed -i 's/maximum-paths 2$/maximum-paths 64/' /etc/frr/frr.conf && systemctl reload frr")
    assert "maximum-paths 2" not in lab.shell("leaf01", "vtysh -c 'show running-config'")


def test_netplan_changes_links_and_leaves_routing_alone(lab: RunningLab) -> None:
    port = FABRIC.switch("leaf02").fabric_ports[0].name
    lab.shell("leaf02", f"cp {NETPLAN} /root/kept && sed -i 's/mtu: 9216/mtu: 9000/' {NETPLAN} && netplan apply")
    assert link(lab, "leaf02", port)["mtu"] == 9000
    assert is_established(lab, "leaf02")
    wrong = lab.ssh("leaf02", f"sed -i 's/mtu: 9000/mtu: 70/; s/ethernets:/ethernest:/' {NETPLAN}; netplan apply")
    assert wrong.returncode != 0
    assert link(lab, "leaf02", port)["mtu"] == 9000
    lab.shell("leaf02", f"cp /root/kept {NETPLAN} && systemctl restart systemd-networkd")
    assert link(lab, "leaf02", port)["mtu"] == 9216


def test_services_can_be_restarted(lab: RunningLab) -> None:
    lab.shell("leaf02", "systemctl restart frr lldpd snmpd chrony rsyslog")
    assert lab.shell("leaf02", "systemctl is-active frr") == "active\n"
    until(lambda: is_established(lab, "leaf02"), "the sessions are back")
    lab.shell("leaf02", "systemctl stop frr")
    assert lab.ssh("leaf02", "systemctl is-active frr").stdout == "inactive\n"
    lab.shell("leaf02", "systemctl start frr")
    until(lambda: is_established(lab, "leaf02"), "the sessions are back again")


def test_a_detached_timer_runs_and_can_be_stopped(lab: RunningLab) -> None:
    lab.shell("spine01", "systemd-run --on-active=1 --unit=soon touch /root/soon")
    lab.shell("spine01", "systemd-run --on-active=3600 --unit=late touch /root/late")
    until(lambda: lab.ssh("spine01", "test -e /root/soon").returncode == 0, "the timer ended")
    assert lab.shell("spine01", "systemctl is-active late.timer") == "active\n"
    lab.shell("spine01", "systemctl stop late.timer")
    assert lab.ssh("spine01", "systemctl is-active late.timer").returncode != 0


def test_a_restarted_switch_boots_with_its_files(lab: RunningLab) -> None:
    lab.shell("spine02", "hostnamectl set-hostname renamed")
    assert lab.lab("restart", "spine02").returncode == 0
    until(lambda: is_established(lab, "spine02"), "the sessions are back")
    assert lab.shell("spine02", "hostnamectl hostname") == "renamed\n"
