"""Whether tables are a CONFIG_DB this branch would take: keys, leaves, references, and rules across rows."""

from collections.abc import Iterator

from netkit.lab.node import RefusedError
from netkit.lab.personalities.sonic.constraints import broken_rules
from netkit.lab.personalities.sonic.kinds import Kind, Rows
from netkit.lab.personalities.sonic.schema import Form, Schema
from netkit.lab.personalities.sonic.tables import Row, Tables, View, parts

LONGEST_LIST = 20


def refuse_invalid(tables: Tables, schema: Schema) -> None:
    """Raise RefusedError with every reason why tables are not valid."""
    found = problems(tables, schema)
    if found:
        left_out = [f"and {len(found) - LONGEST_LIST} more"] if len(found) > LONGEST_LIST else []
        raise RefusedError("\n".join([*found[:LONGEST_LIST], *left_out]))


def problems(tables: View, schema: Schema) -> list[str]:
    """Return every reason why tables are not valid."""
    rows = Rows(tables)
    found = [problem for name in tables for problem in _table_problems(tables, name, schema, rows)]
    # Rules across rows read values that must be right by themselves first.
    return found or list(broken_rules(tables))


def _table_problems(tables: View, name: str, schema: Schema, rows: Rows) -> Iterator[str]:
    if name not in schema.tables:
        yield f"{name}: no such table in SONiC {schema.branch}"
        return
    if not tables[name]:
        yield f"{name}: an empty table cannot be stored"
    for key, row in tables[name].items():
        form = schema.form(name, key, rows)
        if form is None:
            yield f"{name}|{key}: {_why_no_key(schema, name, key, rows)}"
        else:
            yield from (f"{name}|{key}: {problem}" for problem in _row_problems(form, key, dict(row), rows))


def _why_no_key(schema: Schema, name: str, key: str, rows: Rows) -> str:
    """Return what is wrong with a key, by the first form of as many parts."""
    found = parts(key)
    for form in schema.tables[name]:
        if len(form.key) == len(found):
            for index, (kind, part) in enumerate(zip(form.key, found, strict=True)):
                if not kind.fits(part, rows, found[:index]):
                    return f"{part!r} does not fit the key: {kind.wording}"
    return "a key of this table has another number of parts"


def _row_problems(form: Form, key: str, row: Row, rows: Rows) -> Iterator[str]:
    if form.pairs:
        yield from _pair_problems(form.pairs, row, rows)
        return
    before = parts(key)
    for leaf, value in row.items():
        known = form.leaves.get(leaf)
        if known is None:
            yield f"unknown field {leaf}"
        elif not known.kind.fits(value, rows, before):
            yield f"{leaf}: {value!r} does not fit: {known.kind.wording}"
    yield from (f"{name} is missing" for name, leaf in form.leaves.items() if leaf.is_mandatory and name not in row)


def _pair_problems(pairs: tuple[Kind, Kind], row: Row, rows: Rows) -> Iterator[str]:
    names, values = pairs
    if not row:
        yield "needs at least one pair"
    for name, value in row.items():
        if not names.fits(name, rows, ()):
            yield f"{name!r} does not fit: {names.wording}"
        if not values.fits(value, rows, ()):
            yield f"{name}: {value!r} does not fit: {values.wording}"
