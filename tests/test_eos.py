"""EOS: golden files, the grammar, and the combined meaning of lines."""

import re
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from netkit.design import Fabric
from netkit.design.traffic import WatchdogTimers
from netkit.hardware import Catalog
from netkit.platforms.eos import view
from netkit.platforms.eos import view_qos as eos_qos
from netkit.platforms.eos.dialects import DIALECTS, alpha_within, dialect, hardware
from netkit.render import Engine, render
from tests import intents
from tests.conftest import Golden
from tests.lanes import examples
from tests.schema import eos

VERSIONS = ("4.32.3F", "4.33.0F", "4.33.4M", "4.35.1F")
DRAINED = {"spine01": {"drain": True}, "leaf01": {"drain_neighbors": ["spine02"]}}
ENGINE = Engine()

THREE_TIER: dict[str, Any] = {
    "topology": "three-tier",
    "ceilings": {"pods": 2, "cores": 2},
    "switches": {
        "spine": {"uplink_breakout": "2x400G"},
        "core": {"model": "DCS-7060X6-64PE", "platform": "eos", "version": "4.35.1F", "breakout": "2x400G", "slots": 2},
    },
    "units": [{"pod": "1-2", "unit": "1", "hosts": 2}],
    "cables": {"core": {"media": "800G-2xSR4", "length_m": 20}},
    "names": None,
}

EXTRAS: dict[str, dict[str, Any]] = {
    "vlan": {"attachment": "vlan"},
    "adaptive routing": {"adaptive_routing": True},
    "another class": {"lossless": {"roce": {"priority": 4, "dscp": [34], "weight": 50}, "best_effort": {"weight": 50}}},
    "own ECN": {"lossless": {"ecn": {400: {"min_bytes": 200_000, "max_bytes": 900_000, "probability_percent": 20}}}},
    "no CNP shaping": {"lossless": {"cnp": {"shape_percent": None}}},
    "slow watchdog": {"lossless": {"watchdog": {"poll_ms": 1000, "restoration_polls": 60, "action": "forward"}}},
    "drains": {"overrides": DRAINED},
    "no services": {"services": {"snmp": None, "login": None, "ntp": [], "dns": [], "syslog": []}},
    "no management": {"management": None},
    "timers": {
        "routing": {"bfd": {"interval_ms": 100, "multiplier": 5}, "max_paths": 128, "keepalive_s": 10, "hold_s": 30}
    },
    "rail-only": {
        "topology": "rail-only",
        "cross_rail": "blocked",
        "switches": {"spine": None},
        "units": [{"unit": 1, "hosts": 4}],
    },
    "three-tier": THREE_TIER,
}


def designed(version: str = "4.35.1F", changes: dict[str, Any] | None = None) -> Fabric:
    return intents.fabric(intents.on_platform("eos", version, changes))


def rendered(fabric: Fabric, name: str) -> str:
    (device,) = render(fabric, [fabric.switch(name)], ENGINE)
    assert set(device.files) == {"eos.cfg"}
    return device.files["eos.cfg"]


def first_boot(fabric: Fabric, name: str) -> dict[str, str]:
    found = view.ztp(fabric, fabric.switch(name))
    return {artifact.file: ENGINE.render(artifact.template, artifact.context, name) for artifact in found}


def block(text: str, header: str) -> list[str]:
    """The lines of one section, stripped, without separators."""
    lines = text.splitlines()
    start = lines.index(header) + 1
    end = next(number for number in range(start, len(lines)) if not lines[number].startswith(" "))
    return [line.strip() for line in lines[start:end] if line.strip() != "!"]


@pytest.mark.parametrize("version", ["4.32.3F", "4.35.1F"])
@pytest.mark.parametrize("attachment", ["p2p", "vlan"])
@pytest.mark.parametrize("name", ["leaf01", "spine01"])
def test_files_equal_golden(golden: Golden, version: str, attachment: str, name: str) -> None:
    golden(f"eos-{version}/{attachment}/{name}/eos.cfg", rendered(designed(version, {"attachment": attachment}), name))


@pytest.mark.parametrize("name", ["leaf01", "spine01"])
def test_drained_files_equal_golden(golden: Golden, name: str) -> None:
    fabric = designed("4.35.1F", {"overrides": DRAINED, "adaptive_routing": True})
    golden(f"eos-4.35.1F/drained/{name}/eos.cfg", rendered(fabric, name))


def test_first_boot_equals_golden(golden: Golden) -> None:
    files = first_boot(designed(), "leaf01")
    assert list(files) == ["startup-config"]
    assert eos.line_problems(files["startup-config"]) == []
    golden("eos-4.35.1F/ztp/leaf01/startup-config", files["startup-config"])


