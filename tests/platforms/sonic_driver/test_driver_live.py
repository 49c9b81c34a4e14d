"""The SONiC driver on switches of a running lab: real SSH, and real FRR below."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import pytest

from netkit.errors import AccessError, DeviceError
from netkit.platforms.driver import Candidate
from netkit.platforms.sonic.driver import SonicDriver
from netkit.project.project import Project
from tests.lab.running import RunningLab, needs_lab, running, until, write_fabric
from tests.lanes import daily
from tests.platforms.getters import assert_answered
from tests.platforms.sonic_driver.switch import (
    MODES,
    SECRETS,
    changed,
    compared,
    config,
    described,
    frr,
    left_behind,
    load,
    opened,
    rendered,
    saved,
    tables,
    values,
)

pytestmark = needs_lab
LEAF, SPINE = "leaf01", "spine01"
LONG_S, SHORT_S, HEALED_S = 3600, 3, 30
"""Never, soon, and not before a fault is healed."""
LOCK = "/run/lock/netkit/lock"


@pytest.fixture(scope="module", params=daily(MODES, "split"))
def lab(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningLab]:
    """Boot new switches; deploy the intent to a leaf and a spine."""
    with running(write_fabric(tmp_path_factory.mktemp("fabric"), values(request.param)), "--bare", name="s") as booted:
        for device in (LEAF, SPINE):
            driver = opened(booted, device)
            load(driver, rendered(mode_of(booted), device))
            driver.commit_config()
            driver.close()
        yield booted


def mode_of(lab: RunningLab) -> str:
    return "unified" if "unified" in (lab.fabric / "fabric.yaml").read_text(encoding="utf-8") else "split"


@pytest.fixture
def driver(lab: RunningLab) -> Iterator[SonicDriver]:
    """Open the leaf with the intended configuration, and restore that at the end."""
    found = opened(lab, LEAF)
    yield found
    found.close()
    found = opened(lab, LEAF)
    found.rollback()
    if load(found, rendered(mode_of(lab), LEAF)) != "nothing":
        found.commit_config()
    found.close()


@contextmanager
def broken(lab: RunningLab, fault: str, *options: str) -> Iterator[None]:
    assert lab.lab("break", fault, LEAF, *options).returncode == 0
    try:
        yield
    finally:
        assert lab.lab("heal", LEAF, fault).returncode == 0


def routed_otherwise(lab: RunningLab, files: Mapping[str, str]) -> dict[str, str]:
    """Files with a change in FRR's file too, where there is one."""
    found = dict(files)
    if mode_of(lab) == "split":
        found["frr.conf"] = found["frr.conf"].replace(" timers bgp 3 9\n", " timers bgp 4 12\n")
        assert found["frr.conf"] != files["frr.conf"]
    return found


def test_a_new_switch_becomes_the_intended_one_and_is_restored(lab: RunningLab) -> None:
    driver = opened(lab, "spine02")
    before, startup = config(driver), saved(lab, "spine02")
    files = rendered(mode_of(lab), "spine02")
    assert load(driver, files) == "reload"
    driver.commit_config(revert_in=LONG_S)
    assert compared(driver, files).changes == ()
    driver.rollback()
    assert config(driver) == before
    assert saved(lab, "spine02") == startup
    assert load(driver, files) == "reload"
    driver.commit_config(revert_in=LONG_S)
    driver.confirm_commit()
    assert compared(driver, files).changes == ()
    assert left_behind(lab, "spine02").split() == [LOCK]
    assert lab.lab("restart", "spine02").returncode == 0
    again = opened(lab, "spine02")
    assert compared(again, files).changes == ()
    assert load(again, files) == "nothing"
    assert again.compare_config() == ""
    again.close()


def test_a_change_runs_unsaved_until_it_is_confirmed_over_another_connection(
    lab: RunningLab, driver: SonicDriver
) -> None:
    startup = saved(lab, LEAF)
    files = routed_otherwise(lab, described(driver, "a change"))
    assert load(driver, files) == "patch"
    assert '"a change"' in driver.compare_config()
    driver.commit_config(message="a test", revert_in=LONG_S)
    again = opened(lab, LEAF)
    assert again.has_pending_commit()
    assert compared(again, files).changes == ()
    assert saved(lab, LEAF) == startup
    again.confirm_commit()
    assert not again.has_pending_commit()
    assert compared(again, files).changes == ()
    assert ("a change" in saved(lab, LEAF), "timers bgp 4 12" in frr(lab, LEAF)) == (True, mode_of(lab) == "split")
    assert left_behind(lab, LEAF).split() == [LOCK]
    with pytest.raises(DeviceError, match="no change waits"):
        again.confirm_commit()
    again.close()


