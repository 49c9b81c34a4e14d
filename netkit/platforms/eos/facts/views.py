"""All that EOS is asked, and what comes of it."""

from collections.abc import Callable
from functools import partial

from netkit.facts import Absent, Facts
from netkit.platforms.eos.facts import command, counter, disk, interface, line, optic, qos, routing, system
from netkit.platforms.view import Subject, View

NO_LENGTHS = Absent("EOS tells queue lengths only where the queue monitor is configured")


def views(subject: Subject) -> tuple[View, ...]:
    """Return how a switch is looked at."""
    ports, lossless = subject.ports, subject.lossless
    return (
        _view(_system, ("system", "buffers"), command.VERSION, command.HOSTNAME),
        _view(disk.file_systems, ("file_systems",), command.FILE_SYSTEMS),
        _view(
            interface.interfaces,
            ("interfaces",),
            command.INTERFACES,
            command.ERROR_CORRECTION,
            command.LOG,
            command.CLOCK,
        ),
        _view(interface.neighbors, ("neighbors",), command.LLDP),
        _view(
            routing.sessions,
            ("sessions",),
            command.BGP,
            command.BGP_SUMMARY,
            command.BFD,
            command.MAINTENANCE,
        ),
        _view(routing.routes, ("routes",), command.ROUTES),
        _view(
            partial(optic.modules, ports=ports),
            ("modules",),
            command.THRESHOLDS,
            command.INVENTORY,
            command.HARDWARE,
            is_costly=True,
        ),
        _view(partial(line.lines, in_use=ports), ("lines", "counters"), command.PHY, is_costly=True),
        _view(partial(qos.qos, in_use=ports), ("qos",), command.RUNNING, command.PFC, command.FLOW_CONTROL),
        _view(
            partial(qos.watchdogs, ports=ports, lossless=lossless),
            ("watchdogs",),
            command.RUNNING,
            command.PFC,
            command.WATCHDOG,
        ),
        _view(qos.adaptive_routing, ("adaptive_routing",), command.RUNNING, command.LOAD_BALANCE),
        _view(partial(counter.ports, in_use=ports), ("counters",), command.INTERFACES),
        _view(partial(counter.pauses, in_use=ports), ("counters",), command.PFC_COUNTERS),
        _view(partial(counter.storms, in_use=ports, lossless=lossless), ("counters",), command.WATCHDOG),
        _view(partial(counter.marks, in_use=ports), ("counters",), command.ECN_COUNTERS),
        _view(partial(counter.queues, in_use=ports), ("counters",), command.QUEUES),
        _view(partial(counter.arrivals, in_use=ports), ("counters",), command.QUEUE_DROPS),
    )


def _view(parse: Callable[..., Facts], yields: tuple[str, ...], *commands: str, is_costly: bool = False) -> View:
    return View(commands, frozenset(yields), parse, is_costly=is_costly)


def _system(version: str, hostname: str) -> Facts:
    found = system.system(version, hostname)
    return Facts(system=found.system, buffers=NO_LENGTHS)
