"""Measures computing the order of a plan: the routing model, and the search in it. Run by `scripts/bench pull`."""

import json
import sys
import time
from pathlib import Path
from typing import Any

from netkit import plan as planning
from netkit.cli import main
from netkit.plan import Plan

ASKED = ("plan", "--against", "git:HEAD", "--format", "markdown", "--fabric")
KILOBYTE, MEGABYTE = 1024, 1_000_000
FORGET_THE_PEAK = "5"
"""The value for /proc/self/clear_refs that resets VmHWM."""


def measured(*given: Any, **options: Any) -> Plan:
    """Order a plan; record the processor time, the growth of the process, and its peak memory."""
    Path("/proc/self/clear_refs").write_text(FORGET_THE_PEAK, encoding="ascii")
    before_mb, began_s = _peak_mb(), time.process_time()
    plan = ordered(*given, **options)
    cpu_s, peak_mb = time.process_time() - began_s, _peak_mb()
    found = {"cpu_s": cpu_s, "grown_mb": peak_mb - before_mb, "peak_mb": peak_mb, "steps": len(plan.steps)}
    Path("ordering.json").write_text(json.dumps(found), encoding="utf-8")
    return plan


def _peak_mb() -> float:
    lines = Path("/proc/self/status").read_text(encoding="ascii").splitlines()
    return int(next(line for line in lines if line.startswith("VmHWM:")).split()[1]) * KILOBYTE / MEGABYTE


if __name__ == "__main__":
    ordered, planning.ordered = planning.ordered, measured
    sys.argv = ["netkit", *ASKED, *sys.argv[1:]]
    main()
