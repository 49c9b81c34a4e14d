"""`netkit plan-capacity`: each design is exactly what its `netkit init` writes."""

import json
import shlex
from dataclasses import replace
from pathlib import Path

import pytest

from netkit.design import capacity
from netkit.design.phases import candidates
from netkit.hardware import Catalog
from tests.command import assert_refused, run


@pytest.mark.parametrize(
    ("gpus", "ratio", "models"),
    [
        (64, 1, []),
        (1000, 2, ["SN4700", "SN5600", "DCS-7060X6-64PE"]),
        (600, 1.5, ["SN4700"]),
        pytest.param(1000, 2, [], marks=pytest.mark.whole),
    ],
)
def test_init_writes_exactly_each_design(gpus: int, ratio: float, models: list[str], tmp_path: Path) -> None:
    chosen = [word for model in models for word in ("--model", model)]
    done = run("plan-capacity", "--gpus", str(gpus), "--oversubscription", f"{ratio:g}:1", *chosen, "--format", "json")
    assert done.returncode == 0, done.stderr
    found = [row for row in json.loads(done.stdout) if row["summary"]]
    assert {row["topology"] for row in found} >= {"two-tier", *(["three-tier"] if gpus == 600 else [])}
    for place, row in enumerate(found):
        folder = tmp_path / str(place) / "fabric"
        words = [str(folder) if word == "my-fabric" else word for word in shlex.split(row["command"])[1:]]
        assert run(*words).returncode == 0
        summary = json.loads(run("design", "--fabric", folder, "--format", "json").stdout)
        limits = (ratio, 1)  # of leaves, and of spines below core switches
        for tier, limit in zip(summary["tiers"], limits, strict=False):
            assert tier["oversubscription"] is None or tier["oversubscription"] <= limit
        for tier in summary["tiers"]:
            del tier["oversubscription"]
        assert summary == row["summary"]
        assert summary["gpus"] >= gpus


def test_4096_gpus_without_oversubscription() -> None:
    done = run("plan-capacity", "--gpus", "4096", "--model", "SN5600")
    assert done.returncode == 0, done.stderr
    row = done.stdout.splitlines()[1]
    # Twin-port modules: 64 in each leaf and spine, 4 in each of 512 hosts. Cables: 4096 to hosts, as many to spines.
    optics, cables = 64 * 64 + 32 * 64 + 512 * 4, 2 * 4096
    # A twin-port DR4 module takes 17 W; no source states the power of an SN5600.
    assert row.split() == f"SN5600 two-tier 1 4096 1 : 1 64 32 0 {optics} {cables} not sourced {17 * optics}".split()
    assert "rail-only   –  too large for this model" in done.stdout


def test_three_tiers_are_compared_too() -> None:
    """The figures of a fat tree of 32-port switches: half of the ports of leaves and spines lead down."""
    done = run("plan-capacity", "--gpus", "4096", "--model", "SN4700")
    assert done.returncode == 0, done.stderr
    row = next(line for line in done.stdout.splitlines() if " three-tier " in line)
    leaves, spines = 4096 // 16, 4096 // 16
    cores, cables = 4096 // 32, 3 * 4096
    optics = 4096 // 2 + 5 * 4096  # a DGX has twin-port modules; a port of a switch one for itself
    assert row.split()[:12] == f"SN4700 three-tier 8 4096 1 : 1 {leaves} {spines} {cores} {optics} {cables}".split()
    wide = run("plan-capacity", "--gpus", "8192", "--oversubscription", "2:1", "--model", "SN5600")
    row = next(line for line in wide.stdout.splitlines() if " three-tier " in line)
    # 128 leaves with 32 uplinks; 64 spines with as many links up as down; 32 core switches with 128 ports.
    assert row.split()[:10] == ["SN5600", "three-tier", "1", "8192", "2", ":", "1", "128", "64", "32"]
    small = run("plan-capacity", "--gpus", "64", "--model", "SN5600")
    assert "SN5600  three-tier  –  one pod holds these GPUs: two tiers will do\n" in small.stdout


def test_a_looser_ratio_finds_a_design_where_a_stricter_one_does() -> None:
    """With the fewest spines that keep it, none of the core switches has enough ports."""
    for ratio in (2, 3):
        (found,) = [one for one in candidates(5000, ratio, ["SN4700"], Catalog()) if one.topology == "three-tier"]
        assert found.summary is not None, ratio
        assert found.summary.gpus >= 5000


def test_planes_hold_more_than_one() -> None:
    done = run("plan-capacity", "--gpus", "1100", "--model", "SN4700", "--format", "json")
    assert done.returncode == 0, done.stderr
    found = {(row["topology"], row["planes"]): row for row in json.loads(done.stdout)}
    assert list(found) == [("two-tier", 1), ("two-tier", 8), ("three-tier", 7), ("rail-only", 0)]
    one, many = found[("two-tier", 1)], found[("two-tier", 8)]
    assert (one["summary"], one["reason"], one["optics_power_w"]) == (None, "too large for this model", None)
    assert many["summary"]["gpus"] >= 1100
    assert many["size"]["planes"] == 8
    assert (many["switches_power_w"], many["power_w"]) == (None, None)


def test_power_is_a_sum_only_where_every_value_has_a_source() -> None:
    catalog = Catalog()
    (found, *_) = candidates(64, 1, ["SN5600"], catalog)
    summary, media, model = found.summary, dict(catalog.media()), catalog.switch("SN5600")
    assert summary is not None
    modules = sum(item.count for item in summary.items if item.what.startswith("optical module"))
    assert found.optics_power_w == capacity.optics_power(summary, media) == 17 * modules
    assert found.power_w is None
    known = replace(model, power_w=700)
    assert capacity.switch_power(summary, {"SN5600": known}) == 700 * summary.switches
    assert capacity.switch_power(summary, {"SN5600": model}) is None
    assert replace(found, switches_power_w=1400.0).power_w == 1400 + 17 * modules
    other = replace(summary, items=(*summary.items, replace(summary.items[0], media="400G-DR4", form="QSFP-DD")))
    assert capacity.optics_power(other, media) is None  # the source is of an OSFP module
    active = replace(summary.items[0], what="active optical cable", media="800G-AOC-2x400")
    assert capacity.optics_power(replace(summary, items=(active,)), media) is None
    assert capacity.optics_power(replace(summary, items=()), media) == 0


def test_refusals() -> None:
    assert_refused(run("plan-capacity", "--gpus", "8", "--oversubscription", "1"), "is not a ratio", "1:1 or 2:1")
    assert_refused(run("init", "x", "--spines", "0", "--planes", "2"), "--planes needs spines", "give --spines")
    refused = run("init", "x", "--leaves", "2", "--planes", "8")
    assert_refused(refused, "8 planes of spines need as many leaves in a unit, not 2", "give fewer --planes")
    assert_refused(run("init", "x", "--pods", "2"), "--pods needs core switches", "give --cores")
    assert_refused(run("init", "x", "--cores", "4", "--spines", "0"), "--cores needs spines", "give --spines")
    refused = run("init", "x", "--cores", "2", "--planes", "5")
    assert_refused(refused, "5 planes of core switches need as many spines in a pod, not 4", "give fewer --planes")
    assert_refused(run("plan-capacity", "--gpus", "8", "--model", "SN9"), "no switch model 'SN9'")
    assert run("plan-capacity", "--gpus", "100000", "--model", "SN4700").returncode == 1
