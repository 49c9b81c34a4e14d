"""`nv show`: the view of each path by release; BGP, BFD and routes from FRR."""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress

from netkit.lab.personalities.nvue import show_ports, show_qos
from netkit.lab.personalities.nvue.schema import is_within
from netkit.lab.personalities.nvue.system import NvueCommandError, NvueShowContext, NvueSystem, Shown
from netkit.lab.personalities.nvue.tree import child, is_set, text

DETAIL_UNTIL = (5, 12)


def _vty_json(context: NvueShowContext, command: str, daemon: str) -> object:
    try:
        found: object = json.loads(context.system.node.vty(command, daemon) or "{}")
    except (OSError, json.JSONDecodeError):
        return {}
    return found


def _object(value: object) -> Mapping[str, object]:
    return value if isinstance(value, dict) else {}


def _int(value: object) -> int:
    return value if isinstance(value, int) else 0


def neighbors(context: NvueShowContext) -> Shown:
    """The BGP neighbours: in detail up to 5.11, in brief from 5.12 on by default."""
    is_detailed = context.view == "detail" or not context.is_since(*DETAIL_UNTIL)
    show = _detail if is_detailed else _brief
    found = _object(_vty_json(context, "show bgp neighbors json", "bgpd"))
    return {name: show(context, name, _object(value)) for name, value in found.items() if isinstance(value, dict)}


def _brief(context: NvueShowContext, name: str, found: Mapping[str, object]) -> Shown:
    stats = _object(found.get("messageStats"))
    family = _object(_object(found.get("addressFamilyInfo")).get("ipv4Unicast"))
    shown: dict[str, object] = {
        "address-family": {
            "ipv4-unicast": {
                "rx-prefix": _int(family.get("acceptedPrefixCounter")),
                "tx-prefix": _int(family.get("sentPrefixCounter")),
                "update-group": _int(family.get("updateGroupId")),
            }
        },
        "message-stats": {"rx-total": _int(stats.get("totalRecv")), "tx-total": _int(stats.get("totalSent"))},
        "remote-as": str(_int(found.get("remoteAs"))),
        "session-state": str(found.get("bgpState", "")).lower(),
        "uptime": _int(found.get("bgpTimerUpMsec")) // 1000,
    }
    group = text(context.tree, "vrf", "default", "router", "bgp", "neighbor", name, "peer-group")
    return {**shown, "peer-group": group} if group else shown


def _detail(context: NvueShowContext, name: str, found: Mapping[str, object]) -> Shown:
    configured = child(context.tree, "vrf", "default", "router", "bgp", "neighbor", name)
    return {
        **_brief(context, name, found),
        "type": text(configured, "type") or "numbered",
        "bgp-version": _int(found.get("bgpVersion")),
        "connections-dropped": _int(found.get("connectionsDropped")),
        "connections-established": _int(found.get("connectionsEstablished")),
        "graceful-shutdown": context.word(is_on=is_set(configured, "graceful-shutdown")),
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


def bfd_peers(context: NvueShowContext) -> Shown:
    """The BFD sessions by local discriminator."""
    found = _vty_json(context, "show bfd peers json", "bfdd")
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


def table(context: NvueShowContext) -> Shown:
    """Every route to each prefix."""
    found = _object(_vty_json(context, "show ip route json", "zebra"))
    return {prefix: {"route-entry": dict(_entries(entries))} for prefix, entries in found.items()}


def _entries(entries: object) -> Iterator[tuple[str, Shown]]:
    rows = [entry for entry in entries if isinstance(entry, dict)] if isinstance(entries, list) else []
    for at, entry in enumerate(rows, 1):
        flags: dict[str, Shown] = {flag: {} for flag in ("selected", "installed") if entry.get(flag)}
        vias: dict[str, Shown] = {}
        for hop in entry.get("nexthops") or ():
            if isinstance(hop, dict) and hop.get("interfaceName"):
                kind = "ip-address" if hop.get("ip") else "interface"
                vias[str(hop.get("ip") or hop["interfaceName"])] = {"type": kind, "interface": hop["interfaceName"]}
        yield (
            str(at),
            {
                "protocol": str(entry.get("protocol", "")),
                "distance": entry.get("distance", 0),
                "metric": entry.get("metric", 0),
                "flags": flags,
                "via-entry": vias,
            },
        )


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
    ("mlag", show_ports.mlag),
    ("platform", show_ports.platform),
    ("platform transceiver", show_ports.all_modules),
    ("qos", show_qos.whole),
    ("qos roce", show_qos.roce),
    ("system", show_ports.system),
    ("vrf default router bfd peers @>=5.15", bfd_peers),
    ("vrf default router bgp neighbor", neighbors),
    ("vrf default router rib ipv4 route", table),
)
"""A path below a view is looked up in the view's result."""

ASPECTS: Mapping[str, frozenset[str]] = {
    "interface": frozenset({*show_ports.PER_PORT, "lldp"}),
    "vrf default router bgp neighbor": frozenset({"brief", "detail"}),
}
"""The values of `--view` per path."""


def find(words: Sequence[str], version: tuple[int, ...]) -> tuple[View, tuple[str, ...]] | None:
    """The view of a path and the names in the path."""
    for form, view in VIEWS:
        pattern, *limits = form.split(" @")
        steps = pattern.split()
        if len(steps) != len(words) or not all(is_within(version, limit) for limit in limits):
            continue
        if all(step in {"*", word} for step, word in zip(steps, words, strict=True)):
            return view, tuple(word for step, word in zip(steps, words, strict=True) if step == "*")
    return None


def found_below(system: NvueSystem, path: Sequence[str]) -> object:
    """The part of the nearest enclosing view; None if no view shows it."""
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
    """The parts of an object that match patterns; a part of all ports comes from its own view if it has one."""
    context, result = NvueShowContext(system), dict[str, object]()
    for steps in _steps(patterns):
        is_of_ports = tuple(path) == ("interface",) and steps[:1] == ("*",)
        parts = dict(_parts(context, steps[1:])) if is_of_ports else {}
        _add(result, parts or _only(whole(), [steps]))
    return result


def _parts(context: NvueShowContext, steps: Steps) -> Iterator[tuple[str, object]]:
    """Yield each port with the part its view shows, at its place in the tree."""
    found = find(("interface", "*", *steps), context.system.chassis.version)
    for name in context.interfaces if found else ():
        with suppress(NvueCommandError):  # an interface without this part
            part: object = found[0](context.at(name)) if found else {}
            for word in reversed(steps):
                part = {word: part}
            yield name, part


def _add(result: dict[str, object], more: object) -> None:
    """Merge parts into the result."""
    for key, value in more.items() if isinstance(more, Mapping) else ():
        before = result.setdefault(key, value)
        if before is not value and isinstance(before, Mapping):
            result[key] = merged = dict(before)
            _add(merged, value)


def only(found: object, patterns: Sequence[str]) -> object:
    """The parts that match one of the patterns; everything without patterns."""
    return _only(found, list(_steps(patterns)))


def _steps(patterns: Sequence[str]) -> Iterator[Steps]:
    yield from (tuple(filter(None, pattern.split("/"))) for one in patterns for pattern in one.split(","))


def _only(found: object, patterns: Sequence[Steps]) -> object:
    if not patterns or not isinstance(found, Mapping) or any(not pattern for pattern in patterns):
        return found
    result: dict[str, object] = {}
    for key, value in found.items():
        below = [pattern[1:] for pattern in patterns if pattern[0] in {"*", key}]
        part = _only(value, below) if below else {}
        if below and (part != {} or value == {}):
            result[key] = part
    return result
