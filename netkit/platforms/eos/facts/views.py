"""The flash, and what EOS itself runs on."""

from collections.abc import Callable
from functools import partial

from netkit.facts import Absent, Facts
from netkit.facts.device import FileSystem, System
from netkit.platforms.eos.facts import counter, interface, optic, qos, routing
from netkit.platforms.eos.facts.interface import FILE_SYSTEMS, VERSION
from netkit.platforms.shown import Shown, number, parsed, rows, table, text, whole
from netkit.platforms.view import View, ViewSubject

WRITTEN = ("file:", "flash:")
"""Startup-config and images are in flash; sessions and logs below the root, which lies in memory."""
BLOCK_BYTES = 1024
PERMISSIONS = {"rw": False, "ro": True}


def file_systems(shown: str) -> Facts:
    """Return those that EOS and whoever configures it write to, by their prefix."""
    listed = {text(one.get("prefix")): one for one in rows(table(parsed(shown)).get("fileSystems"))}
    found = {name: _file_system(listed[name]) for name in WRITTEN if name in listed}
    return Facts(file_systems=found or Absent(f"{FILE_SYSTEMS} lists no flash"))


def _file_system(one: Shown) -> FileSystem:
    """Return a file system; sizes are told in kB."""
    size, free = (_bytes(whole(one.get(key))) for key in ("size", "free"))
    return FileSystem(
        size_bytes=size,
        used_bytes=None if size is None or free is None else max(0, size - free),
        free_bytes=free,
        is_read_only=PERMISSIONS.get(text(one.get("permission"))),
        kind=text(one.get("linuxFs")) or text(one.get("fsType")),
    )


def _bytes(blocks: int | None) -> int | None:
    return None if blocks is None else blocks * BLOCK_BYTES


def system(version: str, hostname: str) -> Facts:
    """Return what the switch is."""
    shown, name = table(parsed(version)), table(parsed(hostname))
    if not text(shown.get("version")):
        return Facts(system=Absent(f"{VERSION} names no release"))
    uptime_s, booted_s = number(shown.get("uptime")), number(shown.get("bootupTimestamp"))
    return Facts(
        system=System(
            hostname=text(name.get("hostname")),
            version=text(shown.get("version")),
            model=text(shown.get("modelName")),
            serial=text(shown.get("serialNumber")),
            uptime_s=uptime_s,
            # EOS works it out from its clock, and it moves with that: no boot is told by it where there is an uptime.
            boot=f"{booted_s:.0f}" if booted_s and uptime_s is None else "",
        )
    )


NO_LENGTHS = Absent("EOS tells queue lengths only where the queue monitor is configured")


def views(subject: ViewSubject) -> tuple[View, ...]:
    """Return how a switch is looked at."""
    ports, lossless = subject.ports, subject.lossless
    return (
        _view(_system, ("system", "buffers"), interface.VERSION, interface.HOSTNAME),
        _view(file_systems, ("file_systems",), interface.FILE_SYSTEMS),
        _view(
            interface.interfaces,
            ("interfaces",),
            interface.INTERFACES,
            interface.ERROR_CORRECTION,
            interface.LOG,
            interface.CLOCK,
        ),
        _view(interface.neighbors, ("neighbors",), interface.LLDP),
        _view(
            routing.sessions,
            ("sessions",),
            interface.BGP,
            interface.BGP_SUMMARY,
            interface.BFD,
            interface.MAINTENANCE,
        ),
        _view(routing.routes, ("routes",), interface.ROUTES),
        _view(
            partial(optic.modules, ports=ports),
            ("modules",),
            interface.THRESHOLDS,
            interface.INVENTORY,
            interface.HARDWARE,
            is_costly=True,
        ),
        _view(partial(interface.lines, in_use=ports), ("lines", "counters"), interface.PHY, is_costly=True),
        _view(partial(qos.qos, in_use=ports), ("qos",), interface.RUNNING, interface.PFC, interface.FLOW_CONTROL),
        _view(
            partial(qos.watchdogs, ports=ports, lossless=lossless),
            ("watchdogs",),
            interface.RUNNING,
            interface.PFC,
            interface.WATCHDOG,
        ),
        _view(qos.adaptive_routing, ("adaptive_routing",), interface.RUNNING, interface.LOAD_BALANCE),
        _view(partial(counter.ports, in_use=ports), ("counters",), interface.INTERFACES),
        _view(partial(counter.pauses, in_use=ports), ("counters",), interface.PFC_COUNTERS),
        _view(partial(counter.storms, in_use=ports, lossless=lossless), ("counters",), interface.WATCHDOG),
        _view(partial(counter.marks, in_use=ports), ("counters",), interface.ECN_COUNTERS),
        _view(partial(counter.queues, in_use=ports), ("counters",), interface.QUEUES),
        _view(partial(counter.arrivals, in_use=ports), ("counters",), interface.QUEUE_DROPS),
    )


def _view(parse: Callable[..., Facts], yields: tuple[str, ...], *commands: str, is_costly: bool = False) -> View:
    return View(commands, frozenset(yields), parse, is_costly=is_costly)


def _system(version: str, hostname: str) -> Facts:
    found = system(version, hostname)
    return Facts(system=found.system, buffers=NO_LENGTHS)
