"""What each device should run, rendered within bounds on time and memory: a user's own templates may loop or grow.

The time is the processor's: templates wait for nothing, and on a busy machine the clock would refuse good ones.
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
from netkit.render import Engine, render

Item = TypeVar("Item")
LONGEST_S = 30.0
MORE_BYTES = 1 << 30


def intended(project: Project, devices: Sequence[Device]) -> Mapping[str, Files]:
    """Return the intended files of some devices, and show how far that is."""
    found = {}
    with project.feedback.progress("rendering", len(devices)) as count:
        for name, files in _rendered(project, devices, Engine(project.template_folders)):
            found[name] = files
            count()
    return found


def quietly(project: Project, devices: Iterable[Device], engine: Engine) -> Mapping[str, Files]:
    """Return the intended files of some devices; a caller with many parts uses one engine for all."""
    return dict(_rendered(project, devices, engine))


def _rendered(project: Project, devices: Iterable[Device], engine: Engine) -> Iterator[tuple[str, Files]]:
    with bounded():
        for one in each_in_time(render(project.fabric, devices, engine)):
            yield one.device, one.files


def each_in_time(items: Iterable[Item]) -> Iterator[Item]:
    """Yield what takes a bounded time each to make, and refuse what does not."""
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
    """Limit the memory this process may still take, and arm the alarm `each_in_time` sets."""
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
        return  # not Linux: the time limit must do
    wanted = pages * resource.getpagesize() + MORE_BYTES
    limits = [limit for limit in (soft, hard, wanted) if limit != resource.RLIM_INFINITY]
    resource.setrlimit(resource.RLIMIT_AS, (min(limits), hard))


def _too_long(_signal: int, _frame: FrameType | None) -> None:
    raise RenderError(Problem(f"takes longer than {LONGEST_S:g} s", "look for loops within loops"))
