"""The table of faults is complete and agrees with the catalogues of faults and checks and with the lab's fabric."""

import re
from importlib import import_module
from pathlib import Path

import pytest
import yaml

from netkit.errors import LabError
from netkit.intent.model import Thresholds
from netkit.judge import Verdict
from netkit.lab.faults import CATALOG, check
from tests.checks.breaking import VERSIONS, Faults
from tests.checks.fault_table import EVERYWHERE, LABS, Row, daily, kind_of, place_of, rows, rows_on
from tests.checks.judging import shipped
from tests.checks.pairs import TABLE, pairs
from tests.judge.scenes import fabric

FABRIC = fabric("nvue", "5.16.1")
SWITCHES = {"nvue", "sonic", "eos", "frr"}
EACH = pytest.mark.parametrize("row", rows(), ids=str)


def test_every_fault_of_the_lab_is_in_the_table() -> None:
    assert {row.fault for row in rows()} == set(CATALOG)


def test_every_row_is_unique() -> None:
    keys = [(str(row), lab) for row in rows() for lab in row.labs or ("",)]
    assert len(keys) == len(set(keys))


@pytest.mark.parametrize("name", CATALOG)
def test_for_every_fault_each_platform_has_findings_or_a_reason_for_refusal(name: str) -> None:
    covered = {lab for row in rows() if row.fault == name for lab in (*row.labs, *row.refused)}
    if CATALOG[name].maker == "management" or "host NIC" in CATALOG[name].targets:
        assert covered
    else:
        assert covered >= SWITCHES


@pytest.mark.parametrize(("row", "platform"), [(row, platform) for row in rows() for platform in row.refused], ids=str)
def test_invisible_faults_are_refused(row: Row, platform: str) -> None:
    built = fabric(platform, VERSIONS[platform])
    options = {name: str(value) for name, value in row.options.items()}
    with pytest.raises(LabError, match=f"^{re.escape(row.refused[platform])}: {row.fault} at .* would not show"):
        check(built, row.fault, place_of(built, row.at), options)


@pytest.mark.parametrize(
    ("row", "platform"), [(row, platform) for row in rows() for platform in row.labs if platform in SWITCHES], ids=str
)
def test_tested_faults_are_not_refused(row: Row, platform: str) -> None:
    built = fabric(platform, VERSIONS[platform])
    options = {name: str(value) for name, value in row.options.items()}
    assert check(built, row.fault, place_of(built, row.at), options).name == row.fault


def test_every_lab_of_the_table_has_a_test_file() -> None:
    files = sorted(Path(__file__).parent.glob("test_faults_*.py"))
    classes = [
        one
        for file in files
        for one in vars(import_module(f"tests.checks.{file.stem}")).values()
        if isinstance(one, type) and issubclass(one, Faults) and one is not Faults
    ]
    assert sorted(one.column for one in classes) == sorted(LABS)
    tried = {(str(row), one.column) for one in classes for row in rows_on(one.column)}
    assert tried == {(str(row), lab) for row in rows() for lab in row.labs}


def test_the_default_lane_has_each_fault_and_some_on_each_lab() -> None:
    assert {row.fault for lab in LABS for row in daily(lab)} == {row.fault for row in rows() if row.labs}
    assert min(len(daily(lab)) for lab in LABS) >= 5
    assert {lab for lab in SWITCHES if any(row.fault == EVERYWHERE for row in daily(lab))} == SWITCHES


@EACH
def test_a_hidden_fault_of_a_row_is_a_row_too(row: Row) -> None:
    assert {*row.hides} <= {f"{one.fault} {one.at}" for one in rows()}


def test_the_docs_state_how_many_pairs_were_sampled() -> None:
    counted = yaml.safe_load(TABLE.read_text(encoding="utf-8"))
    assert {platform: one["of"] for platform, one in counted.items()} == {lab: len(pairs(lab)) for lab in LABS}


@EACH
def test_a_row_names_existing_checks_and_places(row: Row) -> None:
    assert kind_of(FABRIC, row.at) in CATALOG[row.fault].targets
    assert set(row.labs) <= set(LABS)
    assert set(row.refused) <= set(LABS) - set(row.labs)
    assert row.labs or row.refused
    assert set(row.limits) <= set(Thresholds.model_fields)
    checks = [line.split()[1] for line in row.found] + [line.split()[0] for line in row.may]
    assert [check for check in checks if check not in shipped()] == []
    assert {line.split()[0] for line in row.found} <= {verdict.word for verdict in Verdict}
    for one in row.expected(FABRIC):
        assert FABRIC.device(one[2]) is not None
