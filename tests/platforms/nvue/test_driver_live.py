"""The NVUE driver on switches of a running lab: real SSH, real HTTPS, real FRR below.

Last, where access is refused, devices misbehave, or a change takes two applies.
"""

import copy
import subprocess
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from napalm.base.exceptions import ConnectionException, MergeConfigException, ReplaceConfigException

from netkit.errors import AccessError, DeviceError
from netkit.platforms.driver import Candidate
from netkit.platforms.nvue.driver import NvueDriver
from netkit.platforms.nvue.model import MODEL
from netkit.platforms.nvue.shell import ShellTransport
from netkit.platforms.ssh import Done
from netkit.project.project import Project
from tests.command import ROOT
from tests.lab.running import RunningLab, needs_lab, until
from tests.platforms.getters import assert_answered
from tests.platforms.nvue.switch import (
    LONG_S,
    PORT,
    SECRETS,
    SHORT_S,
    TRANSPORTS,
    broken,
    changes,
    copied,
    described,
    endpoint,
    files_of,
    load,
    opened,
    rendered,
    texts,
    transport_of,
    tree,
    unsaved,
)

pytestmark = needs_lab
CAGE = "swp40"


@pytest.mark.parametrize("transport", TRANSPORTS)
def test_a_switch_that_runs_the_intent_has_nothing_to_change(lab: RunningLab, transport: str) -> None:
    driver = opened(lab, "spine02", transport)
    assert changes(driver, rendered("spine02")) == ()
    driver.load_candidate(Candidate(rendered("spine02"), (), "patch"))
    assert driver.compare_config() == ""
    with pytest.raises(DeviceError, match="nothing is staged"):
        driver.commit_config()
    driver.close()


def test_a_change_is_applied_verified_again_and_saved(lab: RunningLab, driver: NvueDriver) -> None:
    transport = transport_of(driver)
    files = described(driver, "changed")
    assert [change.path for change in load(driver, files)] == [("interface", PORT, "description")]
    assert f"over {transport}" in driver.compare_config()
    assert changes(driver, files) != ()
    driver.commit_config(message="a test", revert_in=LONG_S)
    again = opened(lab, "leaf01", transport)
    assert again.has_pending_commit()
    assert changes(again, files) == ()
    assert f"over {transport}" in unsaved(lab, "leaf01")
    again.confirm_commit()
    assert not again.has_pending_commit()
    assert unsaved(lab, "leaf01") == ""
    assert changes(again, files) == ()
    again.close()


def test_an_unconfirmed_change_reverts_by_itself(lab: RunningLab, driver: NvueDriver) -> None:
    before = driver.running_files()
    load(driver, described(driver, "gone soon"))
    driver.commit_config(revert_in=SHORT_S)
    driver.close()
    again = opened(lab, "leaf01", transport_of(driver))
    until(lambda: not again.has_pending_commit(), "the change is taken back")
    assert again.running_files() == before
    with pytest.raises(DeviceError):
        again.confirm_commit()
    assert again.running_files() == before
    again.close()


def test_a_reboot_before_the_confirmation_reverts(lab: RunningLab) -> None:
    driver = opened(lab, "spine02")
    before = driver.running_files()
    load(driver, described(driver, "gone with the power"))
    driver.commit_config(revert_in=LONG_S)
    driver.close()
    assert lab.lab("restart", "spine02").returncode == 0
    again = opened(lab, "spine02")
    assert again.running_files() == before
    assert not again.has_pending_commit()
    again.close()


def test_a_rollback_reverts_a_pending_change_at_once(lab: RunningLab) -> None:
    driver = opened(lab, "leaf01")
    before = driver.running_files()
    load(driver, described(driver, "not for long"))
    driver.commit_config(revert_in=LONG_S)
    again = opened(lab, "leaf01")
    again.rollback()
    assert not again.has_pending_commit()
    assert driver.running_files() == before
    assert unsaved(lab, "leaf01") == ""
    again.close()
    driver.close()


def test_over_rest_a_rollback_waits_for_the_timer(lab: RunningLab) -> None:
    driver = opened(lab, "leaf01", "nvue-rest")
    before = driver.running_files()
    load(driver, described(driver, "not for long"))
    driver.commit_config(revert_in=SHORT_S)
    driver.rollback()
    assert not driver.has_pending_commit()
    assert driver.running_files() == before
    driver.close()


