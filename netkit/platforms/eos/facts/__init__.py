"""Facts of EOS over eAPI: commands with pinned revisions, and pure parsers."""

from collections.abc import Callable, Mapping
from functools import partial

from netkit.facts import Absent, Facts
from netkit.facts.device import FileSystem, System
from netkit.facts.host import BgpSession
from netkit.platforms.eos.facts import interface, port, qos
from netkit.platforms.eos.facts.interface import BGP, FILE_SYSTEMS, ROUTES, VERSION, long_name
from netkit.platforms.json_access import Shown, flag, named, number, parsed, rows, table, text, whole
from netkit.platforms.view import View, ViewSubject

WRITTEN = ("file:", "flash:")
"""Startup-config and images are in flash; sessions and logs are below the root, which is in memory."""
BLOCK_BYTES = 1024
PERMISSIONS = {"rw": False, "ro": True}


def file_systems(shown: str) -> Facts:
    """Parse the file systems that are written to, by prefix."""
    listed = {text(one.get("prefix")): one for one in rows(table(parsed(shown)).get("fileSystems"))}
    found = {name: _file_system(listed[name]) for name in WRITTEN if name in listed}
    return Facts(file_systems=found or Absent(f"{FILE_SYSTEMS} lists no flash"))


def _file_system(one: Shown) -> FileSystem:
    blocks = (whole(one.get(key)) for key in ("size", "free"))
    size, free = (None if count is None else count * BLOCK_BYTES for count in blocks)
    return FileSystem(
        size_bytes=size,
        used_bytes=None if size is None or free is None else max(0, size - free),
        free_bytes=free,
        is_read_only=PERMISSIONS.get(text(one.get("permission"))),
        kind=text(one.get("linuxFs")) or text(one.get("fsType")),
    )


def system(version: str, hostname: str) -> Facts:
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
            # Computed from the clock, with which it moves: not usable as a boot ID if the uptime is known.
            boot=f"{booted_s:.0f}" if booted_s and uptime_s is None else "",
        )
    )


NO_LENGTHS = Absent("EOS shows queue lengths only where the queue monitor is configured")


def views(subject: ViewSubject) -> tuple[View, ...]:
    ports, lossless = dict.fromkeys(subject.ports), subject.lossless
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
            sessions,
            ("sessions",),
            interface.BGP,
            interface.BGP_SUMMARY,
            interface.BFD,
            interface.MAINTENANCE,
        ),
        _view(routes, ("routes",), interface.ROUTES),
        _view(
            partial(port.modules, ports=ports),
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
        _view(partial(port.ports, in_use=ports), ("counters",), interface.INTERFACES),
        _view(partial(port.pauses, in_use=ports), ("counters",), interface.PFC_COUNTERS),
        _view(partial(port.storms, in_use=ports, lossless=lossless), ("counters",), interface.WATCHDOG),
        _view(partial(port.marks, in_use=ports), ("counters",), interface.ECN_COUNTERS),
        _view(partial(port.queues, in_use=ports), ("counters",), interface.QUEUES),
        _view(partial(port.arrivals, in_use=ports), ("counters",), interface.QUEUE_DROPS),
        *([_view(interface.lags, ("lags",), interface.PORT_CHANNELS)] if subject.has_lags else ()),
        *([_view(interface.mlag, ("mlag",), interface.MLAG)] if subject.has_pair else ()),
    )


def _view(parse: Callable[..., Facts], yields: tuple[str, ...], *commands: str, is_costly: bool = False) -> View:
    return View(commands, frozenset(yields), parse, is_costly=is_costly)


def _system(version: str, hostname: str) -> Facts:
    found = system(version, hostname)
    return Facts(system=found.system, buffers=NO_LENGTHS)


ESTABLISHED, UP, ACTIVE = "Established", "up", "active"
SYSTEM_UNIT = "System"
NOWHERE = frozenset({"", "Null0"})
DEFAULT = "default"


