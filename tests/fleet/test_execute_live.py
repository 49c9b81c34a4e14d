"""`netkit worker` at a site with a lab: what it sends is what netkit says there."""

import json
import os
import signal
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from netkit.facts import serial
from netkit.fleet.answer import JobAnswer, JobEvent, LostJob
from netkit.fleet.job import BackupWork, SnapshotWork, new_job
from tests.command import begin, run
from tests.fleet.bed import FABRIC, PATIENCE_S, Bed, bed, eventually, password
from tests.fleet.rabbitmq_server import needs_rabbitmq
from tests.fleet.repository import FabricRepository, fabric_repository
from tests.lab.running import RunningLab, intent, needs_lab, running, until, write_fabric

pytestmark = [needs_rabbitmq, needs_lab]
DEVICES = ("leaf01", "spine01", "gpu01")
CHECKS = (
    "links.up",
    "links.mtu",
    "bgp.sessions",
    "routes",
    "qos",
    "drift",
    "inventory",
    "host.uniform",
)
PORT = "swp1s0"
"""To gpu01."""
SECRETS: dict[str, Any] = {
    f"NETKIT_SECRET_{name}": f"{name}-of-a-test" for name in ("SNMP_AUTH", "SNMP_PRIV", "LOGIN_HASH")
}


@pytest.fixture(scope="module")
def origin(tmp_path_factory: pytest.TempPathFactory) -> FabricRepository:
    found = fabric_repository(tmp_path_factory.mktemp("fleet") / "origin", FABRIC["tokyo"])
    write_fabric(found.folder / FABRIC["tokyo"], intent())
    found.commit("a fabric for a lab")
    return found


@pytest.fixture(scope="module")
def lab(origin: FabricRepository) -> Iterator[RunningLab]:
    with running(origin.folder / FABRIC["tokyo"]) as found:
        yield found


@pytest.fixture(scope="module")
def site(origin: FabricRepository, lab: RunningLab, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Bed]:
    """A broker, and the real worker of tokyo, whose devices are those of the lab."""
    state = tmp_path_factory.mktemp("worker")
    with bed(repository=str(origin.folder)) as found:
        folder = found.home / "sites" / "tokyo"
        words = ("worker", "--site", "tokyo", "--fleet", folder, "--state", state, f"--lab={lab.name}")
        changes = {"NETKIT_LAB_DIR": str(lab.home), "NETKIT_SECRET_BROKER": password(folder), **SECRETS}
        changes["NETKIT_STATE_DIR"] = str(state)
        with (state / "log").open("wb") as log:
            worker = begin(*words, output=log, **changes)
        try:
            eventually(lambda: b"connected to localhost as" in (state / "log").read_bytes())
            yield found
        finally:
            worker.send_signal(signal.SIGTERM)
            assert worker.wait(PATIENCE_S) == 0, (state / "log").read_text(encoding="utf-8")


def answers(site: Bed, origin: FabricRepository, work: BackupWork | SnapshotWork, *devices: str) -> list[JobEvent]:
    commit = origin.git("rev-parse", "HEAD")
    job = new_job("tokyo", FABRIC["tokyo"], commit, work, within_s=600, devices=devices)
    with site.coordinator() as fleet:
        return [event for event in fleet.run([job]) if isinstance(event, JobAnswer | LostJob)]


def payloads(events: list[JobEvent]) -> list[bytes]:
    assert [event for event in events if not isinstance(event, JobAnswer)] == []
    return [event.payload for event in events if isinstance(event, JobAnswer)]


def test_a_backup_of_a_shard_is_that_of_the_site(
    site: Bed, origin: FabricRepository, lab: RunningLab, tmp_path: Path
) -> None:
    found = {
        one["device"]: one["text"] for one in map(json.loads, payloads(answers(site, origin, BackupWork(), *DEVICES)))
    }
    saved = tmp_path / "saved"
    words = ("backup", "--fabric", lab.fabric, f"--lab={lab.name}", "-o", saved, "--limit", ",".join(DEVICES))
    done = run(*words, timeout_s=300, NETKIT_LAB_DIR=str(lab.home), **SECRETS)
    assert done.returncode == 0, done.stderr
    assert found == {name: (saved / f"{name}.conf").read_text(encoding="utf-8") for name in DEVICES}


