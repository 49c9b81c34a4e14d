"""Stage: facts, fabric and checks → findings. Pure: the same facts give the same verdicts."""

from typing import TYPE_CHECKING

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

if not TYPE_CHECKING:  # type checkers still refuse names that do not exist

    def __getattr__(name: str) -> object:
        """Report the replacement of a name from an earlier netkit."""
        if name in RENAMED:
            raise ImportError(f"netkit.judge has no {name} any more: write {RENAMED[name]}")
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
