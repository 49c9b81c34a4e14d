"""The lease of a fabric: one holder on any machine, and nobody else's writes while it is held."""

import os
import signal
import threading
import time
from collections.abc import Callable
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any

import pytest

from netkit.deploy.journal import LeaseLostError
from netkit.errors import DeployError
from netkit.fleet import lease
from netkit.fleet.lease import FabricLease, HeldElsewhereError
from netkit.fleet.link import BrokerLink, LinkError
from netkit.fleet.rabbitmq import LEASE, fabric_queue
from netkit.fleet.settings import FleetError
from tests.fleet.bed import PATIENCE_S, Bed, eventually
from tests.fleet.rabbitmq_server import needs_rabbitmq

pytestmark = needs_rabbitmq
FABRIC = "inventory/tokyo"
QUEUE = fabric_queue(LEASE, FABRIC)


@pytest.fixture
def runs(tmp_path: Path) -> Path:
    return tmp_path / "tokyo" / "runs"


@pytest.fixture
def taken(fleet_bed: Bed, runs: Path) -> Callable[..., FabricLease]:
    """Return what takes the lease as a worker does."""
    credentials = fleet_bed.credentials("tokyo")
    with fleet_bed.link() as link:
        link.declare(QUEUE)

    def connect(patience_s: float) -> BrokerLink:
        return BrokerLink(fleet_bed.settings.broker, "netkit.tokyo", "netkit.tokyo", credentials, patience_s=patience_s)

    def take(wait_s: float = 0, *, is_numbered: bool = True) -> FabricLease:
        return FabricLease(connect, QUEUE, FABRIC, wait_s=wait_s, runs=runs if is_numbered else None)

    return take


def lost(held: FabricLease) -> str:
    with pytest.raises(LeaseLostError) as caught:
        held.check()
    return str(caught.value)


def holds(lease: FabricLease) -> bool:
    try:
        lease.check()
    except LeaseLostError:
        return False
    return True


def test_a_lease_has_one_holder_at_a_time(taken: Callable[..., FabricLease]) -> None:
    with taken() as first:
        first.check()
        with pytest.raises(HeldElsewhereError, match="inventory/tokyo is being changed by another worker"):
            taken()
        first.check()
    assert "it was given back" in lost(first)
    with taken() as second:
        second.check()
        assert second.number == first.number + 1


def test_a_waiting_process_gets_the_lease_when_its_holder_ends(taken: Callable[..., FabricLease]) -> None:
    first = taken()
    threading.Timer(1.5, first.__exit__).start()
    with taken(20) as second:
        second.check()
        lost(first)


def test_the_lease_of_a_killed_process_is_free(taken: Callable[..., FabricLease]) -> None:
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        taken()
        os.write(writing, b"held")
        signal.pause()
        os._exit(1)
    try:
        assert os.read(reading, 4) == b"held"
        with pytest.raises(HeldElsewhereError):
            taken()
    finally:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
    with taken(20) as second:
        second.check()


def test_a_child_of_the_holder_does_not_keep_the_lease(taken: Callable[..., FabricLease]) -> None:
    first = taken()
    child = os.fork()
    if child == 0:
        signal.pause()
        os._exit(0)
    try:
        first.check()
        first.__exit__()
        with taken(20) as second:
            second.check()
    finally:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)


def test_a_broken_connection_loses_the_lease_for_good(fleet_bed: Bed, taken: Callable[..., FabricLease]) -> None:
    with taken() as first:
        fleet_bed.server.control("close_all_connections", "--vhost", "netkit.tokyo", "a test")
        why = lost(first)
        assert why.startswith("the lease of inventory/tokyo is lost, so nothing else was written: ")
        with taken(20) as second:
            second.check()
            assert lost(first) == why


def test_a_deleted_queue_loses_the_lease(fleet_bed: Bed, taken: Callable[..., FabricLease]) -> None:
    with fleet_bed.link() as link, taken() as held:
        link.delete(QUEUE)
        lost(held)


def test_a_queue_that_was_declared_again_has_one_holder(fleet_bed: Bed, taken: Callable[..., FabricLease]) -> None:
    """RabbitMQ gives it to the holder of the old one or to the next, and also without numbers never to both."""
    with fleet_bed.link() as link, ExitStack() as held:
        leases = [held.enter_context(taken(is_numbered=False))]
        link.delete(QUEUE)
        link.declare(QUEUE)
        with suppress(HeldElsewhereError):
            leases.append(held.enter_context(taken(is_numbered=False)))
        assert [holds(one) for one in leases].count(True) == 1


@pytest.mark.usefixtures("taken")
def test_the_end_of_a_queue_is_named(fleet_bed: Bed) -> None:
    with fleet_bed.link() as link, fleet_bed.link() as other:
        link.consume(QUEUE, prefetch=1)
        other.delete(QUEUE)
        with pytest.raises(LinkError, match="a queue that it consumed was deleted"):
            link.received(PATIENCE_S)


def test_a_broker_that_hangs_loses_the_lease(
    fleet_bed: Bed, taken: Callable[..., FabricLease], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lease, "PATIENCE_S", 1.0)
    with taken() as held:
        fleet_bed.server.freeze(is_frozen=True)
        try:
            assert "timed out" in lost(held)
        finally:
            fleet_bed.server.freeze(is_frozen=False)


def test_a_later_holder_is_known_by_its_number(taken: Callable[..., FabricLease], runs: Path) -> None:
    with taken() as held:
        (runs.parent / lease.FILE).write_text(str(held.number + 1), encoding="ascii")
        assert f"has the number {held.number + 1} of a later holder" in lost(held)


def test_a_number_that_cannot_be_read_is_named(taken: Callable[..., FabricLease], runs: Path) -> None:
    runs.parent.mkdir(parents=True)
    (runs.parent / lease.FILE).write_text("one\n", encoding="ascii")
    with pytest.raises(DeployError, match="is damaged; remove it while no run changes the fabric"):
        taken()
    (runs.parent / lease.FILE).unlink()
    with taken() as held:
        held.check()


def test_a_queue_that_nobody_declared_is_named(fleet_bed: Bed, taken: Callable[..., FabricLease]) -> None:
    with fleet_bed.link() as link:
        link.delete(QUEUE)
    with pytest.raises(FleetError, match="the broker does not give the lease of inventory/tokyo: "):
        taken()


def test_many_threads_share_a_proof(taken: Callable[..., FabricLease], monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[float] = []
    real = BrokerLink.consumers

    def slow(link: BrokerLink, queue: str) -> int:
        asked.append(time.monotonic())
        time.sleep(0.2)
        return real(link, queue)

    with taken() as held:
        monkeypatch.setattr(BrokerLink, "consumers", slow)
        threads = [threading.Thread(target=held.check) for _ in range(20)]
        for one in threads:
            one.start()
        for one in threads:
            one.join()
        assert len(asked) <= 3


def test_an_idle_lease_is_kept_alive(taken: Callable[..., FabricLease], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lease, "PULSE_S", 0.1)
    asked: list[Any] = []
    real = BrokerLink.consumers

    def counted(link: BrokerLink, queue: str) -> int:
        asked.append(queue)
        return real(link, queue)

    monkeypatch.setattr(BrokerLink, "consumers", counted)
    with taken():
        eventually(lambda: len(asked) > 2)
