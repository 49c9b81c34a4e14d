"""What the health gate makes of hosts that hang on a leaf."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, cast

import pytest
from nornir.plugins.runners import SerialRunner

from netkit.deploy.gate import GateAnswer, GateQuestion, Moment
from netkit.deploy.reach_gate import MOST_HOSTS, ReachGate
from netkit.errors import AccessError, Problem
from netkit.platforms.change import Risk
from netkit.platforms.driver import RailState, Reader
from tests import intents
from tests.deploy.fake import Time

FABRIC = intents.fabric(intents.values())
LEAF = "leaf01"
HOSTS = tuple(host for host in FABRIC.hosts if any(nic.leaf == LEAF for nic in host.nics))
NIC = next(nic for nic in HOSTS[0].nics if nic.leaf == LEAF)


@dataclass
class Bed:
    """Hosts that reach all, but for addresses that are mute; and some that cannot be asked."""

    mute: set[str] = field(default_factory=set)
    away: set[str] = field(default_factory=set)
    asked: list[str] = field(default_factory=list)
    time: Time = field(default_factory=Time)
    later: dict[float, set[str]] = field(default_factory=dict)

    def connect(self, name: str) -> "FakeHost":
        return FakeHost(self, name)

    def ask(self, moment: Moment, device: str = LEAF, risk: Risk = Risk.LOW, **more: Any) -> GateAnswer:
        def others(question: GateQuestion) -> GateAnswer:
            return GateAnswer("healthy", (f"sample {question.sample!r}",), "mine")

        gate = ReachGate(FABRIC, others, self.connect, clock=self.time.clock, runner=SerialRunner())
        return gate(GateQuestion(device, moment, cast("Reader", None), (), risk, **more))

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

    def rail_states(self, far: Mapping[str, Sequence[str]]) -> tuple[RailState, ...]:
        for when_s, mute in self.bed.later.items():
            if self.bed.time.now_s >= when_s:
                self.bed.mute = mute
        return tuple(
            RailState(interface, True, False, (), tuple(one for one in called if one not in self.bed.mute))
            for interface, called in far.items()
        )


def test_a_leaf_whose_hosts_reach_as_before_is_healthy() -> None:
    bed = Bed()
    before = bed.ask(Moment.BEFORE)
    assert before == GateAnswer("healthy", ("sample ''",), before.sample)
    assert bed.after(before.sample) == GateAnswer("healthy", ("sample 'mine'",), "mine")
    assert bed.asked == 2 * [host.name for host in HOSTS]


def test_a_leaf_that_its_hosts_do_not_reach_any_more_is_worse_once_patience_is_over() -> None:
    bed = Bed()
    sample = bed.ask(Moment.BEFORE).sample
    bed.mute = {NIC.gateway}
    began_s = bed.time.now_s
    answer = bed.after(sample, patience_s=10)
    said = f"{HOSTS[0].name}: {NIC.interface}: its leaf does not answer any more; before, {NIC.gateway} did"
    assert answer == GateAnswer("worse", (said,))
    assert bed.time.now_s >= began_s + 10
    bed.later = {bed.time.now_s + 5: set()}
    assert bed.after(sample, patience_s=10).is_healthy


def test_what_did_not_answer_before_need_not_answer_after() -> None:
    bed = Bed(mute={NIC.gateway})
    sample = bed.ask(Moment.BEFORE).sample
    assert bed.after(sample).is_healthy


def test_a_host_that_cannot_be_asked_any_more_leaves_it_open_and_one_never_asked_does_not() -> None:
    bed = Bed(away={HOSTS[0].name})
    sample = bed.ask(Moment.BEFORE).sample
    assert bed.after(sample).is_healthy
    bed.away = {HOSTS[-1].name}
    assert bed.after(sample) == GateAnswer("inconclusive", (f"{HOSTS[-1].name} cannot be asked any more",))


@pytest.mark.parametrize(("device", "risk"), [("spine01", Risk.PORT), (LEAF, Risk.NONE), (HOSTS[0].name, Risk.PORT)])
def test_hosts_are_asked_only_for_changes_of_leaves_that_can_be_felt(device: str, risk: Risk) -> None:
    bed = Bed()
    sample = bed.ask(Moment.BEFORE, device, risk).sample
    assert bed.ask(Moment.AFTER, device, risk, sample=sample).is_healthy
    assert bed.asked == []


def test_nobody_waits_twice_for_a_host_that_cannot_be_asked() -> None:
    bed = Bed(away={HOSTS[0].name})
    gate = ReachGate(FABRIC, lambda _question: GateAnswer("healthy"), bed.connect, runner=SerialRunner())
    for _ in range(2):
        assert gate(GateQuestion(LEAF, Moment.BEFORE, cast("Reader", None), (), Risk.LOW)).is_healthy
    assert bed.asked == [HOSTS[0].name, *2 * [host.name for host in HOSTS[1:]]]


def test_of_many_hosts_a_few_are_asked() -> None:
    wide = intents.fabric(
        intents.values(
            {"units": [{"unit": 1, "hosts": 9}], "ceilings": {"units": 1, "hosts_per_unit": 16, "spines": 4}}
        )
    )
    bed = Bed()
    gate = ReachGate(wide, lambda _question: GateAnswer("healthy"), bed.connect, runner=SerialRunner())
    gate(GateQuestion(LEAF, Moment.BEFORE, cast("Reader", None), (), Risk.LOW))
    assert bed.asked == ["gpu01", "gpu04", "gpu07"]
    assert len(bed.asked) <= MOST_HOSTS
