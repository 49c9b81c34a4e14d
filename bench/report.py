"""Measurements as a table for people and as JSON."""

import os
import platform
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from bench.measure import spread
from bench.plan import Bench
from bench.task import Budget, Task, ratios

FLAT = 1.2
"""The allowed ratio of the cost per device between sizes."""


def as_json(bench: Bench, peer: str, *, quick: bool) -> dict[str, Any]:
    """All measurements."""
    return {
        "measured": datetime.now(UTC).isoformat(timespec="seconds"),
        "quick": quick,
        "machine": {**machine(), "pace_s": spread(_paces(bench)).rounded()},
        "peer": {"name": "pyavd", "version": peer, "state": "measured" if bench.peers else "absent"},
        "rows": [_row(task) for task in bench.main],
        "ratios": {task.subject: ratios(bench.compared, task) for task in bench.peers},
        "growth": growth(bench),
        "verdict": verdict(bench) if not quick else None,
    }


def machine() -> dict[str, Any]:
    """Describe the machine the figures depend on."""
    info = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    model = next((line.partition(":")[2].strip() for line in info if line.startswith("model name")), "unknown")
    return {
        "processor": model,
        "cores": os.cpu_count(),
        "load_average": round(os.getloadavg()[0], 2),
        "kernel": platform.release(),
        "python": platform.python_version(),
    }


def _row(task: Task) -> dict[str, Any]:
    outputs = task.outputs
    return {
        "name": task.name,
        "subject": task.subject,
        "devices": task.devices,
        "ports": task.shape.ports if task.shape and task.platform != "linux" else None,
        "runs": len(task.samples),
        "wall_s": task.wall_s.rounded(),
        "cpu_s": task.cpu_s.rounded(),
        "peak_mb": task.peak_mb.rounded(),
        "files": outputs.files if outputs else None,
        "lines": outputs.lines if outputs else None,
        "bytes": outputs.bytes if outputs else None,
        "budget": _budget(task, task.budget) if task.budget else None,
    }


def _budget(task: Task, budget: Budget) -> dict[str, Any]:
    wall, peak = task.cost_s, task.peak_mb.max
    return {
        "beyond": task.beyond.name if task.beyond else None,
        "wall_s": round(wall, 3),
        "must_s": budget.must_s,
        "reach_s": budget.reach_s,
        "must_mb": budget.must_mb,
        "reach_mb": budget.reach_mb,
        "must": wall <= budget.must_s and peak <= (budget.must_mb or peak),
        "reach": wall <= budget.reach_s and peak <= (budget.reach_mb or peak),
    }


def growth(bench: Bench) -> dict[str, Any]:
    """The cost per device by size of the fabric, and how flat it is.

    From the least disturbed run of each size. Start-up is subtracted: spread over more and more devices it would hide a
    cost that grows.
    """
    start = bench.start_up
    whole = [_cost_ms(task, 0) for task in bench.growth]
    after = [_cost_ms(task, start.cpu_s.min) for task in bench.growth]
    return {
        "platform": start.platform,
        "start_up": {"wall_s": start.wall_s.rounded(), "cpu_s": start.cpu_s.rounded()},
        "steps": [
            {
                "devices": task.devices,
                "ports_per_device": round(task.shape.ports / task.devices, 1) if task.shape else None,
                "runs": len(task.samples),
                "wall_s": task.wall_s.rounded(),
                "cpu_s": task.cpu_s.rounded(),
                "peak_mb": task.peak_mb.rounded(),
                "cpu_ms_per_device": round(own, 3),
                "cpu_ms_per_device_after_start_up": round(rest, 3),
            }
            for task, own, rest in zip(bench.growth, whole, after, strict=True)
        ],
        "flatness": {
            "cpu_ms_per_device": _flatness(whole),
            "cpu_ms_per_device_after_start_up": _flatness(after),
        },
        "must": FLAT,
    }


def _cost_ms(task: Task, start_up_s: float) -> float:
    return 1000 * (task.cpu_s.min - start_up_s) / task.devices


def _paces(bench: Bench) -> list[float]:
    return [sample.pace_s for task in (*bench.main, bench.start_up, *bench.growth) for sample in task.samples]


