"""The NVUE driver where access is refused, devices misbehave, or a change takes two applies."""

import subprocess
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from napalm.base.exceptions import ConnectionException

from netkit.errors import AccessError, DeviceError
from netkit.platforms.nvue.driver import NvueDriver
from tests.lab.running import RunningLab, needs_lab, until
from tests.platforms.nvue.switch import (
    LONG_S,
    PORT,
    SHORT_S,
    broken,
    changes,
    copied,
    described,
    endpoint,
    files_of,
    load,
    opened,
    tree,
    unsaved,
)

pytestmark = needs_lab
CAGE = "swp40"


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
