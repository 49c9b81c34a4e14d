import json
import os
import sys
from pathlib import Path
from xml.etree import ElementTree as Xml

import pytest

import netkit.cli
from tests.cli.checked import checked
from tests.command import ROOT, Done, assert_refused, run


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    return checked(tmp_path_factory.mktemp("checked"))


def test_failures_come_first_and_unjudged_checks_are_counted(place: tuple[Path, Path]) -> None:
    fabric, file = place
    done = run("check", "bgp", "load.errors", "--fabric", fabric, "--from", file)
    golden = ROOT / "tests" / "golden" / "check" / "small.txt"
    assert done.stdout == golden.read_text(encoding="utf-8")
    assert (done.returncode, done.stderr) == (4, "")


def test_exit_code_is_1_with_failures_and_0_without(place: tuple[Path, Path]) -> None:
    fabric, file = place
    assert run("check", "bgp", "--fabric", fabric, "--from", file, "--limit", "leaf02").returncode == 1
    assert run("check", "bgp.sessions", "--fabric", fabric, "--from", file, "--limit", "leaf01").returncode == 0
    done = run("check", "optics", "--fabric", fabric, "--from", file, "--limit", "leaf01")
    assert done.returncode == 1
    assert done.stdout.startswith("small: nothing could be judged: 0 things examined on 1 of 1 device")


def test_every_format_reports_the_same(place: tuple[Path, Path]) -> None:
    fabric, file = place
    reported = {
        form: run("check", "bgp", "--fabric", fabric, "--from", file, "--format", form).stdout
        for form in ("json", "junit", "markdown")
    }
    document = json.loads(reported["json"])
    bad = [result["id"] for result in document["results"] if result["verdict"] == "fail"]
    assert bad == ["bgp.sessions[leaf02]"]
    assert document["exit_code"] == 4
    suite = Xml.fromstring(reported["junit"])[0]  # noqa: S314 (our own output)
    assert [f"{case.get('classname')}[{case.get('name')}]" for case in suite if case.find("failure") is not None] == bad
    assert suite.get("tests") == str(len(document["results"]))
    assert reported["markdown"].startswith("## small: 1 fail of 1 cause")


def test_the_list_of_checks_as_text_and_json(place: tuple[Path, Path]) -> None:
    fabric, _ = place
    lines = run("check", "bgp", "--list", "--fabric", fabric).stdout.splitlines()
    reported = json.loads(run("check", "bgp", "--list", "--format", "json", "--fabric", fabric).stdout)
    assert [line.split() for line in lines] == [[one["name"], one["layer"], *one["title"].split()] for one in reported]
    first = next(one for one in reported if one["name"] == "bgp.sessions")
    assert sorted(first) == ["has_window", "layer", "name", "needs", "on", "text", "title"]
    assert (first["on"], first["needs"], first["has_window"]) == ("switch", ["sessions"], False)


def test_check_writes_the_same_report_as_netkit_report(place: tuple[Path, Path], tmp_path: Path) -> None:
    fabric, file = place
    left, made = tmp_path / "left.json", tmp_path / "made.json"
    done = run("check", "--report", left, "--fabric", fabric, "--from", file)
    assert (done.returncode, done.stderr) == (4, "")
    run("report", "--fabric", fabric, "--from", file, "--format", "json", "-o", made)
    assert left.read_text() == made.read_text()
    run("check", "--report", left.with_suffix(".html"), "--fabric", fabric, "--from", file)
    assert left.with_suffix(".html").read_text().startswith("<!DOCTYPE html>")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--format", "xml"], "error: unknown format 'xml'; use one of text, json, junit, markdown\n"),
        (["--profile", "huge"], "error: unknown profile 'huge'; use light or full\n"),
        (["--lab"], "error: facts come either from the lab or from a snapshot; drop one of the options\n"),
        (["--rdma"], "error: --rdma measures on hosts, so it cannot use a snapshot; drop one of the options\n"),
        (
            ["--report", "r.txt"],
            "error: --report r.txt has an unknown suffix; end the name with .html or .json\n",
        ),
        (["--list", "--format", "junit"], "error: --list cannot be printed as junit; use text or json\n"),
        (["nothing"], "error: no check 'nothing'; use one of "),
    ],
)
def test_usage_errors_are_reported_in_one_line(place: tuple[Path, Path], arguments: list[str], message: str) -> None:
    fabric, file = place
    done = run("check", *arguments, "--fabric", fabric, "--from", file)
    assert (done.returncode, done.stdout) == (3, "")
    assert done.stderr.startswith(message)


