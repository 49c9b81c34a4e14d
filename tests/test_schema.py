"""The JSON Schema with which editors validate fabric.yaml."""

import copy
import json
from functools import cache
from typing import Any

import jsonschema
import pytest
import yaml

from netkit.intent.model import json_schema
from tests import intents
from tests.command import ROOT, run

INVENTORIES = sorted((ROOT / "inventory").glob("*/fabric.yaml"))


@cache
def validator() -> jsonschema.Draft202012Validator:
    return jsonschema.Draft202012Validator(json_schema())


def test_the_schema_is_a_valid_schema() -> None:
    jsonschema.Draft202012Validator.check_schema(json_schema())


def test_the_shipped_file_is_the_output_of_the_command() -> None:
    done = run("schema")
    assert (done.returncode, done.stderr) == (0, "")
    assert json.loads(done.stdout) == json_schema()
    # If this fails: netkit schema > inventory/fabric.schema.json
    assert (ROOT / "inventory" / "fabric.schema.json").read_text(encoding="utf-8") == done.stdout


@pytest.mark.parametrize("file", INVENTORIES, ids=lambda file: file.parent.name)
def test_shipped_inventories_satisfy_the_schema_and_reference_it(file: Any) -> None:
    text = file.read_text(encoding="utf-8")
    assert text.startswith("# yaml-language-server: $schema=../fabric.schema.json\n")
    assert list(validator().iter_errors(yaml.safe_load(text))) == []


def test_there_are_inventories() -> None:
    assert {file.parent.name for file in INVENTORIES} >= {
        "reference",
        "internet-edge",
        "superpod",
        "mixed",
        "brownfield",
        "training-cluster",
        "training-800g",
        "hgx-256",
    }


@pytest.mark.parametrize(
    ("path", "key", "value"),
    [
        ((), "attachement", "p2p"),
        (("switches", "leaf"), "uplink_per_spine", 2),
        (("units", 0), "host", 2),
        (("services", "snmp"), "password", "hunter2"),
        (("lossless", "ecn", "400"), "max_byte", 3),
        ((), "topology", "two-teir"),
        ((), "rails", "eight"),
        ((), "rails", 99),
        (("switches", "leaf"), "version", True),
        (("units", 0), "hosts", "1..3"),
        (("cables", "host"), "length_m", 0),
    ],
)
def test_an_error_is_rejected(path: tuple[str | int, ...], key: str, value: object) -> None:
    values: Any = intents.values({"lossless": {"ecn": {"400": {"min_bytes": 1, "max_bytes": 2}}}})
    assert list(validator().iter_errors(values)) == []
    part = broken = copy.deepcopy(values)
    for step in path:
        part = part[step]
    part[key] = value
    assert list(validator().iter_errors(broken)) != []
