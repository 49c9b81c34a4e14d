"""Commands and parsers for the facts of a Linux switch with FRR."""

import re
from collections.abc import Callable, Mapping

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

LINES, MOST_DIGITS = 4, 20


def system(about: str, routing: str, files: dict[str, str]) -> System | Absent:
    """Parse the identity of the switch; its release is FRR's."""
    lines = [line.strip() for line in about.strip().splitlines()]
    if len(lines) != LINES:
        return Absent("the kernel does not show its boot ID and its release")
    uptime, boot, kernel, hostname = lines
    first = uptime.partition(" ")[0]
    is_number = first.isascii() and first.replace(".", "", 1).isdecimal() and len(first) <= MOST_DIGITS
    uptime_s = number(float(first)) if is_number else None
    return System(
        hostname=hostname,
        version=version_in(routing),
        model=files.get("/sys/class/dmi/id/product_name", ""),
        serial=files.get("/sys/class/dmi/id/product_serial", ""),
        uptime_s=uptime_s,
        boot=boot,
        kernel=kernel,
    )


def files_of(printed: str) -> dict[str, str]:
    """Parse grep's output for several files into path → value."""
    found = (line.partition(":") for line in printed.splitlines() if line.startswith("/"))
    return {path: value.strip() for path, _, value in found}


ABOUT = "cat /proc/uptime /proc/sys/kernel/random/boot_id /proc/sys/kernel/osrelease /proc/sys/kernel/hostname"
ROUTING = (
    "vtysh -c 'show version' -c 'show bgp ipv4 unicast summary json' -c 'show bfd peers json' "
    "-c 'show running-config' | sed '/password /d'"
)
"""Session passwords stay on the switch."""
DISK = disk.command()
LINKS = "ip -j -s -d link show"
FILES = (
    "grep -s . /sys/class/net/*/speed /sys/class/net/*/carrier_changes /sys/class/net/*/carrier_down_count "
    "/sys/class/dmi/id/product_name /sys/class/dmi/id/product_serial; true"
)
"""Some cannot be read, such as the speed of a port that is down; they are missing, which is not a failure."""
NEIGHBORS = "lldpcli -f json0 show neighbors details"
ROUTES = "ip -j -4 route show table main"
OPTICS = (
    "command -v ethtool >/dev/null || exit 0; for n in $(ls /sys/class/net); do "
    'echo "#@ $n"; ethtool {what} $n 2>/dev/null; echo "#= $?"; done'
)
MODULES = OPTICS.format(what="-m")
FEC = OPTICS.format(what="--show-fec")
OUTAGES = "date '+%Y/%m/%d %H:%M:%S'; vtysh -d zebra -c 'show interface json'"
"""Timestamps of link changes and the current time of the same clock. Asking only zebra is faster than asking all."""


NO_CHIP = Absent("Linux with FRR has no switch chip, so nothing lossless")
CHIP = ("qos", "watchdogs", "buffers", "adaptive_routing")
FECS = {"rs": "rs", "baser": "fc", "off": "none", "none": "none"}
NO_MODULE = Absent("ethtool shows no module: virtual ports have none")


def views(subject: ViewSubject) -> tuple[View, ...]:
    def read_interfaces(links: str, files: str, routing: str, fec: str, outages: str) -> Facts:
        found = interfaces(ports(links), files_of(files), routing, _fecs(fec))
        return Facts(interfaces=with_outages(found, of_zebra(outages)))

    def read_counters(links: str, files: str) -> Facts:
        found = {name: one for name, one in ports(links).items() if name in subject.ports or not subject.ports}
        return Facts(counters=counters(found, files_of(files)))

    return (
        _view(_system, ("system", *CHIP), ABOUT, ROUTING, FILES),
        _view(read_interfaces, ("interfaces",), LINKS, FILES, ROUTING, FEC, OUTAGES),
        _view(read_counters, ("counters",), LINKS, FILES),
        _view(lambda text: Facts(neighbors=interface.neighbors(text)), ("neighbors",), NEIGHBORS),
        _view(sessions, ("sessions",), ROUTING),
        _view(routes, ("routes",), ROUTES),
        _view(disk.parse, ("file_systems",), DISK),
        _view(_modules, ("modules",), MODULES, is_costly=True),
        _view(_lines, ("lines",), FEC),
    )


