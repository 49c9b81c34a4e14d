"""Collecting from a switch of a running lab through its own views."""

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
    switch = fabric.switch(device)
    found: tuple[View, ...] = importlib.import_module(f"netkit.platforms.{switch.platform}.facts").views(
        subject(fabric, switch)
    )
    return found


def ask(opened: Any, fabric: Fabric, device: str) -> dict[str, Reply]:
    """The output of each command on an open driver."""
    asked = tuple(dict.fromkeys(command for view in views(fabric, device) for command in view.commands))
    return dict(zip(asked, opened.ask(asked), strict=True))


def look(lab: RunningLab, fabric: Fabric, device: str, **changes: Any) -> Facts:
    """The facts of a switch."""
    with driven.driver(lab, device, fabric.switch(device).platform, **changes) as opened:
        return assemble.facts(views(fabric, device), ask(opened, fabric, device))


@contextmanager
def broken(lab: RunningLab, *faults: tuple[str, ...]) -> Iterator[None]:
    """Inject faults for the length of a block."""
    try:
        for fault in faults:
            done = lab.lab("break", *fault)
            assert done.returncode == 0, done.stdout + done.stderr
        yield
    finally:
        assert lab.lab("heal", "--all").returncode == 0


def misplaced(facts: Facts, ports: set[str]) -> set[tuple[str, str]]:
    """Counters with an unknown name, or at a place that is neither a port nor a number at one."""
    assert not isinstance(facts.counters, Absent)
    found = {(name, at) for name, counts in facts.counters.items() for at in counts}
    return {(name, at) for name, at in found if name not in COUNTERS or _port(name, at) not in ports}


def _port(name: str, at: str) -> str:
    return at if COUNTERS[name].scope == "port" else parts(at)[0]
