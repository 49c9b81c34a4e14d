"""`netkit design --phase`: what each phase of growth adds, and that the sum is what the grown fabric needs."""

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from netkit import design
from netkit.design import capacity
from netkit.design.phases import phases
from netkit.hardware import Catalog
from netkit.intent import Intent
from tests import intents
from tests.command import assert_refused, run

CATALOG = Catalog()
CEILINGS = {"units": 4, "hosts_per_unit": 6, "spines": 4}
GROWING = {"ceilings": CEILINGS, "units": [{"unit": 2, "hosts": "1,3", "host_cable_m": 5}]}


def intent(**changes: Any) -> Intent:
    return Intent.model_validate(intents.values({**GROWING, **changes}))


@settings(max_examples=20, deadline=None)
@given(
    st.lists(st.tuples(st.integers(1, 4), st.integers(2, 6), st.integers(2, 4)), min_size=1, max_size=3),
)
def test_the_phases_add_up_to_the_grown_fabric(sizes: list[tuple[int, int, int]]) -> None:
    steps, reached = [], (1, 2, 2)
    for size in sizes:
        reached = (max(reached[0], size[0]), max(reached[1], size[1]), max(reached[2], size[2]))
        steps.append("units={},hosts={},spines={}".format(*reached))
    found = list(phases(intent(), steps, CATALOG))
    units, hosts, spines = reached
    slots = [1, 3, *(slot for slot in (2, 4, 5, 6))][:hosts]
    numbers = [2, 1, 3, 4][:units]
    entries: list[dict[str, Any]] = [{"unit": 2, "hosts": ",".join(map(str, sorted(slots))), "host_cable_m": 5}]
    entries += [{"unit": number, "hosts": hosts} for number in numbers[1:]]
    grown = design.build(intent(units=entries, switches={"spine": {"slots": spines}}), CATALOG)
    total = Counter[tuple[Any, ...]]()
    for phase in found:
        for item in phase.added:
            total[(item.what, item.media, item.form, item.length_m)] += item.count
    summary = capacity.summarize(grown, CATALOG.media())
    ordered = {(item.what, item.media, item.form, item.length_m): item.count for item in summary.items}
    assert {key: count for key, count in total.items() if not key[0].endswith(("switch", "host"))} == ordered
    assert sum(count for key, count in total.items() if key[0].endswith(" switch")) == summary.switches
    assert sum(count for key, count in total.items() if key[0] == "host") == summary.hosts
    assert (found[-1].units, found[-1].hosts, found[-1].gpus) == (summary.units, summary.hosts, summary.gpus)


def test_the_ceiling_is_raised_and_then_the_phase_is_listed(tmp_path: Path) -> None:
    folder = tmp_path / "f"
    assert run("init", folder, "--leaves", "2", "--spines", "2", "--hosts-per-unit", "2").returncode == 0
    done = run("design", "--fabric", folder, "--phase", "units=1", "--phase", "units=2", "--format", "json")
    assert_refused(done, "--phase units=2: the ceiling of units is 1", "raise ceilings in fabric.yaml")
    text = (folder / "fabric.yaml").read_text(encoding="utf-8")
    content = yaml.safe_load(text)
    content["ceilings"]["units"] = 2
    (folder / "fabric.yaml").write_text(yaml.safe_dump(content), encoding="utf-8")
    done = run("design", "--fabric", folder, "--phase", "units=2", "--format", "json")
    assert done.returncode == 0, done.stderr
    now, later = json.loads(done.stdout)
    assert (now["name"], now["units"], later["name"], later["units"]) == ("now", 1, "units=2", 2)
    added = {item["what"]: item["count"] for item in later["added"]}
    assert (added["leaf switch"], added["host"], "spine switch" in added) == (2, 2, False)
    text = run("design", "--fabric", folder, "--phase", "units=2").stdout
    assert "NOW  PHASE 1  TOTAL" in text


@pytest.mark.parametrize(
    ("step", "texts"),
    [
        ("units=9", ("the ceiling of units is 4", "raise ceilings")),
        ("hosts=1", ("there are 2 hosts already", "grow")),
        ("cores=2", ("the fabric has no cores", "use units, hosts, spines")),
        ("units=2,units=3", ("is not a phase", "each once")),
        ("units=", ("is not a phase", "units=4,hosts=16")),
        ("units=0", ("is not a phase", "units=4,hosts=16")),
        ("", ("is not a phase", "units=4,hosts=16")),
    ],
)
def test_refused_steps(step: str, texts: tuple[str, ...], tmp_path: Path) -> None:
    (tmp_path / "fabric.yaml").write_text(yaml.safe_dump(intents.values(GROWING)), encoding="utf-8")
    assert_refused(run("design", "--fabric", tmp_path, "--phase", step), *texts)


def test_a_phase_that_the_design_refuses_is_named() -> None:
    done = run("design", "--fabric", "inventory/reference", "--phase", "units=2")
    assert_refused(done, "names.host: --phase units=2: name gpu01 is used by 2 devices", "into the pattern", lines=3)
    assert_refused(
        run("design", "--fabric", "inventory/reference", "--phase", "units=2", "--cabling"), "exclude each other"
    )
