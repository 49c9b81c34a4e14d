"""The page of all facts: kinds and fields from the classes, meanings from the docstrings below the fields."""

import ast
import inspect
import re
import textwrap
from collections.abc import Iterator, Mapping
from itertools import pairwise
from typing import Any

from netkit.facts import COUNTERS, Facts
from netkit.facts.device import FileSystem, Interface, Neighbor, Probe, System
from netkit.facts.host import BgpSession, DefaultRoute, HostFacts, Lookup, NicFacts
from netkit.facts.optic import Lane, Limits, Line, Module
from netkit.facts.qos import Buffer, Ecn, PortQos, Watchdog

RECORDS: tuple[type, ...] = (
    System,
    FileSystem,
    Interface,
    Neighbor,
    Module,
    Lane,
    Limits,
    Line,
    BgpSession,
    PortQos,
    Ecn,
    Watchdog,
)
RECORDS += (Buffer, DefaultRoute, Lookup, Probe, NicFacts, HostFacts)
ABSENT = r" \| Absent"
HEAD = """# Fact reference

Generated from the code (`scripts/docs`), for authors of [checks](write-a-check.md) and readers of snapshots.
[Facts](facts.md) lists what each NOS reports, and by which command. `None` and an empty text mean that the device did
not report the value. A missing kind is `Absent`, with a `reason`.

## Kinds

Read a kind as `device.facts.KIND`. A check lists the kinds that it requires in `needs`.

| kind | type | content |
| --- | --- | --- |
"""
COUNTED = """
## Counters

Read a counter as `device.delta(NAME, PLACE)`. A place is a port or NIC, or `port/n` for a priority, a queue or a bin.

| counter | per | unit | counts |
| --- | --- | --- | --- |
"""


def page() -> str:
    """docs/fact-catalogue.md."""
    kinds = "".join(
        f"| `{name}` | {kind.removesuffix(' | Absent')} | {text} |\n" for name, kind, text in _fields(Facts)
    )
    records = "".join(line for record in RECORDS for line in _record(record))
    counters = "".join(f"| `{name}` | {kind.scope} | {kind.unit} | {kind.text} |\n" for name, kind in COUNTERS.items())
    return HEAD + kinds + records + COUNTED + counters


def _record(record: type) -> Iterator[str]:
    yield f"\n## {record.__name__}\n\n{inspect.getdoc(record)}\n\n| field | type | meaning |\n| --- | --- | --- |\n"
    for name, kind, text in _fields(record):
        yield f"| `{name}` | {kind} | {text} |\n"


def _fields(record: type) -> Iterator[tuple[str, str, str]]:
    """Yield each field with its type and its docstring, which only the source contains."""
    tree: Any
    (tree,) = ast.parse(textwrap.dedent(inspect.getsource(record))).body
    body = [*tree.body, None]
    for node, after in pairwise(body):
        if isinstance(node, ast.AnnAssign):
            yield ast.unparse(node.target), _linked(ast.unparse(node.annotation)), _text(after)


def _text(node: Any) -> str:
    is_text = isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
    return " ".join(str(node.value.value).split()).replace("|", r"\|") if is_text else ""


def _linked(kind: str) -> str:
    """Link each record in a type to its table."""
    known: Mapping[str, str] = {record.__name__: record.__name__.lower() for record in RECORDS}
    parts = re.split(r"(\w+)", kind.replace("|", r"\|"))
    return "".join(f"[{part}](#{known[part]})" if part in known else part for part in parts)