def test_a_commit_without_a_timer_can_be_rolled_back(driver: NvueDriver) -> None:
    before = driver.running_files()
    load(driver, described(driver, "at once"))
    driver.commit_config(message="at once")
    assert driver.running_files() != before
    driver.rollback()
    assert driver.running_files() == before


def test_nothing_is_applied_while_a_change_is_pending(lab: RunningLab, driver: NvueDriver) -> None:
    load(driver, described(driver, "first"))
    driver.commit_config(revert_in=LONG_S)
    first = driver.running_files()
    other = opened(lab, "leaf01", transport_of(driver))
    load(other, described(other, "second"))
    with pytest.raises(DeviceError, match="not applied"):
        other.commit_config(revert_in=LONG_S)
    assert other.running_files() == first
    other.close()


def test_a_discarded_candidate_is_forgotten(driver: NvueDriver) -> None:
    before = driver.running_files()
    load(driver, described(driver, "never"))
    driver.discard_config()
    assert driver.compare_config() == ""
    with pytest.raises(DeviceError, match="nothing is staged"):
        driver.commit_config()
    assert driver.running_files() == before


def test_changes_staged_earlier_are_not_applied_with_the_next(driver: NvueDriver) -> None:
    load(driver, described(driver, "stale", "swp1s1"))
    files = described(driver, "fresh")
    load(driver, files)
    assert "stale" not in driver.compare_config()
    driver.commit_config(revert_in=LONG_S)
    assert changes(driver, files) == ()
    driver.confirm_commit()


def test_whole_objects_are_added_and_removed(lab: RunningLab, driver: NvueDriver) -> None:
    before = MODEL.parse(texts(driver))
    wanted = tree(driver)
    original = copy.deepcopy(wanted)
    wanted["interface"]["lo"]["ipv4"]["address"]["10.255.7.7/32"] = {}
    wanted["router"]["policy"].setdefault("prefix-list", {})["EXTRA"] = {
        "rule": {"10": {"action": "permit", "match": {"10.9.0.0/16": {"max-prefix-len": 24}}}}
    }
    for intended in (wanted, original):
        load(driver, files_of(intended))
        driver.commit_config(revert_in=LONG_S)
        assert changes(driver, files_of(intended)) == ()
        driver.confirm_commit()
        shown = lab.run("leaf01", "vtysh", "-c", "show ip prefix-list EXTRA")
        assert ("10.9.0.0/16 le 24" in shown) == (intended is wanted)
    assert MODEL.parse(texts(driver)) == before


@pytest.mark.parametrize("transport", TRANSPORTS)
def test_secrets_are_filled_in_and_appear_nowhere_else(lab: RunningLab, transport: str) -> None:
    device = {"ssh": "leaf02", "nvue-rest": "spine01"}[transport]
    driver = opened(lab, device, transport)
    wanted = tree(driver)
    del wanted["system"]["snmp-server"]
    load(driver, files_of(wanted))
    driver.commit_config()
    found = load(driver, rendered(device))
    assert not any(value in repr((found, driver.compare_config())) for value in SECRETS.values())
    driver.commit_config(revert_in=LONG_S)
    assert changes(driver, rendered(device)) == ()
    driver.confirm_commit()
    running = driver.get_config()["running"]
    assert "encrypt-aes" in running
    assert not any(value in running for value in SECRETS.values())
    assert lab.run(device, "sh", "-c", "ls -A /tmp /home/cumulus | grep -c yaml || true").strip() == "0"
    driver.close()


USERS = ("system", "snmp-server", "username")


def test_users_that_a_switch_rejects_are_left_out_and_reported(driver: NvueDriver) -> None:
    """One malformed user must not make the whole patch fail."""
    wanted = tree(driver)
    wanted["system"]["snmp-server"]["username"]["second"] = {
        "auth-sha": {"@secret:SNMP_AUTH@": {"@secret:SNMP_PRIV@": {}}}
    }
    wanted["interface"][PORT]["description"] += " and on"
    load(driver, files_of(wanted))
    driver.commit_config(revert_in=LONG_S)

    (reported,) = driver.left_out()
    assert reported.startswith("everything is applied except SNMPv3 users: the switch refuses")
    assert "<secret>" in reported
    assert not any(value in reported for value in SECRETS.values())
    assert {change.path[:4] for change in changes(driver, files_of(wanted))} == {(*USERS, "second")}
    driver.confirm_commit()

    with pytest.raises(DeviceError, match="refuses"):
        load(driver, files_of(wanted))


