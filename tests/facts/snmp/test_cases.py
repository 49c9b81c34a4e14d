"""Facts from recorded tables of agents; anything else becomes a reason."""

from dataclasses import fields

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from netkit.facts import Absent, Facts
from netkit.facts.device import Neighbor
from netkit.facts.optic import Lane, Limits
from netkit.platforms.eos.agents import SENSOR_LIMITS
from netkit.platforms.snmp.facts import ENTITIES, IF_NAMES, IF_TABLE, LLDP_PORTS, LLDP_REMOTE, SENSORS, views
from netkit.platforms.view import View
from tests.facts.hostile import STRANGE
from tests.facts.live_switch import misplaced
from tests.facts.snmp import case
from tests.lanes import examples

NOT_TOLD = {"lines", "sessions", "routes", "qos", "watchdogs", "buffers", "adaptive_routing", "file_systems"}
NOT_ASKED = {"lookups", "probes", "nics", "host", "lags", "mlag"}
VIEWS = [(platform, view) for platform in case.PLATFORMS for view in views(case.subject(platform))]


def parsed(platform: str, view: View, texts: list[str]) -> Facts:
    found: Facts = view.parse(*texts)
    assert {one.name for one in fields(found) if getattr(found, one.name) != getattr(Facts(), one.name)} <= view.yields
    if not isinstance(found.counters, Absent):
        assert misplaced(found, set(case.NAMES[platform])) == set()
        assert all(count >= 0 for counts in found.counters.values() for count in counts.values())
    return found


def changed(platform: str, command: str, **lines: str) -> Facts:
    """The facts of a case after replacing lines of a table, which are named with _ for dots."""
    answers = case.answers(platform)
    wanted = {name.strip("_").replace("_", "."): value for name, value in lines.items()}
    kept = [one for one in answers[command].splitlines() if one.partition(" ")[0] not in wanted]
    answers[command] = "\n".join([*kept, *(f"{name} {value}" for name, value in wanted.items() if value)])
    return case.facts(platform, answers)


@pytest.mark.parametrize("platform", case.PLATFORMS)
def test_every_table_is_requested_once_and_every_case_has_it(platform: str) -> None:
    asked = {command for view in views(case.subject(platform)) for command in view.commands}
    assert set(case.answers(platform)) == asked


@pytest.mark.parametrize("platform", case.PLATFORMS)
def test_an_agent_reports_ports_modules_neighbours_and_counters(platform: str) -> None:
    found = case.facts(platform, case.answers(platform))
    _, second, _ = case.NAMES[platform]
    assert found.system == case.system(platform)
    assert found.interfaces == case.interfaces(platform)
    assert found.neighbors == {second: (case.NEIGHBOR,)}
    assert found.modules == case.modules(platform)
    assert found.counters == case.counters(platform)


@pytest.mark.parametrize("platform", case.PLATFORMS)
def test_what_snmp_does_not_provide_is_absent_with_a_reason(platform: str) -> None:
    found = case.facts(platform, case.answers(platform))
    absent = {one.name for one in fields(found) if isinstance(getattr(found, one.name), Absent)}
    assert absent == NOT_TOLD | NOT_ASKED
    assert all(getattr(found, name).reason.startswith(("no MIB", "SNMP", "BGP4-MIB")) for name in NOT_TOLD)


@pytest.mark.parametrize("platform", case.PLATFORMS)
def test_an_agent_without_tables_reports_nothing(platform: str) -> None:
    found = case.facts(platform, dict.fromkeys(case.answers(platform), ""))
    assert all(isinstance(getattr(found, one.name), Absent) for one in fields(found))


@pytest.mark.parametrize("text", STRANGE, ids=range(len(STRANGE)))
def test_an_unparsable_value_is_absent(text: str) -> None:
    for platform, view in VIEWS:
        found = parsed(platform, view, [text] * len(view.commands))
        assert all(isinstance(getattr(found, kind), Absent) for kind in view.yields)


@pytest.mark.parametrize("platform", case.PLATFORMS)
def test_an_answer_may_be_truncated_anywhere(platform: str) -> None:
    answers = case.answers(platform)
    for view in views(case.subject(platform)):
        texts = [answers[command] for command in view.commands]
        for at, text in enumerate(texts):
            for end in range(0, len(text), 41):
                parsed(platform, view, [*texts[:at], text[:end], *texts[at + 1 :]])


VALUES = st.sampled_from(
    ["i -1", "i 0", f"i {2**64}", f"i -{10**19}", "x", "x ff", "s ", "s Ethernet0", "o 1.3", "i 4"]
)


@settings(max_examples=examples(150))
@given(st.data())
def test_a_value_may_be_replaced_anywhere(data: st.DataObject) -> None:
    platform, view = data.draw(st.sampled_from(VIEWS))
    texts = [case.answers(platform)[command] for command in view.commands]
    at = data.draw(st.integers(0, len(texts) - 1))
    lines = texts[at].splitlines() or ["1.0 i 1"]
    number = data.draw(st.integers(0, len(lines) - 1))
    name = data.draw(st.just(lines[number].partition(" ")[0]) | st.sampled_from(["4.3.3.3.3", "4.0", "1.1000000102"]))
    lines[number] = f"{name} {data.draw(VALUES)}"
    texts[at] = "\n".join(lines)
    parsed(platform, view, texts)


@settings(max_examples=examples(60))
@given(st.text(max_size=120), st.sampled_from(VIEWS))
def test_any_text_is_accepted(text: str, asked: tuple[str, View]) -> None:
    platform, view = asked
    parsed(platform, view, [text] * len(view.commands))


