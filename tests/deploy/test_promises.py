"""Whatever fails, and wherever: each device ends as intended or as before, and the outcome says which."""

import errno
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from netkit.deploy import ConfigState, DeviceResult, Journal
from netkit.deploy.connection import WRITES
from netkit.deploy.journal import LeaseLostError
from netkit.errors import DeployError, Problem
from tests.deploy import promise
from tests.deploy.fake import KINDS, Fault, Killed
from tests.deploy.scene import Scene, scene
from tests.lanes import examples

DEVICES = ("leaf01", "leaf02", "leaf03", "leaf04", "spine01", "spine02", "gpu02", "gpu05")
FAULTS = st.sampled_from([(operation, kind) for operation, kinds in KINDS.items() for kind in kinds])
FAULT = st.builds(lambda pair, times: Fault(pair[0], pair[1], times), FAULTS, st.sampled_from((1, 1, 1, 2, 1000)))
BROKEN = st.dictionaries(st.sampled_from(DEVICES), st.lists(FAULT, min_size=1, max_size=4), max_size=3)
CHANGE = st.sampled_from(("words", "asn", "rails"))
SETTINGS = settings(max_examples=examples(40))


def broken(given_scene: Scene, faults: dict[str, list[Fault]]) -> None:
    for name, found in faults.items():
        given_scene.devices[name].faults = [Fault(one.operation, one.kind, one.times) for one in found]


@SETTINGS
@given(change=CHANGE, faults=BROKEN, max_fail=st.integers(0, 6), is_together=st.booleans(), has_gate=st.booleans())
def test_each_device_ends_intended_or_as_before(
    change: str, faults: dict[str, list[Fault]], max_fail: int, *, is_together: bool, has_gate: bool
) -> None:
    with scene(change) as found:
        broken(found, faults)
        found.gate = found.sessions() if has_gate else found.gate
        outcome = found.apply(max_fail=max_fail, is_together=is_together)
        promise.check(found, outcome)
        for one in outcome.devices:
            if one.device not in faults and not has_gate:
                assert one.result in {DeviceResult.DONE, DeviceResult.UNCHANGED, DeviceResult.NOT_STARTED}, one
        first_spent = spent_in(outcome.devices, max_fail)
        assert all(one.wave <= first_spent for one in outcome.devices)
        settled(found)


def spent_in(devices: tuple[object, ...], max_fail: int) -> int:
    """The wave in which the failure budget was exhausted; no wave may follow."""
    waves = sorted(one.wave for one in devices if one.is_failure)  # type: ignore[attr-defined]
    return waves[max_fail] if len(waves) > max_fail else 1000


def settled(found: Scene) -> None:
    """Plan again once everything works, and deploy: afterwards nothing is left to do."""
    for device in found.devices.values():
        device.faults = []
    found.plan = found.replan()
    outcome = found.apply()
    assert {one.result for one in outcome.devices} <= {DeviceResult.DONE, DeviceResult.UNCHANGED}
    assert outcome.exit_code == 0
    assert found.replan().changed == ()


class Cut(Journal):
    """A journal whose process dies at one of its lines."""

    left = 0
    is_written_first = True

    def _write(self, entry):  # type: ignore[no-untyped-def]
        self.left -= 1
        if self.left == 0 and not self.is_written_first:
            raise Killed
        super()._write(entry)
        if self.left == 0:
            raise Killed


@SETTINGS
@given(
    change=CHANGE,
    line=st.integers(1, 90),
    is_written_first=st.booleans(),
    faults=st.one_of(st.just({}), BROKEN),
    later_s=st.sampled_from((0.0, 1.0, 30.0, 100.0, 119.0, 121.0, 150.0, 1000.0)),
)
def test_a_run_killed_at_any_line_is_finished_by_resume(
    change: str, line: int, faults: dict[str, list[Fault]], later_s: float, *, is_written_first: bool
) -> None:
    with scene(change) as found:
        broken(found, faults)
        journal = Cut(found.journal().folder, found.time.clock)
        journal.left, journal.is_written_first = line, is_written_first
        resumed(found, journal, later_s, is_whole=not faults)


@SETTINGS
@given(change=CHANGE, after=st.integers(1, 220), later_s=st.sampled_from((0.0, 30.0, 119.0, 121.0, 1000.0)))
def test_a_run_killed_while_a_device_works_is_finished_by_resume(change: str, after: int, later_s: float) -> None:
    left = after

    def strike(_device: str, _operation: str) -> None:
        nonlocal left
        left -= 1
        if left == 0:
            raise Killed

    with scene(change) as found:
        found.strike = strike
        resumed(found, found.journal(), later_s, is_whole=True)


