"""`netkit schedule`: units that systemd accepts, and runs that print only changes."""

import json
import shutil
import subprocess
from pathlib import Path

import pytest

from netkit.facts import serial
from tests.cli.checked import VALUES
from tests.cli.test_check_store import BEGAN_S, seen
from tests.command import Done, assert_refused, run
from tests.conftest import Golden
from tests.lab.running import write_fabric

needs_systemd = pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="systemd-analyze is not installed")


@pytest.fixture
def fabric(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("NETKIT_STATE_DIR", str(tmp_path / "state"))
    monkeypatch.delenv("NETKIT_STORE", raising=False)
    return write_fabric(tmp_path / "my 100% fabric $HOME", VALUES)


def installed(fabric: Path, units: Path, *options: str | Path) -> Done:
    return run("schedule", "--fabric", fabric, "install", "--units", units, *options)


def test_units_are_written_once(fabric: Path, tmp_path: Path) -> None:
    units = tmp_path / "units"
    units.mkdir()
    options = ("--every", "10m", "--backup", tmp_path / "saved")
    first = installed(fabric, units, *options)
    assert (first.returncode, first.stderr) == (0, "")
    timers = "netkit-check-small.timer netkit-backup-small.timer"
    then = f"next: systemctl daemon-reload && systemctl enable --now {timers}\n"
    assert first.stdout == f"4 units written to {units}\n{then}"
    again = installed(fabric, units, *options)
    assert again.stdout == f"{units} is up to date\n{then}"


@needs_systemd
def test_systemd_accepts_the_units(fabric: Path, tmp_path: Path) -> None:
    units = tmp_path / "units"
    units.mkdir()
    assert installed(fabric, units, "--backup", tmp_path / "a b").returncode == 0
    files = sorted(map(str, units.iterdir()))
    done = subprocess.run(["systemd-analyze", "verify", *files], capture_output=True, text=True, check=False)
    own = [line for line in (done.stdout + done.stderr).splitlines() if "netkit" in line]
    assert (done.returncode, own) == (0, [])


def test_what_show_prints(fabric: Path, golden: Golden, tmp_path: Path) -> None:
    done = run("schedule", "--fabric", fabric, "--every", "1h", cwd=tmp_path)
    lines = [line for line in done.stdout.splitlines() if not line.startswith("ExecStart=")]
    golden("cli/schedule.txt", "\n".join(lines).replace(str(tmp_path), "HERE") + "\n")
    (start,) = [line for line in done.stdout.splitlines() if line.startswith("ExecStart=")]
    assert start.endswith(
        f'check --fabric "{tmp_path}/my 100%% fabric $$HOME" --store --since last --changes --deadline 3600s'
    )


def places(done: Done) -> set[str]:
    return {line.partition("=")[2] for line in done.stdout.splitlines() if line.startswith("WorkingDirectory=")}


def test_units_run_in_the_folder_of_the_users_checks_and_templates(fabric: Path, tmp_path: Path) -> None:
    assert places(run("schedule", "--fabric", fabric / "fabric.yaml", cwd=tmp_path)) == {
        f"{tmp_path}/my 100%% fabric $HOME"
    }
    (tmp_path / "checks").mkdir()
    done = run("schedule", "--fabric", fabric.name, "--backup", "saved", cwd=tmp_path)
    assert places(done) == {str(tmp_path)}
    assert f'--fabric "{tmp_path}/my 100%% fabric $$HOME" ' in done.stdout


def test_with_receivers_the_unit_notifies_them(fabric: Path) -> None:
    (start,) = [
        line
        for line in run("schedule", "--fabric", fabric, "--notify").stdout.splitlines()
        if line.startswith("ExecStart=")
    ]
    assert start.endswith(" --store --since last --changes --notify --deadline 900s")


def test_with_a_fleet_its_sites_read_the_devices(fabric: Path, tmp_path: Path) -> None:
    words = ("schedule", "--fabric", fabric, "--backup", tmp_path / "saved", "--fleet", tmp_path / "fleet")
    starts = [line for line in run(*words).stdout.splitlines() if line.startswith("ExecStart=")]
    assert [line.count(f" --fleet {tmp_path / 'fleet'}") for line in starts] == [1, 1]


@pytest.mark.parametrize("every", ["", "15", "0m", "1w", "-5m", "15 m"])
def test_an_invalid_time_is_refused(fabric: Path, every: str) -> None:
    assert_refused(run("schedule", "--fabric", fabric, f"--every={every}"), "use minutes, hours or days")


def test_an_unwritable_folder_is_reported(fabric: Path, tmp_path: Path) -> None:
    assert_refused(installed(fabric, tmp_path / "nowhere"), "cannot be written", "No such file or directory")


def test_units_of_another_folder_are_never_overwritten(fabric: Path, tmp_path: Path) -> None:
    units, backup = tmp_path / "units", ("--backup", tmp_path / "saved")
    units.mkdir()
    first = write_fabric(tmp_path / 'its "name" \\ says $$ 5%%', VALUES)
    assert installed(first, units).returncode == 0
    said = {file: file.read_text(encoding="utf-8") for file in units.iterdir()}
    done = installed(fabric, units, *backup)
    assert_refused(
        done, f"{units}/netkit-check-small.service belongs to the fabric in {first}, which has the same name"
    )
    assert "rename one of the fabrics in its fabric.yaml, or remove that unit" in done.stderr
    assert {file: file.read_text(encoding="utf-8") for file in units.iterdir()} == said
    assert installed(first, units, "--every", "1h", *backup).stdout.startswith(f"4 units written to {units}\n")


@pytest.mark.parametrize("end", ["\n", "\r", "\t"])
def test_a_path_that_would_break_a_unit_is_refused(fabric: Path, tmp_path: Path, end: str) -> None:
    odd = write_fabric(tmp_path / f"first{end}ExecStart=second", VALUES)
    assert_refused(run("schedule", "--fabric", odd), "cannot be used in a systemd unit")
    assert_refused(
        run("schedule", "--fabric", fabric, "--backup", tmp_path / f"saved{end}"), "rename it without newlines"
    )


def changes(fabric: Path, taken_s: float, errors: int, *more: str) -> Done:
    file = fabric.parent / "snapshot.json"
    file.write_bytes(serial.dump(seen(taken_s, errors)))
    how = ("--from", file, "--limit", "leaf01", "--store", "--since=last", "--changes")
    return run("check", "load.errors", "--fabric", fabric, *how, *more)


def test_a_run_prints_only_when_a_cause_changed(fabric: Path) -> None:
    assert changes(fabric, BEGAN_S, 5).stdout == ""
    assert changes(fabric, BEGAN_S + 600, 5).stdout == ""
    assert changes(fabric, BEGAN_S + 1200, 900_000).stdout == (
        "small: 1 new since the last run; 1 cause open: 1 fail\n"
        "  new     FAIL  gpu01:rail0 → leaf01:swp1s0\n"
        "                leaf01:swp1s0: 899995 packets arrived damaged in 600 s  [load.errors]\n"
        "                do: see netkit check optics for both ends\n"
    )
    assert changes(fabric, BEGAN_S + 1800, 1_800_000).stdout == ""
    assert changes(fabric, BEGAN_S + 2400, 1_800_000).stdout == (
        "small: 1 gone since the last run; nothing is open\n"
        "  gone    was fail gpu01:rail0 → leaf01:swp1s0\n"
        "                leaf01:swp1s0: 900000 packets arrived damaged in 600 s  [load.errors]\n"
    )


def test_changes_are_sent_to_machines_and_tickets_too(fabric: Path) -> None:
    changes(fabric, BEGAN_S, 5)
    reported = json.loads(changes(fabric, BEGAN_S + 600, 900_000, "--format=json").stdout)
    (one,) = reported["changes"]
    assert (reported["fabric"], reported["open"]) == (
        "small",
        {"error": 0, "fail": 1, "warn": 0, "unreached": 0, "silenced": 0},
    )
    assert (one["change"], one["before"], one["verdict"], one["since_s"]) == ("new", "pass", "fail", BEGAN_S + 600)
    assert (one["head"]["check"], one["head"]["place"], one["symptoms"]) == ("load.errors", "swp1s0", [])
    quiet = changes(fabric, BEGAN_S + 1200, 1_800_000, "--format=json")
    assert json.loads(quiet.stdout) == {**reported, "changes": []}
    markdown = changes(fabric, BEGAN_S + 1800, 1_800_000, "--format=markdown").stdout
    assert markdown.splitlines()[0] == "## small: 1 gone since the last run; nothing is open"
    assert markdown.splitlines()[2].startswith("- **gone**, was fail: ")
    done = run("check", "--fabric", fabric, "--store", "--changes", "--format=junit")
    assert_refused(done, "use text or json or markdown")


def test_changes_need_a_store(fabric: Path) -> None:
    assert_refused(run("check", "--fabric", fabric, "--changes"), "give --store")
