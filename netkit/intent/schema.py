"""The JSON Schema of fabric.yaml."""

from typing import Any

from netkit.intent.model import Intent


def json_schema() -> dict[str, Any]:
    """Return the schema editors check fabric.yaml with."""
    schema = Intent.model_json_schema()
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$comment": "written by `netkit schema`",
        **schema,
        "title": "netkit fabric",
    }
