"""gNMI's messages to updates and back. The classes are pygnmi's, handed in: nothing here needs it before it is used."""

from collections.abc import Iterator, Sequence
from typing import Any

from netkit.platforms.gnmi.path import Path, Step
from netkit.platforms.gnmi.question import Question
from netkit.platforms.gnmi.update import Update
from netkit.platforms.shown import parsed

NANO = 1_000_000_000
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


def updates(notification: Any) -> Iterator[Update]:
    """Yield what a notification tells; what it says is gone is not told."""
    prefix = _steps(notification.prefix)
    for one in notification.update:
        yield Update((*prefix, *_steps(one.path)), _value(one.val))


def _steps(path: Any) -> Path:
    return tuple(Step(one.name, dict(one.key)) for one in path.elem)


def _value(told: Any) -> object:
    """Return a number, a word or a tree; None for what counters never are."""
    kind = told.WhichOneof("value")
    if kind in PLAIN:
        return getattr(told, kind)
    if kind in {"json_val", "json_ietf_val"}:
        return parsed(getattr(told, kind).decode("utf-8", "replace"))
    return None
