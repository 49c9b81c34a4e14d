"""Facts of GPU hosts and their NICs over SSH: commands of Linux and of the NIC's tools, and pure parsers.

Commands that several views share run once.
"""

from collections.abc import Callable, Iterator
from dataclasses import replace

from netkit.facts import Absent, Facts
from netkit.facts.optic import Line, Module
from netkit.platforms import disk
from netkit.platforms.linux.facts import command, hardware, interface, optic, probe
from netkit.platforms.linux.facts.hardware import host, system
from netkit.platforms.linux.facts.reading import beside, cards, pairs, parse, sections
from netkit.platforms.view import View, ViewSubject

FECS = {"rs": "rs", "baser": "fc", "off": "none", "none": "none"}
DISK = disk.view("/usr/local/sbin")


def views(subject: ViewSubject) -> tuple[View, ...]:
    """Build the views of a host; costly ones expose more than quick ones, so they come first."""
    files = command.files(subject)
    return (*(_costly(subject, files) if subject.nics else ()), *_quick(subject, files))


def _view(commands: tuple[str, ...], parse_: Callable[..., Facts], *names: str, is_costly: bool = False) -> View:
    return View(commands, frozenset(names), parse_, is_costly)


def _quick(subject: ViewSubject, files: str) -> Iterator[View]:
    yield _view((files,), lambda text: Facts(system=system(parse(text))), "system")
    yield DISK
    yield _view((command.LLDP,), lambda text: Facts(neighbors=interface.neighbors(text)), "neighbors")
    if subject.lookups:
        asked = subject.lookups
        yield _view((command.lookups(subject),), lambda text: Facts(lookups=interface.lookups(text, asked)), "lookups")
    host_commands = (files, command.ADDRESSES, command.DEFAULTS, command.LSPCI, command.TOPOLOGY, command.VERSIONS)
    yield _view(host_commands, lambda *texts: _host(subject, *texts), "host")
    if subject.has_lags:
        yield _view((files,), lambda text: Facts(lags=interface.lags(parse(text))), "lags")
    if subject.nics:
        yield from _of_nics(subject, files)


def _of_nics(subject: ViewSubject, files: str) -> Iterator[View]:
    fec, module = command.fec(subject), command.module(subject)
    yield _view((files, command.ADDRESSES, fec), lambda *texts: _interfaces(subject, *texts), "interfaces")
    yield _view((fec,), lambda text: Facts(lines=_lines(_fecs(text))), "lines")
    yield _view((module,), lambda text: Facts(modules=optic.modules(text)), "modules")
    yield _view((files, command.LSPCI, command.DEVINFO), lambda *texts: _nics(subject, *texts), "nics")

    def read_qos(files: str, shown: str, pause: str) -> Facts:
        tree = parse(files)
        return Facts(qos=hardware.qos(tree, cards(tree, subject.nics), shown, pause))

    def read_counters(files: str, statistics: str, fec: str) -> Facts:
        tree = parse(files)
        return Facts(counters=interface.counters(tree, (*cards(tree, subject.nics), *beside(subject)), statistics, fec))

    yield _view((files, command.qos(subject), command.pause(subject)), read_qos, "qos")
    yield _view((command.counts(subject), command.statistics(subject), fec), read_counters, "counters")


def _costly(subject: ViewSubject, files: str) -> Iterator[View]:
    links = tuple(command.mlxlink(one) for one in subject.nics)
    kept = tuple(command.firmware(one) for one in subject.nics)
    fec, module = command.fec(subject), command.module(subject)
    yield _view((fec, module, *links), lambda *texts: _optics(subject, *texts), "lines", "modules", is_costly=True)

    def read_bins(*outputs: str) -> Facts:
        found = {one.interface: optic.shown(text).bins for one, text in zip(subject.nics, outputs, strict=True)}
        return Facts(counters=interface.bins(found))

    yield _view(links, read_bins, "counters", is_costly=True)
    shown = (files, command.ADDRESSES, fec, command.link_up(subject))
    yield _view(shown, lambda *texts: _interfaces(subject, *texts), "interfaces", is_costly=True)
    about = (files, command.LSPCI, command.DEVINFO, *kept)
    yield _view(about, lambda *texts: _nics(subject, *texts), "nics", is_costly=True)
    sent = probe.asked(subject)
    if sent:
        yield _view(
            (probe.command(subject),), lambda text: Facts(probes=probe.probes(text, sent)), "probes", is_costly=True
        )


def _host(
    subject: ViewSubject, files: str, addresses: str, defaults: str, devices: str, topology: str, versions: str
) -> Facts:
    tree = parse(files)
    found = cards(tree, subject.nics)
    present = interface.addresses(interface.links(addresses))
    routes = interface.default_routes(defaults)
    pci = hardware.devices(devices)
    return Facts(host=host(tree, found, present, routes, pci, hardware.topology(topology), versions))


def _interfaces(subject: ViewSubject, files: str, addresses: str, fec: str, registers: str = "") -> Facts:
    tree = parse(files)
    nics = (*cards(tree, subject.nics), *beside(subject))
    found = interface.interfaces(interface.links(addresses), tree, nics, _fecs(fec))
    if isinstance(found, Absent):
        return Facts(interfaces=found)
    times_s = interface.times_s(registers)
    return Facts(interfaces={name: replace(one, link_up_s=times_s.get(name)) for name, one in found.items()})


def _nics(subject: ViewSubject, files: str, devices: str, info: str, *kept: str) -> Facts:
    tree = parse(files)
    found = cards(tree, subject.nics)
    firmware = {one.pci: hardware.firmware(text) for one, text in zip(subject.nics, kept, strict=False)}
    return Facts(nics=hardware.nics(tree, found, hardware.devices(devices), hardware.active_mtus(info), firmware))


def _fecs(text: str) -> dict[str, str]:
    """Parse the active FEC by interface."""
    found = {name: dict(pairs(shown)).get("Active FEC encoding", "") for name, shown in sections(text).items()}
    return {name: FECS.get(fec.lower(), fec) for name, fec in found.items() if fec}


def _lines(fecs: dict[str, str]) -> dict[str, Line] | Absent:
    return {name: Line(fec=fec) for name, fec in fecs.items()} or Absent("ethtool shows FEC of no NIC")


def _optics(subject: ViewSubject, fec: str, modules: str, *links: str) -> Facts:
    """Build modules and lines from the NIC firmware, completed from the modules' memory and the kernel."""
    shown = {one.interface: optic.shown(text) for one, text in zip(subject.nics, links, strict=True)}
    own = optic.modules(modules)
    lines, plugged = _lines(_fecs(fec)), dict[str, Module]() if isinstance(own, Absent) else dict(own)
    known = {} if isinstance(lines, Absent) else dict(lines)
    for name, one in shown.items():
        if one.module is not None:
            plugged[name] = optic.merged(plugged[name], one.module) if name in plugged else one.module
        if one.line is not None:
            known[name] = one.line
    return Facts(modules=plugged or own, lines=known or lines)
