"""`netkit backup`, `check --store`, `report`, `serve` and `watch` of one lab, which they read.

A backup is one file for each device, changes only when the device does, and never holds a secret. In a watch, the
broken port is first, and no device delays another.
"""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.cli.site import Site
from tests.cli.terminal import terminal
from tests.cli.test_report import data
from tests.lab.running import RunningLab, intent, needs_lab, running, until, write_fabric
from tests.serve.server import serving

pytestmark = needs_lab
UNCHANGED = "small: nothing to change on 6 devices\n\nNot netkit's: 20 entries on 4 devices\n"
DEVICES = ("leaf01", "leaf02", "spine01", "spine02", "gpu01", "gpu02")


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningLab]:
    """A lab that all tests of this file share; each heals what it breaks."""
    with running(write_fabric(tmp_path_factory.mktemp("read"), intent()), name="r") as booted:
        yield booted


@pytest.fixture(scope="module")
def site(lab: RunningLab, tmp_path_factory: pytest.TempPathFactory) -> Site:
    """The lab for a user who watches it."""
    return Site(lab, tmp_path_factory.mktemp("watch"))


def test_a_backup_changes_only_with_the_device_and_can_be_planned_from(lab: RunningLab, tmp_path: Path) -> None:
    site, out = Site(lab, tmp_path), tmp_path / "saved"
    first = site.netkit("backup", "-o", out)
    assert (first.returncode, first.stderr) == (0, "")
    assert first.stdout == f"small: 6 devices saved, 6 files changed: {', '.join(DEVICES)}\n"
    assert sorted(file.name for file in out.iterdir()) == [f"{name}.conf" for name in sorted(DEVICES)]
    texts = {file.name: file.read_text(encoding="utf-8") for file in out.iterdir()}
    assert not [name for name, text in texts.items() if "-of-a-test" in text or "@secret:" in text]

    second = site.netkit("backup", "-o", out)
    assert second.stdout == "small: 6 devices saved, nothing changed\n"

    planned = site.real(lab.fabric, "plan", "--running", out, "--detailed-exitcode")
    assert (planned.returncode, planned.stdout) == (0, UNCHANGED)

    lab.shell("leaf01", "nv set interface swp1s0 description spare && nv config apply -y")
    (out / "gone.conf").write_text("==> x <==\n", encoding="utf-8")
    third = site.netkit("backup", "-o", out)
    assert third.stdout == (
        "small: 6 devices saved, 1 file changed: leaf01\nnot part of this fabric, and unchanged: gone\n"
    )
    was, now = texts["leaf01.conf"].splitlines(), (out / "leaf01.conf").read_text(encoding="utf-8").splitlines()
    assert [line.strip() for line in now if line not in was] == ["description: spare"]


def test_a_device_that_does_not_answer_keeps_its_backup(lab: RunningLab, tmp_path: Path) -> None:
    site, out = Site(lab, tmp_path), tmp_path / "saved"
    assert site.netkit("backup", "-o", out).returncode == 0
    before = (out / "leaf02.conf").read_text(encoding="utf-8")
    fault = lab.lab("break", "unreachable", "leaf02")
    assert fault.returncode == 0, fault.stderr
    try:
        done = site.netkit("backup", "-o", out)
    finally:
        assert lab.lab("heal", "--all").returncode == 0
    assert done.returncode == 4
    assert done.stdout == "small: 5 devices saved, nothing changed\n"
    assert done.stderr.startswith("not saved: leaf02: ")
    assert done.stderr.endswith("; its earlier backup stays\n")
    assert (out / "leaf02.conf").read_text(encoding="utf-8") == before


def test_a_full_disk_loses_no_saved_backup(lab: RunningLab, tmp_path: Path) -> None:
    out = Path("/dev/full")
    done = Site(lab, tmp_path).netkit("backup", "-o", out)
    assert done.returncode == 3
    assert done.stderr.count("\n") == 1
    assert "/dev/full" in done.stderr


