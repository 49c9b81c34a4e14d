"""The driver of EOS on switches of a lab: eAPI over HTTPS, real FRR and links below."""

import json
from collections.abc import Iterator
from typing import Any

import pytest

from netkit import design
from netkit.design import Fabric
from netkit.errors import AccessError, DeviceError
from netkit.hardware import Catalog
from netkit.intent import Intent
from tests.lab.running import RunningLab, intent, needs_lab, on_platform, running, until, write_fabric
from tests.platforms import driven

pytestmark = needs_lab
VALUES = on_platform("eos", intent(), model="DCS-7060X6-64PE", version="4.35.1F")
FABRIC: Fabric = design.build(Intent.model_validate(VALUES), Catalog())


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningLab]:
    """Boot factory-fresh switches, and deploy to each."""
    with running(write_fabric(tmp_path_factory.mktemp("fabric"), VALUES), "--bare") as bare:
        for switch in FABRIC.switches:
            with eos(bare, switch.name) as device:
                assert driven.deploy("eos", device, files(switch.name)) > 100
        yield bare


def eos(lab: RunningLab, name: str, **changes: Any) -> Any:
    return driven.driver(lab, name, "eos", **changes)


def files(name: str = "leaf01") -> dict[str, str]:
    return driven.files_of(FABRIC, name)


def edited(name: str, before: str, after: str) -> dict[str, str]:
    (text,) = files(name).values()
    assert before in text
    return {"eos.cfg": text.replace(before, after)}


def text(device: Any) -> str:
    return str(device.running_files()["eos.cfg"])


def startup(lab: RunningLab, name: str) -> str:
    return lab.shell(name, "FastCli -p 15 -c 'show startup-config'")


def test_a_second_run_finds_nothing_to_do_and_sessions_are_up(lab: RunningLab) -> None:
    with eos(lab, "leaf01") as device:
        assert driven.deploy("eos", device, files()) == 0
        assert device.compare_config() == ""
        with pytest.raises(DeviceError, match="nothing is staged"):
            device.commit_config(revert_in=60)
        wanted = {port.name for port in FABRIC.switch("leaf01").fabric_ports}
        until(lambda: {one.interface for one in device.sessions() if one.is_established} == wanted, "sessions are up")
        until(lambda: all(one.received_prefixes > 0 for one in device.sessions()), "routes are learnt")
        assert device.os_version() == "4.35.1F"
    assert "router bgp 4200010000" in startup(lab, "leaf01")


def test_a_change_is_made_confirmed_and_saved(lab: RunningLab) -> None:
    changed = edited("leaf01", "   description ", "   description new ")
    with eos(lab, "leaf01") as device:
        made = driven.candidate("eos", device, changed)
        device.load_candidate(made)
        assert "+   description new " in device.compare_config()
        device.commit_config(revert_in=600)
        assert device.has_pending_commit()
        assert "description new " not in startup(lab, "leaf01")
        device.confirm_commit()
        assert not device.has_pending_commit()
        assert driven.candidate("eos", device, changed).changes == ()
        assert "description new " in startup(lab, "leaf01")
        assert driven.deploy("eos", device, files()) > 0


def test_a_removal_removes_owned_lines_and_keeps_the_rest(lab: RunningLab) -> None:
    more = {
        "eos.cfg": files("spine01")["eos.cfg"].replace("hostname spine01", "hostname spine01\n!\nvlan 77\n   name X")
    }
    with eos(lab, "spine01") as device:
        device.load_merge_candidate(config="dns domain example.net")
        device.commit_config()
        assert driven.deploy("eos", device, more) == 2
        assert "vlan 77" in text(device)
        assert driven.deploy("eos", device, files("spine01")) == 2
        assert "vlan 77" not in text(device)
        assert "dns domain example.net" in text(device)


