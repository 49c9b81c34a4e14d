"""The page of the lab's faults: what each stands for, and what checks say of it, from the table the tests go by."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import yaml

from netkit.lab.faults.catalog import CATALOG
from netkit.lab.faults.fault import Kind

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

Every row of the table below with every other one on one lab: each is to be found as a cause of its own, and there is to
be no third. `.venv/bin/python -m tests.checks.pairs PLATFORM` counted this, and with `--healthy 100` the rounds of a
lab with nothing wrong, half of them under an incast, in which anything was found. Faults that nobody could see, or tell
from the other one, are left out as hidden; `hides` in `tests/checks/faults.yaml` says which and why. Not among the
pairs are faults of deploys and of reaching a device. Platforms that are not listed were not counted. The pairs of nvue
were recorded in several runs while the checks were mended, and judged together by the last ones; the healthy rounds are
of a lab that had just booted. Another severity was tried of four faults only.

| platform | pairs | hidden | found (recall) | right causes (precision) | first one right | wrong when healthy |
| --- | --- | --- | --- | --- | --- | --- |
"""


def page() -> str:
    """Return docs/faults.md."""
    rows: list[dict[str, Any]] = yaml.safe_load(TABLE.read_text(encoding="utf-8"))
    return HEAD + _pairs() + "".join(line for kind in CATALOG.values() for line in _fault(kind, rows))


def _pairs() -> str:
    """Return how well two faults at once are told apart, by what was counted on labs."""
    table: dict[str, dict[str, int]] = yaml.safe_load(PAIRS.read_text(encoding="utf-8"))
    lines = (
        f"| {platform} | {one['pairs']} | {one['hidden']} | {_part(one['found'], one['faults'])} "
        f"| {_part(one['right'], one['causes'])} | {_part(one['first_right'], one['pairs'])} "
        f"| {one['healthy_wrong']} of {one['healthy_rounds']} |\n"
        for platform, one in table.items()
    )
    return PAIRS_HEAD + "".join(lines)


def _part(part: int, whole: int) -> str:
    return f"{part} of {whole} ({part / whole:.1%})"


def _fault(kind: Kind, rows: list[dict[str, Any]]) -> Iterator[str]:
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
