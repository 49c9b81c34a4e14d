"""`scripts/bench fleet`: checks of large fabrics through a broker and workers, and in one process.

The devices are made from what a small lab answered, and answer under the seam that a real connection has. 1,000 devices
are one fabric of three tiers; more are so many fabrics of that shape. Workers have one core each.
"""

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path, PurePosixPath
from typing import Any

from bench import fabrics, fleet_answers
from bench.fabrics import Shape
from bench.fleet_work import SITE
from bench.measure import BenchError, Sample, Started, free_port
from bench.rabbitmq_server import PROGRAMS, RabbitServer, rabbit_folder
from netkit.fleet import installation, rabbitmq
from netkit.fleet.installation import PASSWORD, NewFleet
from netkit.project.project import Project

ROOT = Path(__file__).parent.parent
FABRIC = fabrics.growing(1, units=7, hosts=32, spines=32, cores=20, core_ports=128)
"""1,268 devices: 224 leaves, 128 spines, 20 core switches and 896 hosts of eight NICs."""
QUICK = fabrics.QUICK
SMALL = Shape(units=7, hosts=32, spines=32, cores=20, planes=1)
"""332 devices: one pod of the fabric, with all of its core switches."""
SIZES = {"1000": 1, "10000": 8, "100000": 80}
"""About so many devices → fabrics."""
LAB = "benchfleet"
LAB_SCAFFOLD = ("--leaves", "8", "--spines", "10", "--units", "6", "--hosts-per-unit", "1", "--platform", "nvue")
"""48 leaves, 10 spines and 6 hosts."""
ALONE, NAPALM = "one process", "Nornir and NAPALM"
MOST_MS, LAB_MS, MOST_MB, MOST_KB = 20.0, 35.0, 300.0, 10.0
"""Processor time a device, also with the transport of a lab; memory of the coordinator; bytes a device."""
WATCH_S = 0.5
UP_S = 30.0


@dataclass(frozen=True, slots=True)
class FleetRow:
    """A way to check so many devices, and what it took."""

    name: str
    devices: int
    wall_s: float
    check: Sample
    """The coordinator; or the only process."""
    workers: tuple[Sample, ...]
    output: Mapping[str, Any]
    spent: tuple[Mapping[str, float], ...] = ()
    """Of each worker: the processor time until it was ready, and that of the processes of its jobs."""

    @property
    def workers_s(self) -> float:
        """The processor time of the workers, without their start: they serve many rounds."""
        return sum(one.cpu_s for one in self.workers) - sum(one["start_s"] for one in self.spent)

    @property
    def figures(self) -> dict[str, float]:
        """Figures a device, and the peaks of memory."""
        jobs_s = sum(one["jobs_s"] for one in self.spent)
        found = {
            "devices": self.devices,
            "wall_s": self.wall_s,
            "coordinator_ms": 1000 * self.output["cpu_s"] / self.devices,
            "worker_ms": 1000 * self.workers_s / self.devices,
            "jobs_ms": 1000 * jobs_s / self.devices,
            "coordinator_mb": self.check.peak_mb,
            "worker_mb": max((one.peak_mb for one in self.workers), default=0.0),
            "kilobytes": self.output.get("bytes", 0) / 1000 / self.devices,
        }
        return {name: round(value, 3) for name, value in found.items()}


