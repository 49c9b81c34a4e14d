"""The page of all facts: their kinds and fields from the classes, their meaning from what stands beside each field."""

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
HEAD = """# What can be known of a device

Written from the code (`scripts/docs`), for whoever [writes a check](write-a-check.md) or reads a snapshot. Which NOS
tells what, and by which command: [facts](facts.md). `None` and an empty text mean that the device did not tell; a kind
that is not there is `Absent`, with a `reason`.

## Kinds

`seen.facts.KIND`, and what a check may name in `needs`.

| kind | is |  |
| --- | --- | --- |
"""
COUNTED = """
## Counters

`seen.delta(NAME, PLACE)`. A place is a port or NIC, or `port/n` for a priority, a queue or a bin.

| counter | of each | unit | counts |
| --- | --- | --- | --- |
"""


def page() -> str:
    """Return docs/fact-catalogue.md."""
    kinds = "".join(
        f"| `{name}` | {kind.removesuffix(' | Absent')} | {text} |\n" for name, kind, text in _fields(Facts)
    )
    records = "".join(line for record in RECORDS for line in _record(record))
    counters = "".join(f"| `{name}` | {kind.scope} | {kind.unit} | {kind.text} |\n" for name, kind in COUNTERS.items())
    return HEAD + kinds + records + COUNTED + counters


def _record(record: type) -> Iterator[str]:
    yield f"\n## {record.__name__}\n\n{inspect.getdoc(record)}\n\n| field | type |  |\n| --- | --- | --- |\n"
    for name, kind, text in _fields(record):
        yield f"| `{name}` | {kind} | {text} |\n"


def _fields(record: type) -> Iterator[tuple[str, str, str]]:
    """Yield each field with its type and the text below it, which only the source has."""
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
    """Return a type in which each record leads to its own table."""
    known: Mapping[str, str] = {record.__name__: record.__name__.lower() for record in RECORDS}
    parts = re.split(r"(\w+)", kind.replace("|", r"\|"))
    return "".join(f"[{part}](#{known[part]})" if part in known else part for part in parts)
