"""What checks said of a large fabric on a bad day."""

from dataclasses import replace

from netkit.judge import Finding, fail
from netkit.judge.run import Judgement, Result
from netkit.report.judgement_markdown import judgement_markdown
from netkit.report.judgement_text import judgement_text
from netkit.report.judgement_view import Judged

WHY = "cannot be reached at 192.0.2.10 port 22: Unable to connect to port 22; check the address"


def judged(failures: int, missed: int, words: int = 1) -> Judged:
    """Return a judgement of so many failures and unreached devices."""
    found = [_failure(number, words) for number in range(failures)]
    results = tuple(Result(one.check, one.device, one.verdict, 1, (one,)) for one in found)
    unreached = tuple((f"spine{number:03}", WHY) for number in range(missed))
    return Judged("large", 2000, 10.0, 1e9, Judgement(results, unreached), {"load.errors": "link"}, 4)


def _failure(number: int, words: int) -> Finding:
    text = f"lost {number} packets" + " and more" * words
    return fail("swp1", text, "see the cable", device=f"leaf{number:03}", window="10 s")._replace(check="load.errors")


def test_markdown_fits_a_comment_and_counts_what_does_not() -> None:
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


def test_text_ends_though_no_device_is_reached() -> None:
    lines = judgement_text(judged(0, 800)).splitlines()
    assert lines[-1] == "  … and 750 more devices; --format json shows all"
    assert len(lines) < 60


def test_what_is_left_out_of_many_findings_is_counted() -> None:
    one = judged(1, 0)
    results = tuple(replace(result, left_out=1500) for result in one.judgement.results)
    text = judgement_text(replace(one, judgement=replace(one.judgement, results=results)))
    assert text.splitlines()[0].endswith("over 10 s; 1,500 more findings, none worse, are left out")
