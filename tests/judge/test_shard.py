"""A fabric judged in shards has the same findings as one judged as a whole."""

from collections.abc import Iterator, Mapping
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from netkit.facts import Absent, Facts, Observation
from netkit.facts.counter import COUNTERS, place
from netkit.facts.device import KINDS, Interface
from netkit.judge import CheckContext, DeviceContext, Finding, catalog, device_check, fail
from netkit.judge.check import Check
from netkit.judge.run import run
from netkit.judge.shard import ELSEWHERE, Reads, judge_shard
from tests.checks.judging import sharded
from tests.judge.scenes import fabric, observation, scene
from tests.lanes import examples

BUILT = fabric()
CHECKS = tuple(catalog.load().values())
PLACES = {switch.name: [port.name for port in switch.ports] for switch in BUILT.switches}
PLACES |= {host.name: [nic.interface for nic in host.nics] for host in BUILT.hosts}
COUNTED = ("rx_bytes", "tx_bytes", "rx_pause", "tx_pause", "cnp_sent", "rx_packets", "rx_errors", "buffer_drops")
NUMBERED = ("queue_tx_packets", "queue_drops", "queue_ecn_marked", "priority_rx_packets")
QUEUES = (0, 3, 6)
"""Of nothing special, of RoCE and of CNPs."""
MOVES = [(0, 0), (7, 7), (0, 50_000), (5_000, 9_000_000), (900, 2), (2**64 - 5, 12), (2**32 - 9, 400)]
"""Standing still, counting, reset, and beyond the end of 64 and 32 bits."""


@st.composite
def scenes(draw: st.DrawFn) -> CheckContext:
    """A snapshot in which each counter of every port behaves differently."""
    seen = []
    for name, ports in PLACES.items():
        moves: dict[str, Mapping[str, tuple[int, int]]] = {}
        for counter in COUNTED:
            at = [place(port, 3) if COUNTERS[counter].scope != "port" else port for port in ports]
            moves[counter] = {one: draw(st.sampled_from(MOVES)) for one in at if draw(st.integers(0, 4))}
        for counter in NUMBERED:
            first = draw(st.integers(0, len(MOVES)))
            at = [place(port, queue) for port in ports for queue in QUEUES]
            moves[counter] = {one: MOVES[(first + number) % len(MOVES)] for number, one in enumerate(at[first:])}
        is_up = {port: Interface(is_up=draw(st.booleans())) for port in ports}
        if draw(st.integers(0, 5)):
            seen.append(observation(name, Facts(interfaces=is_up), **moves))
    return scene(BUILT, *seen)


@settings(max_examples=examples(50))
@given(scenes(), st.lists(st.integers(0, 2), min_size=len(PLACES), max_size=len(PLACES)))
def test_shards_give_the_findings_of_the_whole(whole: CheckContext, shard_of: list[int]) -> None:
    shards = [[name for name, shard in zip(PLACES, shard_of, strict=True) if shard == number] for number in range(3)]
    assert sharded(whole, CHECKS, shards) == run(whole, CHECKS)


def stuck() -> Iterator[Observation]:
    """A leaf whose counters stand still while its spine and its hosts count, and other cases."""
    ports = PLACES["leaf01"]
    still = dict.fromkeys(ports, (7, 7))
    pauses = {place(port, 3): (0, 0) for port in ports}
    yield observation("leaf01", rx_bytes=still, tx_bytes=still, rx_pause=pauses, tx_pause=pauses, rx_errors=still)
    for name in ("spine01", "spine02", "gpu01", "gpu02"):
        moving = dict.fromkeys(PLACES[name], (0, 9_000_000))
        yield observation(name, rx_bytes=moving, tx_bytes=moving)


