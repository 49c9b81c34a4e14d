"""A run that stops at a failure rolls back by itself, and lists unreachable devices separately."""

import json
import re
import shutil
import threading
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from netkit import deploy
from netkit import plan as planning
from netkit.deploy import ConfigState, DeviceResult, GateAnswer, GateQuestion, Journal, Moment, Options, Outcome
from netkit.errors import DeployError, Problem, UsageError
from netkit.plan import Plan, Running, Unreachable
from netkit.platforms.driver import Driver
from netkit.project import deploying as deploying_module
from netkit.project.deploying import Deploying
from netkit.project.project import Project
from netkit.project.runs import unfinished_run
from netkit.report.history_text import outcome_text
from tests import intents
from tests.deploy import promise
from tests.deploy.fake import Fault, Killed
from tests.deploy.scene import Scene, no_strike, scene
from tests.deploy.test_promises import Cut
from tests.lab.running import write_fabric


def failed(found: Scene, name: str = "spine02", **changes: object) -> Journal:
    """Deploy until one device fails after its change, and return the run."""

    def gate(question: GateQuestion) -> GateAnswer:
        is_ill = question.device == name and question.moment is Moment.AFTER
        return GateAnswer("worse", ("ill",)) if is_ill else GateAnswer("healthy")

    found.gate = gate
    journal = found.journal()
    outcome = found.apply(journal, provenance=None, on_failure="rollback", **changes)
    assert outcome.stopped == f"{name} is not healthy"
    found.gate = lambda _question: GateAnswer("healthy")
    found.events.clear()
    return journal


def of(outcome: Outcome, result: DeviceResult) -> list[str]:
    return [one.device for one in outcome.devices if one.result is result]


def turns(found: Scene) -> list[str]:
    return list(dict.fromkeys(event.device for event in found.events if event.wave))


def test_everything_is_rolled_back_in_reverse_order_and_the_runs_are_linked() -> None:
    with scene("asn") as found:
        journal = failed(found)
        done = [
            entry.device for entry in journal.entries() if entry.outcome and entry.outcome.result is DeviceResult.DONE
        ]
        assert journal.is_to_be_undone()
        again = found.journal()
        outcome = found.back(journal, again)
        assert sorted(turns(found)) == sorted(done)
        assert turns(found)[0].startswith("spine")
        assert of(outcome, DeviceResult.DONE) == sorted(done)
        assert outcome.exit_code == 0
        assert all(found.is_as_before(name) for name in found.devices)
        assert again.undoes() == journal.run
        assert not journal.is_to_be_undone()
        assert not again.is_to_be_undone()
        promise_of_way_back(found, outcome)


def test_the_way_back_takes_devices_that_were_not_started_as_they_run() -> None:
    with scene("summaries") as found:
        journal = failed(found, "spine01")
        ended = journal.outcome()
        assert ended is not None
        left = {one.device for one in ended.devices if one.state is ConfigState.AS_BEFORE}
        plan, _, _ = deploy.plan_rollback(journal, found.fabric, found.connect)
        assert {"spine01", "spine02"} <= left
        assert left.isdisjoint(one.name for one in plan.devices)
        assert not plan.gone
        assert not plan.worst


def test_what_a_run_read_of_a_device_outweighs_what_an_earlier_run_left_there(monkeypatch: pytest.MonkeyPatch) -> None:
    with scene("summaries") as found:
        first = found.journal()
        assert found.apply(first).exit_code == 0
        assert found.undo(first).exit_code == 0
        file, text = next((file, text) for file, text in found.devices["spine02"].running.items() if text)
        found.devices["spine02"].running[file] = f"{text}! by hand\n"
        found.plan = found.replan()
        journal = failed(found, "spine01")
        assert others(found, journal, monkeypatch)["spine02"].files[file] == f"{text}! by hand\n"


def others(found: Scene, journal: Journal, monkeypatch: pytest.MonkeyPatch) -> Mapping[str, Any]:
    """What the order of a rollback takes the devices to run that the run did not change."""
    taken: dict[str, Any] = {}
    limited = planning.limited

    def observed(*parts: Any) -> Plan:
        taken.update(parts[-1]())
        return limited(*parts)

    with monkeypatch.context() as patch:
        patch.setattr(planning, "limited", observed)
        found.plan_rollback(journal)
    return taken


