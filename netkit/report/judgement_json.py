"""Judgements for machines: JSON with everything, JUnit for CI systems."""

import json
import re
from typing import Any
from xml.etree import ElementTree as Xml  # it only writes here

from netkit.judge.finding import Finding, Silenced, Verdict
from netkit.judge.run import CheckResult, Judgement
from netkit.judge.silence import SilenceState
from netkit.report.judgement_view import Judged, headline, place_text, silence_text, verdict_text

NOT_XML = re.compile(r"[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def judgement_json(judged: Judged) -> str:
    return json.dumps(document(judged), indent=1, allow_nan=False) + "\n"


def document(judged: Judged) -> dict[str, Any]:
    """A judgement as plain values."""
    found = judged.judgement
    excused = dict(found.excused)
    return {
        "fabric": judged.fabric,
        "verdict": verdict_text(judged),
        "exit_code": judged.exit_code,
        "taken_s": judged.taken_s,
        "window_s": judged.window_s,
        "devices": judged.devices,
        "examined": found.examined,
        "counts": {
            **{verdict.word: found.count(verdict) for verdict in Verdict if verdict is not Verdict.PASS},
            "silenced": len(found.silenced) + len(found.excused),
        },
        "unreached": [
            {"device": name, "reason": reason, "silenced": _mark(excused.get(name))} for name, reason in found.unreached
        ],
        "silences": list(map(silence_document, judged.silences)),
        "causes": [
            {
                "verdict": group.verdict.word,
                "is_silenced": group.is_silenced,
                "head": finding_document(group.head),
                "symptoms": [finding_document(one) for one in group.symptoms],
            }
            for group in judged.causes
        ],
        "results": [_result(result) for result in found.results],
    }


def _result(result: CheckResult) -> dict[str, Any]:
    return {
        "id": result.id,
        "verdict": result.verdict.word,
        "open_verdict": result.open_verdict.word,
        "examined": result.examined,
        "findings": [finding_document(finding) for finding in result.findings],
        **({"left_out": result.left_out} if result.left_out else {}),
    }


def finding_document(finding: Finding) -> dict[str, Any]:
    """A finding as plain values."""
    return {
        "check": finding.check,
        "verdict": finding.verdict.word,
        "device": finding.device,
        "place": finding.place,
        "text": finding.text,
        "remedy": finding.remedy,
        "evidence": dict(finding.evidence),
        "cause": finding.cause,
        "silenced": _mark(finding.silenced),
    }


def _mark(mark: Silenced | None) -> dict[str, Any] | None:
    return None if mark is None else mark._asdict()


def silence_document(state: SilenceState) -> dict[str, Any]:
    """A silence and its state as plain values."""
    one = state.silence
    return {
        "id": one.id,
        "kind": one.kind,
        "state": state.state,
        "findings": state.findings,
        "checks": list(one.checks),
        "where": list(map(str, one.subjects)),
        "site": one.site,
        "begins_s": one.begins_s,
        "until_s": one.until_s,
        "by": one.by,
        "why": one.why,
        "ticket": one.ticket,
    }


def judgement_junit(judged: Judged) -> str:
    """Format a judgement as JUnit XML: a case for each check on each device.

    A warning passes and is reported; a case with nothing wrong but silenced findings is skipped, with the reason.
    """
    found = judged.judgement
    suite = Xml.Element("testsuite", _totals(found), name=_clean(f"netkit {judged.fabric}"))
    for result in found.results:
        suite.append(_case(result))
    head = Xml.SubElement(suite, "system-out")
    head.text = _clean(headline(judged))
    suites = Xml.Element("testsuites")
    suites.append(suite)
    Xml.indent(suites, " ")
    return '<?xml version="1.0" encoding="utf-8"?>\n' + Xml.tostring(suites, encoding="unicode") + "\n"


def _totals(found: Judgement) -> dict[str, str]:
    verdicts = [_verdict(result) for result in found.results]
    return {
        "tests": str(len(verdicts)),
        "failures": str(verdicts.count(Verdict.FAIL)),
        "errors": str(verdicts.count(Verdict.ERROR)),
        "skipped": str(verdicts.count(Verdict.SKIPPED)),
    }


WORDS = {Verdict.FAIL: "failure", Verdict.ERROR: "error", Verdict.SKIPPED: "skipped", Verdict.WARN: "system-out"}


def _case(result: CheckResult) -> Xml.Element:
    case = Xml.Element("testcase", classname=_clean(result.check), name=_clean(result.device))
    verdict = _verdict(result)
    if verdict in WORDS:
        order = list(result.findings)
        if verdict is not Verdict.SKIPPED:
            order.sort(key=lambda finding: finding.silenced is not None)
        texts = [_line(finding) for finding in order]
        part = Xml.SubElement(case, WORDS[verdict])
        if verdict is not Verdict.WARN:
            part.set("message", texts[0] if texts else "nothing was judged")
        part.text = "\n".join(texts)
    return case


def _verdict(result: CheckResult) -> Verdict:
    return Verdict.SKIPPED if result.silenced and result.open_verdict is Verdict.PASS else result.open_verdict


def _line(finding: Finding) -> str:
    do = f"; {finding.remedy}" if finding.remedy else ""
    mark = f" ({silence_text(finding.silenced)})" if finding.silenced is not None else ""
    return _clean(f"{finding.verdict.word}: {place_text(finding)}: {finding.text}{do}{mark}")


def _clean(text: str) -> str:
    """Replace characters that XML does not allow."""
    return NOT_XML.sub("\ufffd", text)
