"""SONiC: golden files, the schema, the dialects, and the path of a packet through the maps."""

import subprocess
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from netkit.design import Fabric
from netkit.errors import DesignError, RenderError
from netkit.platforms.frr.view import FrrRouting
from netkit.platforms.ownership import declared
from netkit.platforms.sonic import view as sonic_view
from netkit.platforms.sonic.dialects import DIALECTS, dialect
from netkit.render import Engine, render
from tests import intents
from tests.conftest import Golden
from tests.lanes import examples
from tests.schema import sonic
from tests.schema.sonic import Tables

BRANCHES = tuple(branch.since for branch in DIALECTS)
ENGINE = Engine()
UNIFIED = {"switches": {"leaf": {"routing_mode": "unified"}, "spine": {"routing_mode": "unified"}}}
ARISTA = {"switches": {"leaf": {"model": "DCS-7060X6-64PE"}, "spine": {"model": "DCS-7060X6-64PE"}}}
DRAINED = {"overrides": {"spine01": {"drain": True}, "leaf01": {"drain_neighbors": ["spine02"]}}}
BARE = {
    "management": None,
    "services": {"ntp": ["192.0.2.2"], "dns": [], "snmp": None, "login": None},
}


def fabric(version: str = "202411", *changes: dict[str, Any]) -> Fabric:
    together: dict[str, Any] = {}
    for change in changes:
        for key, value in change.items():
            together[key] = {**together.get(key, {}), **value} if isinstance(value, dict) else value
    return intents.fabric(intents.on_platform("sonic", version, together))


def files(designed: Fabric, name: str, *, ztp: bool = False) -> dict[str, str]:
    (device,) = render(designed, [designed.switch(name)], ENGINE, ztp=ztp)
    return dict(device.files)


def tables(designed: Fabric, name: str = "leaf01") -> Tables:
    return sonic.parse(files(designed, name)["config_db.json"])


@pytest.mark.parametrize("name", ["leaf01", "spine01"])
@pytest.mark.parametrize(
    ("folder", "version", "changes"),
    [
        ("sonic-202411/p2p", "202411", {}),
        ("sonic-202411/vlan", "202411", {"attachment": "vlan"}),
        ("sonic-202505/traditional", "202505", ARISTA),
        ("sonic-202511/unified", "202511", UNIFIED | DRAINED),
    ],
)
def test_files_equal_golden(golden: Golden, folder: str, version: str, changes: dict[str, Any], name: str) -> None:
    for file, text in files(fabric(version, changes), name).items():
        golden(f"{folder}/{name}/{file}", text)


def test_first_boot_files_equal_golden(golden: Golden) -> None:
    designed = fabric()
    first_boot = {file: text for file, text in files(designed, "leaf01", ztp=True).items() if file.startswith("ztp")}
    assert sorted(first_boot) == ["ztp.sh", "ztp_config_db.json"]
    for file, text in first_boot.items():
        golden(f"sonic-202411/ztp/leaf01/{file}", text)
    alone = sonic.parse(first_boot["ztp_config_db.json"])
    running = tables(designed)
    (row,) = running["MGMT_INTERFACE"].values()
    # The resolver has no VRF of its own, and no name is resolved before the first deploy.
    assert row.pop("forced_mgmt_routes") == ["192.0.2.3/32"]
    assert {name: running[name] for name in alone if name != "DEVICE_METADATA"} == {
        name: rows for name, rows in alone.items() if name != "DEVICE_METADATA"
    }
    assert alone["DEVICE_METADATA"] == {"localhost": {"hostname": "leaf01"}}


def test_first_boot_script_is_a_script() -> None:
    script = files(fabric(), "leaf01", ztp=True)["ztp.sh"]
    assert script.startswith("#!/bin/bash\n")
    subprocess.run(["bash", "-n"], input=script, text=True, check=True, timeout=10)


def test_switch_without_management_address_has_no_first_boot_files() -> None:
    assert sorted(files(fabric("202411", BARE), "leaf01", ztp=True)) == ["config_db.json", "frr.conf"]