def without_sessions(running: Mapping[str, str | None]) -> Running:
    """The configuration of a switch without its BGP, as taken away by hand."""
    bgp = re.compile(r"^router bgp .*?^!", re.MULTILINE | re.DOTALL)
    return Running({file: bgp.sub("!", text or "") for file, text in running.items()})


@pytest.mark.parametrize("how", ["changed", "dead"])
def test_the_way_back_of_a_limited_run_takes_the_other_devices_as_they_are_now(how: str) -> None:
    with scene("words") as found:
        spine = found.devices["spine01"]
        spine.running = dict(without_sessions(spine.running).files)
        found.plan, journal = found.replan(), found.journal()
        assert of(found.apply(journal, limit=("spine01",)), DeviceResult.DONE) == ["spine01"]
        there: dict[str, Running | Unreachable] = {
            name: Running(dict(device.running)) for name, device in found.devices.items()
        }
        asked: list[str] = []

        def read(names: tuple[str, ...]) -> Mapping[str, Running | Unreachable]:
            asked.extend(names)
            return {name: there[name] for name in names}

        def back() -> Plan:
            return deploy.plan_rollback(journal, found.fabric, found.connect, read_others=read)[0]

        assert not back().gone
        assert back().partial is None
        assert set(asked) == there.keys() - {"spine01"}
        running = found.devices["spine02"].running
        there["spine02"] = without_sessions(running) if how == "changed" else Unreachable("does not answer")
        partial = back().partial
        assert back().gone if how == "changed" else partial is not None and partial.is_unread
        assert not back().unknown


@pytest.mark.parametrize("is_automatic", [True, False])
def test_an_automatic_rollback_reads_only_switches_that_its_run_did_not_read(
    monkeypatch: pytest.MonkeyPatch, *, is_automatic: bool
) -> None:
    with scene("summaries") as found:
        journal, asked = found.journal(), list[str]()
        found.apply(journal, limit=("leaf01",), is_disruptive_allowed=True)

        def read(_devices: object, names: Sequence[str], *_more: object) -> Mapping[str, Running]:
            asked.extend(names)
            return {name: Running(dict(found.devices[name].running)) for name in names}

        monkeypatch.setattr(deploying_module, "read", read)
        project = SimpleNamespace(fabric=found.fabric, feedback=None, processes=1)
        deploying = Deploying(
            cast("Any", project), cast("Any", SimpleNamespace(connect=found.connect)), cast("Any", None)
        )
        options = deploy.rollback_options(journal) if is_automatic else Options()
        (plan, _, _), _ = deploying.plan_rollback(journal, options, "")
        assert [one.name for one in plan.devices] == ["leaf01"]
        changed = {one.name for one in found.plan.changed}
        others = found.devices.keys() - {"leaf01"}
        assert set(asked) == ({name for name in others & changed if "gpu" not in name} if is_automatic else others)


def test_devices_in_an_unknown_state_are_read_once_and_at_the_same_time() -> None:
    with scene("words") as found:
        lost = ("spine01", "spine02")

        def strike(device: str, operation: str) -> None:
            if device in lost and operation == "commit_config, done":
                found.devices[device].faults.append(Fault("open", "unreachable", 10_000))

        found.strike = strike
        journal = found.journal()
        first = found.apply(journal, max_fail=2)
        assert [one.device for one in first.devices if one.state is ConfigState.UNKNOWN] == list(lost)
        found.connects.clear()
        both = threading.Barrier(len(lost))

        def connect(name: str) -> Driver:
            both.wait(60)  # BrokenBarrierError if they are read one after another
            return found.connect(name)

        project = SimpleNamespace(fabric=found.fabric, feedback=None, processes=1)
        deploying = Deploying(cast("Any", project), cast("Any", SimpleNamespace(connect=connect)), cast("Any", None))
        (plan, _, _), options = deploying.plan_rollback(journal, deploy.rollback_options(journal), "spine*")
        assert sorted(found.connects) == list(lost)
        assert [one.name for one in plan.unreachable] == list(lost)
        assert options.limit == lost
        assert not plan.devices


