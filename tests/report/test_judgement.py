"""Reports of checks on a large fabric with many failures."""

import json
import re
from collections.abc import Iterator
from dataclasses import replace

from netkit.judge import Finding, fail
from netkit.judge.run import CheckResult, Judgement
from netkit.report.judgement_json import judgement_json
from netkit.report.judgement_text import judgement_markdown, judgement_text
from netkit.report.judgement_view import Judged
from tests.command import ROOT

WHY = "cannot be reached at 192.0.2.10 port 22: Unable to connect to port 22; check the address"


def judged(failures: int, missed: int, words: int = 1) -> Judged:
    """A judgement with this many failures and unreached devices."""
    found = [_failure(number, words) for number in range(failures)]
    results = tuple(CheckResult(one.check, one.device, one.verdict, 1, (one,)) for one in found)
    unreached = tuple((f"spine{number:03}", WHY) for number in range(missed))
    return Judged("large", 2000, 10.0, 1e9, Judgement(results, unreached), {"load.errors": "link"}, 4)


def _failure(number: int, words: int) -> Finding:
    text = f"lost {number} packets" + " and more" * words
    return fail("swp1", text, "see the cable", device=f"leaf{number:03}", window="10 s")._replace(check="load.errors")


def test_markdown_fits_a_comment_and_counts_what_is_omitted() -> None:
    text = judgement_markdown(judged(500, 800, words=40))
    assert len(text) <= 60_000
    rows = text.count("\n| fail |")
    assert f"\n… and {500 - rows} more causes.\n" in text
    assert (rows, text.count("<details>")) == (50, 50)
    assert text.count("\n- spine") == 50
    assert "\n- … and 750 more devices\n" in text
    none = judgement_markdown(judged(500, 0, words=9000))
    assert len(none) < 1000
    assert "\n… and 500 more causes.\n" in none


def test_text_is_bounded_even_if_no_device_is_reached() -> None:
    lines = judgement_text(judged(0, 800)).splitlines()
    assert lines[-1] == "  … and 750 more devices; --format json shows all"
    assert len(lines) < 60


def test_omitted_findings_are_counted() -> None:
    one = judged(1, 0)
    results = tuple(replace(result, left_out=1500) for result in one.judgement.results)
    text = judgement_text(replace(one, judgement=replace(one.judgement, results=results)))
    assert text.splitlines()[0].endswith("over 10 s; 1,500 more findings, none worse, are left out")


DESCRIBED_ALONE = ("silences", "counts", "head", "symptoms", "findings", "evidence")
"""Values that the page describes separately."""


def _fields(value: object, place: str = "") -> Iterator[str]:
    """The names of all fields, as the page writes them."""
    if isinstance(value, dict) and not place.endswith(DESCRIBED_ALONE):
        for name, one in value.items():
            yield from _fields(one, f"{place}.{name}".lstrip("."))
    elif isinstance(value, list) and not place.endswith(DESCRIBED_ALONE):
        for one in value:
            yield from _fields(one, f"{place}[]")
    else:
        yield place


def test_the_page_describes_each_field_of_the_json() -> None:
    one = judged(1, 1)
    results = tuple(replace(result, left_out=1500) for result in one.judgement.results)
    document = json.loads(judgement_json(replace(one, judgement=replace(one.judgement, results=results))))
    page = (ROOT / "docs" / "checks.md").read_text(encoding="utf-8")
    section = page.partition("## What the JSON holds\n")[2].partition("\n## ")[0]
    head = document["causes"][0]["head"]
    found = [*dict.fromkeys(_fields(document)), *(f"head.{name}" for name in head)]
    assert sorted(re.findall(r"^\| `(.+?)` \|", section, re.MULTILINE)) == sorted(found)
    assert head == document["results"][0]["findings"][0]
    counted_row = next(line for line in section.splitlines() if line.startswith("| `counts` |"))
    assert re.findall(r"`(\w+)`", counted_row)[1:] == list(document["counts"])