def test_a_snapshot_of_a_shard_has_its_devices(site: Bed, origin: FabricRepository) -> None:
    parts = payloads(answers(site, origin, SnapshotWork(window_s=0), *DEVICES))
    found = [serial.load(part, "a part") for part in parts]
    assert [list(one.devices) for one in found] == [[name] for name in DEVICES]
    assert [one.failure for part in found for one in part.devices.values()] == [""] * len(DEVICES)
    assert [bool(one.plan) for one in found] == [True, False, False]
    assert {one.fabric for one in found} == {"small"}


def test_a_check_at_the_site_finds_what_one_machine_finds(site: Bed, origin: FabricRepository, lab: RunningLab) -> None:
    """Broken on purpose, so that there is something to find: a port that is down, and a setting changed by hand."""
    lab.run("leaf01", "ip", "link", "set", PORT, "down")
    try:
        # Both are to find the host as it stays: its networkd takes the routes away some time after the carrier.
        until(lambda: not lab.run("gpu01", "ip", "route", "show", "dev", "rail0").strip(), "its routes are gone")
        words = ("check", *CHECKS, "--window", "0", "--format", "json", "--fabric", origin.folder / FABRIC["tokyo"])
        there = run(*words, "--fleet", site.home, timeout_s=300, NETKIT_SECRET_BROKER=password(site.home))
        here = run(*words, f"--lab={lab.name}", timeout_s=300, NETKIT_LAB_DIR=str(lab.home), **SECRETS)
    finally:
        lab.run("leaf01", "ip", "link", "set", PORT, "up")
    assert (there.returncode, here.returncode) == (1, 1), there.stderr
    assert results_in(there.stdout) == results_in(here.stdout)


def test_counters_are_judged_since_the_check_before(site: Bed, origin: FabricRepository, tmp_path: Path) -> None:
    fabric, store = origin.folder / FABRIC["tokyo"], f"--store={tmp_path / 'store.db'}"
    words = ("check", "load.errors", "counters", "--window", "3", "--format", "json", "--fabric", fabric)
    times, windows = [], []
    for _ in range(3):
        done = run(
            *words, store, "--since=last", "--fleet", site.home, timeout_s=300, NETKIT_SECRET_BROKER=password(site.home)
        )
        found = json.loads(done.stdout)
        assert (done.returncode, found["unreached"]) == (0, []), done.stdout + done.stderr
        times.append(found["taken_s"])
        windows.append(found["window_s"])
    assert windows[0] >= 3
    between = [later - earlier for earlier, later in pairwise(times)]
    assert windows[1:] == pytest.approx(between, rel=0.3, abs=3)


def test_rates_come_from_the_site(site: Bed, origin: FabricRepository, lab: RunningLab, tmp_path: Path) -> None:
    about = ("--fabric", origin.folder / FABRIC["tokyo"], "--limit", "leaf01,gpu01", "--format", "json")
    record = tmp_path / "record.gz"
    words = ("--for", "6s", "--record", record, "--fleet", site.home)
    there = run("watch", *about, *words, timeout_s=300, NETKIT_SECRET_BROKER=password(site.home))
    here = run("watch", *about, "--once", f"--lab={lab.name}", timeout_s=300, NETKIT_LAB_DIR=str(lab.home), **SECRETS)
    once = run("watch", *about, "--once", "--fleet", site.home, timeout_s=300, NETKIT_SECRET_BROKER=password(site.home))
    assert (there.returncode, here.returncode, once.returncode) == (0, 0, 0), there.stderr + here.stderr + once.stderr
    found, expected, first = (json.loads(one.stdout) for one in (there, here, once))
    for one in (found, first):
        assert ports_in(one) == ports_in(expected)
        states = {device["device"]: device["state"] for device in one["devices"]}
        assert states.keys() == {"leaf01", "gpu01"}
        assert set(states.values()) <= {"live", "slow"}  # slow on a busy machine
    assert min(device["samples"] for device in found["devices"]) >= 3
    for one in (found, first):
        assert all(port["last"]["rx_bps"] is not None for port in one["ports"] if port["device"] == "leaf01")
    replayed = run("watch", "--replay", record, "--once", "--format", "json")
    assert ports_in(json.loads(replayed.stdout)) == ports_in(expected)


