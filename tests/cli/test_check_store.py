"""`netkit check --store`, `--since last` and `netkit history --checks`, on snapshots."""

import json
import sqlite3
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from netkit import design
from netkit.facts import Facts, Observation, Sample, Snapshot, serial
from netkit.facts.device import System
from netkit.facts.optic import Lane, Module
from netkit.hardware import Catalog
from netkit.intent import Intent
from netkit.judge import Verdict
from netkit.store import Source
from netkit.store.store import open_store
from tests.cli.checked import VALUES, checked
from tests.command import ROOT, Done, assert_refused, run
from tests.lab.running import write_fabric

DAY_S = 86_400.0
BEGAN_S = 1_763_769_600.0
NOTHING = Facts()
BUILT = design.build(Intent.model_validate(VALUES), Catalog())


@pytest.fixture
def fabric(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("NETKIT_STATE_DIR", str(tmp_path / "state"))
    monkeypatch.delenv("NETKIT_STORE", raising=False)
    return write_fabric(tmp_path / "fabric", VALUES)


def seen(taken_s: float, errors: int, facts: Facts = NOTHING) -> Snapshot:
    counters = {"rx_errors": {"swp1s0": errors}}
    one = Observation("leaf01", "nvue", replace(facts, counters=counters), (Sample(taken_s, counters),))
    missed = {name: Observation(name, "nvue", failure="connection refused") for name in BUILT.names}
    return Snapshot(BUILT.name, taken_s, {**missed, "leaf01": one})


def check(fabric: Path, snapshot: Snapshot, *arguments: str | Path) -> Done:
    file = fabric.parent / "snapshot.json"
    file.write_bytes(serial.dump(snapshot))
    return run("check", *arguments, "--fabric", fabric, "--from", file, "--limit", "leaf01", "--format", "json")


def verdicts(done: Done) -> dict[str, tuple[str, list[str]]]:
    assert done.returncode in {0, 1}, done.stderr
    results = json.loads(done.stdout)["results"]
    return {one["id"]: (one["verdict"], [finding["text"] for finding in one["findings"]]) for one in results}


def stored(fabric: Path, *arguments: str | Path) -> list[dict[str, object]]:
    done = run("history", "--checks", "--fabric", fabric, "--format", "json", *arguments)
    assert (done.returncode, done.stderr) == (0, "")
    found: list[dict[str, object]] = json.loads(done.stdout)
    return found


def test_counters_are_judged_since_the_last_run_of_the_fabric(fabric: Path) -> None:
    first = check(fabric, seen(BEGAN_S, 5), "load.errors", "--store", "--since=last")
    assert verdicts(first)["load.errors[leaf01]"][1] == ["only one sample of its counters: give a window"]
    quiet = check(fabric, seen(BEGAN_S + 3600, 5), "load.errors", "--store", "--since=last")
    assert verdicts(quiet)["load.errors[leaf01]"][0] == "pass"
    assert json.loads(quiet.stdout)["window_s"] == 3600
    bad = check(fabric, seen(BEGAN_S + 7200, 25), "load.errors", "--store", "--since=last")
    verdict, texts = verdicts(bad)["load.errors[leaf01]"]
    assert (verdict, texts[0]) == ("fail", "20 packets arrived damaged in 3600 s")
    unasked = check(fabric, seen(BEGAN_S + 9000, 99), "load.errors", "--store")
    assert verdicts(unasked)["load.errors[leaf01]"][0] == "skipped"


def test_the_report_of_a_stored_check_has_facts_trends_and_the_name_of_the_run(fabric: Path) -> None:
    file = fabric.parent / "report.json"
    check(fabric, seen(BEGAN_S, 5), "--store")
    check(fabric, seen(BEGAN_S + 3600, 5), "--store", "--report", file)
    report = json.loads(file.read_text())
    newest, before = (run["run"] for run in stored(fabric))
    assert (report["run"], report["has_facts"]) == (newest, True)
    assert [one["run"] for one in report["trends"]["runs"]] == [before, newest]


def test_a_device_that_rebooted_in_between_is_not_judged(fabric: Path) -> None:
    for at_s, errors, boot in ((BEGAN_S, 5, "b1"), (BEGAN_S + 60, 500, "b2")):
        facts = Facts(system=System("leaf01", boot=boot))
        done = check(fabric, seen(at_s, errors, facts), "load.errors", "--store", "--since", "last")
    verdict, texts = verdicts(done)["load.errors[leaf01]"]
    assert (verdict, texts[0]) == ("skipped", "damaged packets are not known: reset")


def test_an_optic_that_slowly_dims_gives_a_warning(fabric: Path) -> None:
    found = []
    for week in range(7):
        lane = Lane(rx_dbm=-1.0 - 0.6 * week)
        facts = Facts(modules={"swp1s0": Module(kind="optic", lanes={1: lane})})
        done = check(fabric, seen(BEGAN_S + 7 * week * DAY_S, 0, facts), "optics.trend", "--store")
        found.append(verdicts(done)["optics.trend[leaf01]"])
    unknown = ("skipped", ["no earlier runs to compare with"])
    assert found[:5] == [unknown, unknown, *[("pass", [])] * 3]
    assert found[5] == ("warn", ["lane 1 degrades: it receives 3.0 dB less than 35 days ago, falling steadily"])
    assert found[6] == ("warn", ["lane 1 receives 2.1 dB less than in earlier runs"])


def test_a_stored_run_is_printed_again_unchanged(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NETKIT_STORE", str(tmp_path / "of-environment.db"))
    fabric, file = checked(tmp_path)
    for form in ("text", "json", "junit", "markdown"):
        said = run("check", "bgp", "load", "--fabric", fabric, "--from", file, "--format", form)
        again = run("history", "--checks", "last", "--fabric", fabric, "--format", form)
        assert (again.returncode, again.stdout, again.stderr) == (0, said.stdout, ""), form
    newest = stored(fabric)[0]
    reported = [newest[name] for name in ("fabric", "absent", "unreached", "verdict", "exit_code")]
    assert reported == ["small", 1, 3, "fail", 4]
    table = run("history", "--checks", "--fabric", fabric).stdout.splitlines()
    assert len(table) == 5
    assert table[1].startswith(f"{newest['run']}  2025-11-22 08:26:40 UTC  10 s    3 of 6   ")
    assert run("history", "--fabric", fabric).stdout == "no run on small yet\n"


def test_a_run_on_some_devices_leaves_the_state_of_others_alone(fabric: Path) -> None:
    file = fabric.parent / "all.json"
    file.write_bytes(serial.dump(seen(BEGAN_S, 5)))
    assert run("check", "load.errors", "--fabric", fabric, "--from", file, "--store").returncode == 4
    check(fabric, seen(BEGAN_S + 60, 5), "load.errors", "--store")
    with open_store(str(fabric.parent / "state" / "store.db")) as store:
        states = {one.key.device: (one.verdict, one.seen_s) for one in store.states(Source("small")).items}
    missed = [name for name in BUILT.names if name != "leaf01"]
    assert states == dict.fromkeys(missed, (Verdict.FAIL, BEGAN_S))


def test_sqlalchemy_is_loaded_only_for_a_store() -> None:
    loads = "import sys, netkit.cli.app, netkit.cli.check; "
    asks = f"{loads}print(sorted({{'sqlalchemy', 'alembic'}} & sys.modules.keys()))"
    done = subprocess.run([sys.executable, "-c", asks], cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"


def test_old_runs_are_pruned(fabric: Path) -> None:
    for day in range(4):
        check(fabric, seen(BEGAN_S + day * DAY_S, 5), "load.errors", "--store", "--keep=2d")
    assert [one["taken_s"] for one in stored(fabric)] == [BEGAN_S + day * DAY_S for day in (3, 2, 1)]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--since=last"], "--since last needs a store; give --store too, or set NETKIT_STORE"),
        (["--store", "--since=then"], "--since 'then' is not supported; use --since last"),
        (["--store", "--keep=ever"], "--keep 'ever' is not a duration; use days or hours, such as 90d or 12h"),
        (
            ["--store", "--keep=runs=9d,facts=1d"],
            "unknown kind 'facts'; use findings, readings, runs, each with a time",
        ),
        (["--store", "--keep=runs=9d,findings="], "'' is not a duration; use days or hours, such as 90d or 12h"),
        (["--store=mysql://h/d"], "mysql is not supported as a store; use a file, or postgresql://USER@HOST/DATABASE"),
        (["--store=/proc/store.db"], "the store /proc/store.db: unable to open database file; check the path"),
    ],
)
def test_usage_errors_are_refused_before_anything_is_judged(fabric: Path, arguments: list[str], message: str) -> None:
    assert_refused(check(fabric, seen(BEGAN_S, 5), "load.errors", *arguments), message)


def test_history_reports_what_it_does_not_find(fabric: Path) -> None:
    assert_refused(
        run("history", "--checks", "--fabric", fabric), "there is no store; netkit check --store creates one"
    )
    check(fabric, seen(BEGAN_S, 5), "load.errors", "--store")
    check(fabric, seen(BEGAN_S, 5), "load.errors", "--store")
    assert_refused(run("history", "--checks", "never", "--fabric", fabric), "no stored run 'never'")
    assert_refused(run("history", "--checks", "2025", "--fabric", fabric), "2 runs begin with '2025'")
    lab = run("history", "--checks", "--fabric", fabric, "--lab")
    assert (lab.returncode, lab.stdout) == (0, "no stored run of checks on small (lab small)\n")


def test_a_store_of_a_newer_netkit_is_refused(fabric: Path) -> None:
    check(fabric, seen(BEGAN_S, 5), "load.errors", "--store")
    with sqlite3.connect(fabric.parent / "state" / "store.db") as opened:
        opened.execute("UPDATE netkit_version SET version_num = '9999'")
    done = check(fabric, seen(BEGAN_S, 5), "load.errors", "--store")
    assert_refused(done, "the store was written by a newer netkit (revision 9999;")
