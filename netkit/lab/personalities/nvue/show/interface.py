"""Interfaces: link, counters, addresses, and LLDP neighbours from lldpd."""

import json
import re
from collections.abc import Callable, Iterator, Mapping

from netkit.lab.personalities.nvue.rules import is_negotiating
from netkit.lab.personalities.nvue.schema import PORT
from netkit.lab.personalities.nvue.show import counters
from netkit.lab.personalities.nvue.show.look import NvueShowContext, Shown
from netkit.lab.personalities.nvue.tree import Tree, child, copy, hidden

COMMAND = ("lldpcli", "-f", "json0", "show", "neighbors", "details")
CAPABILITIES = {"Bridge": "is-bridge", "Router": "is-router", "Station": "is-station"}


def neighbors(look: NvueShowContext) -> Mapping[str, Mapping[str, Shown]]:
    """Return the neighbours of each interface, by system name."""
    done = look.system.node.run(*COMMAND)
    try:
        found = json.loads(done.stdout or "{}")
    except json.JSONDecodeError:
        return {}
    shown: dict[str, dict[str, Shown]] = {}
    for entry in _items(_first(found, "lldp"), "interface"):
        chassis, port = _first(entry, "chassis"), _first(entry, "port")
        name = _text(chassis, "name") or _text(chassis, "id")
        shown.setdefault(str(entry.get("name", "")), {})[name] = _neighbor(entry, chassis, port)
    return shown


def _neighbor(entry: Shown, chassis: Shown, port: Shown) -> Shown:
    able: dict[str, Shown] = {
        CAPABILITIES[str(one.get("type"))]: {}
        for one in _items(chassis, "capability")
        if one.get("enabled") and one.get("type") in CAPABILITIES
    }
    ident = _first(port, "id")
    return {
        "age": str(_seconds(str(entry.get("age", "")))),
        "bridge": {"vlan": {}},
        "chassis": {
            "capability": able,
            "chassis-id": _text(chassis, "id"),
            "management-address-ipv4": _text(chassis, "mgmt-ip"),
            "system-name": _text(chassis, "name"),
            "system-description": _text(chassis, "descr"),
        },
        "lldp-med": {},
        "port": {
            "description": _text(port, "descr"),
            "name": str(ident.get("value", "")),
            "ttl": _int(_text(port, "ttl")),
            "type": str(ident.get("type", "")),
        },
    }


def _items(found: object, key: str) -> Iterator[Shown]:
    items = found.get(key) if isinstance(found, dict) else None
    yield from (item for item in items or () if isinstance(item, dict))


def _first(found: object, key: str) -> Shown:
    return next(_items(found, key), {})


def _text(found: object, key: str) -> str:
    return str(_first(found, key).get("value", ""))


def _int(text: str) -> int:
    return int(text) if text.isdigit() else 0


def _seconds(age: str) -> int:
    parts = re.fullmatch(r"(\d+) days?, (\d+):(\d+):(\d+)", age)
    days, hours, minutes, seconds = map(int, parts.groups()) if parts else (0, 0, 0, 0)
    return ((days * 24 + hours) * 60 + minutes) * 60 + seconds


def all_ports(look: NvueShowContext) -> Shown:
    """Return the interfaces that have neighbours."""
    return {name: {"lldp": {"neighbor": found}} for name, found in neighbors(look).items()}


STATUS_SINCE = (5, 11)


def interfaces(look: NvueShowContext) -> Shown:
    """Return all interfaces, or one aspect of the ports."""
    if look.view == "lldp":
        return all_ports(look)
    if look.view in PER_PORT:
        return aspect(look.view)(look)
    return {name: interface(look.at(name)) for name in look.interfaces}


def aspect(name: str) -> Callable[[NvueShowContext], Shown]:
    """Return the view of one aspect of the ports."""
    return lambda look: {port: PER_PORT[name](look.at(port)) for port in look.ports if port in look.readings}


