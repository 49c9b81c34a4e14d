"""Replies of switches about revisions, sessions and themselves, as in documentation and releases."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from netkit.platforms.driver import SessionState
from netkit.platforms.nvue import reader, transport

# The table as in the Cumulus Linux guide, with a revision that never ran and one that was applied again.
TABLE = """\
Rev ID                State              Apply ID         Apply Date           Type      User     Reason         Message
--------------------  -----------------  ---------------  -------------------  --------  -------  -------------  -------
1                     applied_and_saved  rev_1_apply_1    2024-04-26 11:24:50  CLI       root     Config update  Sync
2                     applied_and_saved  rev_2_apply_3    2024-04-26 18:06:14  CLI       cumulus  Config update  Config
3                     applied_and_saved  rev_3_apply_1    2024-04-26 16:06:14  CLI       cumulus  Config update  Config
4                     pending                                                  CLI       cumulus
5                     invalid            rev_5_apply_1    2024-04-27 16:06:14  CLI       cumulus  Config update  Config
"""


def test_the_revision_applied_last_comes_first() -> None:
    assert transport.applied_in(TABLE) == ("2", "3", "1")
    assert transport.applied_in("") == ()
    shipped = "1  applied_and_saved  CLI  root  Factory\n2  applied_and_saved  CLI  root  Startup\n"
    assert transport.applied_in(shipped) == ("2", "1")


@pytest.mark.parametrize(
    ("said", "revision"),
    [("created [rev_id: 2]\n", "2"), ("applied [rev_id: changeset/cumulus/x]", "changeset/cumulus/x"), ("ok", "")],
)
def test_the_revision_in_the_output_of_a_command_is_found(said: str, revision: str) -> None:
    assert transport.revision_in(said) == revision


@pytest.mark.parametrize(
    ("said", "is_failure"),
    [
        ("applied_and_saved [rev_id: 2]", False),
        ("applied [rev_id: 2]", False),
        ("Invalid config [rev_id: 2]\n  BGP requires router-id", True),
        ("Failure during apply [rev_id: 2]", True),
        ("ignore_fail [rev_id: 3]", True),
        ("Aborted apply after warnings", True),
        ("ays_fail", True),
        ("Error: at interface.swp1", True),
    ],
)
def test_a_failure_is_detected_whatever_the_exit_code(said: str, *, is_failure: bool) -> None:
    assert bool(transport.FAILED.search(said)) is is_failure


@pytest.mark.parametrize(
    ("found", "is_empty"),
    [
        ([], True),
        ({}, True),
        ([{"set": {}}], True),
        ([{"set": {"a": {}}}], False),
        ({"set": {}, "unset": {"a": None}}, False),
    ],
)
def test_a_difference_is_empty_or_not(found: object, *, is_empty: bool) -> None:
    assert transport.is_empty_difference(found) is is_empty


@pytest.mark.parametrize(
    ("system", "version"),
    [
        ({"product-release": "5.13.1"}, "5.13.1"),
        ({"version": {"product-release": "5.16.1"}}, "5.16.1"),
        ({"version": "x"}, ""),
        ({}, ""),
    ],
)
def test_the_release_is_found_where_each_release_reports_it(system: dict[str, Any], version: str) -> None:
    assert transport.version_of(system) == version


def test_the_header_of_a_configuration_has_the_release() -> None:
    header = [{"header": {"model": "sn5600", "version": "Cumulus Linux 5.16.1"}}, {"set": {}}]
    assert transport.version_in(json.dumps(header, indent=1)) == transport.version_in(json.dumps(header)) == "5.16.1"
    assert transport.version_in("[]") == ""


@pytest.mark.parametrize(
    ("value", "seconds"),
    [
        (85521, 85521),
        ("23:45:21", 85521),
        ("2d, 01:00:00", 176400),
        ("3 days, 0:00:01", 259201),
        ("77", 77),
        ("2024-07-18T22:02:22Z", 0),
        ("never", 0),
    ],
)
def test_durations_are_parsed_in_every_form(value: object, seconds: int) -> None:
    assert transport.seconds(value) == seconds


def test_sessions_come_from_the_summary_and_from_the_detail() -> None:
    summary = {
        "swp51": {
            "session-state": "established",
            "uptime": "00:00:09",
            "address-family": {"ipv4-unicast": {"rx-prefix": 9}},
        }
    }
    detail = {"peerlink.4094": {"connections-dropped": 1, "session-state": "idle", "address-family": {}}, "odd": 3}
    assert transport.sessions(summary) == (SessionState("swp51", True, 9, 9),)
    assert transport.sessions(detail) == (SessionState("peerlink.4094", False, 0, 0),)


def test_both_spellings_of_a_link_are_parsed() -> None:
    old = {"swp1": {"link": {"mac": "9c:05:91:a2:e6:f0", "mtu": 9216, "state": {"down": {}}, "speed": "100G"}}}
    new = {
        "swp1": {"link": {"mac-address": "9c:05:91:a2:e6:f0", "mtu": "9216", "oper-status": "up", "state": {"up": {}}}}
    }
    assert reader.interfaces(old)["swp1"] == {
        "is_up": False,
        "is_enabled": True,
        "description": "",
        "last_flapped": -1.0,
        "speed": 100_000.0,
        "mtu": 9216,
        "mac_address": "9C:05:91:A2:E6:F0",
    }
    found = reader.interfaces(new)["swp1"]
    assert (found["is_up"], found["mtu"], found["speed"]) == (True, 9216, -1.0)


def test_a_host_is_named_by_its_port_description_if_only_an_address_is_shown() -> None:
    ends = {
        "stale": {"age": "900", "chassis": {"system-name": "old"}, "port": {"name": "x", "type": "ifname"}},
        "gpu1": {
            "age": "8",
            "chassis": {},
            "port": {"name": "48:b0:2d:76:ee:8e", "type": "mac", "description": "eth1"},
        },
    }
    assert reader.lldp_neighbors({"swp1": {"lldp": {"neighbor": ends}}, "swp2": {"lldp": {}}}) == {
        "swp1": [{"hostname": "gpu1", "port": "eth1"}, {"hostname": "old", "port": "x"}]
    }


JSON = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), st.text(max_size=5)),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3),
        st.dictionaries(
            st.sampled_from(
                ["link", "stats", "state", "lldp", "neighbor", "port", "channel", "rx-power", "version", "x"]
            ),
            inner,
            max_size=4,
        ),
    ),
    max_leaves=20,
)


@given(st.dictionaries(st.sampled_from(["swp1", "version", "uptime"]), JSON))
def test_no_output_of_a_switch_breaks_a_getter(shown: dict[str, Any]) -> None:
    reader.facts(shown, shown, shown)
    reader.interfaces(shown)
    reader.counters(shown)
    reader.bgp_neighbors(shown, shown)
    reader.lldp_neighbors(shown)
    reader.optics(shown)
    transport.sessions(shown)
    transport.version_of(shown)


@given(st.text())
def test_no_output_of_a_switch_breaks_a_parser(said: str) -> None:
    transport.applied_in(said)
    transport.revision_in(said)
    transport.version_in(said)
    transport.seconds(said)
