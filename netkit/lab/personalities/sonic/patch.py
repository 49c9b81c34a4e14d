"""A JSON patch (RFC 6902) on CONFIG_DB."""

import jsonpatch
import jsonpointer

from netkit.lab.node import RefusedError
from netkit.lab.personalities.sonic.tables import Tables, View, ordered, parse_json, shaped


def read(text: str) -> list[dict[str, object]]:
    """Return the operations of a patch, or say why it is none."""
    found = parse_json(text, "the patch")
    if not isinstance(found, list) or not all(isinstance(entry, dict) for entry in found):
        raise RefusedError("the patch: expected a list of operations")
    return found


def patched(running: View, operations: list[dict[str, object]]) -> Tables:
    """Return the tables after a patch; the running ones stay as they are."""
    try:
        result: object = jsonpatch.JsonPatch(operations).apply(ordered(running), in_place=True)
    except (jsonpatch.JsonPatchException, jsonpointer.JsonPointerException, KeyError, TypeError, ValueError) as error:
        raise RefusedError(f"{type(error).__name__}: {error}") from error
    return shaped(result, "the patched configuration")
