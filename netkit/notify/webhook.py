"""Messages for any program, as JSON. Pure."""

import hashlib
import hmac
import json
from typing import Any

from netkit.notify.event import plain
from netkit.notify.message import EventGroup, Message, digest, groups, look, place

FORMAT = 1


def payload(told: Message, most: int) -> dict[str, Any]:
    """Return a message: every event, and the groups that people would read first."""
    found = groups(told.events)
    return {
        "format": FORMAT,
        "id": told.id,
        "fabric": told.fabric,
        "lab": told.lab,
        "at_s": told.at_s,
        "rounds": told.rounds,
        "digest": digest(told),
        "open": dict(told.open),
        "groups": [_group(group) for group in found[:most]],
        "groups_left_out": max(0, len(found) - most),
        "events": [plain(event) for event in told.events],
        "silences_ended": list(told.ends),
        "look": look(told),
    }


def _group(group: EventGroup) -> dict[str, Any]:
    verdict = max(event.now for event in group.events)
    told = {
        "change": group.change,
        "word": group.word,
        "verdict": verdict.word,
        "where": place(group),
        "check": group.head.key.check,
    }
    return {**told, "text": group.head.text, "events": [event.id for event in group.events]}


def encoded(value: object) -> bytes:
    """Return the bytes that are sent, and signed."""
    return json.dumps(value, separators=(",", ":"), ensure_ascii=True).encode()


def signature(data: bytes, secret: str) -> str:
    """Return the signature that authenticates a message."""
    return "sha256=" + hmac.new(secret.encode(), data, hashlib.sha256).hexdigest()