def test_first_boot_needs_a_management_address() -> None:
    assert first_boot(designed(changes={"management": None}), "leaf01") == {}


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("changes", EXTRAS.values(), ids=EXTRAS)
def test_every_line_is_known_to_eos(version: str, changes: dict[str, Any]) -> None:
    fabric = designed(version, changes)
    assert fabric.switches
    for switch in fabric.switches:
        assert eos.problems(rendered(fabric, switch.name), switch.version) == []


@pytest.mark.parametrize("routing", [{"leaf_export": "all"}, {"allowas_in": True, "spine_asn": "unique"}], ids=str)
def test_wider_routing_is_rendered_where_it_permits_no_valley(routing: dict[str, Any]) -> None:
    fabric = designed(
        changes={
            "routing": routing,
            "switches": {"spine": {"slots": 1}},
            "units": [{"unit": 1, "hosts": 2}],
            "rails": 1,
        }
    )
    text = rendered(fabric, "leaf01")
    assert eos.problems(text, "4.35.1F") == []
    assert ("   neighbor SPINES allowas-in 1" in text.splitlines()) == ("allowas_in" in routing)
    wanted = "RM-FABRIC" if "leaf_export" in routing else "RM-LOCAL"
    assert f"   neighbor SPINES route-map {wanted} out" in text.splitlines()


MUTATIONS: dict[str, tuple[str, ...]] = {
    "unknown line": ("   mtu 9214", "   mtu jumbo", "is not a line EOS knows"),
    "wrong section": ("router bfd", "router bfd\n   ipv6 enable", "is not a line EOS knows"),
    "order on an interface": ("   mtu 9214\n   speed 400g-4", "   speed 400g-4\n   mtu 9214", "is out of order"),
    "order of sections": (
        "hostname leaf01\n",
        "",
        "lldp timer 30",
        "hostname leaf01\nlldp timer 30",
        "is out of order",
    ),
    "twice": ("lldp timer 30", "lldp timer 30\nlldp timer 30", "stands there twice"),
    "tab": ("   mtu 9214", "\tmtu 9214", "tab or space at the end"),
    "indent": ("   mtu 9214", "  mtu 9214", "not indented by a multiple of 3"),
    "stored comment": ("! leaf01", "!! leaf01", "a comment EOS would store"),
    "no mark": ("!\nrouter bfd", "router bfd", "has no mark before it"),
    "no such profile": ("service-profile ROCE-400G", "service-profile ROCE-401G", "no service-profile 'ROCE-401G'"),
    "no such route map": ("route-map RM-LOCAL out", "route-map RM-NONE out", "no route-map 'RM-NONE'"),
    "no such prefix list": (
        "prefix-list PL-FABRIC\n   seq",
        "prefix-list PL-OTHER\n   seq",
        "no prefix-list 'PL-FABRIC'",
    ),
    "no such group": ("neighbor SPINES activate", "neighbor LEAVES activate", "no peer-group 'LEAVES'"),
    "no such vlan": ("switchport access vlan 100", "switchport access vlan 101", "no vlan '101'"),
    "no such vrf": ("vrf instance MGMT", "vrf instance OTHER", "no vrf 'MGMT'"),
    "slow polling": ("polling-interval 0.1", "polling-interval 0.2", "watchdog polling 0.2 is more than half of 0.3"),
    "watchdog range": ("default timeout 0.3", "default timeout 61", "is not a line EOS knows"),
    "watchdog action": ("watchdog action drop", "watchdog action no-drop", "is a spelling to refuse"),
    "old PFC": ("   priority-flow-control on", "   priority-flow-control mode on", "is a spelling to refuse"),
    "hyphenated group": ("neighbor SPINES peer group", "neighbor SPINES peer-group", "is a spelling to refuse"),
    "dead weight": ("      no priority\n", "", "a weight without 'no priority' does nothing"),
    "heavy": ("bandwidth percent 10", "bandwidth percent 20", "weights sum to 110"),
    "upside down ECN": (
        "minimum-threshold 150000",
        "minimum-threshold 1500001",
        "marking starts at 1500001, above 1500000",
    ),
    "uncounted ECN": ("      random-detect ecn count\n", "", "lossless without counted ECN"),
    "lost DSCP": ("24 25 26", "24 25", "1 DSCPs are left to EOS's defaults"),
    "no QoS": ("   service-profile ROCE-400G\n", "", "has no QoS profile"),
    "no IPv6": ("   ipv6 enable\n", "", "has no IPv6 for an unnumbered session"),
    "stale ARP": ("arp aging timeout 1080", "arp aging timeout 14400", "silent hosts are flooded"),
    "other syslog": (
        "MGMT local-interface Management1\n!\nplatform",
        "MGMT source-interface Management1\n!\nplatform",
        "not in this release",
    ),
    "other portfast": ("spanning-tree portfast edge", "spanning-tree portfast", "is not kept"),
    "other layout": (
        "priority-flow-control pause watchdog default timeout",
        "!\npriority-flow-control pause watchdog default timeout",
        "the PFC lines stand in the wrong section",
    ),
}