def _flatness(costs: list[float]) -> float | None:
    """Most ÷ least; None if the fabrics are so small that start-up dominates."""
    return round(max(costs) / min(costs), 3) if min(costs) > 0 else None


def verdict(bench: Bench) -> dict[str, bool]:
    """Budget → whether it is met."""
    kept = {task.name: bool(_budget(task, task.budget)["must"]) for task in bench.main if task.budget}
    flatness = growth(bench)["flatness"]["cpu_ms_per_device_after_start_up"]
    return {**kept, "flat growth": flatness is not None and flatness <= FLAT}


def table(bench: Bench, peer: str, *, quick: bool) -> Iterator[str]:
    """Yield the lines of the table."""
    about = machine()
    paces = spread(_paces(bench))
    yield f"{about['processor']}, {about['cores']} cores, load {about['load_average']}, Python {about['python']}"
    slow = (
        f"{paces.max / paces.min:.1f} times slower at worst than at best, {paces.median / paces.min:.1f} at the median"
    )
    yield f"pace while measuring: {slow}"
    yield f"peer: pyavd {peer}" if bench.peers else "peer: absent (not installed, or not wanted)"
    yield ""
    heads = f"{'wall s: min':>13}{'median':>9}{'max':>9}{'cpu s':>9}{'peak MB':>9}"
    yield f"{'':24}{'':22}{'devices':>8}{'lines':>9}{heads}  budget"
    for task in bench.main:
        wall, lines = task.wall_s, task.outputs.lines if task.outputs else ""
        head = f"{task.name:24}{task.subject:22}{task.devices or '':>8}{lines:>9}"
        seconds = f"{wall.min:>13.2f}{wall.median:>9.2f}{wall.max:>9.2f}{task.cpu_s.median:>9.2f}"
        yield f"{head}{seconds}{task.peak_mb.median:>9.0f}  {_shown(task)}".rstrip()
    for task in bench.peers:
        found = ratios(bench.compared, task)
        yield (
            f"netkit against {task.subject}: {found['wall']}× faster, {found['cpu']}× less processor time,"
            f" {found['peak_memory']}× less memory"
        )
    yield ""
    yield from _growth_lines(bench)
    if not quick:
        yield ""
        yield from (f"{'kept  ' if kept else 'MISSED'} {name}" for name, kept in verdict(bench).items())


def _shown(task: Task) -> str:
    if task.budget is None:
        return ""
    found = _budget(task, task.budget)
    memory = f", {task.budget.must_mb:g} MB" if task.budget.must_mb else ""
    reach = f"{task.budget.reach_s:g} s" + (f", {task.budget.reach_mb:g} MB" if task.budget.reach_mb else "")
    kept = "reach" if found["reach"] else "must" if found["must"] else "MISSED"
    more = f"{task.cost_s:.2f} s more than {task.beyond.name}: " if task.beyond else ""
    return f"{more}{kept} (must {task.budget.must_s:g} s{memory}; reach {reach})"


def _growth_lines(bench: Bench) -> Iterator[str]:
    found = growth(bench)
    start = found["start_up"]
    yield f"growth, {found['platform']}; start-up {start['wall_s']['min']:.2f} s ({start['cpu_s']['min']:.2f} s cpu)"
    heads = f"{'wall s':>9}{'cpu s':>9}{'peak MB':>9}{'cpu ms/device':>15}{'after start-up':>16}"
    yield f"{'devices':>8}{'ports each':>12}{heads}"
    for step in found["steps"]:
        yield (
            f"{step['devices']:>8}{step['ports_per_device']:>12}{step['wall_s']['min']:>9.2f}"
            f"{step['cpu_s']['min']:>9.2f}{step['peak_mb']['median']:>9.0f}{step['cpu_ms_per_device']:>15.2f}"
            f"{step['cpu_ms_per_device_after_start_up']:>16.2f}"
        )
    flatness = found["flatness"]["cpu_ms_per_device_after_start_up"]
    shown = "fabrics too small" if flatness is None else f"{flatness:.2f} after start-up (must {FLAT:g})"
    yield f"most ÷ least cost of a device: {shown}, {found['flatness']['cpu_ms_per_device']:.2f} with start-up"
