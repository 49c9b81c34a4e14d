"""The JSON Schema of fabric.yaml."""

from typing import Any

from netkit.intent.model import Intent

DIALECT = "https://json-schema.org/draft/2020-12/schema"


def json_schema() -> dict[str, Any]:
    """Return the schema editors check fabric.yaml with."""
    schema = Intent.model_json_schema()
    return {
        "$schema": DIALECT,
        "$comment": "written by `netkit schema`",
        **schema,
        "title": "netkit fabric",
    }
