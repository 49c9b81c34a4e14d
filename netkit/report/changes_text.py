"""The changes of a run by cause, in order of repair, then what is gone."""

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from netkit.judge import Verdict
from netkit.report.judgement_json import finding_document
from netkit.report.judgement_view import place_text, symptom_texts, where
from netkit.report.plan_text import plain
from netkit.report.plan_view import counted, shown
from netkit.store.open_cause import SILENCED, UNREACHED, CauseTransition
from netkit.store.state import SilenceEnd

MOST = 100
"""The limit of changes to list; the others are counted."""
SEVERITIES = (Verdict.ERROR, Verdict.FAIL, Verdict.WARN)


@dataclass(frozen=True, slots=True)
class Changes:
    """The causes a run changed, and how many are open after it."""

    fabric: str
    causes: Sequence[CauseTransition]
    open: Mapping[str, int]
    """The number of open causes by verdict, of unreached devices, and of silenced problems."""
    ends: Sequence[SilenceEnd] = ()
    """Silences that ended with the run."""


def digest_text(words: Sequence[str]) -> str:
    """Count causes by how they changed."""
    counts = Counter(words)
    known = ("new", "worse", "better", "flapping", "silenced", "gone")
    return ", ".join(f"{counts[word]} {word}" for word in known if counts[word])


def open_counts_text(counts: Mapping[str, int]) -> str:
    """Count open causes and unreached devices."""
    parts = [f"{counts[one.word]} {one.word}" for one in SEVERITIES if counts.get(one.word)]
    causes = sum(counts.get(one.word, 0) for one in SEVERITIES)
    texts = [f"{counted(causes, 'cause')} open: {', '.join(parts)}"] if causes else []
    texts += [f"{counted(counts[UNREACHED], 'device')} not reached"] if counts.get(UNREACHED) else []
    texts = texts or ["nothing is open"]
    texts += [f"{counts[SILENCED]} silenced"] if counts.get(SILENCED) else []
    return "; ".join(texts)


def changes_text(found: Changes) -> str:
    """Format the changes as text; empty if there are none."""
    return "".join(f"{shown(line)}\n" for line in _lines(found)) if found.causes or found.ends else ""


def _headline(found: Changes) -> str:
    news = [digest_text([one.word for one in found.causes]), f"{counted(len(found.ends), 'silence')} ended"]
    text = ", ".join(filter(None, news[: 1 + bool(found.ends)])) or "nothing changed"
    return f"{found.fabric}: {text} since the last run; {open_counts_text(found.open)}"


def _lines(found: Changes) -> Iterator[str]:
    yield _headline(found)
    for one in found.causes[:MOST]:
        yield from _change(one)
    if len(found.causes) > MOST:
        yield f"  … and {len(found.causes) - MOST} more: netkit history --checks last"
    yield from (f"  ended   {one.text}" for one in found.ends)


def _change(one: CauseTransition) -> Iterator[str]:
    group, head = one.cause.group, one.cause.group.head
    yield f"  {one.word:<6}  {_verdict(one):<5} {where(group)}"
    yield f"                {place_text(head)}: {head.text}  [{head.check}]"
    if one.is_over:
        return
    if head.remedy:
        yield f"                do: {head.remedy}"
    for symptom in symptom_texts(group):
        yield f"                also {symptom}"


def _verdict(one: CauseTransition) -> str:
    """The verdict of a cause, and the one before if it differs."""
    now = one.cause.group.verdict
    if one.is_over:
        return f"was {now.word}"
    return now.word.upper() if one.before in {now, Verdict.PASS} else f"{now.word.upper()}, was {one.before.word}"


def changes_markdown(found: Changes) -> str:
    lines = [f"## {plain(_headline(found))}", ""]
    for one in found.causes[:MOST]:
        group, head = one.cause.group, one.cause.group.head
        verdict = plain(_verdict(one).lower())
        lines.append(f"- **{one.word}**, {verdict}: {plain(where(group))}: {plain(head.text)} ({plain(head.check)})")
        if not one.is_over:
            lines += [f"  - **Do:** {plain(head.remedy)}"] if head.remedy else []
            lines += [f"  - also {plain(symptom)}" for symptom in symptom_texts(group)]
    if len(found.causes) > MOST:
        lines.append(f"- … and {len(found.causes) - MOST} more")
    lines += [f"- **ended**: {plain(one.text)}" for one in found.ends]
    return "\n".join(lines) + "\n"


def changes_json(found: Changes) -> str:
    changed = [
        {
            "change": one.word,
            "before": one.before.word,
            "verdict": Verdict.PASS.word if one.is_over else one.cause.group.verdict.word,
            "since_s": one.cause.since_s,
            "head": finding_document(one.cause.group.head),
            "symptoms": [finding_document(symptom) for symptom in one.cause.group.symptoms],
        }
        for one in found.causes
    ]
    ends = [{"id": one.id, "text": one.text} for one in found.ends]
    document = {"fabric": found.fabric, "open": dict(found.open), "changes": changed, "silences_ended": ends}
    return json.dumps(document, indent=1) + "\n"
