"""gNMI's messages to updates and back. The classes are pygnmi's, handed in: nothing here needs it before it is used."""

import re
from collections.abc import Iterator, Sequence
from typing import Any

from netkit.platforms.gnmi.path import Path, Step
from netkit.platforms.gnmi.question import Question
from netkit.platforms.gnmi.update import Update
from netkit.platforms.shown import parsed

NANO = 1_000_000_000
MOST_PATHS = 100_000
"""More than the largest switch has; a server may not make netkit remember without end."""
COUNT = re.compile(rb'"\d{1,20}"')
TREES = ("json_val", "json_ietf_val")
PLAIN = ("int_val", "uint_val", "string_val", "bool_val")


def request(messages: Any, questions: Sequence[Question], interval_s: float = 0.0) -> Any:
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
                path = (*_steps(prefix), *_steps(one.path))
                if len(self._known) < MOST_PATHS:
                    self._known[key] = path
            yield Update(path, _value(one.val))


def _steps(path: Any) -> Path:
    return tuple(Step(one.name, dict(one.key)) for one in path.elem)


def _value(told: Any) -> object:
    """Return a number, a word or a tree; None for what counters never are."""
    kind = told.WhichOneof("value")
    if kind in PLAIN:
        return getattr(told, kind)
    if kind in TREES:
        text: bytes = getattr(told, kind)
        return int(text[1:-1]) if COUNT.fullmatch(text) else parsed(text.decode("utf-8", "replace"))
    return None
