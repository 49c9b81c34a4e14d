"""Findings by cause, the worst first, truncated to a readable size; the rest is counted."""

from collections.abc import Mapping, Sequence
from itertools import islice
from typing import Any

from netkit.judge import Finding
from netkit.judge.cause import CauseGroup
from netkit.judge.check import Layer
from netkit.report.judgement_view import Judged, silence_text, trouble_silences, where
from netkit.report.page.table import cut, name
from netkit.report.page.view import places

MOST_CAUSES = 600
MOST_SYMPTOMS = 10
MOST_EVIDENCE = 20


def causes(judged: Judged) -> dict[str, Any]:
    """Return the causes, and how many are left out."""
    found = judged.troubles
    listed = [cause_document(one, judged.layers.get(one.head.check, "")) for one in found[:MOST_CAUSES]]
    return {"causes": listed, "causes_left_out": len(found) - len(listed)}


def cause_document(trouble: CauseGroup, layer: Layer | str) -> dict[str, Any]:
    """Return a cause as plain values, with its first symptoms."""
    symptoms = [_finding(one) for one in trouble.symptoms[:MOST_SYMPTOMS]]
    findings = (trouble.head, *trouble.symptoms)
    return {
        "verdict": trouble.verdict.word,
        "is_silenced": trouble.is_silenced,
        "silences": [cut(text) for text in islice(trouble_silences(trouble), MOST_SYMPTOMS)],
        "where": cut(where(trouble), 200),
        "layer": layer,
        "places": trouble.places,
        "devices": list(dict.fromkeys(name(one.device) for one in findings if one.device))[:MOST_SYMPTOMS],
        "head": _finding(trouble.head),
        "symptoms": symptoms,
        "symptoms_left_out": len(trouble.symptoms) - len(symptoms),
    }


def numbers(judged: Judged) -> Mapping[tuple[str, str], Sequence[int]]:
    """Return the indexes of causes with a finding at each device and port; port "" is the whole device.

    A cause lists only some of its findings: this leads to it from each of them.
    """
    found: dict[tuple[str, str], list[int]] = {}
    for number, trouble in enumerate(judged.troubles[:MOST_CAUSES]):
        findings = (one for one in (trouble.head, *trouble.symptoms) if one.device)
        for key in dict.fromkeys((one.device, place) for one in findings for place in ("", *places(one))):
            found.setdefault(key, []).append(number)
    return found


def _finding(finding: Finding) -> dict[str, Any]:
    return {
        "check": name(finding.check),
        "verdict": finding.verdict.word,
        "device": name(finding.device),
        "place": name(finding.place),
        "text": cut(finding.text),
        "remedy": cut(finding.remedy),
        "evidence": {name(key): cut(value) for key, value in finding.evidence[:MOST_EVIDENCE]},
        "silenced": "" if finding.silenced is None else cut(silence_text(finding.silenced)),
    }
