"""What is measured: a command, how often, what it must have written, and the budget it is held to."""

import itertools
import os
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from bench.fabrics import Shape
from bench.measure import BenchError, Sample, Spread, run, spread

# What a switch's configuration must contain to count: priority flow control for the lossless class.
MARKS = {
    "eos": ("eos.cfg", "priority-flow-control priority 3 no-drop"),
    "nvue": ("startup.yaml", "pfc-watchdog"),
    "sonic": ("config_db.json", "pfc_enable"),
    "linux": ("netkit-nic-qos", "pfc"),
}

OUT = "{out}"
"""Stands in a command for the folder to write to: a new one for each run."""
_OUTS = itertools.count()


@dataclass(frozen=True, slots=True)
class Budget:
    """What must be reached, and what would be better."""

    must_s: float
    reach_s: float
    must_mb: float | None = None
    reach_mb: float | None = None


@dataclass(frozen=True, slots=True)
class Outputs:
    """What a run left on disk."""

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
    samples: list[Sample] = field(default_factory=list)
    outputs: Outputs | None = None

    @property
    def wall_s(self) -> Spread:
        """Return the wall times."""
        return spread([sample.wall_s for sample in self.samples])

    @property
    def cpu_s(self) -> Spread:
        """Return the processor times, children included."""
        return spread([sample.cpu_s for sample in self.samples])

    @property
    def peak_mb(self) -> Spread:
        """Return the peaks of memory."""
        return spread([sample.peak_mb for sample in self.samples])

    def measure(self, folder: Path) -> None:
        """Run once more, into a new folder, and look at what was written.

        Nothing is removed before the end: ext4 searches its way past every inode that was freed in the last
        minutes, which made creating files ten times slower than it is for a user.
        """
        out = folder / f"out-{next(_OUTS)}"
        os.sync()
        self.samples.append(run([str(out) if word == OUT else word for word in self.command], folder))
        if self.platform:
            self.outputs = self._inspect(out)

    def _inspect(self, folder: Path) -> Outputs:
        """Return what was written; a task whose output is not what it should be was not measured."""
        file, mark = MARKS[self.platform]
        found = good = files = lines = size = 0
        # One file at a time: what this process holds would count as the memory of what it starts.
        for path in folder.glob("*/*"):
            text = path.read_bytes()
            files, lines, size = files + 1, lines + text.count(b"\n"), size + len(text)
            if path.name == file:
                found, good = found + 1, good + (mark.encode() in text)
        if not good == found == self.devices:
            shown = f"{found} files, {good} of them with {mark!r}"
            raise BenchError(f"{self.name}, {self.subject}: expected {self.devices} of {file}, found {shown}")
        return Outputs(files, lines, size)


def measure_all(tasks: Iterable[Task], folder: Path) -> Iterator[Task]:
    """Run all tasks, and yield each before it runs: a run of each in turn, so that all suffer alike from other load."""
    tasks = tuple(tasks)
    rounds = max((task.runs for task in tasks), default=0)
    for turn in range(rounds):
        for task in tasks:
            # Tasks with fewer runs are spread evenly over the rounds.
            if (turn + 1) * task.runs // rounds > turn * task.runs // rounds:
                yield task
                task.measure(folder)


def ratios(ours: Task, peer: Task) -> Mapping[str, float]:
    """Return how many times more the peer takes, by medians."""
    return {
        "wall": round(peer.wall_s.median / ours.wall_s.median, 1),
        "cpu": round(peer.cpu_s.median / ours.cpu_s.median, 1),
        "peak_memory": round(peer.peak_mb.median / ours.peak_mb.median, 1),
    }
