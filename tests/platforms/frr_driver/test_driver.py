"""The driver of Linux switches with FRR, on switches of a lab: real sshd, vtysh and frr-reload.py."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from netkit import design
from netkit.design import Fabric
from netkit.errors import AccessError, DeviceError
from netkit.hardware import Catalog
from netkit.intent import Intent
from tests.lab.running import RunningLab, intent, needs_lab, on_platform, running, until, write_fabric
from tests.platforms import driven
from tests.platforms.getters import assert_answered

pytestmark = needs_lab
VALUES = on_platform("frr", intent(purpose="lab"), version="8.4.4")
FABRIC: Fabric = design.build(Intent.model_validate(VALUES), Catalog())
Files = dict[str, str]


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningLab]:
    """Boot factory-fresh switches, and deploy to each."""
    with running(write_fabric(tmp_path_factory.mktemp("fabric"), VALUES), "--bare") as bare:
        for switch in FABRIC.switches:
            with frr(bare, switch.name) as device:
                assert driven.deploy("frr", device, files(switch.name)) > 100
        yield bare


def frr(lab: RunningLab, name: str, **changes: Any) -> Any:
    return driven.driver(lab, name, "frr", **changes)


def files(name: str = "leaf01") -> Files:
    return driven.files_of(FABRIC, name)


def edited(name: str, file: str, before: str, after: str) -> Files:
    found = files(name)
    assert before in found[file]
    return {**found, file: found[file].replace(before, after)}


def kept(lab: RunningLab, name: str, path: str) -> str:
    """A file as a reboot would read it."""
    return lab.shell(name, f"cat {path}")


def leaves_nothing(lab: RunningLab, name: str) -> bool:
    return lab.shell(name, "ls -d /run/netkit-* 2>/dev/null; true") == ""


def mtu(lab: RunningLab, device: str, port: str) -> int:
    (found,) = json.loads(lab.shell(device, f"ip -j link show dev {port}"))
    return int(found["mtu"])


def test_a_second_run_finds_nothing_to_do_and_sessions_are_up(lab: RunningLab) -> None:
    with frr(lab, "leaf01") as device:
        assert driven.deploy("frr", device, files()) == 0
        assert device.compare_config() == ""
        with pytest.raises(DeviceError, match="nothing is staged"):
            device.commit_config(revert_in=60)
        wanted = {port.name for port in FABRIC.switch("leaf01").fabric_ports}
        until(lambda: {one.interface for one in device.sessions() if one.is_established} == wanted, "sessions are up")
        until(lambda: all(one.received_prefixes > 0 for one in device.sessions()), "routes are learnt")
        assert device.os_version() == "8.4.4"
    assert kept(lab, "leaf01", "/etc/frr/frr.conf") == files()["frr.conf"]
    assert driven.secret("SNMP_AUTH") in kept(lab, "leaf01", "/etc/snmp/snmpd.conf")
    assert leaves_nothing(lab, "leaf01")


def test_getters_return_what_napalm_defines(lab: RunningLab) -> None:
    ports = {port.name for port in FABRIC.switch("leaf02").fabric_ports}
    with frr(lab, "leaf02") as device:
        until(lambda: ports <= device.get_lldp_neighbors().keys(), "LLDP has found the neighbours")
        assert device.get_lldp_neighbors()["swp33s0"][0]["hostname"] == "spine01"
        assert device.get_facts()["hostname"] == "leaf02"
        assert device.get_interfaces()["swp33s0"]["mtu"] == 9216
        assert device.get_interfaces_counters()["swp33s0"]["rx_errors"] == 0
        until(lambda: all(one["is_up"] for one in peers(device).values()), "sessions are up")
        assert peers(device).keys() == ports
        assert_answered(device, FABRIC, "leaf02", "spine01")
        assert device.get_config()["startup"] == files("leaf02")["frr.conf"]
        assert device.is_alive() == {"is_alive": True}


def peers(device: Any) -> dict[str, Any]:
    return dict(device.get_bgp_neighbors()["global"]["peers"])


def test_a_change_of_frr_netplan_and_kernel_is_made_and_kept_once_confirmed(lab: RunningLab) -> None:
    changed = edited("leaf01", "frr.conf", "maximum-paths 64", "maximum-paths 2")
    changed["netplan.yaml"] = changed["netplan.yaml"].replace("mtu: 9216", "mtu: 9000")
    changed["sysctl.conf"] = changed["sysctl.conf"].replace("arp_announce = 2", "arp_announce = 1")
    with frr(lab, "leaf01") as device:
        device.load_candidate(driven.candidate("frr", device, changed))
        said = device.compare_config()
        assert "  maximum-paths 2\n" in f"{said}\n"
        assert "+sysctl.conf net.ipv4.conf.all.arp_announce 1" in said
        device.commit_config(revert_in=600)
        assert device.has_pending_commit()
        assert driven.candidate("frr", device, changed).changes == ()
        assert mtu(lab, "leaf01", "swp33s0") == 9000
        assert lab.shell("leaf01", "sysctl -n net.ipv4.conf.all.arp_announce") == "1\n"
        assert kept(lab, "leaf01", "/etc/frr/frr.conf") == files()["frr.conf"]
        device.confirm_commit()
        assert not device.has_pending_commit()
        assert kept(lab, "leaf01", "/etc/frr/frr.conf") == changed["frr.conf"]
        assert kept(lab, "leaf01", "/etc/netplan/60-netkit.yaml") == changed["netplan.yaml"]
        assert driven.deploy("frr", device, files()) > 2
    assert mtu(lab, "leaf01", "swp33s0") == 9216
    assert leaves_nothing(lab, "leaf01")


def test_a_removal_removes_owned_lines_and_keeps_the_rest(lab: RunningLab) -> None:
    extra = "ip prefix-list LOCAL seq 99 permit 203.0.113.0/24\n"
    foreign = ("ip route 198.51.100.0/24 blackhole", "bgp community-list standard THEIRS seq 5 permit 65000:1")
    with frr(lab, "spine01") as device:
        lab.shell("spine01", f"vtysh -c 'configure terminal' -c '{foreign[0]}' -c '{foreign[1]}'")
        more = files("spine01")
        more["frr.conf"] += extra
        assert driven.deploy("frr", device, more) == 1
        assert extra in device.running_files()["frr.conf"]
        assert driven.deploy("frr", device, files("spine01")) == 1
        text = device.running_files()["frr.conf"]
        assert extra not in text
        assert all(line in text for line in foreign)
        assert all(line in kept(lab, "spine01", "/etc/frr/frr.conf") for line in foreign)


@pytest.mark.parametrize(
    ("file", "before", "after"),
    [
        ("frr.conf", "maximum-paths 64", "maximum-paths 2"),
        ("frr.conf", "neighbor swp33s1", "neighbor swp33s9"),
        ("netplan.yaml", "mtu: 9216", "mtu: 9000"),
        ("sysctl.conf", "arp_announce = 2", "arp_announce = 1"),
        ("daemons", "ospfd=no", "ospfd=yes"),
        ("lldpd.conf", "tx-interval 30", "tx-interval 10"),
    ],
)
def test_a_rollback_restores_what_ran_before(lab: RunningLab, file: str, before: str, after: str) -> None:
    with frr(lab, "leaf02") as device:
        was = dict(device.running_files())
        device.load_candidate(driven.candidate("frr", device, edited("leaf02", file, before, after)))
        device.commit_config(revert_in=600)
        assert dict(device.running_files()) != was
        device.rollback()
        assert not device.has_pending_commit()
        assert dict(device.running_files()) == was
    assert mtu(lab, "leaf02", "swp33s0") == 9216
    assert lab.shell("leaf02", "sysctl -n net.ipv4.conf.all.arp_announce") == "2\n"
    assert leaves_nothing(lab, "leaf02")


def test_napalm_merges_replaces_and_rolls_back(lab: RunningLab) -> None:
    with frr(lab, "leaf02") as device:
        was = dict(device.running_files())
        device.load_merge_candidate(config="ip prefix-list MINE seq 5 permit 203.0.113.0/24\n")
        assert "ip prefix-list MINE seq 5 permit 203.0.113.0/24" in device.compare_config()
        device.commit_config()
        assert "ip prefix-list MINE" in kept(lab, "leaf02", "/etc/frr/frr.conf")
        device.rollback()
        assert dict(device.running_files()) == was
        device.load_replace_candidate(config=files("leaf02")["frr.conf"])
        assert device.compare_config() == ""
        device.discard_config()
    assert kept(lab, "leaf02", "/etc/frr/frr.conf") == files("leaf02")["frr.conf"]
    assert leaves_nothing(lab, "leaf02")


def test_a_commit_reverts_by_itself_without_a_connection(lab: RunningLab) -> None:
    with frr(lab, "leaf02") as device:
        was = dict(device.running_files())
        changed = edited("leaf02", "frr.conf", "maximum-paths 64", "maximum-paths 3")
        device.load_candidate(driven.candidate("frr", device, changed))
        device.commit_config(revert_in=20)
    until(lambda: leaves_nothing(lab, "leaf02"), "the timer has taken it back")
    with frr(lab, "leaf02") as other:
        assert not other.has_pending_commit()
        assert dict(other.running_files()) == was
        with pytest.raises(DeviceError, match="no commit waits"):
            other.confirm_commit()


def test_a_commit_is_confirmed_over_another_connection_and_blocks_any_other(lab: RunningLab) -> None:
    changed = edited("leaf02", "frr.conf", "maximum-paths 64", "maximum-paths 8")
    with frr(lab, "leaf02") as device:
        device.load_candidate(driven.candidate("frr", device, changed))
        device.commit_config(revert_in=600)
    with frr(lab, "leaf02") as other:
        assert other.has_pending_commit()
        with pytest.raises(DeviceError, match="a change waits for its confirmation"):
            other.load_candidate(driven.candidate("frr", other, files("leaf02")))
        other.confirm_commit()
        assert driven.candidate("frr", other, changed).changes == ()
        assert driven.deploy("frr", other, files("leaf02")) == 1


def test_a_reboot_before_the_confirmation_reverts(lab: RunningLab) -> None:
    changed = edited("spine02", "frr.conf", "maximum-paths 64", "maximum-paths 5")
    changed["netplan.yaml"] = changed["netplan.yaml"].replace("mtu: 9216", "mtu: 9000")
    with frr(lab, "spine02") as device:
        device.load_candidate(driven.candidate("frr", device, changed))
        device.commit_config(revert_in=1800)
    assert lab.lab("restart", "spine02").returncode == 0
    with frr(lab, "spine02") as other:
        assert not other.has_pending_commit()
        assert driven.candidate("frr", other, files("spine02")).changes == ()
    assert mtu(lab, "spine02", "swp1s0") == 9216


def test_a_drain_survives_a_change_and_ends_without_a_trace(lab: RunningLab) -> None:
    shown = "vtysh -c 'show running-config' | grep -c 'bgp graceful-shutdown'; true"
    with frr(lab, "spine01") as device:
        was = dict(device.running_files())
        device.drain()
        device.drain()
        assert lab.shell("spine01", shown) == "1\n"
        assert dict(device.running_files()) == was
        assert driven.deploy("frr", device, edited("spine01", "frr.conf", "maximum-paths 64", "maximum-paths 9")) == 1
        assert lab.shell("spine01", shown) == "1\n"
        assert "graceful-shutdown" not in kept(lab, "spine01", "/etc/frr/frr.conf")
        device.undrain()
        device.undrain()
        assert lab.shell("spine01", shown) == "0\n"
        assert driven.deploy("frr", device, files("spine01")) == 1
        assert dict(device.running_files()) == was
    assert leaves_nothing(lab, "spine01")


def test_an_intended_drain_stays(lab: RunningLab) -> None:
    drained = edited(
        "spine01", "frr.conf", " bgp log-neighbor-changes", " bgp log-neighbor-changes\n bgp graceful-shutdown"
    )
    with frr(lab, "spine01") as device:
        assert driven.deploy("frr", device, drained) == 1
        device.drain()
        device.undrain()
        assert driven.candidate("frr", device, drained).changes == ()
        assert driven.deploy("frr", device, files("spine01")) == 1


def test_what_the_switch_rejects_is_refused_before_anything_changes(lab: RunningLab) -> None:
    with frr(lab, "leaf01") as device:
        was = dict(device.running_files())
        changed = edited("leaf01", "frr.conf", "maximum-paths 64", "maximum-paths many")
        with pytest.raises(DeviceError, match="FRR rejects the intended configuration"):
            device.load_candidate(driven.candidate("frr", device, changed))
        assert dict(device.running_files()) == was
    assert leaves_nothing(lab, "leaf01")


def test_a_setting_the_kernel_ignores_is_detected_and_reverted(lab: RunningLab) -> None:
    changed = edited("leaf01", "sysctl.conf", "arp_ignore = 1", "arp_ignore = 99999999999999")
    with frr(lab, "leaf01") as device:
        device.load_candidate(driven.candidate("frr", device, changed))
        with pytest.raises(DeviceError, match=r"net\.ipv4\.conf\.all\.arp_ignore does not become 99999999999999"):
            device.commit_config()
        assert driven.candidate("frr", device, files()).changes == ()
    assert leaves_nothing(lab, "leaf01")


def test_another_host_key_is_refused(lab: RunningLab, tmp_path: Path) -> None:
    folder = lab.home / lab.name
    known = (folder / "known_hosts").read_text(encoding="utf-8")
    addresses = [driven.endpoint(lab, name, "frr").host for name in ("leaf01", "leaf02")]
    file = tmp_path / "known_hosts"
    file.write_text(known.replace(addresses[0], "127.0.0.9").replace(addresses[1], addresses[0]), encoding="utf-8")
    with pytest.raises(AccessError, match="host key"), frr(lab, "leaf01", known_hosts=file):
        pass


def test_garbage_is_distinguished_from_a_configuration(lab: RunningLab) -> None:
    with frr(lab, "leaf01") as device:
        assert lab.lab("break", "garbage", "leaf01").returncode == 0
        try:
            with pytest.raises(AccessError, match="FRR does not show its configuration"):
                device.running_files()
        finally:
            assert lab.lab("heal", "leaf01", "garbage").returncode == 0


def test_a_full_disk_is_detected_before_anything_is_stored(lab: RunningLab) -> None:
    changed = edited("leaf01", "frr.conf", "maximum-paths 64", "maximum-paths 2")
    with frr(lab, "leaf01") as device:
        was = dict(device.running_files())
        device.load_candidate(driven.candidate("frr", device, changed))
        device.commit_config(revert_in=600)
        assert lab.lab("break", "disk-full", "leaf01").returncode == 0
        try:
            with pytest.raises(DeviceError, match=r"cannot be kept: .*cannot be written"):
                device.confirm_commit()
        finally:
            assert lab.lab("heal", "leaf01", "disk-full").returncode == 0
        assert device.has_pending_commit()
        device.rollback()
        assert dict(device.running_files()) == was
    assert kept(lab, "leaf01", "/etc/frr/frr.conf") == files()["frr.conf"]
    assert leaves_nothing(lab, "leaf01")


@pytest.mark.parametrize(
    ("file", "before", "after", "left"),
    [
        ("frr.conf", "maximum-paths 64", "maximum-paths 2", r"frr\.conf / router bgp .*maximum-paths"),
        ("netplan.yaml", "mtu: 9216", "mtu: 9000", "mtu"),
    ],
)
def test_a_change_without_effect_is_detected_whatever_the_switch_reports(
    lab: RunningLab, file: str, before: str, after: str, left: str
) -> None:
    with frr(lab, "leaf01") as device:
        was = dict(device.running_files())
        device.load_candidate(driven.candidate("frr", device, edited("leaf01", file, before, after)))
        with (
            driven.broken(lab, "apply-fails-quietly", "leaf01"),
            pytest.raises(DeviceError, match=f"reports the change as applied, but does not run it: .*{left}"),
        ):
            device.commit_config(revert_in=600)
        device.rollback()
        assert dict(device.running_files()) == was
    assert leaves_nothing(lab, "leaf01")


def test_a_timer_of_another_change_does_not_affect_this_one(lab: RunningLab) -> None:
    changed = edited("leaf01", "frr.conf", "maximum-paths 64", "maximum-paths 2")
    with frr(lab, "leaf01") as device:
        device.load_candidate(driven.candidate("frr", device, changed))
        device.commit_config(revert_in=600)
        assert lab.shell("leaf01", "sh /run/netkit-change/run late 12345") == ""
        assert device.has_pending_commit()
        assert driven.candidate("frr", device, changed).changes == ()
        device.rollback()
        assert driven.candidate("frr", device, files()).changes == ()


def test_a_commit_whose_connection_is_cut_reverts_by_itself(lab: RunningLab) -> None:
    changed = edited("leaf02", "netplan.yaml", "mtu: 9216", "mtu: 9000")
    with frr(lab, "leaf02") as device:
        was = dict(device.running_files())
        device.load_candidate(driven.candidate("frr", device, changed))
        with driven.broken(lab, "drops-after-commit", "leaf02", "seconds=2"), pytest.raises(AccessError):
            device.commit_config(revert_in=30)
    until(lambda: driven.is_reachable(lab, "leaf02", "frr"), "it is reachable again")
    with frr(lab, "leaf02") as other:
        until(lambda: not other.has_pending_commit(), "the timer has ended")
        until(lambda: dict(other.running_files()) == was, "what ran before runs again")
