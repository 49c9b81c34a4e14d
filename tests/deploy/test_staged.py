"""A change in two stages, with faults at every step: the plan has predicted each intermediate state.

At every operation of a device and every line of the journal a fault is injected: the process is killed or asked to
stop, its disk is full, a connection is lost, a device dies or restarts, or two of these. In whatever state a device
is left, all hosts that should reach each other do, and from there the run can be finished and rolled back.

By default one point of each fault is tried in one of the changes, two in each of them in the lane whole, where
`NETKIT_KILLS=1000` tries every one; fewer are selected by `NETKIT_KILLS_SEED`.
"""

import os
import random
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache, partial

import pytest

from netkit import plan as planning
from netkit.cli.rollout import changing
from netkit.deploy import ConfigState, DeviceOutcome, DeviceResult, Journal, Outcome
from netkit.deploy.journal import STAGE, WAVE
from netkit.errors import AccessError, Problem
from netkit.plan import Plan
from netkit.platforms.config import Files
from tests.deploy.fake import Killed
from tests.deploy.scene import OPTIONS, TWO_STAGES, Scene, change, scene, scene_plan
from tests.deploy.test_promises import FILES_OF_A_RUN, Cut, Full
from tests.lanes import is_whole
from tests.plan.replay import Pair, Transition, parsed, platform

POINTS = int(os.environ.get("NETKIT_KILLS") or (2 if is_whole() else 1))
SEED = os.environ.get("NETKIT_KILLS_SEED", "1")
LONG_S, STARTS_IN_S, LATER_S = 10_000.0, 90.0, (0.0, 60.0, 1000.0)
OF_A_DEVICE = (
    "killed",
    "interrupted",
    "lost",
    "dead",
    "restarts",
    "killed and dead",
    "killed and restarts",
    "clock and lost",
)
OF_A_LINE = ("killed before", "killed after", "full")
FAULTS = (*OF_A_DEVICE, *OF_A_LINE)
CUT_OFF = {"killed", "interrupted", "killed before", "killed after", "full"}
"""Faults after which nothing prevents a run from finishing."""


Running = dict[str, dict[str, str | None]]
"""The files of each device."""
Frozen = tuple[tuple[str, tuple[tuple[str, str | None], ...]], ...]


@cache
def reached(name: str, running: Frozen) -> frozenset[Pair]:
    """The pairs that are connected while the devices run these files."""
    found = change(name)
    way = Transition((found.fabric,), found.running, found.intended, Plan(found.fabric.name, (), (), (), ""))
    configs = {device: parsed(platform(device, found.fabric), dict(files)) for device, files in running}
    return frozenset(way.reached(configs))


def frozen(running: Running) -> Frozen:
    return tuple((device, tuple(files.items())) for device, files in running.items())


