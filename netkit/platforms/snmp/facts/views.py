"""What a switch is asked by SNMP: what every agent has, and the tables of its platform's vendor."""

from collections.abc import Callable, Mapping
from functools import partial

from netkit.facts import Facts
from netkit.platforms.snmp.facts import counter, interface, module, system, table
from netkit.platforms.view import View, ViewSubject

PORTS = (table.IF_TABLE, table.IF_NAMES)
OTHERS = ("sessions", "routes", "qos", "lines", "watchdogs", "buffers", "adaptive_routing", "file_systems")
TOLD = ("system", *OTHERS)
VENDORS: Mapping[str, tuple[Callable[..., Facts], tuple[str, ...]]] = {
    "nvue": (
        counter.cumulus,
        (table.CUMULUS_DISCARDS, table.CUMULUS_PFC, table.CUMULUS_UP_DOWN, table.CUMULUS_CLASSES),
    ),
    "sonic": (counter.sonic, (table.SONIC_PFC, table.SONIC_QUEUES)),
    "eos": (counter.eos, (table.ARISTA_QUEUES, table.ARISTA_PFC, table.ARISTA_WATCHDOG, table.ARISTA_ECN)),
}


def views(subject: ViewSubject) -> tuple[View, ...]:
    """Return how a switch is looked at."""
    platform, ports = subject.platform, subject.ports
    limits = (table.ARISTA_LIMITS,) if platform == "eos" else ()
    return (
        _view(partial(counter.interface_counters, platform=platform, wanted=ports), "counters", *PORTS),
        *_vendor(platform, ports),
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


def _vendor(platform: str, ports: tuple[str, ...]) -> tuple[View, ...]:
    if platform not in VENDORS:
        return ()
    parse, commands = VENDORS[platform]
    return (_view(partial(parse, wanted=ports), "counters", *PORTS, *commands),)


def _view(parse: Callable[..., Facts], kind: str, *commands: str) -> View:
    return View(commands, frozenset({kind}), parse)
