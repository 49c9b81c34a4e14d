"""The stored form of a run of checks: plain values, compressed where there are many."""

import hashlib
import json
import math
import re
import secrets
import time
import zlib
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import cache
from itertools import chain, islice
from typing import Any, TypeVar

from pydantic import TypeAdapter, ValidationError

from netkit import __version__
from netkit.facts import Absent, Facts, Snapshot
from netkit.facts.counter import place
from netkit.facts.device import KINDS, NOT_ASKED
from netkit.facts.optic import Module
from netkit.judge import DeviceContext, Finding, Silenced, Verdict
from netkit.judge.cause import Layers
from netkit.judge.run import CheckResult, Judgement

T = TypeVar("T")
DAY_S = 86_400.0
LONGEST_NAME = 255
MOST_RESULTS = 5000
"""The limit of results in a part of a judgement."""
UNSTORABLE = re.compile("[\x00\ud800-\udfff]")
"""Characters that PostgreSQL does not store."""


def clean(text: str) -> str:
    """Replace characters that a database cannot store."""
    return UNSTORABLE.sub("\ufffd", text)


def short(text: str) -> str:
    """Truncate text to the length of a name column."""
    return clean(text)[:LONGEST_NAME]


Pairs = tuple[tuple[str, str], ...]
EarlierFinding = tuple[Verdict, str, str, str, Pairs, str, str, str, tuple[str, ...]]
"""Findings stored before symptoms were recorded."""
LinkedFinding = tuple[Verdict, str, str, str, Pairs, str, str, str, tuple[str, ...], tuple[str, ...], bool]
"""Findings stored before silences existed."""
StoredFinding = tuple[
    Verdict, str, str, str, Pairs, str, str, str, tuple[str, ...], tuple[str, ...], bool, Silenced | None
]
StoredResult = tuple[str, str, Verdict, int, tuple[StoredFinding | LinkedFinding | EarlierFinding, ...], int]


@dataclass(frozen=True, slots=True)
class StoredJudgement:
    """The stored form of a judgement."""

    results: tuple[StoredResult, ...]
    unreached: Pairs
    excused: tuple[tuple[str, Silenced], ...] = ()


@dataclass(frozen=True, slots=True)
class Source:
    """The owner of runs: a fabric at a site, or a lab of it, whose runs are separate."""

    fabric: str
    lab: str = ""
    site: str = ""
    """Where the fabric is; empty for one machine, and for a whole fabric that is at several sites."""

    @property
    def shown(self) -> str:
        """The owner as people write it."""
        return self.fabric + (f" (lab {self.lab})" if self.lab else "") + (f" at {self.site}" if self.site else "")

    def number(self, purpose: str) -> int:
        """The number of an advisory lock on PostgreSQL."""
        return int.from_bytes(self.digest(purpose)[:8], "big", signed=True)

    def digest(self, purpose: str) -> bytes:
        site = f"\n{self.site}" if self.site else ""
        return hashlib.sha256(f"netkit {purpose}\n{self.fabric}\n{self.lab}{site}".encode()).digest()


@dataclass(frozen=True, slots=True)
class Retention:
    """How long each kind is kept, counted back from the newest run of a fabric."""

    runs_s: float = 90 * DAY_S
    """Runs with their verdict and numbers; counters and states that were not seen since."""
    findings_s: float = 90 * DAY_S
    """What each run found."""
    readings_s: float = 90 * DAY_S
    """Measurements of modules, one a day."""

    @classmethod
    def of_all(cls, keep_s: float) -> "Retention":
        """Keep every kind for the same time."""
        return cls(*(keep_s for _ in fields(cls)))

    @property
    def longest_s(self) -> float:
        return max(self.runs_s, self.findings_s, self.readings_s)


USUAL_RETENTION = Retention()


