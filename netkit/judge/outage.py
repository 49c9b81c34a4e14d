"""The last time a cable had no link, by what both its ends tell, and whether a switch that started explains it."""

from typing import NamedTuple

from netkit.facts import Absent
from netkit.facts.system import Interface
from netkit.judge.scene import End, Scene

APART_S = 30.0
"""Devices are looked at so long one after the other."""


class Outage(NamedTuple):
    """How long a cable had no link, and how long before the look that ended."""

    lasted_s: float
    ended_ago_s: float

    @property
    def began_ago_s(self) -> float:
        """Return how long before the look it began."""
        return self.ended_ago_s + self.lasted_s

    @property
    def ended_ago(self) -> str:
        """Return how long before the look it ended, in a unit that suits it."""
        unit_s, unit = (3600, "h") if self.ended_ago_s >= 7200 else (60, "min") if self.ended_ago_s >= 120 else (1, "s")
        return f"{self.ended_ago_s / unit_s:.0f} {unit}"


def last_outage(scene: Scene, end: End) -> Outage | None:
    """Return the last outage of a cable by the end that saw it longer; of 0 s if there was none, None if neither tells.

    An end that was disabled meanwhile may see none: it has a link as soon as it is enabled again.
    """
    ends = [one for one in (end, scene.far(end.device, end.port)) if one]
    states = [_interface(scene, one) for one in ends]
    told = [Outage(one.outage_s, one.outage_ended_ago_s or 0) for one in states if one and one.outage_s is not None]
    return max(told, default=None)


def _interface(scene: Scene, end: End) -> Interface | None:
    seen = scene.devices.get(end.device)
    found = seen.facts.interfaces if seen else None
    return None if found is None or isinstance(found, Absent) else found.get(end.port)


def is_by_switch(scene: Scene, end: End, last: Outage) -> bool | None:
    """Whether the switch at an end started meanwhile, or all its ports to switches; None when it is not known."""
    seen = scene.devices.get(end.device)
    system = seen.facts.system if seen else None
    if seen is None or system is None or isinstance(system, Absent) or system.uptime_s is None:
        return None
    if system.uptime_s < last.began_ago_s:
        return True
    others = [port for port, one in seen.ports.items() if one.role != "host" and port != end.port]
    return bool(others) and all(_is_long_too(scene, End(end.device, port), last) for port in others)


def _is_long_too(scene: Scene, end: End, last: Outage) -> bool:
    """Whether another cable had no link for long at the same time."""
    other = last_outage(scene, end)
    if other is None or other.lasted_s <= scene.limits.link_up_warn_s:
        return False
    return other.ended_ago_s <= last.began_ago_s + APART_S and other.began_ago_s >= last.ended_ago_s - APART_S
