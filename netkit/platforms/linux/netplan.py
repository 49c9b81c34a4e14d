"""Netplan's YAML as a configuration. List items are keys: their order is irrelevant to netplan."""

import json

import yaml

from netkit.errors import ConfigError, Problem
from netkit.platforms.config import Config, Path, flat, nested
from netkit.platforms.plain_yaml import plain

ITEM = "- "
EMPTY = "[]"
QUOTED = frozenset('{["')
"""Start of an item that is written as JSON, because it would be ambiguous as `key=value` words."""
# Keys that identify a route; the others are its value.
IDENTITY = ("to", "table", "metric")
TRUTH = {"yes": "true", "on": "true", "no": "false", "off": "false"}


def parse(text: str, file: str) -> dict[Path, str]:
    """Parse a netplan file into entries below its name."""
    try:
        tree = plain(text) or yaml.load(text, Loader=yaml.CBaseLoader)  # noqa: S506 (yields only strings, lists and mappings)
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        reason = getattr(error, "problem", None) or "is not YAML"
        line = mark.line + 1 if mark else 0
        raise ConfigError(Problem(f"cannot be read: {reason}", "read it again", file=file, line=line)) from None
    except (RecursionError, ValueError):
        raise ConfigError(Problem("cannot be read as YAML", "read it again", file=file)) from None
    if not tree:
        return {}
    if not isinstance(tree, dict):
        raise ConfigError(Problem("is not a netplan file", "start it with `network:`", file=file, line=1))
    try:
        entries = flat(_plain(tree), file)
    except RecursionError:
        raise ConfigError(Problem("contains itself", "read it again", file=file)) from None
    return {(file, *path): TRUTH.get(value, value) for path, value in entries.items()}


def _plain(node: object) -> object:
    """Convert the lists of a tree to mappings."""
    if isinstance(node, dict):
        return {key: _plain(value) for key, value in node.items()}
    if not isinstance(node, list):
        return node
    return dict(map(_item, node)) if node else EMPTY


def _item(item: object) -> tuple[str, str]:
    if isinstance(item, str):
        return ITEM + (json.dumps(item) if "=" in item or item[:1] in QUOTED else item), ""
    is_plain = isinstance(item, dict) and all(_is_word(key) and _is_word(value) for key, value in item.items())
    if not isinstance(item, dict) or not is_plain or not item:
        return ITEM + json.dumps(item, sort_keys=True), ""
    is_route = "to" in item and "from" not in item
    names = [name for name in IDENTITY if name in item] if is_route else sorted(item)
    rest = sorted(set(item) - set(names))
    return ITEM + _words(names, item), _words(rest, item)


def _is_word(value: object) -> bool:
    return isinstance(value, str) and value != "" and not set(value) & set(' ="\\{}[]') and value.isprintable()


def _words(names: list[str], item: dict[str, str]) -> str:
    return " ".join(f"{name}={TRUTH.get(item[name], item[name])}" for name in names)


def text(config: Config) -> str:
    """Write the entries of one file as YAML."""
    tree = _listed(nested(config))
    return yaml.dump(tree, Dumper=yaml.CSafeDumper, sort_keys=True, width=4096) if tree else ""


def _listed(node: object) -> object:
    if not isinstance(node, dict):
        return [] if node == EMPTY else node
    if node and all(key.startswith(ITEM) and (value == {} or isinstance(value, str)) for key, value in node.items()):
        return [read_item(key.removeprefix(ITEM), "" if value == {} else value) for key, value in node.items()]
    return {key: _listed(value) for key, value in node.items()}


def read_item(key: str, value: str) -> object:
    try:
        item = json.loads(key) if key[:1] in QUOTED else None
    except (ValueError, RecursionError):
        item = None
    if item is not None:
        return item
    words = [word.split("=", 1) for word in f"{key} {value}".split(" ") if word]
    is_item = all(len(word) == 2 for word in words) and words
    return dict(words) if is_item else key
