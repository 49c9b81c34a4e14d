"""LLDP neighbours, from lldpd."""

import json
import re
from collections.abc import Iterator, Mapping

from netkit.lab.personalities.nvue.show.look import Look, Shown

COMMAND = ("lldpcli", "-f", "json0", "show", "neighbors", "details")
CAPABILITIES = {"Bridge": "is-bridge", "Router": "is-router", "Station": "is-station"}


def neighbors(look: Look) -> Mapping[str, Mapping[str, Shown]]:
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


def port(look: Look) -> Shown:
    """Return the neighbours of one interface."""
    return {"neighbor": neighbors(look).get(look.name, {})}


def port_neighbors(look: Look) -> Shown:
    """Return the same without the word."""
    return neighbors(look).get(look.name, {})


def all_ports(look: Look) -> Shown:
    """Return the interfaces that have neighbours."""
    return {name: {"lldp": {"neighbor": found}} for name, found in neighbors(look).items()}
