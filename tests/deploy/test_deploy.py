"""One behaviour at a time: a deploy without failures, and its reports of each failure."""

import json
import stat
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from netkit import deploy
from netkit.deploy import ConfigState, DeviceResult, GateAnswer, GateQuestion, Journal, Moment, Options, Outcome, Phase
from netkit.deploy.apply import never
from netkit.deploy.device_rollout import POLICY_DELAY_S
from netkit.deploy.gate import RunMemory
from netkit.deploy.model import read, write
from netkit.errors import DeployError
from netkit.plan import UnreadDevice
from netkit.plan.model import NarrowedRoute, Partial, ReachabilityLoss
from tests.deploy import promise
from tests.deploy.fake import FakeDriver, Fault, Killed
from tests.deploy.scene import OPTIONS, Scene, healthy, killing, scene

NO_CANARY = replace(OPTIONS, has_canary=False)

SWITCHES = ("leaf01", "leaf02", "leaf03", "leaf04", "spine01", "spine02")
UNDRAINED = ["preflight", "load", "commit", "connect", "verify", "gate", "confirm", "end"]
DRAINED = ["preflight", "drain", *UNDRAINED[1:6], "undrain", "watch", "confirm", "end"]
CONFIRMED_FIRST = [*DRAINED[:7], "confirm", "undrain", "watch", "end"]


def phases(found: Scene, name: str) -> list[str]:
    """The phases of a device in its wave."""
    return [event.phase.value for event in found.events if event.device == name and event.wave]


def results(outcome: Outcome) -> dict[str, str]:
    return {one.device: one.result.value for one in outcome.devices if one.device in SWITCHES}


def reason(outcome: Outcome, name: str) -> str:
    one = outcome.device(name)
    assert one is not None
    return "; ".join(one.reasons)


def broken(found: Scene, name: str, operation: str, kind: str, times: int = 1) -> None:
    found.devices[name].faults.append(Fault(operation, kind, times))


def test_every_device_passes_every_phase_in_order() -> None:
    with scene("asn") as found:
        outcome = found.apply()
        assert set(results(outcome).values()) == {"done"}
        assert phases(found, "leaf01") == UNDRAINED
        assert phases(found, "spine02") == DRAINED
        assert outcome.exit_code == 0
        promise.check(found, outcome)


def trouble(found: Scene, name: str, after_s: float = 0.0) -> list[float]:
    """Make a device unhealthy some time after its drain has ended; return the times it was asked while unhealthy."""
    asked: list[float] = []

    def gate(question: GateQuestion) -> GateAnswer:
        if question.moment is not Moment.WATCHED or question.device != name:
            return GateAnswer("healthy")
        asked.append(found.time.now_s)
        assert not found.devices[name].is_drained
        is_ill = found.time.now_s - asked[0] >= after_s
        return GateAnswer("worse", ("a pause storm rages",)) if is_ill else GateAnswer("healthy")

    found.gate = gate
    return asked


def test_a_drained_device_is_watched_under_traffic_before_it_is_confirmed() -> None:
    with scene("asn") as found:
        asked = trouble(found, "spine02", 1000)
        outcome = found.apply(watch_s=9)
        assert set(results(outcome).values()) == {"done"}
        assert asked[-1] - asked[0] == 9
        assert len(asked) == 6  # every poll_s, and at the end


@pytest.mark.parametrize("after_s", [0, 7])
def test_a_failure_under_traffic_drains_and_reverts_the_device(after_s: float) -> None:
    with scene("asn") as found:
        before, journal = found.time.now_s, found.journal()
        trouble(found, "spine02", after_s)
        outcome = found.apply(journal)
        assert results(outcome)["spine02"] == "reverted"
        assert phases(found, "spine02") == [*DRAINED[:9], "drain", "settle", "rollback", "undrain", "end"]
        ill = "with its traffic back after the change, its health is worse: a pause storm rages"
        assert reason(outcome, "spine02") == f"spine02: {ill}"
        assert outcome.stopped == "spine02 is not healthy"
        assert found.time.now_s > before + OPTIONS.drain_s
        promise.check(found, outcome)