def ports_in(found: Any) -> list[tuple[str, str]]:
    return sorted((one["device"], one["port"]) for one in found["ports"])


def results_in(text: str) -> list[tuple[str, str, int, list[str]]]:
    """Return what a check found, without the numbers that change from reading to reading: routes still converge."""
    return [
        (one["id"], one["verdict"], one["examined"], sorted({finding["place"] for finding in one["findings"]}))
        for one in json.loads(text)["results"]
    ]


def test_backups_and_snapshots_come_from_the_site(
    site: Bed, origin: FabricRepository, lab: RunningLab, tmp_path: Path
) -> None:
    about = ("--fabric", origin.folder / FABRIC["tokyo"], "--limit", ",".join(DEVICES))
    for where, words, variables in (
        ("there", ("--fleet", site.home), {"NETKIT_SECRET_BROKER": password(site.home)}),
        ("here", (f"--lab={lab.name}",), {"NETKIT_LAB_DIR": str(lab.home), **SECRETS}),
    ):
        done = run("backup", *about, *words, "-o", tmp_path / where, timeout_s=300, **variables)
        assert (done.returncode, done.stderr) == (0, "")
        done = run(
            "snapshot", *about, *words, "--window", "0", "-o", tmp_path / f"{where}.json", timeout_s=300, **variables
        )
        assert (done.returncode, done.stderr) == (0, "")
    for name in DEVICES:
        texts = [(tmp_path / where / f"{name}.conf").read_text(encoding="utf-8") for where in ("there", "here")]
        assert texts[0] == texts[1]
    there, here = (serial.read(tmp_path / f"{where}.json") for where in ("there", "here"))
    assert list(there.devices) == list(here.devices) == sorted(DEVICES)
    assert [one.failure for one in there.devices.values()] == [""] * len(DEVICES)
    assert there.plan == here.plan != ""


def test_a_check_of_what_is_not_committed_is_refused(site: Bed, origin: FabricRepository) -> None:
    folder = origin.folder / FABRIC["tokyo"]
    (folder / "notes.txt").write_text("not committed", encoding="utf-8")
    try:
        done = run("check", "--fabric", folder, "--fleet", site.home, NETKIT_SECRET_BROKER=password(site.home))
    finally:
        (folder / "notes.txt").unlink()
    assert done.returncode == 3
    assert "are not committed; commit and push them: sites check out a commit" in done.stderr


def test_a_device_that_does_not_exist_is_named(site: Bed, origin: FabricRepository) -> None:
    (lost,) = answers(site, origin, BackupWork(), "leaf99")
    assert isinstance(lost, LostJob)
    assert lost.reason.startswith(f"failed by {os.uname().nodename[:40]}:")
    assert ": --limit 'leaf99' matches no device; " in lost.reason


def test_the_status_is_shown(site: Bed, tmp_path: Path) -> None:
    changes: dict[str, Any] = {"NETKIT_SECRET_BROKER": password(site.home)}
    words = ("fleet", "status", "--fleet", site.home, "--metrics", tmp_path / "fleet.prom")
    eventually(lambda: "idle" in run(*words, **changes).stdout)
    done = run(*words, **changes)
    assert (done.returncode, done.stderr) == (0, "")
    head, tokyo, osaka = done.stdout.splitlines()
    assert head.split() == ["site", "waiting", "worker", "version", "done", "refused", "now"]
    assert (tokyo.split()[:2], tokyo.split()[-1]) == (["tokyo", "0"], "idle")
    assert osaka.split(maxsplit=6) == ["osaka", "0", "-", "-", "-", "-", "no worker is connected"]
    assert 'netkit_fleet_workers{site="tokyo"} 1\n' in (tmp_path / "fleet.prom").read_text(encoding="utf-8")
    found = json.loads(run("fleet", "status", "--fleet", site.home, "--format", "json", **changes).stdout)
    assert [(one["site"], one["waiting"], one["receivers"], len(one["workers"])) for one in found] == [
        ("tokyo", 0, 1, 1),
        ("osaka", 0, 0, 0),
    ]
    assert found[0]["workers"][0]["verb"] == ""