def _view(parse: Callable[..., Facts], yields: tuple[str, ...], *commands: str, is_costly: bool = False) -> View:
    return View(commands, frozenset(yields), parse, is_costly=is_costly)


def _system(about: str, routing: str, files: str) -> Facts:
    return Facts(
        system=system(about, routing, files_of(files)),
        qos=NO_CHIP,
        watchdogs=NO_CHIP,
        buffers=NO_CHIP,
        adaptive_routing=NO_CHIP,
    )


def _modules(shown: str) -> Facts:
    found = optic.modules(shown)
    return Facts(modules=NO_MODULE if isinstance(found, Absent) else found)


def _fecs(shown: str) -> Mapping[str, str]:
    found = {name: dict(pairs(page)).get("Active FEC encoding", "") for name, page in sections(shown).items()}
    return {name: FECS.get(fec.lower(), fec) for name, fec in found.items() if fec}


def _lines(shown: str) -> Facts:
    found = {name: Line(fec=fec) for name, fec in _fecs(shown).items()}
    return Facts(lines=found or Absent("ethtool shows no FEC: virtual ports have none"))


NET = "/sys/class/net"
CABLED = frozenset({"", "veth"})
"""Kinds of interfaces with a cable, or with a lab's substitute, which has no meaningful speed."""
STATISTICS = {"bytes": "bytes", "packets": "packets", "errors": "errors", "drops": "dropped"}
COUNTER_FILES = {"carrier_changes": "carrier_changes", "link_downs": "carrier_down_count"}
DESCRIPTION = "description "
SPEED = re.compile(r"\d{1,9}", re.ASCII)
MBPS_PER_GBPS = 1000
UNREADABLE = Absent("ip does not show the links")


def ports(links: str) -> dict[str, Shown]:
    found = {text(link.get("ifname")): link for link in rows(parsed(links))}
    return {
        name: link
        for name, link in found.items()
        if name and text(link.get("link_type")) == "ether" and _kind(link) in CABLED
    }


def _kind(link: Shown) -> str:
    return text(table(link, "linkinfo").get("info_kind"))


def interfaces(
    found: Mapping[str, Shown], files: Mapping[str, str], routing: str, fec: Mapping[str, str]
) -> Mapping[str, Interface] | Absent:
    descriptions = {
        line.headers[0].split(" ")[1]: line.text.removeprefix(DESCRIPTION)
        for line in configuration(routing)
        if line.text.startswith(DESCRIPTION) and line.headers and line.headers[0].startswith("interface ")
    }
    return {
        name: _interface(link, files.get(f"{NET}/{name}/speed", ""), descriptions.get(name, ""), fec.get(name, ""))
        for name, link in found.items()
    } or UNREADABLE


def _interface(link: Shown, speed: str, description: str, fec: str) -> Interface:
    words = link.get("flags")
    flags = {flag for flag in words if isinstance(flag, str)} if isinstance(words, list) else None
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


def counters(found: Mapping[str, Shown], files: Mapping[str, str]) -> Counters | Absent:
    """Collect the kernel's counters of each port."""
    values: dict[str, dict[str, object]] = {}
    for port, link in found.items():
        for direction in ("rx", "tx"):
            statistics = table(link, "stats64", direction)
            for name, key in STATISTICS.items():
                values.setdefault(f"{direction}_{name}", {})[port] = statistics.get(key)
        for counter, file in COUNTER_FILES.items():
            values.setdefault(counter, {})[port] = files.get(f"{NET}/{port}/{file}")
    counted = {
        counter: {port: count for port, value in by_port.items() if (count := whole(value)) is not None}
        for counter, by_port in values.items()
    }
    return {counter: by_port for counter, by_port in counted.items() if by_port} or UNREADABLE


ESTABLISHED, UP = "Established", "up"
MS_PER_S = 1000
WHOLE = "bgp graceful-shutdown"
MARKS = "set community graceful-shutdown"
ROUTER, MAP = "router bgp ", "route-map "
GONE = frozenset({"dead", "linkdown"})


