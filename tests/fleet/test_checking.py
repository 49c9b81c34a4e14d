"""Checks at sites: what workers answer, put together, is what one machine finds."""

import base64
from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Self

import pytest

from netkit import __version__
from netkit.design.select import Device
from netkit.errors import UsageError
from netkit.facts import Sample, Snapshot
from netkit.fleet import dispatch
from netkit.fleet.answer import MOST_PART_BYTES, JobAnswer, JobEvent, LostJob
from netkit.fleet.checking import FleetCollector, answered
from netkit.fleet.job import CheckWork, SiteJob
from netkit.fleet.settings import FleetSettings, SiteSettings
from netkit.judge import CheckContext, DeviceContext, Finding, Verdict, catalog, device_check, passed
from netkit.judge.check import Check
from netkit.project import checking
from netkit.project import deadline as deadlines
from netkit.project.checking import Checking
from netkit.project.connections import Connections
from netkit.project.deadline import Deadline
from netkit.project.judging import judged_of
from netkit.project.observing import Looking
from netkit.project.project import Project
from tests.command import ROOT
from tests.project.test_processes import snapshot

BESIDE = ("drift", "acceptance", "cluster")
REFERENCE = Path(ROOT, "inventory/reference")
HGX = Path(ROOT, "inventory/hgx-256")


@pytest.fixture
def project(monkeypatch: pytest.MonkeyPatch) -> Project:
    """A fabric whose devices answer what was made up for each."""
    found = Project.open(REFERENCE, processes=1)
    whole = snapshot(found.fabric)

    def look(_: Project, __: Connections, looking: Looking) -> Snapshot:
        return replace(whole, devices={device.name: whole.devices[device.name] for device in looking.devices})

    monkeypatch.setattr(checking, "look", look)
    return found


class Workers:
    """Workers in this process: each job is carried out, and its parts come back."""

    def __init__(self, project: Project, lost: str = "", release: str = __version__, adds: str = "") -> None:
        self.project, self.lost, self.release, self.adds = project, lost, release, adds
        self.times: set[int] = set()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        """There is nothing to end."""

    def hold(self, name: str, sites: Collection[str]) -> None:
        assert (name, sites) == ("check of inventory/reference", {"tokyo"})

    def run(self, jobs: Sequence[SiteJob]) -> Iterator[JobEvent]:
        self.times = {job.deadline_s - job.issued_s for job in jobs}
        for job in jobs:
            if self.lost in job.devices:
                yield LostJob(job, "no worker of the site tokyo began it by its deadline")
                continue
            assert isinstance(job.work, CheckWork)
            parts = list(answered(self.project, chosen(self.project, {*job.devices, self.adds}), job.work))
            mine, other = (f'"netkit": "{release}"'.encode() for release in (__version__, self.release))
            parts = [part.replace(mine, other) for part in parts]
            assert max(map(len, parts)) < MOST_PART_BYTES
            for number, part in enumerate(parts):
                yield JobAnswer(job, number, part, is_last=number == len(parts) - 1)


def chosen(project: Project, names: Collection[str]) -> Sequence[Device]:
    return [device for device in project.devices() if device.name in names]


def collector(monkeypatch: pytest.MonkeyPatch, workers: Workers, fabrics: Any = None) -> FleetCollector:
    """Return a collector whose fleet is these workers, in shards of a few devices."""
    site = {"keys": [KEY], "fabrics": fabrics or {"inventory/reference": {}}}
    broker, repository = {"host": "mq.example.net"}, {"url": "https://git.example.net/fabrics"}
    values = {"broker": broker, "repository": repository, "coordinator": {"keys": [KEY]}, "sites": {"tokyo": site}}
    monkeypatch.setattr(dispatch, "Coordinator", lambda *_: workers)
    monkeypatch.setattr(dispatch, "committed", lambda *_: ("0" * 40, "inventory/reference"))
    monkeypatch.setattr(dispatch, "SHARD", 7)
    return FleetCollector(dispatch.Dispatch(FleetSettings.model_validate(values), None))  # type: ignore[arg-type]


KEY = base64.b64encode(bytes(32)).decode()


def checks() -> tuple[Check, ...]:
    return tuple(one for one in catalog.load().values() if not one.name.startswith(BESIDE))


@pytest.mark.parametrize("size", [1, 7, 16, 256])
def test_sites_find_what_one_machine_finds(project: Project, monkeypatch: pytest.MonkeyPatch, size: int) -> None:
    here = Checking.of(project, window_s=10.0)
    there = replace(here, collector=collector(monkeypatch, Workers(project)))
    monkeypatch.setattr(dispatch, "SHARD", size)
    assert judged_of(there.context(checks()), checks()) == judged_of(here.context(checks()), checks())


def test_a_shard_has_whole_units(monkeypatch: pytest.MonkeyPatch) -> None:
    devices = Project.open(HGX).devices()
    units = {device.name: device.unit for device in devices}
    cases = {256: [[1, 2, 0]], 50: [[1, 2], [0]], 24: [[1], [2], [0]], 16: [[1], [1], [2], [2, 0], [0]]}
    for size, expected in cases.items():
        monkeypatch.setattr(dispatch, "SHARD", size)
        found = list(dispatch.shards(devices))
        assert sorted(name for names in found for name in names) == sorted(units)
        assert [list(dict.fromkeys(units[name] for name in names)) for names in found] == expected
        assert max(map(len, found)) <= size


