"""`netkit adopt` on the examples: the plan of the new intent is empty, and what it does not cover is listed."""

import csv
import json
import re
import shutil
from pathlib import Path

import pytest
import yaml

from tests.command import ROOT, assert_refused, run
from tests.lanes import daily

INVENTORY = ROOT / "inventory"
DAILY = ("brownfield", "internet-edge", "mixed", "reference", "training-cluster")


def rendered(fabric: Path, folder: Path) -> Path:
    assert run("render", "--fabric", fabric, "--out", folder).returncode == 0
    return folder


@pytest.mark.parametrize("name", daily([*DAILY, "hgx-256", "training-800g"], *DAILY))
def test_an_example_is_adopted(name: str, tmp_path: Path) -> None:
    saved, own = rendered(INVENTORY / name, tmp_path / "saved"), tmp_path / "own"
    done = run("adopt", saved, "--out", own, "--format", "json")
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert (found["leave"], found["remaining_changes"], found["not_adopted"]) == ([], {}, {})
    assert found["unknown_ends"] == found["guessed_cables"] == []
    planned = run("plan", "--fabric", own, "--running", saved)
    assert planned.stdout.startswith(f"own: nothing to change on {len(found['devices'])} devices\n"), planned.stdout
    assert_refused(run("adopt", saved, "--out", own), "exists already", "nothing was changed")


def test_existing_tables_are_not_overwritten(tmp_path: Path) -> None:
    saved, own = rendered(INVENTORY / "brownfield", tmp_path / "saved"), tmp_path / "own"
    own.mkdir()
    (own / "nics.csv").write_text("mine\n", encoding="utf-8")
    assert_refused(run("adopt", saved, "--out", own), "nics.csv", "exists already", "nothing was changed")
    assert [(file.name, file.read_text(encoding="utf-8")) for file in own.iterdir()] == [("nics.csv", "mine\n")]


def test_differences_that_leave_cannot_express_are_listed(tmp_path: Path) -> None:
    saved, own = rendered(INVENTORY / "reference", tmp_path / "saved"), tmp_path / "own"
    file = saved / "spine01" / "startup.yaml"
    foreign = "      date-time:\n        'zone / of ours ': x\n"
    text = file.read_text(encoding="utf-8")
    assert "      date-time:\n" in text
    file.write_text(text.replace("      date-time:\n", foreign), encoding="utf-8")
    done = run("adopt", saved, "--out", own)
    assert done.returncode == 0, done.stderr
    assert "differs, but `leave` cannot express it:\n  spine01: 1 change\n" in done.stdout
    assert "a plan against these configurations is empty" not in done.stdout


def test_a_list_of_cables_replaces_missing_descriptions(tmp_path: Path) -> None:
    saved, own = rendered(INVENTORY / "mixed", tmp_path / "saved"), tmp_path / "own"
    for file in saved.glob("*/config_db.json"):
        tables = json.loads(file.read_text(encoding="utf-8"))
        for port in tables["PORT"].values():
            port.pop("description", None)
        file.write_text(json.dumps(tables), encoding="utf-8")
    for file in (*saved.glob("*/frr.conf"), *saved.glob("*/eos.cfg")):
        text = file.read_text(encoding="utf-8")
        file.write_text(re.sub(r"(?m)^ +(neighbor \S+ )?description .*\n", "", text), encoding="utf-8")
    cabling = run("design", "--fabric", INVENTORY / "mixed", "--tables", tmp_path / "tables")
    assert cabling.returncode == 0
    refused = run("adopt", saved, "--out", own)
    assert_refused(refused, "the other end of", "list the cables with --cables", lines=2)
    cables = tmp_path / "tables" / "cables.csv"
    listed = next(csv.DictReader(cables.read_text(encoding="utf-8").splitlines()))
    near, far = (listed["device"], listed["port"]), (listed["peer"], listed["peer_port"])
    heard = "device,port,peer,peer_port\n" + ",".join((*far, *near)) + "\n" + ",".join((*near, "other", "swp1")) + "\n"
    (saved / "neighbors.csv").write_text(heard, encoding="utf-8")
    done = run("adopt", saved, "--out", tmp_path / "cabled", "--cables", cables, "--format", "json")
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert (found["unknown_ends"], found["not_adopted"], found["remaining_changes"]) == ([], {}, {})
    assert found["other_cables_by_lldp"] == [[*near, *far, "other", "swp1"]]
    assert found["unknown_devices"] == []
    with cables.open("a", encoding="utf-8") as more:
        writer = csv.DictWriter(more, listed)
        writer.writerow({"device": near[0], "port": "swp99", "peer": "laef02", "peer_port": "swp1"})
    done = run("adopt", saved, "--out", tmp_path / "again", "--cables", cables)
    assert done.returncode == 0, done.stderr
    assert "in the list of cables, but no device of that name was read:\n  laef02\n" in done.stdout
    written = yaml.safe_load((tmp_path / "cabled" / "fabric.yaml").read_text(encoding="utf-8"))
    assert (written.get("topology", "two-tier"), written["rails"]) == ("two-tier", 4)


