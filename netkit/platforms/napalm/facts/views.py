"""Facts from NAPALM's getters: interfaces, optics, BGP sessions."""

from collections.abc import Callable, Iterator, Mapping
from functools import partial

from netkit.facts import Absent, Counters, Facts
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
GETTERS = frozenset({FACTS, INTERFACES, COUNTERS, NEIGHBORS_IN_DETAIL, NEIGHBORS, SESSIONS, OPTICS})


MBPS_PER_GBPS = 1000
UNKNOWN = -1
"""What a driver tells that never knows."""
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


def system(shown: str) -> Facts:
    """Return what the switch is."""
    told = table(parsed(shown))
    uptime = number(told.get("uptime"))
    found = System(
        hostname=text(told.get("hostname")),
        version=text(told.get("os_version")),
        model=text(told.get("model")),
        serial=text(told.get("serial_number")),
        uptime_s=uptime if uptime is not None and uptime >= 0 else None,
    )
    return Facts(system=Absent(f"{FACTS} tells nothing") if found == System() else found)


def interfaces(shown: str, ports: tuple[str, ...]) -> Facts:
    """Return the ports in use."""
    found = {name: _interface(one) for name, one in named(parsed(shown)) if _is_wanted(name, ports)}
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


def counters(shown: str, ports: tuple[str, ...]) -> Facts:
    """Return what ports count."""
    found: dict[str, dict[str, int]] = {}
    for port, one in named(parsed(shown)):
        for name, count in _counted(one) if _is_wanted(port, ports) else ():
            found.setdefault(name, {})[port] = count
    told: Counters | Absent = found or Absent(f"{COUNTERS} shows no counters")
    return Facts(counters=told)


def _counted(shown: Shown) -> Iterator[tuple[str, int]]:
    for name, key in COUNTED.items():
        count = whole(shown.get(key))
        if count is not None:
            yield name, count
    for name, keys in PACKETS.items():
        counts = [0 if shown.get(key) == UNKNOWN else whole(shown.get(key)) for key in keys]
        if shown.get(keys[0]) != UNKNOWN and None not in counts:  # a sum without one would be less than before
            yield name, sum(count or 0 for count in counts)


def neighbors(detail: str, short: str, ports: tuple[str, ...]) -> Facts:
    """Return who was heard, in detail where the driver tells it; not every driver has both."""
    known, brief = parsed(detail), parsed(short)
    if not isinstance(known, dict) and not isinstance(brief, dict):
        return Facts(neighbors=Absent(f"neither {NEIGHBORS_IN_DETAIL} nor {NEIGHBORS} can be read"))
    found = {port: tuple(map(_brief, rows(ends))) for port, ends in table(brief).items()}
    found |= {port: tuple(map(_detailed, rows(ends))) for port, ends in table(known).items()}
    return Facts(neighbors={port: ends for port, ends in found.items() if ends and _is_wanted(port, ports)})


def _brief(shown: Shown) -> Neighbor:
    return Neighbor(text(shown.get("hostname")), mac_or_name(text(shown.get("port"))))


def _detailed(shown: Shown) -> Neighbor:
    names = ("remote_system_name", "remote_port", "remote_port_description")
    system, port, description = (text(shown.get(name)) for name in names)
    return Neighbor(system, mac_or_name(port), description)


def _is_wanted(port: str, ports: tuple[str, ...]) -> bool:
    return not ports or port in ports


DARK_DBM, NO_LIGHT_DBM = -30.0, -40.0
"""What drivers tell for no light, and what netkit calls it."""
UNTOLD_DBM = 0.0
"""What drivers fill in for light they do not know, as of copper; hardly a reading is as round."""
UNKNOWN_LIGHT = {-1.0, 0.0}
"""What drivers tell for a current they do not know."""


def modules(shown: str, ports: tuple[str, ...]) -> Facts:
    """Return the modules of ports in use that show light."""
    found = {
        port: Module(kind="optic", lanes=lanes)
        for port, one in named(parsed(shown))
        if (port in ports or not ports) and (lanes := _lanes(rows(table(one, "physical_channels").get("channel"))))
    }
    return Facts(modules=found or Absent(f"{OPTICS} shows no light"))


def _lanes(channels: list[Shown]) -> dict[int, Lane]:
    """Return lanes from 1: NAPALM counts them from 0."""
    found = {
        index + 1: Lane(_light(state, "input_power"), _light(state, "output_power"), _current(state))
        for channel in channels
        if (index := whole(channel.get("index"))) is not None and (state := table(channel, "state"))
    }
    return {number: lane for number, lane in sorted(found.items()) if lane != Lane()}


def _light(state: Shown, key: str) -> float | None:
    told = number(table(state, key).get("instant"))
    if told is None or told == UNTOLD_DBM:
        return None
    return NO_LIGHT_DBM if told <= DARK_DBM else told


def _current(state: Shown) -> float | None:
    told = number(table(state, "laser_bias_current").get("instant"))
    return None if told in UNKNOWN_LIGHT else told


def sessions(shown: str, ports: tuple[str, ...]) -> Facts:
    """Return the sessions that run on ports in use; those that are told by address only are nobody's."""
    peers = {name: one for _, vrf in named(parsed(shown)) for name, one in named(vrf, "peers")}
    found = {
        name: session
        for name, one in peers.items()
        if (name in ports or not ports) and (session := _session(one)) is not None
    }
    if found:
        return Facts(sessions=found)
    why = "tells sessions by address, and those of a fabric run by interface" if peers else "shows no sessions"
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
UNTOLD = ("routes", "qos", "lines", "watchdogs", "buffers", "adaptive_routing", "file_systems")


def views(subject: ViewSubject) -> tuple[View, ...]:
    """Return how a switch is looked at."""
    ports = subject.ports
    return (
        _view(_system, ("system", *UNTOLD), FACTS),
        _view(partial(counters, ports=ports), ("counters",), COUNTERS),
        _view(partial(interfaces, ports=ports), ("interfaces",), INTERFACES),
        _view(partial(neighbors, ports=ports), ("neighbors",), NEIGHBORS_IN_DETAIL, NEIGHBORS),
        _view(partial(sessions, ports=ports), ("sessions",), SESSIONS),
        _view(partial(modules, ports=ports), ("modules",), OPTICS, is_costly=True),
    )


def _system(shown: str) -> Facts:
    return Facts(
        system=system(shown).system,
        routes=NO_GETTER,
        qos=NO_GETTER,
        lines=NO_GETTER,
        watchdogs=NO_GETTER,
        buffers=NO_GETTER,
        adaptive_routing=NO_GETTER,
        file_systems=NO_GETTER,
    )


def _view(parse: Callable[..., Facts], kinds: tuple[str, ...], *commands: str, is_costly: bool = False) -> View:
    return View(commands, frozenset(kinds), parse, is_costly=is_costly)
