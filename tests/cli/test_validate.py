"""`netkit validate` and `netkit schema`: the settings beside the intent are checked with it."""

import json
import re
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml

from tests.cli.checked import VALUES
from tests.command import ROOT, run
from tests.lab.running import write_fabric

NOTIFY = """receivers:
  - {name: noc, kind: slack, url_secret: NOC}
  - {name: tickets, kind: webhook}
kep_hours: 3
"""
ACCESS = """user: ops
password: hush
"""


@pytest.fixture
def fabric(tmp_path: Path) -> Path:
    return write_fabric(tmp_path / "fabric", VALUES)


def problems(fabric: Path) -> list[tuple[str, int, str]]:
    """Return the file, line and place of all that is wrong, which both ways to say it tell alike."""
    done, in_words = run("validate", "--fabric", fabric, "--format=json"), run("validate", "--fabric", fabric)
    told = json.loads(done.stdout)
    assert (done.returncode, in_words.returncode, told["valid"]) == (3, 3, False)
    assert len(in_words.stderr.splitlines()) == len(told["problems"])
    assert "hush" not in done.stdout + done.stderr + in_words.stderr
    return [(Path(one["file"]).name, one["line"], ".".join(map(str, one["path"]))) for one in told["problems"]]


def test_settings_beside_the_intent_are_validated_too(fabric: Path) -> None:
    (fabric / "notify.yaml").write_text(NOTIFY, encoding="utf-8")
    (fabric / "access.yaml").write_text(ACCESS, encoding="utf-8")
    wrong = [("access.yaml", 2, "password"), ("notify.yaml", 3, "receivers.1"), ("notify.yaml", 4, "kep_hours")]
    assert problems(fabric) == wrong
    with (fabric / "fabric.yaml").open("a", encoding="utf-8") as file:
        file.write("colour: blue\n")
    assert [(name, place) for name, _, place in problems(fabric)] == [
        ("fabric.yaml", "colour"),
        *((name, place) for name, _, place in wrong),
    ]


def test_settings_that_are_well_are_no_problem(fabric: Path) -> None:
    (fabric / "notify.yaml").write_text(NOTIFY[: NOTIFY.index("  - {name: tickets")], encoding="utf-8")
    (fabric / "access.yaml").write_text("user: ops\n", encoding="utf-8")
    assert run("validate", "--fabric", fabric / "fabric.yaml").returncode == 0


@pytest.mark.parametrize("name", ["notify", "access"])
def test_the_schema_of_settings_takes_the_example_of_the_docs_and_no_unknown_key(name: str) -> None:
    done = run("schema", name)
    assert (done.returncode, done.stderr) == (0, "")
    schema = json.loads(done.stdout)
    jsonschema.Draft202012Validator.check_schema(schema)
    page = (ROOT / "docs" / f"{name}.md").read_text(encoding="utf-8")
    (example,) = re.findall(r"```yaml\n(.*?)```", page, re.DOTALL)[:1]
    validator = jsonschema.Draft202012Validator(schema)
    values = yaml.safe_load(example)
    assert list(validator.iter_errors(values)) == []
    assert list(validator.iter_errors({**values, "colour": "blue"})) != []


def test_the_schema_of_notify_wants_receivers() -> None:
    validator = jsonschema.Draft202012Validator(json.loads(run("schema", "notify").stdout))
    wrong: tuple[dict[str, Any], ...] = ({}, {"receivers": []}, {"receivers": [{"name": "noc", "kind": "pager"}]})
    for values in wrong:
        assert list(validator.iter_errors(values)) != []


def test_a_schema_nobody_has_is_refused() -> None:
    done = run("schema", "lab")
    assert (done.returncode, done.stderr) == (
        3,
        "error: no schema of 'lab'; use one of fabric, access, deploy, fleet, notify, silences\n",
    )