def test_an_error_of_the_switch_hides_secrets(driver: NvueDriver) -> None:
    wanted = tree(driver)
    wanted["interface"][PORT]["link"]["speed"] = "@secret:SNMP_AUTH@"
    with pytest.raises(DeviceError, match=r"refuses the configuration: .*<secret>") as caught:
        load(driver, files_of(wanted))
    assert SECRETS["SNMP_AUTH"] not in str(caught.value)
    assert caught.value.__cause__ is None


def test_a_drain_runs_unsaved_and_hidden_and_ends_without_a_trace(lab: RunningLab, driver: NvueDriver) -> None:
    config, saving = MODEL.parse(texts(driver)), tree(driver)["system"]["config"]
    driver.drain()
    assert " bgp graceful-shutdown\n" in lab.run("leaf01", "vtysh", "-c", "show running-config")
    assert MODEL.parse(texts(driver)) == config
    assert "graceful-shutdown" in unsaved(lab, "leaf01")
    driver.drain()
    files = described(driver, "while drained")
    load(driver, files)
    driver.commit_config(revert_in=LONG_S)
    assert changes(driver, files) == ()
    driver.confirm_commit()
    assert "graceful-shutdown" not in lab.shell("leaf01", "nv config show -r startup")
    assert changes(driver, files) == ()
    driver.undrain()
    driver.undrain()
    assert " bgp graceful-shutdown\n" not in lab.run("leaf01", "vtysh", "-c", "show running-config")
    assert unsaved(lab, "leaf01") == ""
    assert changes(driver, files) == ()
    assert tree(driver)["system"]["config"] == saving


def test_an_intended_drain_stays(driver: NvueDriver) -> None:
    original = tree(driver)
    wanted = copy.deepcopy(original)
    wanted["router"]["bgp"]["graceful-shutdown"] = "enabled"
    driver.drain()
    load(driver, files_of(wanted))
    driver.commit_config(revert_in=LONG_S)
    driver.confirm_commit()
    for step in (driver.undrain, driver.drain, driver.undrain):
        step()
        assert changes(driver, files_of(wanted)) == ()
    load(driver, files_of(original))
    driver.commit_config()
    assert changes(driver, files_of(original)) == ()


def test_replacing_everything_is_refused_unless_management_access_stays(lab: RunningLab) -> None:
    driver = opened(lab, "leaf02")
    files = rendered("leaf02")
    with pytest.raises(DeviceError, match=r"cut it off: .*system\.api, system\.ssh-server"):
        driver.load_candidate(Candidate(files, (), "replace"))
    with pytest.raises(ReplaceConfigException, match="cut it off"):
        driver.load_replace_candidate(config=files["startup.yaml"])
    wanted = tree(driver)
    wanted["system"].setdefault("aaa", {}).setdefault("user", {}).setdefault("cumulus", {"role": "system-admin"})
    wanted["system"].setdefault("api", {"state": "enabled"})
    wanted["system"].setdefault("ssh-server", {"state": "enabled"})
    wanted["interface"][PORT]["description"] = "replaced"
    driver.load_candidate(Candidate(files_of(wanted), (), "replace"))
    driver.commit_config(revert_in=LONG_S)
    assert tree(driver)["interface"][PORT]["description"] == "replaced"
    driver.rollback()
    driver.close()


def test_text_candidates_are_merged_in_either_form(driver: NvueDriver) -> None:
    port = f"interface {PORT} description"
    driver.load_merge_candidate(config=f"nv set {port} '@secret:SNMP_AUTH@ by lines'\n")
    assert "<secret> by lines" in driver.compare_config()
    driver.discard_config()
    yaml_text = f"- set:\n    interface:\n      {PORT}:\n        description: '@secret:SNMP_AUTH@ by tree'\n"
    driver.load_merge_candidate(config=yaml_text)
    assert "<secret> by tree" in driver.compare_config()
    driver.discard_config()
    with pytest.raises(MergeConfigException, match="refuses the configuration"):
        driver.load_merge_candidate(config="nv set interface swp1s0 mtuu 9\n")