@dataclass
class Faulty:
    """A scene with a fault at one or several points."""

    name: str
    found: Scene
    plan: Plan
    faults: dict[int, str] = field(default_factory=dict)
    """Number of a device's operation → what happens there."""
    wrong: list[str] = field(default_factory=list)
    is_asked_to_end: bool = False
    seen: int = 0
    dead: dict[str, float] = field(default_factory=dict)
    """Device → when it answers again."""

    def __post_init__(self) -> None:
        """Watch every operation."""
        self.found.strike = self.strike
        self.found.is_stopping = lambda: self.is_asked_to_end
        before: Running = {name: dict(one.files) for name, one in self.found.before.items()}
        intended: Running = {name: dict(files) for name, files in self.found.intended.items()}
        self.wanted = reached(self.name, frozen(before)) & reached(self.name, frozen(intended))
        assert self.wanted
        self.known = [before, intended, dict(self.both(self.plan, self.found.intended))]

    def both(self, plan: Plan, files: Mapping[str, Files]) -> Iterator[tuple[str, dict[str, str | None]]]:
        for bridge in plan.bridges:
            yield (
                bridge.device,
                dict(planning.keeping(self.found.fabric, bridge.device, files[bridge.device], bridge.kept)),
            )

    def strike(self, name: str, _operation: str) -> None:
        self.check()
        self.seen += 1
        device = self.found.devices[name]
        fault = self.faults.pop(self.seen, "")
        if fault == "interrupted":
            self.is_asked_to_end = True
        if "clock" in fault:
            self.found.time.set_s -= 3600
        if "dead" in fault:
            self.dead[name] = self.found.time.now_s + LONG_S
        if "restarts" in fault:
            self.dead[name] = self.found.time.now_s + STARTS_IN_S
            device.running, device.pending, device.staged, device.is_drained = dict(device.startup), None, None, False
        if fault.startswith("killed"):
            raise Killed
        if "lost" in fault or self.dead.get(name, 0.0) > self.found.time.now_s:
            self.found.time.wait(1)
            raise AccessError(Problem(f"{name}: no answer"))

    def check(self) -> None:
        """Compare what runs with the predictions; a failure here must not look like a device error to netkit."""
        running: Running = {}
        for name, device in self.found.devices.items():
            device.tick()
            running[name] = dict(device.running)
            if not any(files.get(name) == running[name] for files in self.known):
                self.wrong.append(f"{name} runs what nobody predicted")
        lost = self.wanted - reached(self.name, frozen(running))
        self.wrong += [f"{sorted(pair)} do not reach each other" for pair in lost]

    def deploy(self, line: int = 0, fault: str = "") -> tuple[Journal, Outcome | None]:
        """Deploy with a fault at a line of the journal; no outcome if the process was killed."""
        journal = self.journal(self.found.journal(), line, fault)
        return journal, self._done(lambda: self.found.apply(journal))

    def journal(self, journal: Journal, line: int, fault: str) -> Journal:
        if not line:
            return journal
        found = (Full if fault == "full" else Cut)(journal.folder, self.found.time.clock)
        found.left = line + (FILES_OF_A_RUN if fault == "full" else 0)
        if isinstance(found, Cut):
            found.is_written_first = fault == "killed after"
        return found

    def _done(self, work: Callable[[], Outcome]) -> Outcome | None:
        try:
            return work()
        except Killed:
            return None

    def finished(self, journal: Journal) -> Outcome:
        """Resume a run until it has finished."""
        journal.close()
        self.is_asked_to_end = False
        for _ in range(4):
            known = Journal(journal.folder).outcome()
            if known is not None:
                return known
            again = Journal(journal.folder, self.found.time.clock)
            outcome = self._done(partial(self.found.resume, again))
            again.close()
            if outcome is not None:
                assert Journal(journal.folder).outcome() == outcome
        raise AssertionError("the run does not come to an end")

    def files(self, one: DeviceOutcome) -> dict[str, str | None]:
        """The files that a device runs according to its outcome."""
        states = {
            ConfigState.AS_BEFORE: self.known[0],
            ConfigState.INTENDED: self.known[1],
            ConfigState.BOTH: self.known[2],
        }
        return states[one.state][one.device]

    def works_again(self) -> None:
        """End every fault, and let every timer expire."""
        self.faults, self.dead = {}, {}
        self.found.wait(LONG_S)
        self.check()
        for device in self.found.devices.values():
            assert device.pending is None

    def taken_back(self, journal: Journal) -> None:
        """Roll back a run in whatever state it is, and assert that everything is as before."""
        journal.close()
        self.is_asked_to_end = False
        if Journal(journal.folder).outcome() is None:
            self.found.end(journal)
        if all(self.found.is_as_before(name) for name in self.found.devices):
            assert not self.wrong
            return
        again = self.found.journal()
        back = self.found.plan_rollback(journal)
        plan, files, _ = back
        self.known.append(dict(self.both(plan, files)))
        outcome = self._done(lambda: self.found.undo(journal, again, back=back))
        if outcome is None or outcome.exit_code:
            self.finished(again)
            self.works_again()
            if not all(self.found.is_as_before(name) for name in self.found.devices):
                self.taken_back(journal)
        self.check()
        for name, device in self.found.devices.items():
            assert self.found.is_as_before(name), name
            assert device.running == device.startup, name
            assert not device.is_drained, name
        assert not self.wrong


@contextmanager
def faulty(name: str) -> Iterator[Faulty]:
    with scene(name) as found:
        yield Faulty(name, found, found.plan)


@cache
def sizes(name: str) -> tuple[int, int]:
    """How many operations and lines a run without faults has."""
    with faulty(name) as found:
        journal, outcome = found.deploy()
        assert outcome is not None
        assert {one.result for one in outcome.devices} <= {DeviceResult.DONE, DeviceResult.UNCHANGED}
        assert {step.stage for step in found.plan.steps} >= {"both", "finish"}
        return found.seen, len(journal.entries())


def points(name: str, fault: str) -> list[int]:
    operations, lines = sizes(name)
    every = range(1, (lines if fault in OF_A_LINE else operations) + 1)
    chance = random.Random(f"{name} {fault} {SEED}")  # noqa: S311
    return sorted(chance.sample(every, min(POINTS, len(every))))


@pytest.mark.in_turn("name")
@pytest.mark.parametrize("fault", FAULTS)
@pytest.mark.parametrize("name", TWO_STAGES)
def test_a_run_with_a_fault_is_finished_by_resume_and_rolled_back_from_any_state(name: str, fault: str) -> None:
    for point in points(name, fault):
        for is_finished in (True, False):
            with faulty(name) as found:
                if fault in OF_A_DEVICE:
                    found.faults = {point: fault}
                journal, _ = found.deploy(point if fault in OF_A_LINE else 0, fault)
                found.found.wait(LATER_S[point % len(LATER_S)])
                if is_finished:
                    outcome = found.finished(journal)
                    assert_promised(found, outcome, f"{fault} at {point}: {outcome}", is_whole=fault in CUT_OFF)
                found.taken_back(journal)


