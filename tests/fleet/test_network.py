"""Workers in network namespaces of their own: links that are cut, mended and slow."""

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from netkit.fleet.answer import JobAnswer, LostJob
from tests.fleet.bed import Bed, bed, eventually, job
from tests.fleet.network import CENTRE, FleetNetwork, network
from tests.fleet.rabbitmq_server import needs_rabbitmq
from tests.namespace import needs_root

pytestmark = [needs_rabbitmq, needs_root]
QUICK: dict[str, Any] = {"HEARTBEAT_S": "2", "UNACKNOWLEDGED_MS": "4000"}


@pytest.fixture(scope="module")
def net() -> Iterator[FleetNetwork]:
    with network(("tokyo1", "tokyo2", "osaka")) as found:
        yield found


@pytest.fixture(scope="module")
def far_bed(net: FleetNetwork) -> Iterator[Bed]:
    prefixes = {name: net.inside(name) for name in net.holders}
    with bed(host=CENTRE, prefixes=prefixes) as found:
        yield found


@pytest.fixture
def fleet_far(far_bed: Bed) -> Iterator[Bed]:
    yield far_bed
    far_bed.end_workers()
    far_bed.purge()


def test_a_site_reaches_the_broker_and_no_other_site(fleet_far: Bed, net: FleetNetwork) -> None:
    for site, place in (("tokyo", "tokyo1"), ("osaka", "osaka")):
        fleet_far.worker(site, place)
    with fleet_far.coordinator() as fleet:
        events = list(fleet.run([job(site) for site in ("tokyo", "osaka")]))
    assert sorted(event.job.site for event in events if isinstance(event, JobAnswer)) == ["osaka", "tokyo"]
    reached = {
        (name, other): net.run(name, "ping", "-c1", "-W1", address) == 0
        for name in ("tokyo1", "tokyo2", "osaka")
        for other, address in (("centre", CENTRE), ("tokyo1", "10.99.1.2"), ("osaka", "10.99.3.2"))
    }
    assert {pair for pair, is_reached in reached.items() if is_reached} == {
        *((name, "centre") for name in ("tokyo1", "tokyo2", "osaka")),
        ("tokyo1", "tokyo1"),
        ("osaka", "osaka"),
    }


def test_a_worker_that_is_cut_off_loses_its_job_to_another(fleet_far: Bed, net: FleetNetwork, tmp_path: Path) -> None:
    gate = tmp_path / "gate"
    first = fleet_far.worker("tokyo", "tokyo1", "slow", GATE=str(gate), **QUICK)
    with fleet_far.coordinator() as fleet:
        events = fleet.run([job()])
        next(events)
        second = fleet_far.worker("tokyo", "tokyo2", "slow", GATE=str(gate), **QUICK)
        net.cut("tokyo1")
        try:
            eventually(lambda: any(line.startswith("begins ") for line in second.lines()), 60)
            eventually(lambda: any(line.startswith("no connection to the broker") for line in first.lines()), 60)
            children = Path(f"/proc/{first.process.pid}/task/{first.process.pid}/children")
            assert children.read_text(encoding="ascii") == ""
        finally:
            net.mend("tokyo1")
        gate.touch()
        found = [event for event in events if isinstance(event, JobAnswer | LostJob)]
        assert [event.payload.split()[-1] for event in found if isinstance(event, JobAnswer)] == [
            str(second.process.pid).encode()
        ] * 2
        second.kill()
        (last,) = [event for event in fleet.run([job(within_s=120)]) if isinstance(event, JobAnswer) and event.is_last]
        assert last.payload.split()[-1] == str(first.process.pid).encode()


def test_a_short_cut_restarts_nothing(fleet_far: Bed, net: FleetNetwork, tmp_path: Path) -> None:
    gate = tmp_path / "gate"
    worker = fleet_far.worker("tokyo", "tokyo1", "slow", GATE=str(gate))
    with fleet_far.coordinator() as fleet:
        events = fleet.run([job()])
        next(events)
        net.cut("tokyo1")
        time.sleep(2)
        gate.touch()
        net.mend("tokyo1")
        found = [event for event in events if isinstance(event, JobAnswer | LostJob)]
    assert [event.is_last for event in found if isinstance(event, JobAnswer)] == [False, True]
    assert sum(line.startswith("begins ") for line in worker.lines()) == 1
