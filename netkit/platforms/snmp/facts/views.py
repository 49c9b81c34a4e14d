"""What a switch is asked by SNMP: what every agent has, and the tables of its platform's vendor."""

from collections.abc import Callable
from functools import partial

from netkit.facts import Facts
from netkit.platforms.agents import Agents, agents_of
from netkit.platforms.snmp.facts import counter, interface, module, system, table
from netkit.platforms.view import View, ViewSubject

PORTS = (table.IF_TABLE, table.IF_NAMES)
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
        _view(partial(counter.pauses_of_ports, platform=platform, wanted=ports), "counters", *PORTS, table.PFC),
        View(
            (table.SYSTEM, table.HOST_UPTIME),
            frozenset(TOLD),
            partial(system.system, platform=platform),
        ),
        _view(partial(interface.interfaces, platform=platform), "interfaces", *PORTS),
        _view(
            partial(interface.neighbors, platform=platform), "neighbors", *PORTS, table.LLDP_PORTS, table.LLDP_REMOTE
        ),
        View(
            (*PORTS, table.ENTITIES, table.SENSORS, *limits),
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
