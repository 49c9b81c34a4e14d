"""Strict validation of manifests: by the schema beside this file, and by the CRDs of the operators."""

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any

import yaml

from tests import intents

Manifest = dict[str, Any]
SCHEMA = Path(__file__).with_name("kubernetes_schema.yaml")
ANY = re.compile(r".+", re.DOTALL)
NAME = re.compile(r"[a-z0-9]([a-z0-9.-]{0,251}[a-z0-9])?")
LABEL = re.compile(r"([A-Za-z0-9]([A-Za-z0-9_.-]{0,61}[A-Za-z0-9])?)?")
LABEL_KEY = re.compile(r"([a-z0-9]([a-z0-9.-]{0,251}[a-z0-9])?/)?[A-Za-z0-9]([A-Za-z0-9_.-]{0,61}[A-Za-z0-9])?")
ROOM = {"ceilings": {"units": 4, "hosts_per_unit": 4, "spines": 4, "addresses_per_nic": 9}}
VLAN = {"attachment": "vlan", "units": [{"unit": 1, "hosts": 2}]}


def values(changes: Mapping[str, Any] | None = None, **settings: Any) -> dict[str, Any]:
    """The small intent with a Kubernetes cluster on all hosts, and enough addresses for pods."""
    together = intents.values({**ROOM, "clusters": {"kubernetes": settings}})
    intents.merge(together, changes or {})
    return together


def documents(text: str) -> list[Manifest]:
    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    return [one for one in yaml.load_all(text, loader) if one is not None]


@cache
def schema(file: Path = SCHEMA) -> dict[str, Any]:
    return dict(yaml.load(file.read_text(encoding="utf-8"), Loader=yaml.CSafeLoader))


def title(manifest: Manifest) -> str:
    return f"{manifest.get('apiVersion')} {manifest.get('kind')}"


def complaints(manifest: Manifest, file: Path = SCHEMA) -> list[str]:
    """Validate a manifest by a schema beside this file."""
    known = schema(file).get(title(manifest))
    if known is None:
        return [f"{title(manifest)} is not known"]
    rest = {key: value for key, value in known.items() if key != "scope"}
    head = {"apiVersion!": "string", "kind!": "string", "metadata!": _metadata(known["scope"])}
    return list(_check({**head, **rest}, manifest, title(manifest)))


def _metadata(scope: str) -> Manifest:
    labels = {"labels": {"*": "label"}, "annotations": {"*": "string"}}
    return {"name!": "name", **({"namespace!": "name"} if scope == "Namespaced" else {}), **labels}


def _check(wanted: Any, given: Any, place: str) -> Iterator[str]:
    if isinstance(wanted, dict) and "json!" in wanted:
        yield from _json(wanted["json!"], given, place)
    elif isinstance(wanted, dict):
        yield from _object(wanted, given, place)
    elif isinstance(wanted, list):
        if not isinstance(given, list) or (not given and len(wanted) == 1):
            yield f"{place} is not a list with items"
            return
        for index, one in enumerate(given):
            yield from _check(wanted[0], one, f"{place}[{index}]")
    elif not _is_scalar(wanted, given):
        yield f"{place} is {given!r}, not {wanted}"


def _json(wanted: Any, given: Any, place: str) -> Iterator[str]:
    try:
        yield from _check(wanted, json.loads(given), f"{place} as JSON")
    except (TypeError, ValueError):
        yield f"{place} is not JSON"


def _object(wanted: Mapping[str, Any], given: Any, place: str) -> Iterator[str]:
    if not isinstance(given, dict):
        yield f"{place} is not an object"
        return
    fields = {key.rstrip("!"): value for key, value in wanted.items()}
    yield from (f"{place}.{key.rstrip('!')} is missing" for key in wanted if key[-1] == "!" and key[:-1] not in given)
    for key, value in given.items():
        if key in fields:
            yield from _check(fields[key], value, f"{place}.{key}")
        elif "*" in fields and LABEL_KEY.fullmatch(str(key)):
            yield from _check(fields["*"], value, f"{place}.{key}")
        else:
            yield f"{place}.{key} is unknown"


def _is_scalar(wanted: str, given: Any) -> bool:
    kind, _, limits = wanted.partition(" ")
    if kind == "integer":
        low, high = (int(part) for part in limits.split(".."))
        return type(given) is int and low <= given <= high
    if kind == "boolean":
        return type(given) is bool
    if wanted.startswith("/"):
        pattern = re.compile(wanted.strip("/"))
    else:
        pattern = {"string": ANY, "name": NAME, "label": LABEL}.get(kind) or re.compile(wanted)
    return isinstance(given, str) and bool(pattern.fullmatch(given))


