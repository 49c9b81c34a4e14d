"""Parsing gNMI updates as servers of each platform send them; no input raises."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from netkit.facts import COUNTERS, Absent, Facts
from netkit.platforms.agents import agents_of
from netkit.platforms.gnmi import facts as count
from netkit.platforms.gnmi.facts import counters, interfaces, views
from netkit.platforms.gnmi.message import (
    PathElement,
    Update,
    format_path,
    format_updates,
    leaves,
    parse_command,
    parse_query,
    path,
    read,
)
from netkit.platforms.sonic import agents as sonic
from netkit.platforms.view import ViewSubject
from tests.lanes import examples

QUEUE = "/qos/interfaces/interface[interface-id={}]/output/queues/queue[name={}]/state"
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=9),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=9), inner, max_size=3),
    max_leaves=12,
)
WORDS = (
    "interfaces interface state counters in-octets qos output queues queue switch-priority "
    "COUNTERS Ethernet* etp1 etp1:3 SAI_PORT_STAT_IF_IN_OCTETS SAI_QUEUE_STAT_PACKETS"
)
NAMES = st.sampled_from(WORDS.split()) | st.text(max_size=9)
STEPS = st.builds(
    PathElement, NAMES, st.dictionaries(st.sampled_from(["name", "interface-id", "x"]), st.text(max_size=9))
)
UPDATES = st.lists(st.builds(Update, st.lists(STEPS, max_size=9).map(tuple), JSON), max_size=4)
UNHURRIED = settings(max_examples=examples(60))
PLATFORMS = st.sampled_from(["eos", "sonic", "nvue", "frr"])


def reported(platform: str, *updates: tuple[str, Any], wanted: tuple[str, ...] = (), names: Any = None) -> Any:
    counting = count.Counting(platform, names or {}, wanted)
    return count.counters_of(platform, dict(counting.counts(Update(path(place), value) for place, value in updates)))


def test_openconfig_reports_ports_and_queues_leaf_by_leaf() -> None:
    port = "/interfaces/interface[name=Ethernet1/1]/state/counters"
    queue = QUEUE.format("Ethernet1/1", "UC3")
    shown = (
        (f"{port}/in-octets", "18446744073709551615"),
        (f"{port}/in-unicast-pkts", 5),
        (f"{port}/in-multicast-pkts", 2),
        (f"{port}/in-broadcast-pkts", 1),
        (f"{port}/last-clear", "0"),
        (f"{queue}/transmit-pkts", 7),
        (f"{queue}/ecn-marked-pkts", 4),
        (f"{queue}/name", "UC3"),
    )
    assert reported("eos", *shown) == {
        "rx_bytes": {"Ethernet1/1": 2**64 - 1},
        "rx_packets": {"Ethernet1/1": 8},
        "queue_tx_packets": {"Ethernet1/1/3": 7},
        "queue_ecn_marked": {"Ethernet1/1/3": 4},
    }


def test_openconfig_may_report_a_whole_tree_with_module_names() -> None:
    tree = {
        "openconfig-interfaces:interface": [
            {"name": "Ethernet2/1", "state": {"counters": {"in-octets": "9", "out-octets": 8}}},
            {"name": "Management1", "state": {"counters": {"in-octets": "1"}}},
        ]
    }
    assert reported("eos", ("/openconfig-interfaces:interfaces", tree)) == {
        "rx_bytes": {"Ethernet2/1": 9},
        "tx_bytes": {"Ethernet2/1": 8},
    }


def test_packets_are_not_reported_from_some_of_their_kinds() -> None:
    port = "/interfaces/interface[name=Ethernet1/1]/state/counters"
    assert reported("eos", (f"{port}/in-unicast-pkts", 5)) == {}


def test_cumulus_reports_marks_pauses_and_fec_too() -> None:
    port = "/interfaces/interface[name=swp1s0]"
    shown = (
        (f"{port}/state/counters/out-pkts", 3),
        (f"{port}/ethernet/state/counters/carrier-transitions", 2),
        (f"{port}/ethernet/phy/state/rs-fec-uncorrectable-blocks", 1),
        (f"{port}/ethernet/phy/state/corrected-bits", 11),
        (f"{QUEUE.format('swp1s0', 3)}/ecn-marked-pkts", 6),
        ("/qos/interfaces/interface[interface-id=swp1s0]/state/switch-priority[name=3]/counters/out-pause-pkts", 12),
    )
    assert reported("nvue", *shown) == {
        "tx_packets": {"swp1s0": 3},
        "carrier_changes": {"swp1s0": 2},
        "fec_uncorrectable": {"swp1s0": 1},
        "corrected_bits": {"swp1s0": 11},
        "queue_ecn_marked": {"swp1s0/3": 6},
        "tx_pause": {"swp1s0/3": 12},
    }


def test_sonic_reports_rows_by_alias() -> None:
    ports = {
        "Ethernet1/1": {"SAI_PORT_STAT_IF_IN_OCTETS": "70", "SAI_PORT_STAT_PFC_3_RX_PKTS": "4", "NULL": "NULL"},
        "Ethernet2/1": {},
    }
    queues = {
        "Ethernet1/1:3": {
            "SAI_QUEUE_STAT_PACKETS": "1",
            "SAI_QUEUE_STAT_WRED_ECN_MARKED_PACKETS": "2",
            "PFC_WD_QUEUE_STATS_TX_DROPPED_PACKETS": "3",
            "PFC_WD_STATUS": "operational",
        },
        "Ethernet1/1:3:periodic": {"SAI_QUEUE_STAT_SHARED_WATERMARK_BYTES": "64"},
        "Ethernet1/1:12": {"SAI_QUEUE_STAT_PACKETS": "9"},
    }
    shown = (("/COUNTERS/Ethernet*", ports), ("/COUNTERS/Ethernet*/Queues", queues))
    assert reported("sonic", *shown, names={"Ethernet1/1": "Ethernet0"}) == {
        "rx_bytes": {"Ethernet0": 70},
        "rx_pause": {"Ethernet0/3": 4},
        "queue_tx_packets": {"Ethernet0/3": 1},
        "queue_ecn_marked": {"Ethernet0/3": 2},
        "watchdog_drops": {"Ethernet0/3": 3},
    }


def test_only_wanted_ports_count() -> None:
    shown = [(f"/interfaces/interface[name=Ethernet{port}]/state/counters/in-octets", port) for port in (1, 2)]
    assert reported("eos", *shown, wanted=("Ethernet2",)) == {"rx_bytes": {"Ethernet2": 2}}


def test_answers_are_facts() -> None:
    port = "/interfaces/interface[name=Ethernet1/1]/state"
    shown = format_updates([Update(path(f"{port}/oper-status"), "UP"), Update(path(f"{port}/mtu"), 9214)])
    found = interfaces(shown).interfaces
    assert not isinstance(found, Absent)
    assert (found["Ethernet1/1"].is_up, found["Ethernet1/1"].mtu_bytes) == (True, 9214)
    table = {
        "Ethernet0": {"alias": "etp1", "oper_status": "up", "speed": "400000", "flap_count": "2"},
        "PortInitDone": {},
    }
    ports = format_updates([Update(path("/PORT_TABLE"), table)])
    counted = format_updates([Update(path("/COUNTERS/Ethernet*"), {"etp1": {"SAI_PORT_STAT_IF_IN_OCTETS": "5"}})])
    assert sonic.gnmi_counters(ports, counted, wanted=()).counters == {
        "rx_bytes": {"Ethernet0": 5},
        "carrier_changes": {"Ethernet0": 2},
    }
    assert counters("", platform="eos", wanted=()).counters == Absent(
        "the gNMI server shows no counters of these ports"
    )


@pytest.mark.parametrize("platform", ["nvue", "frr"])
def test_facts_that_cannot_be_requested_have_a_reason(platform: str) -> None:
    (view,) = views(ViewSubject("leaf01", platform=platform))
    found = view.parse("0.8.0\n")
    assert isinstance(found.counters, Absent)
    assert isinstance(found.qos, Absent)


def test_requests_are_written_as_commands() -> None:
    for subject in (ViewSubject("leaf01", platform="eos"), ViewSubject("leaf01", platform="sonic")):
        for command in (command for view in views(subject) if view.counts for command in view.commands):
            found = parse_command(command)
            assert found is not None
            assert found.command == command
    known = [agents.gnmi for platform in ("eos", "sonic", "nvue") if (agents := agents_of(platform)) and agents.gnmi]
    assert len(known) == 3
    assert all(parse_query(place) for one in known for place in one.streamed)
    assert [parse_query(place) for place in ("", "interfaces", "/a[b]", "/a//b", "DB:a")] == [None] * 5


def test_counters_have_known_names() -> None:
    assert set(count.COUNTERS) | set(sonic.COUNTERS) <= set(COUNTERS)


@UNHURRIED
@given(UPDATES, PLATFORMS)
def test_no_update_raises(updates: list[Update], platform: str) -> None:
    names = sonic.aliases(updates)
    found = count.counters_of(platform, dict(count.Counting(platform, names).counts(updates)))
    assert all(value >= 0 for places in found.values() for value in places.values())


@UNHURRIED
@given(UPDATES)
def test_updates_survive_a_round_trip_as_text(updates: list[Update]) -> None:
    assert list(read(format_updates(updates))) == updates


@UNHURRIED
@given(st.text() | st.lists(JSON, max_size=3).map(str))
def test_no_text_raises(text: str) -> None:
    assert isinstance(counters(text, platform="eos", wanted=()), Facts)
    assert isinstance(sonic.gnmi_counters(text, text, wanted=()), Facts)
    assert isinstance(interfaces(text), Facts)


@UNHURRIED
@given(JSON)
def test_leaves_are_single_values(value: object) -> None:
    assert not any(isinstance(leaf, dict | list) for _, leaf in leaves(Update((), value)))


@UNHURRIED
@given(st.text())
def test_paths_survive_a_round_trip_as_text(text: str) -> None:
    found = path(text)
    assert format_path(found) == text or found == ()
