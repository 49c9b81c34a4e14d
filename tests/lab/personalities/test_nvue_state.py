"""NVUE in the lab: FRR, QoS and ports of a configuration; differences and merging of trees."""

import contextlib
import os
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from netkit.hardware import Catalog
from netkit.lab.personalities.nvue import rules
from netkit.lab.personalities.nvue.command_line import parse_change, read
from netkit.lab.personalities.nvue.schema import CumulusSwitch, Issue, NvueSchemaNode, checked, merged, schema
from netkit.lab.personalities.nvue.state import switch_state
from netkit.lab.personalities.nvue.system import NvueCommandError
from netkit.lab.personalities.nvue.tree import Tree, difference, dump, leaves, load, without
from netkit.lab.state import EcnState, QosState, SchedulerState, SwitchState, WatchdogState
from tests import intents
from tests.conftest import UPDATE
from tests.lab.personalities.nvue.bench import desk, rendered
from tests.lanes import examples
from tests.random_intents import intents as random_intents

FOLDER = Path(__file__).parent / "nvue" / "frr"
SN5600 = Catalog().switch("SN5600")
KNOWN = schema((5, 16))
CASES: dict[str, tuple[str, str, dict[str, Any]]] = {
    "leaf-p2p-5.14": ("5.14.0", "leaf01", {}),
    "leaf-vlan-5.16": ("5.16.1", "leaf01", {"attachment": "vlan"}),
    "leaf-drained-neighbor": ("5.16.1", "leaf01", {"overrides": {"leaf01": {"drain_neighbors": ["spine02"]}}}),
    "spine-drained": ("5.16.1", "spine01", {"overrides": {"spine01": {"drain": True}}}),
    "leaf-allowas": (
        "5.16.1",
        "leaf01",
        {"routing": {"allowas_in": True, "bfd": {"interval_ms": 100, "multiplier": 5}}},
    ),
}


def tree_of(known: NvueSchemaNode, text: str) -> Tree:
    items = load(text)
    assert isinstance(items, list)
    issues: list[Issue] = []
    tree = checked(known, items[0]["set"], issues)
    assert issues == []
    assert isinstance(tree, dict)
    return tree


@pytest.mark.parametrize("case", CASES)
def test_frr_configuration_matches_the_golden_file(case: str) -> None:
    version, name, changes = CASES[case]
    fabric = intents.fabric(intents.on_platform("nvue", version, changes))
    chassis = CumulusSwitch(SN5600, version)
    text = switch_state(tree_of(schema(chassis.version), rendered(fabric, name)["startup.yaml"]), chassis).frr
    file = FOLDER / f"{case}.conf"
    if os.environ.get(UPDATE):
        file.write_text(text, encoding="utf-8")
    assert text == file.read_text(encoding="utf-8")


def state(*lines: str, version: str = "5.16.1") -> SwitchState:
    """The state after some commands on an unconfigured switch."""
    chassis = CumulusSwitch(SN5600, version)
    known = schema(chassis.version)
    tree: Tree = {}
    for line in lines:
        tree = merged(known, tree, parse_change(known, "set", line.split()).set)
    assert rules.broken(tree, chassis) == []
    return switch_state(tree, chassis)


def qos(*lines: str) -> QosState:
    (port,) = state("interface swp1 link state up", *lines).ports
    return port.qos


LOSSLESS = ("qos roce state enabled", "qos roce mode lossless")


