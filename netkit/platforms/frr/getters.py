"""What Linux and FRR tell, in the shapes of NAPALM's getters. What is not told is -1 or empty."""

from collections.abc import Iterable, Mapping
from typing import Any

from netkit.platforms.frr.reply import named

UNKNOWN = -1


def facts(hostname: str, version: str, uptime: str, links: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    """Return what the switch is."""
    words = uptime.split()
    return {
        "uptime": float(words[0]) if words else -1.0,
        "vendor": "Linux",
        "os_version": version,
        "serial_number": "",
        "model": "FRR",
        "hostname": hostname,
        "fqdn": hostname,
        "interface_list": sorted(str(link.get("ifname", "")) for link in links),
    }


def interfaces(links: Iterable[Mapping[str, Any]], described: Mapping[str, Any]) -> dict[str, Any]:
    """Return the state of each interface."""
    return {str(link.get("ifname", "")): _interface(link, described) for link in links}


def _interface(link: Mapping[str, Any], described: Mapping[str, Any]) -> dict[str, Any]:
    flags = link.get("flags", [])
    about = described.get(str(link.get("ifname", "")), {})
    return {
        "is_up": "LOWER_UP" in flags and "UP" in flags,
        "is_enabled": "UP" in flags,
        "description": str(about.get("description", "")) if isinstance(about, dict) else "",
        "last_flapped": -1.0,
        "speed": -1.0,
        "mtu": int(link.get("mtu", UNKNOWN)),
        "mac_address": str(link.get("address", "")).upper(),
    }


def counters(links: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    """Return the counters of each interface; the kernel does not tell unicast and broadcast apart."""
    return {str(link.get("ifname", "")): _counters(link.get("stats64", {})) for link in links}


def _counters(stats: Mapping[str, Any]) -> dict[str, int]:
    found: dict[str, int] = {}
    for way in ("rx", "tx"):
        told = stats.get(way, {})
        found |= {
            f"{way}_errors": int(told.get("errors", UNKNOWN)),
            f"{way}_discards": int(told.get("dropped", UNKNOWN)),
            f"{way}_octets": int(told.get("bytes", UNKNOWN)),
            f"{way}_unicast_packets": int(told.get("packets", UNKNOWN)),
            f"{way}_multicast_packets": int(told.get("multicast", UNKNOWN)),
            f"{way}_broadcast_packets": UNKNOWN,
        }
    return found


def bgp_neighbors(summary: Mapping[str, Any], described: Mapping[str, Any]) -> dict[str, Any]:
    """Return the BGP sessions of the default VRF, by interface or address."""
    peers = {name: _peer(peer, described.get(name, {}), summary) for name, peer in named(summary.get("peers"))}
    return {"global": {"router_id": str(summary.get("routerId", "")), "peers": peers}}


def _peer(peer: Mapping[str, Any], told: Mapping[str, Any], summary: Mapping[str, Any]) -> dict[str, Any]:
    received = int(peer.get("pfxRcd", 0))
    is_up = peer.get("state") == "Established"
    return {
        "local_as": int(summary.get("as", UNKNOWN)),
        "remote_as": int(peer.get("remoteAs", UNKNOWN)),
        "remote_id": str(told.get("remoteRouterId", "")),
        "is_up": is_up,
        "is_enabled": "Admin" not in str(peer.get("state", "")),
        "description": str(told.get("nbrDesc", "")),
        "uptime": int(peer.get("peerUptimeMsec", 0)) // 1000 if is_up else UNKNOWN,
        "address_family": {
            "ipv4": {
                "received_prefixes": received,
                "accepted_prefixes": received,
                "sent_prefixes": int(peer.get("pfxSnt", UNKNOWN)),
            }
        },
    }


def lldp_neighbors(shown: Mapping[str, Any]) -> dict[str, Any]:
    """Return who is at the other end of each cable, as lldpcli's json0 tells."""
    found: dict[str, list[dict[str, str]]] = {}
    for lldp in _list(shown.get("lldp")):
        for interface in _list(lldp.get("interface")):
            end = {"hostname": _told(interface, "chassis", "name"), "port": _told(interface, "port", "id")}
            found.setdefault(str(interface.get("name", "")), []).append(end)
    return found


def _told(interface: Mapping[str, Any], about: str, key: str) -> str:
    """Return the first value of a key; json0 puts everything into lists."""
    for one in _list(interface.get(about)):
        for value in _list(one.get(key)):
            return str(value.get("value", ""))
    return ""


def _list(found: object) -> list[Mapping[str, Any]]:
    return [one for one in found if isinstance(one, dict)] if isinstance(found, list) else []
