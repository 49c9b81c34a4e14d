"""Custom names and numbers: tables beside the intent, exported and read again."""

import csv
import io
import json
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import replace
from ipaddress import IPv4Address, IPv4Network
from itertools import islice
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from netkit import design
from netkit.access import inventory
from netkit.access import settings as access
from netkit.access.endpoints import endpoints
from netkit.design import Fabric, Host, Nic, Switch, capacity
from netkit.design.entries import position_of
from netkit.design.hardware_lookup import look_up
from netkit.design.hosts import RoutePlan
from netkit.design.layout import front_panel
from netkit.design.policy import prefix_lists
from netkit.design.select import select
from netkit.design.tables import TABLES
from netkit.errors import DesignError, IntentError
from netkit.hardware import Catalog
from netkit.hardware.catalog import SHIPPED
from netkit.intent import Intent, csv_table
from netkit.intent.model import DeviceEntry, Tables
from netkit.project.project import Project
from netkit.render import Engine, render
from tests import intents
from tests.command import ROOT, run
from tests.lanes import examples
from tests.random_intents import Values
from tests.random_intents import intents as random_intents

CATALOG = Catalog()
MANY = settings(
    max_examples=examples(60),
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much, HealthCheck.function_scoped_fixture],
)
Rows = list[dict[str, str]]
Given = Mapping[str, Sequence[Mapping[str, object]]]


def build(values: Values) -> Fabric:
    return design.build(Intent.model_validate(values), CATALOG)


def exported(fabric: Fabric, folder: Path) -> dict[str, Rows]:
    """The tables of a fabric as text of their files."""
    found = {}
    for name, kind in Tables.columns().items():
        csv_table.write(folder / f"{name}.csv", kind, TABLES[name](fabric))
        with (folder / f"{name}.csv").open(encoding="utf-8", newline="") as file:
            found[name] = list(csv.DictReader(file))
    return found


def with_tables(values: Values, tables: Given, folder: Path) -> Fabric:
    """The fabric of an intent with tables, read from files."""
    for name, rows in tables.items():
        csv_table.write(folder / f"{name}.csv", Tables.columns()[name], rows)
    (folder / "fabric.yaml").write_text(
        yaml.safe_dump({**values, "tables": {name: f"{name}.csv" for name in tables}}), encoding="utf-8"
    )
    return Project.open(folder).fabric


@MANY
@given(random_intents())
def test_the_exported_tables_of_a_fabric_give_the_same_fabric(tmp_path: Path, values: Values) -> None:
    fabric = build(values)
    tables = exported(fabric, tmp_path)
    assert {name: len(rows) for name, rows in tables.items()} == {
        "devices": len(fabric.switches) + len(fabric.hosts),
        "cables": len(list(fabric.links())),
        "rails": len(fabric.rails),
        "nics": sum(len(host.nics) for host in fabric.hosts),
    }
    again = with_tables(values, tables, tmp_path)
    assert again == fabric


def shape(fabric: Fabric) -> dict[Any, Any]:
    """What names and numbers of other devices must not change: ports, peers by position, addresses of NICs."""

    def at(name: str) -> Any:
        device = fabric.device(name)
        assert device is not None
        return position_of(fabric, device)

    found: dict[Any, Any] = {}
    for switch in fabric.switches:
        found[at(switch.name)] = [
            (port.name, port.cage, at(port.peer), port.peer_port, port.address, port.profile) for port in switch.ports
        ] + [switch.leaf_prefix, switch.vlan, switch.cages]
    for host in fabric.hosts:
        found[at(host.name)] = [replace(nic, leaf="") for nic in host.nics]
    return found


