"""The gate of BGP sessions: established sessions stay established, with routes, or come back in time."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import pytest
from nornir.plugins.runners import SerialRunner

from netkit.deploy import GateAnswer, GateQuestion, Moment, SessionGate
from netkit.errors import AccessError, Problem
from netkit.platforms.change import Risk
from netkit.platforms.driver import SessionState
from tests import intents
from tests.deploy.fake import Time

FABRIC = intents.fabric(intents.values())
SPINE, LEAVES = "spine01", ("leaf01", "leaf02", "leaf03", "leaf04")
PORTS = [port.name for port in FABRIC.switch(SPINE).ports]
UPLINKS = {leaf: [port.name for port in FABRIC.switch(leaf).fabric_ports] for leaf in LEAVES}
TOWARDS = {leaf: [port.name for port in FABRIC.switch(leaf).ports if port.peer == SPINE] for leaf in LEAVES}


@dataclass
class Peer:
    """A device whose sessions change at given times."""

    time: Time
    prefixes: dict[str, int]
    later: dict[float, dict[str, int]] = field(default_factory=dict)
    is_away: bool = False
    is_bare: bool = False
    asked: int = 0

    def open(self) -> None:
        if self.is_away:
            raise AccessError(Problem("away"))

    def close(self) -> None:
        return

    def os_version(self) -> str:
        return "1"

    def running_files(self) -> Mapping[str, str | None]:
        return {}

    def sessions(self) -> tuple[SessionState, ...]:
        self.asked += 1
        for when_s in sorted(self.later):
            if self.time.now_s >= when_s:
                self.prefixes = self.later[when_s]
        up = tuple(SessionState(port, True, count, 60) for port, count in self.prefixes.items())
        return () if self.is_bare else (*up, SessionState("swp99", False, 0, 0))


class Bed:
    """A spine with its leaves, and a gate over them."""

    def __init__(self) -> None:
        self.time = Time()
        self.spine = Peer(self.time, dict.fromkeys(PORTS, 3))
        self.leaves = {leaf: Peer(self.time, dict.fromkeys(UPLINKS[leaf], 5)) for leaf in LEAVES}
        self.gate = SessionGate(FABRIC, self.leaves.__getitem__, clock=self.time.clock, runner=SerialRunner())
        self.sample = ""
        self.interrupted = frozenset(PORTS)

    def ask(
        self, moment: Moment, risk: Risk = Risk.SESSION, time_limit_s: float = 30, *, may_lose_paths: bool = False
    ) -> GateAnswer:
        question = GateQuestion(SPINE, moment, self.spine, LEAVES, risk, sample=self.sample, time_limit_s=time_limit_s)
        interrupted = self.interrupted if risk >= Risk.SESSION else frozenset()
        answer = self.gate(replace(question, interrupted=interrupted, may_lose_paths=may_lose_paths))
        self.sample = answer.sample or self.sample
        return answer


@pytest.fixture
def bed() -> Bed:
    found = Bed()
    assert found.ask(Moment.BEFORE).is_healthy
    return found


def test_unchanged_sessions_are_healthy_at_once(bed: Bed) -> None:
    began_s = bed.time.now_s
    assert bed.ask(Moment.AFTER) == GateAnswer("healthy")
    assert bed.time.now_s == began_s


def test_a_lost_session_is_worse_at_the_time_limit(bed: Bed) -> None:
    began_s = bed.time.now_s
    del bed.spine.prefixes[PORTS[0]]
    assert bed.ask(Moment.AFTER) == GateAnswer("worse", (f"{SPINE}: the session on {PORTS[0]} is gone",))
    assert bed.time.now_s == began_s + 30


def test_a_session_that_comes_back_in_time_is_healthy(bed: Bed) -> None:
    bed.spine.later = {bed.time.now_s: {}, bed.time.now_s + 12: dict.fromkeys(PORTS, 3)}
    began_s = bed.time.now_s
    assert bed.ask(Moment.AFTER).is_healthy
    assert began_s + 12 <= bed.time.now_s <= began_s + 13


def test_a_session_without_routes_is_worse(bed: Bed) -> None:
    bed.spine.prefixes[PORTS[1]] = 0
    answer = bed.ask(Moment.AFTER)
    assert answer == GateAnswer("worse", (f"{SPINE}: the session on {PORTS[1]} carries no routes, 3 before",))


def test_it_waits_for_new_routes_but_not_for_withdrawn_ones(bed: Bed) -> None:
    began_s = bed.time.now_s
    bed.spine.later = {began_s + step * 0.5: dict.fromkeys(PORTS, 1 + step % 2) for step in range(4)}
    assert bed.ask(Moment.AFTER).is_healthy
    assert began_s + 1.5 <= bed.time.now_s <= began_s + 3


def test_a_neighbor_that_lost_the_session_is_worse(bed: Bed) -> None:
    port = TOWARDS["leaf03"][0]
    del bed.leaves["leaf03"].prefixes[port]
    assert bed.ask(Moment.AFTER) == GateAnswer("worse", (f"leaf03: the session on {port} is gone",))


def test_sessions_of_a_neighbor_with_others_are_not_attributed_to_the_device(bed: Bed) -> None:
    (other,) = set(UPLINKS["leaf03"]) - set(TOWARDS["leaf03"])
    del bed.leaves["leaf03"].prefixes[other]
    assert bed.ask(Moment.AFTER).is_healthy


def test_a_neighbor_that_stops_answering_is_unknown(bed: Bed) -> None:
    bed.leaves["leaf02"].is_away = True
    assert bed.ask(Moment.AFTER) == GateAnswer("inconclusive", ("leaf02 no longer answers",))


def test_a_neighbor_that_did_not_answer_before_is_not_asked_after() -> None:
    bed = Bed()
    bed.leaves["leaf02"].is_away = True
    assert bed.ask(Moment.BEFORE).is_healthy
    assert bed.ask(Moment.AFTER).is_healthy


@pytest.mark.parametrize("prefixes", [None, 0], ids=["no session", "no routes"])
def test_a_spine_is_not_changed_if_a_leaf_has_routes_from_no_other(prefixes: int | None) -> None:
    bed = Bed()
    (other,) = set(UPLINKS["leaf03"]) - set(TOWARDS["leaf03"])
    bed.leaves["leaf03"].prefixes.update({other: prefixes} if prefixes is not None else {})
    if prefixes is None:
        del bed.leaves["leaf03"].prefixes[other]
    answer = bed.ask(Moment.BEFORE)
    line = "leaf03: it has routes from no other switch: the change would cut it off; --disruptive goes on"
    assert (answer.verdict, answer.reasons) == ("worse", (line,))
    began_s = bed.time.now_s
    bed.leaves["leaf03"].later = {began_s + 5: dict.fromkeys(UPLINKS["leaf03"], 5)}  # an earlier change is settling
    assert bed.ask(Moment.BEFORE).is_healthy
    assert began_s + 5 <= bed.time.now_s <= began_s + 6
    bed.leaves["leaf03"].later = {}
    bed.leaves["leaf03"].prefixes[other] = 0
    assert bed.ask(Moment.BEFORE, may_lose_paths=True).is_healthy
    assert bed.ask(Moment.BEFORE, Risk.LOW).is_healthy
    bed.interrupted = frozenset(port.name for port in FABRIC.switch(SPINE).ports if port.peer != "leaf03")
    assert bed.ask(Moment.BEFORE).is_healthy
    bed.interrupted = frozenset(PORTS)
    del bed.leaves["leaf03"].prefixes[TOWARDS["leaf03"][0]]  # it depends on neither
    assert bed.ask(Moment.BEFORE).is_healthy


def test_a_session_that_was_down_before_may_stay_down() -> None:
    bed = Bed()
    del bed.spine.prefixes[PORTS[0]]
    bed.ask(Moment.BEFORE)
    assert bed.ask(Moment.AFTER).is_healthy


def test_a_session_that_the_intent_removes_may_go() -> None:
    bed = Bed()
    bed.spine.prefixes["swp77"] = 9
    bed.ask(Moment.BEFORE)
    del bed.spine.prefixes["swp77"]
    assert bed.ask(Moment.AFTER).is_healthy


def test_a_session_down_until_its_other_end_changes_is_expected_after_that() -> None:
    bed, leaf = Bed(), LEAVES[1]
    far = next(port for port in FABRIC.switch(SPINE).ports if port.peer == leaf)
    bed.ask(Moment.BEFORE)
    del bed.spine.prefixes[far.name]
    del bed.leaves[leaf].prefixes[far.peer_port]
    ending = frozenset({far.name})
    question = GateQuestion(SPINE, Moment.AFTER, bed.spine, LEAVES, Risk.SESSION, ending, sample=bed.sample)
    assert bed.gate(question).is_healthy
    later = GateQuestion(leaf, Moment.BEFORE, bed.leaves[leaf], (), Risk.SESSION, memory=question.memory)
    sample = bed.gate(later).sample
    after = replace(later, moment=Moment.AFTER, sample=sample)
    missing = f"{leaf}: the session on {far.peer_port} is not back"
    assert bed.gate(after) == GateAnswer("worse", (missing,))
    assert bed.gate(replace(after, ending=frozenset({far.peer_port}))).is_healthy
    bed.leaves[leaf].prefixes[far.peer_port] = 1
    assert bed.gate(after).is_healthy
    del bed.leaves[leaf].prefixes[far.peer_port]
    assert bed.gate(after).is_healthy, "it was back once"


def test_for_a_device_without_configured_neighbors_no_other_is_asked() -> None:
    bed = Bed()
    bed.spine.is_bare = True
    assert bed.ask(Moment.BEFORE).is_blank
    assert bed.ask(Moment.AFTER).is_healthy
    assert sum(leaf.asked for leaf in bed.leaves.values()) == 0


def test_for_changes_of_descriptions_no_neighbor_is_asked() -> None:
    bed = Bed()
    bed.ask(Moment.BEFORE, Risk.NONE)
    assert bed.ask(Moment.AFTER, Risk.NONE).is_healthy
    assert sum(leaf.asked for leaf in bed.leaves.values()) == 0
    assert bed.spine.asked == 2


def test_a_drained_device_keeps_its_sessions_and_gets_its_full_time(bed: Bed) -> None:
    began_s = bed.time.now_s
    bed.spine.prefixes[PORTS[0]] = 0
    assert bed.ask(Moment.DRAINED, time_limit_s=10).is_healthy
    assert bed.time.now_s == began_s + 10
    del bed.spine.prefixes[PORTS[0]]
    assert bed.ask(Moment.DRAINED, time_limit_s=10).verdict == "worse"


def test_a_result_is_blank_if_no_session_is_established(bed: Bed) -> None:
    assert not bed.ask(Moment.BEFORE).is_blank
    bed.spine.prefixes = {}
    assert not bed.ask(Moment.BEFORE).is_blank  # its neighbors still have their sessions
    for leaf in bed.leaves.values():
        leaf.prefixes = {}
    assert bed.ask(Moment.BEFORE).is_blank
