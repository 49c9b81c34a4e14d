"""SONiC: every rendered row and leaf has an effect on validity, state or output."""

import copy
import re
import tempfile
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import yaml

from netkit.lab.personalities.sonic.schema import problems, schema
from netkit.lab.personalities.sonic.switch import declared_state
from netkit.lab.personalities.sonic.tables import Tables, parse
from tests.lab.personalities.sonic.bench import DRAINED, TRADITIONAL, UNIFIED, Bench, fabric, files
from tests.lanes import daily

COSMETIC: Mapping[str, str] = yaml.safe_load(
    (Path(__file__).parent / "sonic" / "cosmetic.yaml").read_text(encoding="utf-8")
)
VIEWS = (
    "show version",
    "show interfaces status",
    "sonic-db-dump -n APPL_DB",
    "sonic-db-dump -n COUNTERS_DB",
    "sonic-db-cli STATE_DB keys *",
)
CASES: dict[str, tuple[str, tuple[Mapping[str, Any], ...], str]] = {
    "p2p": ("202411", (), "leaf01"),
    "vlan": ("202411", ({"attachment": "vlan"},), "leaf01"),
    "spine": ("202411", (DRAINED,), "spine01"),
    "traditional": ("202505", (TRADITIONAL,), "leaf01"),
    "unified": ("202511", (UNIFIED, DRAINED), "leaf01"),
    "unified-spine": ("202511", (UNIFIED, DRAINED), "spine01"),
}


def without(tables: Tables) -> Iterator[tuple[str, Tables]]:
    """Yield tables without one of their leaves or rows, each in turn."""
    for table, rows in tables.items():
        for key, row in rows.items():
            for leaf in row:
                less = copy.deepcopy(tables)
                del less[table][key][leaf]
                yield f"{table}|{key}/{leaf}", less
            less = copy.deepcopy(tables)
            del less[table][key]
            yield f"{table}|{key}", {name: found for name, found in less.items() if found}


@cache
def silent(case: str) -> tuple[str, ...]:
    """The leaves and rows whose removal is neither refused nor changes state or output."""
    version, changes, name = CASES[case]
    rendered = files(fabric(version, *changes), name)
    tables, frr_conf, branch = parse(rendered["config_db.json"]), rendered.get("frr.conf", ""), int(version)
    with tempfile.TemporaryDirectory() as folder:
        bench = Bench(Path(folder), fabric(version, *changes), name)
        state, shown = declared_state(tables, frr_conf, branch), views(bench, tables)
        return tuple(
            path
            for path, less in without(tables)
            if not problems(less, schema(branch))
            and declared_state(less, frr_conf, branch) == state
            and views(bench, less) == shown
        )


@pytest.mark.parametrize("case", daily(CASES, "vlan"))
def test_each_rendered_leaf_has_an_effect_or_is_listed_as_cosmetic(case: str) -> None:
    assert [path for path in silent(case) if not reason(path)] == []


def views(bench: Bench, tables: Tables) -> list[str]:
    bench.sonic.running = tables
    return [bench.type(view)[1] for view in VIEWS]


def reason(path: str) -> str:
    return next((why for pattern, why in COSMETIC.items() if re.fullmatch(pattern, path)), "")


@pytest.mark.whole
def test_no_leaf_with_an_effect_is_listed_as_cosmetic() -> None:
    paths = {path for case in CASES for path in silent(case)}
    assert [pattern for pattern in COSMETIC if not any(re.fullmatch(pattern, path) for path in paths)] == []
