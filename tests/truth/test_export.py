"""netkit truth export into a stand-in for NetBox, through the real pynetbox."""

import json
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given, settings

from netkit import design
from netkit.access.settings import TruthAccess
from netkit.hardware import Catalog
from netkit.intent import Intent
from netkit.project.project import Project
from netkit.truth import reading, source
from netkit.truth.difference import of_fabric
from tests import intents as intents_of_tests
from tests.command import ROOT, Done, run
from tests.lanes import examples
from tests.random_intents import Values, intents
from tests.truth.stand_in import TOKEN, NetBox, Row, served

CATALOG = Catalog()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    shutil.copytree(ROOT / "inventory/brownfield", tmp_path / "fabric")
    return tmp_path / "fabric"


@pytest.fixture
def netbox(folder: Path) -> Iterator[NetBox]:
    with served(NetBox()) as one:
        point_to(one, folder)
        yield one


def point_to(one: NetBox, folder: Path) -> None:
    text = f"truth: {{kind: netbox, url: '{one.url}', token: {{env: TRUTH_TOKEN}}}}\n"
    (folder / "access.yaml").write_text(text, encoding="utf-8")


def api_of(one: NetBox) -> source.TruthApi:
    access = TruthAccess.model_validate({"kind": "netbox", "url": one.url, "token": {"env": "TRUTH_TOKEN"}})
    return source.TruthApi(access, TOKEN)


def export(folder: Path, *arguments: str) -> Done:
    return run("truth", "export", "--fabric", folder, *arguments, TRUTH_TOKEN=TOKEN)


@settings(max_examples=examples(10), deadline=None)
@given(intents())
def test_a_second_export_changes_nothing(values: Values) -> None:
    fabric = design.build(Intent.model_validate(values), CATALOG)
    with served(NetBox()) as one:
        first = source.exported(api_of(one), fabric, writes=True)
        assert {each.action for each in first.found} <= {"create", "change"}
        assert reading.read(api_of(one)) == of_fabric(fabric)
        written = one.written
        second = source.exported(api_of(one), fabric, writes=True)
        assert (second.found, one.written) == ([], written)


@pytest.mark.parametrize("name", ["brownfield", "internet-edge", "reference", "training-cluster"])
def test_a_shipped_fabric_is_exported_once(tmp_path: Path, name: str) -> None:
    folder = tmp_path / name
    shutil.copytree(ROOT / "inventory" / name, folder)
    with served(NetBox()) as one:
        point_to(one, folder)
        dry = export(folder, "--format", "json")
        assert (dry.returncode, one.written) == (1, 0), dry.stderr
        wet = export(folder, "--yes", "--format", "json")
        assert (wet.returncode, wet.stderr) == (0, "")
        planned, done = (
            {(row["kind"], row["name"]) for row in json.loads(each.stdout) if row["kind"] != "primary address"}
            for each in (dry, wet)
        )
        assert planned == done
        again = export(folder, "--format", "json")
        assert (again.returncode, json.loads(again.stdout)) == (0, [])
        agreed = run("truth", "diff", "--fabric", folder, TRUTH_TOKEN=TOKEN)
        assert (agreed.returncode, agreed.stderr) == (0, "")


def test_lags_and_cables_of_networks_are_exported() -> None:
    fabric = Project.open(ROOT / "inventory/training-cluster").fabric
    with served(NetBox()) as one:
        source.exported(api_of(one), fabric, writes=True)
        members = {
            (port["device"]["name"], port["name"]): (port["lag"]["name"], port["type"]["value"])
            for port in one.interfaces
            if port["lag"] and port["device"]["name"] in {"gpu03", "storage02"}
        }
        lags = {
            (port["device"]["name"], port["name"])
            for port in one.interfaces
            if port["type"]["value"] == "lag" and port["device"]["name"] in {"gpu03", "storage02"}
        }
        (gateway,) = (each for each in one.others["ipam/ip-addresses"] if each["address"] == "10.200.0.3/22")
        prefixes = {each["prefix"] for each in one.others["ipam/prefixes"]}
        peers = reading.read(api_of(one)).peers
    numbers = [*range(1, 11), 60, 61]  # hosts, and two servers
    speed = "100gbase-x-qsfp28"
    assert members == {
        ("gpu03", "ens6f0np0"): ("bond0", speed),
        ("gpu03", "ens6f1np1"): ("bond0", speed),
        **{("storage02", f"swp{number}"): (f"bond{number}", speed) for number in numbers},
    }
    assert lags == {("gpu03", "bond0"), *(("storage02", f"bond{number}") for number in numbers)}
    assert (gateway["assigned_object"]["device"]["name"], gateway["assigned_object"]["name"]) == (
        "storage02",
        "vlan200",
    )
    assert {"10.200.0.0/22", "10.254.0.1/32", "10.254.0.2/32"} <= prefixes
    assert peers[("gpu03", "ens6f1np1")] == ("storage02", "swp3")
    assert peers == of_fabric(fabric).peers