@MANY
@given(random_intents(), st.data())
def test_a_changed_cell_changes_nothing_else(tmp_path: Path, values: Values, data: st.DataObject) -> None:
    fabric = build(values)
    tables = exported(fabric, tmp_path)
    changed = data.draw(st.sets(st.integers(0, min(99, len(tables["devices"]) - 1)), min_size=1, max_size=5))
    loopbacks = iter(reversed(list(IPv4Network(fabric.loopback_pool).hosts())))
    for number in changed:
        row = tables["devices"][number]
        new = {
            "name": f"own-{number}",
            "serial": f"SN{number}",
            "rack": f"r{number}",
            "rack_unit": str(1 + number % 40),
        }
        if row["role"] != "host":
            new["loopback"] = str(next(loopbacks))
        if row["role"] in {"leaf", "spine"}:  # core switches of different AS numbers would permit a valley
            new["asn"] = str(64_512 + number)
        was = row["name"]
        row |= {key: new[key] for key in data.draw(st.sets(st.sampled_from(sorted(new)), min_size=1))}
        if not row["rack"]:
            row["rack_unit"] = ""
        for other in (*tables["cables"], *tables["nics"]):
            other |= {end: row["name"] for end in ("device", "peer", "host") if other.get(end) == was}
    again = with_tables(values, tables, tmp_path)
    assert exported(again, tmp_path) == tables
    assert shape(again) == shape(fabric)
    asns = {switch.name: switch.asn for switch in again.switches}
    assert all(port.peer_asn == asns[port.peer] for switch in again.switches for port in switch.fabric_ports)


@MANY
@given(random_intents(), st.data())
def test_a_moved_cable_moves_nothing_else(tmp_path: Path, values: Values, data: st.DataObject) -> None:
    fabric = build(values)
    tables = exported(fabric, tmp_path)
    hardware = look_up(Intent.model_validate(values), CATALOG)
    ends = [(row, end) for row in tables["cables"] for end in (("device", "port"), ("peer", "peer_port"))]
    ends = [(row, end) for row, end in ends if isinstance(fabric.device(row[end[0]]), Switch)]
    for _ in range(data.draw(st.integers(1, 4))):
        row, (device, port) = data.draw(st.sampled_from(ends))
        switch = fabric.switch(row[device])
        every = sorted(front_panel(hardware, switch.role, "up" if device == "device" else "down"))
        new, old = data.draw(st.sampled_from(every)), row[port]
        for other, (key, there) in ends:  # the cable that was there comes here
            if other[key] == switch.name and other[there] == new:
                other[there] = old
        row[port] = new
    for row in data.draw(st.lists(st.sampled_from(tables["cables"]), max_size=3)):
        row |= {"label": f"C {len(row['port'])}", "length_m": "12.5"}
    again = with_tables(values, tables, tmp_path)
    assert again == with_tables(values, {"cables": tables["cables"]}, tmp_path)
    assert exported(again, tmp_path)["devices"] == tables["devices"]

    def ordered(rows: Rows) -> list[Any]:
        return sorted(tuple(value for key, value in row.items() if key != "link") for row in rows)

    assert ordered(exported(again, tmp_path)["cables"]) == ordered(tables["cables"])
    ends_of = {
        (port.peer, port.peer_port): (switch.name, port.name) for switch in again.switches for port in switch.ports
    }
    assert all(
        ends_of[(switch.name, port.name)] == (port.peer, port.peer_port)
        for switch in again.switches
        for port in switch.fabric_ports
    )
    assert all(
        ends_of[(host.name, nic.interface)] == (nic.leaf, nic.leaf_port) for host in again.hosts for nic in host.nics
    )
    assert [[replace(nic, leaf_port="") for nic in host.nics] for host in again.hosts] == [
        [replace(nic, leaf_port="") for nic in host.nics] for host in fabric.hosts
    ]