@dataclass(frozen=True, slots=True)
class Counts:
    """The size and result of a run."""

    examined: int = 0
    skipped: int = 0
    absent: int = 0
    """Facts that were requested but not reported."""
    unreached: int = 0
    warnings: int = 0
    failures: int = 0
    errors: int = 0
    silenced: int = 0
    """Findings and unreached devices that do not count."""


@dataclass(frozen=True, slots=True)
class CheckRun:
    """A run of checks and its result."""

    name: str
    source: Source
    taken_s: float
    window_s: float
    devices: int
    layers: Layers
    """The checks that ran, and the layer of each."""
    verdict: Verdict
    exit_code: int
    counts: Counts
    intent: str
    """The digest of the intent at that time."""
    version: str
    """The version of netkit."""


def run_of(
    source: Source,
    taken_s: float,
    devices: Collection[DeviceContext],
    judgement: Judgement,
    layers: Layers,
    intent: str,
) -> CheckRun:
    """Make the stored form of a run."""
    return CheckRun(
        run_name(taken_s),
        source,
        taken_s,
        max((seen.window_s for seen in devices), default=0.0),
        len(devices),
        dict(layers),
        judgement.verdict,
        judgement.exit_code,
        _counts(judgement, devices),
        intent,
        __version__,
    )


def run_name(taken_s: float) -> str:
    """A unique name that begins with the time."""
    return f"{time.strftime('%Y%m%dT%H%M%S', time.gmtime(taken_s))}-{secrets.token_hex(3)}"


def _counts(judgement: Judgement, devices: Iterable[DeviceContext]) -> Counts:
    facts = [getattr(seen.facts, kind) for seen in devices for kind in KINDS]
    return Counts(
        judgement.examined,
        judgement.count(Verdict.SKIPPED),
        sum(isinstance(fact, Absent) and fact != NOT_ASKED for fact in facts),
        len(judgement.unreached),
        judgement.count(Verdict.WARN),
        judgement.count(Verdict.FAIL),
        judgement.count(Verdict.ERROR),
        len(judgement.silenced) + len(judgement.excused),
    )


def packed(value: object) -> bytes:
    """Compress plain values."""
    return zlib.compress(json.dumps(value, separators=(",", ":")).encode(), 1)


class DamagedError(Exception):
    """A store contains something that netkit did not write; the text names the place."""


def unpacked(data: bytes, kind: Any, what: str) -> Any:
    """Decompress plain values of a type; DamagedError for anything else."""
    try:
        return sound(json.loads(zlib.decompress(data)), kind, what)
    except (ValueError, RecursionError, zlib.error):
        raise DamagedError(f"the {what} is damaged") from None


def sound(value: object, kind: Any, what: str) -> Any:
    """Validate plain values of a type; DamagedError for anything else."""
    try:
        return _adapter(kind).validate_python(value)
    except ValidationError:
        raise DamagedError(f"the {what} is damaged") from None


@cache
def _adapter(kind: Any) -> TypeAdapter[Any]:
    return TypeAdapter(kind)


def batched(found: Iterable[T], size: int) -> Iterator[list[T]]:
    """Yield values in lists of a size."""
    left = iter(found)
    while batch := list(islice(left, size)):
        yield batch


def judgement_parts(judgement: Judgement) -> Iterator[Judgement]:
    """Cut a judgement into parts of bounded size, of which the whole can be made again; at least one."""
    if judgement.unreached or judgement.excused or not judgement.results:
        yield Judgement((), judgement.unreached, judgement.excused)
    for results in batched(judgement.results, MOST_RESULTS):
        yield Judgement(tuple(results), ())


def bad_of(judgement: Judgement) -> int:
    """Count the findings worse than skipped, and the unreached devices."""
    bad = sum(one.verdict > Verdict.SKIPPED for result in judgement.results for one in result.findings)
    return bad + len(judgement.unreached) + len(judgement.excused)


