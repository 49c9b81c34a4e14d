"""Interfaces: link, counters, addresses."""

from collections.abc import Callable, Mapping

from netkit.lab.personalities.nvue.kinds import PORT
from netkit.lab.personalities.nvue.rules import is_negotiating
from netkit.lab.personalities.nvue.secret import hidden
from netkit.lab.personalities.nvue.show import lldp, qos, queue
from netkit.lab.personalities.nvue.show.look import Look, Shown
from netkit.lab.personalities.nvue.tree import Tree, child, copy
from netkit.lab.reading import PortReading

STATUS_SINCE = (5, 11)


def interfaces(look: Look) -> Shown:
    """Return all interfaces, or one aspect of the ports."""
    if look.view == "lldp":
        return lldp.all_ports(look)
    if look.view in PER_PORT:
        return aspect(look.view)(look)
    return {name: interface(look.at(name)) for name in look.interfaces}


def aspect(name: str) -> Callable[[Look], Shown]:
    """Return the view of one aspect of the ports."""
    return lambda look: {port: PER_PORT[name](look.at(port)) for port in look.ports if port in look.readings}


def interface(look: Look) -> Shown:
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


def link(look: Look) -> Shown:
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


def _unread(look: Look, configured: Tree) -> Shown:
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


def stats(look: Look) -> Shown:
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


def counters(look: Look) -> Shown:
    """Return what the counters view of one port has."""
    return _columns(look.port)


def _columns(reading: PortReading) -> Shown:
    traffic = reading.traffic
    return {
        "mtu": reading.mtu_bytes,
        "rx-ok": traffic.rx_packets,
        "rx-err": traffic.rx_errors,
        "rx-drp": traffic.rx_dropped,
        "rx-ovr": 0,
        "tx-ok": traffic.tx_packets,
        "tx-err": traffic.tx_errors,
        "tx-drp": traffic.tx_dropped,
        "tx-ovr": 0,
    }


def brief(look: Look) -> Shown:
    """Return the state of one port in a few words."""
    reading = look.port
    return {
        "type": "swp",
        "link": {
            "admin-status": "up" if reading.is_enabled else "down",
            "oper-status": "up" if reading.is_up else "down",
            "mtu": reading.mtu_bytes,
            "speed": f"{reading.speed_gbps}G",
        },
    }


def adaptive_routing(look: Look) -> Shown:
    """Return whether a port takes part in adaptive routing."""
    configured = child(look.tree, "interface", look.name, "router", "adaptive-routing")
    key = "state" if look.is_since(5, 15) else "enable"
    return {**configured, key: look.word(is_on=look.port.adaptive_routing)}


PER_PORT: Mapping[str, Callable[[Look], Shown]] = {
    "brief": brief,
    "counters": counters,
    "qos-congestion-control": qos.port_ecn,
    "qos-roce-counters": queue.roce_counters,
    "qos-roce-status": qos.port_roce,
    "status": brief,
}
"""The aspects of all ports that `--view` shows at once."""