def sessions(neighbors: str, summary: str, bfd: str, maintenance: str) -> Facts:
    """Parse the sessions by interface; an unnumbered neighbour has no address until it is discovered."""
    answer = parsed(neighbors)
    if not isinstance(table(answer).get("vrfs"), dict):
        return Facts(sessions=Absent(f"{BGP} cannot be read"))
    # An address such as fe80::1%Et1/5 names the port of an unnumbered neighbour.
    counted = {
        long_name(address.rpartition("%")[2]): peer
        for _, vrf in named(parsed(summary), "vrfs")
        for address, peer in named(vrf, "peers")
    }
    alive, drained = _alive(parsed(bfd)), _drained(parsed(maintenance))
    found = {}
    for _, vrf in named(answer, "vrfs"):
        for peer in rows(vrf.get("peerList")):
            name = long_name(text(peer.get("ifName")) or text(peer.get("peerAddress")))
            if name:
                found[name] = _session(name, peer, counted.get(name, {}), alive, drained)
    return Facts(sessions=found)


def _session(
    name: str, peer: Shown, counted: Shown, alive: Mapping[str, bool] | None, drained: Mapping[str, bool] | None
) -> BgpSession:
    state = text(peer.get("state"))
    is_established = state == ESTABLISHED
    received = whole(counted.get("prefixReceived"))
    is_draining = flag(counted.get("underMaintenance"))
    if drained is not None:
        is_draining = bool(is_draining) or drained.get(name, False) or drained[SYSTEM_UNIT]
    return BgpSession(
        is_established=is_established,
        state=state,
        peer_asn=whole(peer.get("asn")) or whole(counted.get("asn")),
        received_prefixes=whole(peer.get("prefixesReceived")) if received is None else received,
        sent_prefixes=whole(peer.get("prefixesSent")),
        uptime_s=number(peer.get("establishedTime")) if is_established else None,
        is_bfd_up=None if alive is None else alive.get(name, False),
        is_draining=is_draining,
    )


def _alive(answer: object) -> Mapping[str, bool] | None:
    """Parse interface → whether BFD is up; None if EOS does not show it."""
    if not isinstance(table(answer).get("vrfs"), dict):
        return None
    found: dict[str, bool] = {}
    for _, vrf in named(answer, "vrfs"):
        for family in ("ipv4Neighbors", "ipv6Neighbors"):
            for address, peer in named(vrf, family):
                for name, one in named(peer, "peerStats"):
                    is_up = text(one.get("status")) == UP
                    found |= {long_name(name): is_up, address: is_up}
    return found


def _drained(answer: object) -> Mapping[str, bool] | None:
    """Parse interface, or SYSTEM_UNIT, → whether it is in maintenance; None if EOS does not show it."""
    shown = table(answer)
    if not isinstance(shown.get("units"), dict):
        return None
    units = {name: text(one.get("state")) not in {ACTIVE, ""} for name, one in named(shown, "units")}
    ports = {long_name(name): text(one.get("status")) not in {ACTIVE, ""} for name, one in named(shown, "interfaces")}
    return {**ports, SYSTEM_UNIT: units.get(SYSTEM_UNIT, False)}


def routes(shown: str) -> Facts:
    """Parse prefix → interfaces of the next hops, of routes that are programmed in hardware."""
    vrf = table(parsed(shown), "vrfs", DEFAULT)
    if not isinstance(vrf.get("routes"), dict):
        return Facts(routes=Absent(f"{ROUTES} cannot be read"))
    found: dict[str, tuple[str, ...]] = {}
    last: object = None
    hops: tuple[str, ...] = ()
    for prefix, route in named(vrf, "routes"):
        vias = route.get("vias")
        if vias != last:  # most routes have the next hops of the one before
            names = {long_name(text(via.get("interface"))) for via in rows(vias)}
            last, hops = vias, tuple(sorted(names - NOWHERE))
        if hops and flag(route.get("hardwareProgrammed")) is not False:
            found[prefix] = hops
    return Facts(routes=found)