def test_sonic_names_a_port_by_its_alias_and_indexes_it_by_its_name() -> None:
    found = changed("sonic", IF_NAMES, _1_5="s Eth1/2")
    assert not isinstance(found.interfaces, Absent)
    assert {name: one.alias for name, one in found.interfaces.items()} == {
        "Ethernet0": "etp1a",
        "Ethernet4": "Eth1/2",
        "Ethernet8": "",
    }


def test_other_interfaces_than_ports_are_left_out() -> None:
    found = changed("sonic", IF_NAMES, _1_1001="s PortChannel1", _1_10001="s eth0")
    assert found.interfaces == case.interfaces("sonic")


def test_a_port_whose_state_is_unknown_is_neither_up_nor_down() -> None:
    found = changed("nvue", IF_TABLE, _8_3="i 4", _7_3="")
    assert not isinstance(found.interfaces, Absent)
    assert (found.interfaces["swp1s0"].is_up, found.interfaces["swp1s0"].is_enabled) == (None, None)


def test_lldp_may_index_ports_differently() -> None:
    found = changed("eos", LLDP_PORTS, _3_1005="", _3_7="s Ethernet1/5", _2_7="i 5")
    lone = changed("eos", LLDP_REMOTE, _7_0_1005_1="s eth2", _6_0_1005_1="i 5")
    assert found.neighbors == {"Ethernet1/5": (case.NEIGHBOR,)}
    assert lone.neighbors == {"Ethernet1/5": (Neighbor("gpu01", "eth2", "rail0"),)}


def test_the_most_recent_of_two_neighbours_comes_first() -> None:
    found = changed("eos", LLDP_REMOTE, _9_900_1005_2="s gpu02", _7_900_1005_2="s eth3")
    assert not isinstance(found.neighbors, Absent)
    assert [one.system for one in found.neighbors["Ethernet1/5"]] == ["gpu02", "gpu01"]


def test_optical_power_is_in_milliwatts_or_dbm_and_zero_is_dark() -> None:
    dark = changed("sonic", SENSORS, _4_1000000131="i 0")
    plain = changed("sonic", SENSORS, _1_1000000131="i 14", _2_1000000131="i 9", _4_1000000131="i -85000")
    assert not isinstance(dark.modules, Absent)
    assert not isinstance(plain.modules, Absent)
    assert dark.modules["Ethernet0"].lanes[1] == Lane(-40.0, 0.0, 75.25)
    assert plain.modules["Ethernet0"].lanes[1] == Lane(-8.5, 0.0, 75.25)


def test_sonic_gives_each_port_the_lanes_of_its_whole_module() -> None:
    first, second, power = 1000000130, 1000000530, {1: "i 8", 2: "i 8", 3: "i 4", 5: "i 1"}
    answers = case.answers("sonic")
    answers[ENTITIES] += "".join(
        f"\n2.{base + lane} s DOM RX Power Sensor for {label}/{lane}"
        for base, label in ((first, "etp1a"), (second, "Ethernet4"))
        for lane in range(1, 9)
    )
    answers[SENSORS] += "".join(
        f"\n{column}.{base + lane} {raw}"
        for base in (first, second)
        for lane in range(1, 9)
        for column, raw in {**power, 1: "i 6", 4: f"i {lane}0000"}.items()
    )
    found = case.facts("sonic", answers).modules
    assert not isinstance(found, Absent)
    light = {port: [lane.rx_dbm for lane in one.lanes.values()] for port, one in found.items()}
    assert light == {"Ethernet0": [0.0, 3.01, 4.77, 6.02], "Ethernet4": [6.99, 7.78, 8.45, 9.03], "Ethernet8": []}


def test_a_sensor_that_is_not_ok_has_no_value() -> None:
    found = changed("sonic", SENSORS, _5_1000000131="i 2")
    assert not isinstance(found.modules, Absent)
    assert found.modules["Ethernet0"].lanes[1].rx_dbm is None


def test_thresholds_of_zero_power_are_ignored() -> None:
    lanes = [1000100131 + lane for lane in range(4)]
    lines = {f"_{column}_{at}": raw for at in lanes for column, raw in ((2, "i 0"), (1, f"i -{10**9}"))}
    found = changed("eos", SENSOR_LIMITS, **lines)
    assert not isinstance(found.modules, Absent)
    assert found.modules["Ethernet1/1"].limits["rx_dbm"] == Limits(None, None, 4.0, 5.0)


def test_a_port_without_64_bit_counters_has_no_bytes() -> None:
    found = changed("nvue", IF_NAMES, _6_3="", _7_3="")
    assert not isinstance(found.counters, Absent)
    assert set(found.counters["rx_bytes"]) == set(found.counters["rx_packets"]) == {"swp1s1", "swp2s0"}


def test_a_packet_total_with_a_part_missing_at_one_port_is_unknown() -> None:
    found = changed("nvue", IF_NAMES, _8_4="i 5", _8_5="i 6")
    assert not isinstance(found.counters, Absent)
    assert set(found.counters["rx_packets"]) == {"swp1s1", "swp2s0"}
    assert set(found.counters["tx_packets"]) == {"swp1s0", "swp1s1", "swp2s0"}


def test_a_module_without_thresholds_has_none() -> None:
    zeros = {f"_{end}_1000100110": "i 0" for end in (1, 2, 3, 4)}
    found = changed("eos", SENSOR_LIMITS, **zeros).modules
    assert not isinstance(found, Absent)
    assert set(found["Ethernet1/1"].limits) == {"rx_dbm"}