@pytest.mark.parametrize("mutation", MUTATIONS.values(), ids=MUTATIONS)
def test_the_grammar_detects_errors(mutation: tuple[str, ...]) -> None:
    text = rendered(designed(changes={"attachment": "vlan"}), "leaf01")
    *replacements, expected = mutation
    for old, new in zip(replacements[::2], replacements[1::2], strict=True):
        assert old in text
        text = text.replace(old, new)
    assert any(expected in problem for problem in eos.problems(text, "4.35.1F"))


@pytest.mark.parametrize(
    ("version", "since"),
    [
        ("4.32.0F", "4.32"),
        ("4.32.9M", "4.32"),
        ("4.33.1F", "4.33"),
        ("4.33.2F", "4.33.2"),
        ("4.34.2F", "4.33.2"),
        ("4.36.0F", "4.35"),
    ],
)
def test_each_release_has_its_dialect(version: str, since: str) -> None:
    assert dialect(version).since == since
    assert since in {known.since for known in DIALECTS}


@pytest.mark.parametrize(
    ("speed_gbps", "lanes", "keyword"),
    [(800, 8, "800g-8"), (400, 8, "400g-8"), (400, 4, "400g-4"), (200, 2, "200g-2"), (50, 1, "50g-1")],
)
def test_speed_keyword_follows_speed_and_lanes(speed_gbps: int, lanes: int, keyword: str) -> None:
    model = Catalog().switch("DCS-7060X6-64PE")
    split = replace(model.splits[0], speed_gbps=speed_gbps, lanes_per_port=lanes)
    assert hardware(model).speed_keyword(split) == keyword


@pytest.mark.parametrize(
    ("poll_ms", "detection", "restoration", "expected"),
    [
        (100, 3, 6, ("0.3", "0.6", "0.1")),
        (10, 2, 2, ("0.02", "0.02", "0.01")),
        (15, 3, 3, ("0.05", "0.05", "0.015")),
        (1000, 50, 60, ("50", "60", "1")),
    ],
)
def test_watchdog_times_stay_within_the_range_of_eos(
    poll_ms: int, detection: int, restoration: int, expected: tuple[str, str, str]
) -> None:
    times = eos_qos.watchdog_times(WatchdogTimers(poll_ms, detection, restoration, "drop"))
    assert (times.timeout_s, times.recovery_s, times.polling_s) == expected


@pytest.mark.parametrize(("percent", "alpha"), [(1, "1/128"), (10, "1/16"), (50, "1"), (90, "8"), (99, "8")])
def test_a_single_queue_stays_within_its_share(percent: int, alpha: str) -> None:
    assert alpha_within(percent) == alpha


def test_a_whole_drain_quiesces_the_system_unit() -> None:
    text = rendered(designed(changes={"overrides": DRAINED}), "spine01")
    assert block(text, "maintenance") == [
        "profile bgp GSHUT",
        "initiator route-map RM-GSHUT inout",
        "profile bgp GSHUT default",
        "unit System",
        "quiesce",
    ]
    assert block(text, "route-map RM-GSHUT permit 10") == ["set community GSHUT additive", "set local-preference 0"]


def test_a_neighbor_drain_names_only_the_ports_towards_it() -> None:
    text = rendered(designed(changes={"overrides": DRAINED}), "leaf01")
    assert block(text, "group interface DRAIN-spine02") == [
        "interface Ethernet33/5",
        "maintenance profile bgp GSHUT",
        "exit",
    ]
    assert block(text, "maintenance")[-3:] == ["unit DRAIN-spine02", "group interface DRAIN-spine02", "quiesce"]
    assert "unit System" not in text


def test_a_drain_leaves_every_session_up() -> None:
    before, after = (rendered(designed(changes=changes), "leaf01") for changes in ({}, {"overrides": DRAINED}))
    asn = designed().switch("leaf01").asn
    assert block(before, f"router bgp {asn}") == block(after, f"router bgp {asn}")
    assert "maintenance" not in before


def test_communities_are_sent_on_every_session() -> None:
    fabric = designed(changes=THREE_TIER)
    for switch in fabric.switches:
        lines = block(rendered(fabric, switch.name), f"router bgp {switch.asn}")
        groups = {line.split()[1] for line in lines if line.endswith("peer group")}
        assert {line.split()[1] for line in lines if line.endswith("send-community")} == groups
        sessions = [line.split() for line in lines if line.startswith("neighbor interface")]
        assert [(words[2], int(words[-1])) for words in sessions] == [
            (port.name, port.peer_asn) for port in switch.fabric_ports
        ]
        assert {words[4] for words in sessions} == groups


