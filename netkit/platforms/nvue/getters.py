"""What `nv show … -o json` tells, in the shapes of NAPALM's getters. What a release does not tell is -1 or empty."""

import re
from collections.abc import Iterator, Mapping
from typing import Any

from netkit.platforms.nvue.reply import seconds, version_of

Shown = Mapping[str, Any]
SPEED = re.compile(r"(\d+(?:\.\d+)?)([MG])")
NUMBER = re.compile(r"-?\d+(?:\.\d+)?")
DBM = re.compile(r"(-?\d+(?:\.\d+)?) dBm")
UNKNOWN = -1


def facts(system: Shown, platform: Shown, interfaces: Shown) -> dict[str, Any]:
    """Return what the switch is."""
    name = str(system.get("hostname", ""))
    return {
        "uptime": float(seconds(system.get("uptime", UNKNOWN))),
        "vendor": str(platform.get("manufacturer") or "NVIDIA"),
        "os_version": version_of(system),
        "serial_number": str(platform.get("serial-number", "")),
        "model": str(platform.get("product-name") or system.get("platform", "")),
        "hostname": name,
        "fqdn": name,
        "interface_list": sorted(interfaces),
    }


def interfaces(shown: Shown) -> dict[str, Any]:
    """Return the state of each interface."""
    return {name: _interface(found) for name, found in _objects(shown)}


def _interface(found: Shown) -> dict[str, Any]:
    link = _object(found, "link")
    is_up = _oper_status(link) == "up"
    return {
        "is_up": is_up,
        "is_enabled": str(link.get("admin-status", "up")) == "up",
        "description": str(found.get("description", "")),
        "last_flapped": -1.0,
        "speed": _megabits(str(link.get("speed", ""))),
        "mtu": _whole(link.get("mtu")),
        "mac_address": str(link.get("mac-address") or link.get("mac") or "").upper(),
    }


def _oper_status(link: Shown) -> str:
    """Return whether a link is up: a word since 5.11, the name of an object before."""
    state = link.get("state")
    return str(link.get("oper-status") or next(iter(state), "") if isinstance(state, dict) else state or "")


def _megabits(speed: str) -> float:
    found = SPEED.fullmatch(speed)
    return float(found[1]) * (1000 if found[2] == "G" else 1) if found else -1.0


def counters(shown: Shown) -> dict[str, Any]:
    """Return the counters of each interface that has some."""
    found = ((name, _object(_object(one, "link"), "stats")) for name, one in _objects(shown))
    return {name: _counters(stats) for name, stats in found if stats}


def _counters(stats: Shown) -> dict[str, int]:
    """Return counters; NVUE does not tell unicast, multicast and broadcast apart."""
    told = {
        "tx_errors": "out-errors",
        "rx_errors": "in-errors",
        "tx_discards": "out-drops",
        "rx_discards": "in-drops",
        "tx_octets": "out-bytes",
        "rx_octets": "in-bytes",
        "tx_unicast_packets": "out-pkts",
        "rx_unicast_packets": "in-pkts",
    }
    names = ("tx_multicast_packets", "rx_multicast_packets", "tx_broadcast_packets", "rx_broadcast_packets")
    return {**{name: _whole(stats.get(key)) for name, key in told.items()}, **dict.fromkeys(names, UNKNOWN)}


def bgp_neighbors(bgp: Shown, neighbors: Shown) -> dict[str, Any]:
    """Return the BGP sessions of the default VRF."""
    local_as = _whole(bgp.get("autonomous-system"))
    peers = {name: _peer(found, local_as) for name, found in _objects(neighbors)}
    return {"global": {"router_id": str(bgp.get("router-id", "")), "peers": peers}}


def _peer(found: Shown, local_as: int) -> dict[str, Any]:
    families = {
        name.partition("-")[0]: {
            "received_prefixes": _whole(family.get("rx-prefix")),
            "accepted_prefixes": _whole(family.get("rx-prefix")),
            "sent_prefixes": _whole(family.get("tx-prefix")),
        }
        for name, family in _objects(_object(found, "address-family"))
        if name.endswith("-unicast")
    }
    return {
        "local_as": _whole(_object(found, "local-as").get("asn", local_as)),
        "remote_as": _whole(found.get("remote-as")),
        "remote_id": str(found.get("remote-router-id", "")),
        "is_up": str(found.get("session-state", "")).lower() == "established",
        "is_enabled": str(found.get("shutdown", "off")) not in {"on", "enabled"},
        "description": str(found.get("description", "")),
        "uptime": seconds(found.get("uptime", UNKNOWN)),
        "address_family": families,
    }


def lldp_neighbors(shown: Shown) -> dict[str, Any]:
    """Return who is at the other end, the freshest first: NVUE keeps showing who was there before."""
    found = {name: _object(_object(one, "lldp"), "neighbor") for name, one in _objects(shown)}
    return {name: list(_ends(neighbors)) for name, neighbors in found.items() if neighbors}


def _ends(neighbors: Shown) -> Iterator[dict[str, str]]:
    for name, found in sorted(_objects(neighbors), key=lambda item: _whole(item[1].get("age"))):
        port = _object(found, "port")
        is_address = port.get("type") == "mac"
        shown = port.get("description") if is_address else port.get("name")
        yield {"hostname": str(_object(found, "chassis").get("system-name") or name), "port": str(shown or "")}


def optics(shown: Shown) -> dict[str, Any]:
    """Return light and current by lane, of the modules that show any."""
    found = {name: list(_lanes(_object(one, "channel"))) for name, one in _objects(shown)}
    return {name: {"physical_channels": {"channel": lanes}} for name, lanes in found.items() if lanes}


def _lanes(channels: Shown) -> Iterator[dict[str, Any]]:
    for index, (_, lane) in enumerate(_objects(channels)):
        yield {
            "index": index,
            "state": {
                "input_power": _reading(lane, "rx-power", "power", DBM),
                "output_power": _reading(lane, "tx-power", "power", DBM),
                "laser_bias_current": _reading(lane, "tx-bias-current", "current", NUMBER),
            },
        }


def _reading(lane: Shown, name: str, key: str, pattern: re.Pattern[str]) -> dict[str, float]:
    """Return one value; NVUE shows no average or extremes, so that they are the same value."""
    node = lane.get(name)
    text = str(node.get(key, "") if isinstance(node, dict) else node or "")
    found = pattern.search(text)
    value = float(found[1] if found and found.groups() else found[0]) if found else float(UNKNOWN)
    return {"instant": value, "avg": value, "min": value, "max": value}


def _objects(found: Shown) -> Iterator[tuple[str, Shown]]:
    yield from ((name, one) for name, one in found.items() if isinstance(one, dict))


def _object(found: Shown, key: str) -> Shown:
    one = found.get(key)
    return one if isinstance(one, dict) else {}


def _whole(value: object) -> int:
    """Return a count, whether it came as a number or as text; -1 when there is none."""
    if isinstance(value, int):
        return value
    return int(value) if isinstance(value, str) and value.isdecimal() else UNKNOWN