def main() -> int:
    """Measure; return 1 if a budget is missed, 3 if something could not be measured, or a device was not read."""
    given = _arguments()
    try:
        if not (PROGRAMS / "rabbitmq-server").exists():
            raise BenchError("RabbitMQ is not installed (Debian: rabbitmq-server)")
        with tempfile.TemporaryDirectory(prefix="nkb") as name, rabbit_folder() as broker_folder:
            rows = _measure(Path(name), broker_folder, given)
    except BenchError as error:
        sys.stderr.write(f"error: {error}\n")
        return 3
    given.json.parent.mkdir(parents=True, exist_ok=True)
    found = [{"name": row.name, **row.figures, "output": row.output, "check": asdict(row.check)} for row in rows]
    given.json.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
    missed = [] if given.quick else list(_missed(rows, LAB_MS if given.lab else MOST_MS))
    sys.stdout.write("\n".join((*_table(rows), *missed)) + "\n")
    return 1 if missed else 0


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="scripts/bench fleet", description="Check large fabrics through a fleet.")
    parser.add_argument("--sizes", default="1000", help=f"of {', '.join(SIZES)}, with commas between (default 1000)")
    parser.add_argument("--quick", action="store_true", help="one fabric of 16 devices")
    parser.add_argument("--small", action="store_true", help="one fabric of 332 devices, instead of sizes")
    parser.add_argument("--lab", action="store_true", help="64 switches and hosts of a lab over SSH, instead of sizes")
    parser.add_argument("--workers", default="1,2", help="numbers of workers (default 1,2)")
    parser.add_argument("--no-peer", dest="peer", action="store_false", help="leave Nornir and NAPALM out")
    parser.add_argument("--no-alone", dest="alone", action="store_false", help="leave the single process out")
    parser.add_argument("--json", type=Path, default=ROOT / "out" / "bench-fleet.json")
    parser.add_argument(
        "--answers",
        type=Path,
        default=ROOT / "out" / "fleet-answers.json",
        help="what a lab answered; recorded if it is missing (default out/fleet-answers.json)",
    )
    given = parser.parse_args()
    unknown = [one for one in given.sizes.split(",") if one not in SIZES]
    if unknown:
        parser.error(f"no size {unknown[0]!r}")
    return given


def _measure(home: Path, broker_folder: Path, given: argparse.Namespace) -> list[FleetRow]:
    if given.lab:
        bed = BenchBed(home, broker_folder, ("--lab", LAB), {"NETKIT_LAB_DIR": str(home), **fleet_answers.SECRETS})
        with bed.lab() as folder, bed.broker():
            rows = [bed.fleet([folder], number) for number in map(int, given.workers.split(","))]
            return [*rows, bed.alone([folder])] if given.alone else rows
    if not given.answers.exists():
        _say("recording the answers of a small lab")
        given.answers.parent.mkdir(parents=True, exist_ok=True)
        fleet_answers.record(home, given.answers)
    counts = [1] if given.quick or given.small else [SIZES[size] for size in given.sizes.split(",")]
    answers = home / "answers"
    bed = BenchBed(home, broker_folder, ("--answers", str(answers)))
    shape = QUICK if given.quick else SMALL if given.small else FABRIC
    folders = bed.write(shape, max(counts), given.answers, answers)
    rows = []
    with bed.broker():
        for count in counts:
            rows += [bed.fleet(folders[:count], number) for number in map(int, given.workers.split(","))]
            if given.alone:
                rows.append(bed.alone(folders[:count]))
            if given.peer:
                rows.append(bed.napalm(folders[:count]))
    return rows


