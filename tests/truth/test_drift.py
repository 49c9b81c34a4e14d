"""netkit truth drift: a stand-in for NetBox, the intent, and a snapshot of the running fabric."""

import json
import shutil
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest

from netkit.design import Fabric
from netkit.facts import Snapshot, serial
from netkit.facts.device import Facts, Interface, Neighbor, System
from netkit.facts.snapshot import Observation
from netkit.project.project import Project
from netkit.truth import reading, source
from netkit.truth.difference import of_fabric, of_snapshot
from tests import intents
from tests.command import ROOT, Done, run
from tests.truth.stand_in import TOKEN, NetBox, served
from tests.truth.test_export import api_of, point_to

MACS = "02:00:00:00:{:02x}:{:02x}"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    shutil.copytree(ROOT / "inventory/brownfield", tmp_path / "fabric")
    return tmp_path / "fabric"


def snapshot_of(fabric: Fabric, domain: str = "") -> Snapshot:
    """A snapshot of a fabric that runs as intended; NICs announce their MAC addresses."""
    ends = of_fabric(fabric)
    macs = {
        (host.name, nic.interface): MACS.format(number, nic.rail)
        for number, host in enumerate(fabric.hosts)
        for nic in host.nics
    }
    heard: dict[str, dict[str, tuple[Neighbor, ...]]] = {name: {} for name in fabric.names}
    for (device, port), peer in ends.peers.items():
        heard[device][port] = (Neighbor(f"{peer[0]}{domain}", macs.get(peer, peer[1])),)
    ports: dict[str, dict[str, Interface]] = {name: {} for name in fabric.names}
    for (device, port), mac in macs.items():
        ports[device][port] = Interface(mac=mac)
    facts = {
        name: Facts(system=System(serial=ends.devices[name].serial), interfaces=ports[name], neighbors=heard[name])
        for name in fabric.names
    }
    return Snapshot(fabric.name, 0.0, {name: Observation(name, "x", one) for name, one in facts.items()})


def drift(folder: Path, snapshot: Snapshot, *arguments: str) -> Done:
    file = folder.parent / "now.json"
    file.write_bytes(serial.dump(snapshot))
    return run("truth", "drift", "--fabric", folder, "--from", file, *arguments, TRUTH_TOKEN=TOKEN)


def changed(snapshot: Snapshot, name: str, **values: object) -> Snapshot:
    one = snapshot.devices[name]
    facts: Facts = replace(one.facts, **values)  # type: ignore[arg-type]
    return replace(snapshot, devices={**snapshot.devices, name: replace(one, facts=facts)})


def test_a_fabric_that_runs_as_intended_agrees(folder: Path) -> None:
    fabric = Project.open(folder).fabric
    snapshot = snapshot_of(fabric)
    assert of_snapshot(fabric, snapshot).peers == of_fabric(fabric).peers
    with served(NetBox()) as one:
        point_to(one, folder)
        source.exported(api_of(one), fabric, writes=True)
        done = drift(folder, snapshot)
    assert (done.returncode, done.stdout, done.stderr) == (
        0,
        "netbox, the intent of brownfield and the running fabric agree\n",
        "",
    )


def test_neighbours_are_known_by_names_with_dots_and_a_domain() -> None:
    names = {"leaf": "RZ1.leaf{number}", "spine": "RZ1.spine{number}", "host": "RZ1.gpu{number}"}
    fabric = intents.fabric(intents.values({"names": names}))
    assert of_snapshot(fabric, snapshot_of(fabric, ".dc1.example.com")).peers == of_fabric(fabric).peers