def test_rows_and_whole_tables_are_added_and_removed(driver: SonicDriver) -> None:
    before, original = config(driver), changed(driver)
    syslog = tables(driver)["SYSLOG_SERVER"]
    without = changed(driver, *(("SYSLOG_SERVER", key, "", None) for key in syslog))
    with_more = changed(driver, ("VLAN", "Vlan77", "vlanid", "77"), ("VLAN", "Vlan77", "description", "a/b~c"))
    for files in (without, with_more, original):
        assert load(driver, files) == "patch"
        driver.commit_config(revert_in=LONG_S)
        driver.confirm_commit()
        assert compared(driver, files).changes == ()
    assert config(driver) == before


def test_an_unconfirmed_change_reverts_by_itself(lab: RunningLab, driver: SonicDriver) -> None:
    before = config(driver)
    load(driver, routed_otherwise(lab, described(driver, "gone soon")))
    driver.commit_config(revert_in=SHORT_S)
    driver.close()
    again = opened(lab, LEAF)
    until(lambda: not again.has_pending_commit(), "the change is taken back")
    assert config(again) == before
    assert left_behind(lab, LEAF).split() == [LOCK]
    with pytest.raises(DeviceError, match="no change waits"):
        again.confirm_commit()
    again.close()


@pytest.mark.whole
def test_an_unconfirmed_reload_reverts_by_itself(lab: RunningLab, driver: SonicDriver) -> None:
    before = config(driver)
    load(driver, routed_otherwise(lab, described(driver, "gone soon")), method="reload")
    driver.commit_config(revert_in=SHORT_S)
    until(lambda: not driver.has_pending_commit(), "the change is taken back")
    assert config(driver) == before


def test_a_reboot_before_the_confirmation_reverts(lab: RunningLab, driver: SonicDriver) -> None:
    before = config(driver)
    load(driver, routed_otherwise(lab, described(driver, "gone with the power")))
    driver.commit_config(revert_in=LONG_S)
    assert lab.lab("restart", LEAF).returncode == 0
    again = opened(lab, LEAF)
    assert config(again) == before
    assert not again.has_pending_commit()
    again.close()


def test_a_rollback_reverts_a_pending_change_at_once(lab: RunningLab, driver: SonicDriver) -> None:
    before, startup = config(driver), saved(lab, LEAF)
    load(driver, routed_otherwise(lab, described(driver, "not for long")))
    driver.commit_config(revert_in=LONG_S)
    again = opened(lab, LEAF)
    again.rollback()
    assert not again.has_pending_commit()
    assert config(driver) == before
    assert saved(lab, LEAF) == startup
    again.close()


def test_a_commit_without_a_timer_is_saved_and_can_be_rolled_back(lab: RunningLab, driver: SonicDriver) -> None:
    before = config(driver)
    load(driver, routed_otherwise(lab, described(driver, "at once")))
    driver.commit_config()
    assert not driver.has_pending_commit()
    assert "at once" in saved(lab, LEAF)
    driver.rollback()
    assert config(driver) == before
    assert "at once" not in saved(lab, LEAF)


def test_nothing_is_staged_while_a_change_is_pending(lab: RunningLab, driver: SonicDriver) -> None:
    load(driver, described(driver, "first"))
    driver.commit_config(revert_in=LONG_S)
    other = opened(lab, LEAF)
    with pytest.raises(DeviceError, match="waits for confirmation"):
        load(other, described(other, "second"))
    assert tables(other)["PORT"]["Ethernet0"]["description"] == "first"
    other.close()


def test_a_discarded_candidate_is_forgotten(driver: SonicDriver) -> None:
    before = config(driver)
    load(driver, described(driver, "never"))
    driver.discard_config()
    assert driver.compare_config() == ""
    with pytest.raises(DeviceError, match="nothing is staged"):
        driver.commit_config()
    assert config(driver) == before


def test_a_patch_that_the_updater_refuses_changes_nothing(lab: RunningLab, driver: SonicDriver) -> None:
    before = config(driver)
    with pytest.raises(DeviceError, match=r"refuses the configuration: .*mtu"):
        load(driver, changed(driver, ("PORT", "Ethernet0", "mtu", "99999")))
    with pytest.raises(DeviceError, match=r"refuses the configuration: .*not permitted"):
        load(driver, changed(driver, ("PFC_WD", "GLOBAL", "", None)), method="patch")
    assert config(driver) == before
    assert left_behind(lab, LEAF).split() == [LOCK]


def test_a_reload_that_sonic_refuses_changes_nothing(driver: SonicDriver) -> None:
    before = config(driver)
    load(driver, changed(driver, ("PORT", "Ethernet0", "mtu", "99999")), method="reload")
    with pytest.raises(DeviceError, match=r"not applied: .*mtu"):
        driver.commit_config(revert_in=LONG_S)
    assert not driver.has_pending_commit()
    assert config(driver) == before


