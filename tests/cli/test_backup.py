"""`netkit backup` of lab devices: one file each, which changes only when the device does and never holds a secret."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cli.site import Site
from tests.lab.running import RunningLab, intent, needs_lab, running, write_fabric

pytestmark = needs_lab
UNCHANGED = "small: nothing to change on 6 devices\n\nNot netkit's: 20 entries on 4 devices\n"
DEVICES = ("leaf01", "leaf02", "spine01", "spine02", "gpu01", "gpu02")


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningLab]:
    fabric = write_fabric(tmp_path_factory.mktemp("backup"), intent())
    with running(fabric) as found:
        yield found


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
        lab.lab("mend", "--all")
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
