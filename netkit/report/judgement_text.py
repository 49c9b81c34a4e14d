"""What checks said, for a terminal: the worst first, one cause over many symptoms."""

from collections.abc import Iterator
from itertools import islice

from netkit.judge.cause import CauseGroup
from netkit.report.judgement_view import (
    MOST_REASONS,
    MOST_UNREACHED,
    Judged,
    headline,
    missed_texts,
    place_text,
    silence_notes,
    skipped_reasons,
    symptom_texts,
    trouble_silences,
    where,
)
from netkit.report.plan_view import counted, shown

MOST_TROUBLES = 50


def judgement_text(judged: Judged) -> str:
    """Return a judgement as plain text."""
    return "\n".join(map(shown, _lines(judged))) + "\n"


def _lines(judged: Judged) -> Iterator[str]:
    yield headline(judged)
    found = judged.troubles
    for trouble in found[:MOST_TROUBLES]:
        yield ""
        yield from _trouble(trouble)
    if len(found) > MOST_TROUBLES:
        yield ""
        yield f"… and {counted(len(found) - MOST_TROUBLES, 'more cause')}; --format json shows all"
    missed = list(missed_texts(judged.judgement))
    if missed:
        yield ""
        yield "Not reached, or not to the end:"
        yield from (f"  {name}: {reason}" for name, reason in missed[:MOST_UNREACHED])
    if len(missed) > MOST_UNREACHED:
        yield f"  … and {counted(len(missed) - MOST_UNREACHED, 'more device')}; --format json shows all"
    yield from _skipped(judged)
    if notes := list(silence_notes(judged.silences)):
        yield ""
        yield "To tidy, with netkit silence end:"
        yield from (f"  {note}" for note in notes[:MOST_REASONS])
    if len(notes) > MOST_REASONS:
        yield f"  … and {len(notes) - MOST_REASONS} more; netkit silence list shows all"


def _trouble(trouble: CauseGroup) -> Iterator[str]:
    head = trouble.head
    yield f"{trouble.verdict.word.upper():5} {where(trouble)}{', silenced' * trouble.is_silenced}"
    yield f"      {place_text(head)}: {head.text}  [{head.check}]"
    if head.evidence:
        yield f"      seen: {', '.join(f'{name} {value}' for name, value in head.evidence)}"
    if head.remedy:
        yield f"      do: {head.remedy}"
    for symptom in symptom_texts(trouble):
        yield f"      also {symptom}"
    yield from (f"      {text}" for text in trouble_silences(trouble))


def _skipped(judged: Judged) -> Iterator[str]:
    reasons = list(skipped_reasons(judged.judgement))
    if not reasons:
        return
    yield ""
    yield "Not judged:"
    for check, number, reason in islice(reasons, MOST_REASONS):
        yield f"  {number:4} × {check}: {reason}"
    if len(reasons) > MOST_REASONS:
        yield f"  … and {counted(len(reasons) - MOST_REASONS, 'more reason')}"
