"""`netkit report`: from snapshots and from a store."""

import json
import os
import re
import subprocess
from pathlib import Path
from typing import Any

import pytest

from netkit.facts import serial
from netkit.terminal.output import write_named, write_whole
from tests.cli.checked import checked
from tests.cli.test_check_store import BEGAN_S, check, seen
from tests.command import ROOT, Done, assert_refused, run
from tests.lab.running import PATIENCE_S


@pytest.fixture
def places(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[Path, Path]:
    """A fabric and a snapshot of it."""
    monkeypatch.setenv("NETKIT_STATE_DIR", str(tmp_path / "state"))
    monkeypatch.delenv("NETKIT_STORE", raising=False)
    return checked(tmp_path)


def data(page: Path) -> Any:
    """The data embedded in a page."""
    found = re.search(r'<script type="application/json" id="data">(.*?)</script>', page.read_text(encoding="utf-8"))
    assert found is not None
    return json.loads(found[1])


def report(places: tuple[Path, Path], *arguments: str | Path) -> Done:
    return run("report", "--fabric", places[0], *arguments)


def test_a_snapshot_becomes_one_file_with_the_verdicts_of_check(places: tuple[Path, Path], tmp_path: Path) -> None:
    out = tmp_path / "report.html"
    done = report(places, "--from", places[1], "-o", out)
    same = run("check", "--fabric", places[0], "--from", places[1], "--format", "json")
    reported = json.loads(same.stdout)
    assert done.returncode == same.returncode == 4
    assert done.stdout.startswith(f"{out}: small: {reported['verdict']}: ")
    found = data(out)
    assert (found["verdict"], found["exit_code"], found["counts"]["examined"]) == (
        reported["verdict"],
        4,
        reported["examined"],
    )
    assert [cause["head"]["text"] for cause in found["causes"]] == [one["head"]["text"] for one in reported["causes"]]
    assert {one["name"]: one["state"] for one in found["devices"]} == {
        "leaf01": "fail",
        "leaf02": "fail",
        "spine01": "unknown",
        "spine02": "unreached",
        "gpu01": "unreached",
        "gpu02": "unreached",
    }
    assert [file.name for file in tmp_path.iterdir() if "draft" in file.name] == []


def test_a_page_is_written_into_pipes_and_through_links_without_replacing_them(tmp_path: Path) -> None:
    real, linked, pipe = tmp_path / "real.html", tmp_path / "latest.html", tmp_path / "pipe"
    real.write_text("before", encoding="utf-8")
    linked.symlink_to(real)
    os.mkfifo(pipe)
    write_named(linked, "now")
    for write in (write_named, write_whole):
        reader = subprocess.Popen(["cat", str(pipe)], stdout=subprocess.PIPE)
        write(pipe, "reported")
        assert reader.communicate(timeout=PATIENCE_S)[0] == b"reported"
    assert (linked.is_symlink(), pipe.is_fifo(), real.read_text(encoding="utf-8")) == (True, True, "now")
    assert {path.name for path in tmp_path.iterdir()} == {"real.html", "latest.html", "pipe"}


def test_a_page_that_cannot_be_written_leaves_nothing(places: tuple[Path, Path], tmp_path: Path) -> None:
    folder = tmp_path / "folder"
    folder.mkdir()
    before = {path.name for path in tmp_path.iterdir()}
    assert_refused(report(places, "--from", places[1], "-o", folder), f"{folder} cannot be written: Is a directory")
    assert {path.name for path in tmp_path.iterdir()} == before


def test_json_is_the_data_of_the_page(places: tuple[Path, Path], tmp_path: Path) -> None:
    out = tmp_path / "report.html"
    report(places, "--from", places[1], "-o", out)
    done = report(places, "--from", places[1], "--format", "json")
    assert (done.returncode, json.loads(done.stdout)) == (4, data(out))


def test_a_report_on_part_of_a_fabric_names_only_that(places: tuple[Path, Path]) -> None:
    done = report(
        places, "--from", places[1], "--limit", "leaf01", "--check", "bgp", "--check", "load.errors", "--format", "json"
    )
    found = json.loads(done.stdout)
    assert [one["name"] for one in found["devices"]] == ["leaf01"]
    assert {one["check"].partition(".")[0] for one in found["by_check"]} == {"bgp", "load"}
    assert done.returncode == 1


def test_a_stored_run_is_reported_again_with_the_history_of_runs(places: tuple[Path, Path]) -> None:
    for _ in range(2):
        run("check", "--fabric", places[0], "--from", places[1], "--store")
    now = json.loads(report(places, "--from", places[1], "--format", "json").stdout)
    done = report(places, "last", "--format", "json")
    found = json.loads(done.stdout)
    assert done.returncode == 4
    same = ("verdict", "state", "counts", "causes", "unreached", "skipped", "exit_code", "taken_s")
    assert {name: found[name] for name in same} == {name: now[name] for name in same}
    assert (found["has_facts"], now["has_facts"], now["trends"]["runs"]) == (False, True, [])
    assert [one["fail"] for one in found["trends"]["runs"]] == [2, 2]
    assert found["run"] in {one["run"] for one in found["trends"]["runs"]}
    named = json.loads(report(places, found["run"], "--store", "--format", "json").stdout)
    assert named["run"] == found["run"]
    beside = json.loads(report(places, "--store", "--from", places[1], "--format", "json").stdout)
    assert len(beside["trends"]["runs"]) == 2


def test_a_changed_intent_is_reported_with_a_stored_run(places: tuple[Path, Path]) -> None:
    run("check", "--fabric", places[0], "--from", places[1], "--store")
    file = places[0] / "fabric.yaml"
    text = file.read_text(encoding="utf-8")
    assert json.loads(report(places, "last", "--format", "json").stdout)["notes"] == []
    file.write_text(text.replace("site: ", "site: another-", 1), encoding="utf-8")
    (note,) = json.loads(report(places, "last", "--format", "json").stdout)["notes"]
    assert note.startswith("The intent has changed since")


def test_the_schema_of_the_data_is_printed(places: tuple[Path, Path]) -> None:
    done = report(places, "--format", "schema")
    assert (done.returncode, json.loads(done.stdout)["title"]) == (0, "netkit report")


def test_usage_errors_are_refused_in_one_line(places: tuple[Path, Path], tmp_path: Path) -> None:
    snapshot = places[1]
    assert_refused(report(places, "--from", snapshot, "--format", "pdf"), "unknown format 'pdf'")
    assert_refused(report(places, "last"), "there is no store")
    assert_refused(report(places, "--store", "--from", snapshot), "there is no store")
    assert_refused(report(places, "last", "--from", snapshot), "--from does not apply to a stored run")
    assert_refused(report(places, "--lab", "--from", snapshot), "drop one of the options")
    missing = tmp_path / "nowhere" / "report.html"
    assert_refused(report(places, "--from", snapshot, "-o", missing), "cannot be written", "nowhere")
    run("check", "--fabric", places[0], "--from", snapshot, "--store")
    assert_refused(report(places, "no-such-run"), "no stored run 'no-such-run'")


def test_counters_are_reported_since_the_last_run(places: tuple[Path, Path], tmp_path: Path) -> None:
    only = ("--check", "load.errors", "--limit", "leaf01", "--format", "json")
    check(places[0], seen(BEGAN_S, 5), "load.errors", "--store")
    later = tmp_path / "later.json"
    later.write_bytes(serial.dump(seen(BEGAN_S + 3600, 25)))
    found = json.loads(report(places, "--from", later, *only, "--store", "--since", "last").stdout)
    assert (found["window_s"], found["counts"]["fail"]) == (3600, 1)
    assert json.loads(report(places, "--from", later, *only, "--store").stdout)["window_s"] == 0
    assert_refused(report(places, "--from", later, *only, "--since", "last"), "--since last needs a store")
    assert_refused(
        report(places, "--from", later, *only, "--store", "--since", "monday"), "--since 'monday' is not supported"
    )
    assert_refused(report(places, "last", "--since", "last"), "--since does not apply to a stored run")


def test_results_of_acceptance_runs_are_reported(places: tuple[Path, Path], tmp_path: Path) -> None:
    file = ROOT / "tests" / "facts" / "acceptance" / "cases" / "iperf_marked.txt"
    only = ("--check", "acceptance.*", "--format", "json")
    without, beside = (report(places, *only, *more) for more in (("--from", places[1]), ("--results", file)))
    assert json.loads(without.stdout)["counts"]["examined"] == 0
    assert json.loads(beside.stdout)["counts"]["examined"] > 0
    nothing = tmp_path / "result.txt"
    nothing.write_text("nothing of the kind\n", encoding="utf-8")
    assert_refused(report(places, "--from", places[1], "--results", nothing), "result.txt")
    assert_refused(report(places, "--from", places[1], "--profile", "heavy"), "unknown profile 'heavy'")
