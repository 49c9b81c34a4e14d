"""GPU hosts of running labs, changed over real sshd, with real netplan, networkd and kernel below."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from netkit.errors import DeviceError
from netkit.platforms.compare import MODELS
from netkit.platforms.driver import Candidate
from netkit.platforms.linux.driver import commit_together
from netkit.platforms.linux.install import LIST
from tests.lab.running import intent, needs_lab, running, until, write_fabric
from tests.platforms.linux_driver.bench import Bench, bench

pytestmark = needs_lab
INTENT = intent()
NETWORKD = intent(hosts={"model": "dgx-h100", "backend": "networkd"})
LONG_S = 600
OLD = "        - {to: 10.128.0.0/29, via: 10.128.128.0, table: 101}"
NEW = "        - {to: 10.128.0.0/28, via: 10.128.128.0, table: 101}"
SEEK = """
- name: "Set up {{{{ rail }}}}"
  netkit_host: {{step: rail, rail: "{{{{ rail }}}}"}}
  when: rail in begun.rails

- name: Seek the secret in all that Ansible has, here
  ansible.builtin.debug:
    msg: "{{{{ lookup('ansible.builtin.pipe', 'sh {place}/seek ' ~ playbook_dir | dirname) }}}}"
"""
FIND = """
grep -rlF -f {place}/words "$1" /proc/[0-9]*/cmdline /proc/[0-9]*/environ 2>/dev/null >>{place}/found
find "$1" -name hosts.json >>{place}/looked
"""
SHARING = ("gpu01", "gpu02")
BALKING = "/usr/local/sbin/networkctl"
BALKS = """#!/bin/sh
if [ "$1" = reload ] && [ ! -e /tmp/balked ]; then touch /tmp/balked; exit 1; fi
exec /usr/bin/networkctl "$@"
"""
WATCH = """
(exec ip -4 monitor link address route >/tmp/seen) >/dev/null 2>&1 </dev/null &
echo $! >/tmp/watch; sleep 1
"""


@pytest.fixture(scope="module")
def up(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Bench]:
    with running(write_fabric(tmp_path_factory.mktemp("fabric"), INTENT)) as lab:
        yield bench(lab, INTENT, tmp_path_factory.mktemp("work"))


@pytest.fixture(scope="module")
def bare(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Bench]:
    with running(write_fabric(tmp_path_factory.mktemp("fabric"), INTENT), "--bare") as lab:
        found = bench(lab, INTENT, tmp_path_factory.mktemp("work"))
        for host in found.hosts:
            for nic in host.nics:  # the leaves come first
                lab.run(nic.leaf, "ip", "link", "set", nic.leaf_port, "up")
        yield found


def wider(text: str) -> str:
    """Give one route of rail1 a shorter prefix."""
    return re.sub(r"10\.128\.0\.0/29(, via: 10\.128\.128\.\d, table: 101)", r"10.128.0.0/28\1", text)


def is_as(bench: Bench, device: str, files: dict[str, str]) -> bool:
    driver = bench.driver(device)
    found = {name: text for name, text in driver.running_files().items() if text is not None and name != LIST}
    driver.close()
    return found == {name: text for name, text in files.items() if MODELS["linux"].reads(name)}


def recap(done: str, device: str) -> dict[str, int]:
    line = next(line for line in done.splitlines() if line.startswith(f"{device} ") and "unreachable=" in line)
    return {key: int(value) for key, _, value in (word.partition("=") for word in line.split()[2:])}


def test_plain_ansible_deploys_to_bare_hosts_and_rolls_back(bare: Bench) -> None:
    before = {host.name: (bare.disk(host.name), bare.kernel(host.name)) for host in bare.hosts}
    place = bare.write({host.name: bare.files(host.name) for host in bare.hosts})
    option = f"-enetkit_configs={place}"

    looked = bare.ansible("hosts-apply.yml", option, "--check", "--diff")
    assert looked.returncode == 0, looked.stdout + looked.stderr
    assert "+++ after: /etc/netplan/60-netkit-rails.yaml (0600)" in looked.stdout
    assert {host.name: (bare.disk(host.name), bare.kernel(host.name)) for host in bare.hosts} == before

    applied = bare.ansible("hosts-apply.yml", option)
    assert applied.returncode == 0, applied.stdout + applied.stderr
    for host in bare.hosts:
        assert is_as(bare, host.name, bare.files(host.name))
        assert bare.lab.shell(host.name, "netkit-nic-qos --check") == ""
    verified = bare.ansible("hosts-verify.yml")
    assert verified.returncode == 0, verified.stdout + verified.stderr

    again = bare.ansible("hosts-apply.yml", option, "--diff")
    assert again.returncode == 0
    assert [recap(again.stdout, host.name)["changed"] for host in bare.hosts] == [0, 0]

    back = bare.ansible("hosts-rollback.yml")
    assert back.returncode == 0, back.stdout + back.stderr
    twice = bare.ansible("hosts-rollback.yml", "--limit", "gpu01")
    assert twice.returncode == 2
    assert "the last change is taken back already" in twice.stdout
    assert {host.name: (bare.disk(host.name), bare.kernel(host.name)) for host in bare.hosts} == before


@pytest.mark.whole
def test_the_other_network_backend_takes_over_and_leaves_nothing_behind(up: Bench) -> None:
    other = bench(up.lab, NETWORKD, up.folder)
    before = up.disk("gpu02"), up.kernel("gpu02")
    driver = up.loaded("gpu02", other.files("gpu02"))
    driver.commit_config(revert_in=LONG_S)
    assert is_as(up, "gpu02", other.files("gpu02"))
    assert up.lab.shell("gpu02", "ls /etc/netplan; ls /run/systemd/network") == ""
    assert up.kernel("gpu02") == before[1]
    driver.rollback()
    assert (up.disk("gpu02"), up.kernel("gpu02")) == before


@pytest.mark.whole
def test_one_rail_changes_without_effect_on_the_others(up: Bench) -> None:
    files = up.files("gpu01", netplan_yaml=wider, nccl_conf=lambda text: text.replace("=106", "=107"))
    before = up.disk("gpu01"), up.kernel("gpu01")
    driver = up.loaded("gpu01", files)
    seen = driver.compare_config()
    assert f"-{OLD}\n+{NEW}\n" in seen
    assert (up.disk("gpu01"), up.kernel("gpu01")) == before

    up.lab.shell("gpu01", WATCH)
    driver.commit_config(revert_in=LONG_S)
    reported = up.lab.shell("gpu01", "sleep 1; kill $(cat /tmp/watch); cat /tmp/seen")
    assert "rail1" in reported
    assert "rail0" not in reported
    assert is_as(up, "gpu01", files)
    old, new = (f"10.128.0.0/{length} via 10.128.128.0 dev rail1 table 101 " for length in (29, 28))
    assert up.kernel("gpu01").splitlines() == sorted(before[1].replace(old, new).splitlines())

    assert driver.has_pending_commit()
    driver.confirm_commit()
    assert not driver.has_pending_commit()

    again = up.loaded("gpu01", files)
    assert again.compare_config() == ""
    again.commit_config(revert_in=LONG_S)
    assert not again.has_pending_commit()
    again.confirm_commit()

    driver.rollback()
    assert (up.disk("gpu01"), up.kernel("gpu01")) == before


@pytest.mark.whole
def test_a_file_that_is_no_longer_intended_is_removed_and_restored(up: Bench) -> None:
    whole = up.files("gpu01")
    files = {name: text for name, text in whole.items() if name != "mlxconfig.conf"}
    files["install.txt"] = "\n".join(line for line in whole["install.txt"].splitlines() if "mlxconfig" not in line)
    before = up.disk("gpu01")
    driver = up.loaded("gpu01", files)
    assert "mlxconfig.conf (removed)" in driver.compare_config()
    driver.commit_config(revert_in=LONG_S)
    assert is_as(up, "gpu01", files)
    assert driver.running_files()["mlxconfig.conf"] is None
    driver.rollback()
    assert up.disk("gpu01") == before


def test_without_a_confirmation_the_host_reverts_by_itself(up: Bench) -> None:
    before = up.disk("gpu01"), up.kernel("gpu01")
    driver = up.loaded("gpu01", up.files("gpu01", netplan_yaml=wider))
    driver.commit_config(revert_in=40)
    driver.close()
    watcher = up.driver("gpu01")
    until(lambda: not watcher.has_pending_commit(), "the timer of the host", patience_s=400)
    assert (up.disk("gpu01"), up.kernel("gpu01")) == before
    late = up.driver("gpu01")
    late.confirm_commit()  # nothing is pending, and this object committed nothing
    driver.open()
    with pytest.raises(DeviceError, match="nothing waits for a confirmation"):
        driver.confirm_commit()


def test_a_host_that_reboots_within_the_window_boots_the_old_state(up: Bench) -> None:
    before = up.disk("gpu02"), up.kernel("gpu02")
    qos = up.files("gpu02", netplan_yaml=wider, netkit_nic_qos=lambda text: text.replace("CNP_DSCP=48", "CNP_DSCP=46"))
    driver = up.loaded("gpu02", qos)
    driver.commit_config(revert_in=LONG_S)
    assert driver.has_pending_commit()
    driver.close()
    assert up.lab.lab("restart", "gpu02").returncode == 0
    watcher = up.driver("gpu02")
    assert not watcher.has_pending_commit()
    until(lambda: (up.disk("gpu02"), up.kernel("gpu02")) == before, "the host is as it was")
    assert up.lab.shell("gpu02", "netkit-nic-qos --check") == ""


@pytest.mark.whole
def test_another_process_may_confirm_a_pending_change_and_none_may_start_another(up: Bench) -> None:
    before = up.disk("gpu01")
    up.loaded("gpu01", up.files("gpu01", netplan_yaml=wider)).commit_config(revert_in=LONG_S)
    second = up.loaded("gpu01", up.files("gpu01", nccl_conf=lambda text: text.replace("=106", "=98")))
    with pytest.raises(DeviceError, match="another change waits for its confirmation"):
        second.commit_config(revert_in=LONG_S)
    resumed = up.driver("gpu01")
    assert resumed.has_pending_commit()
    resumed.confirm_commit()
    assert not resumed.has_pending_commit()
    assert is_as(up, "gpu01", up.files("gpu01", netplan_yaml=wider))
    back = up.ansible("hosts-rollback.yml", "--limit", "gpu01")
    assert back.returncode == 0, back.stdout + back.stderr
    assert up.disk("gpu01") == before


def test_a_change_that_breaks_routes_is_reverted_at_once(up: Bench) -> None:
    before = up.disk("gpu01"), up.kernel("gpu01")
    wrong = up.files("gpu01", netplan_yaml=lambda text: text.replace("[10.128.128.1/31]", "[10.128.128.1/30]"))
    place = up.write({"gpu01": wrong, "gpu02": up.files("gpu02")})
    done = up.ansible("hosts-apply.yml", f"-enetkit_configs={place}", "-enetkit_settle_s=3", "--limit", "gpu01")
    assert done.returncode == 2, done.stdout + done.stderr
    assert "rail1: addresses 10.128.128.1/30, should be 10.128.128.1/31; it was taken back" in done.stdout
    assert (up.disk("gpu01"), up.kernel("gpu01")) == before


@pytest.mark.whole
def test_files_edited_since_are_not_reverted(up: Bench) -> None:
    driver = up.loaded("gpu01", up.files("gpu01", nccl_conf=lambda text: text.replace("=106", "=98")))
    driver.commit_config(revert_in=LONG_S)
    driver.confirm_commit()
    up.lab.shell("gpu01", "echo NCCL_DEBUG=INFO >>/etc/nccl.conf")
    done = up.ansible("hosts-rollback.yml", "--limit", "gpu01")
    assert done.returncode == 2
    assert "/etc/nccl.conf was edited since" in done.stdout
    restored = up.loaded("gpu01", up.files("gpu01"))
    restored.commit_config()
    assert is_as(up, "gpu01", up.files("gpu01"))


@pytest.mark.whole
def test_hosts_change_in_one_run_and_fail_individually(up: Bench) -> None:
    good = up.loaded("gpu01", up.files("gpu01", netplan_yaml=wider))
    bad = up.loaded("gpu02", up.files("gpu02", netplan_yaml=lambda text: f"{text}        - nonsense\n"))
    before = up.disk("gpu02")
    errors = commit_together((good, bad), LONG_S)
    assert list(errors) == ["gpu02"]
    assert "netplan generate" in str(errors["gpu02"])
    assert up.disk("gpu02") == before
    assert good.has_pending_commit()
    good.rollback()
    assert is_as(up, "gpu01", up.files("gpu01"))


@pytest.mark.whole
def test_a_failed_rail_is_restored_before_another_is_touched(up: Bench) -> None:
    before = up.disk("gpu01"), up.kernel("gpu01")
    smaller = {
        name: up.files(name, netplan_yaml=lambda text: text.replace("mtu: 9000", "mtu: 4200")) for name in SHARING
    }
    drivers = [up.loaded(name, files) for name, files in smaller.items()]
    up.lab.shell("gpu01", f"{WATCH} cat >{BALKING} && chmod 755 {BALKING}", stdin=BALKS)
    try:
        errors = commit_together(drivers, LONG_S)
        reported = up.lab.shell("gpu01", "sleep 1; kill $(cat /tmp/watch); cat /tmp/seen")
    finally:
        up.lab.shell("gpu01", f"rm -f {BALKING} /tmp/balked")
    assert list(errors) == ["gpu01"]
    assert "rail0: networkctl reload failed; it was taken back" in str(errors["gpu01"])
    assert "rail1" not in reported
    assert (up.disk("gpu01"), up.kernel("gpu01")) == before
    assert drivers[1].has_pending_commit()
    drivers[1].rollback()
    assert is_as(up, "gpu02", up.files("gpu02"))


def test_a_secret_is_filled_in_during_transfer_and_never_printed(up: Bench, tmp_path: Path) -> None:
    files = up.files("gpu01", nccl_conf=lambda text: f"{text}# @secret:TOKEN@\n")
    driver = up.driver("gpu01", secrets={"TOKEN": "s3cr3t"}.__getitem__)
    driver.load_candidate(Candidate(files, (), "ansible"))
    assert "s3cr3t" in up.lab.shell("gpu01", "cat /etc/netkit/staged.json")
    assert up.lab.shell("gpu01", "stat -c %a /etc/netkit/staged.json") == "600\n"
    shown = driver.compare_config()
    assert "+# ********\n" in shown
    assert "s3cr3t" not in shown
    driver.discard_config()
    assert up.lab.ssh("gpu01", "test -e /etc/netkit/staged.json").returncode == 1
    with pytest.raises(DeviceError, match="nothing is staged"):
        driver.compare_config()

    (tmp_path / "tasks").mkdir()
    (tmp_path / "tasks" / "rail.yml").write_text(SEEK.format(place=tmp_path), encoding="utf-8")
    (tmp_path / "seek").write_text(FIND.format(place=tmp_path), encoding="utf-8")
    (tmp_path / "words").write_text("s3cr3t\n", encoding="utf-8")
    driver.own_playbooks = (tmp_path,)
    netplan = up.files("gpu01", netplan_yaml=wider)["netplan.yaml"]
    driver.load_candidate(Candidate({**files, "netplan.yaml": netplan}, (), "ansible"))
    driver.commit_config(revert_in=LONG_S)
    assert "# s3cr3t" in up.lab.shell("gpu01", "cat /etc/nccl.conf")
    assert up.lab.ssh("gpu01", "test -e /etc/netkit/staged.json").returncode == 1
    looked = (tmp_path / "looked").read_text(encoding="utf-8").splitlines()
    assert {place.rpartition("/")[2] for place in looked} == {"hosts.json"}
    found = (tmp_path / "found").read_text(encoding="utf-8").splitlines()
    assert [place for place in found if not place.endswith("/project/words")] == []
    driver.rollback()
