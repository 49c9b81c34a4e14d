"""What netkit reads by SNMP: standard MIBs, and the vendor's counter tables of the platform."""

import re
from collections.abc import Callable
from functools import partial

from netkit.facts import Absent, Facts
from netkit.facts.device import System
from netkit.platforms.agents import agents_of
from netkit.platforms.snmp.facts import counter, interface, module
from netkit.platforms.snmp.transport import Oid, SnmpQuery, number, table, words
from netkit.platforms.view import View, ViewSubject

MIB_2: Oid = (1, 3, 6, 1, 2, 1)


def _walk(name: str, root: Oid, *columns: int) -> str:
    return SnmpQuery(name, root, columns).command


SYSTEM = _walk("system", (*MIB_2, 1), 1, 5)
"""sysDescr and sysName; not sysUpTime, which on Linux is the uptime of the agent, not of the device."""
HOST_UPTIME = _walk("hrSystemUptime", (*MIB_2, 25, 1), 1)
IF_TABLE = _walk("ifTable", (*MIB_2, 2, 2, 1), 2, 4, 6, 7, 8, 13, 14, 19, 20)
IF_NAMES = _walk("ifXTable", (*MIB_2, 31, 1, 1, 1), 1, 6, 7, 8, 9, 10, 11, 12, 13, 15, 18)
LLDP_PORTS = _walk("lldpLocPortTable", (1, 0, 8802, 1, 1, 2, 1, 3, 7, 1), 2, 3)
LLDP_REMOTE = _walk("lldpRemTable", (1, 0, 8802, 1, 1, 2, 1, 4, 1, 1), 6, 7, 8, 9)
ENTITIES = _walk("entPhysicalTable", (*MIB_2, 47, 1, 1, 1, 1), 2, 9, 11, 12, 13)
SENSORS = _walk("entPhySensorTable", (*MIB_2, 99, 1, 1, 1), 1, 2, 3, 4, 5)
PFC = _walk("ieee8021PfcTable", (1, 3, 111, 2, 802, 1, 1, 21, 1, 1, 1), 2, 3)


PORTS = (IF_TABLE, IF_NAMES)


def views(subject: ViewSubject) -> tuple[View, ...]:
    platform, ports = subject.platform, subject.ports
    known = agents_of(platform)
    limits = known.snmp.sensor_limits if known else ()
    vendor: tuple[View, ...] = ()
    if known is not None and known.snmp.counters is not None:
        vendor = (_view(partial(known.snmp.counters, wanted=ports), "counters", *PORTS, *known.snmp.tables),)
    return (
        _view(partial(counter.interface_counters, platform=platform, wanted=ports), "counters", *PORTS),
        *vendor,
        _view(partial(counter.pauses_of_ports, platform=platform, wanted=ports), "counters", *PORTS, PFC),
        View((SYSTEM, HOST_UPTIME), frozenset({"system", *UNAVAILABLE}), partial(system, platform=platform)),
        _view(partial(interface.interfaces, platform=platform), "interfaces", *PORTS),
        _view(partial(interface.neighbors, platform=platform), "neighbors", *PORTS, LLDP_PORTS, LLDP_REMOTE),
        View(
            (*PORTS, ENTITIES, SENSORS, *limits),
            frozenset({"modules"}),
            partial(module.modules, platform=platform),
            is_costly=True,
        ),
    )


def _view(parse: Callable[..., Facts], kind: str, *commands: str) -> View:
    return View(commands, frozenset({kind}), parse)


DESCRIPTION, NAME, UPTIME = 1, 5, 1
SCALAR = (0,)
TICKS_PER_S = 100
UNAVAILABLE = {
    "sessions": Absent("BGP4-MIB lists sessions by address, and those of a fabric run by interface"),
    "routes": Absent("SNMP does not expose routes by interface"),
    "qos": Absent("no MIB exposes the QoS configuration"),
    "lines": Absent("no MIB exposes FEC or bit errors"),
    "watchdogs": Absent("no MIB exposes the PFC watchdog"),
    "buffers": Absent("no MIB exposes the fill level of queues"),
    "adaptive_routing": Absent("no MIB exposes adaptive routing"),
    "file_systems": Absent("SNMP is not used to read file systems"),
}
"""Facts that SNMP has no source for, with the reason."""


def system(system_text: str, uptime_text: str, platform: str) -> Facts:
    """Parse sysDescr and sysName, and report what SNMP cannot answer as absent."""
    rows = table(system_text)
    known = agents_of(platform)
    own = known.snmp if known else None
    description = words(rows, DESCRIPTION, SCALAR)
    ticks = number(table(uptime_text), UPTIME, SCALAR)
    found = System(
        hostname=words(rows, NAME, SCALAR),
        version=_first(own.release, description) if own else "",
        model=_first(own.model, description) if own else "",
        uptime_s=None if ticks is None or ticks < 0 else ticks / TICKS_PER_S,
    )
    absent = Absent("the agent has neither sysDescr nor sysName")
    return Facts(system=absent if found == System() else found, **UNAVAILABLE)


def _first(pattern: re.Pattern[str] | None, text: str) -> str:
    found = pattern.search(text) if pattern is not None else None
    return found[1] if found else ""
