"""What the user may skip: the canary, the drain, and the wait for idle lossless traffic."""

from pathlib import Path

import pytest

from netkit.cli.requests import RolloutRequest
from netkit.cli.rollout import options_of
from netkit.deploy import DeviceResult, GateAnswer, GateQuestion, Moment, Options, Phase
from netkit.platforms.change import Risk
from tests.deploy import promise
from tests.deploy.scene import Scene, scene

LEAVES, SPINES = ("leaf01", "leaf02", "leaf03", "leaf04"), ("spine01", "spine02")


def busy(question: GateQuestion) -> GateAnswer:
    """The health answer of a fabric in which training runs."""
    if question.moment is Moment.BEFORE and question.needs_idle:
        return GateAnswer("inconclusive", ("lossless bytes move",))
    return GateAnswer("healthy")


def drained(found: Scene) -> set[str]:
    return {event.device for event in found.events if event.phase is Phase.DRAIN}


def first_wave(found: Scene) -> set[str]:
    return {event.device for event in found.events if event.wave == 1}


def test_a_busy_fabric_stops_a_disruptive_change_before_it_begins() -> None:
    with scene("asn") as found:
        found.gate = busy
        outcome = found.apply(limit=LEAVES, max_fail=6)
        refused = [one for one in outcome.devices if one.wave]
        assert {one.result for one in refused} == {DeviceResult.REFUSED}
        assert all("before the change, its health is inconclusive: lossless bytes move" in str(one) for one in refused)
        assert outcome.stopped == f"{refused[0].device} is not healthy"
        assert outcome.exit_code == 1
        assert sum(device.writes for device in found.devices.values()) == 0
        promise.check(found, outcome)


def test_an_option_allows_changing_a_busy_fabric() -> None:
    with scene("asn") as found:
        found.gate = busy
        outcome = found.apply(is_busy_allowed=True)
        assert outcome.exit_code == 0
        promise.check(found, outcome)


def test_only_disruptive_changes_need_an_idle_fabric() -> None:
    asked: dict[str, bool] = {}

    def gate(question: GateQuestion) -> GateAnswer:
        asked[question.device] = question.needs_idle
        assert question.risk is (Risk.SESSION if is_felt else Risk.NONE)
        return GateAnswer("healthy")

    for change, is_felt in (("asn", True), ("words", False)):
        with scene(change) as found:
            found.gate = gate
            assert found.apply().exit_code == 0
            assert asked == {**dict.fromkeys(LEAVES, is_felt), **dict.fromkeys(SPINES, False)}


def test_notes_of_the_gate_on_healthy_devices_are_in_the_outcome() -> None:
    with scene() as found:
        found.gate = lambda question: GateAnswer("healthy", (f"seen {question.moment}", "always"))
        outcome = found.apply()
        changed = [one for one in outcome.devices if one.result is DeviceResult.DONE]
        assert {one.reasons for one in changed} == {("seen before", "always", "seen after")}
        promise.check(found, outcome)


def test_a_resumed_run_keeps_its_options() -> None:
    with scene("asn") as found:
        found.gate = busy
        journal = found.journal()
        assert found.apply(journal, is_busy_allowed=True, has_drain=False, has_canary=False).exit_code == 0
        kept = journal.orders().options
        assert (kept.is_busy_allowed, kept.has_drain, kept.has_canary) == (True, False, False)


@pytest.mark.parametrize("has_drain", [True, False])
def test_spines_are_drained_by_default(*, has_drain: bool) -> None:
    with scene("asn") as found:
        outcome = found.apply(has_drain=has_drain)
        assert outcome.exit_code == 0
        assert drained(found) == (set(SPINES) if has_drain else set())
        promise.check(found, outcome)


@pytest.mark.parametrize("is_together", [True, False])
def test_gates_know_whether_redundant_devices_change_at_the_same_time(*, is_together: bool) -> None:
    asked: set[bool] = set()

    def gate(question: GateQuestion) -> GateAnswer:
        asked.add(question.is_together)
        return GateAnswer("healthy")

    with scene("asn") as found:
        found.gate = gate
        found.apply(is_together=is_together)
    assert asked == {is_together}


@pytest.mark.parametrize("has_canary", [True, False])
def test_one_device_goes_first_by_default(*, has_canary: bool) -> None:
    with scene() as found:
        outcome = found.apply(has_canary=has_canary, is_together=True)
        assert outcome.exit_code == 0
        assert len(first_wave(found)) == (1 if has_canary else found.options.parallel)


@pytest.mark.parametrize(
    ("said", "options"),
    [
        ({}, Options()),
        ({"has_canary": False}, Options(has_canary=False)),
        ({"has_drain": False}, Options(has_drain=False)),
        ({"busy": True, "disruptive": True}, Options(is_busy_allowed=True, is_disruptive_allowed=True)),
    ],
)
def test_the_command_line_has_the_options(said: dict[str, bool], options: Options, tmp_path: Path) -> None:
    assert options_of(RolloutRequest(tmp_path, **said)) == options  # type: ignore[arg-type]
