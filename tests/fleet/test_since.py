"""`netkit check --fleet --since last`: counters since the check before, of which the samples stay at the sites."""

import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Self

import pytest

from netkit.facts import Observation, Sample, Snapshot
from netkit.fleet.answer import JobAnswer, JobEvent, LostJob
from netkit.fleet.checking import answered
from netkit.fleet.execute import KeptCounters, past_of
from netkit.fleet.job import CheckWork, SiteJob
from netkit.judge import Verdict, catalog
from netkit.judge.run import Judgement
from netkit.project import checking
from netkit.project.checking import Checking
from netkit.project.connections import Connections
from netkit.project.judging import judged_of
from netkit.project.observing import Looking
from netkit.project.past import Storing, past
from netkit.project.project import Project
from tests.fleet import test_checking
from tests.fleet.test_checking import REFERENCE, chosen
from tests.project.test_processes import snapshot

BEGAN_S = float(int(time.time())) - 5000
CHECKS = ("load.errors", "links.up", "counters", "bgp.sessions")


class Readings:
    """Devices whose counters grow from one reading to the next, each time by more."""

    def __init__(self, project: Project) -> None:
        self.whole, self.number, self.windows = snapshot(project.fabric), 0, set[float]()

    def look(self, _: Project, __: Connections, looking: Looking) -> Snapshot:
        self.windows.add(looking.options.window_s)
        taken_s = BEGAN_S + 1000.0 * self.number
        found = {device.name: self._read(self.whole.devices[device.name], taken_s) for device in looking.devices}
        return Snapshot(self.whole.fabric, taken_s, found)

    def _read(self, one: Observation, taken_s: float) -> Observation:
        ports = one.samples[-1].counters["rx_bytes"]
        names = {"rx_bytes": 10**9, "tx_bytes": 10**9, "rx_packets": 10**6, "rx_errors": 10**4}
        counters = {name: dict.fromkeys(ports, weight * self.number**2) for name, weight in names.items()}
        return replace(one, facts=replace(one.facts, counters=counters), samples=(Sample(taken_s, counters),))


class Workers:
    """The worker of a site; what it kept is in the state folder."""

    lost: str = ""
    shard: frozenset[str] = frozenset()
    """The devices of the job that was lost."""

    def __init__(self, project: Project) -> None:
        self.project = project

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        """There is nothing to end."""

    def hold(self, *_: object) -> None:
        """There is no other round."""

    def run(self, jobs: Sequence[SiteJob]) -> Iterator[JobEvent]:
        for job in jobs:
            assert isinstance(job.work, CheckWork)
            parts = list(
                answered(self.project, chosen(self.project, job.devices), job.work, past=past_of(self.project, job))
            )
            if self.lost in job.devices:
                self.shard = frozenset(job.devices)
                yield LostJob(job, "its worker died when it had read everything")
                continue
            for number, part in enumerate(parts):
                yield JobAnswer(job, number, part, is_last=number == len(parts) - 1)


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Project:
    monkeypatch.setenv("NETKIT_STATE_DIR", str(tmp_path / "state"))
    return Project.open(REFERENCE, processes=1)


def judged(there: Checking, store: Path) -> Judgement:
    """Check since the last run, and store the run."""
    checks = catalog.select(there.project.checks(), CHECKS)
    storing = replace(Storing.of(str(store), "last"), has_counters=there.collector is None)
    with past(storing, there.project) as earlier:
        scene = there.context(checks, earlier)
        found = judged_of(scene, checks)
        earlier.save(scene, found, there.project.intent)
    return found.judgement


def test_counters_are_judged_since_the_last_run_as_on_one_machine(
    project: Project, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    readings, workers = Readings(project), Workers(project)
    monkeypatch.setattr(checking, "look", readings.look)
    here = Checking.of(project, window_s=10.0)
    there = replace(here, collector=test_checking.collector(monkeypatch, workers))  # type: ignore[arg-type]
    rounds = []
    for readings.number in (1, 2, 3, 4):
        workers.lost = "leaf01" if readings.number == 3 else "none"
        rounds.append((judged(here, tmp_path / "here.db"), judged(there, tmp_path / "there.db")))
        assert readings.windows == ({10.0} if readings.number == 1 else {0.0})
        readings.windows.clear()
    assert [one == other for one, other in rounds] == [True, True, False, False]
    found = [one for one in rounds[1][1].findings if one.check == "load.errors" and one.verdict > Verdict.SKIPPED]
    assert {dict(one.evidence)["window"] for one in found} == {"1000.0 s"}
    # A shard that was lost when it had been read is judged since the run before.
    windows = {
        one.device: dict(one.evidence)["window"]
        for one in rounds[3][1].findings
        if one.check == "load.errors" and one.verdict > Verdict.SKIPPED
    }
    assert set(windows.values()) == {"1000.0 s", "2000.0 s"}
    assert {name for name, window in windows.items() if window == "2000.0 s"} == workers.shard & windows.keys()


def test_only_two_samples_of_a_device_are_kept(project: Project) -> None:
    kept, sizes = KeptCounters.of(project), []
    for number in range(1, 6):
        used = kept.used("leaf01", 2.0)
        kept.keep(Observation("leaf01", "nvue", samples=(Sample(float(number), {"rx": {"swp1": number}}),)), used)
        sizes.append([one[0] for one in kept._read("leaf01")])  # noqa: SLF001
    assert sizes == [[1.0], [2.0, 1.0], [3.0, 2.0], [4.0, 2.0], [5.0, 2.0]]
    (file,) = kept.folder.iterdir()
    file.write_bytes(b"damaged")
    assert kept.used("leaf01", 9.0) is None
