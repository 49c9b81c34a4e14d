from collections.abc import Callable, Mapping
from dataclasses import replace

import pytest

from netkit.design import Host, Nic
from netkit.facts import Absent, Facts, Observation
from netkit.facts.device import Interface, Probe
from netkit.facts.host import Lookup
from netkit.intent.model import Thresholds
from netkit.judge import CheckContext, Verdict
from netkit.judge.cause import cause_groups
from netkit.observe.probing import probe_pairs, probe_sizes
from tests.checks.judging import judge, results, said, shipped, skipped
from tests.judge.scenes import fabric, observation, scene

BUILT = fabric(units=[{"unit": "1-2", "hosts": 2}])
GPU, OTHER = BUILT.hosts[:2]
Change = Callable[[Probe], Probe]


def well(source: str, interface: str, destination: str, size_bytes: int) -> Probe:
    return Probe(source, interface, destination, size_bytes, 10, 10, 50.0, 60.0, 90.0)


def seen(change: Change, **limits: float) -> CheckContext:
    """Facts in which every host has sent probes, some of them changed."""
    found = (observation(host.name, Facts(probes=probes(host, change))) for host in BUILT.hosts)
    return scene(BUILT, *found, limits=Thresholds.model_validate(limits))


def probes(host: Host, change: Change) -> tuple[Probe, ...]:
    pairs = ((near, far, size) for near, far in probe_pairs(BUILT, host) for size in probe_sizes(host))
    return tuple(change(well(near.address, near.interface, far.address, size)) for near, far, size in pairs)


def of_nic(nic: Nic, change: Change, largest: bool = False) -> Change:
    """A change of all probes that a NIC sends or receives."""

    def changed(probe: Probe) -> Probe:
        is_its = nic.address in {probe.source, probe.destination} and (not largest or probe.size_bytes == 9000)
        return change(probe) if is_its else probe

    return changed


def lost(count: int) -> Change:
    return lambda probe: replace(probe, received=probe.sent - count)


def brief(found: list[tuple[str, str, str, str]]) -> list[tuple[str, str, str]]:
    return [(verdict, device, place) for verdict, device, place, _ in found]


def test_complete_arrival_passes_with_a_count() -> None:
    healthy = seen(lambda probe: probe)
    assert said(healthy, "probe") == []
    assert skipped(healthy, "probe.loss") == []
    sent = sum(len(probe_pairs(BUILT, host)) * 3 for host in BUILT.hosts)
    assert results(healthy, "probe.loss")["fabric"].examined == sent


def test_a_dead_rail_is_named_once() -> None:
    nic = GPU.nics[0]
    assert said(seen(of_nic(nic, lost(10))), "probe.loss") == [
        ("fail", GPU.name, nic.interface, "all 6 paths from and to this NIC lose packets, 100 % of every size")
    ]


def test_a_small_mtu_affects_large_packets_only() -> None:
    nic = OTHER.nics[1]

    def refused(probe: Probe) -> Probe:
        return replace(
            probe, received=0, reason="Frag needed and DF set (mtu = 1500)", router=BUILT.switches[0].loopback
        )

    found = said(seen(of_nic(nic, refused, largest=True)), "probe.loss")
    text = "0 % of 64, 0 % of 1500, 100 % of 9000 bytes"
    said_by = f"{BUILT.switches[0].name} reports: Frag needed and DF set (mtu = 1500)"
    whole = f"all 6 paths from and to this NIC lose packets, {text}; {said_by}"
    assert found == [("fail", OTHER.name, nic.interface, whole)]


def test_a_lossy_path_between_leaves_is_identified_by_its_ends() -> None:
    nic = GPU.nics[0]
    far = next(far for near, far in probe_pairs(BUILT, GPU) if near == nic and BUILT.switch(far.leaf).unit == 2)

    def some(probe: Probe) -> Probe:
        return lost(3)(probe) if (probe.source, probe.destination) == (nic.address, far.address) else probe

    owner = next(host.name for host in BUILT.hosts if far in host.nics)
    text = f"to {owner}:{far.interface} (across spines) loses 30 % of every size"
    assert said(seen(some), "probe.loss") == [("fail", GPU.name, nic.interface, text)]
    assert said(seen(some, probe_loss_percent=30), "probe.loss") == []


def test_misrouted_packets_do_not_explain_those_that_a_cable_loses() -> None:
    """The wrong route explains its own path, not the large packets lost on other paths of the NIC."""
    nic = GPU.nics[0]
    near = next(far for one, far in probe_pairs(BUILT, GPU) if one == nic and far.leaf == nic.leaf)

    def both(probe: Probe) -> Probe:
        ends = {probe.source, probe.destination}
        is_lost = ends == {nic.address, near.address} or (nic.address in ends and probe.size_bytes == 9000)
        return lost(10)(probe) if is_lost else probe

    lookups = tuple(
        Lookup(nic.address, nic.interface, far.address, nic.interface, "" if far == near else nic.gateway)
        for one, far in probe_pairs(BUILT, GPU)
        if one == nic
    )
    found = seen(both)
    reported = Observation(GPU.name, "linux", Facts(lookups=lookups, probes=probes(GPU, both)))
    found = replace(found, snapshot=replace(found.snapshot, devices={**found.snapshot.devices, GPU.name: reported}))
    checks = tuple(shipped().values())
    groups = cause_groups(judge(found, checks).findings, {one.name: one.layer for one in checks})
    assert [(one.head.check, one.head.place, [symptom.text for symptom in one.symptoms]) for one in groups] == [
        (
            "routes.lookups",
            nic.interface,
            ["all 2 paths that its routes lead elsewhere lose packets, 100 % of every size"],
        ),
        ("probe.loss", nic.interface, []),
    ]


