"""The switch itself."""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial

from netkit.errors import NetkitError
from netkit.facts import Absent, Counters, Facts
from netkit.facts.device import Interface, System
from netkit.facts.host import BgpSession
from netkit.facts.optic import Line
from netkit.platforms import disk
from netkit.platforms.config_lines import ConfigLine, lines
from netkit.platforms.frr.model import GRAMMAR
from netkit.platforms.frr.reply import SHOWN, version_in
from netkit.platforms.json_access import Shown, documents, named, number, parsed, rows, table, text, whole
from netkit.platforms.linux.facts import interface, optic
from netkit.platforms.linux.facts.reading import pairs, sections
from netkit.platforms.outage import of_zebra, with_outages
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
        _view(sessions, ("sessions",), shown),
        _view(routes, ("routes",), ROUTES),
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
    found = interfaces(ports(links), files_of(files), shown, _fecs(fec))
    return Facts(interfaces=with_outages(found, of_zebra(outages)))


def _counters(links: str, files: str, in_use: tuple[str, ...]) -> Facts:
    found = {name: one for name, one in ports(links).items() if name in in_use or not in_use}
    return Facts(counters=counters(found, files_of(files)))


def _modules(shown: str) -> Facts:
    found = optic.modules(shown)
    return Facts(modules=NO_MODULE if isinstance(found, Absent) else found)


def _fecs(shown: str) -> Mapping[str, str]:
    said = {name: dict(pairs(page)).get("Active FEC encoding", "") for name, page in sections(shown).items()}
    return {name: FECS.get(fec.lower(), fec) for name, fec in said.items() if fec}


def _lines(shown: str) -> Facts:
    found = {name: Line(fec=fec) for name, fec in _fecs(shown).items()}
    return Facts(lines=found or Absent("ethtool shows no FEC: virtual ports have none"))


NET = "/sys/class/net"
CABLED = frozenset({"", "veth"})
"""Kinds of interfaces that have a cable, or what a lab has instead. The speed of the latter says nothing."""
STATISTICS = {"bytes": "bytes", "packets": "packets", "errors": "errors", "drops": "dropped"}
COUNTER_FILES = {"carrier_changes": "carrier_changes", "link_downs": "carrier_down_count"}
DESCRIPTION = "description "
SPEED = re.compile(r"\d{1,9}", re.ASCII)
MBPS_PER_GBPS = 1000
UNREADABLE = Absent("ip does not show the links")


def ports(links: str) -> dict[str, Shown]:
    """Return the links that are ports."""
    found = {text(link.get("ifname")): link for link in rows(parsed(links))}
    return {name: link for name, link in found.items() if name and _is_port(link)}


def _is_port(link: Shown) -> bool:
    return text(link.get("link_type")) == "ether" and _kind(link) in CABLED


def _kind(link: Shown) -> str:
    return text(table(link, "linkinfo").get("info_kind"))


def interfaces(
    found: Mapping[str, Shown], files: Mapping[str, str], routing: str, fec: Mapping[str, str]
) -> Mapping[str, Interface] | Absent:
    """Return the ports."""
    said = dict(_descriptions(routing))
    return {
        name: _interface(link, files.get(f"{NET}/{name}/speed", ""), said.get(name, ""), fec.get(name, ""))
        for name, link in found.items()
    } or UNREADABLE


def _interface(link: Shown, speed: str, description: str, fec: str) -> Interface:
    told = link.get("flags")
    flags = {flag for flag in told if isinstance(flag, str)} if isinstance(told, list) else None
    speed_mbps = int(speed) if SPEED.fullmatch(speed) and not _kind(link) else 0
    return Interface(
        is_up=None if flags is None else {"UP", "LOWER_UP"} <= flags,
        is_enabled=None if flags is None else "UP" in flags,
        speed_gbps=speed_mbps / MBPS_PER_GBPS if speed_mbps else None,
        mtu_bytes=whole(link.get("mtu")),
        fec=fec,
        mac=text(link.get("address")),
        description=description or text(link.get("ifalias")),
    )


def _descriptions(routing: str) -> Iterator[tuple[str, str]]:
    for line in configuration(routing):
        if line.text.startswith(DESCRIPTION) and line.headers and line.headers[0].startswith("interface "):
            yield line.headers[0].split(" ")[1], line.text.removeprefix(DESCRIPTION)


def counters(found: Mapping[str, Shown], files: Mapping[str, str]) -> Counters | Absent:
    """Return what the kernel counts."""
    counted: dict[str, dict[str, int]] = {}
    for name, link in found.items():
        for counter, count in (*_statistics(link), *_files(name, files)):
            counted.setdefault(counter, {})[name] = count
    return counted or UNREADABLE


def _statistics(link: Shown) -> Iterator[tuple[str, int]]:
    for way in ("rx", "tx"):
        told = table(link, "stats64", way)
        for name, key in STATISTICS.items():
            if (count := whole(told.get(key))) is not None:
                yield f"{way}_{name}", count


def _files(port: str, files: Mapping[str, str]) -> Iterator[tuple[str, int]]:
    for counter, file in COUNTER_FILES.items():
        if (count := whole(files.get(f"{NET}/{port}/{file}"))) is not None:
            yield counter, count