def test_roce_mode_brings_its_documented_defaults() -> None:
    default = EcnState(150_000, 1_500_000, 100)
    half = SchedulerState("weighted", 50)
    assert qos(*LOSSLESS) == QosState(
        priority_of_dscp=tuple(dscp // 8 for dscp in range(64)),
        class_of_priority=(0, 0, 0, 3, 0, 0, 6, 0),
        pfc_priorities=frozenset({3}),
        ecn={0: default, 3: default},
        schedulers={0: half, 3: half, 6: SchedulerState("strict")},
        watchdog=None,
        cable_length_m=100,
    )


def test_a_switch_without_roce_has_no_pfc_and_trusts_no_dscp() -> None:
    plain = qos()
    assert (plain.pfc_priorities, plain.priority_of_dscp, plain.cable_length_m) == (frozenset(), (), 0)
    assert plain.class_of_priority == tuple(range(8))
    assert plain.ecn == {0: EcnState(150_000, 1_500_000, 100)}


def test_lossy_roce_marks_without_pauses() -> None:
    lossy = qos("qos roce state enabled", "qos roce mode lossy")
    assert (lossy.pfc_priorities, sorted(lossy.ecn)) == (frozenset(), [0, 3])


@pytest.mark.parametrize(
    ("lines", "wanted"),
    [
        (("interface swp1 qos pfc-watchdog state enable",), WatchdogState(300, 100)),
        (("interface swp1 qos pfc-watchdog",), WatchdogState(300, 100)),
        (("interface swp1 qos pfc-watchdog state disable",), None),
        (("interface swp1 qos pfc-watchdog", "qos pfc-watchdog polling-interval 200"), WatchdogState(600, 200)),
    ],
)
def test_watchdog_times_follow_from_polls(lines: tuple[str, ...], wanted: WatchdogState | None) -> None:
    assert qos(*LOSSLESS, *lines).watchdog == wanted


def test_the_lossless_priority_can_be_changed() -> None:
    moved = qos(
        *LOSSLESS,
        "qos pfc default-global switch-priority 2",
        "qos pfc default-global cable-length 40",
        "qos egress-queue-mapping default-global switch-priority 2 traffic-class 3",
        "qos egress-queue-mapping default-global switch-priority 3 traffic-class 0",
        "qos mapping default-global trust both",
        "qos mapping default-global dscp 26 switch-priority 2",
    )
    assert (moved.pfc_priorities, moved.cable_length_m) == (frozenset({2}), 40)
    assert moved.class_of_priority == (0, 0, 3, 0, 0, 0, 6, 0)
    assert (moved.priority_of_dscp[26], moved.priority_of_dscp[27]) == (2, 3)


@pytest.mark.parametrize("way", ["rx", "tx"])
def test_pfc_needs_both_directions(way: str) -> None:
    off = qos(*LOSSLESS, "qos pfc default-global switch-priority 3", f"qos pfc default-global {way} disable")
    assert off.pfc_priorities == frozenset()


def test_ports_follow_the_breakout_of_cages() -> None:
    split = state(
        "interface swp1 link breakout 4x",
        "interface swp1s3 link state down",
        "interface swp3 link breakout 8x",
        "interface swp4 link breakout disabled",
        "interface swp3s7 link mtu 1500",
        "interface swp5",
    )
    assert [(port.name, port.speed_gbps, port.is_enabled, port.mtu_bytes) for port in split.ports] == [
        ("swp1s3", 200, False, 9216),
        ("swp3s7", 100, True, 1500),
        ("swp5", 800, True, 9216),
    ]


def test_maintenance_takes_links_down_and_drains() -> None:
    bgp = (
        "router bgp autonomous-system 65001",
        "router bgp router-id 10.0.0.1",
        "router bgp state enabled",
        "vrf default router bgp state enabled",
        "interface swp1",
    )
    assert " bgp graceful-shutdown\n" not in state(*bgp).frr
    assert " bgp graceful-shutdown\n" in state(*bgp, "maintenance unit all-protocols mode enabled").frr
    assert not state(*bgp, "maintenance unit all-interfaces mode enabled").ports[0].is_enabled


@settings(max_examples=examples(40))
@given(values=random_intents())
def test_every_fabric_is_accepted(values: dict[str, Any]) -> None:
    fabric = intents.fabric(values)
    for switch in fabric.switches:
        if switch.platform == "nvue":
            chassis = CumulusSwitch(switch.model, switch.version)
            tree = tree_of(schema(chassis.version), rendered(fabric, switch.name)["startup.yaml"])
            assert rules.broken(tree, chassis) == []
            ports = switch_state(tree, chassis).ports
            assert {port.name: port.speed_gbps for port in ports} == {p.name: p.speed_gbps for p in switch.ports}


WHOLE = tree_of(KNOWN, rendered(intents.fabric(intents.values({"attachment": "vlan"})), "leaf01")["startup.yaml"])
PATHS = [path for path, _ in leaves(WHOLE)]


@st.composite
def parts(draw: st.DrawFn) -> Tree:
    """The whole configuration without some of its leaves."""
    tree = WHOLE
    for path in draw(st.lists(st.sampled_from(PATHS), max_size=12, unique=True)):
        tree = without(tree, path)
    return tree


@given(running=parts(), intended=parts())
def test_a_difference_leads_from_one_tree_to_the_other(running: Tree, intended: Tree) -> None:
    found = difference(running, intended)
    between = merged(KNOWN, running, found.removed)
    assert merged(KNOWN, between, found.added) == intended
    assert not difference(intended, intended)
    assert bool(found) == (running != intended)


@given(tree=parts())
def test_trees_survive_a_round_trip(tree: Tree) -> None:
    assert load(dump(tree)) == tree


@pytest.mark.parametrize("text", ["state: on", "state: off", "state: 'on'", "state: yes", "state: 0x10", "state: 1.0"])
def test_words_stay_strings(text: str) -> None:
    found = load(text)
    assert isinstance(found, dict)
    assert found["state"] == (16 if "0x" in text else text.split()[1].strip("'"))


@settings(max_examples=examples(300))
@given(text=st.text() | st.binary().map(lambda raw: raw.decode("latin-1")) | st.sampled_from(["- set: [", "nv set 'x"]))
def test_no_text_breaks_the_parser(text: str, tmp_path_factory: pytest.TempPathFactory) -> None:
    system = READER.setdefault("system", desk(tmp_path_factory.mktemp("reader")).switch.system)
    with contextlib.suppress(NvueCommandError):
        read(system, text)


READER: dict[str, Any] = {}
