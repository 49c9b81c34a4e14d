"""What a watch polls: the ports of devices, and a feed of samples of each device."""

import importlib
import threading
from collections.abc import Callable, Sequence
from typing import Any

from netkit.design import Fabric
from netkit.design.select import Device
from netkit.facts import Sample
from netkit.observe import subject
from netkit.platforms.view import ViewSubject
from netkit.project.connections import Connections
from netkit.project.observing import OnlyViewing, looked_at
from netkit.project.project import Project
from netkit.watch.board import Board, Outline
from netkit.watch.feed import Feed, Poll, ReconnectingFeed, StreamFeed
from netkit.watch.port_severity import PauseLimits, wires

STREAMS = "gnmi"
"""The source of facts that streams counters."""
SETTLED_SAMPLES = 2
"""Samples that the first rates need."""
LONGEST_ONCE_S = 20.0
"""How long to wait for these."""
Listen = Callable[[ViewSubject, float, Callable[[Sample], None], threading.Event], None]


def outline_of(project: Project, devices: Sequence[Device], interval_s: float) -> Outline:
    """The ports to watch."""
    fabric, limits = project.fabric, project.intent.thresholds
    return Outline(
        fabric.name,
        wires(fabric, devices),
        tuple(fabric.lossless.lossless_priorities),
        PauseLimits(
            *(limits.pause_fraction_warn, limits.pause_fraction_fail, limits.pause_rate_warn, limits.pause_rate_fail),
            limits.headroom_warn_percent,
        ),
        interval_s,
        project.lab,
    )


def feeds_of(project: Project, devices: Sequence[Device], source: str, interval_s: float) -> Sequence[Feed]:
    """The feeds of devices: a stream if their source has one, else polling."""
    reached = Connections.of(project, source=source)
    return [_feed(project.fabric, device, reached, interval_s) for device in devices]


def _feed(fabric: Fabric, device: Device, reached: Connections, interval_s: float) -> Feed:
    source = reached.origin(device.platform).source
    if source == STREAMS:
        importlib.import_module("netkit.platforms.gnmi.driver").require_library(device.name)
        return ReconnectingFeed(
            StreamFeed(subject(fabric, device), interval_s), lambda: OnlyStreaming(reached.viewer(device.name))
        )
    views = looked_at(fabric, device, has_probes=False, source=source).views
    return ReconnectingFeed(Poll(device.name, views, interval_s), lambda: OnlyViewing(reached.viewer(device.name)))


class OnlyStreaming:
    """A connection reduced to streaming."""

    def __init__(self, viewer: Any) -> None:
        self.open: Callable[[], None] = viewer.open
        self.close: Callable[[], None] = viewer.close
        self.stream: Listen = viewer.stream


def is_settled(board: Board, now_s: float) -> bool:
    """Report whether the rates of all devices are known that answer."""
    health = board.health(now_s).values()
    return all(one.samples >= SETTLED_SAMPLES or one.condition.state == "gone" for one in health)