def test_a_watch_ends_before_the_confirm_timer() -> None:
    with scene("asn") as found:
        for spine in ("spine01", "spine02"):
            found.devices[spine].faults = [Fault("running_files", "slow", 1000)]
        outcome = found.apply(watch_s=46, revert_s=60)
        assert "not enough time was left to confirm" in reason(outcome, "spine01") + reason(outcome, "spine02")
        assert {one.result for one in outcome.devices if one.device.startswith("spine")} == {
            DeviceResult.REVERTED,
            DeviceResult.NOT_STARTED,
        }
        promise.check(found, outcome)


@pytest.mark.parametrize(
    ("change", "options", "said"),
    [
        (
            "asn",
            {"watch_s": 58, "revert_s": 60},
            (
                "devices would revert within 60 s, before they have been watched for 58 s; "
                "use --confirm-within 65 or a shorter --watch"
            ),
        ),
        (
            "summaries",
            {"watch_s": 58, "revert_s": 7, "has_drain": False},
            "devices would revert within 7 s, before their filters of routes are in force; use --confirm-within 8",
        ),
    ],
)
def test_a_confirm_timer_that_no_device_can_meet_is_refused(change: str, options: dict[str, Any], said: str) -> None:
    with scene(change) as found:
        with pytest.raises(DeployError) as caught:
            found.apply(**options)
        assert str(caught.value) == said
        assert found.connects == []
        assert found.apply(**{**options, "revert_s": 65}).exit_code == 0


def test_where_a_drain_ends_only_after_the_confirmation_a_failure_is_still_reported() -> None:
    with scene("asn") as found:
        for device in found.devices.values():
            device.confirms_first = True
        trouble(found, "spine02")
        outcome = found.apply()
        assert phases(found, "spine01") == CONFIRMED_FIRST
        one = outcome.device("spine02")
        assert one is not None
        assert (one.result, one.state, one.exit_code, one.stops_all) == (
            DeviceResult.FAILED,
            ConfigState.INTENDED,
            1,
            True,
        )
        assert "a pause storm rages" in one.reasons[0]
        assert outcome.exit_code == 1
        promise.check(found, outcome)


def test_each_step_is_journalled_before_it_happens() -> None:
    with scene() as found:
        journal = found.journal()
        seen: list[tuple[str, str]] = []

        def strike(device: str, operation: str) -> None:
            if operation in {"commit_config", "confirm_commit", "load_candidate"}:
                last = [entry.step for entry in journal.entries() if entry.device == device][-1]
                seen.append((operation, last))

        found.strike = strike
        found.apply(journal)
        expected = [("load_candidate", "load"), ("commit_config", "commit"), ("confirm_commit", "confirm")]
        assert sorted(set(seen)) == sorted(expected)
        assert len(seen) == len(expected) * len(SWITCHES)


def test_unchanged_devices_are_not_contacted() -> None:
    with scene() as found:
        outcome = found.apply()
        assert set(found.connects) == set(SWITCHES)
        assert outcome.device("gpu01") == deploy.DeviceOutcome("gpu01", DeviceResult.UNCHANGED, ConfigState.INTENDED)


def test_a_device_changed_by_hand_since_the_plan_is_refused_with_the_difference() -> None:
    with scene() as found:
        running = found.devices["leaf03"].running
        running.update({file: (text or "").replace("was gpu05:rail0", "by hand") for file, text in running.items()})
        outcome = found.apply()
        assert results(outcome)["leaf03"] == "refused"
        assert "description was was gpu05:rail0, is by hand" in reason(outcome, "leaf03")
        assert outcome.exit_code == 3
        assert {name for name, result in results(outcome).items() if result == "not started"} == {*SWITCHES} - {
            "leaf03"
        }
        assert sum(device.writes for device in found.devices.values()) == 0


def test_a_switch_of_which_nothing_is_known_needs_permission() -> None:
    with scene() as found:
        found.plan = replace(found.plan, unknown=("leaf09",))
        what = "leaf09: not read, and no run tells what runs there: other routing may cut off hosts"
        with pytest.raises(DeployError, match=what):
            found.apply(is_disruptive_allowed=False)
        assert sum(device.writes for device in found.devices.values()) == 0
        assert found.apply().exit_code == 0


