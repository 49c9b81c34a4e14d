"""`nv show`: which view answers which path, by release; BGP, BFD and routes from FRR."""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress

from netkit.lab.personalities.nvue import show_ports, show_qos
from netkit.lab.personalities.nvue.schema import is_within
from netkit.lab.personalities.nvue.show_context import NvueShowContext, Shown
from netkit.lab.personalities.nvue.system import NvueCommandError, NvueSystem
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


View = Callable[[NvueShowContext], Shown]
VIEWS: tuple[tuple[str, View], ...] = (
    ("interface", show_ports.interfaces),
    ("interface lldp", show_ports.all_ports),
    ("interface qos-congestion-control @>=5.14", show_ports.aspect("qos-congestion-control")),
    ("interface qos-roce-counters @>=5.14", show_ports.aspect("qos-roce-counters")),
    ("interface qos-roce-status @>=5.14", show_ports.aspect("qos-roce-status")),
    ("interface *", show_ports.interface),
    ("interface * counters qos", show_qos.qos_counters),
    ("interface * link phy health @>=5.15", show_ports.health),
    ("interface * link phy-detail @<5.15", show_ports.health),
    ("interface * qos congestion-control", show_qos.port_ecn),
    ("interface * qos pfc-watchdog", show_qos.watchdog),
    ("interface * qos roce counters", show_qos.roce_counters),
    ("interface * qos roce status", show_qos.port_roce),
    ("platform", show_ports.platform),
    ("platform transceiver", show_ports.all_modules),
    ("qos", show_qos.whole),
    ("qos roce", show_qos.roce),
    ("system", show_ports.system),
    ("vrf default router bfd peers @>=5.15", bfd_peers),
    ("vrf default router bgp neighbor", neighbors),
    ("vrf default router rib ipv4 route", table),
)
"""What lies below a view is found in what the view shows."""

ASPECTS: Mapping[str, frozenset[str]] = {
    "interface": frozenset({*show_ports.PER_PORT, "lldp"}),
    "vrf default router bgp neighbor": frozenset({"brief", "detail"}),
}
"""What `--view` may ask of a path."""


def find(words: Sequence[str], version: tuple[int, ...]) -> tuple[View, tuple[str, ...]] | None:
    """Return the view of a path and the names the path holds."""
    for said, view in VIEWS:
        pattern, *limits = said.split(" @")
        steps = pattern.split()
        if len(steps) != len(words) or not all(is_within(version, limit) for limit in limits):
            continue
        if all(step in {"*", word} for step, word in zip(steps, words, strict=True)):
            return view, tuple(word for step, word in zip(steps, words, strict=True) if step == "*")
    return None


def found_below(system: NvueSystem, path: Sequence[str]) -> object:
    """Return what the nearest view above a path shows there; None when none shows it."""
    for length in range(len(path) - 1, 0, -1):
        found = find(path[:length], system.chassis.version)
        if found:
            shown: object = found[0](NvueShowContext(system, found[1]))
            for word in path[length:]:
                shown = shown.get(word) if isinstance(shown, Mapping) else None
            return shown
    return None


Steps = tuple[str, ...]


def included(system: NvueSystem, path: Sequence[str], patterns: Sequence[str], whole: Callable[[], object]) -> object:
    """Return the parts of an object that some patterns name; a part of ports that has a view is told by that view."""
    look, result = NvueShowContext(system), dict[str, object]()
    for steps in _steps(patterns):
        own = dict(_parts(look, steps[1:])) if tuple(path) == ("interface",) and steps[:1] == ("*",) else {}
        _add(result, own or _only(whole(), [steps]))
    return result


def _parts(look: NvueShowContext, steps: Steps) -> Iterator[tuple[str, object]]:
    """Yield what each port tells by the view of one part, in its place in the tree."""
    found = find(("interface", "*", *steps), look.system.chassis.version)
    for name in look.interfaces if found else ():
        with suppress(NvueCommandError):  # of what has no such part
            part: object = found[0](look.at(name)) if found else {}
            for word in reversed(steps):
                part = {word: part}
            yield name, part


def _add(result: dict[str, object], more: object) -> None:
    """Add parts to others."""
    for key, value in more.items() if isinstance(more, Mapping) else ():
        before = result.setdefault(key, value)
        if before is not value and isinstance(before, Mapping):
            result[key] = merged = dict(before)
            _add(merged, value)


def only(found: object, patterns: Sequence[str]) -> object:
    """Return the parts that one of some patterns names; all of it when there are none."""
    return _only(found, list(_steps(patterns)))


def _steps(patterns: Sequence[str]) -> Iterator[Steps]:
    yield from (tuple(filter(None, pattern.split("/"))) for one in patterns for pattern in one.split(","))


def _only(found: object, patterns: Sequence[Steps]) -> object:
    if not patterns or not isinstance(found, Mapping) or any(not pattern for pattern in patterns):
        return found
    result: dict[str, object] = {}
    for key, value in found.items():
        rest_of = [pattern[1:] for pattern in patterns if pattern[0] in {"*", key}]
        kept = _only(value, rest_of) if rest_of else {}
        if rest_of and (kept != {} or value == {}):
            result[key] = kept
    return result