def test_a_device_changed_since_the_run_is_refused_with_a_remedy_that_helps() -> None:
    with scene("words") as found:
        journal = failed(found)
        running = found.devices["spine01"].running
        file, text = next((file, text) for file, text in running.items() if text and "description" in text)
        running[file] = text.replace("description ", "description by hand ", 1)
        one = found.back(journal).device("spine01")
        assert one is not None
        assert one.result is DeviceResult.REFUSED
        assert one.reasons[0].startswith("spine01: changed since the run: ")
        assert one.reasons[0].endswith("; remove that change, or leave the device out: --limit '!spine01'")


def promise_of_way_back(found: Scene, outcome: Outcome) -> None:
    found.wait(promise.LONG_S)
    for one in outcome.devices:
        assert found.devices[one.device].pending is None
        assert not found.devices[one.device].is_drained


@pytest.mark.parametrize(("on_failure", "name"), [("stop", "spine02"), ("rollback", "")])
def test_a_run_that_is_asked_to_stop_or_does_not_fail_is_not_rolled_back(on_failure: str, name: str) -> None:
    with scene("words") as found:
        found.gate = lambda question: GateAnswer(
            "worse" if question.device == name and question.moment is Moment.AFTER else "healthy"
        )
        journal = found.journal()
        found.apply(journal, on_failure=on_failure)
        assert not journal.is_to_be_undone()


def test_a_device_whose_earlier_configuration_is_lost_is_not_left_out_silently() -> None:
    with scene("words") as found:
        journal = found.journal()
        found.apply(journal)
        file = journal.folder / "before" / "spine02.json"
        file.unlink()
        with pytest.raises(DeployError, match=f"{file}: is missing: what the device ran before the run"):
            found.undo(journal)


def test_a_run_that_changed_nothing_has_nothing_to_roll_back() -> None:
    with scene("words") as found:
        found.devices["spine02"].faults.append(Fault("open", "unreachable", 1000))
        journal = found.journal()
        assert found.apply(journal, on_failure="rollback").stopped
        assert not journal.is_to_be_undone()


@pytest.mark.parametrize("is_back", [False, True])
def test_unreachable_devices_are_listed_separately_and_the_others_rolled_back(*, is_back: bool) -> None:
    with scene("words") as found:
        lost = "spine01"

        def strike(device: str, operation: str) -> None:
            if (device, operation) == (lost, "commit_config, done"):
                found.devices[lost].faults.append(Fault("open", "unreachable", 10_000))

        found.strike = strike
        journal = found.journal()
        first = found.apply(journal, on_failure="rollback")
        one = first.device(lost)
        assert one is not None
        assert (one.result, one.state, one.exit_code) == (DeviceResult.FAILED, ConfigState.UNKNOWN, 4)
        assert journal.is_to_be_undone()
        changed = of(first, DeviceResult.DONE)
        assert changed
        if is_back:
            found.devices[lost].faults.clear()
            found.wait(promise.LONG_S)
        outcome = found.back(journal)
        assert of(outcome, DeviceResult.DONE) == changed
        assert all(found.is_as_before(name) for name in found.devices)
        one = outcome.device(lost)
        assert one is not None
        if is_back:  # its timer reverted the change
            assert (one.result, outcome.exit_code) == (DeviceResult.UNCHANGED, 0)
        else:
            assert (one.result, one.state) == (DeviceResult.UNREACHABLE, ConfigState.UNKNOWN)
            assert f"netkit rollback {journal.run}" in one.reasons[0]
            assert "last known" in one.reasons[0]
            assert outcome.exit_code == 4


def test_a_device_whose_configuration_cannot_be_parsed_does_not_block_the_others() -> None:
    with scene("rails") as found:
        lost = "gpu05"

        def strike(device: str, operation: str) -> None:
            if (device, operation) == (lost, "rollback"):
                found.devices[lost].pending = None
                found.devices[lost].running["netplan.yaml"] = "network: [\n"

        found.strike = strike
        found.devices[lost].faults.append(Fault("commit_config", "half"))
        journal = found.journal()
        first = found.apply(journal)
        one = first.device(lost)
        assert one is not None
        assert (one.result, one.state) == (DeviceResult.FAILED, ConfigState.UNKNOWN)
        outcome = found.back(journal)
        assert of(outcome, DeviceResult.DONE) == of(first, DeviceResult.DONE)
        assert of(outcome, DeviceResult.UNREACHABLE) == [lost]
        assert {name for name in found.devices if not found.is_as_before(name)} == {lost}
        assert "its configuration cannot be parsed" in outcome_text(outcome)