def test_a_rollback_that_the_updater_refuses_is_made_by_a_reload(driver: SonicDriver) -> None:
    rows = tables(driver)["PFC_WD"]
    before = config(driver)
    files = changed(driver, *(("PFC_WD", key, "", None) for key in rows))
    driver.load_candidate(Candidate(files, compared(driver, files).changes, "patch"))
    driver.commit_config(revert_in=LONG_S)
    assert "PFC_WD" not in tables(driver)
    driver.rollback()
    assert config(driver) == before


@pytest.mark.parametrize("method", ["patch", "reload"])
def test_a_change_that_fails_silently_is_detected_and_removed_completely(
    lab: RunningLab, driver: SonicDriver, method: str
) -> None:
    before = config(driver)
    load(driver, described(driver, "never there"), method)
    with broken(lab, "apply-fails-quietly"), pytest.raises(DeviceError, match=r"does not run it: PORT\|Ethernet0"):
        driver.commit_config(revert_in=LONG_S)
    assert not driver.has_pending_commit()
    assert config(driver) == before


def test_on_a_full_disk_nothing_starts(lab: RunningLab, driver: SonicDriver) -> None:
    before, startup = config(driver), saved(lab, LEAF)
    load(driver, described(driver, "never there"))
    with broken(lab, "disk-full"):
        with pytest.raises(DeviceError, match="could not start"):
            driver.commit_config(revert_in=LONG_S)
        assert not driver.has_pending_commit()
        assert config(driver) == before
    assert saved(lab, LEAF) == startup


def test_a_disk_that_fills_up_before_the_confirmation_keeps_startup_intact(
    lab: RunningLab, driver: SonicDriver
) -> None:
    before, startup = config(driver), saved(lab, LEAF)
    load(driver, described(driver, "cannot be saved"))
    driver.commit_config(revert_in=LONG_S)
    with broken(lab, "disk-full"), pytest.raises(DeviceError, match="cannot be saved"):
        driver.confirm_commit()
    assert driver.has_pending_commit()
    assert saved(lab, LEAF) == startup
    driver.rollback()
    assert config(driver) == before


def test_after_a_lost_connection_the_switch_keeps_its_timer(lab: RunningLab, driver: SonicDriver) -> None:
    before = config(driver)
    load(driver, described(driver, "who knows"))
    with broken(lab, "drops-after-commit", "seconds=2"), pytest.raises(AccessError):
        driver.commit_config(revert_in=HEALED_S)

    def is_back() -> bool:
        try:
            again = opened(lab, LEAF)
        except AccessError:
            return False
        is_pending = again.has_pending_commit()
        again.close()
        return not is_pending

    until(is_back, "the switch is back, and has taken the change back")
    again = opened(lab, LEAF)
    assert config(again) == before
    again.close()


def test_a_drain_runs_unsaved_and_hidden_and_ends_without_a_trace(lab: RunningLab, driver: SonicDriver) -> None:
    before = config(driver)
    drained = " bgp graceful-shutdown\n"
    driver.drain()
    driver.drain()
    assert drained in frr(lab, LEAF)
    assert config(driver) == before
    files = routed_otherwise(lab, described(driver, "while drained"))
    load(driver, files)
    driver.commit_config(revert_in=LONG_S)
    assert drained in frr(lab, LEAF)
    driver.rollback()
    assert drained in frr(lab, LEAF)
    assert config(driver) == before
    load(driver, files)
    driver.commit_config(revert_in=LONG_S)
    driver.confirm_commit()
    assert drained in frr(lab, LEAF)
    assert "graceful" not in saved(lab, LEAF)
    assert compared(driver, files).changes == ()
    driver.undrain()
    assert drained not in frr(lab, LEAF)
    driver.undrain()
    assert compared(driver, files).changes == ()


@pytest.mark.whole
def test_a_drain_that_is_intended_stays(lab: RunningLab, driver: SonicDriver) -> None:
    files = changed(driver)
    if mode_of(lab) == "split":
        line = " bgp log-neighbor-changes\n"
        files["frr.conf"] = files["frr.conf"].replace(line, f"{line} bgp graceful-shutdown\n")
    else:
        files = changed(driver, ("BGP_GLOBALS", "default", "graceful_shutdown", "true"))
    load(driver, files)
    driver.commit_config()
    for act in (driver.drain, driver.undrain):
        act()
        assert " bgp graceful-shutdown\n" in frr(lab, LEAF)
        assert compared(driver, files).changes == ()


