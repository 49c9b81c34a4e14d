"""Runs to store, written by hand."""

from collections.abc import Sequence

from netkit.facts import Facts, Observation, Sample, Snapshot
from netkit.facts.device import System
from netkit.facts.optic import Lane, Module
from netkit.judge import Finding, Verdict
from netkit.judge.check import Layer
from netkit.judge.finding import worst
from netkit.judge.run import FABRIC, CheckResult, Judgement
from netkit.store import CheckRun, Counts, Source
from netkit.store.record import Measured, run_name
from netkit.store.store import Store

DAY_S = 86_400.0
BEGAN_S = 1_763_769_600.0
SOURCE = Source("small")


def run(taken_s: float = BEGAN_S, *, source: Source = SOURCE, verdict: Verdict = Verdict.PASS) -> CheckRun:
    """Return a run."""
    layers: dict[str, Layer] = {"links.up": "link"}
    return CheckRun(run_name(taken_s), source, taken_s, 10.0, 2, layers, verdict, 0, Counts(examined=3), "abc", "0.1.0")


def judgement(*results: CheckResult, unreached: Sequence[tuple[str, str]] = ()) -> Judgement:
    """Return a judgement."""
    return Judgement(results, tuple(unreached))


def result(device: str, *findings: Finding, check: str = "links.up", examined: int = 3) -> CheckResult:
    """Return what a check says about a device."""
    whole = tuple(
        one._replace(check=check, device=one.device or ("" if device == FABRIC else device)) for one in findings
    )
    return CheckResult(
        check, device, worst(one.verdict for one in findings) if findings else Verdict.PASS, examined, whole
    )


def snapshot(taken_s: float = BEGAN_S, **devices: Observation) -> Snapshot:
    """Return a snapshot."""
    return Snapshot("small", taken_s, devices)


def counted(device: str, at_s: float, count: int, *, boot: str = "b1", uptime_s: float | None = None) -> Observation:
    """Return a device with one counter."""
    counters = {"rx_errors": {"swp1": count}}
    facts = Facts(system=System(device, boot=boot, uptime_s=uptime_s), counters=counters)
    return Observation(device, "nvue", facts, (Sample(at_s, counters),))


def lit(device: str, rx_dbm: float, serial: str = "S1") -> Observation:
    """Return a device with one module that receives light."""
    module = Module(kind="optic", serial=serial, lanes={1: Lane(rx_dbm=rx_dbm)})
    return Observation(device, "nvue", Facts(modules={"swp1": module}))


def measured(at_s: float, rx_dbm: float, serial: str = "S1") -> Measured:
    """Return what is kept of that."""
    return Measured(at_s, {"swp1/1": {"rx_dbm": rx_dbm}}, {"swp1": serial})


def save(store: Store, taken_s: float, *results: CheckResult, **devices: Observation) -> CheckRun:
    """Save a run, and return it."""
    saved = run(taken_s)
    store.save(saved, judgement(*results), snapshot(taken_s, **devices))
    return saved