EXTRAS: list[dict[str, Any]] = [
    {},
    {"attachment": "vlan"},
    ARISTA,
    {"switches": {"leaf": {"model": "M2-W6940-64OC"}, "spine": {"model": "M2-W6940-64OC"}}},
    DRAINED,
    BARE,
    {"lossless": {"roce": {"priority": 4, "dscp": [34], "weight": 50}, "best_effort": {"weight": 50}}},
    {"lossless": {"cnp": {"priority": 7, "dscp": 56, "shape_percent": None}}},
    {"lossless": {"watchdog": {"poll_ms": 10, "detection_polls": 2, "restoration_polls": 2}}},
    {"lossless": {"headroom": {400: {"xoff_bytes": 300_000}}}},
    {"topology": "rail-only", "cross_rail": "blocked", "switches": {"spine": None}, "units": [{"unit": 1, "hosts": 3}]},
]


FIRST_BRANCH = {"DCS-7060X6-64PE": "202311", "M2-W6940-64OC": "202411"}


def has_layout(version: str, changes: dict[str, Any]) -> bool:
    models = [tier["model"] for tier in changes.get("switches", {}).values() if tier and "model" in tier]
    return all(version >= FIRST_BRANCH.get(model, version) for model in models)


@pytest.mark.parametrize(
    ("version", "changes"),
    [(version, changes) for version in BRANCHES for changes in EXTRAS if has_layout(version, changes)],
)
def test_every_switch_satisfies_the_schema(version: str, changes: dict[str, Any]) -> None:
    designed = fabric(version, changes)
    assert designed.switches
    for switch in designed.switches:
        assert sonic.problems(tables(designed, switch.name), int(version)) == []


@pytest.mark.parametrize("changes", [{}, DRAINED, {"attachment": "vlan"}, {"routing": {"allowas_in": True}}])
def test_unified_mode_satisfies_the_schema(changes: dict[str, Any]) -> None:
    designed = fabric("202511", UNIFIED, changes)
    for switch in designed.switches:
        found = files(designed, switch.name)
        assert sorted(found) == ["config_db.json"]
        assert sonic.problems(sonic.parse(found["config_db.json"]), 202511) == []


def test_a_mac_address_in_the_intent_is_rendered() -> None:
    given = fabric("202411", {"overrides": {"leaf01": {"system_mac": "00:11:22:33:44:55"}}})
    assert tables(given)["DEVICE_METADATA"]["localhost"]["mac"] == "00:11:22:33:44:55"
    assert "mac" not in tables(given, "leaf02")["DEVICE_METADATA"]["localhost"]


@pytest.mark.parametrize("version", BRANCHES)
def test_branch_gets_the_fields_it_knows(version: str) -> None:
    found, branch = tables(fabric(version)), int(version)
    metadata = found["DEVICE_METADATA"]["localhost"]
    known = {
        "router id": "bgp_router_id" in metadata,
        "wcmp": "wcmp_enabled" in found["BGP_DEVICE_GLOBAL"]["STATE"],
        "hash algorithm": "ecmp_hash_algorithm" in found["SWITCH_HASH"]["GLOBAL"],
        "ntp options": found["NTP_SERVER"]["192.0.2.2"] != {},
        "snmp address": "SNMP_AGENT_ADDRESS_CONFIG" in found,
        "pool percentage": "percentage" in found["BUFFER_POOL"]["ingress_lossless_pool"],
        "ecn counters": "WRED_ECN_QUEUE" in found["FLEX_COUNTER_TABLE"],
    }
    assert known == {
        "router id": branch >= 202405,
        "wcmp": branch >= 202411,
        "hash algorithm": branch >= 202311,
        "ntp options": branch >= 202311,
        "snmp address": branch >= 202311,
        "pool percentage": branch >= 202405,
        "ecn counters": branch >= 202505,
    }


def test_release_of_a_branch_takes_the_branch_dialect() -> None:
    assert tables(fabric("202411.3")) == tables(fabric("202411"))


def test_ports_of_a_split_cage_without_a_cable_are_down() -> None:
    ports = tables(fabric("202411", {"units": [{"unit": 1, "hosts": 3}]}))["PORT"]
    shown = {name: (row["alias"], row["subport"], row["lanes"], row["admin_status"]) for name, row in ports.items()}
    assert dict(list(shown.items())[:4]) == {
        "Ethernet0": ("etp1a", "1", "0,1,2,3", "up"),
        "Ethernet4": ("etp1b", "2", "4,5,6,7", "up"),
        "Ethernet8": ("etp2a", "1", "8,9,10,11", "up"),
        "Ethernet12": ("etp2b", "2", "12,13,14,15", "down"),
    }
    assert ports["Ethernet12"]["description"] == "unused"


