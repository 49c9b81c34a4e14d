"""The door of the health gate: only changes that can be felt pay for all that it compares."""

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


def test_a_change_that_nobody_feels_is_asked_about_sessions_alone() -> None:
    def unwanted() -> Gate:
        raise AssertionError

    assert LazyGate(sessions, unwanted)(question(Risk.NONE)).sample == "sessions"


def test_all_others_come_to_one_whole_gate() -> None:
    door = LazyGate(sessions, whole)
    found = each(threads(8), map(str, range(8)), lambda _name: door(question(Risk.BUFFER)).sample)
    assert set(found.values()) == {"whole 1"}
