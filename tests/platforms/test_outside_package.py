"""A platform from an installed package, from its name in the intent to a checked lab."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.command import ROOT, Done, assert_refused, start
from tests.lab.running import lab_home, needs_lab, until

PACKAGES = ROOT / "tests" / "outside"
"""Where `pip install` would have put acme_nos and its entry points."""


def netkit(*arguments: str | Path, home: Path = Path("/nonexistent")) -> Done:
    return start(
        *arguments,
        timeout_s=300,
        PYTHONPATH=f"{ROOT}:{PACKAGES}",
        NETKIT_LAB_DIR=str(home),
        NETKIT_STATE_DIR=str(home / "state"),
    )


@pytest.fixture(name="fabric", scope="module")
def scaffolded(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("outside") / "f"
    size = ("--leaves", "2", "--spines", "1", "--hosts-per-unit", "1")
    done = netkit("init", folder, "--platform", "acme", *size)
    assert (done.returncode, done.stderr) == (0, "")
    return folder


def test_it_is_listed_and_described() -> None:
    assert "acme: Acme Linux, rendered and checked for 8.4.4" in netkit("platforms").stdout
    assert netkit("platforms", "acme").stdout.startswith("acme: Acme Linux")
    assert '"acme"' in netkit("schema").stdout


def test_without_the_package_its_name_is_refused(fabric: Path) -> None:
    done = start("validate", "--fabric", fabric)
    assert_refused(done, "'acme' is not known here; use nvue, sonic, eos or frr", lines=2)


def test_its_own_template_is_rendered(fabric: Path, tmp_path: Path) -> None:
    assert netkit("render", "--fabric", fabric, "--out", tmp_path / "out").returncode == 0
    text = (tmp_path / "out" / "spine01" / "frr.conf").read_text(encoding="utf-8")
    assert text.startswith("! Acme Linux 8.4.4\nfrr defaults traditional\nhostname spine01\n")


def test_a_package_that_cannot_be_imported_is_named(fabric: Path, tmp_path: Path) -> None:
    (tmp_path / "acme_nos-1.0.dist-info").mkdir()
    for name in ("METADATA", "entry_points.txt"):
        text = (PACKAGES / "acme_nos-1.0.dist-info" / name).read_text(encoding="utf-8")
        (tmp_path / "acme_nos-1.0.dist-info" / name).write_text(text, encoding="utf-8")
    (tmp_path / "acme_nos.py").write_text("import nothing_such\n", encoding="utf-8")
    done = start("validate", "--fabric", fabric, PYTHONPATH=f"{ROOT}:{tmp_path}")
    assert_refused(done, "platform acme: cannot import acme_nos: ModuleNotFoundError: No module named 'nothing_such'")


@pytest.fixture(name="lab", scope="module")
def booted(fabric: Path) -> Iterator[Path]:
    with lab_home() as home:
        done = netkit("lab", "up", "--fabric", fabric, "--lab", "acme", "--bare", home=home)
        assert done.returncode == 0, done.stderr
        yield home


@needs_lab
def test_it_is_planned_deployed_and_checked_in_a_lab(fabric: Path, lab: Path) -> None:
    on = ("--fabric", fabric, "--lab=acme")
    planned = netkit("plan", *on, "--detailed-exitcode", home=lab)
    assert (planned.returncode, planned.stderr) == (2, "")
    deployed = netkit("deploy", *on, "--yes", home=lab)
    assert deployed.returncode == 0, deployed.stdout + deployed.stderr
    reached = ("lab", "check", "--fabric", fabric, "--lab", "acme")
    until(lambda: netkit(*reached, home=lab).returncode == 0, "routes of a busy machine converge", 60)
    assert netkit("plan", *on, "--detailed-exitcode", home=lab).returncode == 0
    checked = netkit("check", "bgp", "links", "routes", "drift", *on, "--window", "1", home=lab)
    assert checked.returncode == 0, checked.stdout