def test_a_model_with_its_own_lane_list_gets_it() -> None:
    changes = {"switches": {"leaf": {"model": "M2-W6940-64OC"}, "spine": {"model": "M2-W6940-64OC"}}}
    ports = tables(fabric("202411", changes))["PORT"]
    shown = [(name, row["alias"], row["index"], row["lanes"]) for name, row in ports.items()]
    assert shown[:2] == [("Ethernet1", "Eth1/1", "0", "41,42,43,44"), ("Ethernet5", "Eth1/2", "0", "45,46,47,48")]


def test_whole_cage_has_the_plain_alias_and_no_subport() -> None:
    changes: dict[str, Any] = {
        "switches": {"leaf": {"uplink_breakout": "1x800G"}, "spine": {"breakout": "1x800G"}},
        "cables": {"spine": {"media": "800G-DR8", "length_m": 20}},
    }
    found = tables(fabric("202411", changes))
    assert found["BREAKOUT_CFG"]["Ethernet256"] == {"brkout_mode": "1x800G[400G,200G,100G,50G,40G,25G,10G]"}
    port = found["PORT"]["Ethernet256"]
    assert (port["alias"], port["subport"], port["speed"]) == ("etp33", "0", "800000")
    # The faster ports have the profile that a patch can change, the slower ones another.
    assert found["QUEUE"]["Ethernet256|3"]["wred_profile"] == "AZURE_LOSSLESS"
    assert found["QUEUE"]["Ethernet0|3"]["wred_profile"] == "AZURE_LOSSLESS_400G"
    assert found["WRED_PROFILE"]["AZURE_LOSSLESS"]["green_max_threshold"] == str(30 * 800 * 125)
    assert found["WRED_PROFILE"]["AZURE_LOSSLESS_400G"]["green_max_threshold"] == str(30 * 400 * 125)


def test_a_traditional_model_has_the_designed_headroom_in_full() -> None:
    designed = fabric("202505", ARISTA)
    found, switch = tables(designed), designed.switch("leaf01")
    for port in switch.ports:
        room, name = port.profile.headroom, found["BUFFER_PG"][f"{port.name}|3"]["profile"]
        assert room is not None
        assert name == f"pg_lossless_400000_{found['CABLE_LENGTH']['AZURE'][port.name]}_profile"
        assert found["BUFFER_PROFILE"][name] == {
            "pool": "ingress_lossless_pool",
            "size": str(room.size_bytes),
            "xon": str(room.xon_bytes),
            "xoff": str(room.xoff_bytes),
            "xon_offset": str(room.xon_offset_bytes),
            "dynamic_th": "0",
        }


def test_dynamic_model_references_the_row_of_the_vendor_table() -> None:
    designed = fabric()
    found = tables(designed)
    for port in designed.switch("leaf01").ports:
        room = port.profile.headroom
        assert room is not None
        assert found["BUFFER_PG"][f"{port.name}|3"] == {"profile": "NULL"}
        assert found["CABLE_LENGTH"]["AZURE"][port.name] == f"{room.table_cable_m:g}m"
    assert found["LOSSLESS_TRAFFIC_PATTERN"] == {"AZURE": {"mtu": "1024", "small_packet_percentage": "100"}}


@pytest.mark.parametrize("model", ["SN5600", "SN4700"])
def test_dynamic_model_reserves_a_headroom_of_the_user(model: str) -> None:
    split = {"SN5600": "2x400G", "SN4700": "1x400G"}[model]
    leaf = {"model": model, "host_breakout": split, "uplink_breakout": split}
    spine = {"model": model, "breakout": split}
    cables = {kind: {"media": "400G-DR4", "length_m": 30} for kind in ("host", "spine")} if model == "SN4700" else {}
    changes = {"switches": {"leaf": leaf, "spine": spine}, "lossless": {"headroom": {400: {"xoff_bytes": 500_000}}}}
    found = tables(fabric("202411", changes, {"cables": cables} if cables else {}))
    name = found["BUFFER_PG"]["Ethernet0|3"]["profile"]
    profile = found["BUFFER_PROFILE"][name]
    # A port of eight lanes has one frame of the largest size more, as in SONiC's own table.
    frame = 9216 if model == "SN4700" else 0
    assert (profile["xoff"], profile["headroom_type"]) == ("500000", "static")
    assert int(profile["size"]) == int(profile["xon"]) + int(profile["xoff"]) + frame


