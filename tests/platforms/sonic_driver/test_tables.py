"""Patches of CONFIG_DB and the files beside them, for any two states."""

import contextlib
import json

import jsonpatch
import pytest
from hypothesis import given
from hypothesis import strategies as st

from netkit.platforms.compare import apply, diff
from netkit.platforms.sonic import tables
from netkit.platforms.sonic.model import MODEL
from netkit.platforms.sonic.tables import Tables

NAMES = st.sampled_from(["a", "b|c", "d/e", "~f"])
ROWS = st.dictionaries(NAMES, st.one_of(st.sampled_from(["", "1", "up"]), st.lists(st.sampled_from(["x", "y"]))))
STATES = st.dictionaries(NAMES, st.dictionaries(NAMES, ROWS, min_size=1))


def parsed(found: Tables) -> dict[tuple[str, ...], str]:
    return dict(MODEL.parse({"config_db.json": tables.text(found)}))


@given(STATES, STATES)
def test_a_patch_turns_one_state_into_the_other_and_leaves_no_empty_table(running: Tables, intended: Tables) -> None:
    items = [one.item() for one in tables.operations(running, intended)]
    assert jsonpatch.apply_patch(json.loads(json.dumps(running)), items) == intended
    assert list(tables.undone(tables.operations(running, intended), intended)) == []


@given(STATES, STATES)
def test_a_patch_that_was_not_applied_is_detected(running: Tables, intended: Tables) -> None:
    operations = tables.operations(running, intended)
    assert bool(list(tables.undone(operations, running))) == bool(
        [one for one in operations if one.verb == "remove" or one.value != {}]
    )


@given(STATES, STATES)
def test_applying_the_changes_of_a_plan_gives_its_tables(running: Tables, intended: Tables) -> None:
    changes = diff(MODEL, parsed(running), parsed(intended))
    assert parsed(tables.changed(running, changes, intended)) == apply(parsed(running), changes)


@given(STATES)
def test_tables_survive_a_round_trip(found: Tables) -> None:
    assert tables.read(tables.text(found)) == found


@given(st.text())
def test_any_text_is_tables_or_refused(text: str) -> None:
    with contextlib.suppress(tables.ShapeError):
        assert isinstance(tables.read(text), dict)


@pytest.mark.parametrize("text", ["", "[]", '{"PORT": 1}', '{"PORT": {"Ethernet0": "up"}}'])
def test_malformed_tables_are_refused(text: str) -> None:
    with pytest.raises(tables.ShapeError):
        tables.read(text)


def test_a_row_without_fields_and_the_text_of_frr_are_parsed_correctly() -> None:
    shown = '{"LOOPBACK_INTERFACE": {"Loopback0": {"NULL": "NULL"}}, "bgpraw": "hostname x", "T": {"r": {"n": 7}}}'
    assert tables.read(shown) == {"LOOPBACK_INTERFACE": {"Loopback0": {}}, "T": {"r": {"n": "7"}}}


def test_masked_rows_of_secrets_are_replaced() -> None:
    running: Tables = {"SNMP_COMMUNITY": {"known": {"TYPE": "RO"}}}
    intended: Tables = {"SNMP_COMMUNITY": {"@secret:COMMUNITY@": {"TYPE": "RW"}}}
    changes = diff(MODEL, parsed(running), parsed(intended))
    assert tables.changed(running, changes, intended) == intended
