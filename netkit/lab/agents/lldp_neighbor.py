"""LLDP neighbours and chassis, parsed from lldpcli's JSON."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

Json = str | int | float | bool | None | list["Json"] | dict[str, "Json"]


@dataclass(frozen=True, slots=True)
class LldpChassis:
    """A device's own LLDP identity; `kind` is the chassis ID subtype: mac, local or another."""

    kind: str = ""
    identifier: str = ""
    name: str = ""
    description: str = ""


@dataclass(frozen=True, slots=True)
class LldpNeighbor:
    """The neighbour on a kernel interface."""

    interface: str
    chassis: LldpChassis
    port_kind: str
    port: str
    port_description: str


def neighbors(text: str) -> tuple[LldpNeighbor, ...]:
    """Parse `lldpcli -f json0 show neighbors`; unreadable output yields no neighbours."""
    return tuple(
        _neighbor(interface)
        for top in _dicts(_parsed(text).get("lldp"))
        for interface in _dicts(top.get("interface"))
        if interface.get("name")
    )


def chassis(text: str) -> LldpChassis:
    """Parse `lldpcli -f json0 show chassis`."""
    found = (
        _chassis(entry) for top in _dicts(_parsed(text).get("local-chassis")) for entry in _dicts(top.get("chassis"))
    )
    return next(found, LldpChassis())


def platform(text: str) -> str:
    """The platform string from `lldpcli -f json0 show configuration`."""
    found = (
        _value(entry, "platform")
        for top in _dicts(_parsed(text).get("configuration"))
        for entry in _dicts(top.get("config"))
    )
    return next(found, "")


def _neighbor(interface: Mapping[str, Json]) -> LldpNeighbor:
    port = next(_dicts(interface.get("port")), {})
    kind, identifier = _identity(port)
    device = _chassis(next(_dicts(interface.get("chassis")), {}))
    return LldpNeighbor(str(interface["name"]), device, kind, identifier, _value(port, "descr"))


def _chassis(entry: Mapping[str, Json]) -> LldpChassis:
    kind, identifier = _identity(entry)
    return LldpChassis(kind, identifier, _value(entry, "name"), _value(entry, "descr"))


def _identity(entry: Mapping[str, Json]) -> tuple[str, str]:
    identity = next(_dicts(entry.get("id")), {})
    return str(identity.get("type", "")), str(identity.get("value", ""))


def _value(entry: Mapping[str, Json], key: str) -> str:
    return str(next(_dicts(entry.get(key)), {}).get("value", ""))


def _parsed(text: str) -> Mapping[str, Json]:
    try:
        parsed: Json = json.loads(text)
    except ValueError:
        return {}
    return parsed if isinstance(parsed, dict) else {}


def _dicts(value: Json) -> Iterator[Mapping[str, Json]]:
    """Yield the objects of a list; json0 wraps every value in lists."""
    for item in value if isinstance(value, list) else [value]:
        if isinstance(item, dict):
            yield item