def test_a_device_of_a_known_model_is_added(folder: Path, netbox: NetBox) -> None:
    fabric = Project.open(folder).fabric
    source.exported(api_of(netbox), fabric, writes=True)
    types = list(netbox.others["dcim/device-types"])
    netbox.devices = [one for one in netbox.devices if one["name"] != "a07-tor-2"]
    gone = [one for one in netbox.interfaces if one["device"]["name"] == "a07-tor-2"]
    cables = {one["cable"]["id"] for one in gone if one["cable"]}
    netbox.interfaces = [one for one in netbox.interfaces if one not in gone]
    for one in netbox.interfaces:
        if one["cable"] and one["cable"]["id"] in cables:
            one["cable"] = None
    netbox.others["dcim/cables"] = [one for one in netbox.others["dcim/cables"] if one["id"] not in cables]
    ids = {one["id"] for one in gone}
    addresses = netbox.others["ipam/ip-addresses"]
    netbox.others["ipam/ip-addresses"] = [one for one in addresses if one["assigned_object_id"] not in ids]
    done = export(folder, "--yes", "--format", "json")
    assert (done.returncode, done.stderr) == (0, ""), done.stdout
    assert {row["action"] for row in json.loads(done.stdout) if row["kind"] != "primary address"} == {"create"}
    assert netbox.others["dcim/device-types"] == types
    assert reading.read(api_of(netbox)).peers == of_fabric(fabric).peers


def test_a_device_that_is_refused_is_the_only_one_reported(folder: Path, netbox: NetBox) -> None:
    source.exported(api_of(netbox), Project.open(folder).fabric, writes=True)
    gone = next(one for one in netbox.devices if one["name"] == "a07-tor-2")
    gone["name"] = "other"
    done = export(folder, "--yes", "--format", "json")
    rows = [(row["kind"], row["name"], row["action"]) for row in json.loads(done.stdout)]
    assert rows == [("device", "a07-tor-2", "left")]


def test_ipv6_addresses_are_exported() -> None:
    pools = {"loopbacks_v6": "2001:db8:255::/64", "hosts_v6": "2001:db8:128::/48"}
    fabric = intents_of_tests.fabric(intents_of_tests.on_platform("frr", "8.4.4", {"pools": pools}))
    with served(NetBox()) as one:
        source.exported(api_of(one), fabric, writes=True)
        found = {
            (each["assigned_object"]["device"]["name"], each["assigned_object"]["name"]): each["address"]
            for each in one.others["ipam/ip-addresses"]
            if ":" in each["address"]
        }
        prefixes = {each["prefix"]: each["status"]["value"] for each in one.others["ipam/prefixes"]}
        primary = {each["name"]: each["primary_ip6"] for each in one.devices}
    own = ("leaf01", "spine02", "gpu01")
    assert {key: value for key, value in found.items() if key[0] in own} == {
        ("leaf01", "lo"): "2001:db8:255::1/128",
        ("leaf01", "swp1s0"): "2001:db8:128::/127",
        ("leaf01", "swp1s1"): "2001:db8:128::2/127",
        ("spine02", "lo"): "2001:db8:255::82/128",
        ("gpu01", "rail0"): "2001:db8:128::1/127",
        ("gpu01", "rail1"): "2001:db8:128:8000::1/127",
    }
    assert {prefix: status for prefix, status in prefixes.items() if ":" in prefix} == {
        "2001:db8:128::/48": "container",
        "2001:db8:128::/49": "container",
        "2001:db8:128:8000::/49": "container",
        "2001:db8:128::/64": "active",
        "2001:db8:128:1::/64": "active",
        "2001:db8:128:8000::/64": "active",
        "2001:db8:128:8001::/64": "active",
        "2001:db8:255::/64": "active",
    }
    assert {name: primary[name] and primary[name]["address"] for name in own} == {
        "leaf01": "2001:db8:255::1/128",
        "spine02": "2001:db8:255::82/128",
        "gpu01": None,
    }


