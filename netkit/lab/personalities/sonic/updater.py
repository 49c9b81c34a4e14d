"""The generic updater: the edits between two states of CONFIG_DB, their order, and the ports they take down."""

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Literal

import jsonpatch
import jsonpointer
import yaml

from netkit.lab.node import ConfigRefusedError
from netkit.lab.personalities.sonic.schema import FOREVER, Schema, problems
from netkit.lab.personalities.sonic.tables import (
    Row,
    Table,
    Tables,
    Value,
    View,
    natural,
    ordered,
    parse_json,
    shaped,
    text,
)

Operation = Literal["add", "remove", "replace"]


@dataclass(frozen=True, slots=True)
class UpdaterEdit:
    """One operation on a table, a row or a leaf; the unused names are empty."""

    operation: Operation
    table: str
    key: str = ""
    leaf: str = ""
    value: Value | Row | Table | None = None

    @property
    def path(self) -> str:
        return "/".join(part for part in (self.table, self.key, self.leaf) if part)

    @property
    def port(self) -> str:
        """The port of a row: the first part of its key."""
        return self.key.partition("|")[0]

    def as_json(self) -> dict[str, object]:
        """The edit as a JSON patch operation."""
        names = (part.replace("~", "~0").replace("/", "~1") for part in (self.table, self.key, self.leaf) if part)
        entry: dict[str, object] = {"op": self.operation, "path": "/" + "/".join(names)}
        return entry if self.operation == "remove" else {**entry, "value": self.value}


def difference(running: View, intended: View) -> list[UpdaterEdit]:
    return [edit for table in sorted({*running, *intended}) for edit in _table_edits(running, intended, table)]


def _table_edits(running: View, intended: View, table: str) -> Iterator[UpdaterEdit]:
    if table not in intended:
        yield UpdaterEdit("remove", table)
    elif table not in running:
        yield UpdaterEdit("add", table, value={key: dict(row) for key, row in intended[table].items()})
    else:
        before, after = running[table], intended[table]
        for key in sorted({*before, *after}, key=natural):
            if key not in after:
                yield UpdaterEdit("remove", table, key)
            elif key not in before:
                yield UpdaterEdit("add", table, key, value=dict(after[key]))
            else:
                yield from _leaf_edits(table, key, dict(before[key]), dict(after[key]))


def _leaf_edits(table: str, key: str, before: Row, after: Row) -> Iterator[UpdaterEdit]:
    for leaf in sorted({*before, *after}):
        if leaf not in after:
            yield UpdaterEdit("remove", table, key, leaf)
        elif leaf not in before:
            yield UpdaterEdit("add", table, key, leaf, after[leaf])
        elif before[leaf] != after[leaf]:
            yield UpdaterEdit("replace", table, key, leaf, after[leaf])


def read(text: str) -> list[dict[str, object]]:
    """Parse a JSON patch."""
    found = parse_json(text, "the patch")
    if not isinstance(found, list) or not all(isinstance(entry, dict) for entry in found):
        raise ConfigRefusedError("the patch: expected a list of operations")
    return found


def patched(running: View, operations: list[dict[str, object]]) -> Tables:
    try:
        result: object = jsonpatch.JsonPatch(operations).apply(ordered(running), in_place=True)
    except (jsonpatch.JsonPatchException, jsonpointer.JsonPointerException, KeyError, TypeError, ValueError) as error:
        raise ConfigRefusedError(f"{type(error).__name__}: {error}") from error
    return shaped(result, "the patched configuration")


FILE = Path(__file__).parent / "data" / "updater.yaml"


@dataclass(frozen=True, slots=True)
class UpdaterRule:
    """Operations on paths that match a pattern."""

    path: re.Pattern[str]
    operations: frozenset[str]
    reason: str = ""
    is_for_any: bool = False
    """Whether the rule also applies to models that are not listed."""

    def names(self, edit: UpdaterEdit) -> bool:
        """Whether the rule covers an edit."""
        return edit.operation in self.operations and self.path.fullmatch(edit.path) is not None


@dataclass(frozen=True, slots=True)
class Permissions:
    """The updater's rules for one branch and model."""

    is_listed: bool
    guarded: Mapping[str, tuple[UpdaterRule, ...]]
    forbidden: tuple[UpdaterRule, ...]
    flapping: frozenset[str]
    create_only: tuple[re.Pattern[str], ...]

    def refusals(self, edits: Iterable[UpdaterEdit]) -> Iterator[str]:
        """Yield the reason for each edit that is not permitted."""
        for edit in edits:
            found = next((rule for rule in self.forbidden if rule.names(edit)), None)
            if found:
                yield f"{edit.operation} of {edit.path} is not permitted: {found.reason}"
            elif edit.table in self.guarded:
                rules = [rule for rule in self.guarded[edit.table] if self.is_listed or rule.is_for_any]
                if not any(rule.names(edit) for rule in rules):
                    yield (
                        f"Modification of {edit.path} ({edit.operation}) is illegal- validating function returned False"
                    )

    def flaps(self, edit: UpdaterEdit) -> bool:
        """Whether the port must be down for an edit."""
        return edit.table in self.flapping and edit.port.startswith("Ethernet")

    def recreates(self, edit: UpdaterEdit) -> bool:
        """Whether an edit removes and re-creates its row."""
        return any(pattern.fullmatch(edit.path) for pattern in self.create_only)


