"""Facts from NAPALM's getters."""

from collections.abc import Callable, Iterator, Mapping
from functools import partial

from netkit.facts import Absent, Facts
from netkit.facts.device import Interface, Neighbor, System
from netkit.facts.host import BgpSession
from netkit.facts.optic import Lane, Module
from netkit.platforms.json_access import Shown, flag, mac_or_name, named, number, parsed, rows, table, text, whole
from netkit.platforms.view import View, ViewSubject

FACTS = "get_facts"
INTERFACES = "get_interfaces"
COUNTERS = "get_interfaces_counters"
NEIGHBORS_IN_DETAIL = "get_lldp_neighbors_detail"
NEIGHBORS = "get_lldp_neighbors"
SESSIONS = "get_bgp_neighbors"
OPTICS = "get_optics"
BRIEF_KEYS = ("hostname", "port")
DETAIL_KEYS = ("remote_system_name", "remote_port", "remote_port_description")
GETTERS = frozenset({FACTS, INTERFACES, COUNTERS, NEIGHBORS_IN_DETAIL, NEIGHBORS, SESSIONS, OPTICS})

MBPS_PER_GBPS = 1000
UNKNOWN = -1
"""What drivers return for a counter they do not have."""
COUNTED: Mapping[str, str] = {
    "rx_bytes": "rx_octets",
    "tx_bytes": "tx_octets",
    "rx_errors": "rx_errors",
    "tx_errors": "tx_errors",
    "rx_drops": "rx_discards",
    "tx_drops": "tx_discards",
}
PACKETS: Mapping[str, tuple[str, str, str]] = {
    "rx_packets": ("rx_unicast_packets", "rx_multicast_packets", "rx_broadcast_packets"),
    "tx_packets": ("tx_unicast_packets", "tx_multicast_packets", "tx_broadcast_packets"),
}


def system(output: str) -> Facts:
    """Parse get_facts, and report what no getter returns as absent."""
    shown = table(parsed(output))
    uptime = number(shown.get("uptime"))
    found = System(
        hostname=text(shown.get("hostname")),
        version=text(shown.get("os_version")),
        model=text(shown.get("model")),
        serial=text(shown.get("serial_number")),
        uptime_s=uptime if uptime is not None and uptime >= 0 else None,
    )
    absent = Absent(f"{FACTS} returns nothing")
    return Facts(system=absent if found == System() else found, **dict.fromkeys(UNAVAILABLE, NO_GETTER))


def interfaces(output: str, ports: tuple[str, ...]) -> Facts:
    found = {name: _interface(one) for name, one in named(parsed(output)) if _is_wanted(name, ports)}
    return Facts(interfaces=found or Absent(f"{INTERFACES} shows no port in use"))


def _interface(shown: Shown) -> Interface:
    megabits = number(shown.get("speed"))
    return Interface(
        is_up=flag(shown.get("is_up")),
        is_enabled=flag(shown.get("is_enabled")),
        speed_gbps=megabits / MBPS_PER_GBPS if megabits is not None and megabits > 0 else None,
        mtu_bytes=whole(shown.get("mtu")) or None,
        mac=text(shown.get("mac_address")).lower(),
        description=text(shown.get("description")),
    )


def counters(output: str, ports: tuple[str, ...]) -> Facts:
    found: dict[str, dict[str, int]] = {}
    for port, one in named(parsed(output)):
        for name, count in _counted(one) if _is_wanted(port, ports) else ():
            found.setdefault(name, {})[port] = count
    absent = Absent(f"{COUNTERS} returns no counters")
    return Facts(counters=found or absent)


def _counted(shown: Shown) -> Iterator[tuple[str, int]]:
    for name, key in COUNTED.items():
        count = whole(shown.get(key))
        if count is not None:
            yield name, count
    for name, keys in PACKETS.items():
        counts = [0 if shown.get(key) == UNKNOWN else whole(shown.get(key)) for key in keys]
        if shown.get(keys[0]) != UNKNOWN and None not in counts:  # a sum that misses a term would be less than before
            yield name, sum(count or 0 for count in counts)


def neighbors(detail: str, short: str, ports: tuple[str, ...]) -> Facts:
    """Parse the LLDP getters; detail replaces the short form where the driver has it, as not every driver has both."""
    known, brief = parsed(detail), parsed(short)
    if not isinstance(known, dict) and not isinstance(brief, dict):
        return Facts(neighbors=Absent(f"neither {NEIGHBORS_IN_DETAIL} nor {NEIGHBORS} can be parsed"))
    found: dict[str, tuple[Neighbor, ...]] = {}
    for shown, keys in ((brief, BRIEF_KEYS), (known, DETAIL_KEYS)):
        for port, ends in table(shown).items():
            found[port] = tuple(_neighbor(*(text(end.get(key)) for key in keys)) for end in rows(ends))
    return Facts(neighbors={port: ends for port, ends in found.items() if ends and _is_wanted(port, ports)})