def causes(found: CheckContext) -> set[str]:
    """The causes of losses, in a run of all checks."""
    reported = judge(found, tuple(shipped().values())).findings
    return {one.cause for one in reported if one.check == "probe.loss" and one.verdict > Verdict.SKIPPED}


def test_a_path_belongs_to_the_cable_between_its_leaves_that_is_down_or_small() -> None:
    near, far = next(pair for pair in probe_pairs(BUILT, GPU) if BUILT.switch(pair[1].leaf).unit == 2)
    leaf = BUILT.switch(near.leaf)
    up = next(port for port in leaf.ports if port.role == "up")

    def large(probe: Probe) -> Probe:
        is_it = (probe.source, probe.destination, probe.size_bytes) == (near.address, far.address, 9000)
        return lost(10)(probe) if is_it else probe

    alone = seen(large)
    assert causes(alone) == {f"way {leaf.name} — {far.leaf}"}
    for device, port in ((leaf.name, up.name), (up.peer, up.peer_port)):
        for interface in (Interface(mtu_bytes=1500), Interface(is_up=False)):
            others = {one.name: Interface(is_up=True) for one in BUILT.switch(device).ports}
            reported = Observation(device, "nvue", Facts(interfaces={**others, port: interface}))
            snapshot = replace(alone.snapshot, devices={**alone.snapshot.devices, device: reported})
            (cause,) = causes(replace(alone, snapshot=snapshot))
            assert cause.startswith(alone.cable(leaf.name, up.name))


def test_two_dead_rails_are_both_named() -> None:
    one, two = GPU.nics[0], OTHER.nics[0]

    def dead(probe: Probe) -> Probe:
        return of_nic(two, lost(10))(of_nic(one, lost(10))(probe))

    assert brief(said(seen(dead), "probe.loss")) == [
        ("fail", GPU.name, one.interface),
        ("fail", OTHER.name, two.interface),
    ]


def test_of_two_indistinguishable_ends_the_one_with_kernel_errors_is_named() -> None:
    apart = fabric(cross_rail="blocked")
    near, far = (host.nics[0] for host in apart.hosts)

    def result(source: Nic, destination: Nic, reason: str) -> Facts:
        return Facts(probes=(Probe(source.address, "rail0", destination.address, 64, 10, 0, reason=reason),))

    reported = scene(
        apart,
        observation("gpu01", result(near, far, "")),
        observation("gpu02", result(far, near, "Network is unreachable")),
    )
    assert brief(said(reported, "probe.loss")) == [("fail", "gpu02", "rail0")]


def test_a_slow_path_is_compared_with_paths_of_equal_distance() -> None:
    slow = {(near.address, far.address) for near, far in probe_pairs(BUILT, GPU)[:1]}
    assert said(seen(slower(slow)), "probe.latency") == [
        (
            "warn",
            GPU.name,
            GPU.nics[0].interface,
            f"to {OTHER.name}:rail0 (same leaf): the quickest answer took 2000 µs, usual are 50 µs",
        )
    ]
    assert said(seen(slower(slow), probe_outlier_us=2000), "probe.latency") == []


def slower(pairs: set[tuple[str, str]]) -> Change:
    return lambda probe: replace(probe, least_us=2000.0) if (probe.source, probe.destination) in pairs else probe


@pytest.mark.parametrize(
    ("facts", "reason"),
    [
        (Facts(), "no probes: not requested"),
        (Facts(probes=Absent("ping: not found")), "no probes: ping: not found"),
    ],
)
def test_a_host_that_sent_no_probes_is_skipped(facts: Facts, reason: str) -> None:
    assert skipped(scene(BUILT, observation(GPU.name, facts)), "probe.loss") == [(GPU.name, "", reason)]


def test_probes_of_another_fabric_are_not_judged() -> None:
    stranger = Facts(probes=(well("192.0.2.1", "rail0", "192.0.2.2", 64),))
    assert results(scene(BUILT, observation(GPU.name, stranger)), "probe.loss")["fabric"].examined == 0


def test_few_paths_give_no_baseline() -> None:
    small = fabric(cross_rail="blocked", rails=1)
    facts: Mapping[str, Facts] = {
        host.name: Facts(
            probes=tuple(well(near.address, "rail0", far.address, 64) for near, far in probe_pairs(small, host))
        )
        for host in small.hosts
    }
    reported = scene(small, *(observation(name, found) for name, found in facts.items()))
    assert skipped(reported, "probe.latency") == [("", "", "2 paths same leaf: too few to derive a usual value")]
