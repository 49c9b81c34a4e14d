"""What a SONiC switch tells, in the shapes of NAPALM's getters. What it does not tell is -1 or empty."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from netkit.platforms.sonic.tables import Tables

Hashes = Mapping[str, Mapping[str, str]]
UNKNOWN = -1
COUNTERS = {
    "tx_errors": "SAI_PORT_STAT_IF_OUT_ERRORS",
    "rx_errors": "SAI_PORT_STAT_IF_IN_ERRORS",
    "tx_discards": "SAI_PORT_STAT_IF_OUT_DISCARDS",
    "rx_discards": "SAI_PORT_STAT_IF_IN_DISCARDS",
    "tx_octets": "SAI_PORT_STAT_IF_OUT_OCTETS",
    "rx_octets": "SAI_PORT_STAT_IF_IN_OCTETS",
    "tx_unicast_packets": "SAI_PORT_STAT_IF_OUT_UCAST_PKTS",
    "rx_unicast_packets": "SAI_PORT_STAT_IF_IN_UCAST_PKTS",
    "tx_multicast_packets": "SAI_PORT_STAT_IF_OUT_MULTICAST_PKTS",
    "rx_multicast_packets": "SAI_PORT_STAT_IF_IN_MULTICAST_PKTS",
    "tx_broadcast_packets": "SAI_PORT_STAT_IF_OUT_BROADCAST_PKTS",
    "rx_broadcast_packets": "SAI_PORT_STAT_IF_IN_BROADCAST_PKTS",
}
MOST_LANES = 8


def facts(shown: Mapping[str, str], version: str, tables: Tables, uptime_s: float) -> dict[str, Any]:
    """Return what the switch is."""
    name = str(tables.get("DEVICE_METADATA", {}).get("localhost", {}).get("hostname", ""))
    return {
        "uptime": uptime_s,
        "vendor": "SONiC",
        "os_version": version,
        "serial_number": shown.get("Serial Number", ""),
        "model": shown.get("Model Number") or shown.get("HwSKU", ""),
        "hostname": name,
        "fqdn": name,
        "interface_list": sorted(tables.get("PORT", {})),
    }


def interfaces(tables: Tables, status: Iterable[Mapping[str, str]]) -> dict[str, Any]:
    """Return the state of each port, of which the status says what is up. All have the MAC address of the switch."""
    mac = str(tables.get("DEVICE_METADATA", {}).get("localhost", {}).get("mac", "")).upper()
    shown = {row.get("Interface", ""): row for row in status}
    return {
        name: {
            "is_up": shown.get(name, {}).get("Oper") == "up",
            "is_enabled": row.get("admin_status") == "up",
            "description": str(row.get("description", "")),
            "last_flapped": -1.0,
            "speed": float(_whole(row.get("speed"))),
            "mtu": _whole(row.get("mtu")),
            "mac_address": mac,
        }
        for name, row in tables.get("PORT", {}).items()
    }


def counters(found: Hashes) -> dict[str, Any]:
    """Return the counters of each port."""
    return {
        port: {name: _whole(stats.get(field)) for name, field in COUNTERS.items()}
        for port, stats in found.items()
        if stats
    }


def bgp_neighbors(neighbors: Mapping[str, Any]) -> dict[str, Any]:
    """Return the BGP sessions of the default VRF."""
    router_id = next((str(one.get("localRouterId", "")) for one in neighbors.values()), "")
    return {"global": {"router_id": router_id, "peers": {name: _peer(one) for name, one in neighbors.items()}}}


def _peer(found: Mapping[str, Any]) -> dict[str, Any]:
    is_up = found.get("bgpState") == "Established"
    return {
        "local_as": _whole(found.get("localAs")),
        "remote_as": _whole(found.get("remoteAs")),
        "remote_id": str(found.get("remoteRouterId", "")),
        "is_up": is_up,
        "is_enabled": not found.get("adminShutDown", False),
        "description": str(found.get("nbrDesc", "")),
        "uptime": _whole(found.get("bgpTimerUpMsec")) // 1000 if is_up else UNKNOWN,
        "address_family": dict(_families(found.get("addressFamilyInfo"))),
    }


def _families(found: object) -> Iterator[tuple[str, dict[str, int]]]:
    for name, family in found.items() if isinstance(found, dict) else ():
        if name.endswith("Unicast") and isinstance(family, dict):
            accepted = _whole(family.get("acceptedPrefixCounter"))
            yield (
                name.removesuffix("Unicast"),
                {
                    "received_prefixes": accepted,
                    "accepted_prefixes": accepted,
                    "sent_prefixes": _whole(family.get("sentPrefixCounter")),
                },
            )


def lldp_neighbors(rows: Iterable[Mapping[str, str]]) -> dict[str, list[dict[str, str]]]:
    """Return who is at the other end of each cable."""
    found: dict[str, list[dict[str, str]]] = {}
    for row in rows:
        end = {"hostname": row.get("RemoteDevice", ""), "port": row.get("RemotePortID", "")}
        found.setdefault(row.get("LocalPort", ""), []).append(end)
    return found


def optics(found: Hashes) -> dict[str, Any]:
    """Return light and current by lane, of the modules that show any."""
    lanes = {port: list(_lanes(sensors)) for port, sensors in found.items()}
    return {port: {"physical_channels": {"channel": one}} for port, one in lanes.items() if one}


def _lanes(sensors: Mapping[str, str]) -> Iterator[dict[str, Any]]:
    for lane in range(1, MOST_LANES + 1):
        names = (f"rx{lane}power", f"tx{lane}power", f"tx{lane}bias")
        values = [_number(sensors.get(name)) for name in names]
        if any(value is not None for value in values):
            words = ("input_power", "output_power", "laser_bias_current")
            state = {word: _reading(value) for word, value in zip(words, values, strict=True)}
            yield {"index": lane - 1, "state": state}


def _reading(value: float | None) -> dict[str, float]:
    """Return one value; SONiC shows no average or extremes, so that they are the same value."""
    shown = float(UNKNOWN) if value is None else value
    return {"instant": shown, "avg": shown, "min": shown, "max": shown}


def _number(value: str | None) -> float | None:
    try:
        return float((value or "").removesuffix("dBm").removesuffix("mA"))
    except ValueError:
        return None


def _whole(value: object) -> int:
    """Return a count, whether it came as a number or as text; -1 when there is none."""
    if isinstance(value, int):
        return value
    return int(value) if isinstance(value, str) and value.isdecimal() else UNKNOWN
