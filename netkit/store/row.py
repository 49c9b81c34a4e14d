"""Conversion of values to rows and back."""

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from functools import lru_cache
from typing import Any

from pydantic import FiniteFloat
from sqlalchemy import RowMapping

from netkit.facts import Observation, Sample
from netkit.facts.device import Absent
from netkit.judge import Finding, Verdict
from netkit.judge.cause import Layers
from netkit.judge.check import Layer
from netkit.judge.delta import Earlier
from netkit.judge.run import FABRIC, Judgement
from netkit.store.record import (
    CheckRun,
    Counts,
    DamagedError,
    Measured,
    Source,
    StoredFinding,
    bad_of,
    clean,
    judgement_data,
    judgement_parts,
    measured,
    packed,
    short,
    sound,
    unpacked,
)
from netkit.store.state import CheckState, Key

Row = dict[str, Any]
Devices = Mapping[str, Observation]
UNITS_S = {"hour": 3600, "day": 86_400}
NAME = re.compile(r"[\w.-]{1,64}")
"""The name of a run, which is also the name of its report file."""
EXIT_CODES = range(256)


@dataclass(frozen=True, slots=True)
class StoredReadings:
    """The stored form of the measurements of a device's modules."""

    values: dict[str, dict[str, FiniteFloat]]
    serials: dict[str, str]


def of_source(source: Source) -> Row:
    """The columns of the owner."""
    return {"fabric": source.fabric, "lab": source.lab, "site": source.site}


def run_row(run: CheckRun) -> Row:
    columns = ("name", "taken_s", "window_s", "devices", "exit_code", "intent", "version")
    return {
        **of_source(run.source),
        **{name: getattr(run, name) for name in columns},
        **asdict(run.counts),
        "layers": json.dumps(dict(run.layers)),
        "verdict": int(run.verdict),
    }


def run_of_row(row: RowMapping) -> CheckRun:
    what = f"row of run {row['id']}"
    if not NAME.fullmatch(row["name"]) or row["exit_code"] not in EXIT_CODES:
        raise DamagedError(f"the {what} is damaged")
    return CheckRun(
        row["name"],
        Source(row["fabric"], row["lab"], row["site"]),
        row["taken_s"],
        row["window_s"],
        row["devices"],
        _layers(row["layers"]),
        sound(row["verdict"], Verdict, what),
        row["exit_code"],
        Counts(**{name: row[name] for name in Counts.__dataclass_fields__}),
        row["intent"],
        row["version"],
    )


@lru_cache(maxsize=256)
def _layers(text: str) -> Layers:
    """Decode the checks of a run; runs with the same checks share them."""
    what = "row of a run"
    try:
        return sound(json.loads(text), dict[str, Layer], what)  # type: ignore[no-any-return]
    except (ValueError, RecursionError):
        raise DamagedError(f"the {what} is damaged") from None


@dataclass(frozen=True, slots=True)
class RunKey:
    """What rows of a run begin with."""

    run: int
    taken_s: float


def judgement_rows(key: RunKey, judgement: Judgement, numbers: Iterator[int]) -> Iterator[Row]:
    for part, number in zip(judgement_parts(judgement), numbers, strict=False):
        yield {**asdict(key), "part": number, "bad": bad_of(part), "data": judgement_data(part)}


def finding_rows(key: RunKey, judgement: Judgement, numbers: Iterator[int]) -> Iterator[Row]:
    """Yield the findings that are worse than skipped."""
    found = (one for one in judgement.findings if one.verdict > Verdict.SKIPPED)
    for finding, number in zip(found, numbers, strict=False):
        names = {"check_name": short(finding.check), "device": short(finding.device or FABRIC)}
        place = {"place": short(finding.place), "text": clean(finding.text)}
        mark = clean(finding.silenced.id)[:64] if finding.silenced is not None else ""
        whole = {"silenced": mark, "data": packed(finding)}
        yield {**asdict(key), "number": number, "verdict": finding.verdict.word, **names, **place, **whole}


def finding_of_row(row: RowMapping) -> Finding:
    """A finding; one of an earlier netkit has no remedy and no evidence."""
    if row["data"] is not None:
        found: StoredFinding = unpacked(row["data"], StoredFinding, f"row {row['number']} of findings")
        return Finding(*found)
    verdict = next((one for one in Verdict if one.word == row["verdict"]), None)
    if verdict is None:
        raise DamagedError(f"the row {row['number']} of findings is damaged")
    device = "" if row["device"] == FABRIC else row["device"]
    return Finding(verdict, row["place"], row["text"], device=device, check=row["check_name"])


def reading_rows(source: Source, at_s: float, devices: Devices) -> Iterator[Row]:
    """Yield the measurements of each device, without the hour or the day."""
    for name, one in devices.items():
        found = measured(at_s, one.facts)
        if found.values:
            data = packed({"values": found.values, "serials": found.serials})
            yield {**of_source(source), "device": name, "at_s": at_s, "data": data}


def measured_of_row(row: RowMapping) -> Measured:
    found = unpacked(row["data"], StoredReadings, f"row of readings of {row['device']}")
    return Measured(row["at_s"], found.values, found.serials)


def counter_rows(source: Source, devices: Devices) -> Iterator[Row]:
    """Yield the last counters of each device."""
    for name, one in devices.items():
        if not one.samples:
            continue
        last, system = one.samples[-1], one.facts.system
        boot, uptime_s = ("", None) if isinstance(system, Absent) else (system.boot, system.uptime_s)
        data = packed({counter: dict(places) for counter, places in last.counters.items()})
        counted = {"at_s": last.at_s, "boot": clean(boot), "uptime_s": uptime_s, "data": data}
        yield {**of_source(source), "device": name, **counted}


def earlier_of_row(row: RowMapping) -> Earlier:
    found = unpacked(row["data"], dict[str, dict[str, int]], f"row of counters of {row['device']}")
    return Earlier(Sample(row["at_s"], found), row["boot"], row["uptime_s"])


def state_row(source: Source, state: CheckState) -> Row:
    check, device, place = state.key
    key = {"check_name": short(check), "device": short(device), "place": short(place)}
    times = {"since_s": state.since_s, "seen_s": state.seen_s}
    return {**of_source(source), **key, **times, "verdict": int(state.verdict), "text": clean(state.text)}


def state_of_row(row: RowMapping) -> CheckState:
    key = Key(row["check_name"], row["device"], row["place"])
    verdict = sound(row["verdict"], Verdict, f"row of the state of {key.id}")
    return CheckState(key, verdict, row["since_s"], row["seen_s"], row["text"])
