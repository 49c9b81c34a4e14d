"""Deploys on a running lab between pings at 20 Hz: nothing is lost where the plan names no loss."""

import re
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests import intents
from tests.cli.site import Site
from tests.command import NETKIT
from tests.deploy.fleet import built
from tests.lab.running import RunningLab, needs_lab, running, write_fabric
from tests.plan.scenes import VERSIONS

pytestmark = needs_lab
INTERVAL_S = 0.05
MOST_S = 400
RECEIVED = re.compile(r"icmp_seq=(\d+) ttl=")
FEW: dict[str, Any] = {
    "units": [{"unit": 1, "hosts": 2}],
    "ceilings": {"units": 1, "hosts_per_unit": 2, "spines": 4},
    "host_routes": "supernet",
    "routing": {"bfd": {"interval_ms": 1000, "multiplier": 3}},
}
MANY = {**FEW, "ceilings": {"units": 1, "hosts_per_unit": 8, "spines": 4}}


@contextmanager
def pinging(lab: RunningLab, site: Site, values: dict[str, Any], folder: Path) -> Iterator[None]:
    """Ping between all addresses of two hosts within a block, which must lose nothing."""
    one, other = built(values).hosts
    files: list[Path] = []
    started: list[subprocess.Popen[bytes]] = []
    for near in one.nics:
        for far in other.nics:
            files.append(folder / f"{near.interface}-{far.interface}.txt")
            words = ("timeout", "-s", "INT", str(MOST_S), "ping", "-n", "-i", str(INTERVAL_S), "-I", near.address)
            with files[-1].open("wb") as stream:  # a pipe that nobody reads would stop the ping
                started.append(
                    subprocess.Popen(
                        [*NETKIT, "lab", "exec", "--lab", lab.name, one.name, "--", *words, far.address],
                        env=site.environment,
                        stdin=subprocess.DEVNULL,
                        stdout=stream,
                        stderr=subprocess.STDOUT,
                    )
                )
    began_s = time.monotonic()
    try:
        yield
        lasted_s = time.monotonic() - began_s
        lab.run(one.name, "pkill", "-INT", "-x", "ping")
        for each in started:
            each.wait(timeout=20)
    finally:
        for each in started:
            each.kill()
    for file in files:
        text = file.read_text(encoding="utf-8")
        seen = {int(number) for number in RECEIVED.findall(text)}
        assert len(seen) > lasted_s / INTERVAL_S / 3, text[-400:]
        assert set(range(1, max(seen) + 1)) == seen


@pytest.mark.parametrize("platform", ["frr", "nvue"])
def test_summaries_of_another_length_lose_no_packet_there_or_back(platform: str, tmp_path: Path) -> None:
    first, last = (intents.on_platform(platform, VERSIONS[platform], values) for values in (FEW, MANY))
    with running(write_fabric(tmp_path / "fabric", first), name="o") as lab:
        site = Site(lab, tmp_path)
        write_fabric(lab.fabric, last)
        alone = site.netkit("deploy", "--yes", "--limit", "leaf01")
        assert alone.returncode == 3
        assert "this leaves the fabric worse than it was" in alone.stderr
        assert "change these with it: " in alone.stderr
        with pinging(lab, site, first, tmp_path):
            done = site.netkit("deploy", "--yes")
            assert done.returncode == 0, done.stdout + done.stderr
            back = site.netkit("rollback", "last", "--yes")
            assert back.returncode == 0, back.stdout + back.stderr
