"""The generic updater: whether a change is let in, in which order it is made, and which ports it takes down."""

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from netkit.lab.node import RefusedError
from netkit.lab.personalities.sonic.edits import Edit, difference
from netkit.lab.personalities.sonic.permissions import Permissions
from netkit.lab.personalities.sonic.schema import Schema
from netkit.lab.personalities.sonic.tables import Tables, View, text
from netkit.lab.personalities.sonic.validate import problems


@dataclass(frozen=True, slots=True)
class Change:
    """A change the updater makes: to what, step by step, and the ports it shuts on the way."""

    intended: Tables
    steps: tuple[Edit, ...]
    flapping_ports: tuple[str, ...]

    def lines(self) -> Iterator[str]:
        """Yield the steps as the updater prints them."""
        yield from (json.dumps([step.as_json()]) for step in self.steps)


def change(running: View, intended: Tables, schema: Schema, permissions: Permissions) -> Change:
    """Return how the updater goes from one state to the other, or raise RefusedError with why it does not."""
    _refuse("The running config is invalid, which blocks every patch:", problems(running, schema))
    _refuse("Given patch will produce invalid config:", _target_problems(intended, schema))
    edits = difference(running, intended)
    _refuse("Given patch is not permitted:", list(permissions.refusals(edits)))
    ports = _ports_to_shut(running, intended, edits, permissions)
    return Change(intended, tuple(_steps(intended, edits, ports, schema, permissions)), ports)


def _target_problems(intended: Tables, schema: Schema) -> list[str]:
    empty = [name for name, rows in intended.items() if not rows]
    if empty:
        return [f"empty tables do not show up in ConfigDb: {', '.join(empty)}"]
    return problems(intended, schema)


def _refuse(headline: str, found: list[str]) -> None:
    if found:
        raise RefusedError("\n".join([headline, *found]))


def _ports_to_shut(running: View, intended: View, edits: Iterable[Edit], permissions: Permissions) -> tuple[str, ...]:
    """Return the ports that are up before and after, and have a row that changes only while they are down."""
    found: dict[str, None] = {}
    for edit in edits:
        for name in _ports_of(running, intended, edit) if edit.table in permissions.flapping else ():
            if _is_up(running, name) and _is_up(intended, name):
                found[name] = None
    return tuple(found)


def _ports_of(running: View, intended: View, edit: Edit) -> Iterator[str]:
    if edit.key:
        yield edit.port
    else:
        for key in {**running.get(edit.table, {}), **intended.get(edit.table, {})}:
            yield key.partition("|")[0]


def _is_up(tables: View, port: str) -> bool:
    return text(tables, "PORT", port, "admin_status") == "up"


def _steps(
    intended: View, edits: list[Edit], ports: tuple[str, ...], schema: Schema, permissions: Permissions
) -> Iterator[Edit]:
    """Yield the steps in order: a row comes before what names it, and goes after it."""
    yield from (Edit("replace", "PORT", port, "admin_status", "down") for port in ports)
    whole = list(_with_recreated_rows(intended, edits, permissions))
    removals = sorted(
        (edit for edit in whole if _takes_rows(edit, intended)), key=lambda edit: -schema.depths[edit.table]
    )
    others = sorted(
        (edit for edit in whole if not _takes_rows(edit, intended)), key=lambda edit: schema.depths[edit.table]
    )
    # A row that nothing can name, such as an address, goes first: it may be in the way of what comes.
    yield from (edit for edit in removals if edit.table not in schema.named)
    yield from others
    yield from (edit for edit in removals if edit.table in schema.named)
    yield from (Edit("replace", "PORT", port, "admin_status", "up") for port in ports)


def _takes_rows(edit: Edit, intended: View) -> bool:
    """Whether rows go for good; one that is created anew stays where its change stands."""
    return edit.operation == "remove" and not edit.leaf and edit.key not in intended.get(edit.table, {})


def _with_recreated_rows(intended: View, edits: Iterable[Edit], permissions: Permissions) -> Iterator[Edit]:
    recreated: set[tuple[str, str]] = set()
    found = list(edits)
    for edit in found:
        if permissions.recreates(edit) and (edit.table, edit.key) not in recreated:
            recreated.add((edit.table, edit.key))
            yield Edit("remove", edit.table, edit.key)
            yield Edit("add", edit.table, edit.key, value=dict(intended[edit.table][edit.key]))
    yield from (edit for edit in found if (edit.table, edit.key) not in recreated)
