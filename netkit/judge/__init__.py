"""Stage: facts, fabric and checks → findings. Pure: the same facts give the same verdicts."""

from netkit.judge.check import CABLE_FAULTS, Check, device_check, fabric_check
from netkit.judge.finding import PASSED, Finding, Silenced, Verdict, error, fail, passed, skip, warn
from netkit.judge.scene import Scene, Seen

__all__ = [
    "CABLE_FAULTS",
    "PASSED",
    "Check",
    "Finding",
    "Scene",
    "Seen",
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
