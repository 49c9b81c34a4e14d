"""Facts of a switch that runs NVUE: commands, and pure parsers of their output.

The JSON of many views is not documented; where only the text form is, its words are taken for the keys.
"""

import re
from dataclasses import replace

from netkit.facts import Absent, Facts
from netkit.facts.device import System
from netkit.platforms import disk
from netkit.platforms.nvue.facts import interface, json_access, qos, routing
from netkit.platforms.nvue.facts.json_access import duration_s, tree, unread, word
from netkit.platforms.nvue.transport import version_of
from netkit.platforms.platform import version_key
from netkit.platforms.view import View, ViewSubject

# Releases that changed commands (Cumulus Linux: new and changed commands).
DETAIL_SINCE = (5, 12)
INCLUDE_SINCE = (5, 13)
ASPECTS_SINCE = (5, 14)
BFD_SINCE = (5, 15)
PHY_HEALTH_SINCE = (5, 15)
COUNTERS_QOS_SINCE = (5, 5)
DISK = disk.view()


def views(subject: ViewSubject) -> tuple[View, ...]:
    """Build the views of a switch; without a version, those of the newest release."""
    has_aspects = _is_since(subject, ASPECTS_SINCE)
    whole_switch = (
        SYSTEM,
        DISK,
        *interface.port_views(subject.ports),
        routing.NEIGHBORS_VIEW,
        interface.module_view(subject.ports),
        routing.session_view(is_brief=_is_since(subject, DETAIL_SINCE), has_bfd=_is_since(subject, BFD_SINCE)),
        routing.ROUTES_VIEW,
        qos.qos_view(subject.ports, has_aspects=has_aspects),
        qos.roce_view(subject.ports, has_aspects=has_aspects),
        *([View((interface.INTERFACES,), frozenset({"lags"}), interface.lags)] if subject.has_lags else ()),
        *([View((interface.MLAG,), frozenset({"mlag"}), interface.mlag)] if subject.has_pair else ()),
    )
    if not subject.ports:
        return whole_switch
    counters = "counters qos" if _is_since(subject, COUNTERS_QOS_SINCE) else "qos counters"
    health = "link phy health" if _is_since(subject, PHY_HEALTH_SINCE) else "link phy-detail"
    parts = qos.watchdog_part(subject.lossless), qos.queue_part(counters), interface.line_part(health)
    has_include = _is_since(subject, INCLUDE_SINCE)
    return (*whole_switch, *(json_access.view(one, subject.ports, has_include=has_include) for one in parts))


def _is_since(subject: ViewSubject, version: tuple[int, ...]) -> bool:
    return not subject.version or version_key(subject.version) >= version


KERNEL = "cat /proc/sys/kernel/random/boot_id /proc/sys/kernel/osrelease"
COMMANDS = ("nv show system -o json", "nv show platform -o json", KERNEL)
LINUX = re.compile(r"\s*([0-9a-f-]{36})\s+([0-9][!-~]{0,79})\s*")


def system_facts(system_text: str, platform_text: str, kernel_text: str) -> Facts:
    system, platform = tree(system_text), tree(platform_text)
    if system is None and platform is None:
        return Facts(system=unread(COMMANDS[0], system_text))
    system, platform = system or {}, platform or {}
    found = System(
        hostname=word(system, "hostname"),
        version=version_of(system)[:40],
        model=word(platform, "product-name") or word(system, "platform"),
        serial=word(platform, "serial-number"),
        uptime_s=duration_s(system.get("uptime")),
    )
    if found == System():
        return Facts(system=Absent(f"{COMMANDS[0]}: shows neither a name nor a release"))
    linux = LINUX.fullmatch(kernel_text)
    return Facts(system=replace(found, boot=linux[1], kernel=linux[2]) if linux else found)


SYSTEM = View(COMMANDS, frozenset({"system"}), system_facts)
