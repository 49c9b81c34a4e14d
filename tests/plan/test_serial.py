"""The file of a plan: the same plan is read back, or refused with a reason."""

import hashlib
import json
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from netkit import plan
from netkit.errors import PlanError
from netkit.plan.model import SCHEMA
from tests.lanes import examples
from tests.plan.scenes import staged

SCENE = staged("nvue", "ecn-threshold")
MADE = plan.make(SCENE.fabric, SCENE.running, SCENE.intended)
TEXT = plan.write(MADE)


def changed(change: dict[str, Any]) -> str:
    return json.dumps({**json.loads(TEXT), **change})


def test_a_plan_is_deterministic() -> None:
    assert plan.write(plan.make(SCENE.fabric, SCENE.running, SCENE.intended)) == TEXT


def test_risks_are_words() -> None:
    document = json.loads(TEXT)
    assert {device["risk"] for device in document["devices"]} == {"buffer", "none"}
    assert document["schema"] == SCHEMA


def test_a_newer_plan_is_refused() -> None:
    with pytest.raises(PlanError, match=r"plan\.json: is of a newer netkit: schema 3, this one reads up to 2"):
        plan.read(changed({"schema": SCHEMA + 1}), "plan.json")


@pytest.mark.parametrize(
    "text", ["", "[]", "{}", "null", '{"schema": "1"}', '{"schema": true}', "[" * 10_000, "\ud800", '{"schema": 1e999}']
)
def test_a_malformed_plan_is_refused(text: str) -> None:
    with pytest.raises(PlanError, match="is not a plan"):
        plan.read(text)


def signed(document: dict[str, Any]) -> str:
    """A document with a matching digest, as a forger would write it."""
    document.pop("digest")
    text = json.dumps(document, sort_keys=True, separators=(",", ":"))
    return json.dumps({**document, "digest": hashlib.sha256(text.encode()).hexdigest()})


def edited(change: Callable[[dict[str, Any]], object]) -> str:
    document = json.loads(TEXT)
    change(document)
    return signed(document)


@pytest.mark.parametrize(
    "change",
    [
        lambda plan: plan.pop("devices"),
        lambda plan: plan.update(extra=1),
        lambda plan: plan.update(devices=[1]),
        lambda plan: plan.update(devices={}),
        lambda plan: plan["devices"][0].update(risk="soon"),
        lambda plan: plan["devices"][0].update(risk=3),
        lambda plan: plan["devices"][0].update(version=5),
        lambda plan: plan["devices"][0]["way"].pop("risk"),
        lambda plan: plan["devices"][0]["changes"][0].update(path="interface"),
        lambda plan: plan["devices"][0]["changes"][0].update(intended=True),
        lambda plan: plan["devices"][0]["blast"].update(is_disruptive="yes"),
    ],
)
def test_anything_but_an_exact_plan_is_refused(change: Callable[[dict[str, Any]], object]) -> None:
    with pytest.raises(PlanError, match="is not a whole plan; make the plan again"):
        plan.read(edited(change))


def test_a_reformatted_copy_with_its_digest_is_still_the_plan() -> None:
    assert plan.read(edited(lambda document: document)) == MADE


@pytest.mark.parametrize(
    "change", [{"fabric": "other"}, {"unreachable": []}, {"extra": 1}, {"digest": "0" * 64}, {"groups": []}]
)
def test_an_edited_plan_is_refused(change: dict[str, Any]) -> None:
    if change == {"unreachable": []}:
        change = {"unreachable": [{"name": "leaf09", "reason": ""}]}
    with pytest.raises(PlanError, match="was changed after it was made; make the plan again"):
        plan.read(changed(change))


@given(place=st.integers(0, len(TEXT) - 1), char=st.characters(codec="utf-8"))
@settings(max_examples=examples(300), derandomize=True)
def test_one_changed_character_is_enough_to_refuse(place: int, char: str) -> None:
    text = TEXT[:place] + char + TEXT[place + 1 :]
    try:
        found = plan.read(text)
    except PlanError:
        return
    assert found == MADE
