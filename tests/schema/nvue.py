"""A checker for rendered NVUE files: key paths, words of the dialect, and references that must resolve."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml

from netkit.intent import document

SCHEMA = yaml.load((Path(__file__).parent / "nvue.yaml").read_text(), Loader=yaml.CSafeLoader)


def tree(text: str) -> dict[str, Any]:
    """The tree under `set`."""
    value = document.parse(text, "startup.yaml").value
    assert isinstance(value, list)
    assert len(value) == 1
    assert isinstance(value[0], dict)
    assert list(value[0]) == ["set"]
    inner = value[0]["set"]
    assert isinstance(inner, dict)
    return inner  # type: ignore[return-value]  # plain YAML values


def problems(text: str, *, is_new: bool) -> list[str]:
    """All errors in a rendered file; `is_new` selects releases since 5.15."""
    rendered = tree(text)
    return [*_walk(rendered, SCHEMA, (), is_new=is_new), *_references(rendered)]


def _word(alternatives: str, *, is_new: bool) -> str:
    old, separator, new = alternatives.partition("|")
    return (new if is_new else old) if separator else old


def _walk(value: Any, schema: Any, path: tuple[str, ...], *, is_new: bool) -> Iterator[str]:
    where = ".".join(path)
    if schema is None:
        if value != {} and value is not None:
            yield f"{where}: expected an empty node, found {value!r}"
    elif isinstance(schema, dict):
        if not isinstance(value, dict) or not value:
            yield f"{where}: expected keys, found {value!r}"
            return
        for key, inner in value.items():
            found = _entry(str(key), schema, is_new=is_new)
            if found is _UNKNOWN:
                yield f"{where}.{key}: unknown key"
            else:
                yield from _walk(inner, found, (*path, str(key)), is_new=is_new)
    elif isinstance(schema, list):
        words = [_word(word, is_new=is_new) for word in schema]
        if value not in words:
            yield f"{where}: {value!r} is none of {words}"
    elif not re.fullmatch(schema.strip("/"), str(value)):
        yield f"{where}: {value!r} does not match {schema}"


_UNKNOWN = object()


def _entry(key: str, schema: dict[str, Any], *, is_new: bool) -> Any:
    for name, inner in schema.items():
        if name.startswith("/") and name.endswith("/"):
            if re.fullmatch(name[1:-1], key):
                return inner
        elif _word(name, is_new=is_new) == key:
            return inner
    return _UNKNOWN


def _references(rendered: dict[str, Any]) -> Iterator[str]:
    yield from _interfaces(rendered)
    yield from _policies(rendered["router"]["policy"], rendered["vrf"]["default"]["router"]["bgp"])
    yield from _neighbors(rendered["interface"], rendered["vrf"]["default"]["router"]["bgp"])
    yield from _sums(rendered["qos"])


def _interfaces(rendered: dict[str, Any]) -> Iterator[str]:
    interfaces = rendered["interface"]
    vlans = rendered.get("bridge", {}).get("domain", {}).get("br_default", {}).get("vlan", {})
    profiles = rendered["qos"].get("congestion-control", {})
    for name, interface in interfaces.items():
        cage, _, sub = name.removeprefix("swp").partition("s")
        if name.startswith("swp") and sub and "breakout" not in interfaces.get(f"swp{cage}", {}).get("link", {}):
            yield f"{name}: its cage is not broken out"
        access = interface.get("bridge", {}).get("domain", {}).get("br_default", {}).get("access")
        if access is not None and str(access) not in vlans:
            yield f"{name}: VLAN {access} does not exist"
        if access is not None and ("ip" in interface or "ipv4" in interface):
            yield f"{name}: routed and bridged at once"
        profile = interface.get("qos", {}).get("congestion-control", {}).get("profile")
        if profile is not None and profile not in profiles:
            yield f"{name}: congestion-control profile {profile} does not exist"


def _policies(policy: dict[str, Any], bgp: dict[str, Any]) -> Iterator[str]:
    lists, maps = policy["prefix-list"], policy["route-map"]
    for name, route_map in maps.items():
        if any(rule["match"]["ip-prefix-list"] not in lists for rule in route_map["rule"].values()):
            yield f"route-map {name}: prefix-list does not exist"
    used = [family["redistribute"]["connected"]["route-map"] for family in bgp["address-family"].values()]
    for group in bgp.get("peer-group", {}).values():
        families = group["address-family"]
        if families.keys() != bgp["address-family"].keys():
            yield "a peer group has other address families than the instance"
        used += [side["route-map"] for family in families.values() for side in family["policy"].values()]
    for name, route_map in maps.items():
        types = {rule["match"]["type"] for rule in route_map["rule"].values()}
        listed = {lists[rule["match"]["ip-prefix-list"]]["type"] for rule in route_map["rule"].values()}
        if types != listed:
            yield f"route-map {name}: its prefix list is of another type"
    yield from (f"route-map {name} does not exist" for name in used if name not in maps)


def _neighbors(interfaces: dict[str, Any], bgp: dict[str, Any]) -> Iterator[str]:
    for name, neighbor in bgp.get("neighbor", {}).items():
        if name not in interfaces:
            yield f"neighbor {name}: no such interface"
        if neighbor["peer-group"] not in bgp.get("peer-group", {}):
            yield f"neighbor {name}: no such peer group"


def _sums(qos: dict[str, Any]) -> Iterator[str]:
    classes = qos.get("egress-scheduler", {}).get("default-global", {}).get("traffic-class", {})
    if classes and sum(entry.get("bw-percent", 0) for entry in classes.values()) != 100:
        yield "egress-scheduler: weights do not sum to 100"
    if sum(pool["memory-percent"] for pool in qos["traffic-pool"].values()) > 100:
        yield "traffic-pool: more than 100 %"
