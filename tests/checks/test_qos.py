from dataclasses import replace

import pytest

from netkit.design.traffic import Headroom
from netkit.facts import Facts
from netkit.facts.qos import Ecn, PortQos
from netkit.judge import CheckContext, Verdict
from tests.checks.judging import results, said, skipped
from tests.judge.scenes import fabric, observation, scene

BUILT = fabric()
PROFILE = BUILT.lossless
PORT = BUILT.switch("leaf01").ports[0]
ECN, ROOM = PORT.profile.ecn, PORT.profile.headroom or Headroom(0, 0, 0, None, "formula", None)
MAP = dict(enumerate(PROFILE.dscp_to_priority))
LOSSLESS = frozenset({3})
SWITCH = PortQos(
    trust="dscp",
    dscp_to_priority=MAP,
    pfc_rx=LOSSLESS,
    pfc_tx=LOSSLESS,
    weights={one.priority: one.weight for one in PROFILE.classes if not one.is_strict},
    strict=frozenset({6}),
    ecn={3: Ecn(True, ECN.min_bytes, ECN.max_bytes, ECN.probability_percent)},
    xoff_bytes={3: ROOM.xoff_bytes},
    cable_m=PORT.profile.cable.length_m,
)
NIC = PortQos(
    trust="dscp",
    dscp_to_priority=MAP,
    pfc_rx=LOSSLESS,
    pfc_tx=LOSSLESS,
    is_global_pause=False,
    cnp_dscp=48,
    cnp_priority=6,
    data_tos=PROFILE.tos,
    ecn_notifies=LOSSLESS,
    ecn_reacts=LOSSLESS,
)


def both(switch: PortQos = SWITCH, nic: PortQos = NIC) -> CheckContext:
    """Facts of one cable: a leaf's port and the NIC at its other end."""
    leaf = observation("leaf01", Facts(qos={PORT.name: switch}))
    return scene(BUILT, leaf, observation("gpu01", Facts(qos={"rail0": nic})))


def texts(found: CheckContext, name: str) -> list[str]:
    return [text for *_, text in said(found, name)]


def test_intended_settings_pass() -> None:
    assert said(both(), "qos") == []


@pytest.mark.parametrize(
    ("changed", "text"),
    [
        (replace(SWITCH, trust="pcp"), "trust is pcp, not dscp"),
        (replace(SWITCH, dscp_to_priority={**MAP, 26: 0}), "the priority of DSCP 26 is 0, not 3"),
        (replace(SWITCH, dscp_to_priority={**MAP, 48: 0}), "the priority of DSCP 48 is 0, not 6"),
        (replace(SWITCH, pfc_rx=frozenset()), "PFC on what it receives is off, not on priorities 3"),
        (replace(SWITCH, pfc_tx=frozenset({3, 4})), "PFC on what it sends is on priorities 3, 4, not on priorities 3"),
        (replace(SWITCH, is_global_pause=True), "global pause is on, not off"),
        (replace(SWITCH, strict=frozenset()), "strict scheduling is off, not on priorities 6"),
        (replace(SWITCH, weights={0: 50, 3: 90}), "the share of class best-effort is 50, not 10"),
    ],
)
def test_a_switch_port_that_differs_is_reported(changed: PortQos, text: str) -> None:
    assert texts(both(changed), "qos.switch") == [text]


@pytest.mark.parametrize(
    ("changed", "text"),
    [
        (replace(NIC, cnp_dscp=4), "the DSCP of its CNPs is 4, not 48"),
        (replace(NIC, cnp_priority=0), "the priority of its CNPs is 0, not 6"),
        (replace(NIC, data_tos=0), f"the traffic class of its RoCE is 0, not {PROFILE.tos}"),
        (replace(NIC, ecn_notifies=frozenset({0})), "answering CE with CNPs is on priorities 0, not on priorities 3"),
        (replace(NIC, ecn_reacts=frozenset()), "slowing down for CNPs is off, not on priorities 3"),
    ],
)
def test_a_nic_that_differs_is_reported(changed: PortQos, text: str) -> None:
    assert texts(both(nic=changed), "qos.nic") == [text]


