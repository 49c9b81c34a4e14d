"""What is kept of a run of checks, and how: plain values, compressed where there are many."""

import json
import secrets
import time
import zlib
from dataclasses import dataclass
from typing import Any

from netkit import __version__
from netkit.errors import Problem, StoreError
from netkit.facts import Absent, Facts
from netkit.facts.absent import NOT_ASKED
from netkit.facts.device import KINDS
from netkit.judge import Finding, Scene, Verdict
from netkit.judge.group import Layers
from netkit.judge.run import Judgement, Result


@dataclass(frozen=True, slots=True)
class Source:
    """Whose runs: those of a fabric, or those of a lab of it, which say nothing about the fabric."""

    fabric: str
    lab: str = ""


@dataclass(frozen=True, slots=True)
class Counts:
    """How much a run looked at."""

    examined: int = 0
    skipped: int = 0
    absent: int = 0
    """Facts that devices were asked for and did not tell."""
    unreached: int = 0
    warnings: int = 0
    failures: int = 0
    errors: int = 0


@dataclass(frozen=True, slots=True)
class Run:
    """A run of checks: what it was, and how it came out."""

    name: str
    source: Source
    taken_s: float
    window_s: float
    devices: int
    layers: Layers
    """The checks it ran, and the layer of each."""
    verdict: Verdict
    exit_code: int
    counts: Counts
    intent: str
    """A digest of the intent it was held against."""
    version: str
    """The netkit that judged."""


def run_of(source: Source, scene: Scene, judgement: Judgement, layers: Layers, intent: str, exit_code: int) -> Run:
    """Return a run as it is kept."""
    return Run(
        run_name(scene.snapshot.taken_s),
        source,
        scene.snapshot.taken_s,
        max((seen.window_s for seen in scene.devices.values()), default=0.0),
        len(scene.devices),
        dict(layers),
        judgement.verdict,
        exit_code,
        _counts(judgement, scene),
        intent,
        __version__,
    )


def run_name(taken_s: float) -> str:
    """Return a name for a run that no other has, with the time in front."""
    return f"{time.strftime('%Y%m%dT%H%M%S', time.gmtime(taken_s))}-{secrets.token_hex(3)}"


def _counts(judgement: Judgement, scene: Scene) -> Counts:
    return Counts(
        judgement.examined,
        judgement.count(Verdict.SKIPPED),
        sum(_absent(seen.facts) for seen in scene.devices.values()),
        len(judgement.unreached),
        judgement.count(Verdict.WARN),
        judgement.count(Verdict.FAIL),
        judgement.count(Verdict.ERROR),
    )


def _absent(facts: Facts) -> int:
    found = [getattr(facts, kind) for kind in KINDS]
    return sum(isinstance(fact, Absent) and fact != NOT_ASKED for fact in found)


def packed(value: object) -> bytes:
    """Return plain values in few bytes."""
    return zlib.compress(json.dumps(value, separators=(",", ":")).encode(), 1)


def unpacked(data: bytes, what: str) -> Any:
    """Return plain values again."""
    try:
        return json.loads(zlib.decompress(data))
    except (ValueError, zlib.error):
        raise StoreError(Problem(f"the stored {what} is damaged", "restore the store from a backup")) from None


def judgement_data(judgement: Judgement) -> bytes:
    """Return a judgement in few bytes."""
    results = [
        (one.check, one.device, one.verdict, one.examined, one.findings, one.left_out) for one in judgement.results
    ]
    return packed({"results": results, "unreached": judgement.unreached})


def judgement_of(data: bytes, what: str) -> Judgement:
    """Return a judgement again."""
    plain = unpacked(data, what)
    try:
        results = tuple(_result(*one) for one in plain["results"])
        return Judgement(results, tuple((name, why) for name, why in plain["unreached"]))
    except (TypeError, ValueError, LookupError):
        raise StoreError(Problem(f"the stored {what} is damaged", "restore the store from a backup")) from None


def _result(check: str, device: str, verdict: int, examined: int, findings: list[list[Any]], left_out: int) -> Result:
    return Result(check, device, Verdict(verdict), examined, tuple(_finding(*one) for one in findings), left_out)


def _finding(verdict: int, place: str, text: str, remedy: str, evidence: list[list[str]], *more: Any) -> Finding:
    cause, device, check, explains = more
    shown = tuple((name, value) for name, value in evidence)
    return Finding(Verdict(verdict), place, text, remedy, shown, cause, device, check, tuple(explains))
