"""Judgements as text for a terminal and as Markdown: the worst first, each cause above its symptoms."""

import shlex
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice

from netkit.judge.cause import CauseGroup
from netkit.judge.steering import Steering, commands
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
from netkit.report.plan_text import plain
from netkit.report.plan_view import counted, shown

MOST_CAUSES = 50


def judgement_text(judged: Judged) -> str:
    return "\n".join(map(shown, _lines(judged))) + "\n"


def _lines(judged: Judged) -> Iterator[str]:
    yield headline(judged)
    found = judged.causes
    for group in found[:MOST_CAUSES]:
        yield ""
        yield from _trouble(group)
    if len(found) > MOST_CAUSES:
        yield ""
        yield f"… and {counted(len(found) - MOST_CAUSES, 'more cause')}; --format json shows all"
    missed = list(missed_texts(judged.judgement))
    if missed:
        yield ""
        yield "Not reached, or not read completely:"
        yield from (f"  {name}: {reason}" for name, reason in missed[:MOST_UNREACHED])
    if len(missed) > MOST_UNREACHED:
        yield f"  … and {counted(len(missed) - MOST_UNREACHED, 'more device')}; --format json shows all"
    yield from _skipped(judged)
    if notes := list(silence_notes(judged.silences)):
        yield ""
        yield "To clean up, with netkit silence end:"
        yield from (f"  {note}" for note in notes[:MOST_REASONS])
    if len(notes) > MOST_REASONS:
        yield f"  … and {len(notes) - MOST_REASONS} more; netkit silence list shows all"


def _trouble(group: CauseGroup) -> Iterator[str]:
    head = group.head
    yield f"{group.verdict.word.upper():5} {where(group)}{', silenced' * group.is_silenced}"
    yield f"      {place_text(head)}: {head.text}  [{head.check}]"
    if head.evidence:
        yield f"      seen: {', '.join(f'{name} {value}' for name, value in head.evidence)}"
    if head.remedy:
        yield f"      do: {head.remedy}"
    for symptom in symptom_texts(group):
        yield f"      also {symptom}"
    yield from (f"      {text}" for text in trouble_silences(group))


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


MOST_ROWS = (100, 70, 50, 30, 20, 10, 5, 0)
LARGEST = 60_000
"""GitHub refuses comments of more than 65,536 characters."""


def judgement_markdown(judged: Judged) -> str:
    """Format a judgement as Markdown: a table of causes with folded details, cut to the size of a comment."""
    found = judged.causes
    drafts = ("\n".join(_markdown_lines(judged, found, most)) + "\n" for most in MOST_ROWS)
    return next(draft for most, draft in zip(MOST_ROWS, drafts, strict=True) if len(draft) <= LARGEST or not most)


def _markdown_lines(judged: Judged, found: Sequence[CauseGroup], most: int) -> Iterator[str]:
    yield f"## {plain(headline(judged))}"
    if found[:most]:
        yield ""
        yield "| verdict | where | what | symptoms |"
        yield "|---|---|---|---|"
        yield from (_row(group) for group in found[:most])
    if len(found) > most:
        yield ""
        yield f"… and {counted(len(found) - most, 'more cause')}."
    for group in found[:most]:
        yield from _details(group)
    missed = list(missed_texts(judged.judgement))
    if missed:
        yield ""
        yield "Not reached:"
        yield ""
        yield from (f"- {plain(name)}: {plain(reason)}" for name, reason in missed[:MOST_UNREACHED])
    if len(missed) > MOST_UNREACHED:
        yield f"- … and {counted(len(missed) - MOST_UNREACHED, 'more device')}"
    reasons = list(islice(skipped_reasons(judged.judgement), MOST_REASONS))
    if reasons:
        yield ""
        yield "<details><summary>Not judged</summary>"
        yield ""
        yield from (f"- {number} × {plain(check)}: {plain(reason)}" for check, number, reason in reasons)
        yield ""
        yield "</details>"
    notes = list(islice(silence_notes(judged.silences), MOST_REASONS))
    if notes:
        yield ""
        yield "<details><summary>Silences to clean up</summary>"
        yield ""
        yield from (f"- {plain(note)}" for note in notes)
        yield ""
        yield "</details>"


def _row(group: CauseGroup) -> str:
    head = group.head
    word = f"{group.verdict.word}{', silenced' * group.is_silenced}"
    cells = (word, where(group), f"{head.check}: {head.text}", str(len(group.symptoms)))
    return f"| {' | '.join(map(plain, cells))} |"


def _details(group: CauseGroup) -> Iterator[str]:
    head = group.head
    yield ""
    yield f"<details><summary>{plain(where(group))}</summary>"
    yield ""
    yield f"- {plain(place_text(head))}: {plain(head.text)}"
    yield from (f"- {plain(name)}: {plain(value)}" for name, value in head.evidence)
    if head.remedy:
        yield f"- **Do:** {plain(head.remedy)}"
    yield from (f"- also {plain(symptom)}" for symptom in symptom_texts(group))
    yield from (f"- {plain(text)}" for text in trouble_silences(group))
    yield ""
    yield "</details>"


NOTHING: Mapping[str, str] = {}


def steering_text(
    steering: Steering, label_prefix: str, failed: Mapping[str, str] | None, left: Mapping[str, str] = NOTHING
) -> str:
    """Format a round; with `failed`, its commands were run, failed for these nodes, and left others alone."""
    return "".join(
        f"{line}\n" for line in (*_steering_lines(steering), *_steering_commands(steering, label_prefix, failed, left))
    )


def _steering_lines(steering: Steering) -> Iterator[str]:
    out = steering.out
    nodes = counted(steering.of, "node")
    yield f"{steering.kind}: {len(out)} of {nodes} out" if out else f"{steering.kind}: all {nodes} take jobs"
    for name in out:
        one, is_new = steering.health[name], name in steering.taken
        yield f"  {'taken out' if is_new else 'stays out'}  {name}: {one.check} at {one.reason}"
    yield from (f"  back       {name}" for name in steering.returned)
    for name in steering.over_budget:
        one = steering.health[name]
        yield f"  not taken out, since the budget is used up: {name}: {one.check} at {one.reason}"
    for name in (name for name, one in steering.health.items() if not one.is_out and name not in steering.over_budget):
        one = steering.health[name]
        yield f"  watched    {name}: {one.check} at {one.reason}"


def _steering_commands(
    steering: Steering, label_prefix: str, failed: Mapping[str, str] | None, left: Mapping[str, str]
) -> Iterator[str]:
    if failed is None:
        yield from (f"  {shlex.join(command)}" for _, command in commands(steering, label_prefix))
        return
    yield from (f"  left alone: {name}: {why}" for name, why in left.items())
    yield from (f"  failed, and tried again in the next round: {name}: {why}" for name, why in failed.items())
