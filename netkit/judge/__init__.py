"""Stage: facts, fabric and checks → findings. Pure: the same facts give the same verdicts."""

from netkit.judge.check import CABLE_FAULTS, Check, device_check, fabric_check
from netkit.judge.context import CheckContext, DeviceContext
from netkit.judge.finding import PASSED, Finding, Silenced, Verdict, error, fail, passed, skip, warn

__all__ = [
    "CABLE_FAULTS",
    "PASSED",
    "Check",
    "CheckContext",
    "DeviceContext",
    "Finding",
    "Silenced",
    "Verdict",
    "device_check",
    "error",
    "fabric_check",
    "fail",
    "passed",
    "skip",
    "warn",
]

RENAMED = {"Scene": "CheckContext", "Seen": "DeviceContext"}


def __getattr__(name: str) -> object:
    """Say what a check that was written for an earlier netkit has to import."""
    if name in RENAMED:
        raise ImportError(f"netkit.judge.{name} is called {RENAMED[name]} now: write {RENAMED[name]}")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