def test_unreported_settings_are_not_a_fault() -> None:
    assert said(both(PortQos(), PortQos()), "qos.switch") == []
    assert ("gpu01", "rail0", "the device reports nothing of this") in skipped(both(nic=PortQos()), "qos.nic")


@pytest.mark.parametrize(
    ("ecn", "text"),
    [
        ({}, "ECN of the RoCE class is off, not on"),
        ({3: Ecn(False)}, "ECN of the RoCE class is off, not on"),
        (
            {3: Ecn(True, 2 * ECN.min_bytes, ECN.max_bytes, ECN.probability_percent)},
            f"the ECN minimum is {2 * ECN.min_bytes}, not {ECN.min_bytes}",
        ),
        ({3: Ecn(True, int(1.04 * ECN.min_bytes), ECN.max_bytes, ECN.probability_percent)}, ""),
    ],
)
def test_marking_matches_within_a_buffer_cell_of_the_chip(ecn: dict[int, Ecn], text: str) -> None:
    assert texts(both(replace(SWITCH, ecn=ecn)), "qos.ecn") == ([text] if text else [])


def test_headroom_must_fit_the_cable() -> None:
    short = PORT.profile.cable.length_m / 2
    assert texts(both(replace(SWITCH, cable_m=short)), "qos.headroom") == [
        f"its headroom is made for {short:g} m, the cable has {PORT.profile.cable.length_m:g} m"
    ]
    small = replace(SWITCH, xoff_bytes={3: ROOM.xoff_bytes // 2})
    assert texts(both(small), "qos.headroom") == [
        f"its headroom of {ROOM.xoff_bytes // 2:,} bytes is less than the {ROOM.xoff_bytes:,} that its cable needs"
    ]
    whole = replace(SWITCH, xoff_bytes=None, headroom_bytes={3: ROOM.size_bytes})
    assert texts(both(whole), "qos.headroom") == []


def test_a_length_alone_is_enough_to_judge_headroom() -> None:
    alone = replace(SWITCH, xoff_bytes=None, headroom_bytes=None)
    assert results(both(alone), "qos.headroom")["leaf01"].verdict is Verdict.PASS
    short = replace(alone, cable_m=1)
    assert texts(both(short), "qos.headroom") == [
        f"its headroom is made for 1 m, the cable has {PORT.profile.cable.length_m:g} m"
    ]
    untold = replace(alone, cable_m=None)
    assert results(both(untold), "qos.headroom")["leaf01"].verdict is Verdict.SKIPPED


def test_two_ends_with_different_errors_are_both_reported() -> None:
    other = frozenset({0})
    found = both(nic=replace(NIC, dscp_to_priority={**MAP, 26: 0}, pfc_rx=other, pfc_tx=other))
    assert texts(found, "qos.link") == [
        "PFC is on priorities 0 here and on priorities 3 on leaf01:swp1s0",
        "the priority of DSCP 26 is 0 here and 3 on leaf01:swp1s0",
    ]


@pytest.mark.parametrize(
    ("switch", "nic", "expected"),
    [
        (replace(SWITCH, trust="pcp"), NIC, ["trust is dscp here and pcp on leaf01:swp1s0"]),
        (
            replace(SWITCH, pfc_tx=frozenset()),
            NIC,
            ["respecting pauses is on priorities 3 here, sending them off on leaf01:swp1s0"],
        ),
        (
            replace(SWITCH, pfc_rx=frozenset()),
            NIC,
            ["sending pauses is on priorities 3 here, respecting them off on leaf01:swp1s0"],
        ),
        (replace(SWITCH, pfc_rx=None), replace(NIC, pfc_tx=None), []),
        (
            replace(SWITCH, pfc_rx=None),
            replace(NIC, pfc_rx=None, pfc_tx=frozenset()),
            ["PFC is off here and on priorities 3 on leaf01:swp1s0"],
        ),
        (
            SWITCH,
            replace(NIC, cnp_dscp=4),
            ["its CNPs leave with DSCP 4, which leaf01:swp1s0 takes for priority 0, not 6"],
        ),
        (SWITCH, replace(NIC, cnp_dscp=49), []),
        (
            SWITCH,
            replace(NIC, data_tos=0),
            ["its RoCE leaves with DSCP 0, which leaf01:swp1s0 takes for priority 0, not 3"],
        ),
        (SWITCH, replace(NIC, data_tos=104), []),
    ],
    ids=[
        "trust", "does not send", "does not respect", "one direction reported", "directions that disagree",
        "CNPs", "CNPs of one class", "data", "data without ECT",
    ],
)  # fmt: skip
def test_both_directions_of_a_cable_are_compared(switch: PortQos, nic: PortQos, expected: list[str]) -> None:
    assert texts(both(switch, nic), "qos.link") == expected


@pytest.mark.parametrize(
    ("changed", "text"),
    [
        (replace(NIC, weights={0: 50, 3: 50}, strict=frozenset({6})), "the share of class roce is 50, not 90"),
        (replace(NIC, weights={}, strict=frozenset()), "strict scheduling is off, not on priorities 6"),
        (
            replace(NIC, priority_to_buffer={**dict.fromkeys(range(8), 0), 3: 0, 4: 1}),
            "the receive buffer of RoCE is shared with priorities 0, 1, 2, 5, 6, 7, not its own",
        ),
    ],
)
def test_a_nic_that_schedules_or_buffers_differently_is_reported(changed: PortQos, text: str) -> None:
    assert text in texts(both(nic=changed), "qos.nic")


def test_a_nic_configured_by_an_operator_is_compared_with_its_capabilities() -> None:
    clusters = {"kubernetes": {"nic_qos": "operator"}}
    ceilings = {"units": 4, "hosts_per_unit": 4, "spines": 4, "addresses_per_nic": 9}
    wrong = replace(NIC, weights={0: 50, 3: 50}, strict=frozenset(), trust="pcp")
    seen = observation("gpu01", Facts(qos={"rail0": wrong}))
    found = results(scene(fabric(clusters=clusters, ceilings=ceilings), seen), "qos.nic")["gpu01"].findings
    (one,) = (one for one in found if one.verdict is Verdict.FAIL)
    assert one.text == "trust is pcp, not dscp"
    assert one.remedy == "see what the NicDevice of this NIC reports: the operator of the host's cluster sets it"


THREE = replace(
    NIC,
    priority_to_class={**dict.fromkeys(range(8), 0), 3: 1, 6: 2},
    weights={0: 10, 1: 90},
    strict=frozenset({2}),
)
"""As on Broadcom NICs: three classes, numbered consecutively."""


@pytest.mark.parametrize(
    ("nic", "expected"),
    [
        (THREE, []),
        (replace(THREE, weights={0: 50, 1: 50}), ["the share of class roce is 50, not 90"]),
        (replace(THREE, strict=frozenset()), ["strict scheduling is off, not on priorities 2"]),
    ],
)
def test_a_nic_with_other_class_numbers_is_judged_by_the_class_that_carries_the_traffic(
    nic: PortQos, expected: list[str]
) -> None:
    found = texts(both(nic=nic), "qos.nic")
    assert [text for text in found if "class roce" in text or "strict" in text] == expected


def test_a_nic_that_schedules_and_buffers_as_intended_passes() -> None:
    scheduled = replace(NIC, weights={0: 10, 3: 90}, strict=frozenset({6}))
    apart = replace(scheduled, priority_to_buffer={**dict.fromkeys(range(8), 0), 3: 1})
    assert texts(both(nic=apart), "qos") == []
