"""BGP, BFD and the routing table, from FRR."""

import json
from collections.abc import Iterator, Mapping

from netkit.lab.personalities.nvue.show.look import NvueShowContext, Shown
from netkit.lab.personalities.nvue.tree import child, is_set, text

DETAIL_UNTIL = (5, 12)


def _asked(look: NvueShowContext, command: str, daemon: str = "bgpd") -> object:
    try:
        found: object = json.loads(look.system.node.vty(command, daemon) or "{}")
    except (OSError, json.JSONDecodeError):
        return {}
    return found


def _object(value: object) -> Mapping[str, object]:
    return value if isinstance(value, dict) else {}


def _int(value: object) -> int:
    return value if isinstance(value, int) else 0


def neighbors(look: NvueShowContext) -> Shown:
    """Return the neighbours; up to 5.11 in detail, later in brief unless asked otherwise."""
    is_detailed = look.view == "detail" or not look.is_since(*DETAIL_UNTIL)
    one = _detail if is_detailed else _brief
    found = _object(_asked(look, "show bgp neighbors json"))
    return {name: one(look, name, _object(value)) for name, value in found.items() if isinstance(value, dict)}


def _family(found: Mapping[str, object]) -> Shown:
    family = _object(_object(found.get("addressFamilyInfo")).get("ipv4Unicast"))
    received, sent = _int(family.get("acceptedPrefixCounter")), _int(family.get("sentPrefixCounter"))
    return {
        "ipv4-unicast": {"rx-prefix": received, "tx-prefix": sent, "update-group": _int(family.get("updateGroupId"))}
    }


def _brief(look: NvueShowContext, name: str, found: Mapping[str, object]) -> Shown:
    stats = _object(found.get("messageStats"))
    shown: dict[str, object] = {
        "address-family": _family(found),
        "message-stats": {"rx-total": _int(stats.get("totalRecv")), "tx-total": _int(stats.get("totalSent"))},
        "remote-as": str(_int(found.get("remoteAs"))),
        "session-state": str(found.get("bgpState", "")).lower(),
        "uptime": _int(found.get("bgpTimerUpMsec")) // 1000,
    }
    group = text(look.tree, "vrf", "default", "router", "bgp", "neighbor", name, "peer-group")
    return {**shown, "peer-group": group} if group else shown


def _detail(look: NvueShowContext, name: str, found: Mapping[str, object]) -> Shown:
    configured = child(look.tree, "vrf", "default", "router", "bgp", "neighbor", name)
    return {
        **_brief(look, name, found),
        "type": text(configured, "type") or "numbered",
        "bgp-version": _int(found.get("bgpVersion")),
        "connections-dropped": _int(found.get("connectionsDropped")),
        "connections-established": _int(found.get("connectionsEstablished")),
        "graceful-shutdown": look.word(is_on=is_set(configured, "graceful-shutdown")),
        "last-reset-reason": str(found.get("lastResetDueTo", "")),
        "last-reset-time": _int(found.get("lastResetTimerMsecs")),
        "local-as": {"asn": _int(found.get("localAs"))},
        "local-ip": str(found.get("hostLocal", "")),
        "remote-ip": str(found.get("hostForeign", "")),
        "remote-router-id": str(found.get("remoteRouterId", "")),
        "timers": {
            "hold": _int(found.get("bgpTimerHoldTimeMsecs")) // 1000,
            "keepalive": _int(found.get("bgpTimerKeepAliveIntervalMsecs")) // 1000,
        },
    }


def bfd_peers(look: NvueShowContext) -> Shown:
    """Return the BFD sessions by local discriminator."""
    found = _asked(look, "show bfd peers json", "bfdd")
    peers = [_object(peer) for peer in found] if isinstance(found, list) else []
    return {
        str(_int(peer.get("id"))): {
            "interface": str(peer.get("interface", "")),
            "local": str(peer.get("local", "")),
            "peer": str(peer.get("peer", "")),
            "status": str(peer.get("status", "")),
            "uptime": _int(peer.get("uptime")),
            "multiplier": _int(peer.get("detect-multiplier")),
            "tx-interval": _int(peer.get("transmit-interval")),
            "rx-interval": _int(peer.get("receive-interval")),
        }
        for peer in peers
    }


def table(look: NvueShowContext) -> Shown:
    """Return every route to each prefix."""
    try:
        found = json.loads(look.system.node.vty("show ip route json", "zebra") or "{}")
    except (OSError, json.JSONDecodeError):
        return {}
    routes = found.items() if isinstance(found, dict) else ()
    return {prefix: {"route-entry": dict(_entries(entries))} for prefix, entries in routes}


def _entries(entries: object) -> Iterator[tuple[str, Shown]]:
    rows = [entry for entry in entries if isinstance(entry, dict)] if isinstance(entries, list) else []
    for at, entry in enumerate(rows, 1):
        flags: dict[str, Shown] = {flag: {} for flag in ("selected", "installed") if entry.get(flag)}
        yield (
            str(at),
            {
                "protocol": str(entry.get("protocol", "")),
                "distance": entry.get("distance", 0),
                "metric": entry.get("metric", 0),
                "flags": flags,
                "via-entry": dict(_ways(entry.get("nexthops"))),
            },
        )


def _ways(ways: object) -> Iterator[tuple[str, Shown]]:
    for way in ways if isinstance(ways, list) else ():
        if isinstance(way, dict) and way.get("interfaceName"):
            kind = "ip-address" if way.get("ip") else "interface"
            yield str(way.get("ip") or way["interfaceName"]), {"type": kind, "interface": way["interfaceName"]}
