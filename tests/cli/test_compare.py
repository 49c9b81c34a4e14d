"""`netkit check --compare`: two snapshots or two stored runs of one fabric, and what is refused."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from netkit import design
from netkit.facts import Observation, Snapshot, serial
from netkit.facts.device import Interface, System
from netkit.hardware import Catalog
from netkit.intent import Intent
from tests.cli.checked import VALUES, checked, facts, samples, snapshot
from tests.command import assert_refused, run
from tests.conftest import Golden

BUILT = design.build(Intent.model_validate(VALUES), Catalog())
BEFORE = snapshot(BUILT)


def written(folder: Path, name: str, found: Snapshot) -> Path:
    file = folder / name
    file.write_bytes(serial.dump(found))
    return file


def with_device(found: Snapshot, one: Observation, seconds: float = 600.0) -> Snapshot:
    """A later snapshot in which one device is replaced."""
    return replace(found, taken_s=found.taken_s + seconds, devices={**found.devices, one.device: one})


def compared(folder: Path, later: Snapshot, *more: str) -> tuple[int, str]:
    """The exit code and output of comparing the snapshot of a small fabric with a later one."""
    fabric, before = checked(folder)
    written(folder, "after.json", later)
    done = run("check", *more, "--compare", before.name, "after.json", "--fabric", fabric, cwd=folder)
    assert done.stderr == ""
    return done.returncode, done.stdout


def mended() -> Snapshot:
    """A later snapshot: the session of leaf02 is up again, leaf01 lost both and runs another release."""
    well = facts(BUILT, "leaf01")
    assert isinstance(well.sessions, dict)
    lost = {port: replace(one, is_established=False, state="Active") for port, one in well.sessions.items()}
    other = replace(well, sessions=lost, system=System("leaf01", "5.13.1"))
    later = with_device(BEFORE, Observation("leaf02", "nvue", well))
    return with_device(later, Observation("leaf01", "nvue", other, samples()), 0.0)


@pytest.mark.parametrize(("output", "file"), [("text", "compare.txt"), ("markdown", "compare.md")])
def test_new_and_resolved_findings(output: str, file: str, tmp_path: Path, golden: Golden) -> None:
    code, said = compared(tmp_path, mended(), "--format", output)
    assert code == 1
    golden(f"cli/{file}", said)


def test_json_reports_the_same(tmp_path: Path) -> None:
    code, said = compared(tmp_path, mended(), "--format", "json")
    document = json.loads(said)
    assert (code, document["exit_code"], document["is_worse"]) == (1, 1, True)
    fates = [(one["fate"], one["head"]["check"], one["head"]["device"]) for one in document["causes"]]
    assert fates == [
        ("came", "bgp.sessions", "leaf01"),
        ("came", "bgp.sessions", "leaf01"),
        ("came", "inventory.version", "leaf01"),
        ("went", "bgp.sessions", "leaf02"),
    ]
    everything = [*document["differences"], *(one for cause in document["causes"] for one in cause["differences"])]
    reported = sorted((one["device"], one["what"], one["was"], one["now"], one["is_worse"]) for one in everything)
    ports = [port.name for port in BUILT.switch("leaf01").fabric_ports]
    assert reported == sorted(
        [
            *(("leaf01", "BGP session", "established", "Active", True) for _ in ports),
            ("leaf02", "BGP session", "Idle", "established", False),
            ("leaf01", "version", "5.13.0", "5.13.1", None),
        ]
    )


def test_a_snapshot_does_not_differ_from_itself(tmp_path: Path) -> None:
    code, said = compared(tmp_path, BEFORE)
    assert (code, said.splitlines()[0]) == (0, "small: no difference, 6 devices compared")


def test_improvements_alone_exit_with_0(tmp_path: Path) -> None:
    code, said = compared(tmp_path, with_device(BEFORE, Observation("leaf02", "nvue", facts(BUILT, "leaf01"))))
    assert code == 0
    assert said.splitlines()[0] == "small: nothing worse, 6 devices compared: 1 cause gone"


def test_a_finding_that_could_not_be_judged_again_is_not_resolved(tmp_path: Path) -> None:
    later = with_device(BEFORE, Observation("leaf02", "nvue", failure="connection refused"))
    code, said = compared(tmp_path, later)
    assert code == 1
    assert "1 cause no longer known" in said.splitlines()[0]
    assert "  worse   reached: reached → connection refused, leaf02\n" in said


def test_a_worse_fact_without_a_check_is_reported_as_worse(tmp_path: Path) -> None:
    seen = BEFORE.devices["leaf01"]
    before = with_device(
        BEFORE, replace(seen, facts=replace(seen.facts, interfaces={"eth0": Interface(is_up=True)})), 0
    )
    after = with_device(BEFORE, replace(seen, facts=replace(seen.facts, interfaces={"eth0": Interface(is_up=False)})))
    fabric, _ = checked(tmp_path)
    files = written(tmp_path, "a.json", before), written(tmp_path, "b.json", after)
    done = run("check", "bgp", "--compare", *files, "--fabric", fabric)
    assert (done.returncode, "link" in done.stdout) == (0, False)
    done = run("check", "--compare", *files, "--fabric", fabric)
    assert done.returncode == 1
    assert "  worse   link: up → down, leaf01:eth0\n" in done.stdout


def test_limit_excludes_other_devices(tmp_path: Path) -> None:
    code, said = compared(tmp_path, mended(), "--limit", "leaf02")
    assert (code, said.splitlines()[0]) == (0, "small: nothing worse, 1 device compared: 1 cause gone")


def test_stored_runs_are_compared_by_cause(tmp_path: Path) -> None:
    fabric, before = checked(tmp_path)
    after = written(tmp_path, "after.json", mended())
    store = f"--store={tmp_path / 'store.db'}"
    for file in (before, after):
        run("check", "--from", file, "--fabric", fabric, store)
    listed = run("history", "--checks", "--fabric", fabric, store, "--format", "json")
    names = [one["run"] for one in json.loads(listed.stdout)]
    done = run("check", "--compare", names[1], "last", "--fabric", fabric, store)
    assert (done.returncode, done.stderr) == (1, "")
    assert done.stdout.splitlines()[0] == "small: worse, 6 devices compared: 3 causes new; 1 cause gone"
    assert "a stored run contains findings but no facts: only causes are compared" in done.stdout
    mixed = run("check", "--compare", before, "last", "--fabric", fabric, store)
    assert mixed.stdout.splitlines()[0] == done.stdout.splitlines()[0]
    assert_refused(run("check", "--compare", "last", "2031", "--fabric", fabric, store), "no stored run '2031'")


def test_what_cannot_be_compared_is_refused_with_the_reason(tmp_path: Path) -> None:
    fabric, before = checked(tmp_path)
    other = written(tmp_path, "other.json", replace(BEFORE, fabric="large"))
    assert_refused(
        run("check", "--compare", before, other, "--fabric", fabric), "belongs to the fabric large, not to small"
    )
    old = tmp_path / "old.json"
    old.write_text('{"netkit_snapshot": 0}', encoding="utf-8")
    assert_refused(
        run("check", "--compare", old, before, "--fabric", fabric), "was written in format 0; this netkit reads"
    )
    gone = tmp_path / "gone.json"
    assert_refused(run("check", "--compare", before, gone, "--fabric", fabric), "cannot be read: No such file")
    halves = [
        written(tmp_path, f"{name}.json", replace(BEFORE, devices={name: BEFORE.devices[name]}))
        for name in ("leaf01", "leaf02")
    ]
    assert_refused(run("check", "--compare", *halves, "--fabric", fabric), "have no device in common")
    for more in (("--window", "3"), ("--from", before), ("--changes",), ("--list",)):
        done = run("check", "--compare", before, before, *more, "--fabric", fabric)
        assert_refused(done, "--compare reads two snapshots or stored runs")
    done = run("check", "--compare", before, before, "--format", "junit", "--fabric", fabric)
    assert_refused(done, "unknown format 'junit' of a comparison")
