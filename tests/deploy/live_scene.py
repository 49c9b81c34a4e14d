"""Intents small enough to deploy on every platform, and accessors for an outcome."""

import copy
from typing import Any

from netkit.deploy import Outcome
from tests import intents
from tests.plan.scenes import VERSIONS

SMALL = {
    "units": [{"unit": 1, "hosts": 1}],
    "ceilings": {"units": 1, "hosts_per_unit": 4, "spines": 4},
    "routing": {"bfd": {"interval_ms": 1000, "multiplier": 3}},
}


def values(platform: str, changes: dict[str, Any] | None = None) -> dict[str, Any]:
    """A small intent: 2 leaves, 2 spines, one host."""
    found = intents.on_platform(platform, VERSIONS[platform], SMALL)
    return merged(found, changes or {})


def merged(base: dict[str, Any], changes: dict[str, Any]) -> dict[str, Any]:
    """Change an intent in place; None removes a key."""
    for key, value in changes.items():
        if isinstance(value, dict) and isinstance(base.get(key), dict):
            merged(base[key], value)
        elif value is None:
            base.pop(key, None)
        else:
            base[key] = copy.deepcopy(value)
    return base


def results(outcome: Outcome) -> dict[str, str]:
    """The result of each device."""
    return {one.device: one.result.value for one in outcome.devices}


def reasons(outcome: Outcome) -> str:
    """The reason of each device."""
    return "\n".join(reason for one in outcome.devices for reason in one.reasons)
