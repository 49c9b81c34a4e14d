"""Messages for any program, as JSON."""

import hashlib
import hmac
import json
from typing import Any

from netkit.notify.event import plain
from netkit.notify.message import EventGroup, Message, digest, groups, look, place

FORMAT = 1


def payload(message: Message, most: int) -> dict[str, Any]:
    """Return a message: every event, and the groups as people would read them."""
    found = groups(message.events)
    return {
        "format": FORMAT,
        "id": message.id,
        "fabric": message.fabric,
        "lab": message.lab,
        "at_s": message.at_s,
        "rounds": message.rounds,
        "digest": digest(message),
        "open": dict(message.open),
        "groups": [_group(group) for group in found[:most]],
        "groups_left_out": max(0, len(found) - most),
        "events": [plain(event) for event in message.events],
        "silences_ended": list(message.ends),
        "look": look(message),
    }


def _group(group: EventGroup) -> dict[str, Any]:
    verdict = max(event.now for event in group.events)
    return {
        "change": group.change,
        "word": group.word,
        "verdict": verdict.word,
        "where": place(group),
        "check": group.head.key.check,
        "text": group.head.text,
        "events": [event.id for event in group.events],
    }


def encoded(value: object) -> bytes:
    """Return the bytes that are sent and signed."""
    return json.dumps(value, separators=(",", ":"), ensure_ascii=True).encode()


def signature(data: bytes, secret: str) -> str:
    """Return the HMAC that authenticates a message."""
    return "sha256=" + hmac.new(secret.encode(), data, hashlib.sha256).hexdigest()
