"""Ports, their counters, and who is at their other ends. What a driver does not know it tells as -1 or empty."""

from collections.abc import Iterator, Mapping

from netkit.facts import Absent, Counters, Facts
from netkit.facts.system import Interface, Neighbor, System
from netkit.platforms.napalm.facts.getter import COUNTERS, FACTS, INTERFACES, NEIGHBORS, NEIGHBORS_IN_DETAIL
from netkit.platforms.shown import Shown, flag, named, number, parsed, rows, table, text, whole

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
    return Neighbor(text(shown.get("hostname")), _mac(text(shown.get("port"))))


def _detailed(shown: Shown) -> Neighbor:
    names = ("remote_system_name", "remote_port", "remote_port_description")
    system, port, description = (text(shown.get(name)) for name in names)
    return Neighbor(system, _mac(port), description)


def _mac(shown: str) -> str:
    """Return an address as everybody writes it; a name as it is."""
    digits = "".join(sign for sign in shown.lower() if sign not in ".:-")
    is_mac = len(digits) == 12 and all(sign in "0123456789abcdef" for sign in digits)
    return ":".join(digits[at : at + 2] for at in range(0, 12, 2)) if is_mac else shown


def _is_wanted(port: str, ports: tuple[str, ...]) -> bool:
    return not ports or port in ports
