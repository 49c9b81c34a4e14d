"""Facts of a switch that runs SONiC, from its databases, its kernel and FRR."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any, Literal, get_args

from netkit.facts import Absent, Facts
from netkit.facts.host import BgpSession
from netkit.facts.optic import Lane, Limits, Module, Quantity
from netkit.platforms import disk
from netkit.platforms.sonic.facts import port, qos
from netkit.platforms.sonic.facts.port import (
    Database,
    Row,
    database,
    dbm,
    flag,
    number,
    unread,
    value,
    values,
    whole,
    without,
    word,
)
from netkit.platforms.view import View, ViewSubject

MS_PER_S = 1000
MOST = 1 << 63
SESSIONS = (
    "vtysh -c 'show bgp ipv4 unicast summary json' -c 'show bfd peers json' -c 'show running-config bgpd' "
    "2>&1 | sed '/ password /d'"
)
"""One call, because each goes through the container. Passwords of sessions do not leave the switch."""
ROUTES = "ip -j -4 route show proto bgp"
GONE = frozenset({"dead", "linkdown"})
ROUTER, DRAIN = "router bgp ", " bgp graceful-shutdown"
NEIGHBOR = re.compile(
    r"^ +neighbor (\S+) (?:interface (?:v6only )?)?(peer-group|graceful-shutdown|route-map)(?: (\S+))?(?: (\S+))?$"
)
MAP = re.compile(r"^route-map (\S+) permit \d+$")
ASKS = " set community graceful-shutdown"


def sessions(text: str) -> Facts:
    found = list(values(text))
    summary = next((one for one in found if isinstance(one, dict)), {})
    family = summary.get("ipv4Unicast", summary)  # some releases nest the peers in the address family
    peers = family.get("peers") if isinstance(family, dict) else None
    if not isinstance(peers, dict):
        is_down = "bgpd is not running" in text
        return Facts(sessions=Absent("bgpd does not run" if is_down else "FRR does not show BGP sessions"))
    bfd = _bfd_states(found)
    drains = SonicDrains(text)
    return Facts(
        sessions={name: _session(name, peer, bfd, drains) for name, peer in peers.items() if isinstance(peer, dict)}
    )


def _bfd_states(found: Iterable[object]) -> Mapping[str, bool] | None:
    """Map interface and address to whether BFD is up; None if bfdd does not answer."""
    shown = next((one for one in found if isinstance(one, list)), None)
    if shown is None:
        return None
    peers = [peer for peer in shown if isinstance(peer, dict) and isinstance(peer.get("status"), str)]
    return {str(peer.get(key)): peer["status"] == "up" for key in ("interface", "peer") for peer in peers}


def _session(name: str, peer: Mapping[str, Any], bfd: Mapping[str, bool] | None, drains: "SonicDrains") -> BgpSession:
    state, uptime_ms = peer.get("state"), _whole(peer.get("peerUptimeMsec"))
    is_established = state == "Established"
    return BgpSession(
        is_established=is_established,
        state=state if isinstance(state, str) else "",
        peer_asn=_whole(peer.get("remoteAs")),
        received_prefixes=_whole(peer.get("pfxRcd")),
        sent_prefixes=_whole(peer.get("pfxSnt")),
        uptime_s=uptime_ms / MS_PER_S if is_established and uptime_ms is not None else None,
        drops=_whole(peer.get("connectionsDropped")),
        is_bfd_up=None if bfd is None else bfd.get(name, False),
        is_draining=drains.includes(name),
    )


class SonicDrains:
    """Which neighbours this switch asks to route around it, from bgpd's running configuration."""

    def __init__(self, text: str) -> None:
        lines = [line.rstrip() for line in text.splitlines()]
        self._is_shown = any(line.startswith(ROUTER) for line in lines)
        self._is_whole_switch = DRAIN in lines
        self._drained: set[str] = set()
        self._group_of: dict[str, str] = {}
        draining_maps = frozenset(_asking(lines))
        for found in filter(None, map(NEIGHBOR.match, lines)):
            name, keyword, first, second = found.groups()
            if keyword == "peer-group" and first:
                self._group_of[name] = first
            elif keyword == "graceful-shutdown" or (second == "out" and first in draining_maps):
                self._drained.add(name)

    def includes(self, name: str) -> bool | None:
        """Whether a neighbour is asked; None if the configuration was not shown."""
        if not self._is_shown:
            return None
        return self._is_whole_switch or bool(self._drained & {name, self._group_of.get(name, name)})