ESTABLISHED, UP = "Established", "up"
MS_PER_S = 1000
WHOLE = "bgp graceful-shutdown"
MARKS = "set community graceful-shutdown"
NEIGHBOR, ROUTER, MAP = "neighbor ", "router bgp ", "route-map "
GONE = frozenset({"dead", "linkdown"})


def sessions(printed: str) -> Facts:
    """Return the sessions by the interface or address they run on."""
    told = list(documents(printed))
    peers = next((found for one in told if (found := _peers(one)) is not None), None)
    if peers is None:
        return Facts(sessions=Absent("FRR shows no BGP sessions"))
    alive, drained = _alive(told), FrrDrains(configuration(printed))
    return Facts(sessions={name: _session(name, peer, alive, drained) for name, peer in named(peers)})


def _peers(document: object) -> Shown | None:
    """Return the peers of the summary; some releases put the address family around it."""
    family = table(document, "ipv4Unicast") or table(document)
    found = family.get("peers")
    return found if isinstance(found, dict) else None


def _alive(told: Iterable[object]) -> Mapping[str, bool] | None:
    """Return interface → whether BFD is up there; None when bfdd does not tell."""
    found = next((one for one in told if isinstance(one, list)), None)
    if found is None:
        return None
    return {text(peer.get("interface")) or text(peer.get("peer")): peer.get("status") == UP for peer in rows(found)}


def _session(name: str, peer: Shown, alive: Mapping[str, bool] | None, drained: "FrrDrains") -> BgpSession:
    state, uptime_ms = text(peer.get("state")), whole(peer.get("peerUptimeMsec"))
    is_established = state == ESTABLISHED
    return BgpSession(
        is_established=is_established,
        state=state,
        peer_asn=whole(peer.get("remoteAs")) or None,  # 0 until the first OPEN of a neighbour
        received_prefixes=whole(peer.get("pfxRcd")),
        sent_prefixes=whole(peer.get("pfxSnt")),
        uptime_s=uptime_ms / MS_PER_S if is_established and uptime_ms is not None else None,
        drops=whole(peer.get("connectionsDropped")),
        is_bfd_up=None if alive is None else alive.get(name, False),
        is_draining=drained.asks(name),
    )


def configuration(printed: str) -> tuple[ConfigLine, ...]:
    """Return the lines of FRR's configuration in what it printed; none when it is not whole."""
    _, found, shown = printed.partition(SHOWN)
    if not found or not shown.rstrip().endswith("\nend"):
        return ()
    try:
        return tuple(lines(shown, GRAMMAR))
    except (NetkitError, ValueError, RecursionError):
        return ()


class FrrDrains:
    """Which neighbours are asked to go around this switch."""

    def __init__(self, found: tuple[ConfigLine, ...]) -> None:
        self._is_told = any(line.text.startswith(ROUTER) for line in found)
        self._is_whole = any(line.text == WHOLE for line in found)
        marking = {
            line.headers[0].split(" ")[1]
            for line in found
            if line.text.startswith(MARKS) and line.headers and line.headers[0].startswith(MAP)
        }
        words = [line.text.split(" ") for line in found if line.text.startswith(NEIGHBOR)]
        self._asked = {name for _, name, *rest in filter(_has_name, words) if _asks(rest, marking)}
        self._group_of = {name: rest[-1] for _, name, *rest in filter(_has_name, words) if "peer-group" in rest[:-1]}

    def asks(self, name: str) -> bool | None:
        """Whether a neighbour is asked; None when the configuration is not told."""
        if not self._is_told:
            return None
        return self._is_whole or bool(self._asked & {name, self._group_of.get(name, name)})


def _has_name(words: list[str]) -> bool:
    return len(words) > 1


def _asks(rest: list[str], marking: Iterable[str]) -> bool:
    """Whether a neighbour is asked by a command of its own, or by a route map that marks what goes out."""
    return rest[:1] == ["graceful-shutdown"] or (
        rest[:1] == ["route-map"] and rest[2:] == ["out"] and rest[1] in marking
    )


def routes(printed: str) -> Facts:
    """Return prefix → the interfaces its next hops are on, of the kernel: that is what forwards."""
    found = parsed(printed)
    if not isinstance(found, list):
        return Facts(routes=Absent("the kernel does not show its routes"))
    told: dict[str, tuple[str, ...]] = {}
    for route in rows(found):
        prefix, devices = _prefix(text(route.get("dst"))), tuple(sorted(_devices(route)))
        if prefix and devices:
            told.setdefault(prefix, devices)  # the kernel lists the best one first
    return Facts(routes=told)


def _devices(route: Shown) -> Iterator[str]:
    hops = rows(route.get("nexthops")) or [route]
    for hop in hops:
        flags = hop.get("flags")
        is_gone = isinstance(flags, list) and any(flag in GONE for flag in flags if isinstance(flag, str))
        if (name := text(hop.get("dev"))) and not is_gone:
            yield name


def _prefix(shown: str) -> str:
    if shown == "default":
        return "0.0.0.0/0"
    return f"{shown}/32" if shown and "/" not in shown else shown
