"""Parser of a file with results, of any tools in any order.

A line `#@ trial` followed by JSON describes the run after it: `tool`, `test`, `hosts`, `nic` and `at_s`. Without such
lines the tools are recognised by their output.
"""

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from netkit.facts import Absent
from netkit.facts.snapshot import Trial
from netkit.platforms.linux.acceptance import nccl_tests, perftest
from netkit.platforms.linux.facts.reading import NOTHING, document, members, number, plain, word

MARK = "#@ trial "
DECODER = json.JSONDecoder()
START = re.compile(r"^\s*\{", re.MULTILINE)
MOST_STARTS = 1000
LATEST_S = 2.0**32
READ_TOOLS = (nccl_tests.TOOL, perftest.TOOL, perftest.IPERF3)


def results(text: str, file: str = "") -> tuple[Trial, ...] | Absent:
    """Parse every run in a text."""
    found = tuple(replace(trial, file=file) for about, part in _parts(plain(text)) for trial in _of_part(about, part))
    return found or Absent("holds no result of nccl-tests, perftest or iperf3")


def mark(about: Mapping[str, object]) -> str:
    """Write the line that describes the run after it."""
    return MARK + json.dumps(about)


def _parts(text: str) -> Iterator[tuple[Mapping[str, Any], str]]:
    about: Mapping[str, Any] = NOTHING
    rows: list[str] = []
    for line in text.splitlines():
        if line.startswith(MARK):
            yield about, "\n".join(rows)
            about, rows = next(iter(_documents(line.removeprefix(MARK))), NOTHING), []
        else:
            rows.append(line)
    yield about, "\n".join(rows)


def _of_part(about: Mapping[str, Any], text: str) -> tuple[Trial, ...]:
    found = _trials(word(about, "tool"), text)
    tool = word(about, "tool")
    if not found and tool in READ_TOOLS:
        lines = [line.strip() for line in text.splitlines() if line.strip()]
        found = (Trial(tool=tool, failure=lines[-1][:160] if lines else "it printed nothing"),)
    return tuple(_completed(trial, about) for trial in found)


def _trials(tool: str, text: str) -> tuple[Trial, ...]:
    documents = tuple(trial for one in _documents(text) if (trial := _of_document(one)) is not None)
    if documents:
        return documents
    if tool == nccl_tests.TOOL or "busbw" in text or "# nThread" in text:
        return nccl_tests.trials(text)
    return perftest.trials(text) if tool == perftest.TOOL or perftest.TITLE.search(text) else ()


def _of_document(found: Mapping[str, Any]) -> Trial | None:
    if "test_info" in found:
        return perftest.of_document(found)
    if "nccl_version" in found or "average_bus_bandwidth" in found:
        return nccl_tests.of_document(found)
    return perftest.of_iperf3(found) if {"start", "end", "error"} & set(found) else None


def _documents(text: str) -> Iterator[Mapping[str, Any]]:
    """Yield the JSON objects in a text, with other lines between them."""
    place = 0
    for _ in range(MOST_STARTS):
        start = START.search(text, place)
        if start is None:
            return
        try:
            place = DECODER.raw_decode(text, start.end() - 1)[1]
        except (ValueError, RecursionError):
            place = start.end()
        yield from members(document(text[start.end() - 1 : place]))


def _completed(trial: Trial, about: Mapping[str, Any]) -> Trial:
    """Complete a run from its description, which has the names of the design."""
    hosts = about.get("hosts")
    ends = tuple(one for one in hosts if isinstance(one, str)) if isinstance(hosts, list) else ()
    times = (trial.at_s, number(about.get("at_s")))
    return replace(
        trial,
        test=word(about, "test") or trial.test,
        ends=ends or trial.ends,
        nic=word(about, "nic") or trial.nic,
        at_s=next((at_s for at_s in times if at_s is not None and 0 <= at_s < LATEST_S), None),
    )
