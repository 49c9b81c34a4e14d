"""Ports: link, whole-port counters, adaptive routing."""

import re
from collections.abc import Collection, Iterator

from netkit.facts import Absent, Facts
from netkit.facts.device import Interface
from netkit.platforms.nvue.facts.shown import Shown, counted, objects, real, switched, tree, under, unread, whole, word
from netkit.platforms.outage import of_zebra, told
from netkit.platforms.view import View

COMMAND = "nv show interface -o json"
OUTAGES = "date '+%Y/%m/%d %H:%M:%S'; sudo -n vtysh -d zebra -c 'show interface json'"
"""NVUE tells when a link changed the last time, not when it went: its routing daemon knows both."""
COUNTING = frozenset({"adaptive_routing", "counters"})
PORT = re.compile(r"swp[0-9]{1,4}(?:s[0-9])?")
SPEED = re.compile(r"([0-9]{1,6}(?:\.[0-9]{1,3})?)([MG])")
FEC = {"rs": "rs", "baser": "fc", "fc": "fc", "off": "none", "none": "none", "auto": ""}
"""What is in force; `auto` does not tell."""
COUNTED = {
    "rx_bytes": "in-bytes",
    "tx_bytes": "out-bytes",
    "rx_packets": "in-pkts",
    "tx_packets": "out-pkts",
    "rx_errors": "in-errors",
    "tx_errors": "out-errors",
    "rx_drops": "in-drops",
    "tx_drops": "out-drops",
    "carrier_changes": "carrier-transitions",
    "link_downs": "carrier-down-count",
}


def views(used: Collection[str]) -> tuple[View, ...]:
    """Return the views of ports in use, and of those that are up and should not be; counters are asked for twice."""
    return (
        View((COMMAND, OUTAGES), frozenset({"interfaces"}), lambda text, outages: interfaces(text, outages, used)),
        View((COMMAND,), COUNTING, lambda text: counting(text, used)),
    )


def interfaces(text: str, outages: str, used: Collection[str] = ()) -> Facts:
    """Return the ports that have a link, up or down."""
    ports = _ports(text, used)
    found = ports if isinstance(ports, Absent) else {name: _interface(one) for name, one in ports.items()}
    return Facts(interfaces=told(found, of_zebra(outages)))


def counting(text: str, used: Collection[str] = ()) -> Facts:
    """Return what ports count, and whether adaptive routing works there."""
    ports = _ports(text, used)
    if isinstance(ports, Absent):
        return Facts(adaptive_routing=ports, counters=ports)
    routing = dict(_adaptive(ports))
    counters = {name: _counts(ports, key) for name, key in COUNTED.items()}
    return Facts(
        adaptive_routing=routing or Absent(f"{COMMAND}: does not tell adaptive routing"),
        counters=counted(COMMAND, counters),
    )


def _ports(text: str, used: Collection[str]) -> Shown | Absent:
    shown = tree(text)
    if shown is None:
        return unread(COMMAND, text)
    found = {name: one for name, one in objects(shown) if PORT.fullmatch(name) and _is_told(one)}
    ports = {name: one for name, one in found.items() if name in used or _is_up(under(one, "link"))}
    return ports or Absent(f"{COMMAND}: shows no ports")


def _is_told(port: Shown) -> bool:
    """Whether it is a port, not a cage that is split."""
    link = under(port, "link")
    return "state" in link or "oper-status" in link


def _interface(port: Shown) -> Interface:
    link = under(port, "link")
    fec = word(link, "fec").lower()
    return Interface(
        is_up=_is_up(link),
        is_enabled={"up": True, "down": False}.get(word(link, "admin-status").lower()),
        speed_gbps=_gbps(link.get("speed")),
        mtu_bytes=whole(link.get("mtu")),
        fec=FEC.get(fec, fec),
        mac=word(link, "mac-address", "mac").lower(),
        description=word(port, "description"),
    )


def _is_up(link: Shown) -> bool | None:
    """Return whether a link is up: a word since 5.11, the name of an object before."""
    state = link.get("state")
    words = {word(link, "oper-status").lower()} - {""} or (set(state) if isinstance(state, dict) else {str(state)})
    return True if words == {"up"} else False if words == {"down"} else None


def _gbps(value: object) -> float | None:
    found = SPEED.fullmatch(value) if isinstance(value, str) else None
    number = real(found[1]) if found else None
    return None if found is None or number is None else number / (1 if found[2] == "G" else 1000)


def _counts(ports: Shown, key: str) -> dict[str, int]:
    counts = ((name, whole(under(port, "link", "stats").get(key))) for name, port in ports.items())
    return {name: count for name, count in counts if count is not None}


def _adaptive(ports: Shown) -> Iterator[tuple[str, bool]]:
    for name, port in ports.items():
        shown = under(port, "router", "adaptive-routing")
        is_on = switched(shown.get("state", shown.get("enable")))
        if is_on is not None:
            yield name, is_on