@MANY
@given(random_intents(), st.data())
def test_a_custom_address_changes_no_other(tmp_path: Path, values: Values, data: st.DataObject) -> None:
    fabric = build(values)
    leaf = data.draw(st.sampled_from(fabric.tier("leaf")))
    rail, old = IPv4Network(fabric.rails[leaf.rail].prefix), IPv4Network(leaf.leaf_prefix)
    taken = {other.leaf_prefix for other in fabric.tier("leaf") if other != leaf}
    free = [str(one) for one in islice(rail.subnets(new_prefix=old.prefixlen), 40) if str(one) not in taken]
    row: dict[str, Any] = {
        "role": "leaf",
        "pod": "",
        "unit": leaf.unit,
        "rail": leaf.rail,
        "prefix": data.draw(st.sampled_from(free)),
    }
    row["pod"] = leaf.pod if fabric.topology == "three-tier" else ""
    prefix = IPv4Network(row["prefix"])
    host, nic = data.draw(
        st.sampled_from([(host, nic) for host in fabric.hosts for nic in host.nics if nic.leaf == leaf.name])
    )
    own: dict[str, Any] = {"host": host.name, "rail": nic.rail, "mac": "02:00:00:00:00:07"}
    if leaf.vlan:
        used = {prefix[int(IPv4Address(one.address)) - int(old.network_address)] for one in nics_of(fabric, leaf)}
        unused = [one for one in list(prefix.hosts())[:200] if one not in used]
        row |= {"vlan": 999, "vlan_gateway": unused.pop(data.draw(st.integers(0, len(unused) - 1)))}
        own["address"] = data.draw(st.sampled_from(unused)) if unused else ""
    elif nic.prefix_length == 31:  # the host first, the leaf second
        own["address"] = prefix[(host.slot - 1) * 2]
    again = with_tables(values, {"devices": [row], "nics": [own]}, tmp_path)
    after = again.switch(leaf.name)
    assert (after.leaf_prefix, after.vlan and after.vlan.number) == (row["prefix"], row.get("vlan"))
    mine = next(one for one in nics_of(again, leaf) if one.mac)
    assert mine.address == str(own.get("address") or mine.address)
    assert IPv4Address(mine.gateway) in prefix
    assert RoutePlan(again).connected(mine) in (
        {row["prefix"]} if leaf.vlan else {str(one) for one in prefix.subnets(new_prefix=mine.prefix_length)}
    )
    shift = int(prefix.network_address) - int(old.network_address)
    for before, now in zip(nics_of(fabric, leaf), nics_of(again, leaf), strict=True):
        if now is not mine:
            assert int(IPv4Address(now.address)) - int(IPv4Address(before.address)) == shift
    assert [one for one in again.switches if one.name != leaf.name] == [
        one for one in fabric.switches if one.name != leaf.name
    ]
    assert [one for host in again.hosts for one in host.nics if one.leaf != leaf.name] == [
        one for host in fabric.hosts for one in host.nics if one.leaf != leaf.name
    ]
    assert with_tables(values, exported(again, tmp_path), tmp_path) == again


def nics_of(fabric: Fabric, leaf: Switch) -> list[Nic]:
    return [nic for host in fabric.hosts for nic in host.nics if nic.leaf == leaf.name]


def test_a_switch_may_have_its_own_model() -> None:
    changes: Values = {
        "switches": {
            "leaf": dict.fromkeys(("host_breakout", "uplink_breakout"), "1x400G"),
            "spine": {"breakout": "1x400G"},
        },
        "cables": {"host": {"media": "400G-DR4"}, "spine": {"media": "400G-DR4"}},
    }
    plain = intents.fabric(intents.values(changes))
    row = {"role": "leaf", "unit": 1, "rail": 0, "model": "SN4700"}
    cables = [{"device": "gpu01", "port": "rail0", "peer": "leaf01", "peer_port": "swp16"}]
    fabric = intents.fabric(intents.values({**changes, "tables": {"devices": [row], "cables": cables}}))
    leaf, other = fabric.switch("leaf01"), fabric.switch("leaf02")
    assert [leaf.model.name, other.model.name, other] == ["SN4700", "SN5600", plain.switch("leaf02")]
    # The upper half of an SN4700 begins at cage 17, that of an SN5600 at cage 33.
    assert [port.name for port in leaf.ports] == ["swp2", "swp16", "swp17", "swp18"]
    assert [port.name for port in other.ports] == ["swp1", "swp2", "swp33", "swp34"]
    assert {port.peer_port for spine in fabric.tier("spine") for port in spine.ports} == {
        "swp17",
        "swp18",
        "swp33",
        "swp34",
    }
    assert {nic.leaf: nic.leaf_port for nic in fabric.hosts[0].nics} == {"leaf01": "swp16", "leaf02": "swp1"}
    assert capacity.summarize(fabric, CATALOG.media()).tiers[0].model == "SN4700, SN5600"