@pytest.mark.parametrize("is_automatic", [True, False])
def test_a_switch_that_died_does_not_hold_up_the_routing_of_the_others(*, is_automatic: bool) -> None:
    with scene("drained") as found:
        found.options = replace(found.options, is_disruptive_allowed=False, max_fail=1)
        lost = found.plan.steps[-1].devices[0]
        (other,) = {one.name for one in found.plan.changed} - {lost}

        def strike(device: str, operation: str) -> None:
            if (device, operation) == (lost, "commit_config, done"):
                found.devices[lost].faults.append(Fault("open", "unreachable", 10_000))

        found.strike = strike
        journal = found.journal()
        first = found.apply(journal, on_failure="rollback", has_canary=False, max_fail=0)
        assert of(first, DeviceResult.DONE) == [other]
        again = found.journal()
        outcome = found.back(journal, again) if is_automatic else found.undo(journal, again)
        assert of(outcome, DeviceResult.DONE) == [other]
        assert of(outcome, DeviceResult.UNREACHABLE) == [lost]
        assert found.is_as_before(other)
        assert again.orders().plan.unknown == ()


@pytest.mark.parametrize(
    ("lost_at", "damage", "stages"),
    [
        ("commit_config, done", "", {"both", "finish"}),
        ("commit_config, done", "}\n", {""}),
        ("confirm_commit", "", {""}),
    ],
)
def test_a_leaf_that_cannot_be_read_keeps_its_traffic_on_the_way_back(
    lost_at: str, damage: str, stages: set[str]
) -> None:
    """It runs again what it confirmed in the first stage, unless it may have got the second confirmation."""
    with scene("summaries") as found:
        leaf, times = found.devices["leaf02"], Counter[str]()

        def strike(device: str, operation: str) -> None:
            times[f"{device} {operation}"] += 1
            if times[f"leaf02 {lost_at}"] == 2 and not leaf.faults:
                leaf.faults += [Fault("open", "unreachable", 10_000), Fault("confirm_commit", "lost")]

        found.strike = strike
        journal = found.journal()
        first = found.apply(journal)
        assert [one.device for one in first.devices if one.state is ConfigState.UNKNOWN] == ["leaf02"]
        with (journal.folder / "journal.jsonl").open("a", encoding="utf-8") as file:
            file.write(damage)
        plan = deploy.plan_rollback(journal, found.fabric, found.connect)[0]
        assert {step.stage for step in plan.steps if "leaf01" in step.devices} == stages
        assert not plan.worst


@pytest.mark.parametrize(("lost_at", "is_rolled_back"), [("commit_config, done", False), ("confirm_commit", True)])
def test_a_leaf_that_cannot_be_read_runs_what_later_runs_left_there(
    monkeypatch: pytest.MonkeyPatch, lost_at: str, *, is_rolled_back: bool
) -> None:
    with scene("words") as found:
        leaf, lost = found.devices["leaf02"], [Fault("open", "unreachable", 10_000), Fault("confirm_commit", "lost")]

        def strike(device: str, operation: str) -> None:
            leaf.faults += lost if (device, operation) == ("leaf02", lost_at) else []

        found.strike = strike
        journal = found.journal()
        first = found.apply(journal, max_fail=1)
        assert [one.device for one in first.devices if one.state is ConfigState.UNKNOWN] == ["leaf02"]
        found.strike, leaf.faults[:] = no_strike, []
        found.wait(promise.LONG_S)
        if not is_rolled_back:
            found.plan = found.replan()
        again = found.undo(journal) if is_rolled_back else found.apply()
        assert "leaf02" in of(again, DeviceResult.DONE)
        leaf.faults += lost
        assert others(found, journal, monkeypatch)["leaf02"].files == leaf.running


@pytest.mark.parametrize(("lost_at", "is_known"), [("commit_config, done", True), ("confirm_commit", False)])
def test_a_leaf_that_a_rollback_lost_runs_what_its_timer_took_it_back_to(
    monkeypatch: pytest.MonkeyPatch, lost_at: str, *, is_known: bool
) -> None:
    with scene("words") as found:
        leaf, journal = found.devices["leaf02"], found.journal()
        assert found.apply(journal).exit_code == 0
        lost = [Fault("open", "unreachable", 10_000), Fault("confirm_commit", "lost")]

        def strike(device: str, operation: str) -> None:
            leaf.faults += lost if (device, operation) == ("leaf02", lost_at) else []

        found.strike = strike
        again = found.undo(journal)
        assert [one.device for one in again.devices if one.state is ConfigState.UNKNOWN] == ["leaf02"]
        found.wait(promise.LONG_S)
        taken = others(found, journal, monkeypatch)
        assert ("leaf02" in taken) == is_known
        assert not is_known or taken["leaf02"].files == leaf.running


