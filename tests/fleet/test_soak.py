"""Random faults while jobs run: workers, coordinators and the broker are killed, messages are repeated and forged.

NETKIT_FLEET_FAULTS is how many; NETKIT_FLEET_SEED chooses others.
"""

import os
import random
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping

import pytest

from netkit.fleet import coordinator as coordinating
from netkit.fleet.answer import JobAnswer, JobEvent, LostJob, PendingJob
from netkit.fleet.job import SiteJob, sign_job
from netkit.fleet.link import LinkError, UnroutableError
from tests.fleet.bed import PATIENCE_S, Bed, bed, job
from tests.fleet.rabbitmq_server import needs_rabbitmq
from tests.fleet.test_faults import published

pytestmark = [needs_rabbitmq, pytest.mark.whole]
FAULTS = int(os.environ.get("NETKIT_FLEET_FAULTS", "12"))
SEED = int(os.environ.get("NETKIT_FLEET_SEED", "1"))
JOBS_A_FAULT = 4


@pytest.fixture(scope="module")
def soaked() -> Iterator[Bed]:
    with bed() as found:
        yield found


def test_each_job_is_answered_once_whatever_dies(soaked: Bed, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(coordinating, "LAST_RETRY_S", 1.0)
    chance = random.Random(SEED)  # noqa: S311 (which fault is next)
    jobs: list[SiteJob] = []
    for site in ("tokyo", "osaka"):
        for number in (1, 2):
            soaked.worker(site, f"{site}{number}", "brief")
    faults = _Faults(soaked, chance)
    thread = threading.Thread(target=faults.run, daemon=True)
    with soaked.coordinator() as fleet:
        faults.pending = fleet._pending  # noqa: SLF001
        thread.start()
        events: list[JobEvent] = list(fleet.run(_paced(jobs, faults)))
        thread.join(180)
    assert not thread.is_alive()
    assert faults.failure is None, faults.failure
    assert sum(faults.counts.values()) == FAULTS
    assert [event.reason for event in events if isinstance(event, LostJob)] == []
    parts = [(e.job.nonce, e.sequence, e.payload.split(), e.is_last) for e in events if isinstance(e, JobAnswer)]
    assert Counter(nonce for nonce, _, _, _ in parts) == {one.nonce: 3 for one in jobs}
    for one in jobs:
        mine = [part for part in parts if part[0] == one.nonce]
        assert [(sequence, is_last) for _, sequence, _, is_last in mine] == [(0, False), (1, False), (2, True)]
        assert [words[:3] for _, _, words, _ in mine] == [
            [one.site.encode(), one.devices[0].encode(), str(number).encode()] for number in range(3)
        ]
        assert len({words[3] for _, _, words, _ in mine}) == 1, "parts of two attempts are mixed"


def _paced(jobs: list[SiteJob], faults: "_Faults") -> Iterator[SiteJob]:
    """Give jobs while the faults happen, not all before."""
    for number in range(JOBS_A_FAULT * FAULTS):
        deadline_s = time.monotonic() + 60
        while number > JOBS_A_FAULT * (1 + sum(faults.counts.values())) and time.monotonic() < deadline_s:
            time.sleep(0.02)
        jobs.append(job(("tokyo", "osaka")[number % 2], device=f"d{number}", within_s=240))
        yield jobs[-1]


class _Faults:
    """Injects one fault after another, at random moments."""

    def __init__(self, fleet_bed: Bed, chance: random.Random) -> None:
        self.bed = fleet_bed
        self.chance = chance
        self.counts: Counter[str] = Counter()
        self.failure: Exception | None = None
        self.pending: Mapping[str, PendingJob] = {}

    def run(self) -> None:
        kinds: list[Callable[[], None]] = [self.worker, self.worker, self.repeat, self.forge, self.freeze, self.other]
        try:
            for number in range(FAULTS):
                time.sleep(self.chance.random() * 0.5)
                fault = self.broker if number % 12 == 5 else self.chance.choice(kinds)
                fault()
                self.counts[fault.__name__] += 1
        except Exception as error:
            self.failure = error

    def worker(self) -> None:
        """Kill a worker, and start it again."""
        at = self.chance.randrange(len(self.bed.workers))
        self._replace(at)

    def _replace(self, at: int) -> None:
        name = self.bed.workers[at].log.stem
        self.bed.workers[at].kill()
        self.bed.worker(name.rstrip("12"), name, "brief")
        self.bed.workers[at] = self.bed.workers.pop()

    def freeze(self) -> None:
        """Stop a worker for a moment."""
        process = self.chance.choice(self.bed.workers).process
        process.send_signal(signal.SIGSTOP)
        time.sleep(0.5)
        process.send_signal(signal.SIGCONT)

    def broker(self) -> None:
        """Kill the broker, and start it again."""
        self.bed.server.kill()
        self.bed.server.start()

    def repeat(self) -> None:
        """Deliver jobs a second time that are running or were answered."""
        key = self.bed.credentials().signing
        for one in list(self.pending.values())[:3]:
            self._put(one.job.site, sign_job(one.job, key))

    def forge(self) -> None:
        """Put jobs into the queue that are damaged, cut off, or of another site or key."""
        key = self.bed.credentials().signing
        whole = sign_job(job("osaka"), key)
        for message in (whole, whole[:-2], whole[:60], b"", sign_job(job(), self.bed.credentials("osaka").signing)):
            self._put("tokyo", message)

    def other(self) -> None:
        """Kill another coordinator while its jobs run."""
        process = subprocess.Popen(
            [sys.executable, "-c", OTHER, str(self.bed.home)], env={**os.environ, **self._login()}
        )
        time.sleep(1 + self.chance.random())
        process.kill()
        process.wait(PATIENCE_S)

    def _login(self) -> dict[str, str]:
        name, _, value = (self.bed.home / "environment").read_text(encoding="utf-8").strip().partition("=")
        return {name: value}

    def _put(self, site: str, message: bytes) -> None:
        for _ in range(20):
            try:
                published(self.bed, site, message)
            except (LinkError, UnroutableError):
                time.sleep(0.5)
            else:
                return
        raise AssertionError("the broker takes no message")


OTHER = """
import pathlib, sys
from netkit.fleet import settings
from netkit.fleet.coordinator import Coordinator
from netkit.fleet.signing import Credentials
from tests.fleet.bed import job
folder = pathlib.Path(sys.argv[1])
found = settings.load(folder)
with Coordinator(found, Credentials.load(folder, found.broker)) as fleet:
    for event in fleet.run(job("tokyo", device=f"other{number}") for number in range(20)):
        pass
"""