def required(wanted: Any, given: Any, path: tuple[str | int, ...] = ()) -> Iterator[tuple[str | int, ...]]:
    """The paths of the fields that the schema requires in a manifest."""
    if isinstance(wanted, dict) and "json!" not in wanted:
        for key, part in wanted.items():
            name = key.rstrip("!")
            if name in given:
                if key[-1] == "!":
                    yield (*path, name)
                yield from required(part, given[name], (*path, name))
    elif isinstance(wanted, list):
        for index, one in enumerate(given):
            yield from required(wanted[0], one, (*path, index))


def objects(given: Any, path: tuple[str | int, ...] = ()) -> Iterator[tuple[str | int, ...]]:
    """The path of each object in a manifest, without maps with keys of the user's own."""
    if isinstance(given, dict):
        yield path
        for key, value in given.items():
            if key not in {"labels", "nodeSelector", "nodeLabels", "matchLabels", "annotations", "capability", "data"}:
                yield from objects(value, (*path, key))
    elif isinstance(given, list):
        for index, one in enumerate(given):
            yield from objects(one, (*path, index))


def crds(folder: Path) -> dict[str, Any]:
    """Read the CRDs of a folder: apiVersion and kind → scope, and the schema of that version."""
    found: dict[str, Any] = {}
    for file in sorted(folder.glob("*.yaml")):
        for one in documents(file.read_text(encoding="utf-8")):
            if one.get("kind") == "CustomResourceDefinition":
                spec = one["spec"]
                for version in spec["versions"]:
                    name = f"{spec['group']}/{version['name']} {spec['names']['kind']}"
                    found[name] = (spec["scope"], version["schema"]["openAPIV3Schema"])
    return found


def structural(wanted: Mapping[str, Any], given: Any, place: str) -> Iterator[str]:
    """Validate a value by a structural schema, as the API server does with strict field validation."""
    if wanted.get("x-kubernetes-int-or-string"):
        if type(given) not in {int, str}:
            yield f"{place} is neither a number nor text"
        return
    kinds: dict[str, type | tuple[type, ...]] = {
        "object": dict, "array": list, "string": str, "integer": int, "boolean": bool, "number": (int, float)
    }  # fmt: skip
    kind = str(wanted.get("type"))
    if not isinstance(given, kinds[kind]) or (kind == "integer" and isinstance(given, bool)):
        yield f"{place} is not of type {kind}"
        return
    yield from _limits(wanted, given, place)
    if isinstance(given, list):
        for index, one in enumerate(given):
            yield from structural(wanted["items"], one, f"{place}[{index}]")
    elif isinstance(given, dict):
        yield from _fields(wanted, given, place)


def _fields(wanted: Mapping[str, Any], given: Mapping[str, Any], place: str) -> Iterator[str]:
    fields, others = wanted.get("properties", {}), wanted.get("additionalProperties")
    yield from (f"{place}.{key} is missing" for key in wanted.get("required", ()) if key not in given)
    for key, value in given.items():
        if key in fields:
            yield from structural(fields[key], value, f"{place}.{key}")
        elif isinstance(others, dict):
            yield from structural(others, value, f"{place}.{key}")
        elif not wanted.get("x-kubernetes-preserve-unknown-fields") and others is not True:
            yield f"{place}.{key} is unknown"


def _limits(wanted: Mapping[str, Any], given: Any, place: str) -> Iterator[str]:
    if "enum" in wanted and given not in wanted["enum"]:
        yield f"{place} is {given!r}, not one of {wanted['enum']}"
    if "pattern" in wanted and not re.search(wanted["pattern"], given):
        yield f"{place} is {given!r}, not like {wanted['pattern']}"
    size = given if isinstance(given, int) else len(given)
    for low, high in (("minimum", "maximum"), ("minLength", "maxLength"), ("minItems", "maxItems")):
        if size < wanted.get(low, size) or size > wanted.get(high, size):
            yield f"{place} is not within {low} and {high}"


def real_complaints(known: Mapping[str, Any], manifest: Manifest) -> list[str]:
    """Validate a manifest by the CRD of its kind."""
    if title(manifest) not in known:
        return [f"{title(manifest)}: no CRD"]
    scope, wanted = known[title(manifest)]
    head = {"apiVersion", "kind", "metadata"}
    body = {key: value for key, value in manifest.items() if key not in head}
    found = list(structural({**wanted, "required": [*(set(wanted.get("required", [])) - head)]}, body, title(manifest)))
    if (scope == "Namespaced") != ("namespace" in manifest["metadata"]):
        found.append(f"{title(manifest)} is {scope}")
    return found


def objects_of(files: Mapping[str, str], kinds: Iterable[str] = ()) -> list[Manifest]:
    """The objects of rendered files, of some kinds or of all."""
    wanted = set(kinds)
    return [one for text in files.values() for one in documents(text) if not wanted or one["kind"] in wanted]