@pytest.mark.parametrize("is_damaged", [False, True])
def test_a_leaf_that_a_rollback_lost_in_its_second_stage_runs_the_first_again(
    monkeypatch: pytest.MonkeyPatch, *, is_damaged: bool
) -> None:
    with scene("summaries") as found:
        leaf, journal, times = found.devices["leaf02"], found.journal(), Counter[str]()
        assert found.apply(journal).exit_code == 0
        lost = [Fault("open", "unreachable", 10_000), Fault("confirm_commit", "lost")]

        def strike(device: str, operation: str) -> None:
            times[device] += operation == "commit_config, done"
            leaf.faults += lost if (device, operation, times[device]) == ("leaf02", "commit_config, done", 2) else []

        found.strike = strike
        again = found.journal()
        found.undo(journal, again)
        found.wait(promise.LONG_S)
        if is_damaged:
            files = {name: one for name, one in again.orders().intended.items() if name != "leaf02"}
            (again.folder / "intended.json").write_text(json.dumps(files), encoding="utf-8")
        taken = others(found, journal, monkeypatch)
        assert ("leaf02" in taken) == (not is_damaged)
        assert is_damaged or taken["leaf02"].files == leaf.running


def test_a_device_that_cannot_be_rolled_back_does_not_block_the_others() -> None:
    with scene("words") as found:
        journal = failed(found)
        found.devices["leaf02"].faults.append(Fault("load_candidate", "refused", 1000))
        found.devices["leaf03"].faults.append(Fault("open", "unreachable", 1000))
        outcome = found.back(journal)
        assert of(outcome, DeviceResult.FAILED) == ["leaf02"]
        assert of(outcome, DeviceResult.UNREACHABLE) == ["leaf03"]
        assert {name for name in found.devices if not found.is_as_before(name)} == {"leaf02", "leaf03"}
        assert outcome.exit_code == 4
        assert "leaf03: unreachable, not rolled back: cannot be reached" in outcome_text(outcome)
        assert f"netkit rollback {journal.run} rolls these back: leaf03\n" in outcome_text(outcome)
        assert f"netkit rollback {journal.run} tries these again: leaf02\n" in outcome_text(outcome)
        assert {event.is_back for event in found.events} == {True}


def test_a_rollback_that_cannot_start_leaves_the_outcome_of_the_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> Outcome:
        raise DeployError(Problem("the disk is full", "free some space"))

    monkeypatch.setenv("NETKIT_STATE_DIR", str(tmp_path / "state"))
    monkeypatch.setattr(Deploying, "plan_rollback", full)
    deploying = Deploying.of(Project.open(write_fabric(tmp_path / "fabric", intents.values())))
    with scene("words") as found:
        journal = failed(found)
        shutil.copytree(journal.folder, deploying.runs / journal.run)
    outcome = deploying.finish()
    assert outcome.devices == (journal.outcome() or outcome).devices
    assert outcome.stopped == "spine02 is not healthy; not rolled back: the disk is full; free some space"
    assert unfinished_run(deploying.runs).run == journal.run


@pytest.mark.parametrize("line", [1, 2, 5, 8, 10, 12, 14])
def test_a_killed_rollback_is_resumed(line: int) -> None:
    with scene("asn") as found:
        journal = failed(found)
        assert unfinished_run(found.root).run == journal.run
        again = Cut(found.root / f"{journal.run}-b", found.time.clock)
        again.left = line
        with pytest.raises(Killed):
            found.back(journal, again)
        again.close()
        found.wait(200)
        assert unfinished_run(found.root).run == again.run
        outcome = found.resume(again)
        assert outcome.exit_code == 0
        assert all(found.is_as_before(name) for name in found.devices)
        with pytest.raises(UsageError, match="no run is left"):
            unfinished_run(found.root)
        promise_of_way_back(found, outcome)
