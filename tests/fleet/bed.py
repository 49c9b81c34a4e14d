"""A fleet on this machine: a broker, two sites, and workers as processes of their own."""

import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path, PurePosixPath
from typing import IO, Any

from bench.measure import free_port
from netkit.fleet import installation, rabbitmq, settings
from netkit.fleet.coordinator import Coordinator
from netkit.fleet.installation import PASSWORD, NewFleet
from netkit.fleet.job import BackupWork, SiteJob, new_job
from netkit.fleet.link import BrokerLink
from netkit.fleet.rabbitmq import JOBS, STATUS
from netkit.fleet.settings import FleetSettings
from netkit.fleet.signing import Credentials
from tests.command import Forked, Process
from tests.fleet import scripted_worker
from tests.fleet.rabbitmq_server import RabbitServer, rabbit_folder

COMMIT = "0123456789abcdef" * 2 + "01234567"
FABRIC = {"tokyo": "inventory/tokyo", "osaka": "inventory/osaka"}
PATIENCE_S = 300.0
"""A time limit for what an idle machine does at once."""
PROGRAM = "import sys; from tests.fleet import scripted_worker; scripted_worker.main(*sys.argv[1:])"


@dataclass(slots=True)
class WorkerProcess:
    """A worker whose jobs follow a script: see tests/fleet/scripted_worker.py."""

    process: Process
    log: Path
    begins_at: int
    """Where its part of the log begins."""

    def lines(self) -> list[str]:
        return self.log.read_bytes()[self.begins_at :].decode().splitlines()

    def kill(self) -> None:
        self.process.kill()
        self.process.wait(PATIENCE_S)


@dataclass(slots=True)
class Bed:
    """The parts of the fleet."""

    folder: Path
    server: RabbitServer
    prefixes: Mapping[str, Sequence[str]] = field(default_factory=dict)
    workers: list[WorkerProcess] = field(default_factory=list)

    @property
    def home(self) -> Path:
        return self.folder / "fleet"

    @property
    def settings(self) -> FleetSettings:
        return settings.load(self.home)

    def credentials(self, site: str = "") -> Credentials:
        folder = self.home / "sites" / site if site else self.home
        os.environ[PASSWORD] = password(folder)
        try:
            return Credentials.load(folder, self.settings.broker)
        finally:
            del os.environ[PASSWORD]

    def coordinator(self, report: Callable[[str], None] = lambda _: None) -> Coordinator:
        return Coordinator(self.settings, self.credentials(), report)

    def worker(
        self,
        site: str,
        name: str,
        script: str = "echo",
        port: int = 0,
        prefix: Sequence[str] = (),
        **variables: str,
    ) -> WorkerProcess:
        """Start a worker, and wait until it is connected; with another port than the broker's if one is given."""
        folder = self.home / "sites" / site
        if port:
            folder = shutil.copytree(folder, self.folder / f"{name}-files")
            text = (folder / settings.FILE).read_text(encoding="utf-8")
            (folder / settings.FILE).write_text(text.replace(str(self.server.port), str(port)), encoding="utf-8")
        log = self.folder / f"{name}.log"
        begins_at = log.stat().st_size if log.exists() else 0
        words = (str(folder), site, str(self.folder / name), script)
        above = (*self.prefixes.get(name, ()), *prefix)
        variables = {PASSWORD: password(folder), **variables}
        with log.open("ab") as output:
            found = WorkerProcess(_begun(above, words, variables, output), log, begins_at)
        self.workers.append(found)
        eventually(lambda: any(line.startswith("connected to") for line in found.lines()) or died(found))
        return found

    def link(self, site: str = "tokyo") -> BrokerLink:
        """Connect to the broker's part of a site as the coordinator: rabbitmqctl starts slowly on a busy machine."""
        return BrokerLink(self.settings.broker, f"netkit.{site}", "netkit.coordinator", self.credentials())

    def purge(self) -> None:
        """Empty the queues of jobs, as the worker of each site may."""
        for site in FABRIC:
            credentials, vhost = self.credentials(site), self.settings.virtual_host(site)
            with BrokerLink(self.settings.broker, vhost, self.settings.user(site), credentials) as link:
                empty(link)

    def end_workers(self) -> None:
        for one in self.workers:
            if one.process.poll() is None:
                one.process.send_signal(signal.SIGKILL)
            one.process.wait(PATIENCE_S)
        self.workers.clear()

    def forget_workers(self) -> None:
        """End the workers, and take away what they reported: the broker keeps it for a minute."""
        sites = FABRIC if self.workers else ()
        self.end_workers()
        for site in sites:
            with self.link(site) as link:
                eventually(partial(_have_ended, link))
                reports = link.peek_status()
                link.consume(STATUS, prefetch=256)
                for _ in reports:
                    if (received := link.received(1.0)) is not None:  # else its minute is over
                        link.acknowledge(received)


