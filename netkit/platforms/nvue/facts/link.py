"""Ports: link, whole-port counters, adaptive routing."""

import re
from collections.abc import Collection, Iterator

from netkit.facts import Absent, Facts
from netkit.facts.system import Interface
from netkit.platforms.nvue.facts.shown import Shown, counted, objects, real, switched, tree, under, unread, whole, word
from netkit.platforms.view import View

COMMAND = "nv show interface -o json"
YIELDS = frozenset({"interfaces", "adaptive_routing", "counters"})
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


def view(ports: Collection[str]) -> View:
    """Return the view of the ports in use, and of those that are up and should not be."""
    return View((COMMAND,), YIELDS, lambda text: parse(text, ports))


def parse(text: str, used: Collection[str] = ()) -> Facts:
    """Return the ports that have a link, up or down."""
    shown = tree(text)
    if shown is None:
        return Facts(**dict.fromkeys(YIELDS, unread(COMMAND, text)))
    told = {name: found for name, found in objects(shown) if PORT.fullmatch(name) and _is_told(found)}
    ports = {name: found for name, found in told.items() if name in used or _is_up(under(found, "link"))}
    if not ports:
        return Facts(**dict.fromkeys(YIELDS, Absent(f"{COMMAND}: shows no ports")))
    routing = dict(_adaptive(ports))
    counters = {name: _counts(ports, key) for name, key in COUNTED.items()}
    return Facts(
        interfaces={name: _interface(found) for name, found in ports.items()},
        adaptive_routing=routing or Absent(f"{COMMAND}: does not tell adaptive routing"),
        counters=counted(COMMAND, counters),
    )


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
    told = ((name, whole(under(port, "link", "stats").get(key))) for name, port in ports.items())
    return {name: count for name, count in told if count is not None}


def _adaptive(ports: Shown) -> Iterator[tuple[str, bool]]:
    for name, port in ports.items():
        told = under(port, "router", "adaptive-routing")
        is_on = switched(told.get("state", told.get("enable")))
        if is_on is not None:
            yield name, is_on