def test_a_swapped_cable_and_another_chassis_are_rows(folder: Path) -> None:
    fabric = Project.open(folder).fabric
    snapshot = changed(snapshot_of(fabric), "a07-tor-1", system=System(serial="SPARE"))
    neighbors = _neighbors(snapshot, "a07-tor-1")
    wanted = of_fabric(fabric).peers[("a07-tor-1", "Ethernet0")]
    snapshot = changed(
        snapshot, "a07-tor-1", neighbors={**neighbors, "Ethernet0": (Neighbor("b01-agg-2", "Ethernet0"),)}
    )
    with served(NetBox()) as one:
        point_to(one, folder)
        source.exported(api_of(one), fabric, writes=True)
        gone = next(device for device in one.devices if device["name"] == "a07-tor-2")
        gone["serial"] = ""
        done = drift(folder, snapshot, "--format", "json")
        text = drift(folder, snapshot)
    assert done.returncode == 1, done.stderr
    rows = [tuple(row.values()) for row in json.loads(done.stdout)]
    peer = ":".join(wanted)
    assert rows == [
        ("a07-tor-1", "", "serial", "MT2341X10420", "MT2341X10420", "SPARE"),
        ("a07-tor-2", "", "serial", "", "MT2341X10427", "MT2341X10427"),
        ("a07-tor-1", "Ethernet0", "cable", peer, peer, "b01-agg-2:Ethernet0"),
    ]
    assert text.stdout.splitlines()[0].split() == ["DEVICE", "PORT", "ATTRIBUTE", "TRUTH", "INTENT", "RUNNING"]


def _neighbors(snapshot: Snapshot, name: str) -> Mapping[str, tuple[Neighbor, ...]]:
    found = snapshot.devices[name].facts.neighbors
    assert isinstance(found, Mapping)
    return found


def test_cables_by_lldp_are_written_on_request(folder: Path) -> None:
    fabric = Project.open(folder).fabric
    snapshot = snapshot_of(fabric)
    with served(NetBox()) as one:
        point_to(one, folder)
        source.exported(api_of(one), fabric, writes=True)
        cables = list(one.others["dcim/cables"])
        one.others["dcim/cables"] = []
        for port in one.interfaces:
            port["cable"] = None
        before = one.written
        dry = drift(folder, snapshot, "--write-cables")
        assert (dry.returncode, one.written) == (1, before)
        assert "nothing was written; --yes writes it\n" in dry.stdout
        wet = drift(folder, snapshot, "--write-cables", "--yes", "--format", "json")
        assert wet.returncode == 1, wet.stderr
        written = json.loads(wet.stdout)["cables"]
        assert {(row["kind"], row["action"]) for row in written} == {("cable", "create")}
        assert len(written) == len(one.others["dcim/cables"]) == len(cables)
        assert reading.read(api_of(one)) == of_fabric(fabric)
        assert {cable["label"] for cable in one.others["dcim/cables"]} == {cable["label"] for cable in cables}
        again = drift(folder, snapshot, "--write-cables", "--yes", "--format", "json")
        assert (again.returncode, json.loads(again.stdout)) == (0, {"drift": [], "cables": []})


def test_a_cable_that_ends_elsewhere_in_the_source_is_left(folder: Path) -> None:
    fabric = Project.open(folder).fabric
    snapshot = snapshot_of(fabric)
    ends = of_fabric(fabric).peers
    one, other = sorted((port, ends[("a07-tor-1", port)]) for port in ("Ethernet0", "Ethernet8"))
    neighbors = {
        **_neighbors(snapshot, "a07-tor-1"),
        one[0]: (Neighbor(*other[1]),),
        other[0]: (Neighbor(*one[1]),),
    }
    swapped = changed(snapshot, "a07-tor-1", neighbors=neighbors)
    for end, port in ((one[1], other[0]), (other[1], one[0])):
        swapped = changed(
            swapped, end[0], neighbors={**_neighbors(swapped, end[0]), end[1]: (Neighbor("a07-tor-1", port),)}
        )
    with served(NetBox()) as netbox:
        point_to(netbox, folder)
        source.exported(api_of(netbox), fabric, writes=True)
        done = drift(folder, swapped, "--write-cables", "--yes", "--format", "json")
    rows = json.loads(done.stdout)["cables"]
    assert {(row["kind"], row["action"]) for row in rows} == {("cable", "left")}
    assert len(rows) == 2
    assert all("a07-tor-1 Ethernet" in row["detail"] and "has a cable to" in row["detail"] for row in rows)
    assert len(json.loads(done.stdout)["drift"]) == 4
