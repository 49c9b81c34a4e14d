"""`netkit watch --fleet`: what sites have watched is shown as if all of it had ended now."""

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest

from netkit.facts import Sample
from netkit.fleet.dispatch import Dispatch, ShardAnswer
from netkit.fleet.job import WatchWork, new_job
from netkit.fleet.reading import watched_at
from netkit.project.project import Project
from netkit.project.watching import outline_of
from netkit.watch.feed import Condition
from netkit.watch.session import Record, RecordedEvent
from tests.command import ROOT, run

REFERENCE = Path(ROOT, "inventory/reference")
COMMIT = "0" * 40


@dataclass(frozen=True)
class Answers:
    """What the sites of a fleet answer."""

    found: Sequence[ShardAnswer]

    def answers(self, *_: object) -> Iterator[ShardAnswer]:
        yield from self.found


@pytest.fixture
def project() -> Project:
    return Project.open(REFERENCE)


def answer(project: Project, file: Path, site: str, device: str, *heard_s: float, watched: str = "") -> ShardAnswer:
    """Return the answer of a site whose clock has its own time."""
    job = new_job(site, "inventory/reference", COMMIT, WatchWork(), within_s=60, devices=(device,))
    record = Record(file, outline_of(project, project.devices(device), 1.0))
    for at_s in heard_s:
        record.add(RecordedEvent(at_s, watched or device, Sample(at_s - 0.5, {"rx_bytes": {"swp1": int(at_s)}})))
    record.close()
    data = file.read_bytes()
    return ShardAnswer(job, (data[:20], data[20:]))


def seen(project: Project, monkeypatch: pytest.MonkeyPatch, *found: ShardAnswer) -> list[RecordedEvent]:
    monkeypatch.setattr(Dispatch, "of", lambda _: Answers(found))
    with watched_at(Path(), project, project.devices(), WatchWork()) as events:
        return list(events)


def test_clocks_of_sites_do_not_matter(project: Project, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tokyo = answer(project, tmp_path / "1", "tokyo", "leaf01", 1000.0, 1001.0, 1002.0)
    osaka = answer(project, tmp_path / "2", "osaka", "leaf02", 5000.5, 5001.5)
    found = seen(project, monkeypatch, tokyo, osaka)
    assert [one.device for one in found] == ["leaf01", "leaf01", "leaf02", "leaf01", "leaf02"]
    last_s = time.time()
    assert [round(last_s - one.heard_s) for one in found] == [2, 1, 1, 0, 0]
    assert {round(one.heard_s - one.what.at_s, 3) for one in found if isinstance(one.what, Sample)} == {0.5}
    counts = [one.what.counters["rx_bytes"]["swp1"] for one in found if isinstance(one.what, Sample)]
    assert counts == [1000, 1001, 5000, 1002, 5001]


def test_devices_of_a_shard_without_an_answer_are_gone(
    project: Project, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    one = answer(project, tmp_path / "1", "tokyo", "leaf01", 1000.0)
    lost = ShardAnswer(one.job, (), "no worker of the site tokyo began it by its deadline")
    foreign = answer(project, tmp_path / "2", "osaka", "leaf02", 1.0, watched="leaf03")
    damaged = ShardAnswer(foreign.job, (b"nonsense",))
    for given, why in (
        (lost, "the site tokyo did not read it: no worker of the site tokyo began it by its deadline"),
        (foreign, "the site osaka did not read it: its answer is about leaf03, which was not requested"),
        (damaged, "the site osaka did not read it: is not a record of netkit watch"),
    ):
        (found,) = seen(project, monkeypatch, given)
        assert (found.device, found.what) == (given.job.devices[0], Condition("gone", why))


@pytest.mark.parametrize(
    ("options", "error"),
    [
        ((), "sites report a watch only after it ends; give --for 10s or --once"),
        (("--for", "2m"), "120 s are more than 60 samples at intervals of 1 s; watch shorter with --fleet"),
        (("--once", "--lab"), "--lab does not work with --fleet; drop --lab, or --fleet"),
        (("--once", "--replay", "x"), "--replay does not work with --fleet; drop --replay, or --fleet"),
    ],
)
def test_what_sites_cannot_watch_is_refused(options: Sequence[str], error: str, tmp_path: Path) -> None:
    done = run("watch", "--fabric", REFERENCE, "--fleet", tmp_path, *options)
    assert (done.returncode, done.stdout) == (3, "")
    assert done.stderr.startswith(f"error: {error}")
