"""A shipped fabric with names and numbers from tables, in a lab: a changed cell affects one device."""

import json
import shutil
from pathlib import Path

from tests.command import ROOT
from tests.lab.running import needs_lab, running

UNCHANGED = "brownfield: nothing to change on 14 devices\n\nNot netkit's: 160 entries on 10 devices\n"


@needs_lab
def test_a_fabric_runs_with_its_own_names_and_a_cell_changes_one_device(tmp_path: Path) -> None:
    fabric = Path(shutil.copytree(ROOT / "inventory" / "brownfield", tmp_path / "brownfield"))
    with running(fabric) as lab:
        of_lab = ("--fabric", fabric, "--lab", lab.name)
        checked = lab.netkit("check", *of_lab, "--window", "2")
        assert (checked.returncode, checked.stdout.partition(":")[2].partition(":")[0]) == (0, " clean"), checked.stdout
        assert lab.netkit("plan", *of_lab).stdout == UNCHANGED
        table = fabric / "devices.csv"
        table.write_text(
            table.read_text(encoding="utf-8").replace("172.31.255.11,", "172.31.255.99,"), encoding="utf-8"
        )
        plan = json.loads(lab.netkit("plan", *of_lab, "--format", "json").stdout)
        assert [device["name"] for device in plan["devices"] if device["changes"]] == ["a07-tor-1"], plan
        deployed = lab.netkit("deploy", *of_lab, "--yes", "--disruptive", "--busy")
        assert deployed.returncode == 0, deployed.stdout + deployed.stderr
        assert "172.31.255.99/32" in lab.run("b01-agg-1", "vtysh", "-c", "show ip route bgp")
        assert lab.netkit("plan", *of_lab).stdout == UNCHANGED