def test_a_switch_may_run_another_nos_than_its_tier(tmp_path: Path) -> None:
    rows: list[Values] = [
        {"role": "leaf", "unit": 1, "rail": 0, "model": "DCS-7060X6-64PE", "platform": "eos", "version": "4.35.1F"},
        {"role": "spine", "slot": 2, "platform": "sonic", "version": "202505"},
        {"role": "leaf", "unit": 1, "rail": 1, "version": "5.15.0"},
    ]
    cables = [{"device": "gpu01", "port": "rail0", "peer": "leaf01", "peer_port": "Ethernet9/1"}]
    tiers = {"leaf": {"object_names": {"route_map": {"TO-SPINES": "MINE"}}}}
    values = intents.values({"switches": tiers, "tables": {"devices": rows, "cables": cables}})
    fabric = intents.fabric(values)
    assert {(one.name, one.platform, one.version, one.model.name) for one in fabric.switches} == {
        ("leaf01", "eos", "4.35.1F", "DCS-7060X6-64PE"),
        ("leaf02", "nvue", "5.15.0", "SN5600"),
        ("leaf03", "nvue", "5.16.1", "SN5600"),
        ("leaf04", "nvue", "5.16.1", "SN5600"),
        ("spine01", "nvue", "5.16.1", "SN5600"),
        ("spine02", "sonic", "202505", "SN5600"),
    }
    ports = {one.name: [port.name for port in one.ports] for one in fabric.switches if one.platform != "nvue"}
    assert ports["leaf01"] == ["Ethernet1/5", "Ethernet9/1", "Ethernet33/1", "Ethernet33/5"]
    assert ports["spine02"] == ["Ethernet0", "Ethernet4", "Ethernet8", "Ethernet12"]
    assert fabric.hosts[0].nics[0].leaf_port == "Ethernet9/1"
    assert [one.object_names == {} for one in fabric.tier("leaf")] == [True, False, False, False]
    summary = capacity.summarize(fabric, CATALOG.media()).tiers
    assert (summary[0].platform, summary[0].version) == ("eos, nvue", "4.35.1F, 5.15.0, 5.16.1")
    assert with_tables(values, exported(fabric, tmp_path), tmp_path) == fabric


def test_hosts_of_several_models_share_a_fabric() -> None:
    units: list[Values] = [{"unit": 1, "hosts": 2}, {"unit": 2, "hosts": 2, "host_model": "hgx-h100-xe9680"}]
    row = {"role": "host", "unit": 2, "slot": 2, "model": "dgx-h100"}
    plain = intents.fabric(intents.values())
    fabric = intents.fabric(intents.values({"units": units, "tables": {"devices": [row]}}))
    assert [host.model.name for host in fabric.hosts] == ["dgx-h100", "dgx-h100", "hgx-h100-xe9680", "dgx-h100"]
    hgx = CATALOG.host("hgx-h100-xe9680").rails
    assert [nic.pci for nic in fabric.hosts[2].nics] == [hgx[0].pci, hgx[1].pci]
    assert [fabric.hosts[at] for at in (0, 1, 3)] == [plain.hosts[at] for at in (0, 1, 3)]
    assert fabric.switches == plain.switches


def test_a_model_without_a_pci_map_gets_one_from_the_intent() -> None:
    """In a unit and in the table of devices; NICs of other families have their own drivers and files."""
    pci = {"mi300x-thor2": ["0000:06:00.0", "0000:23:00.0"], "mi355x-pollara": ["0000:09:00.0", "0000:2a:00.0"]}
    units: list[Values] = [{"unit": 1, "hosts": 2}, {"unit": 2, "hosts": 1, "host_model": "mi300x-thor2"}]
    row = {"role": "host", "unit": 1, "slot": 2, "model": "mi355x-pollara"}
    changes = {"units": units, "tables": {"devices": [row]}, "hosts": {"pci_by_model": pci}}
    fabric = intents.fabric(intents.values(changes))
    assert [(host.model.name, [nic.pci for nic in host.nics]) for host in fabric.hosts] == [
        ("dgx-h100", [nic.pci for nic in CATALOG.host("dgx-h100").rails[:2]]),
        ("mi355x-pollara", pci["mi355x-pollara"]),
        ("mi300x-thor2", pci["mi300x-thor2"]),
    ]


