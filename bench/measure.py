"""Run a program and measure its wall time, processor time and peak memory, as the kernel accounts for them."""

import itertools
import os
import socket
import statistics
import subprocess
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

MEGABYTE = 1_000_000
POLL_S = 0.02


PORTS = itertools.cycle(range(20_000 + os.getpid() % 10_000, 32_000))
RESERVED: list[socket.socket] = []


def free_port() -> int:
    """A port that nobody uses, and none that the kernel gives to clients: one that asks it could meet itself.

    It stays reserved for this process: with SO_REUSEADDR a server can listen on it, but no other benchmark or test
    gets it while that server starts, or starts again.
    """
    for port in itertools.islice(PORTS, 1000):
        found = socket.socket()
        try:
            found.bind(("127.0.0.1", port))
        except OSError:
            found.close()
            continue
        found.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        RESERVED.append(found)
        return port
    raise OSError("no port is free")


class BenchError(Exception):
    """Something could not be measured."""


@dataclass(frozen=True, slots=True)
class Sample:
    """The cost of one run, and the machine's pace before it. Processor time includes waited-for children."""

    wall_s: float
    cpu_s: float
    peak_mb: float
    pace_s: float


@dataclass(frozen=True, slots=True)
class Spread:
    """The runs of one figure."""

    min: float
    median: float
    max: float

    def scaled(self, factor: float) -> "Spread":
        """The spread in another unit."""
        return Spread(self.min * factor, self.median * factor, self.max * factor)

    def rounded(self) -> dict[str, float]:
        """The spread as plain numbers with three decimals."""
        return {name: round(value, 3) for name, value in asdict(self).items()}


def spread(values: Sequence[float]) -> Spread:
    return Spread(min(values), statistics.median(values), max(values))


def run(command: Sequence[str], folder: Path, *, expected: int = 0) -> Sample:
    """Run a program in a folder to its end, which must be the expected exit code."""
    return Started(command, folder).finish(expected)


class Started:
    """A program that runs and is measured; what it prints is in `output` of its folder."""

    def __init__(
        self, command: Sequence[str], folder: Path, variables: Mapping[str, str] | None = None, poll_s: float = POLL_S
    ) -> None:
        self._command, self._pace_s = command, pace()
        self.output = folder / "output.txt"
        self._began_s = time.perf_counter()
        with self.output.open("wb") as output:
            self.process = subprocess.Popen(
                command,
                cwd=folder,
                env={**environment(), **(variables or {})},
                stdout=output,
                stderr=subprocess.STDOUT,
            )
        self._family = _Family(self.process.pid, poll_s)

    def printed(self) -> str:
        return self.output.read_text(encoding="utf-8", errors="replace")

    def finish(self, expected: int = 0) -> Sample:
        """Wait for its end; BenchError unless it ends with the expected exit code."""
        _, status, usage = os.wait4(self.process.pid, 0)
        wall_s = time.perf_counter() - self._began_s
        self.process.returncode = os.waitstatus_to_exitcode(status)
        peak = max(usage.ru_maxrss * 1024, self._family.finish())
        if self.process.returncode != expected:
            output = self.printed().strip()[-1000:] or "no output"
            raise BenchError(f"{' '.join(self._command)} ended with {self.process.returncode}: {output}")
        return Sample(wall_s, usage.ru_utime + usage.ru_stime, peak / MEGABYTE, self._pace_s)


def pace() -> float:
    """How long a fixed piece of Python takes now.

    Two hyperthreads of a core lose almost half their speed while both are busy: figures from a machine whose pace
    varies are unreliable.
    """
    started = time.process_time()
    for _ in range(10):
        table = {f"leaf{number:05}": (number, f"10.0.{number >> 8}.{number & 255}/31") for number in range(6000)}
        "\n".join(f"{name} {value[1]}" for name, value in table.items())
    return time.process_time() - started


def environment() -> dict[str, str]:
    """An environment without the caller's Python settings, so that compiled modules are kept and used."""
    kept = {name: os.environ[name] for name in ("PATH", "HOME", "TMPDIR") if name in os.environ}
    return {**kept, "LC_ALL": "C.UTF-8"}


class _Family:
    """Samples child processes: the kernel reports the largest process of a tree, not the sum."""

    def __init__(self, pid: int, poll_s: float) -> None:
        self.pid, self.poll_s = pid, poll_s
        self.peak_bytes = 0
        self.is_over = threading.Event()
        self.watcher = threading.Thread(target=self._watch, daemon=True)
        self.watcher.start()

    def finish(self) -> int:
        """The highest memory of parent and children together; 0 if there never was a child."""
        self.is_over.set()
        self.watcher.join()
        return self.peak_bytes

    def _watch(self) -> None:
        while not self.is_over.wait(self.poll_s):
            pids = _descendants(self.pid)
            if pids:
                self.peak_bytes = max(self.peak_bytes, sum(map(_proportional_bytes, (self.pid, *pids))))


def _descendants(pid: int) -> list[int]:
    try:
        text = Path(f"/proc/{pid}/task/{pid}/children").read_text(encoding="ascii")
    except OSError:
        return []
    children = [int(child) for child in text.split()]
    return [*children, *(later for child in children for later in _descendants(child))]


def _proportional_bytes(pid: int) -> int:
    """A process's memory, with shared pages counted proportionally."""
    try:
        lines = Path(f"/proc/{pid}/smaps_rollup").read_text(encoding="ascii").splitlines()
    except OSError:
        return 0
    return next((int(line.split()[1]) * 1024 for line in lines if line.startswith("Pss:")), 0)