@pytest.mark.whole
def test_on_a_lab_the_second_run_judges_what_changed_since_the_first(lab: RunningLab, tmp_path: Path) -> None:
    site = Site(lab, tmp_path)
    first = site.netkit("check", "load.errors", "bgp.sessions", "--store", "--since=last", "--window=1")
    assert "no earlier run has counters of 6 devices: they are judged over 1 s\n" in first.stderr
    second = site.netkit("check", "load.errors", "bgp.sessions", "--store", "--since=last", "--format=json")
    assert (second.returncode, second.stderr) == (0, ""), second.stdout
    reported = json.loads(second.stdout)
    listed = json.loads(site.netkit("history", "--checks", "--format=json").stdout)
    errors = {one["id"]: one["verdict"] for one in reported["results"] if one["id"].startswith("load.errors")}
    assert len(errors) == 6
    assert set(errors.values()) == {"pass"}
    assert [(one["lab"], one["exit_code"]) for one in listed] == [(lab.name, 0), (lab.name, 0)]
    assert reported["window_s"] == pytest.approx(listed[0]["taken_s"] - listed[1]["taken_s"], abs=30)


def test_a_lab_is_read_and_reported(lab: RunningLab, tmp_path: Path) -> None:
    site = Site(lab, tmp_path)
    out = tmp_path / "lab.html"
    site.netkit("check", "--store", "--window", "1")
    done = site.netkit("report", "--store", "--window", "1", "-o", out)
    found = data(out)
    assert done.returncode == found["exit_code"]
    assert found["counts"]["reached"] == found["counts"]["devices"] == len(found["devices"])
    assert found["counts"]["examined"] > 100
    ports = found["devices"][0]["ports"]["columns"]
    assert {"up", "pause", "ecn", "load", "margin", "module"} <= set(ports)
    assert len(found["trends"]["runs"]) == 1


def test_rounds_on_a_lab_find_a_fault_and_its_end(lab: RunningLab, tmp_path: Path) -> None:
    saved = tmp_path / "saved"
    saved.mkdir()
    options = (f"--lab={lab.name}", "--every=5s", "--window=1", "--backup", saved)
    with serving(lab.fabric, tmp_path / "state", *options, NETKIT_LAB_DIR=str(lab.home)) as server:
        until(lambda: bool(server.get("runs")["items"]), "the first round")
        assert server.get("states?check=optics.heat")["items"] == []
        assert lab.lab("break", "hot-optic", "leaf01:swp33s0").returncode == 0
        until(lambda: bool(server.get("states?check=optics.heat")["items"]), "a round finds the fault")
        fault = server.get("states?check=optics.heat")["items"][0]
        assert lab.lab("heal", "--all").returncode == 0
        until(lambda: server.get("states?check=optics.heat")["items"] == [], "a round finds it well again")
        until(lambda: any(one["kind"] == "backup" for one in server.ended_rounds()), "a backup")
        diary = server.diary
        output = server.output()
    assert fault["device"] == "leaf01"
    assert {path.stem for path in saved.glob("*.conf")} == {
        "leaf01",
        "leaf02",
        "spine01",
        "spine02",
        "gpu01",
        "gpu02",
    }
    assert {one["exit_code"] for one in diary["rounds"] if one["kind"] == "backup" and one["ended_s"]} == {0}
    assert "Traceback" not in output
    assert "gone    was warn leaf01:swp33s0" in output


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
        assert site.lab.lab("heal", "--all").returncode == 0
    found = {one["device"]: one for one in reported["devices"]}
    assert found["gpu02"]["state"] == found["spine02"]["state"] == "gone"
    assert "cannot be reached" in found["gpu02"]["why"]
    assert found["spine01"]["samples"] == 0
    assert found["leaf02"]["state"] == "slow"
    assert found["leaf02"]["every_s"] > 2
    assert found["leaf01"]["samples"] > found["leaf02"]["samples"] > 0


def test_switches_can_be_read_by_snmp(site: Site) -> None:
    reported = watched(site, "--for", "20s", "--source", "snmp", "--limit", "leaf01")
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
        assert site.lab.lab("heal", "gpu02").returncode == 0
    assert done.returncode == 4
    assert "gpu02  gone" in done.stdout


def test_a_live_screen_updates_and_ends(site: Site) -> None:
    with terminal(site.words("watch"), NETKIT_LAB_DIR=str(site.lab.home)) as shown:
        shown.until("6 of 6 devices")
        shown.until("gpu01 rail0")
        shown.press("q")
        assert shown.ended() == 0
