"""What a switch is asked by SNMP: what every agent has, and the tables of its platform's vendor."""

import re
from collections.abc import Callable
from functools import partial

from netkit.facts import Absent, Facts
from netkit.facts.device import System
from netkit.platforms.agents import Agents, agents_of
from netkit.platforms.snmp.facts import counter, interface, module
from netkit.platforms.snmp.transport import Oid, SnmpQuery, number, table, words
from netkit.platforms.view import View, ViewSubject

MIB_2: Oid = (1, 3, 6, 1, 2, 1)


def _asked(name: str, root: Oid, *columns: int) -> str:
    return SnmpQuery(name, root, columns).command


SYSTEM = _asked("system", (*MIB_2, 1), 1, 5)
"""sysDescr and sysName. sysUpTime is the agent's on Linux, and so on most switches: nothing follows from it."""
HOST_UPTIME = _asked("hrSystemUptime", (*MIB_2, 25, 1), 1)
IF_TABLE = _asked("ifTable", (*MIB_2, 2, 2, 1), 2, 4, 6, 7, 8, 13, 14, 19, 20)
IF_NAMES = _asked("ifXTable", (*MIB_2, 31, 1, 1, 1), 1, 6, 7, 8, 9, 10, 11, 12, 13, 15, 18)
LLDP_PORTS = _asked("lldpLocPortTable", (1, 0, 8802, 1, 1, 2, 1, 3, 7, 1), 2, 3)
LLDP_REMOTE = _asked("lldpRemTable", (1, 0, 8802, 1, 1, 2, 1, 4, 1, 1), 6, 7, 8, 9)
ENTITIES = _asked("entPhysicalTable", (*MIB_2, 47, 1, 1, 1, 1), 2, 9, 11, 12, 13)
SENSORS = _asked("entPhySensorTable", (*MIB_2, 99, 1, 1, 1), 1, 2, 3, 4, 5)
PFC = _asked("ieee8021PfcTable", (1, 3, 111, 2, 802, 1, 1, 21, 1, 1, 1), 2, 3)


PORTS = (IF_TABLE, IF_NAMES)
OTHERS = ("sessions", "routes", "qos", "lines", "watchdogs", "buffers", "adaptive_routing", "file_systems")
TOLD = ("system", *OTHERS)


def views(subject: ViewSubject) -> tuple[View, ...]:
    """Return how a switch is looked at."""
    platform, ports = subject.platform, subject.ports
    known = agents_of(platform)
    limits = known.snmp.sensor_limits if known else ()
    return (
        _view(partial(counter.interface_counters, platform=platform, wanted=ports), "counters", *PORTS),
        *_vendor(known, ports),
        _view(partial(counter.pauses_of_ports, platform=platform, wanted=ports), "counters", *PORTS, PFC),
        View(
            (SYSTEM, HOST_UPTIME),
            frozenset(TOLD),
            partial(system, platform=platform),
        ),
        _view(partial(interface.interfaces, platform=platform), "interfaces", *PORTS),
        _view(partial(interface.neighbors, platform=platform), "neighbors", *PORTS, LLDP_PORTS, LLDP_REMOTE),
        View(
            (*PORTS, ENTITIES, SENSORS, *limits),
            frozenset({"modules"}),
            partial(module.modules, platform=platform),
            is_costly=True,
        ),
    )


def _vendor(known: Agents | None, ports: tuple[str, ...]) -> tuple[View, ...]:
    if known is None or known.snmp.counters is None:
        return ()
    return (_view(partial(known.snmp.counters, wanted=ports), "counters", *PORTS, *known.snmp.tables),)


def _view(parse: Callable[..., Facts], kind: str, *commands: str) -> View:
    return View(commands, frozenset({kind}), parse)


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