def test_unknown_headroom_is_refused_where_it_must_be_written_out() -> None:
    designed = fabric("202505", ARISTA)
    leaf = designed.switch("leaf01")
    ports = tuple(replace(port, profile=replace(port.profile, headroom=None)) for port in leaf.ports)
    with pytest.raises(RenderError) as caught:
        sonic_view.build(designed, replace(leaf, ports=ports), FrrRouting(), dialect("202505"))
    assert str(caught.value) == (
        "no headroom is known for DCS-7060X6-64PE at 400G and 30 m; give lossless.headroom for 400"
    )


@pytest.mark.parametrize(
    ("version", "hwsku"),
    [("202305", "ACS-SN5600"), ("202311", "Mellanox-SN5600-O128"), ("202411.3", "Mellanox-SN5600-O128")],
)
def test_branch_gets_a_layout_it_has(version: str, hwsku: str) -> None:
    assert tables(fabric(version))["DEVICE_METADATA"]["localhost"]["hwsku"] == hwsku


def test_model_a_branch_has_no_layout_for_is_refused() -> None:
    changes = {"switches": {"leaf": {"model": "DCS-7060X6-64PE-B"}, "spine": {"model": "DCS-7060X6-64PE-B"}}}
    with pytest.raises(DesignError, match=r"no source states hwsku of DCS-7060X6-64PE-B on SONiC \(community\) 202411"):
        intents.fabric(intents.on_platform("sonic", "202411", changes))


def test_model_without_sonic_data_is_refused_before_anything_is_rendered() -> None:
    models = {"switches": {"leaf": {"model": "AS9817-64D"}, "spine": {"model": "AS9817-64D"}}}
    with pytest.raises(DesignError, match="no source states buffer_pools"):
        fabric("202411", models, {"lossless": {"headroom": {400: {"xoff_bytes": 400_000}}}})


@pytest.mark.parametrize(
    ("times", "row", "poll"),
    [
        ({"poll_ms": 10, "detection_polls": 2, "restoration_polls": 2}, ("100", "100"), "100"),
        ({"poll_ms": 200, "detection_polls": 2, "restoration_polls": 3}, ("400", "600"), "200"),
        ({"poll_ms": 1000, "detection_polls": 5, "restoration_polls": 60}, ("5000", "60000"), "1000"),
    ],
)
def test_watchdog_times_stay_within_the_range_of_the_table(
    times: dict[str, int], row: tuple[str, str], poll: str
) -> None:
    found = tables(fabric("202411", {"lossless": {"watchdog": times}}))["PFC_WD"]
    assert found["GLOBAL"] == {"POLL_INTERVAL": poll}
    assert found["Ethernet0"] == {"action": "drop", "detection_time": row[0], "restoration_time": row[1]}


def test_cnp_queue_is_strict_and_capped_in_bytes_a_second() -> None:
    found = tables(fabric("202411", {"lossless": {"cnp": {"shape_percent": 5}}}))
    name = found["QUEUE"]["Ethernet0|6"]["scheduler"]
    assert found["SCHEDULER"][name] == {
        "type": "STRICT",
        "meter_type": "bytes",
        "cir": "2500000000",
        "pir": "2500000000",
    }
    unshaped = tables(fabric("202411", {"lossless": {"cnp": {"shape_percent": None}}}))
    assert unshaped["SCHEDULER"][unshaped["QUEUE"]["Ethernet0|6"]["scheduler"]] == {"type": "STRICT"}


def test_drain_uses_frr_and_not_the_switch_of_sonic() -> None:
    designed = fabric("202411", DRAINED)
    assert tables(designed, "spine01")["BGP_DEVICE_GLOBAL"]["STATE"]["tsa_enabled"] == "false"
    assert " bgp graceful-shutdown\n" in files(designed, "spine01")["frr.conf"]
    lines = files(designed, "leaf01")["frr.conf"].splitlines()
    drained = next(port.name for port in designed.switch("leaf01").fabric_ports if port.peer == "spine02")
    assert [line.strip() for line in lines if drained in line and "route-map" in line] == [
        f"neighbor {drained} route-map FROM-SPINES-DRAINED in",
        f"neighbor {drained} route-map TO-SPINES-DRAINED out",
    ]
    unified = tables(fabric("202511", UNIFIED, DRAINED), "leaf01")
    assert unified["BGP_NEIGHBOR_AF"] == {
        f"default|{drained}|ipv4_unicast": {
            "admin_status": "up",
            "route_map_in": ["FROM-SPINES-DRAINED"],
            "route_map_out": ["TO-SPINES-DRAINED"],
        }
    }