def test_a_switch_that_was_lost_while_drained_carries_traffic_after_a_rollback() -> None:
    operations: list[tuple[str, str]] = []
    with faulty("timers") as found:
        found.found.strike = lambda name, operation: operations.append((name, operation))
        found.deploy()
    with faulty("timers") as found:
        found.faults = {operations.index(("spine02", "drain")) + 2: "dead"}
        journal, outcome = found.deploy()
        assert outcome is not None
        lost = next(one for one in outcome.devices if one.device == "spine02")
        assert lost.reasons[-1] == (f"it may still be drained; netkit rollback {journal.run} gives it its traffic back")
        found.works_again()
        assert found.found.devices["spine02"].is_drained
        found.taken_back(journal)


@pytest.mark.parametrize("name", TWO_STAGES)
def test_a_device_that_already_runs_both_is_left_alone_until_the_second_stage(name: str) -> None:
    """A run stopped in its first stage, and the intent is deployed again."""
    plan = scene_plan(name)
    begun = [device for step in plan.steps if step.stage == "both" for device in step.devices]
    left_alone = 0
    for count in range(1, len(begun) + 1):
        with faulty(name) as found:
            for device in begun[:count]:
                found.found.devices[device].running.update(found.known[2][device])
                found.found.devices[device].startup = dict(found.found.devices[device].running)
            ran = {device: dict(one.running) for device, one in found.found.devices.items()}
            found.plan = found.found.plan = found.found.replan()
            ready = {bridge.device for bridge in found.plan.bridges if not bridge.first.changes}
            left_alone += len(ready)
            assert not any(ready.intersection(step.devices) for step in found.plan.steps if step.stage == "both")
            assert [step.number for step in found.plan.steps] == [*range(1, len(found.plan.steps) + 1)]
            if any(step.after for step in found.plan.steps):
                found.wanted = frozenset()  # the plan names the outage
            journal, outcome = found.deploy()
            assert outcome is not None
            assert {one.result for one in outcome.devices} <= {DeviceResult.DONE, DeviceResult.UNCHANGED}
            assert all(map(found.found.is_intended, found.found.devices))
            waves = [entry for entry in journal.entries() if entry.step == WAVE]
            assert len(waves) == changing(found.plan, OPTIONS)
            assert {int(entry.note) for entry in waves} == {max(entry.wave for entry in waves)}
            again = found.found.journal()
            back = found.found.plan_rollback(journal)
            found.known.append(dict(found.both(*back[:2])))
            assert found.found.undo(journal, again, back=back).exit_code == 0
            assert {device: one.running for device, one in found.found.devices.items()} == ran
            assert not found.wrong
    assert left_alone or name == "numbers"


def test_a_device_that_others_changed_between_the_stages_is_not_said_to_run_both() -> None:
    with faulty("summaries") as found:
        journal, _ = found.deploy()
        line = next(number for number, entry in enumerate(journal.entries(), 1) if entry.step == STAGE)
    with faulty("summaries") as found:
        journal, _ = found.deploy(line, "killed after")
        found.works_again()
        name = found.plan.bridges[0].device
        other = {
            file: (text or "").replace("description ", "description other ")
            for file, text in found.found.devices[name].running.items()
        }
        found.found.devices[name].running = dict(other)
        outcome = found.finished(journal)
        one = outcome.device(name)
        assert one is not None
        assert (one.result, one.state) == (DeviceResult.REFUSED, ConfigState.UNKNOWN)
        assert "changed since the plan was made" in one.reasons[0]
        assert {one.state for one in outcome.devices if one.result is DeviceResult.NOT_STARTED} == {ConfigState.BOTH}
        back = found.found.undo(journal)
        refused = back.device(name)
        assert refused is not None
        assert refused.result is DeviceResult.REFUSED
        assert found.found.devices[name].running == other


def assert_promised(found: Faulty, outcome: Outcome, where: str, *, is_whole: bool) -> None:
    """Compare an outcome with what the devices run when everything has ended."""
    if is_whole:
        assert {one.result for one in outcome.devices} <= {DeviceResult.DONE, DeviceResult.UNCHANGED}, where
        assert all(map(found.found.is_intended, found.found.devices)), where
    found.works_again()
    for one in outcome.devices:
        if one.state is not ConfigState.UNKNOWN:
            assert found.found.devices[one.device].running == found.files(one), where