def _neighbor(system: str, port: str, description: str = "") -> Neighbor:
    return Neighbor(system, mac_or_name(port), description)


def _is_wanted(port: str, ports: tuple[str, ...]) -> bool:
    return not ports or port in ports


DARK_DBM, NO_LIGHT_DBM = -30.0, -40.0
"""The optical power that drivers return without a signal, and what netkit reports."""
FILLER_DBM = 0.0
"""What drivers fill in for unknown power, as of copper; a real reading is hardly ever as round."""
UNKNOWN_CURRENT = {-1.0, 0.0}
"""What drivers return for an unknown laser bias current."""


def modules(output: str, ports: tuple[str, ...]) -> Facts:
    """Parse get_optics; only modules with a reading count."""
    found = {
        port: Module(kind="optic", lanes=lanes)
        for port, one in named(parsed(output))
        if (port in ports or not ports) and (lanes := _lanes(rows(table(one, "physical_channels").get("channel"))))
    }
    return Facts(modules=found or Absent(f"{OPTICS} returns no optical power"))


def _lanes(channels: list[Shown]) -> dict[int, Lane]:
    """Lanes by number, from 1; NAPALM counts them from 0."""
    found = {
        index + 1: Lane(_power(state, "input_power"), _power(state, "output_power"), _current(state))
        for channel in channels
        if (index := whole(channel.get("index"))) is not None and (state := table(channel, "state"))
    }
    return {number: lane for number, lane in sorted(found.items()) if lane != Lane()}


def _power(state: Shown, key: str) -> float | None:
    dbm = number(table(state, key).get("instant"))
    if dbm is None or dbm == FILLER_DBM:
        return None
    return NO_LIGHT_DBM if dbm <= DARK_DBM else dbm


def _current(state: Shown) -> float | None:
    milliamperes = number(table(state, "laser_bias_current").get("instant"))
    return None if milliamperes in UNKNOWN_CURRENT else milliamperes


def sessions(output: str, names: tuple[str, ...]) -> Facts:
    """Parse get_bgp_neighbors; only sessions that the design has, by interface or address, belong to a port."""
    peers = {name: one for _, vrf in named(parsed(output)) for name, one in named(vrf, "peers")}
    found = {
        name: session
        for name, one in peers.items()
        if (name in names or not names) and (session := _session(one)) is not None
    }
    if found:
        return Facts(sessions=found)
    why = "lists no session of the fabric" if peers else "returns no sessions"
    return Facts(sessions=Absent(f"{SESSIONS} {why}"))


def _session(shown: Shown) -> BgpSession | None:
    is_up = flag(shown.get("is_up"))
    if is_up is None:
        return None
    uptime = number(shown.get("uptime"))
    families = dict(named(shown, "address_family"))
    ipv4 = table(families.get("ipv4", {}))
    return BgpSession(
        is_established=is_up,
        peer_asn=whole(shown.get("remote_as")) or None,
        received_prefixes=whole(ipv4.get("received_prefixes")),
        sent_prefixes=whole(ipv4.get("sent_prefixes")),
        uptime_s=uptime if is_up and uptime is not None and uptime >= 0 else None,
    )


NO_GETTER = Absent("NAPALM has no getter for it")
UNAVAILABLE = ("routes", "qos", "lines", "watchdogs", "buffers", "adaptive_routing", "file_systems")


def views(subject: ViewSubject) -> tuple[View, ...]:
    ports = subject.ports
    return (
        _view(system, ("system", *UNAVAILABLE), FACTS),
        _view(partial(counters, ports=ports), ("counters",), COUNTERS),
        _view(partial(interfaces, ports=ports), ("interfaces",), INTERFACES),
        _view(partial(neighbors, ports=ports), ("neighbors",), NEIGHBORS_IN_DETAIL, NEIGHBORS),
        _view(
            partial(sessions, names=(*ports, *(address for address, _ in subject.neighbors))), ("sessions",), SESSIONS
        ),
        _view(partial(modules, ports=ports), ("modules",), OPTICS, is_costly=True),
    )


def _view(parse: Callable[..., Facts], kinds: tuple[str, ...], *commands: str, is_costly: bool = False) -> View:
    return View(commands, frozenset(kinds), parse, is_costly=is_costly)
