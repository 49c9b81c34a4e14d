"""`netkit schema`."""

from collections.abc import Callable, Mapping
from typing import Any

from netkit.errors import Problem, UsageError
from netkit.intent.model import DIALECT, json_schema
from netkit.terminal.text import write_json

Plain = dict[str, Any]


def run(name: str) -> None:
    """Print the JSON Schema of a file of a fabric's folder."""
    if name not in SCHEMAS:
        raise UsageError(Problem(f"no schema of {name!r}", f"use one of {', '.join(SCHEMAS)}"))
    write_json(SCHEMAS[name]())


def _access() -> Plain:
    from netkit.access.settings import AccessSettings  # noqa: PLC0415 (the schema of the intent does without)

    return _whole("access", AccessSettings.model_json_schema())


def _deploy() -> Plain:
    from netkit.deploy.policy import DeployPolicy  # noqa: PLC0415 (the schema of the intent does without)

    return _whole("deploy", DeployPolicy.model_json_schema())


def _notify() -> Plain:
    from netkit.notify.settings import NotifySettings  # noqa: PLC0415 (the schema of the intent does without)

    return _whole("notify", NotifySettings.model_json_schema())


def _silences() -> Plain:
    from netkit.silence.entry import schema  # noqa: PLC0415 (the schema of the intent does without)

    return _whole("silences", schema())


def _whole(name: str, schema: Plain) -> Plain:
    return {"$schema": DIALECT, "$comment": f"written by `netkit schema {name}`", **schema, "title": f"netkit {name}"}


SCHEMAS: Mapping[str, Callable[[], Plain]] = {
    "fabric": json_schema,
    "access": _access,
    "deploy": _deploy,
    "notify": _notify,
    "silences": _silences,
}
