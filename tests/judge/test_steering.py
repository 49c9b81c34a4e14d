"""Which nodes get no new jobs: after some bad rounds, within a budget, and returned after some good ones."""

from collections.abc import Mapping, Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from netkit.design import Fabric
from netkit.judge import Finding, Verdict, fail, warn
from netkit.judge.finding import worst
from netkit.judge.run import CheckResult, Judgement
from netkit.judge.steering import NodeHealth, Steering, commands, host_at, steer
from netkit.report.judgement_text import steering_text
from tests import intents

SIZE: Mapping[str, Any] = {"ceilings": {"hosts_per_unit": 16}, "units": [{"unit": 1, "hosts": 10}]}
CHECKS = ("optics.light", "links.flaps")
PARITY = "ecn-cnp.parity"


def fabric(**steering: Any) -> Fabric:
    clusters = {"slurm": {"domain": "x", "steering": {"budget_percent": 20, **steering}}}
    return intents.fabric(intents.values({**SIZE, "clusters": clusters}))


FABRIC = fabric()
HOSTS = [host.name for host in FABRIC.hosts]


def result(check: str, device: str, findings: tuple[Finding, ...], unjudged: Sequence[str]) -> CheckResult:
    verdict = worst([Verdict.PASS, *(one.verdict for one in findings)])
    return CheckResult(check, device, verdict, 0 if f"{check}[{device}]" in unjudged else 8, findings)


def judgement(*findings: Finding, unjudged: Sequence[str] = ()) -> Judgement:
    """A round of all checks on all devices; results with these ids could not be judged.

    The check of CNPs is one of the fabric, whose findings name a device too.
    """
    results = []
    for check in CHECKS:
        for device in FABRIC.names:
            own = tuple(one for one in findings if (one.check, one.device) == (check, device))
            results.append(result(check, device, own, unjudged))
    of_fabric = tuple(one for one in findings if one.check == PARITY or not one.device)
    results.append(result(PARITY, "fabric", of_fabric, unjudged))
    return Judgement(tuple(results), ())


def at(device: str, place: str = "rail0", check: str = "links.flaps", **more: Any) -> Finding:
    return fail(place, "went down 3 times", device=device)._replace(check=check, **more)


def rounds(*judgements: Judgement, of: Fabric = FABRIC) -> list[Steering]:
    """The decisions of consecutive rounds."""
    (cluster,) = of.clusters
    found: list[Steering] = []
    for one in judgements:
        found.append(steer(of, cluster, one, found[-1].health if found else {}))
    return found


def moves(steering: Steering) -> tuple[Sequence[str], Sequence[str]]:
    return steering.taken, steering.returned


BAD, WELL = judgement(at(HOSTS[0])), judgement()
NONE: tuple[Sequence[str], Sequence[str]] = ((), ())


def test_a_node_is_out_after_two_bad_rounds_and_back_after_three_good_ones() -> None:
    found = rounds(BAD, BAD, BAD, WELL, WELL, WELL, WELL)
    out, back = ((f"{HOSTS[0]}.x",), ()), ((), (f"{HOSTS[0]}.x",))
    assert [moves(one) for one in found] == [NONE, out, NONE, NONE, NONE, back, NONE]
    assert [len(one.out) for one in found] == [0, 1, 1, 1, 1, 0, 0]
    assert found[-1].health == {}


def test_a_single_bad_round_is_forgotten() -> None:
    assert [moves(one) for one in rounds(*[BAD, WELL] * 5)] == [NONE] * 10


def test_a_good_round_between_bad_ones_keeps_a_node_out() -> None:
    assert rounds(BAD, BAD, *[WELL, WELL, BAD] * 5)[-1].out == (f"{HOSTS[0]}.x",)


def test_a_round_that_did_not_judge_the_failure_counts_as_neither() -> None:
    unknown = judgement(unjudged=(f"links.flaps[{HOSTS[0]}]",))
    found = rounds(BAD, BAD, unknown, unknown, unknown, WELL, WELL, unknown, WELL)
    assert [one.out for one in found[1:-1]] == [(f"{HOSTS[0]}.x",)] * 7
    assert found[-1].returned == (f"{HOSTS[0]}.x",)


def test_a_fabric_finding_at_a_nic_resolves_when_the_fabric_passes() -> None:
    lost = judgement(at(HOSTS[0], check=PARITY))
    unknown = judgement(unjudged=(f"{PARITY}[fabric]",))
    found = rounds(lost, lost, WELL, unknown, WELL, WELL)
    assert [one.out != () for one in found] == [False, True, True, True, True, False]


def test_no_more_nodes_are_out_than_the_budget_allows_and_the_worst_go_first() -> None:
    mild = [warn("rail0", "is dim", device=name)._replace(check="optics.light") for name in HOSTS[:3]]
    both = judgement(*mild, at(HOSTS[3]))
    *_, found = rounds(both, both)
    assert found.taken == (f"{HOSTS[3]}.x", f"{HOSTS[0]}.x")
    assert found.over_budget == (f"{HOSTS[1]}.x", f"{HOSTS[2]}.x")
    *_, later = rounds(both, both, judgement(*mild), judgement(*mild), judgement(*mild))
    assert (later.returned, later.taken) == ((f"{HOSTS[3]}.x",), (f"{HOSTS[1]}.x",))