@cache
def permissions(branch: int, hwsku: str) -> Permissions:
    data: dict[str, Any] = yaml.load(FILE.read_text(encoding="utf-8"), Loader=yaml.CSafeLoader)
    return Permissions(
        is_listed=any(
            branch >= entry["since"] and re.fullmatch(entry["hwsku"], hwsku) is not None for entry in data["listed"]
        ),
        guarded={
            entry["table"]: tuple(map(_rule, entry["allow"]))
            for entry in data["guarded"]
            if int(entry.get("since", 0)) <= branch <= int(entry.get("until", FOREVER))
        },
        forbidden=tuple(map(_rule, data["forbidden"])),
        flapping=frozenset(data["flapping"]),
        create_only=tuple(re.compile(path) for path in data["create_only"]),
    )


def _rule(entry: Mapping[str, Any]) -> UpdaterRule:
    operations, is_for_any = frozenset(entry["operations"]), bool(entry.get("any"))
    return UpdaterRule(re.compile(entry["path"]), operations, entry.get("reason", ""), is_for_any)


@dataclass(frozen=True, slots=True)
class UpdaterChange:
    """A planned change: the resulting tables, the steps, and the ports that go down meanwhile."""

    intended: Tables
    steps: tuple[UpdaterEdit, ...]
    flapping_ports: tuple[str, ...]

    def lines(self) -> Iterator[str]:
        yield from (json.dumps([step.as_json()]) for step in self.steps)


def change(running: View, intended: Tables, schema: Schema, permissions: Permissions) -> UpdaterChange:
    """Plan a change; raise ConfigRefusedError with every reason against it."""
    _refuse("The running config is invalid, which blocks every patch:", problems(running, schema))
    empty = [name for name, rows in intended.items() if not rows]
    headline = "Given patch will produce invalid config:"
    _refuse(headline, [f"empty tables do not show up in ConfigDb: {', '.join(empty)}"] if empty else [])
    _refuse(headline, problems(intended, schema))
    edits = difference(running, intended)
    _refuse("Given patch is not permitted:", list(permissions.refusals(edits)))
    ports: dict[str, None] = {}
    for edit in edits:
        if edit.table not in permissions.flapping:
            continue
        keys = [edit.key] if edit.key else {**running.get(edit.table, {}), **intended.get(edit.table, {})}
        for port in (key.partition("|")[0] for key in keys):
            if _is_up(running, port) and _is_up(intended, port):
                ports[port] = None
    return UpdaterChange(intended, tuple(_steps(intended, edits, tuple(ports), schema, permissions)), tuple(ports))


def _refuse(headline: str, found: list[str]) -> None:
    if found:
        raise ConfigRefusedError("\n".join([headline, *found]))


def _is_up(tables: View, port: str) -> bool:
    return text(tables, "PORT", port, "admin_status") == "up"


def _steps(
    intended: View, edits: list[UpdaterEdit], ports: tuple[str, ...], schema: Schema, permissions: Permissions
) -> Iterator[UpdaterEdit]:
    """Yield the steps in order: a row is added before and removed after the rows that refer to it."""
    yield from (UpdaterEdit("replace", "PORT", port, "admin_status", "down") for port in ports)
    whole = list(_with_recreated_rows(intended, edits, permissions))
    removals = sorted(
        (edit for edit in whole if _takes_rows(edit, intended)), key=lambda edit: -schema.depths[edit.table]
    )
    others = sorted(
        (edit for edit in whole if not _takes_rows(edit, intended)), key=lambda edit: schema.depths[edit.table]
    )
    # A row that nothing can refer to, such as an address, is removed first: it may conflict with a new one.
    yield from (edit for edit in removals if edit.table not in schema.named)
    yield from others
    yield from (edit for edit in removals if edit.table in schema.named)
    yield from (UpdaterEdit("replace", "PORT", port, "admin_status", "up") for port in ports)


def _takes_rows(edit: UpdaterEdit, intended: View) -> bool:
    """Whether an edit removes rows for good; one that is re-created keeps its place in the order."""
    return edit.operation == "remove" and not edit.leaf and edit.key not in intended.get(edit.table, {})


def _with_recreated_rows(
    intended: View, edits: Iterable[UpdaterEdit], permissions: Permissions
) -> Iterator[UpdaterEdit]:
    recreated: set[tuple[str, str]] = set()
    found = list(edits)
    for edit in found:
        if permissions.recreates(edit) and (edit.table, edit.key) not in recreated:
            recreated.add((edit.table, edit.key))
            yield UpdaterEdit("remove", edit.table, edit.key)
            yield UpdaterEdit("add", edit.table, edit.key, value=dict(intended[edit.table][edit.key]))
    yield from (edit for edit in found if (edit.table, edit.key) not in recreated)