def test_both_transports_read_the_same(lab: RunningLab) -> None:
    over_ssh, over_rest = (opened(lab, "spine01", transport) for transport in TRANSPORTS)

    assert MODEL.parse(texts(over_ssh)) == MODEL.parse(texts(over_rest))
    assert over_ssh.os_version() == over_rest.os_version() == "5.16.1"
    for getter in ("get_facts", "get_interfaces", "get_lldp_neighbors"):
        found = [getattr(driver, getter)() for driver in (over_ssh, over_rest)]
        for one in found:
            one.pop("uptime", None)
        assert found[0] == found[1], getter
    assert over_ssh.get_optics().keys() == over_rest.get_optics().keys()
    assert over_ssh.get_interfaces_counters().keys() == over_rest.get_interfaces_counters().keys()
    for driver in (over_ssh, over_rest):
        driver.close()


@pytest.mark.parametrize("transport", TRANSPORTS)
def test_sessions_are_as_designed(lab: RunningLab, transport: str) -> None:
    driver = opened(lab, "spine01", transport)
    until(lambda: all(session.is_established for session in driver.sessions()), "the sessions are up")
    assert {session.interface for session in driver.sessions()} == {"swp1s0", "swp1s1"}
    assert all(session.received_prefixes > 0 for session in driver.sessions())
    peers = driver.get_bgp_neighbors()["global"]["peers"]
    assert {name: peer["is_up"] for name, peer in peers.items()} == {"swp1s0": True, "swp1s1": True}
    neighbors = driver.get_lldp_neighbors()
    assert neighbors["swp1s0"] == [{"hostname": "leaf01", "port": "swp33s0"}]
    driver.close()


def test_getters_use_the_kernel_and_frr_too(lab: RunningLab) -> None:
    with opened(lab, "spine01") as driver:
        assert_answered(driver, Project.open(lab.fabric).fabric, "spine01", "leaf01")
    with opened(lab, "spine01", "nvue-rest") as driver, pytest.raises(AccessError, match="REST has no command line"):
        driver.get_arp_table()


def test_cli_returns_the_output_of_commands(lab: RunningLab) -> None:
    with opened(lab, "leaf02") as driver:
        found = driver.cli(["nv config show -o commands", "nv nonsense"])
    assert "nv set system hostname leaf02" in found["nv config show -o commands"]
    assert "invalid choice" in found["nv nonsense"]


