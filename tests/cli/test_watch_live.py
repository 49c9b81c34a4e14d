"""`netkit watch` on lab devices: the broken port is first, and no device delays another."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.cli.site import Site
from tests.cli.terminal import terminal
from tests.lab.running import intent, needs_lab, running, write_fabric

pytestmark = needs_lab
LAB = "watch"


@pytest.fixture(name="site", scope="module")
def site_of_module(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    home = tmp_path_factory.mktemp("watch")
    with running(write_fabric(home / "fabric", intent()), name=LAB) as lab:
        yield Site(lab, home)


def watched(site: Site, *options: str | Path) -> dict[str, Any]:
    """What a watch collected."""
    done = site.netkit("watch", "--format", "json", *options)
    assert done.returncode == 0, done.stderr
    reported: dict[str, Any] = json.loads(done.stdout)
    return reported


def test_a_nic_that_pauses_is_first_in_the_watch_and_its_recording(site: Site, tmp_path: Path) -> None:
    record = tmp_path / "storm.jsonl.gz"
    assert site.lab.lab("break", "pause-storm", "gpu01:rail0").returncode == 0
    try:
        reported = watched(site, "--for", "8s", "--record", record)
    finally:
        assert site.lab.lab("heal", "gpu01").returncode == 0
    first = reported["ports"][0]
    assert (first["device"], first["port"], first["what"]) == ("gpu01", "rail0", "source")
    assert first["last"]["pause_out"] > 0.4
    assert all(one["samples"] > 1 for one in reported["devices"])
    again = json.loads(site.real(site.lab.fabric, "watch", "--replay", record, "--once", "--format", "json").stdout)
    assert [(one["device"], one["port"], one["what"]) for one in again["ports"]] == [
        (one["device"], one["port"], one["what"]) for one in reported["ports"]
    ]


def test_devices_that_lag_hang_or_are_unreachable_delay_no_other(site: Site) -> None:
    faults = {"gpu02": "unreachable", "leaf02": "slow", "spine01": "hangs", "spine02": "garbage"}
    for device, fault in faults.items():
        details = ["seconds=0.7"] if fault == "slow" else []
        assert site.lab.lab("break", fault, device, *details).returncode == 0
    try:
        reported = watched(site, "--for", "12s")
    finally:
        for device in faults:
            site.lab.lab("heal", device)
    found = {one["device"]: one for one in reported["devices"]}
    assert found["gpu02"]["state"] == found["spine02"]["state"] == "gone"
    assert "cannot be reached" in found["gpu02"]["why"]
    assert found["spine01"]["samples"] == 0
    assert found["leaf02"]["state"] == "slow"
    assert found["leaf02"]["every_s"] > 2
    assert found["leaf01"]["samples"] > found["leaf02"]["samples"] > 0


def test_switches_can_be_read_by_snmp(site: Site) -> None:
    reported = watched(site, "--for", "8s", "--source", "snmp", "--limit", "leaf01")
    assert reported["devices"][0]["samples"] > 1, reported["devices"]
    assert all(one["last"]["rx_bps"] is not None for one in reported["ports"])


def test_once_exits_as_soon_as_there_are_rates(site: Site) -> None:
    done = site.netkit("watch", "--once", "--limit", "role=spine")
    assert done.returncode == 0, done.stderr
    assert "2 of 2 devices" in done.stdout
    assert "spine01 swp1s0" in done.stdout


def test_a_watch_of_no_device_is_reported(site: Site) -> None:
    assert site.lab.lab("break", "unreachable", "gpu02").returncode == 0
    try:
        done = site.netkit("watch", "--once", "--limit", "gpu02")
    finally:
        site.lab.lab("heal", "gpu02")
    assert done.returncode == 4
    assert "gpu02  gone" in done.stdout


def test_a_live_screen_updates_and_ends(site: Site) -> None:
    with terminal(site.words("watch"), NETKIT_LAB_DIR=str(site.lab.home)) as shown:
        shown.until("6 of 6 devices")
        shown.until("gpu01 rail0")
        shown.press("q")
        assert shown.ended() == 0
