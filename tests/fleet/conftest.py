from collections.abc import Iterator

import pytest

from tests.fleet.bed import Bed, bed


@pytest.fixture(scope="session")
def running_fleet() -> Iterator[Bed]:
    with bed() as found:
        yield found


@pytest.fixture
def fleet_bed(running_fleet: Bed) -> Iterator[Bed]:
    """A broker without workers."""
    yield running_fleet
    running_fleet.forget_workers()