def test_files_other_than_those_of_the_plan_are_refused() -> None:
    with scene() as found:
        files = found.intended["leaf02"]
        other = {file: text.replace("gpu01:rail1", "elsewhere") for file, text in files.items()}
        assert other != files
        found.intended = {**found.intended, "leaf02": other}
        outcome = found.apply()
        assert results(outcome)["leaf02"] == "refused"
        assert "not the one the plan was made for" in reason(outcome, "leaf02")
        assert outcome.exit_code == 3


@pytest.mark.parametrize("was_seen_by_the_plan", [True, False])
def test_a_pending_commit_of_another_user_is_not_touched(*, was_seen_by_the_plan: bool) -> None:
    with scene() as found:
        device = found.devices["leaf02"]
        device.pending = (found.time.now_s + 60, dict(device.running))
        if not was_seen_by_the_plan:
            device.running = dict(found.intended["leaf02"])
        outcome = found.apply(max_fail=1)
        assert results(outcome)["leaf02"] == "refused"
        assert "waits for its confirmation" in reason(outcome, "leaf02")
        assert device.writes == 0
        assert list(results(outcome).values()).count("done") == 5


def test_an_unreachable_device_stops_the_run_before_the_first_change() -> None:
    with scene() as found:
        broken(found, "spine02", "open", "unreachable", 1000)
        outcome = found.apply()
        assert results(outcome)["spine02"] == "unreachable"
        assert outcome.exit_code == 4
        assert outcome.stopped == "1 failed, 0 may: spine02"
        assert sum(device.writes for device in found.devices.values()) == 0


def test_within_the_failure_budget_the_others_are_changed() -> None:
    with scene() as found:
        broken(found, "spine02", "open", "unreachable", 1000)
        outcome = found.apply(max_fail=1)
        assert list(results(outcome).values()) == ["done"] * 5 + ["unreachable"]
        assert outcome.exit_code == 4
        promise.check(found, outcome)


@pytest.mark.parametrize(
    ("change", "stopped"), [("words", ""), ("drained", "the order of the others relies on {}; --disruptive goes on")]
)
def test_routing_is_not_changed_further_once_a_switch_has_failed(change: str, stopped: str) -> None:
    """The order of the steps was computed for what the failed switch was to run."""
    with scene(change) as found:
        first, *others = [name for wave in deploy.waves(found.plan, found.fabric, NO_CANARY) for name in wave.devices]
        broken(found, first, "commit_config", "refused", 1)
        outcome = found.apply(max_fail=6, is_disruptive_allowed=False, has_canary=False)
        assert outcome.stopped == stopped.format(first)
        assert {results(outcome)[name] for name in others} == {"not started" if stopped else "done"}
        promise.check(found, outcome)
    with scene(change) as found:  # after the last device none is left
        broken(found, others[-1], "commit_config", "refused", 1)
        assert found.apply(max_fail=6, is_disruptive_allowed=False, has_canary=False).stopped == ""


def test_a_device_that_was_unreachable_when_planned_is_no_success() -> None:
    with scene() as found:
        found.plan = replace(
            found.plan, devices=found.plan.devices[1:], unreachable=(UnreadDevice("leaf01", "no answer"),)
        )
        outcome = found.apply(max_fail=1)
        assert outcome.device("leaf01") == deploy.DeviceOutcome(
            "leaf01", DeviceResult.UNREACHABLE, ConfigState.AS_BEFORE, ("leaf01: no answer",), exit_code=4
        )
        assert results(outcome) == {**dict.fromkeys(SWITCHES, "done"), "leaf01": "unreachable"}
        assert outcome.exit_code == 4


def test_a_device_that_was_unreachable_when_planned_may_be_excluded() -> None:
    with scene() as found:
        found.plan = replace(
            found.plan, devices=found.plan.devices[1:], unreachable=(UnreadDevice("leaf01", "no answer"),)
        )
        outcome = found.apply(limit=("leaf02",))
        assert outcome.device("leaf01") == deploy.DeviceOutcome("leaf01", DeviceResult.EXCLUDED, ConfigState.AS_BEFORE)
        assert outcome.exit_code == 0


