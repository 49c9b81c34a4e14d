"""Facts from EOS answers: complete, of several releases, refused, and malformed."""

import json
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from netkit.facts import Absent
from netkit.facts.device import KINDS, System
from netkit.facts.optic import Line
from netkit.observe.assemble import facts
from netkit.platforms.eos.facts import interface, system, views
from netkit.platforms.eos.facts.interface import IN_WORDS, REVISIONS, lanes, own
from netkit.platforms.view import Reply, View, ViewSubject
from tests.facts.eos.case import CASES, FOLDER, read, seen
from tests.facts.hostile import STRANGE, changed
from tests.facts.live_switch import misplaced
from tests.facts.written import check_written, parsed
from tests.lanes import examples

WHOLE = "4.35.1F-whole"
VIEWS, ANSWERS = read(WHOLE)
NEVER = {"lookups", "probes", "nics", "host", "buffers"}
NAMES = [f"{number}:{'+'.join(sorted(view.yields))}" for number, view in enumerate(VIEWS)]
STEP = 29


def texts(view: View) -> tuple[str, ...]:
    return tuple(ANSWERS[command] for command in view.commands)


@pytest.mark.parametrize("case", CASES)
def test_facts_match_the_expected_file(case: str) -> None:
    check_written(FOLDER / f"{case}.facts.json", seen(case))


def test_a_healthy_switch_reports_every_kind_but_queue_lengths() -> None:
    found = seen(WHOLE)
    assert {kind for kind in KINDS if isinstance(getattr(found, kind), Absent)} == NEVER


def test_every_command_has_an_answer_in_every_case() -> None:
    asked = {command for view in VIEWS for command in view.commands}
    assert len(CASES) >= 3
    assert asked >= set(REVISIONS) | IN_WORDS
    for case in CASES:
        assert set(read(case)[1]) == asked, case


@pytest.mark.parametrize("view", VIEWS, ids=NAMES)
@pytest.mark.parametrize("text", STRANGE, ids=range(len(STRANGE)))
def test_an_unparsable_answer_is_absent_with_a_reason(view: View, text: str) -> None:
    found = parsed(view, *(text for _ in view.commands))
    if text in {"", "null", "{}"}:
        assert all(isinstance(getattr(found, kind), Absent) for kind in view.yields)


@pytest.mark.parametrize("view", VIEWS, ids=NAMES)
def test_an_answer_may_be_truncated_anywhere(view: View) -> None:
    given_ = texts(view)
    for index, text in enumerate(given_):
        for end in (*range(0, len(text), STEP), *range(max(0, len(text) - 20), len(text))):
            parsed(view, *given_[:index], text[:end], *given_[index + 1 :])


@pytest.mark.parametrize("view", VIEWS, ids=NAMES)
def test_a_truncated_json_answer_is_absent_and_not_partial(view: View) -> None:
    if view.commands[0] not in IN_WORDS and len(view.commands) == 1:
        found = parsed(view, texts(view)[0][:-1])
        assert all(isinstance(getattr(found, kind), Absent) for kind in view.yields)


@settings(max_examples=examples(100))
@given(st.data())
def test_an_answer_may_have_another_type_anywhere(data: st.DataObject) -> None:
    view = data.draw(st.sampled_from(VIEWS))
    given_ = list(texts(view))
    index = data.draw(st.integers(0, len(given_) - 1))
    given_[index] = data.draw(changed(given_[index]))
    parsed(view, *given_)


@settings(max_examples=examples(60))
@given(st.text(max_size=120), st.sampled_from(VIEWS))
def test_any_text_is_accepted(text: str, view: View) -> None:
    parsed(view, *(text for _ in view.commands))


def test_routes_have_their_own_next_hops_whatever_the_one_before_has() -> None:
    view = next(view for view in VIEWS if "routes" in view.yields)
    first, other = [{"interface": "Ethernet33/1"}, {"interface": "Et34/1"}], [{"interface": "Null0"}, "strange"]
    hops = {"a": first, "b": list(first), "c": other, "d": first, "e": "strange", "f": first[1:]}
    shown = {"vrfs": {"default": {"routes": {name: {"vias": vias} for name, vias in hops.items()}}}}
    both = ("Ethernet33/1", "Ethernet34/1")
    assert parsed(view, json.dumps(shown)).routes == {"a": both, "b": both, "d": both, "f": both[1:]}