def test_a_rollback_restores_what_ran_before(lab: RunningLab) -> None:
    with eos(lab, "leaf02") as device:
        before, saved = text(device), startup(lab, "leaf02")
        device.load_candidate(driven.candidate("eos", device, edited("leaf02", "maximum-paths 64", "maximum-paths 2")))
        device.commit_config(revert_in=600)
        assert text(device) != before
        device.rollback()
        assert not device.has_pending_commit()
        assert text(device) == before
        device.load_candidate(driven.candidate("eos", device, edited("leaf02", "maximum-paths 64", "maximum-paths 2")))
        device.commit_config()
        device.rollback()
        assert text(device) == before
    assert startup(lab, "leaf02") == saved


def test_a_commit_reverts_by_itself_without_a_connection(lab: RunningLab) -> None:
    with eos(lab, "leaf02") as device:
        before = text(device)
        device.load_candidate(driven.candidate("eos", device, edited("leaf02", "maximum-paths 64", "maximum-paths 3")))
        device.commit_config(revert_in=20)
    with eos(lab, "leaf02") as other:
        until(lambda: not other.has_pending_commit(), "the timer has ended")
        assert text(other) == before
        with pytest.raises(DeviceError, match="no commit waits"):
            other.confirm_commit()


def test_a_commit_is_confirmed_over_another_connection(lab: RunningLab) -> None:
    changed = edited("leaf02", "maximum-paths 64", "maximum-paths 8")
    with eos(lab, "leaf02") as device:
        device.load_candidate(driven.candidate("eos", device, changed))
        device.commit_config(revert_in=600)
    with eos(lab, "leaf02") as other:
        assert other.has_pending_commit()
        other.confirm_commit()
        assert driven.candidate("eos", other, changed).changes == ()
        assert driven.deploy("eos", other, files("leaf02")) > 0


def test_a_power_cut_before_the_confirmation_reverts(lab: RunningLab) -> None:
    with eos(lab, "spine02") as device:
        before = text(device)
        device.load_candidate(driven.candidate("eos", device, edited("spine02", "maximum-paths 64", "maximum-paths 5")))
        device.commit_config(revert_in=1800)
    assert lab.lab("restart", "spine02").returncode == 0
    with eos(lab, "spine02") as other:
        assert not other.has_pending_commit()
        assert text(other) == before


def test_the_session_of_a_killed_netkit_does_not_block(lab: RunningLab) -> None:
    changed = edited("leaf01", "maximum-paths 64", "maximum-paths 7")
    with eos(lab, "leaf01") as device:
        device.load_candidate(driven.candidate("eos", device, changed))
        device.config_session = None  # pretend that it was closed
        device.load_candidate(driven.candidate("eos", device, changed))
        device.discard_config()
        assert device.compare_config() == ""
        assert driven.candidate("eos", device, files()).changes == ()


def test_a_drain_moves_traffic_and_ends_without_a_trace(lab: RunningLab) -> None:
    with eos(lab, "spine01") as device, eos(lab, "leaf01") as leaf:
        until(lambda: all(one.received_prefixes > 0 for one in leaf.sessions()), "routes are learnt")
        before, saved = text(device), startup(lab, "spine01")
        device.drain()
        device.drain()
        assert text(device) == before
        units = json.loads(lab.shell("spine01", "FastCli -p 15 -c 'show maintenance | json'"))["units"]
        assert units["NETKIT-DRAIN"]["state"] == "underMaintenance"
        assert startup(lab, "spine01") == saved
        assert driven.deploy("eos", device, edited("spine01", "maximum-paths 64", "maximum-paths 9")) == 1
        assert startup(lab, "spine01") == saved
        device.undrain()
        device.undrain()
        assert "NETKIT-DRAIN" not in startup(lab, "spine01")
        assert "maximum-paths 9" in startup(lab, "spine01")
        assert driven.deploy("eos", device, files("spine01")) == 1
        assert text(device) == before


def test_a_commit_without_changes_is_detected(lab: RunningLab) -> None:
    with eos(lab, "leaf01") as device:
        assert lab.lab("break", "apply-fails-quietly", "leaf01").returncode == 0
        try:
            device.load_candidate(
                driven.candidate("eos", device, edited("leaf01", "maximum-paths 64", "maximum-paths 2"))
            )
            with pytest.raises(DeviceError, match="does not run it: router bgp / maximum-paths"):
                device.commit_config(revert_in=600)
        finally:
            assert lab.lab("heal", "leaf01", "apply-fails-quietly").returncode == 0
        device.rollback()
        assert driven.candidate("eos", device, files()).changes == ()


