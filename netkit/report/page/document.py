"""A report as plain values, for the page and for machines."""

import json
from collections import Counter
from dataclasses import asdict
from typing import Any

from netkit import __version__
from netkit.judge import Verdict
from netkit.report.judgement_view import examined_text, missed_texts, silence_notes, skipped_reasons, verdict_text
from netkit.report.page import view
from netkit.report.page.device import causes, devices
from netkit.report.page.port import METRICS
from netkit.report.page.table import cut, name
from netkit.report.page.view import OF_VERDICT, HealthState, Reported

FORMAT = 1
"""Incremented when the meaning of existing data changes, not for additions."""
MOST_DEVICES = 10_000
"""A report on more would be too large to open."""
MOST_REASONS = 100
MOST_NOTES = 10


def page_json(reported: Reported) -> str:
    return json.dumps(document(reported), ensure_ascii=False, allow_nan=False, separators=(",", ":")) + "\n"


def document(reported: Reported) -> dict[str, Any]:
    """A report as plain values."""
    judged = reported.judged
    found = list(devices(reported))
    tidy = [f"To clean up, with netkit silence end: {note}" for note in silence_notes(judged.silences)]
    return {
        "format": FORMAT,
        "netkit": __version__,
        "fabric": name(judged.fabric),
        "topology": reported.fabric.topology,
        "run": name(reported.run),
        "verdict": verdict_text(judged),
        "state": state(reported).value,
        "examined_text": examined_text(judged),
        "exit_code": judged.exit_code,
        "taken_s": judged.taken_s,
        "window_s": judged.window_s,
        "has_facts": reported.context is not None,
        "counts": counts(reported, sum(len(device["absent"]) for device in found) or reported.absent),
        "notes": [cut(note) for note in (*reported.notes, *tidy[:MOST_NOTES])],
        "unreached": [
            {"device": name(device), "reason": cut(reason)} for device, reason in missed_texts(judged.judgement)
        ],
        **_skipped(reported),
        **causes(judged),
        "by_check": by_check(reported),
        "metrics": [asdict(metric) for metric in METRICS],
        "devices": found,
        "trends": view.document(reported.trends),
    }


def state(reported: Reported) -> HealthState:
    """The state of the fabric; never healthy if nothing, or only a part, was judged."""
    found = reported.judged.judgement
    if not found.examined:
        return HealthState.UNKNOWN
    worst = max((finding.verdict for finding in found.findings if finding.silenced is None), default=Verdict.PASS)
    if worst in OF_VERDICT:
        return OF_VERDICT[worst]
    return HealthState.UNREACHED if found.unreached else HealthState.PASS


def counts(reported: Reported, absent: int) -> dict[str, int]:
    """Count what was examined, and the results."""
    judged = reported.judged
    found = judged.judgement
    return {
        "devices": judged.devices,
        "reached": judged.devices - len(found.unreached),
        "unreached": len(found.unreached),
        "checks": len({result.check for result in found.results}),
        "examined": found.examined,
        "skipped": found.count(Verdict.SKIPPED),
        "absent": absent,
        "error": found.count(Verdict.ERROR),
        "fail": found.count(Verdict.FAIL),
        "warn": found.count(Verdict.WARN),
        "silenced": len(found.silenced) + len(found.excused),
        "left_out": sum(result.left_out for result in found.results),
    }


def _skipped(reported: Reported) -> dict[str, Any]:
    found = list(skipped_reasons(reported.judged.judgement))
    listed = [
        {"check": name(check), "number": number, "reason": cut(reason)}
        for check, number, reason in found[:MOST_REASONS]
    ]
    return {"skipped": listed, "skipped_left_out": len(found) - len(listed)}


def by_check(reported: Reported) -> list[dict[str, Any]]:
    """What each check examined and found."""
    judged = reported.judged
    examined: Counter[str] = Counter()
    verdicts: Counter[tuple[str, Verdict]] = Counter()
    for result in judged.judgement.results:
        examined[result.check] += result.examined
        verdicts.update((result.check, one.verdict) for one in result.findings if one.silenced is None)
    return [
        {
            "check": name(check),
            "layer": judged.layers.get(check, ""),
            "examined": number,
            **{verdict.word: verdicts[check, verdict] for verdict in Verdict if verdict is not Verdict.PASS},
        }
        for check, number in sorted(examined.items())
    ]