def test_devices_excluded_by_limit_are_not_touched_and_not_reported_as_done() -> None:
    with scene() as found:
        outcome = found.apply(limit=("leaf02", "spine01"))
        assert results(outcome) == {
            "leaf01": "excluded",
            "leaf02": "done",
            "leaf03": "excluded",
            "leaf04": "excluded",
            "spine01": "done",
            "spine02": "excluded",
        }
        assert outcome.exit_code == 0
        assert set(found.connects) == {"leaf02", "spine01"}


def test_a_limit_on_a_device_outside_the_plan_is_an_error() -> None:
    with scene() as found, pytest.raises(DeployError, match="leaf77: not in the plan"):
        found.apply(limit=("leaf77",))


def test_disruptive_changes_need_an_option_and_name_the_affected_hosts() -> None:
    with scene("asn") as found:
        with pytest.raises(DeployError) as caught:
            found.apply(is_disruptive_allowed=False)
        lines = str(caught.value).splitlines()
        assert [line.partition(":")[0] for line in lines] == ["leaf01", "leaf02", "leaf03", "leaf04"]
        assert lines[0] == (
            "leaf01: disruptive (session), no other path for hosts gpu01, gpu02, GPUs gpu01:rail0, gpu02:rail0; "
            "deploy with --disruptive once they are idle, with --disruptive --busy while they are not, "
            "or leave it out: --limit '!leaf01'"
        )
        assert found.connects == []
        assert not found.root.exists()
        outcome = found.apply(is_disruptive_allowed=False, limit=("spine01", "spine02"))
        assert outcome.exit_code == 0


CUT_OFF = Partial(ReachabilityLoss(2, ("gpu01", "gpu02"), ("rail0",)), ("leaf02", "spine02"))
NARROWED = Partial(ReachabilityLoss(), ("leaf02", "spine02"), ("leaf01", "spine02"))
LOST = "2 pairs of NICs, of hosts gpu01, gpu02, do not reach each other any more"
FEWER = "fewer equal paths from leaf01, spine02"
CHANGE = "change these with it: leaf02,spine02"
RESTORE = "restore access to leaf02,spine02, which could not be read, or deploy with --disruptive"


def test_changes_that_traffic_feels_are_made_together_only_if_a_loss_is_allowed() -> None:
    with scene("words") as found:
        assert found.apply(is_together=True, is_disruptive_allowed=False).exit_code == 0
    with scene("asn") as found:
        switches = sorted(one.name for one in found.plan.changed if one.role != "host")
        with pytest.raises(DeployError) as caught:
            found.apply(is_together=True, is_disruptive_allowed=False)
        (line,) = [one for one in str(caught.value).splitlines() if "--together" in one]
        assert sorted(line.removeprefix("--together changes ").split(" at once: ")[0].split(", ")) == switches
        remedy = "hosts may lose each other meanwhile; leave out --together, or deploy with --disruptive"
        assert line.endswith(remedy)
        assert found.connects == []
        assert found.apply(is_together=True).exit_code == 0
    with scene("words") as found:  # routes come, and none goes
        found.plan = replace(found.plan, has_routing=True)
        assert found.apply(is_together=True, is_disruptive_allowed=False).exit_code == 0


@pytest.mark.parametrize(
    ("partial", "line"),
    [
        (CUT_OFF, f"{LOST}; {CHANGE}"),
        (NARROWED, f"{FEWER}; {CHANGE}"),
        (replace(CUT_OFF, is_unread=True), f"{LOST}; {RESTORE}"),
    ],
    ids=["pairs", "paths", "unread"],
)
def test_a_plan_that_leaves_the_fabric_worse_is_refused(partial: Partial, line: str) -> None:
    with scene() as found:
        found.plan = replace(found.plan, partial=partial)
        for is_allowed in (False,) if partial.is_unread else (False, True):
            with pytest.raises(DeployError) as caught:
                found.apply(is_disruptive_allowed=is_allowed)
            assert str(caught.value) == f"this leaves the fabric worse than it was: {line}"
        assert found.connects == []
        if partial.is_unread:
            assert found.apply(is_disruptive_allowed=True).exit_code == 0