def test_any_napalm_script_finds_the_driver_by_name(lab: RunningLab) -> None:
    where = endpoint(lab, "leaf01")
    script = f"""
import sys
sys.path.insert(0, {str(ROOT / "drivers")!r})
from napalm import get_network_driver
arguments = {{"key_file": {str(where.key_file)!r}, "known_hosts": {str(where.known_hosts)!r}}}
with get_network_driver("nvue")({where.host!r}, "cumulus", "", optional_args=arguments) as device:
    device.load_merge_candidate(config="nv set interface {PORT} description by-script")
    print(device.get_facts()["hostname"], "by-script" in device.compare_config())
    device.discard_config()
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False, cwd=ROOT)
    assert (done.stdout, done.returncode) == ("leaf01 True\n", 0), done.stderr


def test_prefetched_sessions_come_with_the_configuration_and_once(lab: RunningLab) -> None:
    driver = opened(lab, "leaf02")
    version, wanted = driver.os_version(), {one.interface for one in driver.sessions()}
    assert wanted
    transport = driver._transport  # noqa: SLF001 (what it sends is the point)
    assert isinstance(transport, ShellTransport)
    sent: list[str] = []
    run = transport.line.run

    def counted(command: str, *arguments: Any, **named: Any) -> Done:
        sent.append(command)
        return run(command, *arguments, **named)

    transport.line.run = counted  # type: ignore[method-assign]
    driver.foresee_sessions(version)
    files = driver.running_files()
    assert {one.interface for one in driver.sessions()} == wanted
    assert len(sent) == 1
    assert {one.interface for one in driver.sessions()} == wanted
    assert len(sent) == 2
    driver.foresee_sessions("5.0.0")  # another release needs other commands for sessions
    assert driver.running_files() == files
    assert {one.interface for one in driver.sessions()} == wanted
    assert len(sent) == 4
    driver.close()


def split(wanted: dict[str, Any], ports: int) -> dict[str, str]:
    """A configuration with an unused cage split."""
    names = [name for name in wanted["interface"] if name.startswith(CAGE)]
    for name in names:
        del wanted["interface"][name]
    if ports:
        wanted["interface"][CAGE] = {"type": "swp", "link": {"breakout": {f"{ports}x": {}}}}
    for port in range(ports):
        wanted["interface"][f"{CAGE}s{port}"] = {"type": "swp", "description": f"port {port}"}
    return files_of(wanted)


def test_a_changed_breakout_takes_two_steps_that_revert_together(lab: RunningLab) -> None:
    driver = opened(lab, "leaf01")
    load(driver, split(tree(driver), 2))
    driver.commit_config()
    before = driver.running_files()
    load(driver, split(tree(driver), 4))
    driver.commit_config(revert_in=LONG_S)
    assert driver.has_pending_commit()
    assert changes(driver, split(tree(driver), 4)) == ()
    assert unsaved(lab, "leaf01") != ""
    driver.rollback()
    assert not driver.has_pending_commit()
    assert driver.running_files() == before

    load(driver, split(tree(driver), 4))
    with suppress(DeviceError):  # on a slow machine the timer expires before the second step
        driver.commit_config(revert_in=SHORT_S)
    driver.close()
    again = opened(lab, "leaf01")
    until(lambda: not again.has_pending_commit() and again.running_files() == before, "both steps are taken back")
    with pytest.raises(DeviceError):
        again.confirm_commit()

    load(again, split(tree(again), 4))
    again.commit_config(revert_in=LONG_S)
    again.confirm_commit()
    assert not again.has_pending_commit()
    assert unsaved(lab, "leaf01") == ""
    assert changes(again, split(tree(again), 4)) == ()
    load(again, split(tree(again), 0))
    again.commit_config()
    again.close()


def test_two_steps_whose_timer_expires_in_between_are_reverted(lab: RunningLab) -> None:
    driver = opened(lab, "leaf01")
    load(driver, split(tree(driver), 2))
    driver.commit_config()
    before = driver.running_files()
    load(driver, split(tree(driver), 4))
    with (
        broken(lab, "slow", "leaf01", "seconds=2"),
        pytest.raises(DeviceError, match="the revert timer fired before all of"),
    ):
        driver.commit_config(revert_in=SHORT_S)
    until(lambda: driver.running_files() == before, "the first step is taken back")
    assert not driver.has_pending_commit()
    load(driver, split(tree(driver), 0))
    driver.commit_config()
    driver.close()


def test_over_rest_two_steps_are_refused(lab: RunningLab) -> None:
    driver = opened(lab, "leaf02", "nvue-rest")
    load(driver, split(tree(driver), 2))
    driver.commit_config()
    with pytest.raises(DeviceError, match="two applies"):
        load(driver, split(tree(driver), 4))
    driver.close()
    again = opened(lab, "leaf02")
    load(again, split(tree(again), 0))
    again.commit_config()
    again.close()


def test_an_unknown_or_changed_host_key_is_refused(lab: RunningLab, tmp_path: Path) -> None:
    with pytest.raises(AccessError, match=r"its SSH host key is not in .*; compare it, then run netkit trust"):
        opened(lab, "leaf01", known_hosts=copied(tmp_path, tmp_path / "none", "# nothing\n"))
    here, there = endpoint(lab, "leaf01"), endpoint(lab, "leaf02")
    assert here.known_hosts is not None
    known = here.known_hosts.read_text(encoding="utf-8")
    swapped = copied(tmp_path, tmp_path / "swapped", known.replace(here.host, "gone").replace(there.host, here.host))
    with pytest.raises(AccessError, match="is not the known one; this may be a man in the middle"):
        opened(lab, "leaf01", known_hosts=swapped)
    line = next(line for line in known.splitlines() if line.startswith(f"{here.host} "))
    with pytest.raises(AccessError, match="host key"):
        opened(lab, "leaf01", known_hosts=copied(tmp_path, tmp_path / "revoked", f"{known}@revoked {line}\n"))


def test_a_wrong_key_user_or_host_is_refused(lab: RunningLab, tmp_path: Path) -> None:
    other = tmp_path / "key"
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(other)], check=True)
    with pytest.raises(ConnectionException, match="leaf01: refuses the login of cumulus"):
        opened(lab, "leaf01", key_file=other)
    with pytest.raises(AccessError, match="refuses the login of nobody"):
        opened(lab, "leaf01", user="nobody")
    with pytest.raises(AccessError, match=r"key\.pub is not a usable private key"):
        opened(lab, "leaf01", key_file=other.with_suffix(".pub"))
    for kind in ("ed25519", "ecdsa", "rsa"):
        locked = tmp_path / f"locked-{kind}"
        subprocess.run(["ssh-keygen", "-q", "-t", kind, "-N", "a passphrase", "-f", str(locked)], check=True)
        with pytest.raises(AccessError, match=rf"locked-{kind} has a passphrase; add the key"):
            opened(lab, "leaf01", key_file=locked)
    with pytest.raises(AccessError, match=r"the key file .* does not exist"):
        opened(lab, "leaf01", key_file=tmp_path / "missing")
    with pytest.raises(AccessError, match=r"cannot be reached at .* port 1"):
        opened(lab, "leaf01", port=1)
    with pytest.raises(AccessError, match=r"cannot be reached at .* port 1"):
        opened(lab, "leaf01", "nvue-rest", port=1)


def test_over_rest_certificate_and_password_are_checked(lab: RunningLab) -> None:
    with pytest.raises(AccessError, match="certificate is not the trusted one"):
        opened(lab, "leaf01", "nvue-rest", certificate="0" * 64)
    with pytest.raises(AccessError, match="certificate is not trusted"):
        opened(lab, "leaf01", "nvue-rest", certificate="")
    with pytest.raises(AccessError, match="refuses the login of cumulus over HTTPS"):
        opened(lab, "leaf01", "nvue-rest", password="x" * 8)


def test_an_apply_that_fails_silently_is_detected(lab: RunningLab, driver: NvueDriver) -> None:
    before = driver.running_files()
    load(driver, described(driver, "fails"))
    with broken(lab, "apply-fails-quietly", "leaf01"), pytest.raises(DeviceError, match=r"not applied|does not run it"):
        driver.commit_config(revert_in=LONG_S)
    assert driver.running_files() == before
    driver.discard_config()


def test_garbage_is_not_mistaken_for_an_answer(lab: RunningLab) -> None:
    driver = opened(lab, "leaf02")
    with broken(lab, "garbage", "leaf02"):
        with pytest.raises(AccessError, match="answers with"):
            driver.running_files()
        with pytest.raises(AccessError, match=r"answers with|nv fails"):
            driver.sessions()
        with pytest.raises((AccessError, DeviceError)):
            driver.load_merge_candidate(config=f"nv set interface {PORT} description x\n")
    driver.close()


def test_a_hanging_switch_times_out(lab: RunningLab) -> None:
    driver = opened(lab, "leaf02")
    with broken(lab, "hangs", "leaf02"):
        slow = opened(lab, "leaf02", timeout_s=2.0)
        with pytest.raises(AccessError, match="leaf02: did not answer within 2 s: nv config show"):
            slow.running_files()
        slow.close()
    driver.close()


def test_a_full_disk_is_named(lab: RunningLab) -> None:
    driver = opened(lab, "leaf02")
    before = driver.running_files()
    files = described(driver, "no room")

    def commit() -> None:
        load(driver, files)
        driver.commit_config(revert_in=LONG_S)
        driver.confirm_commit()

    with broken(lab, "disk-full", "leaf02"), pytest.raises(DeviceError, match=r"leaf02: .*: "):
        commit()
    driver.rollback()
    driver.discard_config()
    assert driver.running_files() == before
    driver.close()


def test_a_connection_cut_by_the_commit_reverts(lab: RunningLab) -> None:
    driver = opened(lab, "spine01")
    before = driver.running_files()
    files = described(driver, "cut")
    with broken(lab, "drops-after-commit", "spine01", "seconds=1"):
        load(driver, files)
        with pytest.raises(AccessError, match="spine01: the connection is lost"):
            driver.commit_config(revert_in=SHORT_S)
    driver.close()

    def is_as_before() -> bool:
        try:
            again = opened(lab, "spine01")
        except AccessError:
            return False
        found = again.running_files()
        again.close()
        return found == before

    until(is_as_before, "the switch is back, and as before")