def test_host_models_that_do_not_fit_are_refused(tmp_path: Path) -> None:
    (tmp_path / "models" / "hosts").mkdir(parents=True)
    slow = (SHIPPED / "hosts" / "dgx-h100.yaml").read_text(encoding="utf-8")
    slow = slow.replace("name: dgx-h100", "name: slow").replace(
        "{value: 400, source: dgx-ug}", "{value: 200, source: dgx-ug}"
    )
    (tmp_path / "models" / "hosts" / "slow.yaml").write_text(slow, encoding="utf-8")
    catalog = Catalog([tmp_path / "models"])

    def problems(changes: Values) -> list[str]:
        with pytest.raises(DesignError) as refused:
            design.build(Intent.model_validate(intents.values(changes)), catalog)
        return [f"{'.'.join(map(str, problem.path))}: {problem.message}" for problem in refused.value.problems]

    assert problems({"units": [{"unit": 1, "hosts": 1, "host_model": "slow"}]}) == [
        "units.0.host_model: the NICs of slow run at 200G, the leaves' host ports at 400G"
    ]
    generic = [{"unit": 1, "hosts": 1, "host_model": "hgx-h100-generic"}]
    assert problems({"units": generic}) == [
        "units.0.host_model: no source states the PCI addresses of hgx-h100-generic's rail NICs"
    ]
    given = {"hgx-h100-generic": ["0000:01:00.0"], "dgx-h100": ["0000:01:00.0"], "mi300x-thor2": []}
    assert problems({"units": generic, "hosts": {"pci_by_model": given}}) == [
        "hosts.pci_by_model.dgx-h100: dgx-h100 is hosts.model",
        "hosts.pci_by_model.mi300x-thor2: no host is a mi300x-thor2",
        "hosts.pci_by_model.hgx-h100-generic: lists 1 different NICs for 2 rails",
    ]
    mixed = [{"unit": 1, "hosts": 1}, {"unit": 2, "hosts": 1, "host_model": "hgx-h100-xe9680"}]
    assert problems({"units": mixed, "clusters": {"slurm": {"cpus": 112, "memory_mb": 1000}}}) == [
        "clusters.slurm.unit: its nodes are of 2 models: dgx-h100, hgx-h100-xe9680"
    ]


def test_rails_may_have_their_own_prefixes_and_vlans() -> None:
    rows = [{"rail": 0, "prefix": "10.128.64.0/20"}, {"rail": 1, "prefix": "10.128.16.0/20", "vlan": 300}]
    changes = {"attachment": "vlan", "pools": {"leaf_length": 26}, "tables": {"rails": rows}}
    fabric = intents.fabric(intents.values(changes))
    assert [rail.prefix for rail in fabric.rails] == ["10.128.64.0/20", "10.128.16.0/20"]
    assert [(leaf.leaf_prefix, leaf.vlan and leaf.vlan.number) for leaf in fabric.tier("leaf")] == [
        ("10.128.64.0/26", 100),
        ("10.128.16.0/26", 300),
        ("10.128.64.64/26", 100),
        ("10.128.16.64/26", 300),
    ]
    (rules,) = (found.rules for found in prefix_lists(fabric, fabric.switch("spine01")) if found.name == "FABRIC")
    assert [(rule.prefix, rule.length) for rule in rules] == [("10.255.0.0/24", 32), ("10.128.0.0/16", 26)]


SMALL = "role,unit,rail,slot,name,rack\nleaf,1,0,,ls-1,R 1\nhost,1,,2,dgx-b,\n".replace("R 1", "r1")


