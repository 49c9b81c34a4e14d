"""`netkit validate` and `netkit schema`: the settings files beside the intent are checked with it."""

import json
import re
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml

from tests import intents
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
    """File, line and path of each problem; text and JSON output agree on them."""
    done, in_words = run("validate", "--fabric", fabric, "--format=json"), run("validate", "--fabric", fabric)
    reported = json.loads(done.stdout)
    assert (done.returncode, in_words.returncode, reported["valid"]) == (3, 3, False)
    assert len(in_words.stderr.splitlines()) == len(reported["problems"])
    assert "hush" not in done.stdout + done.stderr + in_words.stderr
    return [(Path(one["file"]).name, one["line"], ".".join(map(str, one["path"]))) for one in reported["problems"]]


def test_settings_beside_the_intent_are_validated(fabric: Path) -> None:
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


def test_valid_settings_are_no_problem(fabric: Path) -> None:
    (fabric / "notify.yaml").write_text(NOTIFY[: NOTIFY.index("  - {name: tickets")], encoding="utf-8")
    (fabric / "access.yaml").write_text("user: ops\n", encoding="utf-8")
    assert run("validate", "--fabric", fabric / "fabric.yaml").returncode == 0


SNMP = {"user": "mon", "auth_secret": "SNMP_AUTH", "priv_secret": "SNMP_PRIV"}
REFUSED: dict[str, tuple[dict[str, Any], str, str]] = {
    "name-of-a-user": (
        {"services": {"snmp": SNMP}},
        "services.snmp.user",
        "the SNMP user 'mon' is too short or too long for SONiC",
    ),
    "timers-of-bfd": (
        {
            "routing": {"bfd": {"interval_ms": 500, "multiplier": 3}},
            "switches": {tier: {"routing_mode": "unified"} for tier in ("leaf", "spine")},
        },
        "routing.bfd",
        "SONiC in unified mode cannot set the BFD timers of a peer group",
    ),
    "two-objects-of-one-name": (
        {"switches": {"leaf": {"object_names": {"route_map": {"TO-SPINES": "ONE", "FROM-SPINES": "ONE"}}}}},
        "switches.leaf.object_names.route_map",
        "two of the kind route_map would have one name",
    ),
    "kind-of-names": (
        {"switches": {"leaf": {"object_names": {"colour": {"RED": "BLUE"}}}}},
        "switches.leaf.object_names.colour",
        "'colour' is not a kind of names on SONiC",
    ),
}


@pytest.mark.parametrize("case", REFUSED)
def test_a_rendering_error_is_reported_once_at_its_line(tmp_path: Path, case: str) -> None:
    changes, place, message = REFUSED[case]
    fabric = write_fabric(tmp_path / "fabric", intents.on_platform("sonic", "202511", changes))
    line = 1 + next(
        number
        for number, text in enumerate((fabric / "fabric.yaml").read_text(encoding="utf-8").splitlines())
        if text.strip().startswith(f"{place.split('.')[-1]}:")
    )
    assert problems(fabric) == [("fabric.yaml", line, place)]
    assert message in run("validate", "--fabric", fabric).stderr
    done = run("render", "--fabric", fabric, "--out", tmp_path / "out")
    assert (done.returncode, message in done.stderr) == (3, True), done.stderr


def test_a_template_of_the_user_that_cannot_be_rendered_is_reported(fabric: Path) -> None:
    override = fabric / "templates" / "nvue" / "startup.yaml.j2"
    override.parent.mkdir(parents=True)
    override.write_text("- set: {{ nothing.at_all }}\n", encoding="utf-8")
    assert {name for name, _, _ in problems(fabric)} == {"startup.yaml.j2"}


@pytest.mark.parametrize("name", ["notify", "access"])
def test_the_schema_of_settings_accepts_the_example_of_the_docs_and_no_unknown_key(name: str) -> None:
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


def test_the_schema_of_notify_requires_receivers() -> None:
    validator = jsonschema.Draft202012Validator(json.loads(run("schema", "notify").stdout))
    wrong: tuple[dict[str, Any], ...] = ({}, {"receivers": []}, {"receivers": [{"name": "noc", "kind": "pager"}]})
    for values in wrong:
        assert list(validator.iter_errors(values)) != []


def test_an_unknown_schema_is_refused() -> None:
    done = run("schema", "lab")
    assert (done.returncode, done.stderr) == (
        3,
        "error: no schema of 'lab'; use one of fabric, access, deploy, fleet, notify, silences\n",
    )
