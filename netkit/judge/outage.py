"""The last outage of a cable, by what both its ends report, and whether a switch that started explains it."""

import math
from typing import NamedTuple

from netkit.design.fabric import CableEnd
from netkit.facts import Absent
from netkit.judge.context import CheckContext

APART_S = 30.0
"""Devices are read up to this far apart."""
TOGETHER_S = 5.0
"""Two ends that lost the link less than this apart lost it together."""
ASKED_APART_S = 5.0
"""The sessions of a device are read up to this long before or after its ports."""
MOMENT_S = 1.0
"""A port that was disabled reports an outage of at most this long, from when it is enabled."""


class Outage(NamedTuple):
    """How long a cable had no link, and how long before the observation that ended."""

    lasted_s: float
    ended_ago_s: float

    @property
    def began_ago_s(self) -> float:
        """How long before the observation it began."""
        return self.ended_ago_s + self.lasted_s

    @property
    def ended_ago(self) -> str:
        """How long before the observation it ended, in a suitable unit."""
        unit_s, unit = (3600, "h") if self.ended_ago_s >= 7200 else (60, "min") if self.ended_ago_s >= 120 else (1, "s")
        return f"{self.ended_ago_s / unit_s:.0f} {unit}"


def last_outage(context: CheckContext, end: CableEnd) -> Outage | None:
    """The last outage of a cable; of 0 s if there was none, None if neither end reports.

    Where both ends lost the link together, the end that had it back first is right. Else it is the end that saw the
    longer outage: one that was disabled meanwhile sees none, or a moment when it is enabled again.
    """
    both = (_reported(context, one) for one in (end, context.far(end.device, end.port)) if one)
    outages = [one for one in both if one is not None]
    match outages:
        case [one, other] if (
            one.ended_ago_s and other.ended_ago_s and abs(one.began_ago_s - other.began_ago_s) <= TOGETHER_S
        ):
            return min(one, other)
    return max(outages, default=None)


def _reported(context: CheckContext, end: CableEnd) -> Outage | None:
    """What one end reports: the outage was over at the latest when the port's BGP session came up.

    zebra also stamps a link as having come up when anything else changes on a port that is up, such as its MTU.
    """
    device = context.devices.get(end.device)
    if device is None or isinstance(device.facts.interfaces, Absent):
        return None
    port = device.facts.interfaces.get(end.port)
    if port is None or port.outage_s is None:
        return None
    last = Outage(port.outage_s, port.outage_ended_ago_s or 0)
    session = None if isinstance(device.facts.sessions, Absent) else device.facts.sessions.get(end.port)
    session_s = session.uptime_s or 0.0 if session is not None and session.is_established else 0.0
    if session_s <= last.ended_ago_s + ASKED_APART_S:
        return last
    return Outage(max(0.0, last.began_ago_s - session_s), session_s)


def is_by_switch(context: CheckContext, end: CableEnd, last: Outage) -> bool | None:
    """Whether the switch at an end explains an outage; None if unknown.

    It started meanwhile, lost most links to switches, or enabled several ports at once, as for a new unit. A driver
    restart takes all ports down, but one may have been down before, be down still, or have failed again.
    """
    device = context.devices.get(end.device)
    system = device.facts.system if device else None
    if device is None or system is None or isinstance(system, Absent) or system.uptime_s is None:
        return None
    if system.uptime_s < last.began_ago_s:
        return True
    others = [CableEnd(end.device, port) for port, one in device.ports.items() if one.role != "host"]
    outages = {one: found for one in others if one != end and (found := last_outage(context, one)) is not None}
    if len(others) > 1 and not outages:
        return None
    together = [one for one, found in outages.items() if _is_together(context, (end, last), (one, found))]
    if len(together) > len(outages) / 2:
        return True
    enabled_ago_s = _enabled_ago_s(context, end)
    return abs(enabled_ago_s - last.ended_ago_s) <= APART_S and any(
        abs(_enabled_ago_s(context, one) - enabled_ago_s) <= TOGETHER_S for one in together
    )


def _enabled_ago_s(context: CheckContext, end: CableEnd) -> float:
    """How long before the observation a port got its link that by its own account was never gone; else infinite."""
    own = _reported(context, end)
    return own.ended_ago_s if own is not None and own.ended_ago_s and own.lasted_s <= MOMENT_S else math.inf


def _is_together(context: CheckContext, end: tuple[CableEnd, Outage], other: tuple[CableEnd, Outage]) -> bool:
    """Whether two cables of a switch had no link at the same time, by its own account where it reports both."""
    own, beside = (_reported(context, one) for one, _ in (end, other))
    if own is not None and beside is not None and own.lasted_s and beside.lasted_s:
        both_s = min(own.began_ago_s, beside.began_ago_s) - max(own.ended_ago_s, beside.ended_ago_s)
        if 2 * both_s < min(own.lasted_s, beside.lasted_s):
            return False
    return _overlaps(other[1], end[1])


def _overlaps(other: Outage, last: Outage) -> bool:
    """Whether another cable had no link at the same time, and for at least half as long."""
    if 2 * other.lasted_s < last.lasted_s:
        return False
    return other.ended_ago_s <= last.began_ago_s + APART_S and other.began_ago_s >= last.ended_ago_s - APART_S
