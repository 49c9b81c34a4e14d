"""NVUE's configuration: the object tree of startup.yaml, `nv config show` and the REST interface."""

import json
import re
from collections.abc import Iterable

import yaml

from netkit.errors import ConfigError, Problem
from netkit.platforms.compare import ConfigModel
from netkit.platforms.config import Config, Files, Path, flat, nested
from netkit.platforms.nvue.routing import keeping, router
from netkit.platforms.nvue.strategy import RISKS, constraints, strategy
from netkit.platforms.ownership import declared
from netkit.platforms.plain_yaml import plain
from netkit.platforms.secrets import SECRET, is_secret_name

FILE = "startup.yaml"

# Below these keys NVUE may write ranges such as `swp1-4,swp6` or `10,20-30`.
RANGED = frozenset({"interface", "neighbor", "vlan", "member"})
# Below these keys a name is itself the secret: NVIDIA's list of commands has `username <username-id> auth-sha <auth-id>
# encrypt-aes <encrypt-id>`, in which each ID is the name of an object, as those of communities are.
SECRET_KEYS = frozenset(
    {"readonly-community", "readwrite-community", "readonly-community-v6"}
    | {"auth-md5", "auth-sha", "encrypt-aes", "encrypt-des", "community-password"}
)
USERS = ("snmp-server", "username")
"""The path of SNMPv3 users below `service` or `system`. How a switch nests their secrets is unverified."""
PROTOCOLS = frozenset({"auth-md5", "auth-none", "auth-sha", "encrypt-aes", "encrypt-des"})
RANGE = re.compile(r"(.*?)(\d+)-(\d+)")
LONGEST_RANGE = 4096


def parse(files: Files) -> Config:
    """Parse a startup.yaml, the output of `nv config show`, or a REST response."""
    text = files.get(FILE, "")
    document = _document(text)
    items = document if isinstance(document, list) else [document or {}]
    tree: dict[Path, str] = {}
    for item in items:
        if not isinstance(item, dict):
            raise ConfigError(
                Problem("is not an NVUE configuration", "expected `- set:` and objects below it", file=FILE)
            )
        is_framed = not item.keys() - {"set", "unset", "header"}
        tree.update(flat(item.get("set") or {} if is_framed else item, FILE, _expanded))
    tree.pop((), None)
    if USERS[0] in text:
        tree = _with_plain_users(tree)
    empty = [path for path, value in tree.items() if not value]
    parents = {path[:length] for path in tree for length in range(1, len(path))} if empty else set()
    for path in empty:
        # an object without keys counts only if nothing else names it, such as a port and again a range of ports;
        # the root of a branch stays when everything below it is unset
        if path in parents or len(path) == 1:
            del tree[path]
    return {path: SECRET if value and _is_secret(path) else value for path, value in tree.items()}


def _is_secret(path: Path) -> bool:
    is_key = path[-1] == "value" and path[-3:-2] == ("key",)  # of NTP
    return is_key or is_secret_name(path[-1])


def user_of(path: Path) -> Path:
    """The path of the SNMPv3 user that a path belongs to; empty for other paths."""
    return path[:4] if path[1:3] == USERS and len(path) > 3 else ()


def _with_plain_users(tree: dict[Path, str]) -> dict[Path, str]:
    """Reduce SNMPv3 users to names and protocols, however the switch nests them with their secrets."""
    found: dict[Path, str] = {}
    for path, value in tree.items():
        user = user_of(path)
        if user:
            words = (*path[4:], *([value] if value else []))
            named = words if value in PROTOCOLS else words[:-1]  # a protocol without a secret does not count
            found.update({(*user, word): SECRET for word in named if word in PROTOCOLS} or {user: ""})
        elif path[1:] != USERS:  # an empty list of users
            found[path] = value
    return found


def _with_nested_users(config: Config) -> Config:
    """Nest SNMPv3 users as they are rendered: one path, in which each secret is a key."""
    found: dict[Path, str] = {}
    protocols: dict[Path, list[str]] = {}
    for path, value in config.items():
        user = user_of(path)
        if user and path != user:
            protocols.setdefault(user, []).append(path[-1])
        else:
            found[path] = value
    for user, words in protocols.items():
        found[(*user, *(part for word in sorted(words) for part in (word, SECRET)))] = ""
    return found


def _document(text: str) -> object:
    if text.lstrip()[:1] in {"[", "{"}:
        try:
            return json.loads(text, parse_int=str, parse_float=str)
        except (ValueError, RecursionError):
            pass  # YAML begins with a bracket too
    found = plain(text)
    if found is not None:
        return found
    try:
        # Every scalar stays text: `on` is a keyword of NVUE, not a boolean.
        return yaml.load(text, Loader=yaml.CBaseLoader)  # noqa: S506 (it makes text, lists and mappings only)
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        reason = getattr(error, "problem", None) or "is not YAML"
        line = mark.line + 1 if mark else 0
        raise ConfigError(Problem(f"cannot be read: {reason}", "read it again", file=FILE, line=line)) from None
    except (RecursionError, ValueError):
        raise ConfigError(Problem("cannot be read as YAML or JSON", "read it again", file=FILE)) from None


def _expanded(path: Path, key: str) -> Iterable[str]:
    return (SECRET,) if path and path[-1] in SECRET_KEYS else names(path, key)


def names(path: Path, key: str) -> Iterable[str]:
    """Expand a key that may be a range: below some objects `swp1-4` is four ports."""
    if not path or path[-1] not in RANGED or ("-" not in key and "," not in key):
        return (key,)
    return [name for part in key.split(",") for name in _range(part)]


def _range(part: str) -> Iterable[str]:
    found = RANGE.fullmatch(part)
    if not found:
        return (part,)
    first, last = int(found[2]), int(found[3])
    if not first <= last < first + LONGEST_RANGE:
        return (part,)
    return (f"{found[1]}{number}" for number in range(first, last + 1))


def text(config: Config) -> dict[str, str]:
    """Format the configuration as a startup.yaml."""
    tree = [{"set": _typed(nested(_with_nested_users(config)))}] if config else []
    return {FILE: yaml.dump(tree, Dumper=yaml.CSafeDumper, sort_keys=True, width=4096)}


def _typed(node: object) -> object:
    if isinstance(node, dict):
        return {key: _typed(value) for key, value in node.items()}
    is_number = isinstance(node, str) and node.isascii() and node.isdecimal() and str(int(node)) == node
    return int(str(node)) if is_number and len(str(node)) < 20 else node


def is_apart(path: Path) -> bool:
    """Whether a path is staged last, and left out if the switch refuses it: SNMPv3 users."""
    return bool(user_of(path))


MODEL = ConfigModel(
    "nvue",
    (FILE,),
    parse,
    text,
    declared("nvue"),
    RISKS,
    strategy,
    tuple(constraints()),
    router,
    keeping=keeping,
    is_apart=is_apart,
)
