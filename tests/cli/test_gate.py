"""The choice of health gates: only changes with traffic impact run all of them."""

from itertools import count

from netkit.deploy import Gate, GateAnswer, GateQuestion, Moment
from netkit.deploy.fan_out import each, threads
from netkit.platforms.change import Risk
from netkit.project.gate import LazyGate
from tests.deploy.fake import FakeDevice, FakeDriver, Time

READER = FakeDriver("leaf01", FakeDevice(Time(), {}, {}), lambda _name, _step: None)
NUMBERS = count(1)


def question(risk: Risk) -> GateQuestion:
    return GateQuestion("leaf01", Moment.BEFORE, READER, (), risk)


def sessions(_question: GateQuestion) -> GateAnswer:
    return GateAnswer("healthy", sample="sessions")


def whole() -> Gate:
    answer = GateAnswer("healthy", sample=f"whole {next(NUMBERS)}")
    return lambda _question: answer


def test_a_change_without_traffic_impact_runs_the_session_gate_alone() -> None:
    def unwanted() -> Gate:
        raise AssertionError

    assert LazyGate(sessions, unwanted)(question(Risk.NONE)).sample == "sessions"


def test_all_other_changes_share_one_complete_gate() -> None:
    door = LazyGate(sessions, whole)
    found = each(threads(8), map(str, range(8)), lambda _name: door(question(Risk.BUFFER)).sample)
    assert set(found.values()) == {"whole 1"}
