"""Faults of a fabric whose switches run frr: each is found where it is, and nothing else is."""

from collections.abc import Iterator

import pytest

from tests.checks.breaking import Ward, assert_clean, assert_found, assert_mended, assert_told_as_documented, ward
from tests.checks.fault_table import Row, rows_on
from tests.lab.running import needs_lab

pytestmark = needs_lab


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Ward]:
    with ward(tmp_path_factory.mktemp("faults"), "frr") as found:
        yield found


def test_a_healthy_lab_is_clean(lab: Ward) -> None:
    assert_clean(lab)


def test_what_is_not_told_is_in_the_docs(lab: Ward) -> None:
    assert_told_as_documented(lab, "frr", "leaf01")


@pytest.mark.parametrize("row", rows_on("frr"), ids=str)
def test_a_fault_is_found_where_it_is_and_nothing_else(lab: Ward, row: Row) -> None:
    assert_found(lab, row)


def test_a_mended_lab_is_clean_again(lab: Ward) -> None:
    assert_mended(lab)
