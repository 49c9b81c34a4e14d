"""gNMI messages: paths, questions, updates, and their protocol buffers."""

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
    """One step of a path: a name, and by which keys one of a list is meant."""

    name: str
    keys: Mapping[str, str] = field(default_factory=dict)


Path = tuple[PathElement, ...]


def path(text: str) -> Path:
    """Return the path that is written as /interfaces/interface[name=Ethernet1]/state; empty when none is."""
    return tuple(_steps(text)) if re.fullmatch(f"(?:{STEP.pattern})+", text) else ()


def _steps(text: str) -> Iterator[PathElement]:
    for found in STEP.finditer(text):
        yield PathElement(found[1], dict(KEY.findall(found[2])))


def spelled(steps: Path) -> str:
    """Return a path as text."""
    return "".join(f"/{one.name}" + "".join(f"[{key}={value}]" for key, value in one.keys.items()) for one in steps)


PLACE = re.compile(r"(?:([\w.-]{1,64}):)?(/\S+)", re.ASCII)
ONCE = "once "
CAPABILITIES = "capabilities"
"""What the server speaks; whoever may ask that is let in."""


@dataclass(frozen=True, slots=True)
class GnmiQuery:
    """Something to be told: a path, and on SONiC the database it is in."""

    path: Path
    target: str = ""

    @property
    def place(self) -> str:
        """Return it as it is written."""
        return f"{self.target}:{spelled(self.path)}" if self.target else spelled(self.path)

    @property
    def command(self) -> str:
        """Return it as a command."""
        return f"{ONCE}{self.place}"


def question(place: str) -> GnmiQuery | None:
    """Return what is asked at a place; None when it is none."""
    found = PLACE.fullmatch(place)
    steps = path(found[2]) if found else ()
    return GnmiQuery(steps, found[1] or "") if found and steps else None


def asked(command: str) -> GnmiQuery | None:
    """Return what a command asks; None when it is none of gNMI's."""
    return question(command.removeprefix(ONCE)) if command.startswith(ONCE) else None


DEEPEST = 16
"""Trees that go deeper are none of those that are asked for."""


@dataclass(frozen=True, slots=True)
class Update:
    """A value at a path: a number, a word, or a whole tree as JSON."""

    path: Path
    value: object


def written(updates: Iterable[Update]) -> str:
    """Return updates as text."""
    return "".join(f"{json.dumps([_shown(one.path), one.value])}\n" for one in updates)


def read(text: str) -> Iterator[Update]:
    """Yield the updates of a text; whatever the text, what cannot be read is left out."""
    for line in text.splitlines():
        found = parsed(line)
        if isinstance(found, list) and len(found) == 2 and isinstance(found[0], list):
            steps = tuple(_update_steps(found[0]))
            if len(steps) == len(found[0]):
                yield Update(steps, found[1])


def leaves(update: Update) -> Iterator[tuple[Path, object]]:
    """Yield the single values of an update. A list in a tree has the keys that its entries name themselves by."""
    yield from _leaves(update.path, update.value, DEEPEST)


def _leaves(path: Path, value: object, deeper: int) -> Iterator[tuple[Path, object]]:
    if not isinstance(value, dict | list):
        yield path, value
    elif isinstance(value, dict) and deeper:
        for name, one in value.items():
            yield from _below(path, str(name), one, deeper - 1)


def _below(path: Path, name: str, value: object, deeper: int) -> Iterator[tuple[Path, object]]:
    if not isinstance(value, list):
        yield from _leaves((*path, PathElement(name)), value, deeper)
        return
    for entry in value:
        if isinstance(entry, dict):
            yield from _leaves((*path, PathElement(name, _keys(entry))), entry, deeper)


def _keys(entry: Mapping[str, object]) -> Mapping[str, str]:
    return {name.rpartition(":")[2]: one for name, one in entry.items() if isinstance(one, str)}


def _shown(path: Path) -> list[object]:
    return [[one.name, dict(one.keys)] if one.keys else one.name for one in path]


def _update_steps(shown: list[object]) -> Iterator[PathElement]:
    for one in shown:
        if isinstance(one, str):
            yield PathElement(one)
        elif isinstance(one, list) and len(one) == 2 and isinstance(one[0], str):
            yield PathElement(one[0], {key: value for key, value in table(one[1]).items() if isinstance(value, str)})


NANO = 1_000_000_000
MOST_PATHS = 100_000
"""More than the largest switch has; a server may not make netkit remember without end."""
COUNT = re.compile(rb'"\d{1,20}"')
TREES = ("json_val", "json_ietf_val")
PLAIN = ("int_val", "uint_val", "string_val", "bool_val")


def request(messages: Any, questions: Sequence[GnmiQuery], interval_s: float = 0.0) -> Any:
    """Return a subscription: to samples, or to one answer. One has one target, which is its first question's."""
    samples = {"mode": messages.SubscriptionMode.SAMPLE, "sample_interval": round(interval_s * NANO)}
    wanted = samples if interval_s else {}
    return messages.SubscribeRequest(
        subscribe=messages.SubscriptionList(
            prefix=messages.Path(target=questions[0].target),
            subscription=[messages.Subscription(path=_path(messages, one.path), **wanted) for one in questions],
            mode=messages.SubscriptionList.STREAM if interval_s else messages.SubscriptionList.ONCE,
            encoding=messages.Encoding.JSON_IETF,
        )
    )


def _path(messages: Any, steps: Path) -> Any:
    return messages.Path(elem=[messages.PathElem(name=one.name, key=dict(one.keys)) for one in steps])


class Paths:
    """Paths as they were read before: a stream tells the same ones each time, and to read them is most of the work."""

    def __init__(self) -> None:
        self._known: dict[bytes, Path] = {}

    def updates(self, notification: Any) -> Iterator[Update]:
        """Yield what a notification tells; what it says is gone is not told."""
        prefix = notification.prefix
        start = prefix.SerializeToString()
        for one in notification.update:
            key = start + one.path.SerializeToString()
            path = self._known.get(key)
            if path is None:
                path = (*_message_steps(prefix), *_message_steps(one.path))
                if len(self._known) < MOST_PATHS:
                    self._known[key] = path
            yield Update(path, _value(one.val))


def _message_steps(path: Any) -> Path:
    return tuple(PathElement(one.name, dict(one.key)) for one in path.elem)


def _value(told: Any) -> object:
    """Return a number, a word or a tree; None for what counters never are."""
    kind = told.WhichOneof("value")
    if kind in PLAIN:
        return getattr(told, kind)
    if kind in TREES:
        text: bytes = getattr(told, kind)
        return int(text[1:-1]) if COUNT.fullmatch(text) else parsed(text.decode("utf-8", "replace"))
    return None


Shield = Literal["pinned", "authorities", "none"]
"""How a connection is protected: by one trusted certificate, by the system's authorities, or not at all."""


@dataclass(frozen=True, slots=True)
class GnmiLogin:
    """An account of the switch."""

    user: str
    password: str = field(default="", repr=False)
    is_basic: bool = False
    """Whether the server wants HTTP's basic authentication, as Cumulus Linux does, which ignores what others take."""


@dataclass(frozen=True, slots=True)
class GnmiServer:
    """Where a server listens, by what it is known, and how long one answer may take."""

    host: str
    port: int
    shield: Shield = "pinned"
    certificate: str = ""
    """The SHA-256 fingerprint it is pinned to."""
    patience_s: float = 30.0