def _begun(above: Sequence[str], words: Sequence[str], variables: Mapping[str, str], output: IO[bytes]) -> Process:
    """Start a worker: in a fork, or below a command if there is one, as in another namespace."""
    if not above:
        return Forked(partial(scripted_worker.main, *words), output, **variables)
    arguments = [*above, sys.executable, "-c", PROGRAM, *words]
    return subprocess.Popen(arguments, env={**os.environ, **variables}, stdout=output, stderr=output)


def empty(link: BrokerLink) -> None:
    """Take all jobs; the broker delivers those of killed workers again once it has noticed the end of each."""
    eventually(partial(_have_ended, link))
    link.consume(JOBS, prefetch=100)
    while (received := link.received(0.2)) is not None:
        link.acknowledge(received)


def _have_ended(link: BrokerLink) -> bool:
    """Whether the broker has noticed the end of all workers of a site."""
    return not link.consumers(JOBS)


def died(worker: WorkerProcess) -> bool:
    assert worker.process.poll() is None, "\n".join(worker.lines())
    return False


def password(folder: Path) -> str:
    return (folder / "environment").read_text(encoding="utf-8").strip().removeprefix(f"{PASSWORD}=")


def eventually(holds: Callable[[], Any], within_s: float = PATIENCE_S) -> Any:
    """Wait until something holds, and return it."""
    deadline_s = time.monotonic() + within_s
    while not (found := holds()):
        assert time.monotonic() < deadline_s, "it does not hold in time"
        time.sleep(0.05)
    return found


def job(site: str = "tokyo", *, within_s: int = 300, device: str = "leaf01", **changes: Any) -> SiteJob:
    found = new_job(site, FABRIC[site], COMMIT, BackupWork(), within_s=within_s, devices=(device,))
    return SiteJob.model_validate({**found.model_dump(), **changes}, strict=False)


@contextmanager
def bed(
    *,
    repository: str = "/nowhere",
    host: str = "localhost",
    prefixes: Mapping[str, Sequence[str]] | None = None,
    fabrics: Mapping[str, Mapping[str, tuple[int, ...]]] | None = None,
) -> Iterator[Bed]:
    """Run a broker with two sites for the length of a block; `prefixes` are put before the commands of workers.

    `fabrics` are the units of fabrics at each site; without, each site has a fabric of its own.
    """
    address = "127.0.0.1" if host == "localhost" else host

    with rabbit_folder() as folder:
        port, dist_port, epmd_port = (free_port() for _ in range(3))
        wanted = NewFleet(
            host,
            repository,
            fabrics or {name: {path: ()} for name, path in FABRIC.items()},
            port=port,
            listener=f"{address}:{port}",
        )
        installation.begin(folder / "fleet", wanted)
        broker = folder / "fleet" / "broker"
        configuration = rabbitmq.configuration(PurePosixPath(broker), f"{address}:{port}")
        (folder / "rabbitmq.conf").write_text(configuration, encoding="utf-8")
        server = RabbitServer(folder, folder / "rabbitmq.conf", port, dist_port, epmd_port)
        found = Bed(folder, server, prefixes or {})
        try:
            server.start()
            yield found
        finally:
            found.end_workers()
            server.stop()
