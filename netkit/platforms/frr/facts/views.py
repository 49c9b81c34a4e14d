"""All that a Linux switch is asked, and what comes of it."""

from collections.abc import Callable, Mapping
from functools import partial

from netkit.facts import Absent, Facts
from netkit.facts.optic import Line
from netkit.platforms import disk
from netkit.platforms.frr.facts import command, link, routing
from netkit.platforms.frr.facts.system import files_of, system
from netkit.platforms.linux.facts import lldp, optic
from netkit.platforms.linux.facts.reading import pairs, sections
from netkit.platforms.outage import of_zebra, told
from netkit.platforms.view import Subject, View

NO_CHIP = Absent("Linux with FRR has no switch chip, so nothing lossless")
CHIP = ("qos", "watchdogs", "buffers", "adaptive_routing")
FECS = {"rs": "rs", "baser": "fc", "off": "none", "none": "none"}
NO_MODULE = Absent("ethtool shows no module: virtual ports have none")


def views(subject: Subject) -> tuple[View, ...]:
    """Return how a switch is looked at."""
    about, files, shown, links = command.ABOUT, command.FILES, command.ROUTING, command.LINKS
    return (
        _view(_system, ("system", *CHIP), about, shown, files),
        _view(_interfaces, ("interfaces",), links, files, shown, command.FEC, command.OUTAGES),
        _view(partial(_counters, in_use=subject.ports), ("counters",), links, files),
        _view(lambda text: Facts(neighbors=lldp.neighbors(text)), ("neighbors",), command.NEIGHBORS),
        _view(routing.sessions, ("sessions",), shown),
        _view(routing.routes, ("routes",), command.ROUTES),
        _view(disk.parse, ("file_systems",), command.DISK),
        _view(_modules, ("modules",), command.MODULES, is_costly=True),
        _view(_lines, ("lines",), command.FEC),
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
