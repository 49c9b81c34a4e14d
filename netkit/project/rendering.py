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
from netkit.project.project import Project
from netkit.render import Engine, render, render_clusters

Item = TypeVar("Item")
LONGEST_S = 30.0
MORE_BYTES = 1 << 30


def intended(project: Project, devices: Sequence[Device]) -> Mapping[str, Files]:
    """Render some devices, and show the progress."""
    found = {}
    with project.feedback.progress("rendering", len(devices)) as count:
        for name, files in _rendered(project, devices, Engine(project.template_folders)):
            found[name] = files
            count()
    return found


def quietly(project: Project, devices: Iterable[Device], engine: Engine) -> Mapping[str, Files]:
    """Render some devices; a caller that renders in batches uses one engine for all."""
    return dict(_rendered(project, devices, engine))


def cluster_files(project: Project) -> Mapping[str, Files]:
    """Render the files of each cluster, by its kind, with the user's own."""
    engine = Engine(project.template_folders)
    with bounded():
        found = each_in_time(render_clusters(project.fabric, project.fabric.clusters, engine, extra=True))
        return {one.device: one.files for one in found}


def _rendered(project: Project, devices: Iterable[Device], engine: Engine) -> Iterator[tuple[str, Files]]:
    with bounded():
        for one in each_in_time(render(project.fabric, devices, engine)):
            yield one.device, one.files


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
    raise RenderError(Problem(f"takes longer than {LONGEST_S:g} s", "look for loops within loops"))
