"""A task of a benchmark: a command, the number of runs, the output it must write, and its budget."""

import itertools
import os
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from bench.fabrics import Shape
from bench.measure import BenchError, Sample, Spread, run, spread

# A valid configuration contains priority flow control for the lossless class.
MARKS = {
    "eos": ("eos.cfg", "priority-flow-control priority 3 no-drop"),
    "nvue": ("startup.yaml", "pfc-watchdog"),
    "sonic": ("config_db.json", "pfc_enable"),
    "linux": ("netkit-nic-qos", "pfc"),
}

OUT = "{out}"
"""Placeholder in a command for the output folder, a new one for each run."""
_OUTS = itertools.count()


@dataclass(frozen=True, slots=True)
class Budget:
    """The required figures, and the targets beyond."""

    must_s: float
    reach_s: float
    must_mb: float | None = None
    reach_mb: float | None = None


@dataclass(frozen=True, slots=True)
class Outputs:
    """The files a run wrote."""

    files: int
    lines: int
    bytes: int


@dataclass(slots=True)
class Task:
    """A program to measure, and its runs so far."""

    name: str
    subject: str
    command: tuple[str, ...]
    runs: int
    devices: int = 0
    platform: str = ""
    shape: Shape | None = None
    budget: Budget | None = None
    beyond: "Task | None" = None
    """The budget is for what this takes more than another task."""
    samples: list[Sample] = field(default_factory=list)
    outputs: Outputs | None = None

    @property
    def wall_s(self) -> Spread:
        return spread([sample.wall_s for sample in self.samples])

    @property
    def cost_s(self) -> float:
        """Wall time that the budget is for. Other load only adds to it: the least disturbed run shows the cost."""
        return self.wall_s.min - (self.beyond.wall_s.min if self.beyond else 0.0)

    @property
    def cpu_s(self) -> Spread:
        """Processor times, including child processes."""
        return spread([sample.cpu_s for sample in self.samples])

    @property
    def peak_mb(self) -> Spread:
        return spread([sample.peak_mb for sample in self.samples])

    def measure(self, folder: Path) -> None:
        """Run once into a new folder, and inspect the output.

        Nothing is removed before the end: ext4 searches past every inode that was freed in the last minutes, which made
        creating files ten times slower than it is for a user.
        """
        out = folder / f"out-{next(_OUTS)}"
        os.sync()
        self.samples.append(run([str(out) if word == OUT else word for word in self.command], folder))
        if self.platform:
            self.outputs = self._inspect(out)

    def _inspect(self, folder: Path) -> Outputs:
        """Count the output; raise BenchError if it is not what it should be."""
        file, mark = MARKS[self.platform]
        found = good = files = lines = size = 0
        # One file at a time: this process's memory would count as that of the programs it starts.
        for path in (path for path in folder.glob("*/**/*") if path.is_file()):
            text = path.read_bytes()
            files, lines, size = files + 1, lines + text.count(b"\n"), size + len(text)
            if path.name == file:
                found, good = found + 1, good + (mark.encode() in text)
        if not good == found == self.devices:
            shown = f"{found} files, {good} of them with {mark!r}"
            raise BenchError(f"{self.name}, {self.subject}: expected {self.devices} of {file}, found {shown}")
        return Outputs(files, lines, size)


def measure_all(tasks: Iterable[Task], folder: Path) -> Iterator[Task]:
    """Run all tasks in turn, so that other load affects all alike; yield each task before it runs."""
    tasks = tuple(tasks)
    rounds = max((task.runs for task in tasks), default=0)
    for turn in range(rounds):
        for task in tasks:
            # Tasks with fewer runs are spread evenly over the rounds.
            if (turn + 1) * task.runs // rounds > turn * task.runs // rounds:
                yield task
                task.measure(folder)


def ratios(ours: Task, peer: Task) -> Mapping[str, float]:
    """How many times more the peer takes, by medians."""
    return {
        "wall": round(peer.wall_s.median / ours.wall_s.median, 1),
        "cpu": round(peer.cpu_s.median / ours.cpu_s.median, 1),
        "peak_memory": round(peer.peak_mb.median / ours.peak_mb.median, 1),
    }