def sessions(printed: str) -> Facts:
    """Parse the sessions by interface or address."""
    answers = list(documents(printed))
    # Some releases wrap the summary in the address family.
    summaries = (table(one, "ipv4Unicast") or table(one) for one in answers)
    peers = next((one["peers"] for one in summaries if isinstance(one.get("peers"), dict)), None)
    if peers is None:
        return Facts(sessions=Absent("FRR shows no BGP sessions"))
    bfd = next((one for one in answers if isinstance(one, list)), None)
    alive = None  # interface or address → whether BFD is up; None if bfdd does not answer
    if bfd is not None:
        alive = {text(peer.get(key)): peer.get("status") == UP for key in ("interface", "peer") for peer in rows(bfd)}
    drained = FrrDrains(configuration(printed))
    return Facts(sessions={name: _session(name, peer, alive, drained) for name, peer in named(peers)})


def _session(name: str, peer: Shown, alive: Mapping[str, bool] | None, drained: "FrrDrains") -> BgpSession:
    state, uptime_ms = text(peer.get("state")), whole(peer.get("peerUptimeMsec"))
    is_established = state == ESTABLISHED
    return BgpSession(
        is_established=is_established,
        state=state,
        peer_asn=whole(peer.get("remoteAs")) or None,  # 0 until the neighbour's first OPEN
        received_prefixes=whole(peer.get("pfxRcd")),
        sent_prefixes=whole(peer.get("pfxSnt")),
        uptime_s=uptime_ms / MS_PER_S if is_established and uptime_ms is not None else None,
        drops=whole(peer.get("connectionsDropped")),
        is_bfd_up=None if alive is None else alive.get(name, False),
        is_draining=drained.includes(name),
    )


def configuration(printed: str) -> tuple[ConfigLine, ...]:
    """Parse FRR's configuration within a longer output; empty if it is incomplete."""
    _, found, shown = printed.partition(SHOWN)
    if not found or not shown.rstrip().endswith("\nend"):
        return ()
    try:
        return tuple(lines(shown, GRAMMAR))
    except (NetkitError, ValueError, RecursionError):
        return ()


class FrrDrains:
    """Which neighbours receive a graceful shutdown from this switch."""

    def __init__(self, found: tuple[ConfigLine, ...]) -> None:
        self._is_known = any(line.text.startswith(ROUTER) for line in found)
        self._is_whole = any(line.text == WHOLE for line in found)
        marking = {
            line.headers[0].split(" ")[1]
            for line in found
            if line.text.startswith(MARKS) and line.headers and line.headers[0].startswith(MAP)
        }
        self._drained: set[str] = set()
        self._group_of: dict[str, str] = {}
        for line in found:
            match line.text.split(" "):
                case ["neighbor", name, "graceful-shutdown", *_]:
                    self._drained.add(name)
                case ["neighbor", name, "route-map", route_map, "out"] if route_map in marking:
                    self._drained.add(name)
                case ["neighbor", name, *options, group] if "peer-group" in options:
                    self._group_of[name] = group

    def includes(self, name: str) -> bool | None:
        """Whether a neighbour is drained; None if the configuration is not available."""
        if not self._is_known:
            return None
        return self._is_whole or bool(self._drained & {name, self._group_of.get(name, name)})


def routes(printed: str) -> Facts:
    """Parse prefix → interfaces of the next hops, from the kernel, which forwards."""
    found = parsed(printed)
    if not isinstance(found, list):
        return Facts(routes=Absent("the kernel does not show its routes"))
    by_prefix: dict[str, tuple[str, ...]] = {}
    for route in rows(found):
        prefix = text(route.get("dst"))
        if prefix == "default":
            prefix = "0.0.0.0/0"
        elif prefix and "/" not in prefix:
            prefix += "/32"
        devices = []
        for hop in rows(route.get("nexthops")) or [route]:
            flags = hop.get("flags")
            is_gone = isinstance(flags, list) and any(flag in GONE for flag in flags if isinstance(flag, str))
            if (name := text(hop.get("dev"))) and not is_gone:
                devices.append(name)
        if prefix and devices:
            by_prefix.setdefault(prefix, tuple(sorted(devices)))  # the kernel lists the best route first
    return Facts(routes=by_prefix)
