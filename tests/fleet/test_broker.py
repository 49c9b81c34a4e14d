"""Jobs and answers over a real RabbitMQ, with workers that are processes of their own."""

from netkit.fleet.answer import JobAnswer, JobProgress, LostJob
from tests.fleet.bed import Bed, job
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