@pytest.mark.parametrize(
    "data",
    [
        SMALL.encode(),
        b"\xef\xbb\xbf" + SMALL.replace("\n", "\r\n").encode(),
        SMALL.replace(",", ";").encode(),
        SMALL.replace(",", "\t").replace("\n", "\r\n").encode(),
        SMALL.replace("ls-1", '"ls-1"').replace("dgx-b", '" dgx-b "').encode(),
        SMALL.replace("\n", ",\n").replace("leaf,", "\n,,,,,,\nleaf,", 1).encode(),
        SMALL.rstrip("\n").encode(),
    ],
    ids=["plain", "bom-crlf", "semicolons", "tabs", "quotes", "empty-rows-and-column", "no-last-line-end"],
)
def test_csv_files_of_spreadsheets_are_read(tmp_path: Path, data: bytes) -> None:
    file = tmp_path / "devices.csv"
    file.write_bytes(data)
    table = csv_table.read(file, DeviceEntry)
    assert table.problems == []
    assert table.rows == [
        {"role": "leaf", "unit": "1", "rail": "0", "name": "ls-1", "rack": "r1"},
        {"role": "host", "unit": "1", "slot": "2", "name": "dgx-b"},
    ]
    lines = data.decode("utf-8-sig").splitlines()
    assert [lines[line - 1].split(",")[0][:4] for line in table.lines] == ["leaf", "host"]


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (SMALL.encode("utf-16"), "devices.csv: is UTF-16; save it as UTF-8; Excel calls this CSV UTF-8"),
        (SMALL.encode().replace(b"dgx-b", b"dgx-\xfc"), "devices.csv:3: is not UTF-8; save it as UTF-8;"),
        (SMALL.encode().replace(b"dgx-b", b"dgx-\0"), "devices.csv:3: "),
    ],
    ids=["utf-16", "latin-1", "nul"],
)
def test_other_encodings_are_refused(tmp_path: Path, data: bytes, said: str) -> None:
    (tmp_path / "fabric.yaml").write_text(yaml.safe_dump(intents.values({"tables": {"devices": "devices.csv"}})))
    (tmp_path / "devices.csv").write_bytes(data)
    with pytest.raises(IntentError) as refusal:
        Project.open(tmp_path)
    (problem,) = refusal.value.problems
    assert str(problem).replace(f"{tmp_path}/", "").startswith(said)


@given(st.binary(max_size=200))
@MANY
def test_no_file_ends_in_a_traceback(tmp_path: Path, data: bytes) -> None:
    file = tmp_path / "devices.csv"
    file.write_bytes(b"role,unit,rail,name\n" + data)
    problems = []
    try:
        table = csv_table.read(file, DeviceEntry)
        problems += table.problems
        assert len(table.rows) == len(table.lines)
    except IntentError as error:
        problems += error.problems
    assert all(problem.remedy and problem.file == str(file) for problem in problems)


ROWS: list[dict[str, Any]] = [
    {"role": "leaf", "unit": 1, "rail": 0, "name": "ls-1", "serial": "MT1", "rack": "r7", "rack_unit": 40},
    {"role": "spine", "slot": 2, "name": "sp-b", "management": "192.0.2.77"},
    {"role": "host", "unit": 2, "slot": 1, "name": "dgx-c", "rack": "r7", "management": "198.51.100.9"},
]


def given_fabric() -> Fabric:
    return intents.fabric(intents.values({"tables": {"devices": ROWS}}))


def test_names_and_numbers_of_tables_are_those_of_the_devices() -> None:
    fabric, plain = given_fabric(), intents.fabric(intents.values())
    leaf, spine, host = fabric.device("ls-1"), fabric.device("sp-b"), fabric.device("dgx-c")
    assert isinstance(leaf, Switch)
    assert isinstance(spine, Switch)
    assert isinstance(host, Host)
    assert (leaf.serial, leaf.rack, leaf.rack_unit, leaf.asn) == ("MT1", "r7", 40, plain.switch("leaf01").asn)
    assert spine.management is not None
    assert (spine.management.address, spine.management.prefix_length) == ("192.0.2.77", 24)
    assert (host.management, host.rack) == ("198.51.100.9", "r7")
    assert shape(fabric) == shape(plain)


def test_two_devices_may_swap_names() -> None:
    rows = [{"role": "leaf", "unit": 1, "rail": rail, "name": f"leaf0{2 - rail}"} for rail in (0, 1)]
    cables = [{"device": "gpu01", "port": "rail0", "peer": "leaf02", "peer_port": "swp9s0"}]
    fabric = intents.fabric(intents.values({"tables": {"devices": rows, "cables": cables}}))
    plain = intents.fabric(intents.values())
    assert [fabric.switch(name).rail for name in ("leaf01", "leaf02")] == [1, 0]
    assert fabric.switch("leaf02").loopback == plain.switch("leaf01").loopback
    assert [(nic.leaf, nic.leaf_port) for nic in fabric.hosts[0].nics] == [("leaf02", "swp9s0"), ("leaf01", "swp1s0")]


