"""pytest with a store, since the last run, and with results: the same verdicts as `netkit check`."""

from pathlib import Path
from xml.etree import ElementTree as Xml

import pytest

from netkit.facts import serial
from tests.cli.checked import VALUES
from tests.cli.test_check import pytests
from tests.cli.test_check_store import BEGAN_S, check, seen, stored, verdicts
from tests.command import ROOT
from tests.lab.running import write_fabric

RESULTS = ROOT / "tests" / "facts" / "acceptance" / "cases"
LOAD = ROOT / "checks" / "load.py"


@pytest.fixture
def fabric(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("NETKIT_STATE_DIR", str(tmp_path / "state"))
    monkeypatch.delenv("NETKIT_STORE", raising=False)
    return write_fabric(tmp_path / "fabric", VALUES)


def outcome(fabric: Path, at_s: float, errors: int, *arguments: str) -> tuple[int, dict[str, str]]:
    """Run one check under pytest on the facts of one leaf; return the exit code and the outcome of each test."""
    file, report = fabric.parent / "snapshot.json", fabric.parent / "junit.xml"
    file.write_bytes(serial.dump(seen(at_s, errors)))
    about = (
        "--netkit-fabric",
        str(fabric),
        "--netkit-snapshot",
        str(file),
        "--netkit-limit",
        "leaf01",
        f"--junit-xml={report}",
    )
    done = pytests(LOAD, *about, "-k", "errors", *arguments, cwd=fabric.parent)
    found = Xml.parse(report).getroot().iter("testcase")  # noqa: S314 (our own output)
    return done.returncode, {case.get("name", ""): next((part.tag for part in case), "pass") for case in found}


def test_counters_are_judged_since_the_last_run_of_either_command(fabric: Path) -> None:
    assert outcome(fabric, BEGAN_S, 5, "--netkit-store", "--netkit-since=last") == (0, {"leaf01": "skipped"})
    assert outcome(fabric, BEGAN_S + 3600, 5, "--netkit-store", "--netkit-since=last") == (0, {"leaf01": "pass"})
    said = verdicts(check(fabric, seen(BEGAN_S + 7200, 25), "load.errors", "--store", "--since=last"))
    assert said["load.errors[leaf01]"][0] == "fail"
    assert outcome(fabric, BEGAN_S + 9000, 99, "--netkit-store", "--netkit-since=last") == (1, {"leaf01": "failure"})
    assert [run["verdict"] for run in stored(fabric)] == ["fail", "fail", "pass", "skipped"]


def test_without_a_store_no_run_is_kept(fabric: Path) -> None:
    assert outcome(fabric, BEGAN_S, 5)[0] == 0
    assert not list((fabric.parent / "state").glob("store*"))


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--netkit-since=last",), "--since last needs a store"),
        pytest.param(
            ("--netkit-store", "--netkit-since=yesterday"),
            "--since 'yesterday' is not supported",
            marks=pytest.mark.whole,
        ),
        (("--netkit-store", "-n2"), "a session is stored as one run"),
        pytest.param(
            ("--netkit-source=snmp", "--netkit-snapshot=x"),
            "a snapshot already fixes the source of its facts",
            marks=pytest.mark.whole,
        ),
        pytest.param(
            ("--netkit-window=-1", "--netkit-lab"), "--netkit-window -1 is out of range", marks=pytest.mark.whole
        ),
        pytest.param(
            ("--netkit-window=nan", "--netkit-lab"), "--netkit-window nan is out of range", marks=pytest.mark.whole
        ),
    ],
)
def test_conflicting_options_are_refused_once(fabric: Path, arguments: tuple[str, ...], said: str) -> None:
    done = pytests(LOAD, "--netkit-fabric", str(fabric), *arguments, cwd=fabric.parent)
    assert (done.returncode, (done.stdout + done.stderr).count(said)) == (4, 1)


@pytest.mark.parametrize(("file", "code"), [("nccl_two_nodes.txt", 0), ("perftest_failed.txt", 1)])
def test_results_alone_are_judged_without_a_device(fabric: Path, file: str, code: int) -> None:
    done = pytests(
        ROOT / "checks" / "acceptance.py",
        "--netkit-fabric",
        str(fabric),
        "--netkit-results",
        RESULTS / file,
        cwd=fabric.parent,
    )
    assert done.returncode == code, done.stdout


def test_input_that_cannot_be_judged_is_an_error_and_not_a_failure(fabric: Path) -> None:
    found = outcome(fabric, BEGAN_S, 5, f"--netkit-store={fabric}/nowhere/store.db")
    assert found == (1, {"leaf01": "error"})
