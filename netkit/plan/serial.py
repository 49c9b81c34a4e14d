"""A plan as JSON, and back: the same plan or none."""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from typing import Any

from pydantic import TypeAdapter, ValidationError

from netkit.errors import PlanError, Problem
from netkit.plan.shape import SCHEMA, Plan
from netkit.platforms.change import Risk, risk_of

AGAIN = "make the plan again"
ADAPTER = TypeAdapter(Plan)


def write(plan: Plan) -> str:
    """Return a plan as JSON, with its digest."""
    return json.dumps({**_plain_plan(plan), "digest": digest(plan)}, indent=1, ensure_ascii=False) + "\n"


def digest(plan: Plan) -> str:
    """Return the digest of a whole plan: what was approved is what is deployed."""
    text = json.dumps(_plain_plan(plan), sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()


def read(text: str, file: str = "") -> Plan:
    """Return the plan a file holds; refused when it is of a newer netkit, or not exactly as it was written."""
    try:
        document = json.loads(text, object_hook=_with_risk)
    except (ValueError, RecursionError, KeyError, AttributeError, TypeError):
        raise PlanError(Problem("is not a plan", AGAIN, file=file)) from None
    schema = document.get("schema") if isinstance(document, dict) else None
    if not isinstance(schema, int):
        raise PlanError(Problem("is not a plan", AGAIN, file=file))
    if schema > SCHEMA:
        message = f"is of a newer netkit: schema {schema}, this one reads up to {SCHEMA}"
        raise PlanError(Problem(message, "use that netkit, or make the plan again with this one", file=file))
    told = document.pop("digest", "")
    try:
        plan = ADAPTER.validate_python(document)
    except (ValidationError, RecursionError):
        raise PlanError(Problem("is not a whole plan", AGAIN, file=file)) from None
    if digest(plan) != told or _plain_plan(plan) != _worded(document):
        raise PlanError(Problem("was changed after it was made", AGAIN, file=file))
    return plan


def _plain_plan(plan: Plan) -> dict[str, Any]:
    head = {"schema": plan.schema, "netkit": plan.netkit, "fabric": plan.fabric}
    return head | {key: value for key, value in _worded(plan).items() if key not in head}


def _worded(value: Any) -> Any:
    """Return a value as JSON has it, with risks as words."""
    if isinstance(value, Risk):
        return value.word
    if is_dataclass(value) and not isinstance(value, type):
        return {item.name: _worded(getattr(value, item.name)) for item in fields(value)}
    if isinstance(value, Mapping):
        return {key: _worded(item) for key, item in value.items()}
    if isinstance(value, tuple | list):
        return [_worded(item) for item in value]
    return value


def _with_risk(found: dict[str, Any]) -> dict[str, Any]:
    if "risk" in found:
        found["risk"] = risk_of(found["risk"])
    return found