class BenchBed:
    """Fabrics, a broker and workers on this machine."""

    def __init__(
        self, home: Path, broker_folder: Path, source: tuple[str, str], variables: Mapping[str, str] | None = None
    ) -> None:
        """`source` is where devices answer from, as an option of bench.fleet_work."""
        self._home, self._broker_folder, self._source, self._variables = home, broker_folder, source, variables or {}
        self._origin, self._fleet = home / "origin", broker_folder / "fleet"
        self._runs = 0

    @contextmanager
    def lab(self) -> Iterator[Path]:
        """Boot a lab of 64 devices; yield the folder of its fabric."""
        folder = self._origin / "fabric00"
        self._netkit("init", str(folder), *LAB_SCAFFOLD)
        self._commit()
        _say("booting a lab of 64 devices")
        self._netkit("lab", "up", "--fabric", str(folder), "--lab", LAB)
        try:
            yield folder
        finally:
            self._netkit("lab", "down", "--lab", LAB)

    def _netkit(self, *words: str) -> None:
        command = (str(Path(sys.executable).with_name("netkit")), *words)
        Started(command, self._folder("netkit"), self._variables, WATCH_S).finish()

    def write(self, shape: Shape, count: int, recording: Path, answers: Path) -> list[Path]:
        """Write fabrics of one shape into a repository, and the answers of their devices, which are the same."""
        _say(f"making the answers of {shape.switches + shape.gpu_hosts:,} devices")
        folders = [fabrics.write(self._origin / f"fabric{number:02}", shape, "eos") for number in range(count)]
        for number, folder in enumerate(folders):
            file = folder / "fabric.yaml"
            text = file.read_text(encoding="utf-8").replace("name: bench", f"name: bench{number:02}", 1)
            file.write_text(text, encoding="utf-8")
        answers.mkdir()
        recorded = json.loads(recording.read_text(encoding="utf-8"))
        fleet_answers.write(recorded, Project.open(folders[0]), answers)
        self._commit()
        return folders

    def _commit(self) -> None:
        self._git("init", "--quiet", "--initial-branch", "main")
        self._git("add", "--all")
        self._git("commit", "--quiet", "--message", "fabrics of a benchmark")

    def _git(self, *words: str) -> None:
        known = ("-c", "user.name=bench", "-c", "user.email=bench@example.net", "-c", "commit.gpgsign=false")
        subprocess.run(["git", *known, "-C", str(self._origin), *words], check=True, capture_output=True)

    @contextmanager
    def broker(self) -> Iterator[None]:
        """Run the broker of a fleet with one site, which has all fabrics."""
        port, dist_port, epmd_port = (free_port() for _ in range(3))
        listener = f"127.0.0.1:{port}"
        sites = {SITE: {folder.name: () for folder in sorted(self._origin.glob("fabric*"))}}
        installation.begin(self._fleet, NewFleet("localhost", str(self._origin), sites, port=port, listener=listener))
        file = self._broker_folder / "rabbitmq.conf"
        text = rabbitmq.configuration(PurePosixPath(self._fleet / "broker"), listener)
        file.write_text(text, encoding="utf-8")
        server = RabbitServer(self._broker_folder, file, port, dist_port, epmd_port)
        try:
            server.start()
            yield
        finally:
            server.stop()

    def fleet(self, folders: Sequence[Path], workers: int) -> FleetRow:
        """Check fabrics with some workers, each on a core of its own."""
        _say(f"checking {len(folders)} fabrics with {workers} workers")
        started = [self._worker(number) for number in range(workers)]
        try:
            for one in started:
                _wait_for(one)
            check, output = self._check("check", folders, "--fleet", str(self._fleet), secret=self._secret(self._fleet))
        finally:
            for one in started:
                one.process.terminate()
        samples = tuple(one.finish() for one in started)
        spent = tuple(json.loads(one.printed().splitlines()[-1]) for one in started)
        return FleetRow(_named(workers), output["devices"], output["wall_s"], check, samples, output, spent)

    def alone(self, folders: Sequence[Path]) -> FleetRow:
        _say(f"checking {len(folders)} fabrics in one process")
        check, output = self._check("check", folders, *self._source, "--core", "0")
        return FleetRow(ALONE, output["devices"], output["wall_s"], check, (), output)

    def napalm(self, folders: Sequence[Path]) -> FleetRow:
        _say("looking at their switches with Nornir and NAPALM")
        check, output = self._check("napalm", folders, *self._source, "--core", "0")
        return FleetRow(NAPALM, output["devices"], output["wall_s"], check, (), output)

    def _check(self, what: str, folders: Sequence[Path], *words: str, secret: str = "") -> tuple[Sample, Any]:
        command = (*_work(what), *words, "--fabrics", *map(str, folders))
        variables = {**self._variables, **({PASSWORD: secret} if secret else {})}
        started = Started(command, self._folder(what), variables, WATCH_S)
        sample = started.finish()
        output = json.loads(started.printed().splitlines()[-1])
        if output.get("unreached") or (output.get("bad") and "--lab" not in self._source):
            raise BenchError(
                f"{output['unreached']} devices were not read, {output['bad']} findings on healthy devices"
            )
        return sample, output

    def _worker(self, number: int) -> Started:
        site = self._fleet / "sites" / SITE
        core = sorted(os.sched_getaffinity(0))[number % len(os.sched_getaffinity(0))]
        words = ("--fleet", site, "--state", self._folder("state"), *self._source, "--core", core)
        command = (*_work("worker"), *map(str, words))
        return Started(command, self._folder("worker"), {**self._variables, PASSWORD: self._secret(site)}, WATCH_S)

    def _secret(self, folder: Path) -> str:
        return (folder / "environment").read_text(encoding="utf-8").strip().partition("=")[2]

    def _folder(self, name: str) -> Path:
        self._runs += 1
        folder = self._home / f"{name}{self._runs:03}"
        folder.mkdir()
        shutil.copytree(ROOT / "bench", folder / "bench", ignore=shutil.ignore_patterns("__pycache__"))
        return folder


