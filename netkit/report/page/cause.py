"""Findings by cause, the worst first, truncated to a readable size; the rest is counted."""

from collections.abc import Iterator, Mapping, Sequence
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
    """Return what is wrong by cause, and how much is left out."""
    found = judged.troubles
    told = [cause_document(trouble, layer_of(trouble.head, judged)) for trouble in found[:MOST_CAUSES]]
    return {"causes": told, "causes_left_out": len(found) - len(told)}


def cause_document(trouble: CauseGroup, layer: Layer | str) -> dict[str, Any]:
    """Return a cause as plain values, with the first of its symptoms."""
    symptoms = [_finding(one) for one in trouble.symptoms[:MOST_SYMPTOMS]]
    return {
        "verdict": trouble.verdict.word,
        "is_silenced": trouble.is_silenced,
        "silences": [cut(text) for text in islice(trouble_silences(trouble), MOST_SYMPTOMS)],
        "where": cut(where(trouble), 200),
        "layer": layer,
        "places": trouble.places,
        "devices": list(islice(_devices(trouble), MOST_SYMPTOMS)),
        "head": _finding(trouble.head),
        "symptoms": symptoms,
        "symptoms_left_out": len(trouble.symptoms) - len(symptoms),
    }


def numbers(judged: Judged) -> Mapping[tuple[str, str], Sequence[int]]:
    """Return by device and port which of the causes that are reported have a finding there; port "" is all of a device.

    A cause tells only some of its findings: this leads to it from each of them.
    """
    found: dict[tuple[str, str], list[int]] = {}
    for number, trouble in enumerate(judged.troubles[:MOST_CAUSES]):
        for key in dict.fromkeys(_keys(trouble)):
            found.setdefault(key, []).append(number)
    return found


def _keys(trouble: CauseGroup) -> Iterator[tuple[str, str]]:
    for one in (trouble.head, *trouble.symptoms):
        if one.device:
            yield from ((one.device, place) for place in ("", *places(one)))


def layer_of(finding: Finding, judged: Judged) -> Layer | str:
    """Return the layer of the check that found something."""
    return judged.layers.get(finding.check, "")


def _devices(trouble: CauseGroup) -> Iterator[str]:
    """Yield the devices a trouble is about."""
    yield from dict.fromkeys(name(one.device) for one in (trouble.head, *trouble.symptoms) if one.device)


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