def test_conflicting_objects_are_listed_and_left(folder: Path, netbox: NetBox) -> None:
    fabric = Project.open(folder).fabric
    source.exported(api_of(netbox), fabric, writes=True)
    by_name = {device["name"]: device for device in netbox.devices}
    netbox.create("dcim/sites", {"name": "other", "slug": "other", "status": "active"})
    by_name["b01-agg-2"]["site"] = {"id": 2, "name": "other", "slug": "other"}
    leaf = next(link for link in fabric.links() if link.peer == "b01-agg-1")
    moved = _ports(netbox, leaf.device, leaf.port) + _ports(netbox, "b01-agg-1", leaf.peer_port)
    old = moved[0]["cable"]["id"]
    netbox.others["dcim/cables"] = [one for one in netbox.others["dcim/cables"] if one["id"] != old]
    for one in moved:
        one["cable"] = None
    spare = netbox.create("dcim/interfaces", {"device": by_name["a07-tor-2"]["id"], "name": "spare", "type": "other"})
    ends = [[{"object_type": "dcim.interface", "object_id": one["id"]}] for one in (moved[0], spare)]
    netbox.create("dcim/cables", {"a_terminations": ends[0], "b_terminations": ends[1], "status": "connected"})
    address = next(one for one in netbox.others["ipam/ip-addresses"] if one["address"] == "172.31.255.11/32")
    address |= {"assigned_object_id": spare["id"], "assigned_object": {**spare, "device": {"name": "a07-tor-2"}}}
    by_name["ai-node-017"]["serial"] = "OLD"
    done = export(folder, "--yes", "--format", "json")
    assert done.returncode == 1, done.stderr
    rows = [(row["kind"], row["name"], row["action"], row["detail"]) for row in json.loads(done.stdout)]
    port = f"{leaf.device} {leaf.port}"
    assert rows == [
        ("device", "b01-agg-2", "left", "site is other"),
        ("device", "ai-node-017", "change", "serial OLD → 7XK4411Q3"),
        ("cable", f"{port} b01-agg-1 {leaf.peer_port}", "left", f"{port} has a cable to a07-tor-2 spare"),
        ("address", "172.31.255.11", "left", "assigned_object is a07-tor-2 spare"),
    ]
    assert [one["address"] for one in netbox.others["ipam/ip-addresses"] if one["assigned_object_id"] == spare["id"]]


def _ports(netbox: NetBox, device: str, name: str) -> list[Row]:
    return [one for one in netbox.interfaces if (one["device"]["name"], one["name"]) == (device, name)]


def test_rejected_objects_are_left_and_the_rest_is_written(folder: Path, netbox: NetBox) -> None:
    fabric = Project.open(folder).fabric
    source.exported(api_of(netbox), fabric, writes=True)
    rack = next(one for one in netbox.others["dcim/racks"] if one["name"] == "A07")
    kept = next(one for one in netbox.devices if one["name"] == "a07-tor-1")
    lost = next(one for one in netbox.devices if one["name"] == "a07-tor-2")
    lost |= {"rack": None, "position": None, "face": None, "serial": "X"}
    other = {"device_type": 1, "role": 1, "site": 1, "name": "foreign", "status": "active"}
    netbox.create("dcim/devices", {**other, "rack": rack["id"], "face": "front", "position": 38})
    kept |= {"serial": "Y"}
    done = export(folder, "--yes")
    assert done.returncode == 1
    assert "device a07-tor-1: serial Y → MT2341X10420" in done.stdout
    assert "device a07-tor-2: refused: position: U38 is already occupied" in done.stdout
    assert (kept["serial"], lost["serial"]) == ("MT2341X10420", "X")
