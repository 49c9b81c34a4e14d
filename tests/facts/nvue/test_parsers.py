"""Facts from the answers of a switch with NVUE."""

import copy
import json
import re
from dataclasses import replace
from functools import reduce
from operator import getitem
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from netkit.facts import Absent
from netkit.facts.device import KINDS, Neighbor
from netkit.facts.optic import Lane, Module
from netkit.platforms.nvue.facts import DISK, views
from netkit.platforms.nvue.facts.json_access import duration_s
from netkit.platforms.view import View, ViewSubject
from tests.facts.nvue.case import CASES, FOLDER, answers, read
from tests.facts.written import check_written, parsed
from tests.lanes import examples

SUBJECT, TEXTS = answers("5.16.1-documented")
VIEWS = views(SUBJECT)
NEVER = {"lookups", "probes", "nics", "host", "lags", "mlag"}
WORDS = st.sampled_from(sorted({word for text in TEXTS.values() for word in text.split('"')[1::2]}))
LEAVES = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.integers(min_value=10**19, max_value=10**400),
    st.floats(),
    st.text(max_size=8),
    WORDS,
)
TREES = st.recursive(
    LEAVES,
    lambda inner: st.one_of(
        st.lists(inner, max_size=3), st.dictionaries(WORDS | st.text(max_size=4), inner, max_size=4)
    ),
    max_leaves=20,
)


def own(view: View) -> tuple[str, ...]:
    return tuple(TEXTS.get(command, "") for command in view.commands)


@pytest.mark.parametrize("case", CASES)
def test_facts_match_the_expected_file(case: str) -> None:
    check_written(FOLDER / f"{case}.facts.json", read(case))


def test_no_case_is_missing() -> None:
    assert CASES == ["5.16.1-documented", "5.16.1-lab", "5.16.1-pair", "5.9.2-documented", "empty", "nothing"]


def test_every_kind_a_switch_can_report_is_yielded() -> None:
    assert {kind for view in VIEWS for kind in view.yields} == set(KINDS) - NEVER


def test_per_port_commands_are_marked_as_costly() -> None:
    for view in VIEWS:
        is_by_port = any("include=" in command for command in view.commands)
        assert view.is_costly == is_by_port == (view.fallback is not None), view.commands


@pytest.mark.parametrize(("version", "count"), [("5.9.2", 0), ("5.12.1", 0), ("5.13.0", 3), ("5.16.1", 3), ("", 3)])
def test_details_of_all_ports_are_requested_at_once_where_the_release_can(version: str, count: int) -> None:
    found = views(replace(SUBJECT, version=version))
    at_once = [view for view in found if any("include=" in command for command in view.commands)]
    assert len(at_once) == count
    commands = {command for view in found if view not in at_once for command in view.commands}
    each = {command for view in at_once if view.fallback for command in view.fallback.commands}
    ports = (f"nv show interface {port} counters qos -o json" for port in SUBJECT.ports)
    assert set(ports) <= (each if count else commands)


def test_details_are_the_same_at_once_and_per_port() -> None:
    for view in (view for view in VIEWS if view.fallback):
        whole = json.loads(own(view)[-1])
        (path,) = re.findall(r"include=/\*/([a-z/-]+)", view.commands[-1])
        parts = {port: reduce(getitem, path.split("/"), whole[port]) for port in whole}
        assert view.fallback is not None
        beside = dict(zip(view.commands, own(view), strict=True))
        one_by_one = {f"nv show interface {port} {path.replace('/', ' ')} -o json": one for port, one in parts.items()}
        texts = {command: json.dumps(one) for command, one in one_by_one.items()} | beside
        found = tuple(texts.get(command, "") for command in view.fallback.commands)
        assert parsed(view.fallback, *found) == parsed(view, *own(view))


def test_a_switch_without_ports_is_asked_for_system_facts_only() -> None:
    assert [view for view in views(ViewSubject("leaf01")) if view.is_costly] == []


