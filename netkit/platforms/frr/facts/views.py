"""The switch itself."""

from collections.abc import Callable, Mapping
from functools import partial

from netkit.facts import Absent, Facts
from netkit.facts.device import System
from netkit.facts.optic import Line
from netkit.platforms import disk
from netkit.platforms.frr.facts import link, routing
from netkit.platforms.frr.reply import version_in
from netkit.platforms.linux.facts import interface, optic
from netkit.platforms.linux.facts.reading import pairs, sections
from netkit.platforms.outage import of_zebra, told
from netkit.platforms.shown import number
from netkit.platforms.view import View, ViewSubject

LINES = 4


def system(about: str, routing: str, files: dict[str, str]) -> System | Absent:
    """Return what the switch is; as its release counts FRR's."""
    lines = [line.strip() for line in about.strip().splitlines()]
    if len(lines) != LINES:
        return Absent("the kernel does not tell its boot and its release")
    uptime, boot, kernel, hostname = lines
    return System(
        hostname=hostname,
        version=version_in(routing),
        model=files.get("/sys/class/dmi/id/product_name", ""),
        serial=files.get("/sys/class/dmi/id/product_serial", ""),
        uptime_s=_seconds(uptime),
        boot=boot,
        kernel=kernel,
    )


def files_of(printed: str) -> dict[str, str]:
    """Return what grep printed of files, by their paths."""
    found = (line.partition(":") for line in printed.splitlines() if line.startswith("/"))
    return {path: value.strip() for path, _, value in found}


def _seconds(uptime: str) -> float | None:
    first = uptime.partition(" ")[0]
    is_number = first.isascii() and first.replace(".", "", 1).isdecimal() and len(first) <= 20
    return number(float(first)) if is_number else None


ABOUT = "cat /proc/uptime /proc/sys/kernel/random/boot_id /proc/sys/kernel/osrelease /proc/sys/kernel/hostname"
ROUTING = (
    "vtysh -c 'show version' -c 'show bgp ipv4 unicast summary json' -c 'show bfd peers json' "
    "-c 'show running-config' | sed '/password /d'"
)
"""Passwords of sessions stay on the switch."""
DISK = disk.command()
LINKS = "ip -j -s -d link show"
FILES = (
    "grep -s . /sys/class/net/*/speed /sys/class/net/*/carrier_changes /sys/class/net/*/carrier_down_count "
    "/sys/class/dmi/id/product_name /sys/class/dmi/id/product_serial; true"
)
"""Some cannot be read, such as the speed of a port that is down: they are not there, and no failure."""
NEIGHBORS = "lldpcli -f json0 show neighbors details"
ROUTES = "ip -j -4 route show table main"
OPTICS = (
    "command -v ethtool >/dev/null || exit 0; for n in $(ls /sys/class/net); do "
    'echo "#@ $n"; ethtool {what} $n 2>/dev/null; echo "#= $?"; done'
)
MODULES = OPTICS.format(what="-m")
FEC = OPTICS.format(what="--show-fec")
OUTAGES = "date '+%Y/%m/%d %H:%M:%S'; vtysh -d zebra -c 'show interface json'"
"""When links went and came by zebra's clock, and what that clock says now. One daemon answers sooner than all."""


NO_CHIP = Absent("Linux with FRR has no switch chip, so nothing lossless")
CHIP = ("qos", "watchdogs", "buffers", "adaptive_routing")
FECS = {"rs": "rs", "baser": "fc", "off": "none", "none": "none"}
NO_MODULE = Absent("ethtool shows no module: virtual ports have none")


def views(subject: ViewSubject) -> tuple[View, ...]:
    """Return how a switch is looked at."""
    about, files, shown, links = ABOUT, FILES, ROUTING, LINKS
    return (
        _view(_system, ("system", *CHIP), about, shown, files),
        _view(_interfaces, ("interfaces",), links, files, shown, FEC, OUTAGES),
        _view(partial(_counters, in_use=subject.ports), ("counters",), links, files),
        _view(lambda text: Facts(neighbors=interface.neighbors(text)), ("neighbors",), NEIGHBORS),
        _view(routing.sessions, ("sessions",), shown),
        _view(routing.routes, ("routes",), ROUTES),
        _view(disk.parse, ("file_systems",), DISK),
        _view(_modules, ("modules",), MODULES, is_costly=True),
        _view(_lines, ("lines",), FEC),
    )


def _view(parse: Callable[..., Facts], yields: tuple[str, ...], *commands: str, is_costly: bool = False) -> View:
    return View(commands, frozenset(yields), parse, is_costly=is_costly)


def _system(about: str, shown: str, files: str) -> Facts:
    return Facts(
        system=system(about, shown, files_of(files)),
        qos=NO_CHIP,
        watchdogs=NO_CHIP,
        buffers=NO_CHIP,
        adaptive_routing=NO_CHIP,
    )


def _interfaces(links: str, files: str, shown: str, fec: str, outages: str) -> Facts:
    found = link.interfaces(link.ports(links), files_of(files), shown, _fecs(fec))
    return Facts(interfaces=told(found, of_zebra(outages)))


def _counters(links: str, files: str, in_use: tuple[str, ...]) -> Facts:
    found = {name: one for name, one in link.ports(links).items() if name in in_use or not in_use}
    return Facts(counters=link.counters(found, files_of(files)))


def _modules(shown: str) -> Facts:
    found = optic.modules(shown)
    return Facts(modules=NO_MODULE if isinstance(found, Absent) else found)


def _fecs(shown: str) -> Mapping[str, str]:
    said = {name: dict(pairs(page)).get("Active FEC encoding", "") for name, page in sections(shown).items()}
    return {name: FECS.get(fec.lower(), fec) for name, fec in said.items() if fec}


def _lines(shown: str) -> Facts:
    found = {name: Line(fec=fec) for name, fec in _fecs(shown).items()}
    return Facts(lines=found or Absent("ethtool shows no FEC: virtual ports have none"))
