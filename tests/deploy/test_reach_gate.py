"""How the health gate judges hosts below a switch: which reach each other before and after a change."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any, cast

import pytest
from nornir.plugins.runners import SerialRunner

from netkit.deploy.gate import GateAnswer, GateQuestion, Moment, RunMemory
from netkit.deploy.job import PlannedReachability
from netkit.deploy.reach_gate import (
    DRAINED_S,
    LONGEST_S,
    MOST_ABOVE,
    MOST_HOSTS,
    MOST_NAMED,
    MOST_NICS,
    ReachGate,
    calls,
)
from netkit.design.fabric import Fabric
from netkit.errors import AccessError, Problem
from netkit.plan import Plan
from netkit.plan.model import ReachabilityLoss, Step
from netkit.platforms.change import Risk
from netkit.platforms.driver import RailState, Reader
from tests import intents
from tests.deploy.fake import Time

FABRIC = intents.fabric(intents.values())
LEAF = "leaf01"
HOSTS = tuple(host for host in FABRIC.hosts if any(nic.leaf == LEAF for nic in host.nics))
NIC = next(nic for nic in HOSTS[0].nics if nic.leaf == LEAF)
ADDRESSES = {(host.name, nic.interface): nic.address for host in FABRIC.hosts for nic in host.nics}
AWAY = sorted({host.name for host in FABRIC.hosts} - {host.name for host in HOSTS})
ASKED = sorted({*(host.name for host in HOSTS), AWAY[0], AWAY[-1]})


def wide(units: int, hosts: int) -> Fabric:
    """A fabric of many units."""
    return intents.fabric(
        intents.values(
            {
                "units": [{"unit": number, "hosts": hosts} for number in range(1, units + 1)],
                "ceilings": {"units": units, "hosts_per_unit": 16, "spines": 4},
            }
        )
    )


@dataclass
class Bed:
    """Hosts that reach each other at their addresses, except for some pairs, and hosts that cannot be asked."""

    mute: set[str] = field(default_factory=set)
    apart: set[tuple[str, str]] = field(default_factory=set)
    """Pairs of addresses that do not reach each other."""
    narrow: set[tuple[str, str]] = field(default_factory=set)
    """Pairs that exchange only small packets."""
    have: dict[tuple[str, str], str] = field(default_factory=lambda: dict(ADDRESSES))
    away: set[str] = field(default_factory=set)
    asked: list[str] = field(default_factory=list)
    time: Time = field(default_factory=Time)
    later: dict[float, set[str]] = field(default_factory=dict)
    is_blank: bool = False
    memory: RunMemory = field(default_factory=RunMemory)
    fabric: Fabric = FABRIC
    have_v6: dict[tuple[str, str], str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        def others(question: GateQuestion) -> GateAnswer:
            return GateAnswer("healthy", (f"sample {question.sample!r}",), "mine", self.is_blank)

        self.gate = ReachGate(self.fabric, others, self.connect, clock=self.time.clock, runner=SerialRunner())

    def connect(self, name: str) -> "FakeHost":
        return FakeHost(self, name)

    def ask(
        self, moment: Moment, device: str = LEAF, risk: Risk = Risk.LOW, *, is_blank: bool = False, **more: Any
    ) -> GateAnswer:
        self.is_blank = is_blank
        return self.gate(GateQuestion(device, moment, cast("Reader", None), (), risk, memory=self.memory, **more))

    def after(self, sample: str, **more: Any) -> GateAnswer:
        return self.ask(Moment.AFTER, sample=sample, **more)


@dataclass
class FakeHost:
    bed: Bed
    name: str

    def open(self) -> None:
        self.bed.asked.append(self.name)
        if self.name in self.bed.away:
            raise AccessError(Problem("away"))

    def close(self) -> None:
        return

    def rail_states(self, far: Mapping[str, Sequence[str]], mtu_bytes: int = 0) -> tuple[RailState, ...]:
        assert mtu_bytes == self.bed.fabric.hosts[0].mtu_bytes
        for when_s, mute in self.bed.later.items():
            if self.bed.time.now_s >= when_s:
                self.bed.mute = mute
        return tuple(self.state(interface, called) for interface, called in far.items())

    def state(self, interface: str, called: Sequence[str]) -> RailState:
        source, source_v6 = (have.get((self.name, interface), "") for have in (self.bed.have, self.bed.have_v6))
        gateways = {one for host in self.bed.fabric.hosts for nic in host.nics for one in (nic.gateway, nic.gateway_v6)}
        gateways |= {one.gateway for host in self.bed.fabric.hosts for one in host.attachments}
        there = {*self.bed.have.values(), *self.bed.have_v6.values(), *gateways} - self.bed.mute
        own = {one: source_v6 if ":" in one else source for one in called}
        answers = [one for one in called if one in there and (own[one], one) not in self.bed.apart]
        whole = tuple(one for one in answers if (own[one], one) not in self.bed.narrow)
        return RailState(interface, True, False, (), tuple(answers), source, source_v6, whole)


@dataclass
class Model:
    """A prediction that some addresses are unreachable."""

    gone: set[str]

    def reaches(self, source: str, target: str) -> bool:
        return not {source, target} & self.gone

    def may_stay_lost(self, source: str, target: str) -> bool:
        return not self.reaches(source, target)


def far_of(device: str, host: str, interface: str) -> dict[str, str]:
    """The remote hosts that a NIC pings for a change: address → host."""
    found = calls(FABRIC, FABRIC.switch(device))
    return {
        nic.address: name
        for (who, one), far in found.items()
        for name, nic in far
        if (who, one.interface) == (host, interface)
    }


def test_a_leaf_whose_hosts_are_reachable_as_before_is_healthy() -> None:
    bed = Bed()
    before = bed.ask(Moment.BEFORE)
    assert before == GateAnswer("healthy", ("sample ''",), before.sample)
    assert bed.asked == [*ASKED, *(host.name for host in HOSTS)]
    assert bed.after(before.sample) == GateAnswer("healthy", ("sample 'mine'",), "mine")
    assert bed.ask(Moment.WATCHED, sample=before.sample).is_healthy


def test_hosts_ping_the_gateway_of_a_network_beside_the_rails() -> None:
    beside = intents.fabric({**intents.values(), "networks": [intents.storage()]})
    bed = Bed(fabric=beside)
    (gateway,) = {one.gateway for host in beside.hosts for one in host.attachments}
    before = bed.ask(Moment.BEFORE, "storage01", is_blank=True)
    assert not before.is_blank
    assert bed.asked == [host.name for host in beside.hosts]
    assert bed.ask(Moment.AFTER, "storage01", sample=before.sample, prediction=Model({"10.0.0.1"})).is_healthy
    bed.mute = {gateway}
    lost = tuple(
        f"{host}: bond0: its gateway does not answer any more; before, {gateway} did" for host in bed.asked[:4]
    )
    assert bed.ask(Moment.AFTER, "storage01", sample=before.sample, prediction=Model(set())) == GateAnswer(
        "worse", lost
    )
    moved = frozenset(bed.asked)
    assert bed.ask(Moment.AFTER, "storage01", sample=before.sample, moved=moved).is_healthy
    assert bed.ask(Moment.BEFORE, "storage02", is_blank=True).is_blank


def test_a_leaf_that_its_hosts_can_no_longer_reach_is_worse_at_the_time_limit() -> None:
    bed = Bed()
    sample = bed.ask(Moment.BEFORE).sample
    bed.mute = {NIC.gateway}
    began_s = bed.time.now_s
    answer = bed.after(sample, time_limit_s=10)
    said = f"{HOSTS[0].name}: {NIC.interface}: its leaf does not answer any more; before, {NIC.gateway} did"
    assert answer == GateAnswer("worse", (said,))
    assert bed.time.now_s >= began_s + 10
    assert bed.ask(Moment.WATCHED, sample=sample) == answer
    bed.later = {bed.time.now_s + 5: set()}
    assert bed.after(sample, time_limit_s=10).is_healthy


def test_hosts_without_a_path_are_waited_for_less_long_than_sessions() -> None:
    bed = Bed()
    sample = bed.ask(Moment.BEFORE).sample
    bed.mute, began_s = {NIC.gateway}, bed.time.now_s
    assert bed.after(sample, time_limit_s=1000).verdict == "worse"
    assert LONGEST_S <= bed.time.now_s - began_s <= LONGEST_S + 1


@pytest.mark.parametrize("device", [LEAF, "spine01"])
@pytest.mark.parametrize("is_across", [False, True])
def test_one_lost_pair_is_worse_along_the_rail_and_across(device: str, *, is_across: bool) -> None:
    bed = Bed()
    sample = bed.ask(Moment.BEFORE, device).sample
    far = far_of(device, HOSTS[0].name, NIC.interface)
    rails = {nic.address: (nic.rail, host.name, nic.interface) for host in FABRIC.hosts for nic in host.nics}
    target = next(one for one in far if (rails[one][0] != NIC.rail) is is_across)
    bed.apart = {(NIC.address, target)}
    _, host, interface = rails[target]
    said = f"{HOSTS[0].name}: {NIC.interface}: {host} {interface} does not answer any more at {target}"
    for moment in (Moment.AFTER, Moment.WATCHED):
        answer = bed.ask(moment, device, sample=sample)
        assert answer == GateAnswer("worse", (f"{said}, as it did before",))
    assert bed.ask(Moment.AFTER, device, sample=sample, prediction=Model({target})).is_healthy
    assert not bed.ask(Moment.AFTER, device, sample=sample, prediction=Model(set())).is_healthy


def test_a_pair_that_loses_packets_of_the_whole_mtu_is_worse() -> None:
    bed = Bed()
    target, name = next(iter(far_of(LEAF, HOSTS[0].name, NIC.interface).items()))
    bed.narrow = {(NIC.address, NIC.gateway)}
    sample = bed.ask(Moment.BEFORE).sample
    bed.narrow = {(NIC.address, target), (NIC.address, NIC.gateway)}
    interface = next(one for (_, one), address in ADDRESSES.items() if address == target)
    said = f"{HOSTS[0].name}: {NIC.interface}: {name} {interface} answers at {target}, but no packets of the whole MTU"
    assert bed.after(sample) == GateAnswer("worse", (f"{said}, as it did before",))
    assert bed.after(sample, is_back=True).is_healthy
    narrow_before = bed.ask(Moment.BEFORE).sample
    assert bed.after(narrow_before).is_healthy
    bed.narrow = {(NIC.address, NIC.gateway)}
    assert bed.after(sample).is_healthy


def test_a_drained_spine_is_not_changed_if_the_other_paths_carry_nothing() -> None:
    bed = Bed()
    sample = bed.ask(Moment.BEFORE, "spine01").sample
    target = next(iter(far_of("spine01", HOSTS[0].name, NIC.interface)))
    assert bed.ask(Moment.DRAINED, "spine01", sample=sample).is_healthy
    bed.apart, began_s = {(NIC.address, target)}, bed.time.now_s
    assert bed.ask(Moment.DRAINED, "spine01", sample=sample).verdict == "worse"
    assert bed.time.now_s - began_s >= DRAINED_S
    assert bed.ask(Moment.DRAINED, "spine01", sample=sample, prediction=Model({target})).is_healthy
    assert not bed.memory.lost
    assert bed.ask(Moment.DRAINED, "spine01", sample=sample, is_together=True).is_healthy
    bed.memory.lost.add((NIC.address, target))  # by an earlier change, and due after this one
    assert bed.ask(Moment.DRAINED, "spine01", sample=sample).is_healthy


def test_pairs_have_to_answer_over_ipv6_too() -> None:
    pools = {"loopbacks_v6": "2001:db8:255::/64", "hosts_v6": "2001:db8:128::/48"}
    fabric = intents.fabric(intents.values({"pools": pools}))
    bed = Bed(fabric=fabric)
    assert "2001:db8" not in bed.ask(Moment.BEFORE).sample  # hosts have no such address yet
    bed.have_v6 = {(host.name, nic.interface): nic.address_v6 for host in fabric.hosts for nic in host.nics}
    sample = bed.ask(Moment.BEFORE).sample
    assert bed.after(sample).is_healthy
    (host, one), ((far, other), *_) = next(iter(calls(fabric, fabric.switch(LEAF)).items()))
    bed.apart = {(one.address_v6, other.address_v6)}
    who = f"{far} {other.interface} does not answer any more at {other.address_v6}, as it did before"
    assert bed.after(sample) == GateAnswer("worse", (f"{host}: {one.interface}: {who}",))
    rails = min(one.interface, other.interface), max(one.interface, other.interface)
    lost = ReachabilityLoss(1, (host, far), rails, rail_pairs=(rails,), is_only_ipv6=True)
    plan = SimpleNamespace(steps=(Step(1, (LEAF,), after=lost),), gone=ReachabilityLoss(), partial=None)
    prediction = PlannedReachability(cast("Plan", plan), fabric)(LEAF, frozenset(), False)
    assert bed.after(sample, prediction=prediction).is_healthy
    bed.apart = {(one.address, other.address)}  # only IPv6 is excused
    assert bed.after(sample, prediction=prediction).verdict == "worse"
    bed.apart, bed.mute = set(), {one.gateway_v6}
    said = f"{host}: {one.interface}: its leaf does not answer any more; before, {one.gateway_v6} did"
    assert bed.after(sample).reasons == (said,)


def test_of_many_lost_pairs_a_few_are_named() -> None:
    bed = Bed()
    sample = bed.ask(Moment.BEFORE, "spine01").sample
    bed.mute = set(ADDRESSES.values())
    reasons = bed.ask(Moment.AFTER, "spine01", sample=sample).reasons
    total = sum(len(far) for far in calls(FABRIC, FABRIC.switch("spine01")).values())
    assert len(reasons) == MOST_NAMED + 1
    assert reasons[-1] == f"and {total - MOST_NAMED} more pairs"


def test_what_did_not_answer_before_need_not_answer_after() -> None:
    bed = Bed(mute={NIC.gateway, *ADDRESSES.values()})
    sample = bed.ask(Moment.BEFORE).sample
    assert bed.after(sample).is_healthy


def test_hosts_are_pinged_at_the_addresses_they_have() -> None:
    target, name = next(iter(far_of("spine01", HOSTS[0].name, NIC.interface).items()))
    interface = next(key[1] for key, address in ADDRESSES.items() if address == target)
    bed = Bed()
    bed.have[name, interface] = "10.9.9.9"
    sample = bed.ask(Moment.BEFORE, "spine01").sample
    bed.apart = {(NIC.address, "10.9.9.9")}
    said = f"{HOSTS[0].name}: {NIC.interface}: {name} {interface} does not answer any more at 10.9.9.9"
    assert bed.ask(Moment.AFTER, "spine01", sample=sample).reasons == (f"{said}, as it did before",)
    assert bed.ask(Moment.AFTER, "spine01", sample=sample, prediction=Model({"10.9.9.9"})).is_healthy


def test_another_nic_that_answers_at_the_address_a_nic_will_have_proves_nothing() -> None:
    """That of a removed rail, which gives its prefix to the next one."""
    target, name = next(iter(far_of("spine01", HOSTS[0].name, NIC.interface).items()))
    interface = next(key[1] for key, address in ADDRESSES.items() if address == target)
    bed = Bed()
    bed.have |= {(name, interface): "10.9.9.9", (name, "removed"): target}
    sample = bed.ask(Moment.BEFORE, "spine01").sample
    bed.mute = {target}
    assert bed.ask(Moment.AFTER, "spine01", sample=sample).is_healthy
    bed.mute = {target, "10.9.9.9"}
    assert bed.ask(Moment.AFTER, "spine01", sample=sample).verdict == "worse"


def test_a_pair_lost_as_predicted_is_expected_back_after_the_change_that_restores_it() -> None:
    bed = Bed()
    target = next(iter(far_of("spine01", HOSTS[0].name, NIC.interface)))
    bed.apart = {(NIC.address, target)}
    never = bed.ask(Moment.BEFORE, "spine01").sample
    assert bed.ask(Moment.AFTER, "spine01", sample=never, prediction=Model({target})).is_healthy
    bed.apart = set()
    sample = bed.ask(Moment.BEFORE, "spine01").sample
    bed.apart = {(NIC.address, target)}
    assert bed.ask(Moment.AFTER, "spine01", sample=sample, prediction=Model({target})).is_healthy
    sample = bed.ask(Moment.BEFORE, "spine02").sample
    assert bed.ask(Moment.AFTER, "spine02", sample=sample, prediction=Model({target})).is_healthy
    assert bed.ask(Moment.AFTER, "spine02", sample=sample, prediction=Model(set())).verdict == "worse"
    bed.apart = set()
    assert bed.ask(Moment.AFTER, "spine02", sample=sample, prediction=Model(set())).is_healthy


def test_a_lost_pair_is_not_expected_back_at_an_address_that_the_host_has_given_up() -> None:
    """A rollback of new addresses: the intent still has them, and their hosts have the earlier ones again."""
    bed = Bed()
    target, name = next(iter(far_of("spine01", HOSTS[0].name, NIC.interface).items()))
    interface = next(key[1] for key, address in ADDRESSES.items() if address == target)
    sample = bed.ask(Moment.BEFORE, "spine01").sample
    bed.apart = {(NIC.address, target)}
    assert bed.ask(Moment.AFTER, "spine01", sample=sample, prediction=Model({target})).is_healthy
    bed.have[name, interface] = "10.9.9.9"
    sample = bed.ask(Moment.BEFORE, "spine02").sample
    assert bed.ask(Moment.AFTER, "spine02", sample=sample).is_healthy
    bed.have[name, interface] = target
    sample = bed.ask(Moment.BEFORE, "spine02").sample
    assert bed.ask(Moment.AFTER, "spine02", sample=sample).verdict == "worse"


def test_a_pair_lost_from_one_end_is_expected_back_from_the_other() -> None:
    bed = Bed()
    one, other = ADDRESSES["gpu01", "rail0"], ADDRESSES["gpu02", "rail1"]
    sample = bed.ask(Moment.BEFORE, "leaf01").sample
    bed.apart = {(one, other), (other, one)}
    assert bed.ask(Moment.AFTER, "leaf01", sample=sample, prediction=Model({other})).is_healthy
    sample = bed.ask(Moment.BEFORE, "leaf02").sample
    assert bed.ask(Moment.AFTER, "leaf02", sample=sample, prediction=Model({other})).is_healthy
    answer = bed.ask(Moment.AFTER, "leaf02", sample=sample, prediction=Model(set()))
    said = f"gpu02: rail1: gpu01 rail0 does not answer any more at {one}, as it did before"
    assert answer == GateAnswer("worse", (said,))


def test_hosts_without_an_address_are_asked_once_until_they_change() -> None:
    bed = Bed(have=dict.fromkeys(ADDRESSES, ""))
    for leaf in ("leaf01", "leaf02"):
        assert bed.ask(Moment.BEFORE, leaf, is_blank=True).is_blank
    assert sorted(bed.asked) == sorted({"gpu01", "gpu02", "gpu05", "gpu06"})
    bed.ask(Moment.AFTER, "gpu01", Risk.PORT)
    bed.asked.clear()
    bed.ask(Moment.BEFORE, "leaf01")
    assert bed.asked == ["gpu01"]


def test_below_a_spine_without_sessions_no_host_is_asked() -> None:
    bed = Bed()
    assert bed.ask(Moment.BEFORE, "spine01", is_blank=True).is_blank
    assert bed.asked == []
    assert not bed.ask(Moment.BEFORE, "spine01").is_blank
    assert bed.asked


def test_a_pair_is_expected_back_once_all_devices_of_its_step_have_changed() -> None:
    one, other = ADDRESSES[HOSTS[0].name, NIC.interface], ADDRESSES[HOSTS[1].name, NIC.interface]
    lost = ReachabilityLoss(1, (HOSTS[0].name, HOSTS[1].name), (NIC.interface,))
    steps = Step(1, ("spine01",), after=lost), Step(2, ("leaf01", "leaf02"))
    predict = PlannedReachability(
        cast("Plan", SimpleNamespace(steps=steps, gone=ReachabilityLoss(), partial=None)), FABRIC
    )
    for device, done in (("spine01", set()), ("leaf01", {"spine01"})):
        found = predict(device, frozenset(done), False)
        assert found is not None
        assert not found.reaches(one, other)
    assert predict("leaf02", frozenset({"spine01", "leaf01"}), False) is None


def test_what_a_change_interrupts_is_not_expected_while_the_device_is_drained() -> None:
    one, other = ADDRESSES[HOSTS[0].name, NIC.interface], ADDRESSES[HOSTS[1].name, NIC.interface]
    lost = ReachabilityLoss(1, (HOSTS[0].name, HOSTS[1].name), (NIC.interface,))
    nothing = ReachabilityLoss()
    for steps in ((Step(1, ("spine01",), during=lost),), (Step(1, ("leaf01",), after=lost), Step(2, ("spine01",)))):
        plan = SimpleNamespace(steps=steps, gone=nothing, partial=None)
        predict = PlannedReachability(cast("Plan", plan), FABRIC)
        found = predict("spine01", frozenset(), False, is_changing=True)
        assert found is not None
        assert not found.reaches(one, other)
        assert predict("spine01", frozenset(), False) is None


def test_a_leaf_need_not_answer_at_a_gateway_that_its_change_takes_away() -> None:
    """A rollback of new addresses: the intent still has them."""
    bed = Bed()
    sample = bed.ask(Moment.BEFORE).sample
    bed.mute = {nic.gateway for host in FABRIC.hosts for nic in host.nics if nic.leaf == LEAF}
    assert bed.after(sample, addresses=frozenset({"10.9.9.9"})).is_healthy
    assert bed.after(sample, addresses=frozenset(bed.mute)).verdict == "worse"
    assert bed.after(sample).verdict == "worse"


@pytest.mark.parametrize("is_back", [False, True])
def test_a_host_may_lose_by_its_own_change_what_a_rollback_ends_without(*, is_back: bool) -> None:
    """A rollback to a fabric without IPv6: the intent still has it, and a deploy may break a rail by mistake."""
    pools = {"loopbacks_v6": "2001:db8:255::/64", "hosts_v6": "2001:db8:128::/48"}
    fabric = intents.fabric(intents.values({"pools": pools}))
    one, other = (host.nics[0] for host in fabric.hosts[:2])
    hosts = tuple(host.name for host in fabric.hosts[:2])
    gone = ReachabilityLoss(1, hosts, (one.interface,), is_only_ipv6=True)
    plan = cast("Plan", SimpleNamespace(steps=(), gone=gone, partial=None))
    found = PlannedReachability(plan, fabric, is_back=is_back)(hosts[0], frozenset(), False)
    assert found is not None
    assert found.may_stay_lost(one.address_v6, other.address_v6) is is_back
    assert not found.may_stay_lost(one.address, other.address)


def test_what_ends_across_rails_excuses_no_pair_along_a_rail() -> None:
    one, other = HOSTS[0].nics[:2], HOSTS[1].nics[:2]
    gone = ReachabilityLoss(1, (HOSTS[0].name, HOSTS[1].name), rail_pairs=((one[0].interface, one[1].interface),))
    predict = PlannedReachability(cast("Plan", SimpleNamespace(steps=(), gone=gone, partial=None)), FABRIC)
    found = predict(LEAF, frozenset(), False)
    assert found is not None
    assert found.reaches(one[0].address, other[0].address)
    assert not found.reaches(one[0].address, other[1].address)
    assert not found.reaches(one[1].address, other[0].address)


def test_a_leaf_need_not_serve_the_addresses_that_it_is_to_lose() -> None:
    bed = Bed()
    bed.have[HOSTS[0].name, NIC.interface] = "10.9.9.9"
    sample = bed.ask(Moment.BEFORE).sample
    called = far_of(LEAF, HOSTS[0].name, NIC.interface)
    bed.apart = {("10.9.9.9", one) for one in (NIC.gateway, *called)}
    assert bed.after(sample).is_healthy
    assert not bed.after(sample, prediction=Model(set())).is_healthy


def test_a_host_that_stops_answering_is_unknown_and_one_never_asked_is_not() -> None:
    bed = Bed(away={HOSTS[0].name})
    sample = bed.ask(Moment.BEFORE).sample
    assert bed.after(sample).is_healthy
    bed.away = {HOSTS[-1].name}
    assert bed.after(sample) == GateAnswer("inconclusive", (f"{HOSTS[-1].name} no longer answers",))


@pytest.mark.parametrize(("device", "risk"), [("spine01", Risk.NONE), (LEAF, Risk.NONE), (HOSTS[0].name, Risk.PORT)])
def test_hosts_are_asked_only_for_switch_changes_with_traffic_impact(device: str, risk: Risk) -> None:
    bed = Bed()
    sample = bed.ask(Moment.BEFORE, device, risk).sample
    assert bed.ask(Moment.AFTER, device, risk, sample=sample).is_healthy
    assert bed.asked == []


@pytest.mark.parametrize(("units", "hosts"), [(1, 1), (1, 9), (2, 3), (4, 4), (12, 16)])
def test_below_a_spine_each_unit_and_each_rail_pings_and_is_pinged(units: int, hosts: int) -> None:
    fabric = wide(units, hosts)
    found = calls(fabric, fabric.tier("spine")[0])
    by_name = {host.name: host for host in fabric.hosts}
    assert {by_name[name].unit for name, _ in found} == set(range(1, units + 1))
    assert {nic.rail for _, nic in found} == {rail.number for rail in fabric.rails}
    assert len({name for name, _ in found}) <= MOST_ABOVE
    assert len(found) <= MOST_NICS
    if units > 1:
        assert {one.rail for far in found.values() for _, one in far} == {rail.number for rail in fabric.rails}
    for (name, nic), far in found.items():
        assert len(far) == len(set(far)) <= 4
        assert all(other != name for other, _ in far)
        assert all(one.leaf != nic.leaf for _, one in far) or units == 1
        along = [one for _, one in far if one.rail == nic.rail]
        assert bool(along) == (units * hosts > 1)


def test_isolated_rails_are_not_pinged_across() -> None:
    fabric = intents.fabric(intents.values({"cross_rail": "blocked"}))
    for switch in (fabric.tier("spine")[0], fabric.tier("leaf")[0]):
        assert {one.rail == nic.rail for (_, nic), far in calls(fabric, switch).items() for _, one in far} == {True}


def test_a_host_that_cannot_be_asked_is_not_waited_for_twice() -> None:
    bed = Bed(away={HOSTS[0].name})
    gate = ReachGate(FABRIC, lambda _question: GateAnswer("healthy"), bed.connect, runner=SerialRunner())
    for _ in range(2):
        assert gate(GateQuestion(LEAF, Moment.BEFORE, cast("Reader", None), (), Risk.LOW)).is_healthy
    asking = [host.name for host in HOSTS[1:]]
    rest = [name for name in ASKED if name != HOSTS[0].name]
    assert bed.asked == [*ASKED, *asking, *rest, *asking]


def test_of_many_hosts_of_a_leaf_a_few_ping() -> None:
    fabric = wide(1, 9)
    asking = [name for name, _ in calls(fabric, fabric.switch(LEAF))]
    assert asking == ["gpu01", "gpu04", "gpu07"]
    assert len(asking) <= MOST_HOSTS


def test_a_result_is_blank_if_neither_the_earlier_gate_nor_any_host_measured() -> None:
    quiet = Bed(mute={*ADDRESSES.values(), *(nic.gateway for host in FABRIC.hosts for nic in host.nics)})
    away = Bed(away={host.name for host in FABRIC.hosts})
    found = [
        bed.ask(Moment.BEFORE, is_blank=is_blank).is_blank for bed in (quiet, away, Bed()) for is_blank in (True, False)
    ]
    assert found == [True, False, True, False, False, False]
