"""SONiC in the lab accepts everything netkit renders, and refuses unknown content."""

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from netkit import design
from netkit.hardware import Catalog
from netkit.intent import load
from netkit.lab.node import ConfigRefusedError
from netkit.lab.personalities.sonic.schema import problems, schema
from netkit.lab.personalities.sonic.tables import Tables, parse
from tests.lab.personalities.sonic.bench import DRAINED, TRADITIONAL, UNIFIED, Bench, fabric, files

ROOT = Path(__file__).parents[3]
BRANCHES = ("202305", "202311", "202405", "202411", "202505", "202511")
VLAN = {"attachment": "vlan"}


@pytest.mark.parametrize(
    ("version", "changes"),
    [
        *((version, changes) for version in BRANCHES for changes in ({}, VLAN, DRAINED)),
        *((version, TRADITIONAL) for version in BRANCHES if version >= "202311"),  # 202305 lacks the model's layout
    ],
)
def test_every_branch_accepts_what_is_rendered_for_it(tmp_path: Path, version: str, changes: Mapping[str, Any]) -> None:
    designed = fabric(version, changes)
    for switch in designed.switches:
        folder = tmp_path / switch.name
        folder.mkdir()
        bench = Bench(folder, designed, switch.name)
        (state,) = bench.node.states
        assert state.hostname == switch.name
        assert state.frr.count(f"router bgp {switch.asn}\n") == 1
        assert {port.name for port in state.ports if port.is_enabled} == {port.name for port in switch.ports}


@pytest.mark.parametrize("changes", [{}, VLAN, DRAINED])
def test_unified_mode_is_accepted(tmp_path: Path, changes: Mapping[str, Any]) -> None:
    designed = fabric("202511", UNIFIED, changes)
    for switch in designed.switches:
        folder = tmp_path / switch.name
        folder.mkdir()
        (state,) = Bench(folder, designed, switch.name).node.states
        assert state.frr.count(" interface peer-group ") == len([port for port in switch.ports if port.role != "host"])


def test_unified_mode_with_policy_is_refused_before_its_branch() -> None:
    tables = parse(files(fabric("202511", UNIFIED), "leaf01")["config_db.json"])
    found = problems(tables, schema(202411))
    assert [line for line in found if "route_map_in" in line] == [
        "BGP_PEER_GROUP_AF|default|SPINES|ipv4_unicast: unknown field route_map_in"
    ]


def test_leaves_of_the_shipped_mixed_fabric_are_accepted(tmp_path: Path) -> None:
    designed = design.build(load(ROOT / "inventory" / "mixed").intent, Catalog())
    leaves = [switch for switch in designed.switches if switch.platform == "sonic"]
    assert len(leaves) >= 4
    for switch in leaves:
        folder = tmp_path / switch.name
        folder.mkdir()
        assert len(Bench(folder, designed, switch.name).node.states) == 1


def test_rendered_rows_are_shown_with_the_rows_of_the_image(tmp_path: Path) -> None:
    designed = fabric()
    _, shown, _ = Bench(tmp_path, designed).type("show runningconfiguration all")
    rendered = json.loads(files(designed, "leaf01")["config_db.json"])
    running = json.loads(shown)
    assert running.pop("bgpraw") == ""
    assert running.pop("VERSIONS") == {"DATABASE": {"VERSION": "version_202411_01"}}
    assert len(running.pop("FEATURE")) == 7
    assert running["DEVICE_METADATA"]["localhost"].pop("mac").startswith("02:00:")
    del rendered["FEATURE"]
    assert running == rendered


def leaf(version: str = "202411", changes: Mapping[str, Any] | None = None) -> Tables:
    return parse(files(fabric(version, changes or {}), "leaf01")["config_db.json"])


def put(table: str, key: str, **leaves: str | list[str]) -> Callable[[Tables], object]:
    return lambda tables: tables.setdefault(table, {}).setdefault(key, {}).update(leaves)


def drop(table: str, key: str, leaf: str = "") -> Callable[[Tables], object]:
    return lambda tables: tables[table][key].pop(leaf) if leaf else tables[table].pop(key)


