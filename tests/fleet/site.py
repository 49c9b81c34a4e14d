"""A site with a lab for its devices: a broker, the repository, and real workers that share the runs of the fabric."""

import signal
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from netkit.fleet import worker as serving
from tests.command import NETKIT, ROOT, Done, Process, begin, environment, run
from tests.fleet.bed import FABRIC, PATIENCE_S, Bed, bed, eventually, password
from tests.fleet.repository import FabricRepository, fabric_repository
from tests.lab.running import RunningLab, intent, running, write_fabric

SECRETS: dict[str, Any] = {
    f"NETKIT_SECRET_{name}": f"{name}-of-a-test" for name in ("SNMP_AUTH", "SNMP_PRIV", "LOGIN_HASH")
}


@dataclass(slots=True)
class SiteWorker:
    """A worker of tokyo."""

    process: Process
    log: Path
    begins_at: int
    """Where its part of the log begins."""

    def lines(self) -> list[str]:
        return self.log.read_bytes()[self.begins_at :].decode().splitlines()

    def end(self, number: signal.Signals = signal.SIGTERM, within_s: float = PATIENCE_S) -> int:
        self.process.send_signal(number)
        return self.process.wait(within_s)


@dataclass(slots=True)
class SiteScene:
    """The site, and what a person at the coordinator does."""

    bed: Bed
    origin: FabricRepository
    lab: RunningLab
    folder: Path
    values: dict[str, Any] = field(default_factory=dict)
    """What its intent has beside that of a small lab."""
    workers: list[SiteWorker] = field(default_factory=list)

    @property
    def fabric(self) -> Path:
        return self.origin.folder / FABRIC["tokyo"]

    def runs(self, site: str = "tokyo") -> set[Path]:
        """Return the runs at a site, as its workers share them."""
        return set(self.folder.glob(f"shared/{site}/*/labs/*/runs/*-*/"))

    @property
    def secrets(self) -> dict[str, Any]:
        return {"NETKIT_SECRET_BROKER": password(self.bed.home)}

    def worker(self, name: str, site: str = "tokyo", **constants: float) -> SiteWorker:
        """Start a worker, and wait until it is connected; `constants` of netkit/fleet/worker.py are changed."""
        folder = self.bed.home / "sites" / site
        words = (
            "worker",
            "--site",
            site,
            "--fleet",
            folder,
            "--state",
            self.folder / name,
            f"--lab={self.lab.name}",
        )
        log = self.folder / f"{name}.log"
        variables = {
            "NETKIT_LAB_DIR": str(self.lab.home),
            "NETKIT_SECRET_BROKER": password(folder),
            "NETKIT_STATE_DIR": str(self.folder / "shared" / site),
            **SECRETS,
        }
        begins_at = log.stat().st_size if log.exists() else 0
        with log.open("ab") as output:
            process = begin(*words, output=output, before=lambda: vars(serving).update(constants), **variables)
        found = SiteWorker(process, log, begins_at)
        self.workers.append(found)
        eventually(lambda: any(line.startswith("connected to") for line in found.lines()))
        return found

    def netkit(self, verb: str, *words: str | Path, **variables: Any) -> Done:
        """Run a verb at the coordinator, and wait for its end."""
        about = ("--fabric", self.fabric, "--fleet", self.bed.home)
        return run(verb, *words, *about, timeout_s=300, **self.secrets, **variables)

    def begun(self, verb: str, *words: str | Path) -> subprocess.Popen[str]:
        """Start a verb at the coordinator."""
        about = ("--fabric", self.fabric, "--fleet", self.bed.home)
        return subprocess.Popen(
            [*NETKIT, *map(str, (verb, *words, *about))],
            cwd=ROOT,
            env=environment(**self.secrets),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def change(self, **values: Any) -> None:
        """Commit another intent."""
        write_fabric(self.fabric, intent(**{**self.values, **values}))
        self.origin.commit("change")

    def end_workers(self) -> None:
        for one in self.workers:
            if one.process.poll() is None:
                one.end()
        self.workers.clear()


@contextmanager
def site_scene(
    folder: Path, fabrics: Mapping[str, Mapping[str, tuple[int, ...]]] | None = None, **values: Any
) -> Iterator[SiteScene]:
    """Run a site without workers for the length of a block; `fabrics` as for a bed."""
    origin = fabric_repository(folder / "origin", FABRIC["tokyo"])
    write_fabric(origin.folder / FABRIC["tokyo"], intent(**values))
    origin.commit("a fabric for a lab")
    with running(origin.folder / FABRIC["tokyo"]) as lab, bed(repository=str(origin.folder), fabrics=fabrics) as found:
        scene = SiteScene(found, origin, lab, folder, values)
        try:
            yield scene
        finally:
            scene.end_workers()