def test_secrets_are_filled_in_and_appear_nowhere_else(lab: RunningLab, driver: SonicDriver) -> None:
    (user,) = tables(driver)["SNMP_USER"]
    load(driver, changed(driver, ("SNMP_USER", user, "", None)))
    driver.commit_config()
    assert "SNMP_USER" not in tables(driver)
    load(driver, rendered(mode_of(lab), LEAF))
    assert "SNMP_USER" in driver.compare_config()
    assert not [value for value in SECRETS.values() if value in driver.compare_config()]
    driver.commit_config()
    row = tables(driver)["SNMP_USER"][user]
    assert {row["SNMP_USER_AUTH_PASSWORD"], row["SNMP_USER_ENCRYPTION_PASSWORD"]} == {
        SECRETS["SNMP_AUTH"],
        SECRETS["SNMP_PRIV"],
    }
    assert left_behind(lab, LEAF).split() == [LOCK]


def test_an_error_of_the_switch_hides_secrets(driver: SonicDriver) -> None:
    with pytest.raises(DeviceError, match=r"refuses the configuration: .*<secret>") as caught:
        load(driver, changed(driver, ("VLAN", "Vlan9", "vlanid", "@secret:SNMP_AUTH@")))
    assert SECRETS["SNMP_AUTH"] not in str(caught.value)
    assert caught.value.__cause__ is None


def test_unowned_lines_in_frr_stay(lab: RunningLab, driver: SonicDriver) -> None:
    if mode_of(lab) == "unified":
        pytest.skip("SONiC itself makes FRR's configuration")
    lab.run(LEAF, "vtysh", "-c", "configure terminal", "-c", "ip route 10.99.0.0/24 blackhole")
    files = routed_otherwise(lab, rendered("split", LEAF))
    load(driver, files)
    driver.commit_config()
    assert ("ip route 10.99.0.0/24 blackhole" in frr(lab, LEAF), compared(driver, files).changes) == (True, ())
    assert "ip route 10.99.0.0/24 blackhole" in saved(lab, LEAF)
    lab.run(LEAF, "vtysh", "-c", "configure terminal", "-c", "no ip route 10.99.0.0/24 blackhole")


def test_tables_are_loaded_through_the_napalm_interface(driver: SonicDriver) -> None:
    before = config(driver)
    driver.load_merge_candidate(config='{"PORT": {"Ethernet0": {"description": "merged"}}}')
    driver.commit_config(revert_in=LONG_S)
    assert tables(driver)["PORT"]["Ethernet0"]["description"] == "merged"
    driver.rollback()
    driver.load_replace_candidate(config=changed(driver, ("VLAN", "Vlan9", "vlanid", "9"))["config_db.json"])
    driver.commit_config()
    assert tables(driver)["VLAN"]["Vlan9"] == {"vlanid": "9"}
    driver.rollback()
    assert config(driver) == before


def test_the_getters_return_what_the_switch_shows(lab: RunningLab, driver: SonicDriver) -> None:
    def is_up() -> bool:
        return uplink in {one.interface for one in driver.sessions() if one.is_established}

    uplink = "Ethernet256"
    until(is_up, "the session with the spine is up")
    facts = driver.get_facts()
    version = {"split": "202411", "unified": "202511"}[mode_of(lab)]
    assert (facts["hostname"], facts["os_version"], facts["model"]) == (LEAF, version, "SN5600")
    assert driver.get_interfaces()[uplink] | {"mac_address": ""} == {
        "is_up": True,
        "is_enabled": True,
        "description": "spine01:Ethernet0",
        "last_flapped": -1.0,
        "speed": 400_000.0,
        "mtu": 9216,
        "mac_address": "",
    }
    until(lambda: any(end["hostname"] == SPINE for end in driver.get_lldp_neighbors().get(uplink, [])), "LLDP is heard")
    peer: dict[str, Any] = driver.get_bgp_neighbors()["global"]["peers"][uplink]
    assert (peer["is_up"], peer["description"]) == (True, "spine01:Ethernet0")
    assert set(driver.get_interfaces_counters()) == set(driver.get_interfaces()) == set(facts["interface_list"])
    assert len(driver.get_optics()[uplink]["physical_channels"]["channel"]) == 4
    assert_answered(driver, Project.open(lab.fabric).fabric, LEAF, SPINE)
    assert driver.cli(["echo said; echo wrong >&2"]) == {"echo said; echo wrong >&2": "said\nwrong\n"}
    assert driver.get_config("startup")["running"] == ""


def test_garbage_is_not_a_configuration(lab: RunningLab, driver: SonicDriver) -> None:
    with broken(lab, "garbage"), pytest.raises(AccessError, match="leaf01"):
        driver.running_files()
