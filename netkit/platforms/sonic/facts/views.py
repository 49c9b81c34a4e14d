"""The views of a SONiC switch: few commands, because each takes a process on the switch."""

from functools import partial

from netkit.platforms import disk
from netkit.platforms.sonic.facts import counter, module, port, qos, routing, system
from netkit.platforms.view import View, ViewSubject


def dump(database: str, pattern: str) -> str:
    """Build the command that dumps rows by a pattern; redis patterns have character classes, but no alternatives."""
    return f"sonic-db-dump -n {database} -k '{pattern}'"


COUNTERS = dump("COUNTERS_DB", "[CRU]*")
"""Counters with their name maps, rates, and user watermarks."""
PORTS = dump("APPL_DB", "PORT_TABLE:*")
MADE = dump("APPL_DB", "[BL][UL]*")
"""Buffers and LLDP neighbours."""
STATE = dump("STATE_DB", "[CPT][HOR][AR]*")
"""The chassis, ports and transceivers."""
CONFIG = dump("CONFIG_DB", "[BCDMPQSTW][ACEFORSU][BCEFHPRV_][DEFILPTU_][CDEOPW_|]*")
"""Buffers, cables, metadata, maps, ports, queues, schedulers, watchdogs and WRED: no table that holds a secret."""

DISK = disk.view("/host")


def views(subject: ViewSubject) -> tuple[View, ...]:
    """Build the views of a switch, those first that need no database: reading one may hang."""
    wanted = subject.ports
    return (
        View((routing.ROUTES,), frozenset({"routes"}), routing.routes),
        View((routing.SESSIONS,), frozenset({"sessions"}), routing.sessions),
        DISK,
        View((COUNTERS, PORTS), frozenset({"counters"}), partial(counter.counters, wanted=wanted)),
        View((COUNTERS, STATE), frozenset({"lines"}), partial(qos.lines, wanted=wanted)),
        View((COUNTERS,), frozenset({"watchdogs"}), partial(qos.watchdogs, wanted=wanted, lossless=subject.lossless)),
        View((COUNTERS,), frozenset({"buffers"}), partial(qos.buffers, wanted=wanted)),
        View((PORTS, STATE, CONFIG, system.IDENTITY), frozenset({"interfaces"}), port.interfaces),
        View((MADE,), frozenset({"neighbors"}), port.neighbors),
        View((STATE, CONFIG), frozenset({"modules"}), module.modules),
        View((CONFIG, MADE), frozenset({"qos", "adaptive_routing"}), partial(qos.qos, wanted=wanted)),
        View((system.IDENTITY, CONFIG, STATE), frozenset({"system"}), system.system),
    )