@pytest.mark.parametrize(
    ("operation", "kind", "result", "exit_code"),
    [
        ("load_candidate", "refused", "failed", 1),
        ("load_candidate", "hang", "failed", 4),
        ("commit_config", "refused", "reverted", 1),
        ("commit_config", "quiet", "reverted", 1),
        ("commit_config", "hang", "reverted", 4),
        ("commit_config", "bug", "reverted", 1),
        ("commit_config", "lost", "done", 0),
        ("commit_config", "late", "reverted", 4),
        ("confirm_commit", "refused", "reverted", 1),
        ("confirm_commit", "hang", "reverted", 4),
        ("confirm_commit", "lost", "done", 0),
        ("confirm_commit", "slow", "done", 0),
    ],
)
def test_a_failing_device_is_reverted_and_the_others_are_not_affected(
    operation: str, kind: str, result: str, exit_code: int
) -> None:
    with scene() as found:
        broken(found, "leaf03", operation, kind)
        outcome = found.apply(max_fail=1)
        assert results(outcome) == {**dict.fromkeys(SWITCHES, "done"), "leaf03": result}
        assert outcome.exit_code == exit_code
        promise.check(found, outcome)


def test_a_change_that_could_not_be_saved_is_reported_as_running() -> None:
    with scene() as found:
        broken(found, "leaf03", "confirm_commit", "unsaved", 1000)
        outcome = found.apply(max_fail=1)
        one = outcome.device("leaf03")
        assert one is not None
        assert (one.result, one.state, one.exit_code) == (DeviceResult.FAILED, ConfigState.INTENDED, 1)
        assert "may not be saved: leaf03: no space left to save" in reason(outcome, "leaf03")


def test_a_device_that_never_answers_again_reverts_by_its_own_timer() -> None:
    with scene() as found:
        changed = False

        def strike(device: str, operation: str) -> None:
            nonlocal changed
            if (device, operation) == ("leaf03", "commit_config, done"):
                changed = True
                broken(found, "leaf03", "open", "unreachable", 1000)

        found.strike = strike
        outcome = found.apply(max_fail=1)
        assert changed
        one = outcome.device("leaf03")
        assert one is not None
        assert (one.result, one.state, one.exit_code) == (DeviceResult.FAILED, ConfigState.UNKNOWN, 4)
        assert "cannot be reached" in reason(outcome, "leaf03")
        found.devices["leaf03"].tick()
        assert found.is_as_before("leaf03")


def test_a_device_back_before_its_timer_is_asked_for_its_final_state() -> None:
    with scene() as found:

        def strike(device: str, operation: str) -> None:
            if (device, operation) == ("leaf03", "commit_config, done"):
                broken(found, "leaf03", "open", "unreachable", 40)

        found.strike = strike
        outcome = found.apply(max_fail=1)
        assert results(outcome)["leaf03"] == "reverted"
        assert outcome.exit_code == 4
        promise.check(found, outcome)


def test_worse_health_reverts_the_canary_and_stops_the_run_whatever_the_budget() -> None:
    with scene("ecn-threshold") as found:
        found.gate = found.sessions()
        for device in found.devices.values():
            device.breaks = device.up[:1]
        outcome = found.apply(max_fail=6)
        (canary,) = [one for one in outcome.devices if one.wave]
        assert canary.result is DeviceResult.REVERTED
        assert "its health is worse" in canary.reasons[0]
        assert "is gone" in canary.reasons[0]
        assert outcome.stopped == f"{canary.device} is not healthy"
        assert outcome.exit_code == 1
        promise.check(found, outcome)


@pytest.mark.parametrize("verdict", ["worse", "inconclusive"])
@pytest.mark.parametrize("moment", list(Moment))
def test_only_a_healthy_verdict_lets_a_deploy_continue(verdict: str, moment: Moment) -> None:
    asked: list[GateQuestion] = []

    def gate(question: GateQuestion) -> GateAnswer:
        asked.append(question)
        return GateAnswer(verdict if question.moment is moment else "healthy", ("storm",), "kept")  # type: ignore[arg-type]

    with scene("asn") as found:
        found.gate = gate
        outcome = found.apply(max_fail=6, limit=("spine01", "spine02"))
        assert "storm" in reason(outcome, "spine01")
        assert results(outcome)["spine02"] == "not started"
        assert outcome.exit_code == 1
        assert {question.sample for question in asked if question.moment is not Moment.BEFORE} <= {"kept"}
        promise.check(found, outcome)


