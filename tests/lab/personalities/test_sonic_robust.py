"""SONiC in the lab with random input: it is refused, or realised and shown."""

import copy
import json
import random
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from netkit.lab.personalities.sonic import COMMANDS, PROGRAMS
from netkit.lab.personalities.sonic.schema import problems, schema
from netkit.lab.personalities.sonic.switch import declared_state
from netkit.lab.personalities.sonic.tables import Tables, dump, parse
from tests.lab.personalities.sonic.bench import DRAINED, UNIFIED, Bench, fabric, files
from tests.lanes import examples

VALUES = (
    "",
    "0",
    "1",
    "-1",
    "3",
    "3,4",
    "up",
    "true",
    "NULL",
    "Ethernet0",
    "AZURE",
    "9" * 30,
    "\x00",
    "²",
    "a|b",
    "ecn_all",
)
UNIFIED_LEAF = parse(files(fabric("202511", UNIFIED, DRAINED), "leaf01")["config_db.json"])
SPLIT_LEAF = parse(files(fabric("202411", {"attachment": "vlan"}), "leaf01")["config_db.json"])
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
    max_leaves=12,
)


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    return Bench(tmp_path, fabric())


def harmed(tables: Tables, chance: random.Random) -> Tables:
    """Tables with a few random changes, about half of which stay valid."""
    found = copy.deepcopy(tables)
    for _ in range(chance.randint(1, 4)):
        table = chance.choice(sorted(found))
        key = chance.choice(sorted(found[table]))
        row = found[table][key]
        match chance.randint(0, 4):
            case 0:
                del found[table][key]
            case 1:
                found[table][f"{key}{chance.choice(VALUES)}"] = copy.deepcopy(row)
            case 2 if row:
                del row[chance.choice(sorted(row))]
            case _:
                leaf = chance.choice([*sorted(row), "mtu"])
                value = chance.choice(VALUES)
                row[leaf] = [value] if chance.random() < 0.2 else value
        found = {name: rows for name, rows in found.items() if rows}
    return found


@pytest.mark.parametrize(("tables", "branch"), [(SPLIT_LEAF, 202411), (UNIFIED_LEAF, 202511)])
def test_valid_tables_can_be_realised_and_shown(bench: Bench, tables: Tables, branch: int) -> None:
    chance = random.Random(branch)  # noqa: S311 - the same harm in every run
    accepted = 0
    for _ in range(examples(600)):
        found = harmed(tables, chance)
        if problems(found, schema(branch)):
            continue
        accepted += 1
        declared_state(found, "", branch)
        bench.sonic.running = found
        for words in COMMANDS["show"]:
            assert bench.call("show", *words)[0] in {0, 1, 2}
    assert accepted > examples(600) // 24


@settings(max_examples=examples(60), suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(found=JSON)
def test_any_json_is_refused_or_accepted(bench: Bench, found: Any) -> None:
    before = dump(bench.sonic.running)
    code, _, _ = bench.type("config apply-patch /dev/stdin", json.dumps(found))
    assert code in {0, 2}
    bench.sonic.running = parse(before)


@settings(max_examples=examples(60), suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    path=st.text(alphabet="/~01-PORTEthernetmtu| ", max_size=24),
    value=JSON,
    verb=st.sampled_from(["add", "remove", "replace", "move", "copy", "test", "x", ""]),
)
def test_any_operation_is_refused_or_accepted(bench: Bench, path: str, value: Any, verb: str) -> None:
    before = parse(dump(bench.sonic.running))
    assert bench.patch({"op": verb, "path": path, "value": value, "from": path})[0] in {0, 2}
    bench.sonic.running = before


KNOWN_WORDS = {word for table in COMMANDS.values() for words in table for word in words}
ODD_WORDS = [
    "Ethernet0",
    "all",
    "-y",
    "-d",
    "--json",
    "PORT|Ethernet0",
    "CONFIG_DB",
    "hgetall",
    "hset",
    "del",
    "",
    "-",
    "=",
    "x y",
]
WORDS = st.sampled_from([*sorted(KNOWN_WORDS), *ODD_WORDS])


@settings(max_examples=examples(300), suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(program=st.sampled_from([*COMMANDS, *PROGRAMS]), words=st.lists(WORDS, max_size=5))
def test_any_command_line_gets_an_answer(bench: Bench, program: str, words: list[str]) -> None:
    before = parse(dump(bench.sonic.running))
    code, out, err = bench.call(program, *words)
    assert isinstance(code, int)
    assert code == 0 or out or err
    bench.sonic.running = before
