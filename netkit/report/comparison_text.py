"""A comparison as text for a terminal, as Markdown for a ticket, and as JSON."""

import json
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from itertools import islice
from typing import Any

from netkit.judge.difference import Difference
from netkit.report.comparison_view import (
    FATES,
    WORDS,
    ComparedCause,
    Comparison,
    Side,
    alike,
    alike_text,
    headline,
    uncompared_text,
)
from netkit.report.judgement_json import finding_document
from netkit.report.judgement_view import place_text, symptom_texts, where
from netkit.report.plan_markdown import plain
from netkit.report.plan_view import counted, shown

MOST_CAUSES = 50
MOST_GROUPS = 60
MOST_BESIDE = 6
MOST_REASONS = 12
SIGNS = {True: "worse", None: "", False: "better"}
LARGEST = 60_000
"""GitHub refuses comments of more than 65,536 characters."""
ROOM = (100, 50, 20, 10, 5, 0)


def comparison_text(found: Comparison) -> str:
    return "\n".join(map(shown, _lines(found))) + "\n"


def _lines(found: Comparison) -> Iterator[str]:
    yield headline(found)
    yield f"  before: {_side(found.before)}"
    yield f"  after:  {_side(found.after)}"
    yield from (f"  {note}" for note in found.notes)
    room = MOST_CAUSES
    for fate in FATES:
        changes = [one for one in found.causes if one.fate == fate]
        if not changes:
            continue
        yield ""
        yield f"{counted(len(changes), 'cause')} {WORDS[fate]}:"
        for change in changes[:room]:
            yield from _cause(change)
        if len(changes) > room:
            yield f"  … and {len(changes) - room} more; --format json shows all"
        room = max(0, room - len(changes))
    groups = alike(found.differences)
    if groups:
        yield ""
        yield "Other differences:" if found.causes else "Differences:"
    for group in groups[:MOST_GROUPS]:
        yield f"  {SIGNS[group.first.is_worse]:6}  {alike_text(group)}"
    if len(groups) > MOST_GROUPS:
        yield f"  … and {len(groups) - MOST_GROUPS} more; --format json shows all"
    reasons = list(uncompared_text(found.uncompared))
    if reasons:
        yield ""
        yield "Not compared:"
        yield from (f"  {reason}" for reason in islice(reasons, MOST_REASONS))
    if len(reasons) > MOST_REASONS:
        yield f"  … and {counted(len(reasons) - MOST_REASONS, 'more reason')}"


def _side(side: Side) -> str:
    taken = time.strftime("%Y-%m-%d %H:%M:%S UTC", time.gmtime(side.taken_s))
    window = f", counters over {side.window_s:.0f} s" if side.window_s else ", counters seen once"
    return f"{side.name}, {taken}, {counted(len(side.devices), 'device')}{window}"


def _cause(change: ComparedCause) -> Iterator[str]:
    trouble, head = change.trouble, change.trouble.head
    yield f"  {trouble.verdict.word.upper():5} {where(trouble)}" + (f" ({change.was})" if change.was else "")
    yield f"        {place_text(head)}: {head.text}  [{head.check}]"
    if head.remedy and change.fate in {"came", "worse"}:
        yield f"        do: {head.remedy}"
    yield from (f"        also {symptom}" for symptom in symptom_texts(trouble))
    yield from (f"        {text}" for text in _beside(change.differences))


def _beside(found: Sequence[Difference]) -> Iterator[str]:
    groups = alike(found)
    yield from (f"changed there: {alike_text(group)}" for group in groups[:MOST_BESIDE])
    if len(groups) > MOST_BESIDE:
        yield f"changed there: {len(groups) - MOST_BESIDE} more"


def comparison_markdown(found: Comparison) -> str:
    """Format a comparison as Markdown, cut to the size of a comment."""
    drafts = ("\n".join(_markdown(found, most)) + "\n" for most in ROOM)
    return next(draft for most, draft in zip(ROOM, drafts, strict=True) if len(draft) <= LARGEST or not most)


def _markdown(found: Comparison, most: int) -> Iterator[str]:
    yield f"## {plain(headline(found))}"
    yield ""
    yield f"- before: {plain(_side(found.before))}"
    yield f"- after: {plain(_side(found.after))}"
    yield from (f"- {plain(note)}" for note in found.notes)
    if found.causes[:most]:
        yield ""
        yield "| cause | verdict | where | what |"
        yield "|---|---|---|---|"
    for change in found.causes[:most]:
        head = change.trouble.head
        fate = WORDS[change.fate] + (f" ({change.was})" if change.was else "")
        cells = fate, change.trouble.verdict.word, where(change.trouble), f"{head.check}: {head.text}"
        yield f"| {' | '.join(map(plain, cells))} |"
    if len(found.causes) > most:
        yield ""
        yield f"… and {counted(len(found.causes) - most, 'more cause')}."
    for change in found.causes[:most]:
        lines = [*symptom_texts(change.trouble), *_beside(change.differences)]
        if lines:
            yield ""
            yield f"<details><summary>{plain(where(change.trouble))}</summary>"
            yield ""
            yield from (f"- {plain(line)}" for line in lines)
            yield ""
            yield "</details>"
    groups = alike(found.differences)
    if groups[:most]:
        yield ""
        yield "| | difference |"
        yield "|---|---|"
        yield from (f"| {SIGNS[group.first.is_worse]} | {plain(alike_text(group))} |" for group in groups[:most])
    if len(groups) > most:
        yield ""
        yield f"… and {len(groups) - most} more differences."
    reasons = list(uncompared_text(found.uncompared))[:most]
    if reasons:
        yield ""
        yield "<details><summary>Not compared</summary>"
        yield ""
        yield from (f"- {plain(reason)}" for reason in reasons)
        yield ""
        yield "</details>"


def comparison_json(found: Comparison) -> str:
    document = {
        "fabric": found.fabric,
        "is_worse": found.is_worse,
        "exit_code": int(found.is_worse),
        "before": _side_document(found.before),
        "after": _side_document(found.after),
        "notes": found.notes,
        "causes": [
            {
                "fate": change.fate,
                "was": change.was,
                "verdict": change.trouble.verdict.word,
                "head": finding_document(change.trouble.head),
                "symptoms": [finding_document(one) for one in change.trouble.symptoms],
                "differences": [_difference_document(one) for one in change.differences],
            }
            for change in found.causes
        ],
        "differences": [_difference_document(one) for one in found.differences],
        "uncompared": [asdict(one) for one in found.uncompared],
    }
    return json.dumps(document, indent=1, allow_nan=False) + "\n"


def _side_document(side: Side) -> dict[str, Any]:
    named = {"name": side.name, "taken_s": side.taken_s, "window_s": side.window_s}
    return {**named, "devices": sorted(side.devices), "has_facts": side.snapshot is not None}


def _difference_document(one: Difference) -> dict[str, Any]:
    names = ("kind", "device", "place", "what", "was", "now", "is_worse")
    return {name: getattr(one, name) for name in names}