HARMS: list[tuple[Callable[[Tables], object], str]] = [
    (put("QOS", "x"), "QOS: no such table in SONiC 202411"),
    (lambda tables: tables.update(VLAN={}), "VLAN: an empty table cannot be stored"),
    (put("PORT", "Ethernet0", colour="red"), "PORT|Ethernet0: unknown field colour"),
    (put("PORT", "Ethernet0", mtu="9217"), "PORT|Ethernet0: mtu: '9217' does not fit: number 68 9216"),
    (put("PORT", "Ethernet0", mtu=["9216"]), "PORT|Ethernet0: mtu: ['9216'] does not fit: number 68 9216"),
    (put("PORT", "eth7", lanes="1", speed="1"), "PORT|eth7: 'eth7' does not fit the key: match Ethernet[0-9]{1,4}"),
    (drop("PORT", "Ethernet0", "lanes"), "PORT|Ethernet0: lanes is missing"),
    (put("PORT", "Ethernet0", lanes="4,5,6,7"), "PORT: lane 4 belongs to two ports"),
    (put("PORT", "Ethernet0", alias="etp1b"), "PORT: alias etp1b belongs to two ports"),
    (put("PORT_QOS_MAP", "Ethernet0", tc_to_queue_map="X"), "tc_to_queue_map: 'X' does not fit: row TC_TO_QUEUE_MAP"),
    (put("PORT_QOS_MAP", "Ethernet0", pfc_enable=""), "pfc_enable: '' does not fit"),
    (put("PORT_QOS_MAP", "Ethernet0", pfc_enable="3-4"), "pfc_enable: '3-4' does not fit"),
    (put("QUEUE", "Ethernet0|3", wred_profile="X"), "wred_profile: 'X' does not fit: row WRED_PROFILE"),
    (put("QUEUE", "Ethernet0|8"), "QUEUE|Ethernet0|8: '8' does not fit the key"),
    (drop("WRED_PROFILE", "AZURE_LOSSLESS", "green_min_threshold"), "green_max_threshold needs a green_min_threshold"),
    (put("WRED_PROFILE", "AZURE_LOSSLESS", green_max_threshold="1"), "green_max_threshold needs a green_min_threshold"),
    (drop("BUFFER_POOL", "ingress_lossless_pool"), "pool: 'ingress_lossless_pool' does not fit: row BUFFER_POOL"),
    (put("BUFFER_POOL", "ingress_lossless_pool", size="1"), "percentage needs the dynamic buffer model and no size"),
    (put("DEVICE_METADATA", "localhost", buffer_model="traditional"), "only the dynamic buffer model computes"),
    (put("BUFFER_PORT_INGRESS_PROFILE_LIST", "Ethernet0", profile_list="a,b"), "profile_list: 'a,b' does not fit"),
    (put("PFC_WD", "GLOBAL", POLL_INTERVAL="400"), "detection_time is shorter than the poll interval"),
    (put("PFC_WD", "GLOBAL", action="drop"), "PFC_WD|GLOBAL: unknown field action"),
    (put("SCHEDULER", "scheduler.control", weight="5"), "a strict scheduler takes no weight"),
    (put("SCHEDULER", "scheduler.control", pir="5"), "pir needs a cir above 0"),
    (drop("DSCP_TO_TC_MAP", "AZURE"), "dscp_to_tc_map: 'AZURE' does not fit: row DSCP_TO_TC_MAP"),
    (put("DSCP_TO_TC_MAP", "AZURE", **{"64": "0"}), "'64' does not fit: number 0 63"),
    (drop("INTERFACE", "Ethernet0"), "INTERFACE|Ethernet0|10.128.0.0/31: the row Ethernet0 is missing"),
    (put("INTERFACE", "Ethernet0|10.0.0.1"), "'10.0.0.1' does not fit the key: prefix"),
    (put("VLAN", "Vlan1", vlanid="1"), "'Vlan1' does not fit the key"),
    (put("VLAN", "Vlan10", vlanid="11"), "VLAN|Vlan10: vlanid does not match the name"),
    (put("VLAN_MEMBER", "Vlan10|Ethernet0", tagging_mode="untagged"), "'Vlan10' does not fit the key: row VLAN"),
    (drop("MGMT_VRF_CONFIG", "vrf_global", "mgmtVrfEnabled"), "the management VRF is not enabled"),
    (drop("SNMP_USER", "watcher", "SNMP_USER_AUTH_PASSWORD"), "Priv needs SNMP_USER_AUTH_PASSWORD"),
    (put("BGP_NEIGHBOR", "default|Ethernet0", asn="1"), "'default' does not fit the key: row BGP_GLOBALS"),
]


@pytest.mark.parametrize(("harm", "problem"), HARMS, ids=[problem[:60] for _, problem in HARMS])
def test_an_invalid_row_is_refused_with_its_reason(harm: Callable[[Tables], object], problem: str) -> None:
    tables = leaf()
    assert problems(tables, schema(202411)) == []
    harm(tables)
    found = problems(tables, schema(202411))
    assert [line for line in found if problem in line], found


def test_a_port_in_a_vlan_cannot_be_routed() -> None:
    tables = leaf("202411", VLAN)
    tables["INTERFACE"]["Ethernet0"] = {}
    assert problems(tables, schema(202411)) == ["VLAN_MEMBER|Vlan100|Ethernet0: Ethernet0 is a router interface"]


@pytest.mark.parametrize(
    ("given", "reason"),
    [
        ({"config_db.json": "{"}, "not valid JSON"),
        ({"config_db.json": "[]"}, "expected an object of tables"),
        ({"config_db.json": '{"PORT": []}'}, "PORT: expected an object of rows"),
        ({"config_db.json": '{"PORT": {"Ethernet0": {"mtu": 9100}}}'}, "expected a text or a list of texts"),
        ({"config_db.json": '{"PORT": {}, "PORT": {}}'}, "duplicate key PORT"),
        ({"eos.cfg": ""}, "SONiC does not use a file eos.cfg"),
    ],
)
def test_malformed_config_db_files_are_refused(tmp_path: Path, given: dict[str, str], reason: str) -> None:
    bench = Bench(tmp_path, fabric(), is_new=True)
    with pytest.raises(ConfigRefusedError, match=reason):
        bench.sonic.provision(given)


def test_routing_file_belongs_to_split_mode(tmp_path: Path) -> None:
    bench = Bench(tmp_path, fabric("202511"), is_new=True)
    split, unified = files(fabric("202511"), "leaf01"), files(fabric("202511", UNIFIED), "leaf01")
    for given in ({"config_db.json": split["config_db.json"]}, {**unified, "frr.conf": split["frr.conf"]}):
        with pytest.raises(ConfigRefusedError, match=r"frr\.conf is required in split mode"):
            bench.sonic.provision(given)


def test_a_new_switch_has_every_cage_unsplit_and_down(tmp_path: Path) -> None:
    bench = Bench(tmp_path, fabric(), is_new=True)
    (state,) = bench.node.states
    assert (len(state.ports), {port.is_enabled for port in state.ports}) == (64, {False})
    assert (state.hostname, state.frr) == ("sonic", "frr defaults traditional\nhostname sonic\n")
