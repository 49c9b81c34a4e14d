"""Patches, and what is written beside them: for any two states of CONFIG_DB."""

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
def test_a_patch_makes_one_state_the_other_and_leaves_no_table_empty(running: Tables, intended: Tables) -> None:
    items = [one.item() for one in tables.operations(running, intended)]
    assert jsonpatch.apply_patch(json.loads(json.dumps(running)), items) == intended
    assert list(tables.undone(tables.operations(running, intended), intended)) == []


@given(STATES, STATES)
def test_a_patch_that_was_not_made_is_noticed(running: Tables, intended: Tables) -> None:
    operations = tables.operations(running, intended)
    assert bool(list(tables.undone(operations, running))) == bool(
        [one for one in operations if one.verb == "remove" or one.value != {}]
    )


@given(STATES, STATES)
def test_changes_of_a_plan_make_of_the_tables_what_the_plan_says(running: Tables, intended: Tables) -> None:
    changes = diff(MODEL, parsed(running), parsed(intended))
    assert parsed(tables.changed(running, changes, intended)) == apply(parsed(running), changes)


@given(STATES)
def test_what_is_written_is_read_again(found: Tables) -> None:
    assert tables.read(tables.text(found)) == found


@given(st.text())
def test_any_text_is_tables_or_refused(text: str) -> None:
    with contextlib.suppress(tables.ShapeError):
        assert isinstance(tables.read(text), dict)


@pytest.mark.parametrize("text", ["", "[]", '{"PORT": 1}', '{"PORT": {"Ethernet0": "up"}}'])
def test_what_is_no_table_is_refused(text: str) -> None:
    with pytest.raises(tables.ShapeError):
        tables.read(text)


def test_a_row_without_fields_and_frrs_text_are_read_as_what_they_are() -> None:
    shown = '{"LOOPBACK_INTERFACE": {"Loopback0": {"NULL": "NULL"}}, "bgpraw": "hostname x", "T": {"r": {"n": 7}}}'
    assert tables.read(shown) == {"LOOPBACK_INTERFACE": {"Loopback0": {}}, "T": {"r": {"n": "7"}}}


def test_masked_rows_of_secrets_are_laid_anew() -> None:
    running: Tables = {"SNMP_COMMUNITY": {"known": {"TYPE": "RO"}}}
    intended: Tables = {"SNMP_COMMUNITY": {"@secret:COMMUNITY@": {"TYPE": "RW"}}}
    changes = diff(MODEL, parsed(running), parsed(intended))
    assert tables.changed(running, changes, intended) == intended