def test_headroom_is_the_largest_of_the_switch_and_only_where_the_chip_supports_it() -> None:
    fabric = designed(changes={"cables": {"host": {"length_m": 5}, "spine": {"length_m": 29}}})
    leaf = fabric.switch("leaf01")
    largest = max(port.profile.headroom.xoff_bytes for port in leaf.ports if port.profile.headroom)
    assert f"   ingress headroom bytes {largest}\n" in rendered(fabric, "leaf01")
    chip = hardware(leaf.model)
    assert eos_qos.build(fabric.lossless, leaf, replace(chip, has_mmu_profile=False)).mmu is None


def test_secrets_are_placeholders_and_unnamed_ones_disable_their_feature() -> None:
    text = rendered(designed(), "leaf01")
    assert re.findall(r"@secret:(\w+)@", text) == ["LOGIN_HASH", "SNMP_AUTH", "SNMP_PRIV"]
    bare = {"services": {"snmp": {"auth_secret": None}, "login": {"password_hash_secret": None}}}
    without = rendered(designed(changes=bare), "leaf01")
    assert "@secret" not in without
    assert not re.search(r"^(username|snmp-server)", without, re.MULTILINE)
    assert "! no services.login in the intent" in without


@pytest.mark.parametrize(("version", "keyword"), [("4.32.3F", "source-interface"), ("4.33.0F", "local-interface")])
def test_syslog_leaves_through_the_management_interface(version: str, keyword: str) -> None:
    text = rendered(designed(version, {"services": {"syslog": [{"address": "192.0.2.4"}]}}), "leaf01")
    assert eos.problems(text, version) == []
    assert f"logging vrf MGMT {keyword} Management1" in text.splitlines()


def test_adaptive_routing_is_dynamic_load_balancing() -> None:
    line = "ip hardware fib load-balance distribution dynamic"
    assert line in rendered(designed(changes={"adaptive_routing": True}), "leaf01").splitlines()
    assert line not in rendered(designed(), "leaf01").splitlines()


def test_a_strict_queue_below_a_weighted_one_gives_a_warning() -> None:
    low = {"lossless": {"cnp": {"priority": 2}}}
    assert "! check strict queue 2" in rendered(designed(changes=low), "leaf01")
    assert "! check strict queue" not in rendered(designed(), "leaf01")


def test_a_new_host_adds_its_interface_and_changes_nothing_else() -> None:
    one, two = (rendered(designed(changes={"units": [{"unit": "1-2", "hosts": hosts}]}), "leaf01") for hosts in (1, 2))
    added = "\n".join(
        ["interface Ethernet1/5", *(f"   {line}" for line in block(two, "interface Ethernet1/5")), "!", ""]
    )
    assert one == two.replace(added, "")


@settings(max_examples=examples(25))
@given(
    priorities=st.permutations(range(7)),
    dscp=st.integers(0, 47),
    weight=st.integers(0, 100),
    units=st.integers(1, 4),
    hosts=st.integers(1, 4),
    version=st.sampled_from(VERSIONS),
    attachment=st.sampled_from(["p2p", "vlan"]),
    poll_ms=st.integers(10, 1000),
    pool_percent=st.integers(20, 99),
)
def test_every_dscp_maps_to_its_class(
    priorities: list[int],
    dscp: int,
    weight: int,
    units: int,
    hosts: int,
    version: str,
    attachment: str,
    poll_ms: int,
    pool_percent: int,
) -> None:
    roce, cnp, rest = priorities[:3]
    lossless = {
        "roce": {"priority": roce, "dscp": [dscp], "weight": weight},
        "cnp": {"priority": cnp},
        "best_effort": {"priority": rest, "weight": 100 - weight},
        "watchdog": {"poll_ms": poll_ms},
        "pool_percent": pool_percent,
    }
    changes = {
        "lossless": lossless,
        "attachment": attachment,
        "units": [{"unit": f"1-{units}", "hosts": hosts}],
        "purpose": "lab",
    }
    fabric = designed(version, changes)
    profile = fabric.lossless
    wanted = {number: profile.priority_to_class[priority] for number, priority in enumerate(profile.dscp_to_priority)}
    for switch in fabric.switches:
        text = rendered(fabric, switch.name)
        assert eos.problems(text, version) == []
        assert eos.dscp_classes(text) == wanted
        assert f"   priority-flow-control priority {roce} no-drop" in text.splitlines()
