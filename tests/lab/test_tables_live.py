"""A shipped fabric with names and numbers from tables, in a lab: what changes affects nothing else."""

import json
import shutil
from pathlib import Path

import pytest
import yaml

from netkit import Project
from tests.cli.site import Site
from tests.command import ROOT, run
from tests.deploy.rolling import addresses, lossless_calls
from tests.lab.running import needs_lab, running, until, write_fabric

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


SHOW = "show runningconfiguration all"
OLD, NEW = ('"green_min_threshold": "150000"', '"green_min_threshold": "200000"')
HAND_MADE = "vtysh -c 'configure terminal' -c 'ip prefix-list BY-HAND seq 7 permit 192.0.2.0/24' -c 'end'"


@needs_lab
@pytest.mark.whole
def test_the_fabric_is_adopted_and_only_a_threshold_changes_without_loss(tmp_path: Path) -> None:
    """Spines have a line of somebody else, which the intent cannot have."""
    brownfield = Path(shutil.copytree(ROOT / "inventory" / "brownfield", tmp_path / "brownfield"))
    with running(brownfield) as lab:
        fabric, site, own = Project.open(brownfield).fabric, Site(lab, tmp_path), tmp_path / "own"
        for spine in fabric.tier("spine"):
            lab.shell(spine.name, HAND_MADE)
        pairs = addresses(fabric)[::16]
        ping = f"ping -c 1 -W 1 -I rail0 {fabric.hosts[-1].nics[1].address} || true"
        until(lambda: "1 received" in lab.shell(fabric.hosts[0].name, ping), "a ping across rails")
        done = run("adopt", tmp_path / "saved", f"--lab={lab.name}", "--out", own, **site.changes)
        assert (done.returncode, done.stderr) == (0, ""), done.stderr
        unchanged = f"own: nothing to change on {len(fabric.names)} devices"
        assert site.real(own, "plan", f"--lab={lab.name}").stdout.splitlines()[0] == unchanged

        before = {one.name: lab.shell(one.name, SHOW).splitlines() for one in fabric.switches}
        values = yaml.safe_load((own / "fabric.yaml").read_text(encoding="utf-8"))
        write_fabric(own, {**values, "lossless": {"ecn": {400: {"min_bytes": 200_000, "max_bytes": 1_500_000}}}})
        with lossless_calls(lab, pairs):
            deployed = site.real(own, "deploy", f"--lab={lab.name}", "--yes", "--watch", "1", "--disruptive", "--busy")
        assert deployed.returncode == 0, deployed.stdout + deployed.stderr
        assert site.real(own, "plan", f"--lab={lab.name}").stdout.splitlines()[0] == unchanged
        for name, lines in before.items():
            wanted = [line.replace(OLD, NEW) for line in lines]
            assert lab.shell(name, SHOW).splitlines() == wanted != lines
