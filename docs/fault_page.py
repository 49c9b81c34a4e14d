"""The page of the lab's faults: what each emulates, and what checks find, from the table that the tests use."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import yaml

from netkit.lab.faults.catalog import CATALOG
from netkit.lab.faults.fault import FaultKind

PAIRS = Path(__file__).parent.parent / "tests" / "checks" / "pairs.yaml"
TABLE = Path(__file__).parent.parent / "tests" / "checks" / "faults.yaml"
HEAD = """# Faults of the lab

Generated from the code (`scripts/docs`).

| command | effect |
| --- | --- |
| `netkit lab break FAULT DEVICE[:PORT] [NAME=VALUE]` | start a fault |
| `netkit lab heal` | end it |
| `netkit lab break --list` | list the faults |

For each fault, this page lists what `netkit check` finds at a given place, on a lab of each platform. The tests
verify these results. `leaf01>gpu01` is the port of leaf01 to gpu01, `/3` is a priority, `hosts` is a fault of hosts
on any platform. [The lab](lab.md) describes how realistic each fault is.
"""
PAIRS_HEAD = """
## Two faults at once

The tests run two of the faults below at the same time in one lab. Each fault must be found as a separate root cause,
and there must be no third. `.venv/bin/python -m tests.checks.pairs PLATFORM` counts the results.

- Checks were mended where a pair was missed, and judged again from the same readings; four pairs were read again. So
  the counts show that the checks explain these pairs, not how many others they would miss.
- Where not all pairs were tried, they are a random sample (`--sample`).
- A fault is hidden if no check can detect it or distinguish it from the other one, whatever devices expose. `hides`
  in `tests/checks/faults.yaml` lists these faults with the reason.
- `hosts` are faults of hosts, paired with each other and with those of their NVUE switches.
- Faults of deploys and of device access are excluded.
- On nvue, the table contains two severities of pauses, watchdogs, optical power, temperature, bit errors, losses,
  MTU, counter widths, flapping links and slow links. The weaker fault is therefore sometimes one of a pair, sometimes
  the other.

| platform | pairs tried | hidden | found (recall) | correct causes (precision) | first cause correct |
| --- | --- | --- | --- | --- | --- |
"""
HEALTHY_HEAD = """
A healthy lab was checked repeatedly after routine events (`--healthy ROUNDS`). The table shows the number of rounds
with a false finding.

"""


def page() -> str:
    """docs/faults.md."""
    rows: list[dict[str, Any]] = yaml.safe_load(TABLE.read_text(encoding="utf-8"))
    return HEAD + _pairs() + "".join(line for kind in CATALOG.values() for line in _fault(kind, rows))


def _pairs() -> str:
    """Build the tables of fault pairs from the counts on labs."""
    table: dict[str, dict[str, Any]] = yaml.safe_load(PAIRS.read_text(encoding="utf-8"))
    lines = (
        f"| {platform} | {one['pairs']} of {one['of']} | {one['hidden']} | {_part(one['found'], one['faults'])} "
        f"| {_part(one['right'], one['causes'])} | {_part(one['first_right'], one['pairs'])} |\n"
        for platform, one in table.items()
        if "of" in one
    )
    return PAIRS_HEAD + "".join(lines) + HEALTHY_HEAD + "".join(_healthy(table))


def _healthy(table: Mapping[str, Mapping[str, Any]]) -> Iterator[str]:
    rounds: dict[str, dict[str, list[int]]] = {
        platform: one["healthy"] for platform, one in table.items() if "healthy" in one
    }
    kinds = dict.fromkeys(kind for one in rounds.values() for kind in one)
    yield f"| platform | {' | '.join(f'after {kind}' for kind in kinds)} | all |\n"
    yield f"| --- |{' --- |' * (len(kinds) + 1)}\n"
    for platform, one in rounds.items():
        counts = [one[kind] for kind in kinds]
        counts.append([sum(each) for each in zip(*counts, strict=True)])
        cells = (f"{wrong} of {number}" for wrong, number in counts)
        yield f"| {platform} | {' | '.join(cells)} |\n"


def _part(part: int, whole: int) -> str:
    return f"{part} of {whole} ({part / whole:.1%})"


def _fault(kind: FaultKind, rows: list[dict[str, Any]]) -> Iterator[str]:
    yield f"\n## {kind.name}\n\n{kind.text}\n\nOn a {' or '.join(kind.targets)}; implemented by: {kind.maker}.\n"
    if kind.options:
        yield "\n| option | default | meaning |\n| --- | --- | --- |\n"
        yield from (f"| `{one.name}` | `{one.default}` | {one.meaning} |\n" for one in kind.options)
    own = [line for row in rows if row["fault"] == kind.name for line in _found(row)]
    yield "\n" + "".join(own) if own else ""


def _found(row: Mapping[str, Any]) -> Iterator[str]:
    labs = ", ".join(row.get("labs", ()))
    if labs:
        with_options = "".join(f" {name}={value}" for name, value in row.get("with", {}).items())
        limits = "".join(f", with {name} {value}" for name, value in row.get("limits", {}).items())
        deployed = ", with a change deployed during the fault" if "deploys" in row else ""
        yield f"- `{row['at']}{with_options}`{deployed} ({labs}{limits}): {_expected(row)}\n"
    for platform, reason in row.get("refused", {}).items():
        yield f"- {platform}: rejected by the lab: {reason}\n"


def _expected(row: Mapping[str, Any]) -> str:
    """List the expected findings: `fail optics.light PORT` is a failure of the check optics.light."""
    found = [f"{verdict} [{check}]({_anchor(check)}) `{at}`" for verdict, check, at in map(str.split, row["found"])]
    missed = [f"{device} is unreachable" for device in row.get("unreached", ())]
    return ", ".join((*found, *missed)) or "no finding, as expected"


def _anchor(check: str) -> str:
    return f"check-catalogue.md#{check.replace('.', '')}"