def test_unified_mode_refuses_bfd_timers_it_cannot_set() -> None:
    designed = fabric("202511", UNIFIED, {"routing": {"bfd": {"interval_ms": 100}}})
    with pytest.raises(RenderError, match="cannot set the BFD timers of a peer group"):
        tables(designed)


def test_every_mode_starts_bfdd() -> None:
    # The container starts bfdd only with frrcfgd, also where frrcfgd has nothing to configure.
    for designed in (fabric(), fabric("202511", UNIFIED)):
        assert tables(designed)["DEVICE_METADATA"]["localhost"]["frr_mgmt_framework_config"] == "true"


@pytest.mark.parametrize("user", ["abc", "a" * 33])
def test_snmp_user_unsupported_by_sonic_is_refused(user: str) -> None:
    with pytest.raises(RenderError, match="use 4 to 32 characters"):
        tables(fabric("202411", {"services": {"snmp": {"user": user}}}))


def test_snmp_without_secrets_has_no_user() -> None:
    found = tables(fabric("202411", {"services": {"snmp": {"auth_secret": None, "priv_secret": None}}}))
    assert {"SNMP_USER", "SNMP_AGENT_ADDRESS_CONFIG"} & set(found) == set()
    assert found["SNMP"] == {"CONTACT": {"Contact": "noc"}, "LOCATION": {"Location": "row 3"}}


def test_template_declares_every_table_it_renders() -> None:
    owned = {path[0] for path in (*declared("sonic").owned, *declared("sonic").claimed)}
    for designed in (
        fabric("202505", ARISTA),
        fabric("202511", UNIFIED, DRAINED),
        fabric("202411", {"attachment": "vlan"}),
    ):
        assert set(tables(designed)) - owned == set()


CLASSES = st.tuples(st.permutations(range(8)), st.permutations(range(64))).map(
    lambda drawn: {
        "roce": {"priority": drawn[0][0], "dscp": sorted(drawn[1][: 1 + drawn[0][3] % 3]), "weight": 10 + drawn[0][4]},
        "cnp": {"priority": drawn[0][1], "dscp": drawn[1][10], "shape_percent": drawn[0][5] or None},
        "best_effort": {"priority": drawn[0][2], "weight": 90 - drawn[0][4]},
    }
)


@settings(max_examples=examples(40))
@given(
    lossless=CLASSES,
    version=st.sampled_from(BRANCHES),
    attachment=st.sampled_from(["p2p", "vlan"]),
    hosts=st.integers(1, 4),
    is_arista=st.booleans(),
)
def test_every_dscp_maps_to_the_class_of_the_profile(
    lossless: dict[str, Any], version: str, attachment: str, hosts: int, *, is_arista: bool
) -> None:
    assume(has_layout(version, ARISTA if is_arista else {}))
    changes: dict[str, Any] = {"lossless": lossless, "attachment": attachment, "units": [{"unit": 1, "hosts": hosts}]}
    designed = fabric(version, ARISTA if is_arista else {}, changes)
    profile = designed.lossless
    for switch in designed.switches:
        found = tables(designed, switch.name)
        assert sonic.problems(found, int(version)) == []
        for port in switch.ports:
            row = found["PORT_QOS_MAP"][port.name]
            queues = found["TC_TO_QUEUE_MAP"][row["tc_to_queue_map"]]
            groups = found["TC_TO_PRIORITY_GROUP_MAP"][row["tc_to_pg_map"]]
            landed: dict[str, dict[str, set[str]]] = {
                traffic.name: {"queue": set(), "group": set()} for traffic in profile.classes
            }
            for traffic in profile.classes:
                for dscp in traffic.dscps:
                    traffic_class = found["DSCP_TO_TC_MAP"][row["dscp_to_tc_map"]][str(dscp)]
                    landed[traffic.name]["queue"].add(queues[traffic_class])
                    landed[traffic.name]["group"].add(groups[traffic_class])
            assert landed == {
                traffic.name: {"queue": {str(traffic.priority)}, "group": {str(traffic.priority)}}
                for traffic in profile.classes
            }
            assert row["pfc_enable"] == row["pfcwd_sw_enable"] == str(profile.roce.priority)