@pytest.mark.parametrize("text", ["", "  \n", "Error: nvued is not running", "{", "[1, 2", '{"a": ', "[]", "7", "null"])
def test_empty_answers_report_nothing(text: str) -> None:
    for view in VIEWS:
        found = parsed(view, *(text for _ in view.commands))
        absent = {kind for kind in view.yields if isinstance(getattr(found, kind), Absent)}
        empty = {"routes"} if text == "[]" else set()  # a kernel without routes
        assert absent == view.yields - empty, view.commands


def test_truncated_answers_are_parsed_as_far_as_they_go() -> None:
    for view in VIEWS:
        texts = own(view)
        for at, text in enumerate(texts):
            for length in range(0, len(text), max(1, len(text) // 400)):
                parsed(view, *texts[:at], text[:length], *texts[at + 1 :])


@settings(max_examples=examples(60))
@given(st.text(max_size=200) | st.binary(max_size=200).map(lambda data: data.decode("utf-8", "replace")))
def test_any_text_is_accepted(text: str) -> None:
    for view in VIEWS:
        parsed(view, *(text for _ in view.commands))


@settings(max_examples=examples(150))
@given(TREES)
def test_any_json_is_accepted(tree: Any) -> None:
    text = json.dumps(tree)
    for view in VIEWS:
        parsed(view, *(text for _ in view.commands))


@settings(max_examples=examples(150))
@given(st.data())
def test_any_part_may_have_another_type(data: st.DataObject) -> None:
    view = data.draw(st.sampled_from([view for view in VIEWS if view is not DISK]))
    texts = list(own(view))
    at = data.draw(st.sampled_from([at for at, text in enumerate(texts) if text[:1] in {"{", "["}]))
    tree = copy.deepcopy(json.loads(texts[at]))
    node: Any = {"": tree}
    key: Any = ""
    while isinstance(node[key], dict | list) and node[key] and data.draw(st.booleans()):
        node = node[key]
        key = data.draw(st.sampled_from(sorted(node))) if isinstance(node, dict) else 0
    node[key] = data.draw(TREES)
    texts[at] = json.dumps(node[""] if key == "" and "" in node else tree)
    parsed(view, *texts)


@pytest.mark.parametrize("text", ["[" * 100_000, '{"a":' * 100_000, "9" * 10_000, '{"swp1s0": {"link": ' + "9" * 9_000])
def test_huge_answers_are_accepted(text: str) -> None:
    for view in VIEWS:
        parsed(view, *(text for _ in view.commands))


@pytest.mark.parametrize(
    ("link", "is_up"),
    [
        ({"oper-status": "up"}, True),
        ({"oper-status": "up", "state": "down"}, True),
        ({"oper-status": "down", "state": {"up": {}}}, False),
        ({"state": {"up": {}}}, True),
        ({"state": "up"}, True),
    ],
)
def test_the_operational_status_of_a_port_takes_precedence_over_its_state(link: dict[str, Any], is_up: bool) -> None:
    ports = next(view for view in VIEWS if "interfaces" in view.yields)
    found = parsed(ports, json.dumps({"swp1s0": {"link": link}}), "").interfaces
    assert not isinstance(found, Absent)
    assert found["swp1s0"].is_up is is_up


@pytest.mark.parametrize("number", ["NaN", "Infinity", "-1", "1e999", "9" * 400, "true", '"12 apples"', "[]", "null"])
def test_a_malformed_count_is_not_reported(number: str) -> None:
    ports, counting = (view for view in VIEWS if view.yields & {"interfaces", "adaptive_routing"})
    text = f'{{"swp1s0": {{"link": {{"oper-status": "up", "mtu": {number}, "stats": {{"in-pkts": {number}}}}}}}}}'
    found = parsed(ports, text, "").interfaces
    assert not isinstance(found, Absent)
    assert found["swp1s0"].mtu_bytes is None
    assert parsed(counting, text).counters == Absent("nv show interface -o json: shows no counters")


@pytest.mark.parametrize("wrapped", ["\x1b[1;32m{}\x1b[0m", "Warning: slow\n{}", "{}\nWarning: done", "\r\n{}\r\n"])
def test_colours_and_warnings_do_not_matter(wrapped: str) -> None:
    for view in VIEWS:
        texts = own(view)
        shown = tuple(wrapped.replace("{}", text) if text[:1] in {"{", "["} else text for text in texts)
        assert parsed(view, *shown) == parsed(view, *texts)


def test_without_the_answer_of_one_port_the_others_are_reported() -> None:
    subject, whole = answers("5.16.1-lab")
    for view in views(subject):
        texts = tuple(whole[command] for command in view.commands)
        for at in (at for at, command in enumerate(view.commands) if " swp1s0 " in command):
            found = parsed(view, *texts[:at], "", *texts[at + 1 :])
            assert {kind for kind in view.yields if isinstance(getattr(found, kind), Absent)} == set()


def reading(key: str, value: str, limit: str) -> dict[str, str]:
    ends = ("high-alarm", "high-warning", "low-warning", "low-alarm")
    return {key: value, **{f"{end}-threshold": limit for end in ends}}


def test_a_module_without_thresholds_has_none() -> None:
    (view,) = (view for view in VIEWS if "modules" in view.yields)
    light = reading("power", "0.8625 mW / -0.64 dBm", "0.0000 mW / -inf dBm")
    current = reading("current", "6.750 mA", "0.000 mA")
    shown = {
        "status": "plugged_enabled",
        "temperature": reading("temperature", "42.56 C", "0.00 C"),
        "voltage": reading("voltage", "3.2862 V", "0.0000 V"),
        "channel": {"channel-1": {"rx-power": light, "tx-power": light, "tx-bias-current": current}},
    }
    found = parsed(view, json.dumps({"swp1s0": shown}), "{}").modules
    assert not isinstance(found, Absent)
    assert found["swp1s0"] == Module(temperature_c=42.56, voltage_v=3.2862, lanes={1: Lane(-0.64, -0.64, 6.75)})


@pytest.mark.parametrize(
    ("peers", "is_up"),
    [
        ([], False),
        ({"7": {"interface": "swp51", "status": "up"}}, True),
        ({"7": {"interface": "swp52", "status": "up"}}, False),
        ({"7": {"interface": "swp52", "status": "up"}, "8": {"peer": "10.0.0.1"}}, None),
        ({"7": None}, None),
        ("Error: BFD does not run", None),
    ],
)
def test_a_session_that_bfd_does_not_list_has_no_bfd(peers: object, is_up: bool | None) -> None:
    (view,) = (view for view in VIEWS if "sessions" in view.yields)
    found = parsed(view, json.dumps({"swp51": {"state": "established"}}), json.dumps(peers), "").sessions
    assert not isinstance(found, Absent)
    assert found["swp51"].is_bfd_up is is_up


def test_a_name_with_a_lone_surrogate_can_be_written() -> None:
    (view,) = (view for view in VIEWS if "neighbors" in view.yields)
    heard = {"caf\udce9": {"port": {"name": "swp1"}, "chassis": {}}}
    found = parsed(view, json.dumps({"swp51": {"lldp": {"neighbor": heard}}}))
    assert found.neighbors == {"swp51": (Neighbor("caf?", "swp1"),)}


@pytest.mark.parametrize(
    ("parsed", "seconds"),
    [
        ("1d, 23:45:21", 171_921.0),
        ("1 day, 2:34:17", 95_657.0),
        ("12 days, 0:00:01", 1_036_801.0),
        (" 0:00:00", 0.0),
        ("698044", 698_044.0),
        (12.5, 12.5),
        ("2024-07-18T22:02:22Z", None),
        ("never", None),
    ],
)
def test_only_valid_durations_are_accepted(parsed: object, seconds: float | None) -> None:
    assert duration_s(parsed) == seconds
