"""The page of the lab's faults: what each stands for, and what checks say of it, from the table the tests go by."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import yaml

from netkit.lab.faults.catalog import CATALOG
from netkit.lab.faults.fault import FaultKind

PAIRS = Path(__file__).parent.parent / "tests" / "checks" / "pairs.yaml"
TABLE = Path(__file__).parent.parent / "tests" / "checks" / "faults.yaml"
HEAD = """# Faults of the lab

Written from the code (`scripts/docs`). `netkit lab break FAULT DEVICE[:PORT] [NAME=VALUE]` begins one, `netkit lab
heal` ends it, `netkit lab break --list` says most of this. Below each fault: what `netkit check` finds when it is put
at such a place, on a lab of each platform; the tests go through this table. `leaf01>gpu01` is the port of leaf01 that
leads to gpu01, `/3` a priority, `hosts` a fault of hosts on any platform. How faithful each is: [the lab](lab.md).
"""
PAIRS_HEAD = """
## Two faults at once

Rows of the table below, two at a time, on one lab: each is to be found as a cause of its own, and there is to be no
third. `.venv/bin/python -m tests.checks.pairs PLATFORM` counts this. Where not all pairs were tried they were drawn
by chance (`--sample`) and the draw was not finished; on nvue pairs with a hidden fault were tried besides, and eleven
that were chosen, with the second severity of a link that flaps or comes up slowly. Rows that are newer than the draw
count in the number of all pairs. (An earlier run tried all 406 pairs that nvue had then, and found all of 751
faults.) A fault is hidden where nobody could see it, or tell it from the other one, whatever devices expose: `hides`
in `tests/checks/faults.yaml` says which and why. `hosts` are the rows of hosts, with each other and with those of
their NVUE switches. Not among the pairs are faults of deploys and of reaching a device. Pauses, watchdogs, optical
power, heat, bit errors, losses, MTU, widths of counters, links that flap and links that come up slowly are in the
table at two severities, on nvue, so that the weaker fault is now one of a pair and now the other.

| platform | pairs tried | hidden | found (recall) | right causes (precision) | first one right |
| --- | --- | --- | --- | --- | --- |
"""
HEALTHY_HEAD = """
A lab with nothing wrong was looked at over and over after all that happens to a fabric from day to day (`--healthy
ROUNDS`): how many of the rounds found anything.

"""


def page() -> str:
    """Return docs/faults.md."""
    rows: list[dict[str, Any]] = yaml.safe_load(TABLE.read_text(encoding="utf-8"))
    return HEAD + _pairs() + "".join(line for kind in CATALOG.values() for line in _fault(kind, rows))


def _pairs() -> str:
    """Return how well two faults at once are told apart, by what was counted on labs."""
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
    yield f"\n## {kind.name}\n\n{kind.text}\n\nOn a {' or '.join(kind.targets)}; acted out by: {kind.maker}.\n"
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
        deployed = ", and a change that is deployed then" if "deploys" in row else ""
        yield f"- `{row['at']}{with_options}`{deployed} ({labs}{limits}): {_said(row)}\n"
    for platform, reason in row.get("refused", {}).items():
        yield f"- {platform}: the lab refuses it, since {reason}\n"


def _said(row: Mapping[str, Any]) -> str:
    """Return what is found, verdict by verdict: `fail optics.light PORT` is a failure of the check optics.light."""
    found = [f"{verdict} [{check}]({_anchor(check)}) `{at}`" for verdict, check, at in map(str.split, row["found"])]
    missed = [f"{device} is not reached" for device in row.get("unreached", ())]
    return ", ".join((*found, *missed)) or "nothing, as it should be"


def _anchor(check: str) -> str:
    return f"check-catalogue.md#{check.replace('.', '')}"
