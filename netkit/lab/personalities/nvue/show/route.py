"""The routing table, from FRR. The JSON of this view is not documented; the keys are those seen in other programs."""

import json
from collections.abc import Iterator

from netkit.lab.personalities.nvue.show.look import Look, Shown


def table(look: Look) -> Shown:
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
