"""gNMI messages: paths, queries, updates, and their protocol buffers."""

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from netkit.platforms.json_access import parsed, table

STEP = re.compile(r"/([^/\[\]]+)((?:\[[^\[\]=]+=[^\[\]]*\])*)")
KEY = re.compile(r"\[([^\[\]=]+)=([^\[\]]*)\]")


@dataclass(frozen=True, slots=True)
class PathElement:
    """One element of a path: a name, and the keys that select an entry of a list."""

    name: str
    keys: Mapping[str, str] = field(default_factory=dict)


Path = tuple[PathElement, ...]


def path(text: str) -> Path:
    """Parse a path such as /interfaces/interface[name=Ethernet1]/state; empty if it is malformed."""
    if not re.fullmatch(f"(?:{STEP.pattern})+", text):
        return ()
    return tuple(PathElement(found[1], dict(KEY.findall(found[2]))) for found in STEP.finditer(text))


def format_path(steps: Path) -> str:
    return "".join(f"/{one.name}" + "".join(f"[{key}={value}]" for key, value in one.keys.items()) for one in steps)


PLACE = re.compile(r"(?:([\w.-]{1,64}):)?(/\S+)", re.ASCII)
ONCE = "once "
CAPABILITIES = "capabilities"
"""The command that returns the gNMI version of the server."""


@dataclass(frozen=True, slots=True)
class GnmiQuery:
    """A path to read, and on SONiC the database it is in."""

    path: Path
    target: str = ""

    @property
    def place(self) -> str:
        """The query as access.yaml has it: `PATH`, or `DATABASE:PATH`."""
        return f"{self.target}:{format_path(self.path)}" if self.target else format_path(self.path)

    @property
    def command(self) -> str:
        return f"{ONCE}{self.place}"


def parse_query(place: str) -> GnmiQuery | None:
    found = PLACE.fullmatch(place)
    steps = path(found[2]) if found else ()
    return GnmiQuery(steps, found[1] or "") if found and steps else None


def parse_command(command: str) -> GnmiQuery | None:
    return parse_query(command.removeprefix(ONCE)) if command.startswith(ONCE) else None


DEEPEST = 16
"""Deeper than any tree that netkit reads."""


@dataclass(frozen=True, slots=True)
class Update:
    """A value at a path: a scalar, or a tree as JSON."""

    path: Path
    value: object


def format_updates(updates: Iterable[Update]) -> str:
    """Format updates as JSON lines of `[path, value]`, which `read` parses."""
    lines = []
    for update in updates:
        path = [[one.name, dict(one.keys)] if one.keys else one.name for one in update.path]
        lines.append(f"{json.dumps([path, update.value])}\n")
    return "".join(lines)


def read(text: str) -> Iterator[Update]:
    """Parse JSON lines of updates; malformed ones are ignored."""
    for line in text.splitlines():
        found = parsed(line)
        if isinstance(found, list) and len(found) == 2 and isinstance(found[0], list):
            steps = tuple(_parsed_elements(found[0]))
            if len(steps) == len(found[0]):
                yield Update(steps, found[1])


def leaves(update: Update) -> Iterator[tuple[Path, object]]:
    """Yield the scalars of an update. The text members of a list entry are taken for its keys."""
    yield from _leaves(update.path, update.value, DEEPEST)


def _leaves(path: Path, value: object, depth: int) -> Iterator[tuple[Path, object]]:
    if not isinstance(value, dict | list):
        yield path, value
        return
    members = value.items() if isinstance(value, dict) and depth else ()
    for name, member in members:
        if not isinstance(member, list):
            yield from _leaves((*path, PathElement(str(name))), member, depth - 1)
            continue
        for entry in member:
            if isinstance(entry, dict):
                keys = {key.rpartition(":")[2]: one for key, one in entry.items() if isinstance(one, str)}
                yield from _leaves((*path, PathElement(str(name), keys)), entry, depth - 1)


def _parsed_elements(path: list[object]) -> Iterator[PathElement]:
    for one in path:
        if isinstance(one, str):
            yield PathElement(one)
        elif isinstance(one, list) and len(one) == 2 and isinstance(one[0], str):
            yield PathElement(one[0], {key: value for key, value in table(one[1]).items() if isinstance(value, str)})


NANO = 1_000_000_000
MOST_PATHS = 100_000
"""More than the largest switch has; bounds what a server can make netkit remember."""
COUNT = re.compile(rb'"\d{1,20}"')
TREES = ("json_val", "json_ietf_val")
PLAIN = ("int_val", "uint_val", "string_val", "bool_val")


def request(messages: Any, queries: Sequence[GnmiQuery], interval_s: float = 0.0) -> Any:
    """Build a SubscribeRequest: STREAM with an interval, else ONCE. The target is that of the first query."""
    samples = {"mode": messages.SubscriptionMode.SAMPLE, "sample_interval": round(interval_s * NANO)}
    options = samples if interval_s else {}

    def subscription(query: GnmiQuery) -> Any:
        elements = [messages.PathElem(name=one.name, key=dict(one.keys)) for one in query.path]
        return messages.Subscription(path=messages.Path(elem=elements), **options)

    return messages.SubscribeRequest(
        subscribe=messages.SubscriptionList(
            prefix=messages.Path(target=queries[0].target),
            subscription=list(map(subscription, queries)),
            mode=messages.SubscriptionList.STREAM if interval_s else messages.SubscriptionList.ONCE,
            encoding=messages.Encoding.JSON_IETF,
        )
    )


class Paths:
    """A cache of parsed paths: a stream repeats the same ones, and parsing them is most of the work."""

    def __init__(self) -> None:
        self._known: dict[bytes, Path] = {}

    def updates(self, notification: Any) -> Iterator[Update]:
        """Yield the updates of a notification; deletes are ignored."""
        prefix = notification.prefix
        start = prefix.SerializeToString()
        for one in notification.update:
            key = start + one.path.SerializeToString()
            path = self._known.get(key)
            if path is None:
                path = (*_message_steps(prefix), *_message_steps(one.path))
                if len(self._known) < MOST_PATHS:
                    self._known[key] = path
            yield Update(path, _decoded(one.val))


def _message_steps(path: Any) -> Path:
    return tuple(PathElement(one.name, dict(one.key)) for one in path.elem)


def _decoded(value: Any) -> object:
    """Decode a TypedValue; None for the types that counters never have."""
    kind = value.WhichOneof("value")
    if kind in PLAIN:
        return getattr(value, kind)
    if kind in TREES:
        text: bytes = getattr(value, kind)
        return int(text[1:-1]) if COUNT.fullmatch(text) else parsed(text.decode("utf-8", "replace"))
    return None


Shield = Literal["pinned", "authorities", "none"]
"""TLS with one pinned certificate, TLS with the system's certificate authorities, or plain text."""


@dataclass(frozen=True, slots=True)
class GnmiLogin:
    """An account on the switch."""

    user: str
    password: str = field(default="", repr=False)
    is_basic: bool = False
    """Whether to send HTTP basic authentication: Cumulus Linux ignores the usual metadata."""


@dataclass(frozen=True, slots=True)
class GnmiServer:
    """Address of a server, how it is authenticated, and the time limit of one request."""

    host: str
    port: int
    shield: Shield = "pinned"
    certificate: str = ""
    """The SHA-256 fingerprint to pin."""
    patience_s: float = 30.0