def test_queues_are_summed_over_drop_precedences() -> None:
    view = next(view for view in VIEWS if interface.QUEUES in view.commands)
    key = ("enqueuedPackets", "enqueuedBytes", "droppedPackets")
    rows = {"DP0": dict(zip(key, (1, 2.0, "3"), strict=True)), "DP1": dict(zip(key, (4, 5, None), strict=True))}
    classes = {"TC3": {"dropPrecedences": rows}, "TC4": {"dropPrecedences": {}}, "UC": {"dropPrecedences": rows}}
    of_port = {"Ethernet33/1": {"ucastQueues": {"trafficClasses": classes}}}
    found = parsed(view, json.dumps({"egressQueueCounters": {"interfaces": of_port}})).counters
    assert found == {"queue_tx_packets": {"Ethernet33/1/3": 5}, "queue_tx_bytes": {"Ethernet33/1/3": 7}}


def test_a_complete_running_configuration_ends_with_end() -> None:
    view = next(view for view in VIEWS if "qos" in view.yields)
    running, *rest = texts(view)
    shorter = running.removesuffix("end\n")
    assert shorter != running
    assert isinstance(parsed(view, shorter, *rest).qos, Absent)


def test_unused_ports_are_left_out_where_they_only_cost_time() -> None:
    few = views(ViewSubject("leaf01", ports=("Ethernet33/1",), lossless=(3,)))
    found = facts(few, {command: Reply(text) for command, text in ANSWERS.items()})
    assert not isinstance(found.qos, Absent)
    assert not isinstance(found.lines, Absent)
    assert not isinstance(found.interfaces, Absent)
    assert set(found.qos) == set(found.lines) == {"Ethernet33/1"}
    assert set(found.interfaces) == {"Ethernet1/5", "Ethernet33/1"}
    assert misplaced(found, {"Ethernet33/1"}) == set()


@pytest.mark.parametrize(
    ("ports", "wanted"),
    [
        (("Ethernet1/1", "Ethernet1/5"), (4, 4)),
        (("Ethernet1/1", "Ethernet2/5"), (8, 4)),
        (("Ethernet1/1", "Ethernet1/3", "Ethernet1/5", "Ethernet1/7"), (2, 2, 2, 2)),
        (("Ethernet3/1/1", "Ethernet3/1/5", "Ethernet3/2/1"), (4, 4, 8)),
        (("Ethernet1", "Ethernet1/1"), (8, 8)),
    ],
)
def test_a_port_has_the_lanes_of_its_cage_up_to_the_next_port(ports: tuple[str, ...], wanted: tuple[int, ...]) -> None:
    channels = dict.fromkeys(range(1, 9), 0.5)
    found = {port: sorted(own(channels, mine)) for port, mine in lanes(ports).items()}
    assert found == {port: list(range(1, count + 1)) for port, count in zip(ports, wanted, strict=True)}


def test_an_uncounted_mark_is_not_zero() -> None:
    marked = replace(seen("4.32.3F-worn")).counters
    assert not isinstance(marked, Absent)
    assert marked["queue_ecn_marked"] == {"Ethernet1/1/3": 12}


@pytest.mark.parametrize(
    ("shown", "boot"),
    [({"uptime": 60.5, "bootupTimestamp": 1763700000.49}, ""), ({"bootupTimestamp": 1763700000.49}, "1763700000")],
)
def test_a_boot_time_that_moves_with_the_clock_is_ignored_where_there_is_an_uptime(
    shown: dict[str, float], boot: str
) -> None:
    found = system(json.dumps({"version": "4.35.1F", **shown}), "").system
    assert found == System(version="4.35.1F", uptime_s=shown.get("uptime"), boot=boot)


def test_of_several_chips_the_last_one_faces_the_cable() -> None:
    def chip(location: str, ber: float, corrected: int) -> dict[str, Any]:
        counts = {"correctedCodewords": {"value": corrected}, "uncorrectedCodewords": {"value": 0}}
        return {"description": {"location": location}, "fec": counts, "preFecBer": {"value": ber}}

    outer = {"description": {"location": "line"}}
    chips = [chip("line", 5e-10, 3), {"description": {}}, chip("system", 1e-12, 2), chip("line", 1e-22, 9), outer]
    found = interface.lines(json.dumps({"interfacePhyStatuses": {"Ethernet1/1": {"phyStatuses": chips}}}), ())
    assert found.lines == {"Ethernet1/1": Line(ber=1e-22)}
    assert found.counters == {"fec_corrected": {"Ethernet1/1": 9}, "fec_uncorrectable": {"Ethernet1/1": 0}}


@pytest.mark.parametrize(("parsed", "ber"), [(0, 0.0), (1, 1.0), (1.5, None), (-1e-9, None), (2**63, None)])
def test_an_error_rate_outside_0_to_1_is_unknown(parsed: float, ber: float | None) -> None:
    phy = {"phyStatuses": [{"preFecBer": {"value": parsed}}]}
    assert interface.lines(json.dumps({"interfacePhyStatuses": {"Ethernet1/1": phy}}), ()).lines == {
        "Ethernet1/1": Line(ber=ber)
    }