@pytest.mark.parametrize(
    "finding",
    [
        at("leaf01", "swp99"),
        at("spine01", "swp1s0"),
        at("", "rail 0"),
        at(HOSTS[0], check="disk.room"),
        at(HOSTS[0], is_symptom=True),
        at(HOSTS[0], verdict=Verdict.ERROR),
        at(HOSTS[0], verdict=Verdict.SKIPPED),
    ],
    ids=["no such port", "spine", "fabric", "other check", "symptom", "error of the check", "skipped"],
)
def test_only_a_cause_at_a_node_takes_it_out(finding: Finding) -> None:
    assert rounds(judgement(finding), judgement(finding))[-1].health == {}


def test_a_finding_at_a_leaf_port_counts_for_its_host() -> None:
    port = FABRIC.switch("leaf01").host_ports[4]
    assert host_at(FABRIC, at("leaf01", port.name)) == port.peer == HOSTS[4]
    assert host_at(FABRIC, at("leaf01", f"{port.name}/3")) == port.peer


def test_a_finding_at_a_port_of_a_network_beside_the_rails_counts_for_its_host() -> None:
    values = {"networks": [intents.storage()], "management": {"pool": "192.0.2.0/24", "gateway": "192.0.2.1"}}
    built = intents.fabric(intents.values(values))
    assert [host_at(built, at("storage01", port)) for port in ("swp1", "swp2", "swp63")] == ["gpu01", "gpu02", ""]


def test_the_minimum_verdict_is_that_of_the_intent() -> None:
    mild = judgement(at(HOSTS[0], verdict=Verdict.WARN))
    assert rounds(mild, mild)[-1].out == (f"{HOSTS[0]}.x",)
    assert rounds(mild, mild, of=fabric(verdict="fail"))[-1].out == ()


BADS = st.sets(st.sampled_from(HOSTS), max_size=4)
UNKNOWN = judgement(unjudged=[f"links.flaps[{host}]" for host in HOSTS])


@given(st.lists(BADS | st.none(), max_size=25))
def test_no_node_moves_without_enough_rounds_or_beyond_the_budget(seen: list[set[str] | None]) -> None:
    found = rounds(*(UNKNOWN if bad is None else judgement(*map(at, sorted(bad))) for bad in seen))
    for number, one in enumerate(found):
        known = [bad for bad in seen[: number + 1] if bad is not None]
        assert len(one.out) <= 2
        assert all(name.removesuffix(".x") in bad for name in one.taken for bad in known[-2:])
        assert not one.taken or len(known) >= 2
        assert all(name.removesuffix(".x") not in bad for name in one.returned for bad in known[-3:])
        assert not (one.taken or one.returned) or seen[number] is not None
        earlier = set(found[number - 1].out) if number else set()
        assert set(one.out) == (earlier | set(one.taken)) - set(one.returned)


def test_the_commands_of_slurm_drain_with_a_reason_and_undrain() -> None:
    first, second, third, *_, last = rounds(BAD, BAD, BAD, WELL, WELL, WELL)
    assert list(commands(first, "")) == []
    reason = f"Reason=netkit: links.flaps: {HOSTS[0]}:rail0: went down 3 times"
    node = f"NodeName={HOSTS[0]}.x"
    drain = (f"{HOSTS[0]}.x", ("scontrol", "update", node, "State=DRAIN", reason))
    assert [list(commands(one, "")) for one in (second, third)] == [[drain], [drain]]
    assert list(commands(last, "")) == [(f"{HOSTS[0]}.x", ("scontrol", "update", node, "State=UNDRAIN"))]


def test_a_deselected_check_keeps_no_node_out() -> None:
    gone = NodeHealth(2, 0, is_out=True, judged_by=("links.flaps[leaf99]", f"disk.room[{HOSTS[0]}]"))
    (cluster,) = FABRIC.clusters
    health: Mapping[str, NodeHealth] = {f"{HOSTS[0]}.x": gone}
    for _ in range(3):
        found = steer(FABRIC, cluster, WELL, health)
        health = found.health
    assert found.returned == (f"{HOSTS[0]}.x",)


def test_the_commands_of_kubernetes_taint_label_and_explain() -> None:
    health = {"gpu01": NodeHealth(2, 0, True, "optics.light", "leaf01:swp1: is 'dim'", ())}
    found = Steering("kubernetes", health, ("gpu01",), ("gpu02",), (), 10)
    assert steering_text(found, "fabric.netkit", None).splitlines() == [
        "kubernetes: 1 of 10 nodes out",
        "  taken out  gpu01: optics.light at leaf01:swp1: is 'dim'",
        "  back       gpu02",
        (
            "  kubectl --request-timeout=30s annotate node gpu01 "
            "'fabric.netkit/reason=leaf01:swp1: is '\"'\"'dim'\"'\"'' --overwrite"
        ),
        "  kubectl --request-timeout=30s label node gpu01 fabric.netkit/health=degraded --overwrite",
        "  kubectl --request-timeout=30s taint node gpu01 fabric.netkit/unhealthy=optics.light:NoSchedule --overwrite",
        "  kubectl --request-timeout=30s taint node gpu02 fabric.netkit/unhealthy-",
        "  kubectl --request-timeout=30s label node gpu02 fabric.netkit/health-",
        "  kubectl --request-timeout=30s annotate node gpu02 fabric.netkit/reason-",
    ]


def test_a_failed_command_is_reported_and_a_healthy_cluster_is_one_line() -> None:
    assert steering_text(rounds(WELL)[-1], "", None) == "slurm: all 10 nodes take jobs\n"
    assert steering_text(rounds(BAD, BAD)[-1], "", {f"{HOSTS[0]}.x": "no route"}).splitlines()[-1] == (
        f"  failed, and tried again in the next round: {HOSTS[0]}.x: no route"
    )
