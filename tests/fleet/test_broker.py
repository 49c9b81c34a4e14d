"""Jobs and answers over a real RabbitMQ, with workers that are processes of their own."""

import json
import time

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from netkit import __version__
from netkit.fleet import coordinator as coordinating
from netkit.fleet import signing
from netkit.fleet.answer import JobAnswer, JobProgress, LostJob
from netkit.fleet.job import PURPOSE, SiteJob, canonical, sign_job
from netkit.fleet.rabbitmq import JOBS
from tests.fleet.bed import Bed, eventually, job
from tests.fleet.rabbitmq_server import needs_rabbitmq

pytestmark = needs_rabbitmq


def test_two_sites_answer_their_jobs(fleet_bed: Bed) -> None:
    for site in ("tokyo", "osaka"):
        fleet_bed.worker(site, site)
    jobs = [job(site, device=f"leaf{number:02}") for number in range(5) for site in ("tokyo", "osaka")]
    with fleet_bed.coordinator() as fleet:
        events = list(fleet.run(jobs))
    answers = [event for event in events if isinstance(event, JobAnswer)]
    assert sorted(event.payload.split()[:2] for event in answers) == sorted(
        [one.site.encode(), one.devices[0].encode()] for one in jobs
    )
    assert {(event.sequence, event.is_last) for event in answers} == {(0, True)}
    assert [event for event in events if isinstance(event, LostJob)] == []
    assert sum(isinstance(event, JobProgress) and event.text == "looking" for event in events) == len(jobs)


def test_a_worker_prepares_jobs_of_the_fabric_and_commit_of_the_one_before(fleet_bed: Bed) -> None:
    fleet_bed.worker("tokyo", "tokyo", "prepared")
    jobs = [job() for _ in range(6)]
    jobs[2] = jobs[2].model_copy(update={"commit": "f" * 40})
    found = []
    with fleet_bed.coordinator() as fleet:
        for one in jobs:
            found += [event.payload for event in fleet.run([one]) if isinstance(event, JobAnswer)]
    assert found == [b"0", b"1", b"1", b"1", b"2", b"3"]


@pytest.fixture
def _future_job(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have the coordinator send a job that no worker knows."""

    def sign(one: SiteJob, key: Ed25519PrivateKey) -> bytes:
        whole = json.loads(sign_job(one, key).partition(b"\n")[2])
        return signing.signed(canonical({**whole, "work": {"verb": "teleport"}}), PURPOSE, key)

    monkeypatch.setattr(coordinating, "sign_job", sign)


@pytest.mark.usefixtures("_future_job")
def test_a_job_that_a_worker_does_not_know_is_answered_at_once(fleet_bed: Bed) -> None:
    worker, began_s = fleet_bed.worker("tokyo", "tokyo"), time.monotonic()
    with fleet_bed.coordinator() as fleet:
        (lost,) = list(fleet.run([job(within_s=3600)]))
    assert isinstance(lost, LostJob)
    assert lost.reason.startswith(f"refused by {names(fleet_bed)[worker.process.pid]}: it is not a job of netkit")
    assert f"netkit {__version__}: work: Input tag 'teleport'" in lost.reason
    assert lost.reason.endswith("; run the same release at all sites")
    assert time.monotonic() - began_s < 600


@pytest.mark.usefixtures("_future_job")
@pytest.mark.parametrize("is_late", [False, True])
def test_a_worker_that_would_drop_a_job_in_silence_is_named(is_late: bool, fleet_bed: Bed) -> None:
    """Whether it is there when the job is given, or comes later."""
    jobs = [job(within_s=3600), job("osaka", within_s=3600)]
    fleet_bed.worker("osaka", "osaka")
    lost: dict[str, str] = {}
    with fleet_bed.coordinator() as fleet:
        if not is_late:
            older = fleet_bed.worker("tokyo", "older", OLDER="1")
            eventually(lambda: older.process.pid in names(fleet_bed))
        events = fleet.run(jobs)
        if is_late:
            event = next(events)
            lost[event.job.site] = event.reason if isinstance(event, LostJob) else ""
            older = fleet_bed.worker("tokyo", "older", OLDER="1")
        lost |= {one.job.site: one.reason for one in events if isinstance(one, LostJob)}
    assert lost["osaka"].startswith("refused by "), "the other site is not affected"
    assert lost["tokyo"] == (
        f"the worker {names(fleet_bed)[older.process.pid]} runs an older netkit ({__version__}), "
        "which may drop the job unanswered; install this release at the site tokyo, and restart the worker"
    )
    if is_late:  # else its status may reach the coordinator before the job is sent
        line = "refused a message: it is not a job of netkit"
        assert any(one.startswith(line) for one in older.lines())


def test_the_status_of_an_older_worker_that_has_ended_does_not_count(fleet_bed: Bed) -> None:
    fleet_bed.worker("tokyo", "older", OLDER="1")
    eventually(lambda: names(fleet_bed))
    fleet_bed.end_workers()
    newer = fleet_bed.worker("tokyo", "newer")
    with fleet_bed.link() as link:
        eventually(lambda: newer.process.pid in names(fleet_bed) and link.consumers(JOBS) == 1)
    with fleet_bed.coordinator() as fleet:
        assert [one for one in fleet.run([job()]) if isinstance(one, LostJob)] == []


def names(fleet_bed: Bed) -> dict[int, str]:
    """Return the name of each worker of tokyo that has reported, by its process."""
    (tokyo, _) = coordinating.site_statuses(fleet_bed.settings, fleet_bed.credentials())
    return {int(one.worker.rpartition(":")[2]): one.worker for one in tokyo.workers}