def test_a_snapshot_of_another_fabric_is_refused(place: tuple[Path, Path]) -> None:
    _, file = place
    done = run("check", "--fabric", ROOT / "inventory" / "reference", "--from", file)
    assert done.returncode == 3
    assert "belongs to the fabric small, not to reference" in done.stderr


def pytests(*arguments: str | Path, cwd: Path) -> Done:
    """Run pytest as a user does, in a fork of this one, which has imported netkit."""

    def instead_of_netkit() -> None:
        for name in [name for name in os.environ if name.startswith("PYTEST_")]:
            del os.environ[name]
        words = ["-p", "no:cacheprovider", "-q", *map(str, arguments)]
        netkit.cli.main = lambda: sys.exit(pytest.main(words))

    return run(cwd=cwd, before=instead_of_netkit, PYTHONPATH=str(ROOT))


def test_pytest_has_the_same_verdicts_under_stable_names(place: tuple[Path, Path], tmp_path: Path) -> None:
    fabric, file = place
    report = tmp_path / "junit.xml"
    options = ("--netkit-fabric", fabric, "--netkit-snapshot", file, f"--junit-xml={report}")
    done = pytests(ROOT / "checks" / "bgp.py", ROOT / "checks" / "load.py", *options, cwd=tmp_path)
    assert done.returncode == 1, done.stdout + done.stderr
    found = {}
    for case in Xml.parse(report).getroot().iter("testcase"):  # noqa: S314 (our own output)
        part = next((part.tag for part in case if part.tag in {"failure", "skipped", "error"}), "pass")
        found[case.get("classname"), case.get("name")] = part
    said = run("check", "bgp", "load", "--fabric", fabric, "--from", file, "--format", "junit").stdout
    wanted = {}
    for case in Xml.fromstring(said).iter("testcase"):  # noqa: S314 (our own output)
        part = next((part.tag for part in case if part.tag in {"failure", "skipped", "error"}), "pass")
        wanted[case.get("classname"), case.get("name")] = part
    assert found == wanted
    assert len(found) > 20
    assert "BGP to spine01 is Idle" in done.stdout
    assert "bgp.py::sessions[leaf02]" in done.stdout
    assert "Traceback" not in done.stdout


def test_pytest_selects_by_name_and_reports_a_broken_fabric_once(place: tuple[Path, Path], tmp_path: Path) -> None:
    fabric, file = place
    checks = ROOT / "checks"
    done = pytests(
        checks, "--netkit-fabric", fabric, "--netkit-snapshot", file, "-k", "bgp and sessions and leaf01", cwd=tmp_path
    )
    assert (done.returncode, done.stdout.splitlines()[0].split()[0]) == (0, ".")
    done = pytests(checks, "--netkit-fabric", tmp_path / "nowhere", cwd=tmp_path)
    assert done.returncode == 4
    assert (done.stdout + done.stderr).count("no fabric folder") == 1
    assert pytests(checks, cwd=tmp_path).returncode == 5


