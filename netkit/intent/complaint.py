"""Validation errors of the schema → one plain sentence and a remedy, in terms of the YAML file."""

import difflib
import typing
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from pydantic import BaseModel
from pydantic_core import ErrorDetails

from netkit.errors import Path, Problem
from netkit.intent.model import Intent
from netkit.intent.scalars import UNNAMED_SECRET

# By the kind pydantic gives: what the value must be, and how to write it.
KINDS: Mapping[str, tuple[str, str]] = {
    "int_type": ("a whole number", "write digits only"),
    "int_parsing": ("a whole number", "write digits only"),
    "int_parsing_size": ("a smaller number", "write a smaller one"),
    "int_from_float": ("a whole number", "write digits only"),
    "float_type": ("a number", "write it as 30 or 2.5"),
    "float_parsing": ("a number", "write it as 30 or 2.5"),
    "finite_number": ("a number", "write it as 30 or 2.5"),
    "bool_type": ("true or false", "write true or false"),
    "bool_parsing": ("true or false", "write true or false"),
    "string_type": ("text", "put it in quotes"),
    "tuple_type": ("a list", "write it as [first, second]"),
    "model_type": ("a mapping", "write `key: value` pairs below it"),
    "dict_type": ("a mapping", "write `key: value` pairs below it"),
    "ip_v4_address": ("an IPv4 address", "write it as 192.0.2.1"),
    "ip_v4_network": ("an IPv4 network", "write its first address and length, as 10.128.0.0/16"),
    "ip_v6_address": ("an IPv6 address", "write it as 2001:db8::1"),
    "ip_v6_network": ("an IPv6 network", "write its first address and length, as 2001:db8:128::/48"),
    "ip_v4_interface": ("an IPv4 address with its length", "write it as 192.0.2.10/24"),
}
UNKNOWN_KEY = {"extra_forbidden", "invalid_key"}
BOUNDS = {
    "greater_than_equal": ("is too small", "use {ge} or more"),
    "greater_than": ("is too small", "use more than {gt}"),
    "less_than_equal": ("is too large", "use {le} or less"),
    "less_than": ("is too large", "use less than {lt}"),
    "too_short": ("has too few entries", "give at least {min_length}"),
    "string_too_short": ("is too short", "use at least {min_length} characters"),
    "string_too_long": ("is too long", "use at most {max_length} characters"),
}


def problems(details: Iterable[ErrorDetails]) -> Iterator[Problem]:
    """Yield what is wrong with each value; a key that is missing because it is misspelt is reported once."""
    details = list(details)
    misspelt = {(*detail["loc"][:-1], guess(detail)) for detail in details if detail["type"] in UNKNOWN_KEY}
    for detail in details:
        if detail["type"] != "missing" or detail["loc"] not in misspelt:
            yield problem(detail)


def problem(detail: ErrorDetails) -> Problem:
    """What is wrong with one value."""
    path = tuple(part for part in detail["loc"] if part != "[key]")
    message, remedy = _message_and_remedy(detail, path)
    return Problem(message, remedy, path)


def _message_and_remedy(detail: ErrorDetails, path: Path) -> tuple[str, str]:
    kind = detail["type"]
    if kind in UNKNOWN_KEY:
        known = keys_at(path[:-1])
        close = _close(str(path[-1]), list(known))
        remedy = f"did you mean '{close}'?" if close else f"remove it; known keys here: {', '.join(sorted(known))}"
        return f"unknown key {shown(str(path[-1]))}", remedy
    if kind == "missing":
        field = keys_at(path[:-1]).get(str(path[-1]))
        meaning = f" ({field.description})" if field is not None and field.description else ""
        return "is missing", f"add {path[-1]}{meaning}"
    if detail["input"] is None:
        return "is empty", "give it a value, or remove the key"
    if str(path[-1]).endswith("_secret"):
        return _halves(UNNAMED_SECRET)
    return _of_value(detail)


def _of_value(detail: ErrorDetails) -> tuple[str, str]:
    kind, context, given = detail["type"], detail.get("ctx", {}), shown(detail["input"])
    if kind == "value_error":
        what, remedy = _halves(str(context["error"]))
        return what.replace("{given}", given), remedy
    if kind == "literal_error":
        words = _words(detail)
        close = _close(str(detail["input"]), words)
        choice = f"did you mean {close}?" if close else f"use {', '.join(words[:-1])} or {words[-1]}"
        return f"{given} is not known here", choice
    if kind in BOUNDS:
        what, remedy = BOUNDS[kind]
        bounds = {name: f"{value:g}" if isinstance(value, float) else value for name, value in context.items()}
        return f"{given} {what}", remedy.format(**bounds)
    wanted, remedy = KINDS.get(kind, ("what belongs here", detail["msg"]))
    return f"{given} is not {wanted}", remedy


def _halves(text: str) -> tuple[str, str]:
    what, _, remedy = text.partition("; ")
    return what, remedy


def guess(detail: ErrorDetails) -> str | None:
    """The most likely meaning of an unknown key or word."""
    if detail["type"] in UNKNOWN_KEY:
        return _close(str(detail["loc"][-1]), list(keys_at(detail["loc"][:-1])))
    if detail["type"] == "literal_error":
        return _close(str(detail["input"]), _words(detail))
    return None


def keys_at(path: Path) -> Mapping[str, Any]:
    """The keys the intent knows at a path, by walking the models."""
    return getattr(_type_at(path), "model_fields", {})


def shown(value: object) -> str:
    """A value, shortened for an error message."""
    if isinstance(value, dict | BaseModel):
        return "the mapping"
    if isinstance(value, list | tuple):
        return "the list"
    if isinstance(value, bool):
        return str(value).lower()
    text = repr(value) if isinstance(value, str) else str(value)
    return text if len(text) <= 60 else text[:57] + "..."


def _words(detail: ErrorDetails) -> list[str]:
    return str(detail["ctx"]["expected"]).replace("'", "").replace(" or ", ", ").split(", ")


def _close(word: str, known: list[str]) -> str | None:
    return next(iter(difflib.get_close_matches(word.lower(), known, 1, 0.6)), None)


def _type_at(path: Path) -> Any:
    """The type at a path of the intent, or None."""
    kind: Any = Intent
    for part in path:
        kind = _bare(kind)
        if isinstance(kind, type) and issubclass(kind, BaseModel):
            field = kind.model_fields.get(str(part))
            kind = field.annotation if field else None
        else:
            inner = typing.get_args(kind)
            kind = inner[1] if typing.get_origin(kind) is dict else inner[0] if inner else None
    return _bare(kind)


def _bare(kind: Any) -> Any:
    """A type without what `Annotated` and `| None` add to it."""
    while typing.get_origin(kind) is typing.Annotated:
        kind = typing.get_args(kind)[0]
    inner = [part for part in typing.get_args(kind) if part is not type(None)]
    return _bare(inner[0]) if len(inner) == 1 and typing.get_origin(kind) not in {dict, tuple} else kind
