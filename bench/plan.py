"""The tasks of a benchmark."""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from bench import fabrics
from bench.fabrics import Shape
from bench.task import OUT, Budget, Task

RENDER = Budget(must_s=1.5, reach_s=0.7, must_mb=150, reach_mb=100)
HOSTS = Budget(must_s=4.0, reach_s=2.0)
HELP = Budget(must_s=0.3, reach_s=0.15)
CLUSTER = Budget(must_s=2.0, reach_s=1.0)
"""For the files of a cluster, beyond those of switches and hosts."""
MANY = 1000
PEER_INPUTS = {"shared": 2, "own": 1}
"""The kind of the peer's inputs, and its number of runs: one takes half a minute."""


@dataclass(frozen=True, slots=True)
class Programs:
    """The programs to measure; the peer is None if it is not installed or not wanted."""

    netkit: Path
    peer_python: Path | None


@dataclass(frozen=True, slots=True)
class Bench:
    """All tasks of a benchmark."""

    main: tuple[Task, ...]
    growth: tuple[Task, ...]
    start_up: Task

    @property
    def compared(self) -> Task:
        """netkit's side of the comparison."""
        return self.main[0]

    @property
    def peers(self) -> tuple[Task, ...]:
        """The peer's side of the comparison."""
        return tuple(task for task in self.main if task.subject != "netkit")


def make(
    folder: Path, programs: Programs, platforms: tuple[str, ...], *, runs: int, growth_runs: int, quick: bool
) -> Bench:
    """Write the fabrics of a benchmark and return its tasks; a quick one has small fabrics and no budgets."""
    shape = fabrics.QUICK if quick else fabrics.SPEED
    steps = fabrics.QUICK_GROWTH if quick else fabrics.GROWTH
    main = [
        *(_switches(folder, programs, shape, platform, runs=runs) for platform in platforms),
        *_peers(programs, shape, quick=quick),
        *_hosts(folder, programs, shape, platforms[0], runs=runs),
        *_clusters(folder, programs, fabrics.QUICK_CLUSTERED if quick else fabrics.CLUSTERED, platforms[0], runs=runs),
        Task("netkit --help", "netkit", (str(programs.netkit), "--help"), runs, budget=HELP),
    ]
    for task in main:
        task.budget = None if quick else task.budget
    # Small fabrics are quick, so run them more often: start-up dominates, and it must be measured precisely.
    often = [max(growth_runs, runs) if step.switches < MANY else growth_runs for step in steps]
    growth = tuple(
        _switches(folder, programs, step, platforms[0], runs=count, name="growth")
        for step, count in zip(steps, often, strict=True)
    )
    start_up = _switches(folder, programs, fabrics.SMALLEST, platforms[0], runs=max(often), name="start-up")
    return Bench(tuple(main), growth, start_up)


def warm_up(folder: Path, programs: Programs, platforms: tuple[str, ...]) -> Iterator[Task]:
    """Yield tasks that fill the caches of compiled modules and of the file system, for each program and platform."""
    for platform in platforms:
        yield _switches(folder, programs, fabrics.SMALLEST, platform, runs=1, name="warm-up")
        yield from _hosts(folder, programs, fabrics.SMALLEST, platform, runs=1, name="warm-up hosts")
    yield from _peers(programs, fabrics.SMALLEST, quick=True)


def _switches(
    folder: Path, programs: Programs, shape: Shape, platform: str, *, runs: int, name: str = "render"
) -> Task:
    place = folder / f"{name}-{platform}-{shape.switches}"
    fabric = fabrics.write(place / "fabric", shape, platform)
    return Task(
        name=f"{name} {platform}" if name == "render" else name,
        subject="netkit",
        command=_render(programs, fabric, platform),
        runs=runs,
        devices=shape.switches,
        platform=platform,
        shape=shape,
        budget=RENDER if name == "render" else None,
    )


def _render(programs: Programs, fabric: Path, platform: str) -> tuple[str, ...]:
    return (str(programs.netkit), "render", "--fabric", str(fabric), "--out", OUT, "--platform", platform)


def _hosts(
    folder: Path, programs: Programs, shape: Shape, platform: str, *, runs: int, name: str = "hosts"
) -> Iterator[Task]:
    for routes in ("supernet", "per-leaf"):
        place = folder / f"{name}-{routes}-{platform}"
        fabric = fabrics.write(place / "fabric", shape, platform, routes)
        yield Task(
            name=f"{name}, {routes} routes",
            subject="netkit",
            command=_render(programs, fabric, "linux"),
            runs=runs,
            devices=shape.gpu_hosts,
            platform="linux",
            shape=shape,
            budget=HOSTS,
        )


def _clusters(folder: Path, programs: Programs, shape: Shape, platform: str, *, runs: int) -> Iterator[Task]:
    """Yield a render of all devices, and the same with a cluster of each kind on all hosts."""
    plain: Task | None = None
    for cluster in ("", *fabrics.CLUSTERS):
        fabric = fabrics.write(folder / f"clusters-{cluster or 'none'}" / "fabric", shape, platform, cluster=cluster)
        task = Task(
            name=f"all, {cluster}" if cluster else "all",
            subject="netkit",
            command=(str(programs.netkit), "render", "--fabric", str(fabric), "--out", OUT),
            runs=runs,
            devices=shape.gpu_hosts,
            platform="linux",
            shape=shape,
            budget=CLUSTER if cluster else None,
            beyond=plain,
        )
        plain = plain or task
        yield task


def _peers(programs: Programs, shape: Shape, *, quick: bool) -> Iterator[Task]:
    if programs.peer_python is None:
        return
    script = Path(__file__).parent / "pyavd_peer.py"
    sizes = ("--leaves", str(shape.leaves), "--spines", str(shape.spines), "--hosts", str(shape.hosts))
    for inputs, runs in PEER_INPUTS.items():
        yield Task(
            name="render eos",
            subject=f"pyavd, {inputs} inputs",
            command=(str(programs.peer_python), str(script), *sizes, "--inputs", inputs, "--out", OUT),
            runs=1 if quick else runs,
            devices=shape.switches,
            platform="eos",
            shape=shape,
        )


def peer_version(peer_python: Path) -> str:
    """The version of pyavd in a virtual environment, from its metadata."""
    found = sorted(peer_python.parent.parent.glob("lib/python*/site-packages/pyavd-*.dist-info"))
    return found[0].name.removeprefix("pyavd-").removesuffix(".dist-info") if found else json.dumps(None)
