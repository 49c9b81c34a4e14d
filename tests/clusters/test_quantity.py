"""Quantities as the API of Kubernetes stores them."""

import re
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from netkit.project.project import Project
from netkit.project.rendering import cluster_files
from netkit.render.kubernetes import SUFFIXES, canonical, parse_quantity
from tests.clusters import manifests


@pytest.mark.parametrize(
    ("text", "amount"),
    [
        ("0", 0),
        ("1500m", Fraction(3, 2)),
        ("2u", Fraction(1, 500_000)),
        ("3n", Fraction(3, 10**9)),
        ("12E", 12 * 10**18),
        ("12e2", 1200),
        ("12E-1", Fraction(6, 5)),
        (".5Gi", 2**29),
        ("-1.", -1),
        ("+4k", 4000),
        (7, 7),
        ("1Ei", 2**60),
        ("", None),
        ("K", None),
        ("1K", None),
        ("1 k", None),
        ("1e999", None),
        ("٣", None),
        (True, None),
        (None, None),
    ],
)
def test_quantities_are_parsed(text: Any, amount: Fraction | None) -> None:
    assert parse_quantity(text) == amount


@given(st.integers(0, 10**15), st.sampled_from(["", "Ki", "Gi", "Ti"]))
def test_the_canonical_form_is_the_same_amount_with_the_largest_suffix(number: int, unit: str) -> None:
    found = canonical(number, unit)
    assert parse_quantity(found) == number * SUFFIXES[unit]
    if number:
        size = 1024 if unit else 1000
        digits = re.match(r"\d+", found)
        assert digits
        assert int(digits[0]) % size or found.endswith(("E", "Ei"))
    assert canonical(1024, "Ti") == "1Pi"
    assert canonical(64_000) == "64k"


def test_quotas_are_rendered_as_they_are_stored(tmp_path: Path) -> None:
    values = manifests.values()
    values["units"] = [{"unit": unit, "hosts": 4} for unit in range(1, 5)]
    (tmp_path / "fabric.yaml").write_text(yaml.safe_dump(values))
    queues = cluster_files(Project.open(tmp_path))["kubernetes"]["queues.yaml"]
    (queue,) = (one for one in manifests.documents(queues) if one["kind"] == "ClusterQueue")
    (group,) = queue["spec"]["resourceGroups"]
    quotas = {one["name"]: one["nominalQuota"] for one in group["flavors"][0]["resources"]}
    assert quotas["memory"] == "1Pi"