def resumed(found: Scene, journal: Journal, later_s: float, *, is_whole: bool) -> None:
    try:
        outcome = found.apply(journal, max_fail=1)
    except Killed:
        found.wait(later_s)
        journal.close()
        outcome = found.resume(journal)
    promise.check(found, outcome)
    if is_whole:
        assert {one.result for one in outcome.devices} <= {DeviceResult.DONE, DeviceResult.UNCHANGED}, outcome
    assert Journal(journal.folder).outcome() == outcome
    settled(found)


@SETTINGS
@given(lines=st.lists(st.integers(1, 30), min_size=2, max_size=5), later_s=st.sampled_from((0.0, 121.0)))
def test_a_run_killed_again_and_again_is_finished_by_resume(lines: list[int], later_s: float) -> None:
    with scene("asn") as found:
        folder = found.journal().folder
        outcome = None
        for number, line in enumerate([*lines, 1000]):
            journal = Cut(folder, found.time.clock)
            journal.left = line
            try:
                outcome = found.apply(journal) if number == 0 else found.resume(journal, journal)
                break
            except Killed:
                journal.close()
                found.wait(later_s)
        assert outcome is not None
        promise.check(found, outcome)
        assert {one.result for one in outcome.devices} <= {DeviceResult.DONE, DeviceResult.UNCHANGED}, outcome


FILES_OF_A_RUN = 4
"""The lines and files of a run that are written before any change."""


class Full(Journal):
    """A journal whose disk is full after some lines and files."""

    left = 0

    @contextmanager
    def _reporting(self, file: Path) -> Iterator[None]:
        with super()._reporting(file):
            self.left -= 1
            if self.left < 0:
                raise OSError(errno.ENOSPC, "no space left")
            yield


@SETTINGS
@given(change=CHANGE, line=st.integers(0, 90), faults=st.one_of(st.just({}), BROKEN))
def test_a_run_stops_at_what_it_cannot_journal(change: str, line: int, faults: dict[str, list[Fault]]) -> None:
    with scene(change) as found:
        broken(found, faults)
        journal = Full(found.journal().folder, found.time.clock)
        journal.left = FILES_OF_A_RUN + line
        outcome = found.apply(journal, max_fail=6)
        promise.check(found, outcome)
        assert (Journal(journal.folder).outcome() == outcome) == ("no space left" not in outcome.stopped)
        if Journal(journal.folder).outcome() is None:
            assert outcome.exit_code != 0
            resumed = found.resume(journal)
            promise.check(found, resumed)
            if not faults:
                assert {one.result for one in resumed.devices} <= {DeviceResult.DONE, DeviceResult.UNCHANGED}, resumed


@SETTINGS
@given(
    change=CHANGE,
    asked=st.integers(0, 160),
    faults=st.one_of(st.just({}), BROKEN),
    later_s=st.sampled_from((0.0, 1.0, 30.0, 119.0, 121.0, 1000.0)),
)
def test_nothing_is_changed_without_the_lease(
    change: str, asked: int, faults: dict[str, list[Fault]], later_s: float
) -> None:
    left = FILES_OF_A_RUN + asked
    written_without: list[str] = []

    def lease() -> None:
        nonlocal left
        left -= 1
        if left < 0:
            raise LeaseLostError(Problem("the lease is lost"))

    def strike(device: str, operation: str) -> None:
        if left < 0 and operation in WRITES:
            written_without.append(f"{operation} {device}")

    with scene(change) as found:
        broken(found, faults)
        found.strike = strike
        journal = found.journal()
        journal.lease = lease
        outcome = found.apply(journal, max_fail=6)
        assert written_without == []
        if left < 0:
            left = 1000
            assert (journal.outcome(), outcome.exit_code != 0) == (None, True)
            assert "the lease is lost" in outcome.stopped
            journal.close()
            found.wait(later_s)
            outcome = found.resume(Journal(journal.folder, found.time.clock))
        promise.check(found, outcome)
        if not faults:
            assert {one.result for one in outcome.devices} <= {DeviceResult.DONE, DeviceResult.UNCHANGED}, outcome


@SETTINGS
@given(faults=BROKEN)
def test_an_undone_run_restores_the_state_before(faults: dict[str, list[Fault]]) -> None:
    with scene("asn") as found:
        broken(found, faults)
        journal = found.journal()
        outcome = found.apply(journal, max_fail=6)
        found.wait(promise.LONG_S)
        for device in found.devices.values():
            device.faults, device.is_drained = [], False
        changed = {one.device for one in outcome.devices if one.state is ConfigState.INTENDED and one.wave}
        unsaved = any(
            one.state is not ConfigState.AS_BEFORE and one.result is DeviceResult.FAILED for one in outcome.devices
        )
        if not changed or unsaved:
            return
        back = found.undo(journal)
        assert {one.result for one in back.devices} <= {DeviceResult.DONE, DeviceResult.UNCHANGED}
        assert all(found.is_as_before(name) for name in found.devices)


def test_a_run_that_never_started_has_nothing_to_resume() -> None:
    with scene() as found, pytest.raises(DeployError, match="there is no run"):
        found.resume(found.journal())
