"""Looking at a switch of a running lab through its own views, as netkit does."""

import importlib
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from netkit.design import Fabric
from netkit.facts import COUNTERS, Absent, Facts
from netkit.facts.counter import parts
from netkit.observe import assemble, subject
from netkit.platforms.view import Reply, View
from tests.lab.running import RunningLab
from tests.platforms import driven


def views(fabric: Fabric, device: str) -> tuple[View, ...]:
    """Return the views of a switch."""
    switch = fabric.switch(device)
    found: tuple[View, ...] = importlib.import_module(f"netkit.platforms.{switch.platform}.facts").views(
        subject(fabric, switch)
    )
    return found


def ask(opened: Any, fabric: Fabric, device: str) -> dict[str, Reply]:
    """Return what an open driver is answered, by command."""
    asked = tuple(dict.fromkeys(command for view in views(fabric, device) for command in view.commands))
    return dict(zip(asked, opened.ask(asked), strict=True))


def look(lab: RunningLab, fabric: Fabric, device: str, **changes: Any) -> Facts:
    """Return the facts of a switch."""
    with driven.driver(lab, device, fabric.switch(device).platform, **changes) as opened:
        return assemble.facts(views(fabric, device), ask(opened, fabric, device))


@contextmanager
def broken(lab: RunningLab, *faults: tuple[str, ...]) -> Iterator[None]:
    """Break things for the length of a block."""
    try:
        for fault in faults:
            done = lab.lab("break", *fault)
            assert done.returncode == 0, done.stdout + done.stderr
        yield
    finally:
        assert lab.lab("heal", "--all").returncode == 0


def misplaced(facts: Facts, ports: set[str]) -> set[tuple[str, str]]:
    """Return counters that are unknown, or at a place that is no port or no number of one."""
    assert not isinstance(facts.counters, Absent)
    found = {(name, at) for name, counts in facts.counters.items() for at in counts}
    return {(name, at) for name, at in found if name not in COUNTERS or _port(name, at) not in ports}


def _port(name: str, at: str) -> str:
    return at if COUNTERS[name].scope == "port" else parts(at)[0]
