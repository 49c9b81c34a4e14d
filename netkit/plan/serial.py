"""A plan as JSON, and back: exactly the same plan, or an error."""

import hashlib
import json
from collections.abc import Iterator
from dataclasses import fields, is_dataclass
from functools import cache
from ipaddress import IPv4Network
from typing import Any

from pydantic import TypeAdapter, ValidationError

from netkit.errors import PlanError, Problem
from netkit.plan.model import SCHEMA, Plan
from netkit.platforms.change import Change, Risk, risk_of

AGAIN = "make the plan again"

Document = dict[str, Any]


def write(plan: Plan) -> str:
    """Return a plan as JSON with its digest, one device per line."""
    return "\n".join(_lines({**_document(plan), "digest": digest(plan)})) + "\n"


def digest(plan: Plan) -> str:
    """Return the digest of a whole plan: what was approved is what is deployed."""
    return _digest(_document(plan))


def read(text: str, file: str = "") -> Plan:
    """Parse a plan; refuse one of a newer netkit, or one that was edited."""
    try:
        document = json.loads(text)
    except (ValueError, RecursionError):
        raise PlanError(Problem("is not a plan", AGAIN, file=file)) from None
    schema = document.get("schema") if isinstance(document, dict) else None
    if type(schema) is not int:
        raise PlanError(Problem("is not a plan", AGAIN, file=file))
    if schema < SCHEMA:
        message = f"is of an older netkit: schema {schema}, which has no order of its devices"
        raise PlanError(Problem(message, AGAIN, file=file))
    if schema > SCHEMA:
        message = f"is of a newer netkit: schema {schema}, this one reads up to {SCHEMA}"
        raise PlanError(Problem(message, "use that netkit, or make the plan again with this one", file=file))
    expected = document.pop("digest", "")
    if _digest(document) != expected:
        raise PlanError(Problem("was changed after it was made", AGAIN, file=file))
    plan = _plan(document)
    if plan is None or digest(plan) != expected:  # the document holds more, or something else, than a plan
        raise PlanError(Problem("is not a whole plan", AGAIN, file=file))
    return plan


@cache
def _adapter() -> TypeAdapter[Plan]:
    """Build the adapter on first use: that is slow, and most commands only write plans."""
    return TypeAdapter(Plan)


def _plan(document: Document) -> Plan | None:
    """Return the plan of a document; None if something is missing or wrong."""
    try:
        staged = [one[stage] for one in document["bridges"] for stage in ("first", "then")]
        for device in (*document["devices"], *staged):
            for judged in (device, device["way"], *device["changes"]):
                judged["risk"] = risk_of(judged["risk"])
        return _adapter().validate_python(document)
    except (ValidationError, LookupError, TypeError, AttributeError, RecursionError):
        return None


def _digest(document: Document) -> str:
    text = json.dumps(document, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()


def _lines(document: Document) -> Iterator[str]:
    devices = document.pop("devices")
    head = json.dumps(document, indent=1)
    yield head[: head.rindex("\n")] + ","
    yield ' "devices": ['
    for number, device in enumerate(devices, 1):
        yield f"  {json.dumps(device)}{',' if number < len(devices) else ''}"
    yield " ]"
    yield "}"


def _document(plan: Plan) -> Document:
    head = {"schema": plan.schema, "netkit": plan.netkit, "fabric": plan.fabric}
    return head | {key: value for key, value in _plain(plan).items() if key not in head}


def _plain(value: Any) -> Any:
    """Return a value in JSON form, with risks as words."""
    if isinstance(value, Change):
        return {
            "path": list(value.path),
            "running": value.running,
            "intended": value.intended,
            "risk": value.risk.word,
            "note": value.note,
        }
    if isinstance(value, Risk):
        return value.word
    if is_dataclass(value) and not isinstance(value, type):
        return {item.name: _plain(getattr(value, item.name)) for item in fields(value) if item.compare}
    if isinstance(value, tuple | list):
        return [_plain(item) for item in value]
    if isinstance(value, IPv4Network):
        return str(value)
    return value
