"""`netkit schema`."""

from netkit.cli.text import write_json
from netkit.intent.schema import json_schema


def run() -> None:
    """Print the JSON Schema of fabric.yaml."""
    write_json(json_schema())
