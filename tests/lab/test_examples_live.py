"""The examples of `inventory/`, as a whole in a lab: deployed to unconfigured devices, planned empty, checked."""

import shutil
from functools import partial
from pathlib import Path

import pytest

from tests.cli.site import Site
from tests.command import ROOT, start
from tests.lab.running import needs_lab, running, until_clean

LONGEST_S = 1800
"""For a deploy on a busy machine."""


def deployed(site: Site) -> None:
    """Deploy the intent; the second time there is nothing to do, and no check fails."""
    fabric, lab = site.lab.fabric, site.lab.name
    words = ("--fabric", fabric, "--lab", lab, "--yes", "--disruptive", "--busy", "--confirm-within", "1800")
    done = start("deploy", *words, timeout_s=LONGEST_S, **site.changes)
    assert done.returncode == 0, done.stdout + done.stderr
    planned = site.netkit("plan")
    assert planned.stdout.startswith(f"{fabric.name}: nothing to change on "), planned.stdout
    until_clean(partial(site.netkit, "check"))


@needs_lab
@pytest.mark.whole
@pytest.mark.parametrize("name", ["brownfield", "training-cluster", "training-800g", "hgx-256"])
def test_unconfigured_devices_get_the_whole_example(name: str, tmp_path: Path) -> None:
    fabric = Path(shutil.copytree(ROOT / "inventory" / name, tmp_path / name))
    with running(fabric, "--bare") as lab:
        deployed(Site(lab, tmp_path))


@needs_lab
@pytest.mark.whole
def test_a_cluster_grows_by_a_unit_of_800g(tmp_path: Path) -> None:
    """The devices of the new unit are unconfigured until the intent has them; those that run keep names and numbers."""
    fabric = Path(shutil.copytree(ROOT / "inventory/training-cluster", tmp_path / "training-cluster"))
    intent = fabric / "fabric.yaml"
    shipped = intent.read_text(encoding="utf-8")
    unit, model = "  - {unit: 1, hosts: 10}\n", "  model: dgx-h100\n"
    assert unit in shipped
    assert model in shipped
    faster = "{unit: 2, hosts: 2, host_model: hgx-b300-generic, host_breakout: 1x800G, host_media: 800G-DR8}"
    pci = ", ".join(f'"0000:{bus}:00.0"' for bus in ("05", "1d", "35", "4d", "85", "9d", "b5", "cd"))
    grown = shipped.replace(unit, f"{unit}  - {faster}\n")
    grown = grown.replace(model, f"{model}  pci_by_model: {{hgx-b300-generic: [{pci}]}}\n")
    intent.write_text(grown, encoding="utf-8")
    with running(fabric, "--bare") as lab:
        site = Site(lab, tmp_path)
        for text in (shipped, grown):
            intent.write_text(text, encoding="utf-8")
            deployed(site)
