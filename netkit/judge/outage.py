"""The last time a cable had no link, by what both its ends report, and whether a switch that started explains it."""

from typing import NamedTuple

from netkit.facts import Absent
from netkit.judge.context import CableEnd, CheckContext, DeviceContext

APART_S = 30.0
"""Devices are looked at so long one after the other."""
TOGETHER_S = 5.0
"""Two ends that lost the link so long apart, as they were looked at, lost it at the same moment."""
ASKED_APART_S = 5.0
"""A device is asked for its sessions so long before or after it is asked for its ports."""


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


def last_outage(context: CheckContext, end: CableEnd) -> Outage | None:
    """Return the last outage of a cable; of 0 s if there was none, None if neither end reports.

    Of two ends that lost the link at the same moment the one is right that had it back first. Otherwise it is the end
    that saw it longer: one that was disabled meanwhile sees none or a moment, when it is enabled again.
    """
    both = (_told(context, one) for one in (end, context.far(end.device, end.port)) if one)
    told = [one for one in both if one is not None]
    match told:
        case [one, other] if one.lasted_s and other.lasted_s and abs(one.began_ago_s - other.began_ago_s) <= TOGETHER_S:
            return min(one, other)
    return max(told, default=None)


def _told(context: CheckContext, end: CableEnd) -> Outage | None:
    """Return what one end reports: an outage was over at the latest when the BGP session over the port came up.

    zebra stamps a link as having come up, too, whenever anything else about a port that is up changes, its MTU say.
    """
    device = context.devices.get(end.device)
    if device is None or isinstance(device.facts.interfaces, Absent):
        return None
    port = device.facts.interfaces.get(end.port)
    if port is None or port.outage_s is None:
        return None
    last = Outage(port.outage_s, port.outage_ended_ago_s or 0)
    session_s = _session_s(device, end.port)
    if session_s <= last.ended_ago_s + ASKED_APART_S:
        return last
    return Outage(max(0.0, last.began_ago_s - session_s), session_s)


def _session_s(device: DeviceContext, port: str) -> float:
    """Return for how long the BGP session over a port has been up; 0 when that is not known."""
    session = None if isinstance(device.facts.sessions, Absent) else device.facts.sessions.get(port)
    return session.uptime_s or 0.0 if session is not None and session.is_established else 0.0


def is_by_switch(context: CheckContext, end: CableEnd, last: Outage) -> bool | None:
    """Whether the switch at an end started meanwhile, or most of its ports to switches; None when it is not known.

    All went down when their driver restarted, but one may have been down before, and be down still, or went again.
    """
    device = context.devices.get(end.device)
    system = device.facts.system if device else None
    if device is None or system is None or isinstance(system, Absent) or system.uptime_s is None:
        return None
    if system.uptime_s < last.began_ago_s:
        return True
    others = [port for port, one in device.ports.items() if one.role != "host" and port != end.port]
    told = [found for port in others if (found := last_outage(context, CableEnd(end.device, port))) is not None]
    if others and not told:
        return None
    return sum(_went_too(one, last) for one in told) > len(told) / 2


def _went_too(other: Outage, last: Outage) -> bool:
    """Whether another cable had no link at the same time, and about as long: at least half of it."""
    if 2 * other.lasted_s < last.lasted_s:
        return False
    return other.ended_ago_s <= last.began_ago_s + APART_S and other.began_ago_s >= last.ended_ago_s - APART_S
