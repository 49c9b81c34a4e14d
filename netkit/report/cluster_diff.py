"""The changes of a cluster as text: objects with their values, and affected nodes."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import asdict
from difflib import unified_diff

from netkit.plan.cluster_diff import ClusterDiff, ObjectChange, ValueChange
from netkit.report.plan_view import counted, listed

MARKS = {"added": "+", "removed": "-", "changed": "~"}
MOST_VALUES = 12
MOST_LINES = 24
"""Of a value that has several."""
MOST_OBJECTS = 60


def summary(diff: ClusterDiff) -> str:
    """Count changes and affected nodes, in one line."""
    noun = "object" if any(" " in one.name for one in diff.objects) else "file"
    parts = [f"{counted(len(diff.objects), noun)} {'differs' if len(diff.objects) == 1 else 'differ'}"]
    if diff.drained:
        parts.append(f"{counted(len(diff.drained), 'node')} drained")
    if diff.restarted:
        parts.append(f"pods restart on {counted(len(diff.restarted), 'node')}")
    return ", ".join(parts)


def cluster_lines(diff: ClusterDiff) -> Iterator[str]:
    """Yield the lines of a cluster: its objects with their values, and affected nodes."""
    yield from object_lines(diff)
    yield from touched_lines(diff)


def object_lines(diff: ClusterDiff) -> Iterator[str]:
    yield f"  {diff.kind}: {summary(diff)}"
    for one in diff.objects[:MOST_OBJECTS]:
        yield f"  {MARKS[one.action]} {one.name}"
        yield from _values(one)
    if len(diff.objects) > MOST_OBJECTS:
        yield f"  … and {counted(len(diff.objects) - MOST_OBJECTS, 'more object')}"


def touched_lines(diff: ClusterDiff) -> Iterator[str]:
    if diff.drained:
        yield f"    drained: {listed(diff.drained)}"
    if diff.restarted:
        yield f"    pods keep the old values until they restart: {listed(diff.restarted)}"
    yield from (f"    {line}" for line in diff.advice)


def _values(one: ObjectChange) -> Iterator[str]:
    for value in one.values[:MOST_VALUES]:
        yield from _value(value)
    if len(one.values) > MOST_VALUES:
        yield f"      … and {counted(len(one.values) - MOST_VALUES, 'more value')}"


def _value(value: ValueChange) -> Iterator[str]:
    lines = _changed_lines(value) if "\n" in value.before + value.after else []
    if not value.path:
        yield f"    {'-' if value.before else '+'} {value.before or value.after}"
    elif lines:
        yield f"      {value.path}:"
        yield from (f"    {line[0]}   {line[1:]}" for line in lines[:MOST_LINES])
        if len(lines) > MOST_LINES:
            yield f"        … and {counted(len(lines) - MOST_LINES, 'more line')}"
    elif value.before and value.after:
        yield f"      {value.path}: {value.before} → {value.after}"
    else:
        yield f"    {'-' if value.before else '+'} {value.path}: {value.before or value.after}"


def _changed_lines(value: ValueChange) -> list[str]:
    """The lines that a value loses and gains, marked - and +."""
    found = unified_diff(value.before.splitlines(), value.after.splitlines(), n=0, lineterm="")
    return [line for line in list(found)[2:] if not line.startswith("@@")]


def cluster_text(diff: ClusterDiff | None, unread: Mapping[str, str], unsearched: Mapping[str, str]) -> str:
    """Format the difference between a running cluster and what is rendered."""
    same = "the cluster matches the rendered files"
    lines = [line.removeprefix("  ") for line in cluster_lines(diff)] if diff else [same]
    lines += [f"not compared: {kind}: {why}" for kind, why in unread.items()]
    lines += [f"not searched for leftover objects: {kind}: {why}" for kind, why in unsearched.items()]
    return "".join(f"{line}\n" for line in lines)


def cluster_json(diff: ClusterDiff | None, unread: Mapping[str, str], unsearched: Mapping[str, str]) -> str:
    """Format the same as JSON."""
    document = {"diff": asdict(diff) if diff else None, "unread": dict(unread), "unsearched": dict(unsearched)}
    return json.dumps(document, indent=1, ensure_ascii=False) + "\n"
