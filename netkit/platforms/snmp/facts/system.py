"""What the switch is, and what SNMP has no word for."""

import re

from netkit.facts import Absent, Facts
from netkit.facts.device import System
from netkit.platforms.agents import agents_of
from netkit.platforms.snmp.transport import number, table, words

DESCRIPTION, NAME, UPTIME = 1, 5, 1
SCALAR = (0,)
TICKS_PER_S = 100
NO_SESSIONS = Absent("BGP4-MIB knows sessions by address, and those of a fabric run by interface")
NO_ROUTES = Absent("SNMP tells no routes by interface")
NO_QOS = Absent("no MIB tells how QoS is set")
NO_LINES = Absent("no MIB tells FEC or bit errors")
NO_WATCHDOGS = Absent("no MIB tells whether a watchdog is on")
NO_BUFFERS = Absent("no MIB tells how full queues are")
NO_FILE_SYSTEMS = Absent("SNMP is not asked how full disks are")
NO_ROUTING = Absent("no MIB tells adaptive routing")


def system(told_text: str, uptime_text: str, platform: str) -> Facts:
    """Return what sysDescr and its neighbours say, and why there is nothing of much else."""
    told = table(told_text)
    known = agents_of(platform)
    own = known.snmp if known else None
    description = words(told, DESCRIPTION, SCALAR)
    ticks = number(table(uptime_text), UPTIME, SCALAR)
    found = System(
        hostname=words(told, NAME, SCALAR),
        version=_first(own.release, description) if own else "",
        model=_first(own.model, description) if own else "",
        uptime_s=None if ticks is None or ticks < 0 else ticks / TICKS_PER_S,
    )
    return Facts(
        system=Absent("the agent does not say what the switch is") if found == System() else found,
        sessions=NO_SESSIONS,
        routes=NO_ROUTES,
        qos=NO_QOS,
        lines=NO_LINES,
        watchdogs=NO_WATCHDOGS,
        buffers=NO_BUFFERS,
        adaptive_routing=NO_ROUTING,
        file_systems=NO_FILE_SYSTEMS,
    )


def _first(shape: re.Pattern[str] | None, text: str) -> str:
    found = shape.search(text) if shape is not None else None
    return found[1] if found else ""