def test_stuck_counters_visible_only_from_another_shard_are_judged_again() -> None:
    whole = scene(BUILT, *stuck())
    alone = judge_shard(part(whole, "leaf01"), CHECKS, Reads.of(CHECKS))
    (rate,) = (one for one in alone.results if one.check == "pfc.rate")
    assert rate.examined, "alone its pauses seem to be zero"
    assert alone.observations["leaf01"] == whole.snapshot.devices["leaf01"]
    found = sharded(whole, CHECKS, [("leaf01",), [name for name in PLACES if name != "leaf01"]])
    (rate,) = (one for one in found.results if one.id == "pfc.rate[leaf01]")
    assert not rate.examined
    assert found == run(whole, CHECKS)


def test_facts_that_no_other_check_reads_stay_in_the_shard() -> None:
    moving = dict.fromkeys(PLACES["leaf01"], (0, 9_000_000))
    seen = observation("leaf01", Facts(watchdogs={}), rx_bytes=moving, rx_packets=moving, rx_drops=moving)
    reads = Reads.of([check for check in CHECKS if check.name in {"counters.stuck", "links.fec", "watchdog.enabled"}])
    alone = judge_shard(part(scene(BUILT, seen), "leaf01"), CHECKS, reads)
    kept = alone.observations["leaf01"]
    assert [set(sample.counters) for sample in kept.samples] == [{"rx_bytes"}, {"rx_bytes"}]
    assert kept.facts.counters == {"rx_bytes": seen.samples[1].counters["rx_bytes"]}
    assert kept.facts.watchdogs is ELSEWHERE
    missing = [kind for kind in KINDS if kind not in {"counters", "watchdogs"}]
    assert all(isinstance(getattr(kept.facts, kind), Absent) for kind in missing)


def test_of_counters_by_priority_only_those_that_are_read_leave_the_shard() -> None:
    at = {place(port, queue): (0, 9_000) for port in PLACES["leaf01"] for queue in QUEUES}
    moving = dict.fromkeys(PLACES["leaf01"], (0, 9_000_000))
    seen = observation("leaf01", rx_bytes=moving, queue_drops=at, queue_ecn_marked=at, rx_pause=at, queue_tx_bytes=at)
    checks = [check for check in CHECKS if check.name in {"ecn-cnp.queue", "ecn-cnp.unmarked", "pfc.symmetry"}]
    kept = judge_shard(part(scene(BUILT, seen), "leaf01"), checks, Reads.of(checks)).observations["leaf01"]
    last = kept.samples[-1].counters
    assert {
        name: {one.rpartition("/")[2] for one in counts} for name, counts in last.items() if name != "rx_bytes"
    } == {
        "queue_drops": {"6"},
        "queue_ecn_marked": {"3"},
        "rx_pause": {"3"},
    }
    assert kept.facts.counters == last


@device_check(layer="link")
def peers(context: CheckContext, device: DeviceContext) -> Iterator[Finding]:
    """Looks at other devices without declaring it."""
    if len(context.devices) != len(PLACES):
        yield fail("", f"sees {len(context.devices)} devices with {device.name}")


@device_check(layer="link", reads=["interfaces"])
def declared(context: CheckContext, device: DeviceContext) -> Iterator[Finding]:
    """Looks at other devices, and declares it."""
    yield fail("", f"{device.name} is one of {len(context.devices)}")


def part(whole: CheckContext, *names: str) -> CheckContext:
    devices = {name: one for name, one in whole.snapshot.devices.items() if name in names}
    return replace(whole, snapshot=replace(whole.snapshot, devices=devices), names=frozenset(names))


@pytest.mark.parametrize(("check", "deferred"), [(peers, ["peers"]), (declared, [])])
def test_a_check_that_reads_other_devices_is_not_judged_in_a_shard(check: Check, deferred: list[str]) -> None:
    alone = judge_shard(part(scene(BUILT, *stuck()), "leaf01"), [check], Reads.of([check]))
    assert (sorted(alone.deferred), alone.results) == (deferred, ())


def test_a_check_of_the_fabric_without_declarations_reads_everything() -> None:
    undeclared = replace(next(check for check in CHECKS if check.of_fabric), reads=None)
    assert Reads.of([*CHECKS, undeclared]) == Reads()
