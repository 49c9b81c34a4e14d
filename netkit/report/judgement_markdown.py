"""What checks said, as Markdown for a ticket or a pull request."""

from collections.abc import Iterator
from itertools import islice

from netkit.judge.group import Trouble
from netkit.report.judgement_view import (
    MOST_REASONS,
    Judged,
    headline,
    place_text,
    skipped_reasons,
    symptom_texts,
    where,
)
from netkit.report.plan_markdown import plain
from netkit.report.plan_view import counted

MOST_ROWS = 100


def judgement_markdown(judged: Judged) -> str:
    """Return a judgement as Markdown: a table of causes, each to unfold."""
    return "\n".join(_lines(judged)) + "\n"


def _lines(judged: Judged) -> Iterator[str]:
    yield f"## {plain(headline(judged))}"
    found = judged.troubles
    if found:
        yield ""
        yield "| verdict | where | what | symptoms |"
        yield "|---|---|---|---|"
        yield from (_row(trouble) for trouble in found[:MOST_ROWS])
    if len(found) > MOST_ROWS:
        yield ""
        yield f"… and {counted(len(found) - MOST_ROWS, 'more cause')}."
    for trouble in found[:MOST_ROWS]:
        yield from _details(trouble)
    if judged.judgement.unreached:
        yield ""
        yield "Not reached:"
        yield ""
        yield from (f"- {plain(name)}: {plain(reason)}" for name, reason in judged.judgement.unreached)
    reasons = list(islice(skipped_reasons(judged.judgement), MOST_REASONS))
    if reasons:
        yield ""
        yield "<details><summary>Not judged</summary>"
        yield ""
        yield from (f"- {number} × {plain(check)}: {plain(reason)}" for check, number, reason in reasons)
        yield ""
        yield "</details>"


def _row(trouble: Trouble) -> str:
    head = trouble.head
    cells = (trouble.verdict.word, where(trouble), f"{head.check}: {head.text}", str(len(trouble.symptoms)))
    return f"| {' | '.join(map(plain, cells))} |"


def _details(trouble: Trouble) -> Iterator[str]:
    head = trouble.head
    yield ""
    yield f"<details><summary>{plain(where(trouble))}</summary>"
    yield ""
    yield f"- {plain(place_text(head))}: {plain(head.text)}"
    yield from (f"- {plain(name)}: {plain(value)}" for name, value in head.evidence)
    if head.remedy:
        yield f"- **Do:** {plain(head.remedy)}"
    yield from (f"- also {plain(symptom)}" for symptom in symptom_texts(trouble))
    yield ""
    yield "</details>"
