"""netkit truth import from a stand-in for NetBox: an exported fabric is designed again."""

import shutil
from pathlib import Path

import pytest
import yaml
from hypothesis import given, settings

from netkit import design
from netkit.design import Fabric
from netkit.hardware import Catalog
from netkit.intent import Intent
from netkit.project.project import Project
from netkit.truth import reading, source
from netkit.truth.imports import TruthImport, redesigned
from netkit.truth.wanted import wanted
from tests import intents as small
from tests.command import ROOT, Done, run
from tests.lanes import examples
from tests.random_intents import Values, intents
from tests.truth.stand_in import TOKEN, NetBox, served
from tests.truth.test_export import api_of, point_to

CATALOG = Catalog()


def pools(fabric: Fabric) -> list[str]:
    return [one for one in (fabric.host_pool, fabric.host_pool_v6) if one]


def read_into(folder: Path, out: Path) -> Done:
    return run("truth", "import", out, "--fabric", folder, TRUTH_TOKEN=TOKEN)


@settings(max_examples=examples(10), deadline=None)
@given(intents())
def test_an_export_is_imported_unchanged(values: Values) -> None:
    intent = Intent.model_validate(values)
    fabric = design.build(intent, CATALOG)
    with served(NetBox()) as one:
        source.exported(api_of(one), fabric, writes=True)
        found = TruthImport(fabric, reading.read_inventory(api_of(one), *pools(fabric)))
        again = redesigned(intent, found.tables(), CATALOG, Path())
    assert found.left_out == {}
    assert wanted(again, "x") == wanted(fabric, "x")


@pytest.mark.parametrize("name", ["brownfield", "internet-edge", "reference", "mixed"])
def test_a_shipped_fabric_survives_a_round_trip(tmp_path: Path, name: str) -> None:
    """An intent without tables takes names, racks, ports, addresses and AS numbers from what another one exported."""
    exported, fresh = tmp_path / "exported", tmp_path / "fresh"
    for folder in (exported, fresh):
        shutil.copytree(ROOT / "inventory" / name, folder)
    fabric = Project.open(exported).fabric
    for file in fresh.glob("*.csv"):
        file.unlink()
    values = yaml.safe_load((fresh / "fabric.yaml").read_text(encoding="utf-8"))
    values.pop("tables", None)
    if name != "internet-edge":  # its peers name the spines
        values["names"] = {"leaf": "new-leaf{number}", "spine": "new-spine{slot}", "host": "new-u{unit}-{slot}"}
    (fresh / "fabric.yaml").write_text(yaml.safe_dump(values), encoding="utf-8")
    with served(NetBox()) as one:
        for folder in (exported, fresh):
            point_to(one, folder)
        source.exported(api_of(one), fabric, writes=True)
        done = read_into(fresh, fresh)
        assert (done.returncode, done.stderr) == (0, ""), done.stdout
        hint = done.stdout.splitlines()[-1]
        assert hint.startswith("to use them, add to fabric.yaml: tables: {devices: devices.csv,")
        with (fresh / "fabric.yaml").open("a", encoding="utf-8") as intent:
            intent.write(hint.partition("yaml: ")[2] + "\n")
        again = Project.open(fresh).fabric
        assert wanted(again, "x") == wanted(fabric, "x")
        empty = run("truth", "export", "--fabric", fresh, "--format", "json", TRUTH_TOKEN=TOKEN)
        assert (empty.returncode, empty.stdout, empty.stderr) == (0, "[]\n", "")


def test_networks_beside_the_rails_do_not_disturb_an_import() -> None:
    project = Project.open(ROOT / "inventory/training-cluster")
    fabric = project.fabric
    with served(NetBox()) as one:
        source.exported(api_of(one), fabric, writes=True)
        found = TruthImport(fabric, reading.read_inventory(api_of(one), *pools(fabric)))
        again = redesigned(project.intent, found.tables(), CATALOG, Path())
        for device in one.devices:  # an intent without this network does not know its switches
            device["name"] = device["name"].replace("storage", "nas-tor-")
        without = TruthImport(fabric.without_networks, reading.read_inventory(api_of(one), *pools(fabric)))
        rows = without.tables()
    assert found.left_out == {}
    assert wanted(again, "x") == wanted(fabric, "x")
    assert without.left_out == {f"nas-tor-0{number}": "no leaf below it was read" for number in (1, 2)}
    assert rows == found.tables()


def test_objects_on_one_side_only_are_listed(tmp_path: Path) -> None:
    folder = tmp_path / "fabric"
    shutil.copytree(ROOT / "inventory/brownfield", folder)
    file = folder / "fabric.yaml"
    text = file.read_text(encoding="utf-8")
    with served(NetBox()) as one:
        point_to(one, folder)
        source.exported(api_of(one), Project.open(folder).fabric, writes=True)
        file.write_text(text.replace("hosts: 4}", "hosts: 5}"), encoding="utf-8")
        more = read_into(folder, tmp_path / "more")
        file.write_text(text.replace("hosts: 4}", "hosts: 3}").partition("\ntables:")[0] + "\n", encoding="utf-8")
        fewer = read_into(folder, tmp_path / "fewer")
    assert (more.returncode, more.stderr) == (1, "")
    assert "not in the source, designed by rule: gpu-u01-05\n" in more.stdout
    assert (fewer.returncode, fewer.stderr) == (0, "")
    left = "left out: ai-node-022: the intent has no place for it: increase the number of its hosts\n"
    assert left in fewer.stdout


def test_a_contradiction_is_reported_by_file_and_line(tmp_path: Path) -> None:
    folder = tmp_path / "fabric"
    shutil.copytree(ROOT / "inventory/brownfield", folder)
    with served(NetBox()) as one:
        point_to(one, folder)
        source.exported(api_of(one), Project.open(folder).fabric, writes=True)
        twin = next(device for device in one.devices if device["name"] == "a07-tor-2")
        twin["serial"] = "MT2341X10420"
        done = read_into(folder, tmp_path / "out")
    assert done.returncode == 3
    assert done.stderr.startswith(f"error: {tmp_path}/out/devices.csv:3: serial: a07-tor-1 has this serial number")


def test_addresses_of_links_are_imported() -> None:
    row = {"device": "spine02", "peer": "leaf01", "address": "198.18.7.9/30", "peer_address": "198.18.7.10"}
    plain = small.on_platform("frr", "8.4.4", {"pools": {"links": "10.9.0.0/22"}})
    fabric = small.fabric({**plain, "tables": {"cables": [row]}})
    with served(NetBox()) as one:
        source.exported(api_of(one), fabric, writes=True)
        intent = Intent.model_validate(plain)
        found = TruthImport(small.fabric(plain), reading.read_inventory(api_of(one), *pools(fabric)))
        again = redesigned(intent, found.tables(), CATALOG, Path())
    (port,) = (port for port in again.switch("spine02").ports if port.peer == "leaf01")
    assert (port.address, port.peer_address) == ("198.18.7.9/30", "198.18.7.10")
    assert wanted(again, "x") == wanted(fabric, "x")
