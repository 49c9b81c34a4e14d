"""The stored form of a run of checks: plain values, compressed where there are many."""

import hashlib
import json
import re
import secrets
import time
import zlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, fields
from functools import cache
from itertools import chain, islice
from typing import Any, TypeVar

from pydantic import TypeAdapter, ValidationError

from netkit import __version__
from netkit.facts import Absent
from netkit.facts.device import KINDS, NOT_ASKED
from netkit.judge import CheckContext, Finding, Silenced, Verdict
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
    """The owner of runs: a fabric at a site, or a lab of it, whose runs say nothing about the fabric."""

    fabric: str
    lab: str = ""
    site: str = ""
    """Where the fabric is; empty for one machine, and for a whole fabric that is at several sites."""

    @property
    def shown(self) -> str:
        """The owner as people write it."""
        return self.fabric + (f" (lab {self.lab})" if self.lab else "") + (f" at {self.site}" if self.site else "")

    def number(self, purpose: str) -> int:
        """Return the number of an advisory lock on PostgreSQL."""
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
    source: Source, context: CheckContext, judgement: Judgement, layers: Layers, intent: str, exit_code: int
) -> CheckRun:
    """Make the stored form of a run."""
    return CheckRun(
        run_name(context.snapshot.taken_s),
        source,
        context.snapshot.taken_s,
        max((seen.window_s for seen in context.devices.values()), default=0.0),
        len(context.devices),
        dict(layers),
        judgement.verdict,
        exit_code,
        _counts(judgement, context),
        intent,
        __version__,
    )


def run_name(taken_s: float) -> str:
    """Return a unique name that begins with the time."""
    return f"{time.strftime('%Y%m%dT%H%M%S', time.gmtime(taken_s))}-{secrets.token_hex(3)}"


def _counts(judgement: Judgement, context: CheckContext) -> Counts:
    facts = [getattr(seen.facts, kind) for seen in context.devices.values() for kind in KINDS]
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
    """A store holds something that netkit did not write; the text says where."""


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