def test_a_commit_whose_answer_is_lost_waits_for_its_timer(lab: RunningLab) -> None:
    with eos(lab, "leaf02") as device:
        before = text(device)
        changed = edited("leaf02", "maximum-paths 64", "maximum-paths 3")
        device.load_candidate(driven.candidate("eos", device, changed))
        with driven.broken(lab, "drops-after-commit", "leaf02", "seconds=2"), pytest.raises(AccessError):
            device.commit_config(revert_in=600)
    until(lambda: driven.is_reachable(lab, "leaf02", "eos"), "it is reachable again")
    with eos(lab, "leaf02") as other:
        assert other.has_pending_commit()
        assert "maximum-paths 3" in text(other)
        other.rollback()
        assert text(other) == before


def test_another_certificate_is_refused_before_the_password_is_sent(lab: RunningLab) -> None:
    wrong = driven.endpoint(lab, "leaf02", "eos").certificate
    with (
        pytest.raises(AccessError, match="its certificate is not the trusted one"),
        eos(lab, "leaf01", certificate=wrong),
    ):
        pass
    with pytest.raises(AccessError, match="its certificate is not trusted"), eos(lab, "leaf01", certificate=""):
        pass


def test_a_wrong_password_and_a_closed_port_are_distinguished(lab: RunningLab) -> None:
    with pytest.raises(AccessError, match="refuses the login of admin"), eos(lab, "leaf01", password="wrong"):  # noqa: S106
        pass
    with pytest.raises(AccessError, match="cannot be reached at"), eos(lab, "leaf01", port=1):
        pass


def test_a_refused_line_is_reported_without_its_secret(lab: RunningLab) -> None:
    changed = edited("leaf01", "priv aes @secret:SNMP_PRIV@", "priv none @secret:SNMP_PRIV@")
    with eos(lab, "leaf01") as device:
        before = text(device)
        with pytest.raises(DeviceError, match="the switch refuses") as refused:
            device.load_candidate(driven.candidate("eos", device, changed))
        assert driven.secret("SNMP_PRIV") not in str(refused.value)
        assert text(device) == before
        assert device.compare_config() == ""


def test_a_full_flash_is_reported_and_the_running_state_is_known(lab: RunningLab) -> None:
    changed = edited("spine02", "maximum-paths 64", "maximum-paths 6")
    with eos(lab, "spine02") as device:
        device.load_candidate(driven.candidate("eos", device, changed))
        device.commit_config(revert_in=600)
        assert lab.lab("break", "disk-full", "spine02").returncode == 0
        try:
            with pytest.raises(DeviceError, match="the running configuration is not saved"):
                device.confirm_commit()
        finally:
            assert lab.lab("heal", "spine02", "disk-full").returncode == 0
        assert driven.candidate("eos", device, changed).changes == ()
        assert driven.deploy("eos", device, files("spine02")) == 1


def test_garbage_is_distinguished_from_an_answer(lab: RunningLab) -> None:
    with eos(lab, "spine02") as device:
        assert lab.lab("break", "garbage", "spine02").returncode == 0
        try:
            with pytest.raises(AccessError, match="spine02: "):
                device.running_files()
        finally:
            assert lab.lab("heal", "spine02", "garbage").returncode == 0
        assert driven.candidate("eos", device, files("spine02")).changes == ()


def test_a_commit_reverts_while_the_switch_is_unreachable(lab: RunningLab) -> None:
    with eos(lab, "leaf02") as device:
        was = text(device)
        device.load_candidate(driven.candidate("eos", device, edited("leaf02", "maximum-paths 64", "maximum-paths 2")))
        device.commit_config(revert_in=30)
        with driven.broken(lab, "unreachable", "leaf02"), pytest.raises(AccessError):
            device.confirm_commit()
    with eos(lab, "leaf02") as other:
        until(lambda: not other.has_pending_commit(), "the timer has ended")
        assert text(other) == was