def test_limits_and_inventories_use_custom_names() -> None:
    fabric = given_fabric()
    assert [device.name for device in select(fabric, "rack=r7")] == ["ls-1", "dgx-c"]
    assert [device.name for device in select(fabric, "serial=MT*")] == ["ls-1"]
    found = inventory.ansible_inventory(fabric, endpoints(fabric, access.AccessSettings(), Path()))
    hosts: Any = found["all"]
    wanted = ("ansible_host", "netkit_rack", "netkit_rack_unit", "netkit_serial")
    assert {
        name: {key: hosts["hosts"][name][key] for key in wanted if key in hosts["hosts"][name]}
        for name in ("ls-1", "sp-b", "dgx-c")
    } == {
        "ls-1": {"ansible_host": "192.0.2.10", "netkit_rack": "r7", "netkit_rack_unit": 40, "netkit_serial": "MT1"},
        "sp-b": {"ansible_host": "192.0.2.77"},
        "dgx-c": {"ansible_host": "198.51.100.9", "netkit_rack": "r7"},
    }


def test_the_command_writes_tables_that_it_reads(tmp_path: Path) -> None:
    (tmp_path / "fabric.yaml").write_text(yaml.safe_dump(intents.values({"tables": {"devices": ROWS}})))
    done = run("design", "--fabric", tmp_path, "--tables", tmp_path / "own")
    assert (done.returncode, done.stderr) == (0, "")
    counts = {"devices": 10, "cables": 16, "rails": 2, "nics": 8}
    assert done.stdout == "".join(f"{tmp_path}/own/{name}.csv: {count} rows\n" for name, count in counts.items())
    text = (tmp_path / "own" / "devices.csv").read_text(encoding="utf-8")
    rows = list(csv.DictReader(io.StringIO(text)))
    assert rows[0] | dict.fromkeys(("asn", "loopback", "management_gateway", "prefix", "model"), "") == {
        **dict.fromkeys(DeviceEntry.model_fields, ""),
        **{key: str(value) for key, value in ROWS[0].items()},
        "management": "192.0.2.10/24",
    }
    addresses = run("design", "--fabric", tmp_path, "--addresses", "--limit", "ls-1").stdout
    assert "ls-1    leaf  serial number  MT1\nls-1    leaf  rack           r7, unit 40\n" in addresses


def test_ports_of_a_cage_keep_the_lengths_of_their_cables() -> None:
    cables = [{"device": "gpu01", "port": "rail0", "peer": "leaf01", "length_m": 200}]
    fabric = intents.fabric(intents.on_platform("sonic", "202411", {"tables": {"cables": cables}}))
    leaf = fabric.switch("leaf01")
    first, second = (port for port in leaf.host_ports if port.cage == 1)
    (rendered,) = render(fabric, [leaf], Engine())
    lengths = json.loads(rendered.files["config_db.json"])["CABLE_LENGTH"]["AZURE"]
    assert [first.peer, second.peer] == ["gpu01", "gpu02"]
    assert [lengths[first.name], lengths[second.name]] == ["300m", "40m"]


def test_a_revision_uses_its_own_tables(tmp_path: Path) -> None:
    fabric = Path(shutil.copytree(ROOT / "inventory" / "brownfield", tmp_path / "brownfield"))
    git = ("git", "-C", str(tmp_path), "-c", "user.name=n", "-c", "user.email=n@example.net")
    for command in (("init", "-q"), ("add", "."), ("commit", "-q", "-m", "first")):
        subprocess.run([*git, *command], check=True)
    table = fabric / "devices.csv"
    table.write_text(table.read_text(encoding="utf-8").replace(",65012,", ",65112,"), encoding="utf-8")
    difference = Project.open(fabric).compare("HEAD")
    changed = {device.name for device in difference.plan.devices if device.changes}
    assert changed == {"a07-tor-2", "b01-agg-1", "b01-agg-2"}
