import pytest
from hypothesis import given
from hypothesis import strategies as st

from netkit.platforms.snmp.transport import Oid, SnmpQuery, Value, Walk, WalkError, format_row, parse_command, table
from tests.facts.hostile import STRANGE

ROOT: Oid = (1, 3, 9)
NAMES = st.lists(st.integers(0, 2**32 - 1), min_size=2, max_size=5).map(tuple)
VALUES = st.integers(-(2**31), 2**64 - 1) | st.binary(max_size=12) | st.text(max_size=8).map(str.encode) | NAMES
ROWS = st.dictionaries(st.tuples(st.integers(1, 4), st.integers(0, 5)), st.integers(0, 9))


def answer(held: dict[Oid, int], asked: list[Oid], repetitions: int, most: int) -> list[tuple[Oid, Value | None]]:
    """An agent's answer to GETBULK; it may stop after a number of values."""
    found: list[tuple[Oid, Value | None]] = []
    for _ in range(repetitions):
        asked = [min((name for name in held if name > one), default=one) for one in asked]
        found += [(name, held.get(name) if name in held else None) for name in asked]
    return found[:most]


@given(ROWS, st.integers(1, 7))
def test_a_walk_finds_all_values_of_its_columns_and_no_others(rows: dict[tuple[int, int], int], most: int) -> None:
    held: dict[Oid, int] = {(*ROOT, *name): value for name, value in rows.items()} | {(1, 3, 10): 1}
    walk = Walk.of(ROOT, (1, 3))
    while not walk.is_over:
        walk = walk.after(answer(held, list(walk.at.values()), walk.repetitions, most))
    assert walk.found == {name: value for name, value in rows.items() if name[0] in {1, 3}}


def test_a_walk_ends_where_the_agent_has_no_more_values() -> None:
    walk = Walk.of(ROOT, (1,)).after([((*ROOT, 1, 1), 5), ((*ROOT, 1, 1), None)])
    assert (walk.is_over, walk.found) == (True, {(1, 1): 5})


@pytest.mark.parametrize("answered", [[((*ROOT, 1, 1), 5), ((*ROOT, 1, 1), 5)], []], ids=["circle", "nothing"])
def test_a_looping_or_empty_answer_ends_the_walk(answered: list[tuple[Oid, Value | None]]) -> None:
    with pytest.raises(WalkError):
        Walk.of(ROOT, (1,)).after(answered)


@given(st.dictionaries(NAMES, VALUES, max_size=6))
def test_values_survive_a_round_trip_as_text(held: dict[Oid, Value]) -> None:
    text = "\n".join(format_row(name, value) for name, value in held.items())
    found = {(column, *index): value for column, rows in table(text).items() for index, value in rows.items()}
    assert found == held


@pytest.mark.parametrize("text", [*STRANGE, "1.3 i", "1.3 i x", "1.3 x f", "1.3 q 1", f"1.{'9' * 10} i 1", "3 i 1"])
def test_a_malformed_value_is_ignored(text: str) -> None:
    assert table(text) == {}


def test_a_query_is_parsed_from_its_command() -> None:
    asked = SnmpQuery("ifXTable", (1, 3, 6, 1, 2, 1, 31, 1, 1, 1), (1, 6))
    assert asked.command == "walk ifXTable 1.3.6.1.2.1.31.1.1.1 1,6"
    assert parse_command(asked.command) == asked
    assert parse_command("walk everything") is None
