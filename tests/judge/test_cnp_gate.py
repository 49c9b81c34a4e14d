"""The CNP part of the health gate, with scripted host counters."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, cast

import pytest
from nornir.plugins.runners import SerialRunner

from netkit.deploy.clock import DeployClock
from netkit.deploy.gate import GateAnswer, GateQuestion, Moment
from netkit.errors import AccessError, Problem
from netkit.facts import Absent, Facts
from netkit.gate.cnp import MOST_HOSTS, QUIET_S, WINDOW_S, CnpGate, CnpWatch
from netkit.intent.model import Thresholds
from netkit.platforms.change import Risk
from netkit.platforms.driver import Reader
from netkit.platforms.view import Reply, View
from tests.judge.scenes import fabric

BUILT = fabric()
LIMITS = Thresholds()
COUNTERS = ("cnp_sent", "cnp_handled", "cnp_ignored", "ecn_received")
RAIL0, RAIL1 = "leaf01", "leaf02"


def counters(text: str) -> Facts:
    return Facts(counters=json.loads(text) if text else Absent("nothing"))


VIEWS = (View(("counters",), frozenset({"counters"}), counters), View(("qos",), frozenset({"qos"}), counters))


@dataclass
class Bed:
    """Hosts of two rails: CNPs a second that each NIC sends and receives; time passes only while the gate sleeps."""

    sent: float = 1000.0
    heard: Mapping[int, float] = field(default_factory=lambda: {0: 1000.0, 1: 1000.0})
    now_s: float = 1000.0
    away: set[str] = field(default_factory=set)
    is_blank: bool = False
    looks: int = 0
    lag_s: float = 0.0
    """How much later than the first host the second one answers."""
    counts: dict[tuple[str, str], float] = field(default_factory=dict)
    gates: list[CnpGate] = field(default_factory=list)
    later: dict[float, Mapping[int, float]] = field(default_factory=dict)

    def sleep_s(self, seconds: float) -> None:
        for when_s in sorted(self.later):
            if self.now_s >= when_s:
                self.heard = self.later[when_s]
        self.now_s += seconds
        for rail, heard in self.heard.items():
            self._add(f"rail{rail}", "cnp_sent", self.sent * seconds)
            self._add(f"rail{rail}", "cnp_handled", heard * seconds)

    def _add(self, nic: str, counter: str, count: float) -> None:
        self.counts[nic, counter] = self.counts.get((nic, counter), 0.0) + count

    def connect(self, name: str) -> "FakeHost":
        return FakeHost(self, name)

    def gate(self) -> CnpGate:
        """The gate of one deploy; the same at every call."""
        if not self.gates:
            clock = DeployClock(lambda: self.now_s, self.sleep_s, lambda: self.now_s)
            watch = CnpWatch(BUILT, self.connect, lambda _name: VIEWS, clock=clock, runner=SerialRunner())

            def others(_question: GateQuestion) -> GateAnswer:
                return GateAnswer("healthy", sample="o", is_blank=self.is_blank)

            self.gates.append(CnpGate(BUILT, others, watch, LIMITS, clock=clock))
        return self.gates[0]

    def ask(self, moment: Moment, device: str = RAIL0, risk: Risk = Risk.BUFFER, **more: Any) -> GateAnswer:
        return self.gate()(GateQuestion(device, moment, cast("Reader", None), (), risk, **more))


@dataclass
class FakeHost:
    bed: Bed
    name: str

    def open(self) -> None:
        self.bed.looks += 1
        if self.name in self.bed.away:
            raise AccessError(Problem("away"))

    def close(self) -> None:
        return

    def running_files(self) -> Mapping[str, str | None]:
        return {}

    def os_version(self) -> str:
        return "1"

    def ask(self, commands: Sequence[str]) -> tuple[Reply, ...]:
        assert tuple(commands) == ("counters",)
        is_first = self.name == "gpu01"
        found = {
            counter: {f"rail{rail}": int(self.bed.counts.get((f"rail{rail}", counter), 0)) for rail in (0, 1)}
            if is_first
            else {"rail0": 0, "rail1": 0}
            for counter in COUNTERS
        }
        return (Reply(json.dumps(found), at_s=self.bed.now_s + (0.0 if is_first else self.bed.lag_s)),)


def losing(share: float) -> dict[int, float]:
    return {0: 1000.0 * (1 - share), 1: 1000.0}


def test_a_change_after_which_cnps_arrive_as_before_is_healthy() -> None:
    bed = Bed(heard=losing(0.02))
    before = bed.ask(Moment.BEFORE)
    assert before == GateAnswer("healthy", (), before.sample)
    assert bed.ask(Moment.AFTER, sample=before.sample, time_limit_s=30).is_healthy


def test_a_change_that_loses_cnps_is_worse_at_the_time_limit() -> None:
    bed = Bed()
    sample = bed.ask(Moment.BEFORE).sample
    bed.heard = losing(0.4)
    began_s = bed.now_s
    answer = bed.ask(Moment.AFTER, sample=sample, time_limit_s=30)
    assert answer == GateAnswer(
        "worse",
        ("rail 0: 40.0 % of its CNPs never arrive, 0.0 % before: sent 3000, handled 1800, ignored 0, CE 0",),
    )
    assert 30 <= bed.now_s - began_s <= 30 + 2 * WINDOW_S


def test_cnps_may_take_a_moment_to_return() -> None:
    bed = Bed()
    sample = bed.ask(Moment.BEFORE).sample
    bed.heard, bed.later = losing(1.0), {bed.now_s + 10: losing(0.0)}
    assert bed.ask(Moment.AFTER, sample=sample, time_limit_s=30).is_healthy


def test_a_rail_is_compared_with_itself_and_not_with_an_ideal() -> None:
    bed = Bed(heard=losing(0.3))
    sample = bed.ask(Moment.BEFORE).sample
    assert bed.ask(Moment.AFTER, sample=sample).is_healthy
    bed.heard = losing(0.37)
    assert bed.ask(Moment.AFTER, sample=sample).verdict == "worse"


def test_only_the_rails_of_a_leaf_matter_to_it() -> None:
    bed = Bed()
    sample = bed.ask(Moment.BEFORE, RAIL1).sample
    bed.heard = losing(0.9)
    assert bed.ask(Moment.AFTER, RAIL1, sample=sample).is_healthy
    of_spine = Bed()
    sample = of_spine.ask(Moment.BEFORE, "spine01").sample
    of_spine.heard = losing(0.9)
    assert of_spine.ask(Moment.AFTER, "spine01", sample=sample).verdict == "worse"


@pytest.mark.parametrize("when", ["before the change", "after it"])
def test_too_few_cnps_are_not_compared_and_that_is_reported(when: str) -> None:
    bed = Bed(sent=2 if when.startswith("before") else 1000, heard={0: 2.0, 1: 2.0})
    sample = bed.ask(Moment.BEFORE).sample
    bed.sent = 2
    assert bed.ask(Moment.AFTER, sample=sample) == GateAnswer(
        "healthy", (f"its CNPs were not compared: too few {when}",), "o"
    )


def test_a_rail_that_was_unreadable_before_is_not_compared() -> None:
    bed = Bed(away={"gpu02"})
    answer = bed.ask(Moment.BEFORE, "spine01")
    assert answer.is_healthy
    asked = bed.looks
    said = ("its CNPs were not compared: not all of its NICs were read: gpu02",)
    assert bed.ask(Moment.AFTER, "spine01", sample=answer.sample) == GateAnswer("healthy", said, "o")
    assert bed.looks == asked


def test_a_rail_that_became_unreadable_is_inconclusive() -> None:
    bed = Bed()
    sample = bed.ask(Moment.BEFORE).sample
    bed.away = {"gpu02"}
    answer = bed.ask(Moment.AFTER, sample=sample, time_limit_s=5)
    assert answer == GateAnswer("inconclusive", ("rail 0: not all of its NICs were read: gpu02",))


def test_a_difference_explained_by_reading_times_is_not_a_loss() -> None:
    bed = Bed(lag_s=0.3)
    sample = bed.ask(Moment.BEFORE).sample
    bed.heard = losing(0.12)
    assert bed.ask(Moment.AFTER, sample=sample).is_healthy
    bed.heard = losing(0.3)
    assert bed.ask(Moment.AFTER, sample=sample).verdict == "worse"


def test_losses_of_a_drained_spine_stop_the_deploy_before_the_next_device() -> None:
    bed = Bed()
    assert bed.ask(Moment.BEFORE, "spine01").is_healthy
    bed.heard = losing(0.5)
    bed.sleep_s(60)
    answer = bed.ask(Moment.BEFORE, "spine02")
    assert answer.verdict == "worse"
    assert "50.0 % of its CNPs never arrive, 0.0 % when the deploy began" in answer.reasons[0]
    assert answer.reasons[1] == "review the changes so far; netkit rollback reverts them"


@pytest.mark.parametrize(
    ("device", "risk"), [(RAIL0, Risk.SESSION), (RAIL0, Risk.LOW), ("gpu01", Risk.BUFFER), ("spine01", Risk.NONE)]
)
def test_for_changes_that_touch_no_queue_no_host_is_read(device: str, risk: Risk) -> None:
    bed = Bed()
    sample = bed.ask(Moment.BEFORE, device, risk).sample
    assert bed.ask(Moment.AFTER, device, risk, sample=sample).is_healthy
    assert bed.looks == 0


def test_for_a_device_without_traffic_hosts_are_read_only_if_cnps_were_seen_in_this_run() -> None:
    bed = Bed(is_blank=True)
    before = bed.ask(Moment.BEFORE)
    assert before.is_blank
    assert bed.ask(Moment.AFTER, sample=before.sample) == GateAnswer("healthy", sample="o", is_blank=True)
    assert bed.looks == 0
    bed.is_blank = False
    bed.ask(Moment.BEFORE)
    seen, bed.is_blank = bed.looks, True
    bed.now_s += 1000
    bed.ask(Moment.BEFORE)
    assert bed.looks > seen > 0


def test_devices_of_a_wave_share_a_reading_and_quiet_rails_are_read_less_often() -> None:
    bed = Bed()
    for device in (RAIL0, RAIL0, "spine01"):
        assert bed.ask(Moment.BEFORE, device).is_healthy
    assert bed.looks == 2
    quiet = Bed(sent=0, heard={0: 0.0, 1: 0.0})
    for _ in range(2):
        assert quiet.ask(Moment.BEFORE).is_healthy
        quiet.sleep_s(QUIET_S / 2)
    assert quiet.looks == 2
    quiet.sleep_s(QUIET_S)
    assert quiet.ask(Moment.BEFORE).is_healthy
    assert quiet.looks == 2 * 2


def test_too_many_hosts_for_simultaneous_reading_are_not_read() -> None:
    wide = fabric(units=[{"unit": "1-9", "hosts": 8}], ceilings={"units": 16, "hosts_per_unit": 8, "spines": 4})
    assert len(wide.hosts) > MOST_HOSTS
    watch = CnpWatch(wide, Bed().connect, lambda _name: VIEWS, runner=SerialRunner())
    why = watch.rails(frozenset({0}), lambda _began_s: False)[0].why_not
    assert why == "72 hosts are more than the 64 that can be read at the same time"
