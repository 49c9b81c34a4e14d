"""A plan → changed devices, each either as intended or as it was before."""

from netkit.deploy.apply import apply, end, plan_rollback, rehearse, resume, rollback_options, undo
from netkit.deploy.approval import Approval, Provenance
from netkit.deploy.gate import Gate, GateAnswer, GateQuestion, Moment, SessionGate
from netkit.deploy.journal import Journal, RunSummary, history, run_folders
from netkit.deploy.lock import LockedError, RecentRun, RecentRuns
from netkit.deploy.model import ConfigState, DeployEvent, DeviceOutcome, DeviceResult, Options, Outcome, Phase
from netkit.deploy.resume import refuse_unsettled, settling_s
from netkit.deploy.wave import Wave, waves

__all__ = [
    "Approval",
    "ConfigState",
    "DeployEvent",
    "DeviceOutcome",
    "DeviceResult",
    "Gate",
    "GateAnswer",
    "GateQuestion",
    "Journal",
    "LockedError",
    "Moment",
    "Options",
    "Outcome",
    "Phase",
    "Provenance",
    "RecentRun",
    "RecentRuns",
    "RunSummary",
    "SessionGate",
    "Wave",
    "apply",
    "end",
    "history",
    "plan_rollback",
    "refuse_unsettled",
    "rehearse",
    "resume",
    "rollback_options",
    "run_folders",
    "settling_s",
    "undo",
    "waves",
]
