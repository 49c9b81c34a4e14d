"""`netkit init` writes a valid fabric, or nothing at all."""

from pathlib import Path

import pytest

from netkit.project.project import Project
from tests.command import assert_refused, run

SIZES: dict[str, tuple[tuple[str, ...], int, int]] = {
    "as it comes": ((), 12, 8),
    "smallest": (("--leaves", "1", "--spines", "1", "--hosts-per-unit", "1"), 2, 1),
    "rail only": (("--spines", "0", "--hosts-per-unit", "100"), 8, 100),
    "as in the README": (("--spines", "8", "--units", "2"), 24, 16),
    "odd numbers": (("--leaves", "7", "--spines", "5", "--hosts-per-unit", "37", "--units", "3"), 26, 111),
    "the largest two tiers": (("--spines", "32", "--units", "16", "--hosts-per-unit", "32"), 160, 512),
    "all host ports": (("--hosts-per-unit", "64", "--spines", "3"), 11, 64),
    "sonic": (("--platform", "sonic"), 12, 8),
    "eos": (("--platform", "eos", "--units", "4"), 36, 32),
    "frr": (("--platform", "frr"), 12, 8),
    "sonic on a box of whole cages": (("--platform", "sonic", "--model", "M2-W6940-128QC", "--units", "2"), 20, 16),
    "a smaller model": (("--model", "SN4700", "--hosts-per-unit", "12"), 12, 12),
}


@pytest.mark.parametrize("name", SIZES)
def test_a_scaffold_of_any_size_is_valid(name: str, tmp_path: Path) -> None:
    options, switches, hosts = SIZES[name]
    folder = tmp_path / "new fabric"
    done = run("init", folder, *options)
    assert (done.returncode, done.stderr) == (0, "")
    assert f"{switches} switches, {hosts} hosts" in done.stdout
    fabric = Project.open(folder).fabric
    assert (len(fabric.switches), len(fabric.hosts), fabric.name) == (switches, hosts, "new-fabric")
    assert [note for note in fabric.notes if note.severity == "warning"] == []
    assert run("validate", "--fabric", folder).returncode == 0


@pytest.mark.parametrize("platform", ["nvue", "sonic", "eos", "frr"])
def test_a_scaffold_renders(platform: str, tmp_path: Path) -> None:
    assert run("init", tmp_path / "fabric", "--platform", platform, "--hosts-per-unit", "2").returncode == 0
    done = run("render", "--fabric", tmp_path / "fabric", "-o", tmp_path / "out")
    assert (done.returncode, done.stderr) == (0, "")
    assert len(list((tmp_path / "out").iterdir())) == 15


@pytest.mark.parametrize("cluster", ["kubernetes", "slurm"])
def test_a_scaffold_has_the_requested_cluster(cluster: str, tmp_path: Path) -> None:
    options = ("--platform", "sonic", "--units", "4", "--hosts-per-unit", "32", "--cluster", cluster)
    assert run("init", tmp_path / "fabric", *options).returncode == 0
    fabric = Project.open(tmp_path / "fabric").fabric
    assert [(one.kind, len(one.nodes)) for one in fabric.clusters] == [(cluster, 128)]
    assert run("render", "--fabric", tmp_path / "fabric", "-o", tmp_path / "out").returncode == 0
    assert list((tmp_path / "out" / cluster).iterdir())
    assert_refused(
        run("init", tmp_path / "x", "--cluster", "nomad"), "unknown cluster 'nomad'; use kubernetes or slurm"
    )


def test_an_existing_fabric_is_never_overwritten(tmp_path: Path) -> None:
    (tmp_path / "fabric.yaml").write_text("mine", encoding="utf-8")
    assert_refused(run("init", tmp_path), "exists already", "nothing was changed")
    assert (tmp_path / "fabric.yaml").read_text(encoding="utf-8") == "mine"


def test_a_file_or_an_unwritable_folder_in_the_way_is_reported(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("mine", encoding="utf-8")
    assert_refused(run("init", tmp_path / "file"), "exists already")
    assert_refused(run("init", tmp_path / "file" / "fabric"), "not a directory")
    assert_refused(run("init", "/proc/fabric"), "cannot write")


def test_a_size_that_does_not_fit_writes_nothing(tmp_path: Path) -> None:
    done = run("init", tmp_path / "fabric", "--hosts-per-unit", "65")
    assert_refused(done, "cannot build this fabric", "SN5600 split as 2x400G", "--hosts-per-unit", lines=None)
    assert_refused(run("init", tmp_path / "fabric", "--units", "4096"), "--units", lines=None)
    assert list(tmp_path.iterdir()) == []


def test_an_unusual_folder_name_still_gives_a_name(tmp_path: Path) -> None:
    for folder, name in (("@!", "fabric"), ("x" * 80, "x" * 63), ("-a_b-", "a-b"), ("a" * 62 + "--b", "a" * 62)):
        assert run("init", tmp_path / folder, "--hosts-per-unit", "1").returncode == 0
        assert Project.open(tmp_path / folder).fabric.name == name