def test_one_unit_of_a_fabric_is_adopted(tmp_path: Path) -> None:
    saved = rendered(INVENTORY / "mixed", tmp_path / "saved")
    devices = {folder.name for folder in saved.iterdir() if folder.is_dir()}
    first = sorted(name for name in devices if "u02" not in name)
    assert len(first) < len(devices)
    done = run("adopt", saved, "--out", tmp_path / "own", "--limit", ",".join(first), "--format", "json")
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert set(first) <= found["devices"].keys()
    assert found["remaining_changes"] == {}


def test_devices_that_were_not_read_are_listed(tmp_path: Path) -> None:
    """Descriptions of others name a leaf whose file is damaged, and hosts that are outside the limit."""
    saved = rendered(INVENTORY / "internet-edge", tmp_path / "saved")
    (saved / "leaf01" / "startup.yaml").write_text("- set: {{{", encoding="utf-8")
    words = ("adopt", saved, "--out", tmp_path / "own", "--limit", "leaf*,spine*,gpu01", "--format", "json")
    done = run(*words)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    hosts = {name for name, role in found["devices"].items() if role == "host"}
    assert found["not_read"].keys() == {"leaf01", *hosts} - {"gpu01"}
    assert found["not_read"]["leaf01"].startswith("startup.yaml:2: cannot be read: ")
    assert found["not_read"]["gpu02"] == "no file of it was read"
    assert found["not_adopted"] == {}


def test_no_empty_plan_is_promised_with_damaged_files(tmp_path: Path) -> None:
    saved, own = rendered(INVENTORY / "reference", tmp_path / "saved"), tmp_path / "own"
    (saved / "gpu01" / "netplan.yaml").write_text("network:\n  ethernets: [\n", encoding="utf-8")
    done = run("adopt", saved, "--out", own)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[-2] == "no plan against these configurations until these can be read: gpu01"
    reason = "gpu01: netplan.yaml:3: cannot be read: "
    assert_refused(run("plan", "--fabric", own, "--running", saved), reason)
    for leaf in saved.glob("leaf*"):
        shutil.rmtree(leaf)
    assert_refused(run("adopt", saved, "--out", tmp_path / "no"), f"gpu01 cannot be read: {reason[7:]}", lines=2)


def test_a_device_with_a_file_that_is_not_text_is_listed(tmp_path: Path) -> None:
    saved = rendered(INVENTORY / "reference", tmp_path / "saved")
    file = saved / "leaf01" / "startup.yaml"
    file.write_bytes(b"- set: {}\n# Z\xfcrich\n")
    done = run("adopt", saved, "--out", tmp_path / "own", "--format", "json")
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert found["not_read"] == {"leaf01": f"{file}:2: is not UTF-8; save it again as UTF-8"}
    assert found["not_adopted"] == {}


def test_what_cannot_be_adopted_is_refused(tmp_path: Path) -> None:
    nothing, text = tmp_path / "nothing", tmp_path / "text"
    nothing.mkdir()
    (text / "leaf01").mkdir(parents=True)
    (text / "leaf01" / "notes.txt").write_text("a switch\n", encoding="utf-8")
    out = tmp_path / "own"
    assert_refused(run("adopt", nothing, "--out", out), "has no files of devices", "DIR/<device>/<file>")
    assert_refused(run("adopt", tmp_path / "missing", "--out", out), "is not a folder")
    assert_refused(run("adopt", text, "--out", out), "no switch has a port towards a host", "add the files of leaves")
    saved = rendered(INVENTORY / "reference", tmp_path / "saved")
    assert_refused(run("adopt", saved, "--out", out, "--limit", "leaf9*"), "matches no device in", "names and globs")
    backup = saved / "spine01.conf"
    backup.write_text("==> frr.conf <==\n", encoding="utf-8")
    assert_refused(run("adopt", saved, "--out", out), "spine01 is there twice", "delete the older one")
    backup.unlink()
    cables = tmp_path / "cables.csv"
    cables.write_text("device,port,peer\nleaf01,swp1,spine01\n", encoding="utf-8")
    assert_refused(run("adopt", saved, "--out", out, "--cables", cables), "has no port at one end", "peer_port")
    assert not out.exists()