def test_shards_that_are_read_one_after_another_examine_all_but_cables_between_them(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    project = Project.open(HGX, processes=1)
    whole, read = snapshot(project.fabric), list[int]()

    def later(one: Sample, number: int) -> Sample:
        counted = {name: dict.fromkeys(places, 9_000_000 * number) for name, places in one.counters.items()}
        return Sample(one.at_s + 100 * len(read), counted)

    def look(_: Project, __: Connections, looking: Looking) -> Snapshot:
        read.append(len(looking.devices))
        seen = [whole.devices[device.name] for device in looking.devices]
        devices = {one.device: replace(one, samples=tuple(map(later, one.samples, (0, 1)))) for one in seen}
        return replace(whole, devices=devices)

    monkeypatch.setattr(checking, "look", look)
    here = Checking.of(project, window_s=10.0)
    there = replace(here, collector=collector(monkeypatch, Workers(project)))
    monkeypatch.setattr(dispatch, "SHARD", 24)
    found = []
    for one in (here, there):
        examined = Counter[str]()
        for result in judged_of(one.context(checks()), checks()).judgement.results:
            examined[result.check] += result.examined
        found.append(examined)
    assert read == [58, 24, 24, 10]
    shards = {name: names for names in dispatch.shards(project.devices()) for name in names}
    between = sum(shards[link.device] is not shards[link.peer] for link in project.fabric.links())
    assert 0 < between < len(list(project.fabric.links()))
    assert found[0] - found[1] == {"counters.stuck": 2 * between}
    assert not found[1] - found[0]


@pytest.mark.parametrize(("deadline", "within_s"), [("", 910), ("20m", 910), ("100s", 90), ("11s", 1)])
def test_jobs_end_in_time_for_the_run(
    deadline: str, within_s: int, project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(deadlines, "time", SimpleNamespace(monotonic=lambda: 1000.0))
    workers = Workers(project, lost="leaf01")
    there = replace(
        Checking.of(project, window_s=10.0), collector=collector(monkeypatch, workers), deadline=Deadline(deadline)
    )
    there.context(checks()[:1])
    assert workers.times == {within_s}


def test_devices_of_a_lost_shard_are_unread_and_nothing_of_them_passes(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    there = replace(Checking.of(project), collector=collector(monkeypatch, Workers(project, lost="leaf01")))
    found = judged_of(there.context(checks()), checks()).judgement
    unread = dict(found.unreached)
    assert len(unread) == 7
    why = "the site tokyo did not read it: no worker of the site tokyo began it by its deadline"
    assert unread["leaf01"] == why
    verdicts = {one.verdict for one in found.results if one.device in unread}
    assert verdicts == {Verdict.SKIPPED}


def test_an_answer_of_another_release_is_not_used(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    there = replace(Checking.of(project), collector=collector(monkeypatch, Workers(project, release="0.0.9")))
    found = judged_of(there.context(checks()), checks()).judgement
    why = f"the site tokyo did not read it: its worker runs netkit 0.0.9, and this is {__version__}"
    assert dict(found.unreached) == dict.fromkeys(project.fabric.names, why)
    assert {one.verdict for one in found.results} == {Verdict.SKIPPED}


def test_an_answer_about_devices_of_another_site_is_not_used(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    there = replace(Checking.of(project), collector=collector(monkeypatch, Workers(project, adds="spine04")))
    found = judged_of(there.context(checks()), checks()).judgement
    why = "the site tokyo did not read it: its answer is about spine04, which was not requested"
    others = [name for name in project.fabric.names if dict(found.unreached).get(name) != why]
    assert "spine04" in others
    assert others == [f"spine{number:02}" for number in range(1, 5)], "the shard that spine04 is in"


@device_check(layer="link")
def nosy(context: CheckContext, device: DeviceContext) -> Iterator[Finding]:
    """Looks at other devices without declaring it."""
    yield passed(str(len(context.devices)), device.name)


def test_a_check_that_looks_at_other_devices_undeclared_is_an_error(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(catalog, "select", lambda *_: [nosy])
    there = replace(Checking.of(project), collector=collector(monkeypatch, Workers(project)))
    found = judged_of(there.context([nosy]), [nosy]).judgement
    assert {(one.verdict, one.findings[0].text) for one in found.results} == {
        (Verdict.ERROR, "reads other devices without declaring it: add reads=[…] to its decorator")
    }
    assert [one.device for one in found.results] == list(project.fabric.names)


@pytest.mark.parametrize(
    ("place", "error"),
    [
        ({"inventory/other": {}}, "inventory/reference is at no site of the fleet; add it to the fabrics of a site"),
        ({"inventory/reference": {"units": "2"}}, "unit 1 of inventory/reference, with leaf01, is at no site"),
    ],
)
def test_devices_without_a_site_are_named(
    project: Project, monkeypatch: pytest.MonkeyPatch, place: Any, error: str
) -> None:
    there = replace(Checking.of(project), collector=collector(monkeypatch, Workers(project), fabrics=place))
    with pytest.raises(UsageError, match=error):
        there.context(checks())


def test_a_lab_is_read_here_and_not_at_sites(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    there = Checking.of(replace(project, lab="small"))
    with pytest.raises(UsageError, match="--lab does not work with --fleet; drop --lab, or --fleet"):
        replace(there, collector=collector(monkeypatch, Workers(project))).context(checks())


@pytest.mark.parametrize(
    ("others", "sites"),
    [({"inventory/other": {}}, ["tokyo"]), ({"inventory/reference": {"units": "2"}}, ["tokyo", "osaka"])],
)
def test_the_sites_of_a_fabric(others: Any, sites: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    found = collector(monkeypatch, Workers(Project.open(REFERENCE)), {"inventory/reference": {"units": "1"}}).dispatch
    osaka = SiteSettings.model_validate({"keys": [KEY], "fabrics": others})
    both = found.settings.model_copy(update={"sites": {**found.settings.sites, "osaka": osaka}})
    assert replace(found, settings=both).sites_of(REFERENCE) == sites
