"""Render within limits on time and memory, since a user's templates may loop or grow.

The time is processor time: templates wait for nothing, and a busy machine must not fail good ones.
"""

import resource
import signal
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import TypeVar

from netkit.design.select import Device
from netkit.errors import Problem, RenderError
from netkit.platforms.config import Files
from netkit.project.processes import Names, ProcessPool, cores
from netkit.project.project import Feedback, Project
from netkit.render import Engine, render, render_clusters
from netkit.render.output import Rendered

Item = TypeVar("Item")
LONGEST_S = 30.0
MORE_BYTES = 1 << 30
RENDERING = "rendering"
FEWEST = 200
"""Below this number of devices, starting processes takes longer than rendering them."""
AT_ONCE = 200
"""Devices per part."""


def rendered(
    project: Project, devices: Sequence[Device], *, ztp: bool = False, has_extra: bool = False
) -> Iterator[Rendered]:
    """Yield the files of devices, in their order, and show the progress; many are rendered by several processes."""
    by_name = {device.name: device for device in devices}
    engine = Engine(project.template_folders)

    def part(names: Names, feedback: Feedback) -> list[Rendered]:
        found = []
        with bounded(), feedback.progress(RENDERING, len(names)) as count:
            some = [by_name[name] for name in names]
            for one in each_in_time(render(project.fabric, some, engine, ztp=ztp, extra=has_extra)):
                found.append(one)
                count()
        return found

    parts = _parts(tuple(by_name), project.processes)
    processes = project.processes if len(by_name) >= FEWEST else 1
    with (
        ProcessPool(parts, part, processes, RENDERING) as pool,
        project.feedback.progress(RENDERING, len(devices)) as count,
    ):
        for found in pool.results(project.feedback, count):
            yield from found


def _parts(names: Names, processes: int) -> tuple[Names, ...]:
    """Divide devices into parts of a limited size, so that their files do not wait in memory."""
    size = max(1, min(AT_ONCE, -(-len(names) // (processes or cores()))))
    return tuple(names[start : start + size] for start in range(0, len(names), size))


def intended(project: Project, devices: Sequence[Device]) -> Mapping[str, Files]:
    """Render some devices, and show the progress."""
    return {one.device: one.files for one in rendered(project, devices)}


def quietly(project: Project, devices: Iterable[Device], engine: Engine) -> Mapping[str, Files]:
    """Render some devices; a caller that renders in batches uses one engine for all."""
    with bounded():
        return {one.device: one.files for one in each_in_time(render(project.fabric, devices, engine))}


def cluster_files(project: Project) -> Mapping[str, Files]:
    """Render the files of each cluster, by its kind, with the user's own."""
    engine = Engine(project.template_folders)
    with bounded():
        found = each_in_time(render_clusters(project.fabric, project.fabric.clusters, engine, extra=True))
        return {one.device: one.files for one in found}


def each_in_time(items: Iterable[Item]) -> Iterator[Item]:
    """Yield items, with a time limit for making each."""
    iterator = iter(items)
    while True:
        signal.setitimer(signal.ITIMER_PROF, LONGEST_S)
        try:
            item = next(iterator)
        except StopIteration:
            return
        finally:
            signal.setitimer(signal.ITIMER_PROF, 0)
        yield item


@contextmanager
def bounded() -> Iterator[None]:
    """Limit the memory of this process, and handle the timer that `each_in_time` sets."""
    before = signal.signal(signal.SIGPROF, _too_long)
    soft, hard = resource.getrlimit(resource.RLIMIT_AS)
    try:
        _limit_memory(soft, hard)
        yield
    finally:
        signal.signal(signal.SIGPROF, before)
        resource.setrlimit(resource.RLIMIT_AS, (soft, hard))


def _limit_memory(soft: int, hard: int) -> None:
    try:
        pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[0])
    except (OSError, ValueError):
        return  # not Linux: only the time is limited
    wanted = pages * resource.getpagesize() + MORE_BYTES
    limits = [limit for limit in (soft, hard, wanted) if limit != resource.RLIM_INFINITY]
    resource.setrlimit(resource.RLIMIT_AS, (min(limits), hard))


def _too_long(_signal: int, _frame: FrameType | None) -> None:
    raise RenderError(Problem(f"takes longer than {LONGEST_S:g} s", "check for nested loops"))
