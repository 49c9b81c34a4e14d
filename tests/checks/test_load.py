from dataclasses import replace

import pytest

from netkit.facts import Facts
from netkit.facts.device import Interface
from netkit.facts.host import BgpSession
from tests.checks.judging import results, said, skipped
from tests.judge.scenes import fabric, observation, scene

BUILT = fabric()
UPS = [port.name for port in BUILT.switch("leaf01").ports if port.role == "up"]
LINE_RATE = 50_000_000_000 * 10
"""Bytes of 400G over the window."""


def test_drops_in_the_lossless_class_are_reported_and_others_may_drop() -> None:
    seen = observation(
        "leaf01", buffer_drops={"swp1s0/3": (1, 5), "swp1s0/0": (0, 9)}, queue_drops={"swp1s1/3": (2, 2)}
    )
    assert said(scene(BUILT, seen), "load.lossless") == [
        ("fail", "leaf01", "swp1s0/3", "packets of the lossless class were lost: buffer drops 4")
    ]


def test_a_switch_without_a_lossless_class_may_drop() -> None:
    built = fabric("frr", "10.3", purpose="lab")
    name = built.switch("leaf01").ports[0].name
    host = observation("gpu01", buffer_drops={"rail0/3": (0, 9)})
    leaf = observation("leaf01", queue_drops={f"{name}/3": (0, 9)})
    assert said(scene(built, host, leaf), "load.lossless") == []


@pytest.mark.parametrize(
    ("counters", "text"),
    [
        ({"rx_drops": (0, 10)}, ""),
        ({"rx_drops": (5, 45)}, "dropped 40 received packets and 0 to be sent, not counting lossless ones"),
        ({"rx_drops": (0, 9), "tx_drops": (0, 3)}, ""),
        ({"rx_drops": (0, 29), "tx_drops": (0, 3)}, "dropped 29 received packets and 3 to be sent"),
    ],
)
def test_drops_of_a_nic_are_reported(counters: dict[str, tuple[int, int]], text: str) -> None:
    seen = observation("gpu01", None, **{name: {"rail0": count} for name, count in counters.items()})
    found = said(scene(BUILT, seen), "load.discards")
    assert [(verdict, place, reported[: len(text)]) for verdict, _, place, reported in found] == (
        [("warn", "rail0", text)] if text else []
    )


def test_a_lossless_drop_is_reported_once() -> None:
    seen = observation("gpu01", rx_drops={"rail0": (0, 500)}, buffer_drops={"rail0/3": (0, 495)})
    assert said(scene(BUILT, seen), "load.discards") == []
    assert [place for _, _, place, _ in said(scene(BUILT, seen), "load.lossless")] == ["rail0/3"]


def test_a_nic_without_drop_counters_is_skipped() -> None:
    seen = scene(BUILT, observation("gpu01", tx_drops={"rail0": (0, 0), "rail1": (0, 0)}))
    reason = "what it drops is not known: missing"
    assert skipped(seen, "load.discards") == [("gpu01", "rail0", reason), ("gpu01", "rail1", reason)]


def test_uneven_uplinks_are_reported_under_high_load() -> None:
    first, *others = UPS
    busy = {first: (0, LINE_RATE), **dict.fromkeys(others, (0, LINE_RATE // 4))}
    assert {place for _, _, place, _ in said(scene(BUILT, observation("leaf01", tx_bytes=busy)), "load.balance")} == {
        *UPS
    }
    idle = {name: (low // 1000, high // 1000) for name, (low, high) in busy.items()}
    quiet = scene(BUILT, observation("leaf01", tx_bytes=idle))
    assert (said(quiet, "load.balance"), results(quiet, "load.balance")["leaf01"].examined) == ([], 0)
    even = dict.fromkeys(UPS, (0, LINE_RATE))
    assert said(scene(BUILT, observation("leaf01", tx_bytes=even)), "load.balance") == []


def test_parallel_links_to_one_leaf_are_balanced_and_those_to_others_may_differ() -> None:
    built = fabric(switches={"leaf": {"uplinks_per_spine": 2}})
    ports = built.switch("spine01").ports
    down = {leaf: [port.name for port in ports if port.peer == leaf] for leaf in ("leaf01", "leaf02")}
    first, second = down["leaf01"]
    sent = {**dict.fromkeys(down["leaf02"], (0, LINE_RATE // 4)), first: (0, LINE_RATE), second: (0, LINE_RATE)}
    assert said(scene(built, observation("spine01", tx_bytes=sent)), "load.balance") == []
    found = said(scene(built, observation("spine01", tx_bytes={**sent, second: (0, LINE_RATE // 4)})), "load.balance")
    assert {place for _, _, place, _ in found} == {first, second}


DRAINING = BgpSession(is_established=True, is_draining=True)
FIRST = next(port for port in BUILT.switch("leaf01").ports if port.name == UPS[0])


@pytest.mark.parametrize(
    "case", ["its port is down", "the spine drains", "the leaf drains", "by design", "nothing explains it"]
)
def test_an_uplink_that_traffic_avoids_is_not_compared(case: str) -> None:
    built, leaf, spine = BUILT, Facts(), Facts()
    if case == "its port is down":
        leaf = Facts(interfaces={FIRST.name: Interface(is_up=False)})
    elif case == "the spine drains":
        spine = Facts(sessions={FIRST.peer_port: DRAINING})
    elif case == "the leaf drains":
        leaf = Facts(sessions={FIRST.name: DRAINING})
    elif case == "by design":
        built = replace(BUILT, switches=tuple(replace(one, drain=one.name == FIRST.peer) for one in BUILT.switches))
    gone = {one.name for one in BUILT.switch("leaf01").ports if one.role == "up" and one.peer == FIRST.peer}
    idle = gone if case == "by design" else {FIRST.name}
    sent = {name: (0, 0 if name in idle else LINE_RATE) for name in UPS}
    found = scene(built, observation("leaf01", leaf, tx_bytes=sent), observation(FIRST.peer, spine))
    assert bool(said(found, "load.balance")) == (case == "nothing explains it")


def test_adaptive_routing_is_everywhere_or_nowhere() -> None:
    half = {name: index % 2 == 1 for index, name in enumerate(UPS)}
    found = said(scene(BUILT, observation("leaf01", Facts(adaptive_routing=half))), "load.adaptive-routing")
    assert [(place, text) for _, _, place, text in found] == [
        (name, "adaptive routing is on, and should be off everywhere") for name, is_on in half.items() if is_on
    ]
