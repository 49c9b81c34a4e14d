"""A plan → changed devices, each either as intended or as it was before."""

from netkit.deploy.apply import apply, backward, end, resume, undo, way_back
from netkit.deploy.gate import Gate, GateAnswer, GateQuestion, Moment
from netkit.deploy.journal import Journal, RunSummary, history
from netkit.deploy.leftover import refuse_unsettled
from netkit.deploy.lock import LockedError
from netkit.deploy.provenance import Approval, Provenance
from netkit.deploy.recent import RecentRun, RecentRuns
from netkit.deploy.rehearse import rehearse
from netkit.deploy.session_gate import SessionGate
from netkit.deploy.shape import DeviceOutcome, Event, Options, Outcome, Phase, Result, State
from netkit.deploy.wave import Wave, waves

__all__ = [
    "Approval",
    "DeviceOutcome",
    "Event",
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
    "Result",
    "RunSummary",
    "SessionGate",
    "State",
    "Wave",
    "apply",
    "backward",
    "end",
    "history",
    "refuse_unsettled",
    "rehearse",
    "resume",
    "undo",
    "waves",
    "way_back",
]
