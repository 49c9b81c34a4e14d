"""A proposal as fabric.yaml: only what differs from the defaults, and above each section what was guessed in it."""

import types
from collections.abc import Iterable, Mapping
from typing import Any, Union, get_args, get_origin

import yaml
from pydantic import BaseModel

from netkit.adopt.fabric_values import Values
from netkit.adopt.proposal import FoundIntent
from netkit.intent.model import Intent
from netkit.intent.scaffold import SCHEMA_FILE

WIDTH = 118
SPACED = ("switches", "hosts", "ceilings", "cables", "pools", "lossless", "tables", "leave")
"""Sections with an empty line before them."""


def fabric_yaml(proposal: FoundIntent, leave: Iterable[Mapping[str, str]]) -> str:
    """Write the intent; its tables are in CSV files beside it."""
    short = without_defaults(proposal.values, Intent)
    if proposal.tables:
        short["tables"] = {table: f"{table}.csv" for table in proposal.tables}
    if rules := [dict(rule) if "devices" in rule else rule["path"] for rule in leave]:
        short["leave"] = rules
    notes: dict[str, list[str]] = {}
    for section, text in proposal.guesses:
        notes.setdefault(section, []).append(text)
    parts = [f"# yaml-language-server: $schema={SCHEMA_FILE}\n"]
    for key in (key for key in Intent.model_fields if key in short or key in notes):
        parts += ["\n"] if key in SPACED or key not in short else []
        parts += [f"# guessed: {text}\n" for text in notes.get(key, ())]
        if key == "leave":
            parts.append("# runs, but not in the intent; if you delete a line, the next deploy changes that part\n")
        parts += [_section(key, short[key])] if key in short else []
    return "".join(parts)


def _section(key: str, value: object) -> str:
    """Write a section; mappings and lists without others in them are on one line."""
    if not isinstance(value, dict | list):
        return yaml.safe_dump({key: value}, sort_keys=False)
    text = yaml.safe_dump(value, sort_keys=False, width=WIDTH, default_flow_style=None)
    if text.startswith(("{", "[")):
        return f"{key}: {text}"
    return f"{key}:\n" + "".join(f"  {line}\n" for line in text.splitlines())


def without_defaults(values: Mapping[str, object], kind: type[BaseModel]) -> Values:
    """Leave out what has the default value."""
    short: Values = {}
    for key, value in values.items():
        field = kind.model_fields.get(key)
        inner = _model(field.annotation) if field else None
        if isinstance(value, dict) and inner:
            if (below := without_defaults(value, inner)) or (field and field.is_required()):
                short[key] = below
        elif (
            field and not field.is_required() and _plain(field.get_default(call_default_factory=True)) == _plain(value)
        ):
            continue
        else:
            short[key] = value
    return short


def _model(annotation: Any) -> type[BaseModel] | None:
    """The model of a field that is one, or may be one."""
    options = get_args(annotation) if get_origin(annotation) in {Union, types.UnionType} else (annotation,)
    return next((one for one in options if isinstance(one, type) and issubclass(one, BaseModel)), None)


def _plain(value: object) -> object:
    if isinstance(value, list | tuple):
        return [_plain(one) for one in value]
    return value if value is None or isinstance(value, bool | int | float | dict) else str(value)