def _work(what: str) -> tuple[str, ...]:
    return sys.executable, "-m", "bench.fleet_work", what


def _named(workers: int) -> str:
    return f"{workers} worker{'s' if workers > 1 else ''}"


def _wait_for(worker: Started) -> None:
    deadline_s = time.monotonic() + UP_S
    while "connected to" not in worker.printed():
        if time.monotonic() > deadline_s or worker.process.poll() is not None:
            raise BenchError(f"a worker does not start: {worker.printed()[-500:]}")
        time.sleep(0.05)


def _table(rows: Sequence[FleetRow]) -> Iterator[str]:
    sizes = f"{'MB: check':>11}{'worker':>8}{'kB':>7}"
    yield f"{'':<20}{'devices':>9}{'wall':>9}{'ms a device: check':>20}{'workers':>9}{'jobs':>7}{sizes}"
    for row in rows:
        one = row.figures
        times = f"{one['wall_s']:>7.1f} s{one['coordinator_ms']:>20.2f}{one['worker_ms']:>9.2f}{one['jobs_ms']:>7.2f}"
        sizes = f"{one['coordinator_mb']:>11.0f}{one['worker_mb']:>8.0f}{one['kilobytes']:>7.2f}"
        yield f"{row.name:<20}{row.devices:>9,}{times}{sizes}"
    yield "check: the coordinator, or the only process; workers: without their start; jobs: of this, what jobs take"
    yield "kB: through the broker a device; NAPALM reads switches only"
    alone = {row.devices: row for row in rows if row.name == ALONE}
    single = {row.devices: row for row in rows if row.name == _named(1)}
    for row in rows:
        if row.workers and row.devices in alone:
            cost = (row.output["cpu_s"] + row.workers_s) / alone[row.devices].output["cpu_s"]
            yield f"{row.name}, {row.devices:,} devices: {100 * (cost - 1):+.0f} % processor time beside one process"
        if len(row.workers) > 1 and row.devices in single:
            yield f"{row.name}, {row.devices:,} devices: {single[row.devices].wall_s / row.wall_s:.2f} × one worker"


def _missed(rows: Sequence[FleetRow], most_ms: float) -> Iterator[str]:
    for row in rows:
        one = row.figures
        spent_ms = one["coordinator_ms"] + one["worker_ms"]
        budgets = ((spent_ms, most_ms, "ms"), (one["coordinator_mb"], MOST_MB, "MB"), (one["kilobytes"], MOST_KB, "kB"))
        for found, most, unit in budgets:
            if row.workers and found > most:
                yield f"missed: {row.name}, {row.devices:,} devices: {found:.1f} {unit}, at most {most:g}"


def _say(text: str) -> None:
    sys.stderr.write(f"{text}\n")


if __name__ == "__main__":
    sys.exit(main())
