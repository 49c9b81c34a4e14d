"""A lab for the NVUE driver, and a leaf of it opened over each transport."""

from collections.abc import Iterator

import pytest

from netkit.platforms.nvue.driver import NvueDriver
from tests.lab.running import RunningLab, intent, running, write_fabric
from tests.platforms.nvue.switch import TRANSPORTS, opened


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningLab]:
    """Boot a small fabric with the intended configurations."""
    with running(write_fabric(tmp_path_factory.mktemp("fabric"), intent()), name="n") as booted:
        yield booted


@pytest.fixture(params=TRANSPORTS)
def driver(lab: RunningLab, request: pytest.FixtureRequest) -> Iterator[NvueDriver]:
    """Open a leaf, and leave no pending change behind."""
    found = opened(lab, "leaf01", request.param)
    yield found
    if found.is_alive()["is_alive"] and found.has_pending_commit():
        found.confirm_commit()
    found.close()
