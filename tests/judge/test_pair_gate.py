"""The gate between the switches of a pair, which reads NVUE answers."""

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, cast

from netkit.deploy import GateAnswer, GateQuestion, Moment
from netkit.errors import AccessError, Problem
from netkit.gate.pair import PairGate
from netkit.platforms.change import Risk
from netkit.platforms.driver import Reader
from netkit.platforms.view import Reply, View
from netkit.project.observing import looked_at
from tests import intents
from tests.judge.scenes import fabric

BUILT = fabric(networks=[intents.storage()], management={"pool": "192.0.2.0/24", "gateway": "192.0.2.1"})
CUT_OFF = "the change would cut it off; --busy proceeds anyway"


@dataclass
class Switch:
    """A switch of the pair with its answers."""

    down: set[str] = field(default_factory=set)
    is_paired: bool = True
    is_gone: bool = False

    def open(self) -> None:
        if self.is_gone:
            raise AccessError(Problem("no route to host"))

    def close(self) -> None:
        pass

    def ask(self, commands: Sequence[str]) -> tuple[Reply, ...]:
        ports = {name: _link(is_up=name not in self.down) for name in ("swp1", "swp2", "swp63", "swp64")}
        bonds = {f"bond{number}": _link(is_up=f"swp{number}" not in self.down) for number in (1, 2, 45)}
        answers = {
            "nv show interface -o json": {**ports, **bonds},
            "nv show mlag -o json": {"peer-alive": self.is_paired},
        }
        return tuple(Reply(json.dumps(answers.get(one, {})), at_s=1.0) for one in commands)


def _link(*, is_up: bool) -> dict[str, Any]:
    return {"link": {"oper-status": "up" if is_up else "down"}}


class Pair:
    """A gate, and the switches it reads."""

    def __init__(self) -> None:
        self.switches = {"storage01": Switch(), "storage02": Switch()}
        self.gate = PairGate(BUILT, lambda _question: GateAnswer("healthy"), _views, cast("Any", self.switches.get))
        self.samples: dict[str, str] = {}

    def ask(self, name: str, moment: Moment, risk: Risk = Risk.PORT, *, may_cut_off: bool = False) -> GateAnswer:
        reader, sample = cast("Reader", self.switches[name]), self.samples.get(name, "")
        question = GateQuestion(name, moment, reader, (), risk, may_cut_off=may_cut_off, sample=sample)
        answer = self.gate(question)
        if moment is Moment.BEFORE:
            self.samples[name] = answer.sample
        return GateAnswer(answer.verdict, answer.reasons)


def _views(name: str) -> tuple[View, ...]:
    return tuple(looked_at(BUILT, BUILT.switch(name)).views)


HEALTHY = GateAnswer("healthy")


def test_what_carried_traffic_before_has_to_carry_it_after() -> None:
    pair = Pair()
    first = pair.switches["storage01"]
    first.down = {"swp2"}
    assert pair.ask("storage01", Moment.BEFORE) == HEALTHY
    assert pair.ask("storage01", Moment.AFTER) == HEALTHY
    first.down, first.is_paired = {"swp1", "swp45", "swp2"}, False
    later = "it would be cut off when the other switch changes"
    assert pair.ask("storage01", Moment.AFTER) == GateAnswer(
        "worse",
        (
            f"storage01: the link of gpu01 is not back (swp1): {later}",
            f"storage01: the link of nas1 is not back (LAG 45): {later}",
            "storage01: MLAG does not see storage02 any more",
        ),
    )


def test_the_first_switch_is_read_again_before_the_second_changes() -> None:
    pair = Pair()
    assert pair.ask("storage01", Moment.BEFORE) == HEALTHY
    assert pair.ask("storage01", Moment.AFTER) == HEALTHY
    pair.switches["storage01"].down = {"swp1"}
    reason = "storage01: gpu01 has lost its link since storage01 changed: storage02 would cut it off"
    assert pair.ask("storage02", Moment.BEFORE) == GateAnswer("worse", (reason,))
    pair.switches["storage01"].is_gone = True
    assert pair.ask("storage02", Moment.BEFORE).verdict == "worse"
    pair.switches["storage01"] = Switch()
    assert pair.ask("storage02", Moment.BEFORE) == HEALTHY


def test_a_change_that_takes_links_down_does_not_start_where_a_host_has_no_other_link() -> None:
    pair = Pair()
    pair.switches["storage02"].down = {"swp2"}
    reason = f"storage01: gpu02 has no link to storage02: {CUT_OFF}"
    assert pair.ask("storage01", Moment.BEFORE) == GateAnswer("worse", (reason,))
    pair.switches["storage01"].down = {"swp2"}
    assert pair.ask("storage01", Moment.BEFORE) == HEALTHY
    pair.switches["storage02"].is_gone = True
    unknown = "storage01: storage02 cannot be read: devices without a link to it would be cut off"
    answer = GateAnswer("worse", (f"{unknown}; --busy proceeds anyway",))
    assert pair.ask("storage01", Moment.BEFORE) == answer
    assert pair.ask("storage01", Moment.BEFORE, may_cut_off=True) == HEALTHY
    assert pair.ask("storage01", Moment.BEFORE, Risk.LOW) == HEALTHY