def test_a_gate_that_breaks_stops_the_rollout() -> None:
    def gate(_question: GateQuestion) -> GateAnswer:
        raise ZeroDivisionError

    with scene() as found:
        found.gate = gate
        outcome = found.apply(max_fail=6)
        assert "the health gate failed: ZeroDivisionError" in reason(outcome, "leaf01")
        assert list(results(outcome).values()).count("not started") == 5


def test_a_gate_that_times_out_does_not_confirm() -> None:
    with scene() as found:

        def gate(question: GateQuestion) -> GateAnswer:
            if question.moment is Moment.AFTER:
                found.time.wait(OPTIONS.revert_s - 5)
            return GateAnswer("healthy")

        found.gate = gate
        outcome = found.apply(limit=("leaf01",))
        assert results(outcome)["leaf01"] == "reverted"
        assert "not enough time was left" in reason(outcome, "leaf01")
        promise.check(found, outcome)


def test_the_second_of_two_deploys_is_refused_and_names_the_first() -> None:
    with scene() as found:
        first = found.journal()
        refusals: list[str] = []

        def strike(_device: str, _operation: str) -> None:
            if not refusals:
                with pytest.raises(deploy.LockedError) as caught:
                    found.apply()
                refusals.append(str(caught.value))

        found.strike = strike
        assert found.apply(first).exit_code == 0
        assert first.run in refusals[0]
        assert "process" in refusals[0]
        found.plan = found.replan()
        assert found.apply().exit_code == 0


def test_a_requested_stop_leaves_whole_devices_and_a_run_to_resume() -> None:
    with scene() as found:
        journal = found.journal()
        outcome = deploy.apply(
            found.plan,
            found.fabric,
            found.intended,
            connect=found.connect,
            gate=found.gate,
            options=found.options,
            journal=journal,
            on_event=found.events.append,
            clock=found.time.clock,
            is_stopping=lambda: any(event.phase is Phase.CONFIRM for event in found.events),
        )
        assert outcome.stopped == "interrupted"
        assert outcome.exit_code == 1
        assert list(results(outcome).values()).count("done") == 1
        assert journal.outcome() is None
        resumed = found.resume(journal)
        assert set(results(resumed).values()) == {"done"}
        assert resumed.exit_code == 0
        with pytest.raises(DeployError, match="has finished"):
            found.resume(journal)


def test_undoing_a_run_restores_what_ran_before_it() -> None:
    with scene("asn") as found:
        journal = found.journal()
        found.apply(journal)
        assert all(found.is_intended(name) for name in SWITCHES)
        outcome = found.undo(journal)
        assert set(results(outcome).values()) == {"done"}
        assert all(found.is_as_before(name) for name in found.devices)


def test_undoing_an_undone_run_repeats_it() -> None:
    with scene("asn") as found:
        first, second = found.journal(), found.journal()
        found.apply(first)
        found.undo(first, second)
        outcome = found.undo(second)
        assert set(results(outcome).values()) == {"done"}
        assert all(found.is_intended(name) for name in SWITCHES)


def test_a_device_changed_since_the_run_is_not_rolled_back() -> None:
    with scene() as found:
        journal = found.journal()
        found.apply(journal)
        running = found.devices["leaf03"].running
        running.update(
            {
                file: (text or "").replace("description gpu05:rail0", "description mine")
                for file, text in running.items()
            }
        )
        outcome = found.undo(journal)
        assert results(outcome)["leaf03"] == "refused"
        assert "is mine" in reason(outcome, "leaf03")


def test_a_run_that_changed_nothing_cannot_be_undone() -> None:
    with scene() as found:
        journal = found.journal()
        broken(found, "spine02", "open", "unreachable", 1000)
        found.apply(journal)
        with pytest.raises(DeployError, match="changed nothing"):
            found.undo(journal)


def test_a_dry_run_only_reads() -> None:
    with scene("asn") as found:
        broken(found, "spine02", "open", "unreachable", 1000)
        outcome = deploy.rehearse(
            found.plan, found.fabric, found.intended, connect=lambda name: Reading(found.connect(name)), options=OPTIONS
        )
        assert results(outcome) == {**dict.fromkeys(SWITCHES, "ready"), "spine02": "unreachable"}
        assert outcome.is_dry_run
        assert outcome.exit_code == 4
        assert not found.root.exists()
        assert sum(device.writes for device in found.devices.values()) == 0


