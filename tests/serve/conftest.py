"""A fabric with a snapshot of it, some of whose texts are hostile, and a server that has checked it once."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from netkit.facts import serial
from tests.cli.checked import checked
from tests.serve.server import Running, serving

HOSTILE = "<script>alert('x')</script><img src=x onerror=alert(1)> \x1b[2J\u202e"


@pytest.fixture(scope="session")
def places(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """The fabric and the snapshot."""
    fabric, file = checked(tmp_path_factory.mktemp("serve"))
    found = serial.read(file)
    devices = {**found.devices, "spine02": replace(found.devices["spine02"], failure=HOSTILE)}
    file.write_bytes(serial.dump(replace(found, devices=devices)))
    return fabric, file


@pytest.fixture(scope="module")
def server(places: tuple[Path, Path], tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    """A server after its first round."""
    with serving(places[0], tmp_path_factory.mktemp("state"), "--from", places[1], "--every=1d") as running:
        running.await_run()
        yield running
        assert "Traceback" not in running.output()
