"""The examples of `inventory/`, as a whole in a lab: deployed to unconfigured devices, planned empty, checked."""

import json
import shutil
from pathlib import Path

import pytest

from tests.cli.site import Site
from tests.command import ROOT, start
from tests.lab.running import needs_lab, running, until

LONGEST_S = 1800
"""For a deploy on a busy machine."""


def verdict(site: Site) -> str:
    checked = site.netkit("check", "--window", "5", "--format", "json")
    return str(json.loads(checked.stdout)["verdict"])


@needs_lab
@pytest.mark.whole
@pytest.mark.parametrize("name", ["brownfield", "training-cluster", "training-800g"])
def test_unconfigured_devices_get_the_whole_example(name: str, tmp_path: Path) -> None:
    fabric = Path(shutil.copytree(ROOT / "inventory" / name, tmp_path / name))
    with running(fabric, "--bare") as lab:
        site = Site(lab, tmp_path)
        words = ("--fabric", fabric, "--lab", lab.name, "--yes", "--disruptive", "--busy", "--confirm-within", "1800")
        done = start("deploy", *words, timeout_s=LONGEST_S, **site.changes)
        assert done.returncode == 0, done.stdout + done.stderr
        planned = site.netkit("plan")
        assert planned.stdout.startswith(f"{name}: nothing to change on "), planned.stdout
        until(lambda: verdict(site) == "clean", "no check fails")