class Reading:
    """What reading needs of a driver, and nothing else."""

    def __init__(self, driver: FakeDriver) -> None:
        self.open, self.close = driver.open, driver.close
        self.running_files, self.os_version, self.sessions = driver.running_files, driver.os_version, driver.sessions


def test_files_of_a_run_are_private_to_their_owner() -> None:
    with scene() as found:
        journal = found.journal()
        found.apply(journal)
        kept = [found.root, *found.root.rglob("*")]
        assert len(kept) > 10
        for path in kept:
            wanted = 0o700 if path.is_dir() else 0o600
            assert stat.S_IMODE(path.stat().st_mode) == wanted, path


def test_an_outcome_survives_a_round_trip() -> None:
    with scene() as found:
        broken(found, "leaf03", "commit_config", "quiet")
        journal = found.journal()
        outcome = found.apply(journal)
        assert read(write(outcome)) == outcome
        assert Journal(journal.folder).outcome() == outcome
        assert json.loads(write(outcome))["exit_code"] == outcome.exit_code == 1


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"run": 1}', "{", "null"])
def test_a_malformed_outcome_is_refused(text: str) -> None:
    with pytest.raises(DeployError, match="not the outcome"):
        read(text, "outcome.json")


def test_the_history_lists_the_newest_run_first_and_skips_other_folders(tmp_path: Path) -> None:
    assert deploy.history(tmp_path / "nowhere") == ()
    with scene() as found:
        first, second = found.journal(), found.journal()
        found.apply(first)
        found.time.wait(60)
        found.plan = found.replan()
        second = found.journal()
        found.apply(second)
        (found.root / "stray").mkdir()
        listed = deploy.history(found.root)
        assert [one.run for one in listed] == [second.run, first.run]
        assert [one.fabric for one in listed] == ["small", "small"]
        assert all(one.outcome is not None for one in listed)


def test_of_several_exit_codes_the_first_applies() -> None:
    def outcome(*codes: int, stopped: str = "") -> int:
        devices = tuple(
            deploy.DeviceOutcome(str(number), DeviceResult.DONE, ConfigState.INTENDED, exit_code=code)
            for number, code in enumerate(codes)
        )
        return Outcome("r", "f", devices, stopped).exit_code

    assert outcome() == 0
    assert outcome(0, 1) == 1
    assert outcome(1, 4, 0) == 4
    assert outcome(1, 4, 3) == 3
    assert outcome(0, stopped="why") == 1
    assert Options().max_fail == 0


@pytest.mark.parametrize("is_blank", [False, True])
def test_a_changed_filter_is_waited_for_only_if_the_gate_can_compare(*, is_blank: bool) -> None:
    with scene("summaries") as found:
        found.gate = lambda _question: GateAnswer("healthy", is_blank=is_blank)
        outcome = found.apply()
        assert outcome.exit_code == 0
        at_s = {(one.device, one.wave, one.phase): one.at_s for one in found.events}
        filters = {one.name for one in found.plan.changed if any("prefix-list" in str(c.path) for c in one.changes)}
        waited = {
            at_s[name, wave, Phase.GATE] - at >= POLICY_DELAY_S
            for (name, wave, phase), at in at_s.items()
            if phase is Phase.COMMIT and name in filters
        }
        assert waited == {not is_blank}


@pytest.mark.parametrize(("name", "is_filtering"), [("summaries", True), ("words", False)])
def test_a_filter_that_was_rolled_back_is_in_force_before_the_next_device_changes(
    name: str, *, is_filtering: bool
) -> None:
    with scene(name) as found:
        found.gate = lambda question: GateAnswer("worse" if question.moment is Moment.AFTER else "healthy", ("ill",))
        found.apply()
        (failed,) = {one.device for one in found.events if one.phase is Phase.ROLLBACK}
        began_s, ended_s = (
            next(one.at_s for one in found.events if one.device == failed and one.phase is phase)
            for phase in (Phase.ROLLBACK, Phase.END)
        )
        assert found.is_as_before(failed)
        assert (ended_s - began_s >= POLICY_DELAY_S) == is_filtering


