"""Output of acceptance tools: each file beside its expected result, and arbitrary input."""

import json
import random
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import TypeAdapter

from netkit.facts import Absent
from netkit.facts.snapshot import Trial
from netkit.platforms.linux.acceptance import mark, results
from tests.facts.hostile import STRANGE, TREES, changed

CASES = tuple(sorted((Path(__file__).parent / "cases").glob("*.txt")))
FOUND = TypeAdapter(tuple[Trial, ...] | Absent)
TEXTS = tuple(case.read_text(encoding="utf-8") for case in CASES)
NAMES = [case.stem for case in CASES]


def read(text: str) -> Any:
    return json.loads(json.dumps(FOUND.dump_python(results(text, "f"), mode="json", exclude_defaults=True)))


@pytest.mark.parametrize("case", CASES, ids=NAMES)
def test_an_output_is_parsed_as_its_file_says(case: Path) -> None:
    assert read(case.read_text(encoding="utf-8")) == json.loads(case.with_suffix(".json").read_text(encoding="utf-8"))


def test_runs_in_one_file_are_parsed_like_those_in_many() -> None:
    parsed = [(text, found) for text in TEXTS if not isinstance(found := results(text), Absent)]
    together = "\n".join(f"{mark({})}\n{text}" for text, _ in parsed)
    assert results(together) == tuple(trial for _, found in parsed for trial in found)


@pytest.mark.parametrize("text", STRANGE)
def test_no_strange_answer_breaks_a_parser(text: str) -> None:
    read(text)
    read(f"{mark({'tool': 'perftest'})}\n{text}")


@pytest.mark.parametrize(
    "text",
    [
        f"# size algbw busbw\n{'9' * 5000} 1 2\n",
        f"# size algbw busbw #wrong\n{'9' * 19} nan inf 1e300\n",
        "#@ trial {\n#@ trial []\n#@ trial null\n",
        '#@ trial {"tool": "iperf3", "hosts": [1, {}], "at_s": 1e999}\n{"start": [], "end": 3, "error": {}}',
        " GID: " + ":".join(["999"] * 16) + "\nSend BW Test\n #bytes BW average[x]\n1 1e400\n",
        '{"test_info": {"test": "Send_BW_Test"}, "results": {"MsgSize": 1e308, "MsgRate": 1e308, "BW_average": 0}}',
        "{" * 50_000,
        ("{ " * 1100) + "\n",
        "Send" + " BW" * 30_000,
        "\n".join(["{"] * 5000),
    ],
)
def test_no_extreme_value_breaks_a_parser(text: str) -> None:
    read(text)


@given(st.data())
def test_no_changed_output_breaks_a_parser(data: st.DataObject) -> None:
    text = data.draw(st.sampled_from(TEXTS))
    start = text.find("{") if "{" in text else 0
    read(text[:start] + data.draw(changed(text[start:])))


@given(st.text() | TREES.map(json.dumps))
def test_no_text_breaks_a_parser(text: str) -> None:
    read(text)


@pytest.mark.parametrize("text", TEXTS, ids=NAMES)
def test_no_truncated_or_shuffled_output_breaks_a_parser(text: str) -> None:
    for end in range(0, len(text), 23):
        read(text[:end])
    dice = random.Random(7)  # noqa: S311 - the same mixtures each time
    for _ in range(30):
        lines = text.splitlines(keepends=True)
        dice.shuffle(lines)
        read("".join(lines))