def interface(look: NvueShowContext) -> Shown:
    """Return one interface: its configuration, with what the link shows and whether it routes adaptively over it."""
    name = look.name
    shown: dict[str, object] = dict(hidden(child(look.tree, "interface", name)))
    shown.setdefault("type", "swp" if PORT.fullmatch(name) else {"eth0": "eth", "lo": "loopback"}.get(name, "svi"))
    address = "ipv4" if look.is_since(5, 15) else "ip"
    shown.setdefault(address, {"address": {}})
    shown["link"] = link(look)
    if name in look.readings:
        routing = child(look.tree, "interface", name, "router")
        shown["router"] = {**routing, "adaptive-routing": adaptive_routing(look)}
    return shown


def link(look: NvueShowContext) -> Shown:
    """Return the link of one interface."""
    configured: Tree = child(look.tree, "interface", look.name, "link")
    reading = look.readings.get(look.name)
    if look.name not in look.ports or reading is None:
        return _unread(look, configured)
    shown: dict[str, object] = {
        "auto-negotiate": look.word(is_on=is_negotiating(child(look.tree, "interface", look.name))),
        "mac-address" if look.is_since(5, 15) else "mac": reading.mac,
        "mtu": reading.mtu_bytes,
        "speed": f"{reading.speed_gbps}G",
        "fec": reading.fec.mode or "auto",
        "state": {"up" if reading.is_up else "down": {}},
        "stats": stats(look),
    }
    if look.is_since(*STATUS_SINCE):
        shown["admin-status"] = "up" if reading.is_enabled else "down"
        shown["oper-status"] = "up" if reading.is_up else "down"
    return shown


def _unread(look: NvueShowContext, configured: Tree) -> Shown:
    """Return the link of what has no cable: the management port, the loopback, VLANs, free ports, split cages."""
    if PORT.fullmatch(look.name) and look.name not in look.ports:
        return dict(configured)
    is_up = look.name in {"eth0", "lo"} or ("down" not in child(configured, "state") and look.name not in look.ports)
    shown: dict[str, object] = {key: copy(value) for key, value in configured.items()}
    shown["state"] = {"up" if is_up else "down": {}}
    if look.is_since(*STATUS_SINCE):
        state = look.states.get(look.name)
        shown["admin-status"] = "up" if is_up or (state and state.is_enabled) else "down"
        shown["oper-status"] = "up" if is_up else "down"
    return shown


def stats(look: NvueShowContext) -> Shown:
    """Return the counters of a port's link."""
    reading = look.port
    traffic, changes = reading.traffic, reading.carrier_changes
    shown: dict[str, object] = {
        "carrier-transitions": changes,
        "in-bytes": traffic.rx_bytes,
        "in-drops": traffic.rx_dropped,
        "in-errors": traffic.rx_errors,
        "in-pkts": traffic.rx_packets,
        "out-bytes": traffic.tx_bytes,
        "out-drops": traffic.tx_dropped,
        "out-errors": traffic.tx_errors,
        "out-pkts": traffic.tx_packets,
    }
    if look.is_since(5, 15):
        shown |= {"carrier-up-count": (changes + 1) // 2, "carrier-down-count": changes // 2}
    return shown


def adaptive_routing(look: NvueShowContext) -> Shown:
    """Return whether a port takes part in adaptive routing."""
    configured = child(look.tree, "interface", look.name, "router", "adaptive-routing")
    key = "state" if look.is_since(5, 15) else "enable"
    return {**configured, key: look.word(is_on=look.port.adaptive_routing)}


PER_PORT: Mapping[str, Callable[[NvueShowContext], Shown]] = {
    "qos-congestion-control": counters.port_ecn,
    "qos-roce-counters": counters.roce_counters,
    "qos-roce-status": counters.port_roce,
}
"""The aspects of all ports that `--view` shows at once."""