def test_an_exemption_of_the_first_stage_does_not_apply_to_the_second() -> None:
    lost = ReachabilityLoss(1, ("gpu11", "gpu12"), ("rail0",))
    with scene("timers") as found:
        steps = tuple(
            replace(
                step,
                waiting=(f"{step.devices[0]}:Ethernet1",),
                after=lost,
                narrowed=(NarrowedRoute(step.devices[0], "leaf01", 1),),
            )
            if step.stage == "both"
            else step
            for step in found.plan.steps
        )
        found.plan = replace(found.plan, steps=steps)
        asked: list[tuple[str, frozenset[str], bool, dict[str, int]]] = []

        def gate(question: GateQuestion) -> GateAnswer:
            if question.moment is Moment.AFTER:
                has_prediction = question.prediction is not None
                asked.append((question.device, question.ending, has_prediction, dict(question.narrowed)))
            return healthy(question)

        found.gate = gate
        assert found.apply().exit_code == 0
        assert asked == [
            (name, frozenset({"Ethernet1"}), True, {"leaf01": 1})
            if step.stage == "both"
            else (name, frozenset(), False, {})
            for step in steps
            for name in step.devices
        ]


@pytest.mark.parametrize("is_ending", [False, True])
def test_an_interrupted_run_shows_how_long_a_dead_device_is_waited_for(is_ending: bool) -> None:
    with scene() as found:
        found.strike = killing("leaf02")
        journal = found.journal()
        with pytest.raises(Killed):
            found.apply(journal, limit=("leaf01", "leaf02"))
        journal.close()
        found.strike = lambda _device, _operation: None
        found.devices["leaf02"].faults.append(Fault("open", "unreachable", 1000))
        found.wait(10)
        ((device, most_s),) = deploy.settling_s(journal, found.time.clock).items()
        assert (device, most_s) == ("leaf02", 120 + 2 * 20 - 10)
        found.events.clear()
        began_s = found.time.now_s
        (found.end if is_ending else found.resume)(journal)
        first, last = (next(one for one in found.events if one.phase is phase) for phase in (Phase.SETTLE, Phase.END))
        assert [(one.device, one.outcome is None) for one in (first, last)] == [("leaf02", True), ("leaf02", False)]
        assert first.at_s == 0.0
        assert most_s <= last.at_s <= most_s + OPTIONS.poll_s
        assert found.time.now_s >= began_s + most_s
        assert deploy.settling_s(journal, found.time.clock) == {}


def test_a_resumed_run_knows_which_sessions_its_first_part_took_down() -> None:
    with scene("asn") as found:
        known: list[tuple[dict[tuple[str, str], int], set[tuple[str, str]]]] = []

        def gate(question: GateQuestion) -> GateAnswer:
            known.append((dict(question.memory.ended), set(question.memory.lost)))
            if question.moment is Moment.AFTER:
                question.memory.ended[question.device, "Ethernet1"] = 3
                question.memory.lost.add(("10.0.0.1", "10.0.0.2"))
            return healthy(question)

        found.gate = gate
        found.is_stopping = lambda: any(event.phase is Phase.END for event in found.events)
        journal = found.journal()
        (first,) = (one.device for one in found.apply(journal).devices if one.result is DeviceResult.DONE)
        found.is_stopping = never
        known.clear()
        assert found.resume(journal).exit_code == 0
        assert known[0] == ({(first, "Ethernet1"): 3}, {("10.0.0.1", "10.0.0.2")})


def test_the_state_of_gates_is_journalled_once_each_time_it_changes() -> None:
    memory, written = RunMemory(), list[str]()
    memory.keep(written.append)
    memory.ended["leaf01", "swp1"] = 4
    for _ in range(2):
        memory.keep(written.append)
    memory.lost.add(("10.0.0.1", "10.0.0.2"))
    memory.keep(written.append)
    assert len(written) == 2
    again = RunMemory()
    again.restore(written[-1])
    assert (again.ended, again.lost) == (memory.ended, memory.lost)
    again.keep(written.append)
    assert len(written) == 2