def _asking(lines: Iterable[str]) -> Iterator[str]:
    """Yield the route maps that set the graceful-shutdown community."""
    name = ""
    for line in lines:
        found = MAP.match(line)
        name = found[1] if found else name
        if line.startswith(ASKS):
            yield name


def routes(text: str) -> Facts:
    """Parse the interfaces of each BGP route."""
    found = value(text)
    if not isinstance(found, list):
        return Facts(routes=Absent("the kernel does not show its routes"))
    shown: dict[str, tuple[str, ...]] = {}
    for route in found:
        prefix = route.get("dst") if isinstance(route, dict) else None
        if not isinstance(prefix, str):
            continue
        if prefix == "default":
            prefix = "0.0.0.0/0"
        elif "/" not in prefix:
            prefix = f"{prefix}/32"
        shown[prefix] = shown.get(prefix) or _interfaces(route)  # the kernel lists the best one first
    return Facts(routes=shown)


def _interfaces(route: Mapping[str, Any]) -> tuple[str, ...]:
    hops = route.get("nexthops")
    names = []
    for hop in hops if isinstance(hops, list) else [route]:
        name, flags = (hop.get("dev"), hop.get("flags")) if isinstance(hop, dict) else (None, None)
        is_gone = isinstance(flags, list) and any(flag in flags for flag in GONE)  # the port is down
        if isinstance(name, str) and not is_gone:
            names.append(name)
    return tuple(sorted(names))


def _whole(found: object) -> int | None:
    is_count = isinstance(found, int) and not isinstance(found, bool) and 0 <= found < MOST
    return int(str(found)) if is_count else None


Kind = Literal["optic", "aoc", "copper", "unknown"]
MOST_LANES = 8
STATUS_TABLES = ("TRANSCEIVER_STATUS", "TRANSCEIVER_STATUS_SW", "TRANSCEIVER_STATUS_FLAG")
"""One table up to 202411; later one for each source of values."""
LIMITS: Mapping[Quantity, str] = {
    "rx_dbm": "rxpower",
    "tx_dbm": "txpower",
    "bias_ma": "txbias",
    "temperature_c": "temp",
    "voltage_v": "vcc",
}
KINDS: Sequence[tuple[Kind, re.Pattern[str]]] = (
    ("copper", re.compile(r"passive_copper|copper cable|base-?cr|\bcr\d|\bdac\b", re.IGNORECASE)),
    ("aoc", re.compile(r"active_cable|active cable|\baoc\b|\bacc\b", re.IGNORECASE)),
    ("optic", re.compile(r"[sn]m_media|_850_|sm_|vcsel|laser|base-?[sdflevz]r|\b[sdflz]r\d|cwdm|psm4", re.IGNORECASE)),
)
GENERIC = re.compile(r"\w+_media_interface")


def modules(state: str, config: str) -> Facts:
    found = database(state)
    if found is None:
        return Facts(modules=unread("STATE_DB"))
    ports = (database(config) or Database({})).table("PORT|")
    names = list(found.table("TRANSCEIVER_INFO|"))
    for table in STATUS_TABLES:
        rows = found.table(f"{table}|")
        names += [name for name, row in rows.items() if row.get("status") == "0"]  # an empty cage
    shown = {name: _module(found, name, ports.get(name, {})) for name in names}
    return Facts(modules=shown or without("STATE_DB", "TRANSCEIVER_INFO"))


def _module(found: Database, name: str, port: Row) -> Module:
    info, sensors = found.row(f"TRANSCEIVER_INFO|{name}"), found.row(f"TRANSCEIVER_DOM_SENSOR|{name}")
    if not info:
        return Module(is_present=False)
    flags = {key: value for table in STATUS_TABLES for key, value in found.row(f"{table}|{name}").items()}
    firmware = found.row(f"TRANSCEIVER_FIRMWARE_INFO|{name}")
    fields = ("specification_compliance", "media_interface_technology", "type_of_media_interface")
    medium = " ".join(info.get(field, "") for field in fields)
    compliance = word(info.get("specification_compliance"))
    if GENERIC.fullmatch(compliance) or "{" in compliance:  # names only the kind of medium
        compliance = ""
    return Module(
        kind=next((kind for kind, pattern in KINDS if pattern.search(medium)), "unknown"),
        identifier=" ".join(filter(None, (word(info.get("type")), compliance))),
        vendor=word(info.get("manufacturer")),
        part=word(info.get("model")),
        serial=word(info.get("serial")),
        firmware=word(info.get("active_firmware")) or word(firmware.get("active_firmware")),
        temperature_c=number(sensors.get("temperature")),
        voltage_v=number(sensors.get("voltage")),
        lanes=_lanes(sensors, flags, port),
        limits=dict(_limits(found.row(f"TRANSCEIVER_DOM_THRESHOLD|{name}"))),
    )


