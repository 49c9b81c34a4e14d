"""Facts from the output of a Linux switch with FRR: from a lab, from hardware, refused, truncated and changed."""

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from netkit.facts import Absent, Facts
from netkit.facts.device import KINDS
from netkit.platforms.frr import facts
from netkit.platforms.frr.facts import CHIP
from netkit.platforms.view import View
from tests.facts.frr.case import CASES, FOLDER, read, seen
from tests.facts.hostile import STRANGE, changed
from tests.facts.written import check_written, parsed
from tests.lanes import examples

OF_OTHERS = {"lookups", "probes", "nics", "host", "lags", "mlag"}
VIRTUAL = {"modules", "lines"}
VIEWS, PRINTED = read("10.2-iron")
NAMES = ["+".join(sorted(view.yields)) for view in VIEWS]
STEP = 23


def texts(view: View) -> tuple[str, ...]:
    return tuple(PRINTED[command] for command in view.commands)


def absent(found: Facts) -> set[str]:
    return {kind for kind in KINDS if isinstance(getattr(found, kind), Absent)}


@pytest.mark.parametrize("case", CASES)
def test_facts_match_the_expected_file(case: str) -> None:
    check_written(FOLDER / f"{case}.facts.json", seen(case))


def test_what_a_plain_linux_switch_cannot_report_is_absent() -> None:
    assert len(CASES) >= 3
    assert absent(seen("10.2-iron")) == {*OF_OTHERS, *CHIP}
    assert absent(seen("8.4.4-lab")) == {*OF_OTHERS, *CHIP, *VIRTUAL}
    assert absent(seen("refused")) == set(KINDS)


def test_a_virtual_cable_has_no_speed() -> None:
    found = seen("8.4.4-lab").interfaces
    assert not isinstance(found, Absent)
    assert {name: one.speed_gbps for name, one in found.items()} == {"swp1s1": None, "swp33s0": None}


@pytest.mark.parametrize("view", VIEWS, ids=NAMES)
@pytest.mark.parametrize("text", STRANGE, ids=range(len(STRANGE)))
def test_an_unparsable_answer_is_absent_with_a_reason(view: View, text: str) -> None:
    found = parsed(view, *(text for _ in view.commands))
    if text in {"", "null", "{}"}:
        assert all(isinstance(getattr(found, kind), Absent) for kind in view.yields)


@pytest.mark.parametrize("case", ["10.2-iron", "8.4.4-lab"])
def test_an_output_may_be_truncated_anywhere(case: str) -> None:
    views, printed = read(case)
    for view in views:
        given_ = tuple(printed[command] for command in view.commands)
        for index, text in enumerate(given_):
            for end in (*range(0, len(text), STEP), *range(max(0, len(text) - 20), len(text))):
                parsed(view, *given_[:index], text[:end], *given_[index + 1 :])


def test_a_truncated_configuration_does_not_report_a_drain() -> None:
    view = next(view for view in VIEWS if "sessions" in view.yields)
    (text,) = texts(view)
    found = parsed(view, text.removesuffix("end\n")).sessions
    assert not isinstance(found, Absent)
    assert {name: one.is_draining for name, one in found.items()} == {"swp1": None, "swp2": None, "swp3": None}


@settings(max_examples=examples(100))
@given(st.data())
def test_an_answer_may_have_another_type_anywhere(data: st.DataObject) -> None:
    view = data.draw(st.sampled_from(VIEWS))
    given_ = list(texts(view))
    index = data.draw(st.integers(0, len(given_) - 1))
    given_[index] = data.draw(changed(given_[index]))
    parsed(view, *given_)


@settings(max_examples=examples(60))
@given(st.text(max_size=120), st.sampled_from(VIEWS))
def test_any_text_is_accepted(text: str, view: View) -> None:
    parsed(view, *(text for _ in view.commands))


def test_of_several_routes_the_best_counts() -> None:
    shown = [
        {"dst": "default", "dev": "swp1s0", "flags": ["linkdown"]},
        {"dst": "default", "dev": "swp2s0", "metric": 20},
        {"dst": "default", "dev": "eth0", "metric": 100},
    ]
    assert facts.routes(json.dumps(shown)).routes == {"0.0.0.0/0": ("swp2s0",)}
