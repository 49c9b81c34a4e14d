"""Every view of a switch that runs NVUE."""

from netkit.platforms import disk
from netkit.platforms.nvue.facts import (
    device,
    line,
    link,
    module,
    neighbor,
    part,
    qos,
    queue,
    roce,
    route,
    session,
    watchdog,
)
from netkit.platforms.platform import version_key
from netkit.platforms.view import View, ViewSubject

# What moved between releases (Cumulus Linux: new and changed commands).
DETAIL_SINCE = (5, 12)
INCLUDE_SINCE = (5, 13)
ASPECTS_SINCE = (5, 14)
BFD_SINCE = (5, 15)
PHY_HEALTH_SINCE = (5, 15)
COUNTERS_QOS_SINCE = (5, 5)
DISK = disk.view()


def views(subject: ViewSubject) -> tuple[View, ...]:
    """Return what to ask a switch; without a version, in the words of the newest releases."""
    has_aspects = _is_since(subject, ASPECTS_SINCE)
    whole_switch = (
        device.VIEW,
        DISK,
        *link.views(subject.ports),
        neighbor.VIEW,
        module.view(subject.ports),
        session.view(is_brief=_is_since(subject, DETAIL_SINCE), has_bfd=_is_since(subject, BFD_SINCE)),
        route.VIEW,
        qos.view(subject.ports, has_aspects=has_aspects),
        roce.view(subject.ports, has_aspects=has_aspects),
    )
    return (*whole_switch, *_by_port(subject)) if subject.ports else whole_switch


def _by_port(subject: ViewSubject) -> tuple[View, ...]:
    counters = "counters qos" if _is_since(subject, COUNTERS_QOS_SINCE) else "qos counters"
    health = "link phy health" if _is_since(subject, PHY_HEALTH_SINCE) else "link phy-detail"
    parts = watchdog.part(subject.lossless), queue.part(counters), line.part(health)
    has_include = _is_since(subject, INCLUDE_SINCE)
    return tuple(part.view(one, subject.ports, has_include=has_include) for one in parts)


def _is_since(subject: ViewSubject, version: tuple[int, ...]) -> bool:
    return not subject.version or version_key(subject.version) >= version
