"""Traffic measurements: each gap is assigned to its wave and scope."""

from dataclasses import replace

from netkit.lab.proof import Gap, PingResult, TrafficPair
from netkit.plan import Blast, DevicePlan, Plan
from netkit.plan.model import ReachabilityLoss, Step
from netkit.platforms.change import Risk, Strategy
from netkit.prove.proof import (
    ACROSS,
    BEFORE,
    SAME_LEAF,
    ProofFlow,
    ScopeSeen,
    WaveSeen,
    WaveStart,
    by_scope,
    by_wave,
    mute,
    of_loss,
    since_the_first,
)

TURNS = (WaveStart(1, ("spine01",), 100.0), WaveStart(2, ("leaf01", "leaf02"), 200.0))
FLOWS = tuple(
    ProofFlow(scope, TrafficPair(name, "h", "i", "s", "d")) for name, scope in (("a", SAME_LEAF), ("b", ACROSS))
)


def test_a_gap_belongs_to_the_wave_in_which_it_began() -> None:
    heard = [
        PingResult("a", 50, (Gap(150.0, 150.5, 4), Gap(199.0, 203.0, 39))),
        PingResult("b", 50, (Gap(250.0, 252.0, 19),)),
    ]
    assert by_wave(TURNS, heard) == (WaveSeen(1, ("spine01",), 43, 4.0), WaveSeen(2, ("leaf01", "leaf02"), 19, 2.0))


def test_loss_before_the_first_wave_is_listed_separately() -> None:
    found = by_wave(TURNS, [PingResult("a", 50, (Gap(90.0, 91.0, 9),))])
    assert found[0] == WaveSeen(BEFORE, (), 9, 1.0)
    assert [one.lost for one in found[1:]] == [0, 0]


def test_loss_before_the_first_wave_does_not_count_against_a_change() -> None:
    during = Gap(100.5, 101.0, 4)
    heard = [PingResult("a", 50, (Gap(90.0, 91.0, 9), during)), PingResult("b", 50, (Gap(99.0, 99.5, 4),))]
    assert since_the_first(TURNS, heard) == (PingResult("a", 50, (during,)), PingResult("b", 50, ()))
    assert list(of_loss(plan(Risk.LOW), FLOWS, since_the_first(TURNS, heard[1:]))) == []


def test_a_scope_names_its_worst_flow() -> None:
    heard = [PingResult("a", 50, ()), PingResult("b", 40, (Gap(1.0, 2.5, 14),))]
    assert by_scope(FLOWS, heard) == (
        ScopeSeen(SAME_LEAF, 1, 50, 0, 0.0, ""),
        ScopeSeen(ACROSS, 1, 40, 14, 1.5, "b"),
    )


def test_a_ping_that_could_not_run_is_not_a_success() -> None:
    assert list(mute([PingResult("a", 0, (), "ping: no route"), PingResult("b", 1, ())])) == ["a: ping: no route"]


def plan(risk: Risk, lost: ReachabilityLoss | None = None, *gpus: str) -> Plan:
    blast = Blast(gpus=gpus, is_disruptive=bool(gpus))
    device = DevicePlan("leaf01", "leaf", "frr", "", (), risk, Strategy("files"), blast, "", "")
    return Plan("fabric", (device,), (), (), "", steps=(Step(1, ("leaf01",), after=lost or ReachabilityLoss()),))


def test_only_loss_that_the_model_does_not_predict_counts_against_a_change() -> None:
    name = "gpu01:rail0 → gpu02:rail0"
    flows, heard = (
        (ProofFlow(ACROSS, TrafficPair(name, "gpu01", "rail0", "s", "d")),),
        (PingResult(name, 40, (Gap(1.0, 2.5, 14),)),),
    )
    said = [f"{name}: 14 of 40 packets lost; netkit predicted no loss: a defect of netkit"]
    assert list(of_loss(plan(Risk.LOW), flows, heard)) == said
    assert list(of_loss(plan(Risk.SESSION), flows, heard)) == said
    assert list(of_loss(plan(Risk.BUFFER), flows, heard)) == []
    along, across = (("rail0", "rail0"),), (("rail0", "rail1"),)
    assert (
        list(of_loss(plan(Risk.LOW, ReachabilityLoss(4, ("gpu01", "gpu03"), rail_pairs=along)), flows, heard)) == said
    )
    assert (
        list(of_loss(plan(Risk.LOW, ReachabilityLoss(4, ("gpu01", "gpu02"), rail_pairs=across)), flows, heard)) == said
    )
    assert list(of_loss(plan(Risk.LOW, ReachabilityLoss(4, ("gpu01", "gpu02"), rail_pairs=along)), flows, heard)) == []
    assert list(of_loss(plan(Risk.LOW, None, "gpu01:rail1"), flows, heard)) == said
    assert list(of_loss(plan(Risk.LOW, None, "gpu02:rail0"), flows, heard)) == []


def test_a_loss_over_ipv6_only_predicts_none_over_ipv4() -> None:
    name = "gpu01:rail0 → gpu02:rail0"
    flows = tuple(
        ProofFlow(ACROSS, TrafficPair(f"{name}{family}", "gpu01", "rail0", source, far))
        for family, source, far in (("", "10.0.0.1", "10.0.0.3"), (" over IPv6", "2001:db8::1", "2001:db8::3"))
    )
    heard = [PingResult(flow.call.name, 40, (Gap(1.0, 2.5, 14),)) for flow in flows]
    said = [f"{flow.call.name}: 14 of 40 packets lost; netkit predicted no loss: a defect of netkit" for flow in flows]
    lost = ReachabilityLoss(4, ("gpu01", "gpu02"), rail_pairs=(("rail0", "rail0"),))
    assert list(of_loss(plan(Risk.LOW), flows, heard)) == said
    assert list(of_loss(plan(Risk.LOW, lost), flows, heard)) == []
    assert list(of_loss(plan(Risk.LOW, replace(lost, is_only_ipv6=True)), flows, heard)) == said[:1]