def test_a_new_check_comes_with_its_test_and_runs(place: tuple[Path, Path], tmp_path: Path) -> None:
    _, file = place
    fabric, _ = checked(tmp_path)
    assert run("check", "--new", "our-names", "--fabric", fabric).returncode == 0
    done = pytests(fabric / "checks", cwd=tmp_path)
    assert (done.returncode, done.stdout.splitlines()[0].split()[0]) == (0, ".."), done.stdout
    reported = run("check", "our-names", "--fabric", fabric, "--from", file, "--limit", "leaf02").stdout
    assert "leaf02: calls itself leaf01  [our-names.hostname]" in reported
    again = run("check", "--new", "our-names", "--fabric", fabric)
    assert (again.returncode, again.stderr) == (
        3,
        f"error: {fabric}/checks/our_names.py exists; choose another name\n",
    )
    bad = run("check", "--new", "../x", "--fabric", fabric)
    assert bad.stderr == "error: '../x' is not a valid name for a check; use lower-case letters, digits and dashes\n"


def test_an_invalid_deadline_is_refused(place: tuple[Path, Path]) -> None:
    fabric, file = place
    done = run("check", "links.up", "--fabric", fabric, "--from", file, "--deadline", "soon")
    assert_refused(done, "--deadline 'soon' is not a duration")


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("", "'' is not a valid name for a check"),
        ("bgp", "netkit has checks in bgp.py, and your file would replace them all"),
        ("test-links", "a file test_links.py is not read as a check"),
        ("conftest", "a file conftest.py is not read as a check"),
    ],
)
def test_a_new_check_shadows_none_and_is_found(name: str, message: str, tmp_path: Path) -> None:
    fabric, _ = checked(tmp_path)
    assert_refused(run("check", "--new", name, "--fabric", fabric), message)
    assert not (fabric / "checks").exists()


def test_a_new_check_is_created_inside_a_fabric(tmp_path: Path) -> None:
    assert_refused(run("check", "--new", "ours", "--fabric", tmp_path / "typo"), "no fabric folder")
    assert not (tmp_path / "typo").exists()
    fabric, _ = checked(tmp_path)
    assert run("check", "--new", "ours", "--fabric", fabric / "fabric.yaml").returncode == 0
    assert (fabric / "checks" / "ours.py").is_file()


def test_output_printed_by_a_check_is_not_in_the_result(place: tuple[Path, Path], tmp_path: Path) -> None:
    _, file = place
    fabric, _ = checked(tmp_path)
    run("check", "--new", "ours", "--fabric", fabric)
    ours = fabric / "checks" / "ours.py"
    text = ours.read_text(encoding="utf-8").replace("    system = ", '    print("judging")\n    system = ')
    ours.write_text(f'{text}\nprint("loading")\n', encoding="utf-8")
    done = run("check", "ours", "--fabric", fabric, "--from", file, "--limit", "leaf01", "--format", "json")
    assert (json.loads(done.stdout)["examined"], done.stderr) == (1, "loading\njudging\n")


BROKEN = '''"""Written another way than netkit's own."""
from netkit import judge


@judge.device_check(layer="host", on="switch")
def breaks(scene, seen):
    """It breaks off."""
    raise ValueError("broken")
'''


def test_under_pytest_a_check_that_raises_is_an_error_and_a_broken_file_is_named(
    place: tuple[Path, Path], tmp_path: Path
) -> None:
    _, file = place
    fabric, _ = checked(tmp_path)
    ours = fabric / "checks" / "ours.py"
    ours.parent.mkdir()
    ours.write_text(BROKEN, encoding="utf-8")
    how = (ours.parent, "--netkit-fabric", fabric, "--netkit-snapshot", file, "--netkit-limit", "leaf01")
    done = pytests(*how, f"--junit-xml={tmp_path / 'junit.xml'}", cwd=tmp_path)
    (case,) = Xml.parse(tmp_path / "junit.xml").getroot().iter("testcase")  # noqa: S314 (our own output)
    assert (done.returncode, case.get("name"), [part.tag for part in case]) == (1, "leaf01", ["error"])
    assert "the check failed: ValueError: broken, line 8" in done.stdout
    ours.write_text(f"{BROKEN}\ndef (\n", encoding="utf-8")
    done = pytests(*how, cwd=tmp_path)
    assert f"\n{ours}:10: cannot be loaded: SyntaxError" in done.stdout
    assert "catalog.py" not in done.stdout