def _lanes(sensors: Row, flags: Row, port: Row) -> dict[int, Lane]:
    """Select the lanes of a port; xcvrd publishes those of the whole module for each port that shares it."""
    lanes = {number: _lane(sensors, flags, number) for number in range(1, MOST_LANES + 1)}
    own = [number for number, lane in lanes.items() if (lane.rx_dbm, lane.tx_dbm, lane.bias_ma) != (None, None, None)]
    subport, width = whole(port.get("subport")) or 0, port.get("lanes", "").count(",") + 1
    if subport and 0 < width < MOST_LANES:
        share = len(own) * width // MOST_LANES
        by_number = [number for number in own if (subport - 1) * width < number <= subport * width]
        by_share = own[(subport - 1) * share : subport * share] if share else own
        own = by_number or by_share
    return {index: lanes[number] for index, number in enumerate(own, 1)}


def _lane(sensors: Row, flags: Row, lane: int) -> Lane:
    return Lane(
        rx_dbm=dbm(sensors.get(f"rx{lane}power")),
        tx_dbm=dbm(sensors.get(f"tx{lane}power")),
        bias_ma=number(sensors.get(f"tx{lane}bias")),
        has_rx_loss=flag(flags.get(f"rxlos{lane}")),
        has_tx_fault=flag(flags.get(f"txfault{lane}")),
    )


def _limits(row: Row) -> Iterator[tuple[Quantity, Limits]]:
    for quantity in get_args(Quantity):
        name = LIMITS[quantity]
        found = Limits(
            *(number(row.get(f"{name}{end}")) for end in ("lowalarm", "lowwarning", "highwarning", "highalarm"))
        )
        if found.is_range:
            yield quantity, found


def dump(database: str, pattern: str) -> str:
    """Build the command that dumps rows by a pattern; redis patterns have character classes, but no alternatives."""
    return f"sonic-db-dump -n {database} -k '{pattern}'"


COUNTERS = dump("COUNTERS_DB", "[CRU]*")
"""Counters with their name maps, rates, and user watermarks."""
PORTS = dump("APPL_DB", "PORT_TABLE:*")
MADE = dump("APPL_DB", "[BL][UL]*")
"""Buffers and LLDP neighbours."""
STATE = dump("STATE_DB", "[CPT][HOR][AR]*")
"""The chassis, ports and transceivers."""
CONFIG = dump("CONFIG_DB", "[BCDMPQSTW][ACEFORSU][BCEFHPRV_][DEFILPTU_][CDEOPW_|]*")
"""Buffers, cables, metadata, maps, ports, queues, schedulers, watchdogs and WRED: no table that holds a secret."""

DISK = disk.view("/host")


def views(subject: ViewSubject) -> tuple[View, ...]:
    """Build the views of a switch, those first that need no database: reading one may hang."""
    wanted = subject.ports
    return (
        View((ROUTES,), frozenset({"routes"}), routes),
        View((SESSIONS,), frozenset({"sessions"}), sessions),
        DISK,
        View((COUNTERS, PORTS), frozenset({"counters"}), partial(port.counters, wanted=wanted)),
        View((COUNTERS, STATE), frozenset({"lines"}), partial(qos.lines, wanted=wanted)),
        View((COUNTERS,), frozenset({"watchdogs"}), partial(qos.watchdogs, wanted=wanted, lossless=subject.lossless)),
        View((COUNTERS,), frozenset({"buffers"}), partial(qos.buffers, wanted=wanted)),
        View((PORTS, STATE, CONFIG, port.IDENTITY), frozenset({"interfaces"}), port.interfaces),
        View((MADE,), frozenset({"neighbors"}), port.neighbors),
        View((STATE, CONFIG), frozenset({"modules"}), modules),
        View((CONFIG, MADE), frozenset({"qos", "adaptive_routing"}), partial(qos.qos, wanted=wanted)),
        View((port.IDENTITY, CONFIG, STATE), frozenset({"system"}), port.system),
    )