def joined(parts: Iterable[Judgement]) -> Judgement:
    """Make a judgement of its parts."""
    found = tuple(parts)
    return Judgement(
        tuple(chain.from_iterable(one.results for one in found)),
        tuple(chain.from_iterable(one.unreached for one in found)),
        tuple(chain.from_iterable(one.excused for one in found)),
    )


def judgement_data(judgement: Judgement) -> bytes:
    results = [
        (one.check, one.device, one.verdict, one.examined, one.findings, one.left_out) for one in judgement.results
    ]
    return packed({"results": results, "unreached": judgement.unreached, "excused": judgement.excused})


def judgement_of(data: bytes, what: str) -> Judgement:
    plain: StoredJudgement = unpacked(data, StoredJudgement, what)
    results = tuple(
        CheckResult(check, device, verdict, examined, tuple(Finding(*one) for one in found), left_out)
        for check, device, verdict, examined, found, left_out in plain.results
    )
    return Judgement(results, plain.unreached, plain.excused)


LANE_QUANTITIES = ("rx_dbm", "tx_dbm", "bias_ma")
MODULE_QUANTITIES = ("temperature_c", "voltage_v")


@dataclass(frozen=True, slots=True)
class Measured:
    """The measurements of a device's modules at one time."""

    at_s: float
    values: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    """Place → quantity → value. A place is a port, or `port/lane`."""
    serials: Mapping[str, str] = field(default_factory=dict)
    """Port → serial number of its module, if reported."""


def measured(at_s: float, facts: Facts) -> Measured:
    """The measurements of a device's modules; missing values are left out."""
    modules = present(facts)
    found = [part for port, module in modules.items() for part in _of_module(port, module)]
    return Measured(at_s, {name: values for name, values in found if values}, serials(facts))


def serials(facts: Facts) -> Mapping[str, str]:
    """The serial number of the module in each port, if reported."""
    return {port: module.serial for port, module in present(facts).items() if module.serial}


def present(facts: Facts) -> Mapping[str, Module]:
    modules = {} if isinstance(facts.modules, Absent) else facts.modules
    return {port: module for port, module in modules.items() if module.is_present}


def _of_module(port: str, module: Module) -> Iterator[tuple[str, dict[str, float]]]:
    yield port, _values(module, MODULE_QUANTITIES)
    for number, lane in module.lanes.items():
        yield place(port, number), _values(lane, LANE_QUANTITIES)


def _values(measured: object, names: Sequence[str]) -> dict[str, float]:
    found = ((name, getattr(measured, name)) for name in names)
    return {name: value for name, value in found if value is not None and math.isfinite(value)}


Find = Callable[[str, float], Sequence[Measured]]
"""The measurements on a device before a time, earliest first."""


class StoredHistory:
    """Earlier measurements, for checks; each device is fetched once, on demand.

    A port whose module was replaced has no history: modules differ.
    """

    def __init__(self, find: Find, snapshot: Snapshot) -> None:
        self._find, self._now = find, snapshot
        self._found: dict[str, Sequence[Measured]] = {}

    def readings(self, device: str, place: str, quantity: str) -> Sequence[tuple[float, float]]:
        """Earlier values of a quantity with their times, earliest first."""
        found = self._found.get(device)
        if found is None:
            one = self._now.devices.get(device)
            current = {} if one is None else serials(one.facts)
            earlier = self._find(device, self._now.taken_s)
            found = self._found[device] = [_of_same_modules(one, current) for one in earlier]
        values = ((one.at_s, one.values.get(place, {}).get(quantity)) for one in found)
        return [(at_s, value) for at_s, value in values if value is not None]


def _of_same_modules(earlier: Measured, current: Mapping[str, str]) -> Measured:
    """Drop the values of ports whose module has been replaced since."""
    replaced = {port for port, serial in current.items() if earlier.serials.get(port, serial) != serial}
    if not replaced:
        return earlier
    values = {
        place: found for place, found in earlier.values.items() if not replaced & {place, place.rpartition("/")[0]}
    }
    return replace(earlier, values=values)
