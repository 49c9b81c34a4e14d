"""The options of each verb as one typed value: the command line fills it in, the verb's module reads it.

This is imported for every command, so it imports nothing slow.
"""

import shlex
from dataclasses import dataclass
from pathlib import Path

from netkit.errors import Problem, UsageError

PROFILES = ("light", "full")


@dataclass(frozen=True, slots=True)
class CheckRequest:
    """netkit check."""

    folder: Path
    names: tuple[str, ...] = ()
    limit: str = ""
    lab: str = ""
    window_s: float = 10.0
    source: str = ""
    profile: str = "full"
    snapshot: Path | None = None
    results: tuple[Path, ...] = ()
    has_rdma: bool = False
    output: str = "text"
    store: str = ""
    since: str = ""
    keep: str = "90d"
    metrics_file: Path | None = None
    report_file: Path | None = None
    has_changes_only: bool = False
    is_notifying: bool = False
    deadline: str = ""
    lists: bool = False
    cluster: str = ""
    """A kubeconfig, what kubectl or scontrol printed, or `slurm`; empty: none is read."""
    has_pod_routes: bool = False
    steered: str = ""
    """The kind of the cluster to keep jobs off bad nodes of."""
    is_applied: bool = False
    compared: tuple[str, str] | None = None
    """Snapshots or stored runs: before, and after."""
    processes: int = 0
    fleet: Path | None = None
    """The folder of a fleet whose sites read the devices."""
    site: str = ""
    """The site that stored runs are of."""


@dataclass(frozen=True, slots=True)
class ReportRequest:
    """netkit report."""

    folder: Path
    run: str = ""
    """A stored run; empty: read the devices, or a snapshot."""
    names: tuple[str, ...] = ()
    limit: str = ""
    lab: str = ""
    window_s: float = 10.0
    snapshot: Path | None = None
    source: str = ""
    results: tuple[Path, ...] = ()
    store: str = ""
    since: str = ""
    profile: str = "full"
    out: Path | None = None
    output: str = "html"
    site: str = ""


@dataclass(frozen=True, slots=True)
class WatchRequest:
    """netkit watch."""

    folder: Path | None
    limit: str = ""
    lab: str = ""
    source: str = ""
    interval_s: float = 1.0
    record: Path | None = None
    replay: Path | None = None
    speed: float = 1.0
    is_once: bool = False
    length: str = ""
    output: str = "text"
    fleet: Path | None = None
    """The folder of a fleet whose sites watch the devices."""


@dataclass(frozen=True, slots=True)
class PlanRequest:
    """netkit plan."""

    folder: Path
    limit: str = ""
    lab: str = ""
    running: Path | None = None
    out: Path | None = None
    output: str = "text"
    is_detailed: bool = False
    against: str = ""
    cluster: str = ""
    """A kubeconfig, what kubectl or scontrol printed, or `slurm`; empty: none is read."""
    has_proof: bool = False
    most_devices: int = 40
    within_s: float = 900.0
    processes: int = 0
    take_over: bool = False
    fleet: Path | None = None
    """The folder of a fleet whose sites read the devices."""


@dataclass(frozen=True, slots=True)
class RolloutRequest:
    """Options that netkit deploy and netkit rollback share."""

    folder: Path
    lab: str = ""
    limit: str = ""
    yes: bool = False
    output: str = "text"
    reason: str = ""
    skip_hook: str | None = None
    """The reason for skipping the hook; None when it is asked."""
    max_fail: int = 0
    disruptive: bool = False
    busy: bool = False
    take_over: bool = False
    has_canary: bool = True
    has_drain: bool = True
    parallel: int = 20
    together: bool = False
    revert_s: int = 120
    watch_s: int = 10
    on_failure: str = "stop"
    fleet: Path | None = None
    """The folder of a fleet whose workers change the devices."""
    on_disconnect: str = "stop"
    """With a fleet, when this process ends: `stop` the run, or `continue`."""

    def again(self, verb: str) -> str:
        """A command line on the same fabric or lab, for the user to type."""
        lab = "" if not self.lab else " --lab" if self.lab == "." else f" --lab={self.lab}"
        fleet = "" if self.fleet is None else f" --fleet {shlex.quote(str(self.fleet))}"
        return f"netkit {verb} --fabric {shlex.quote(str(self.folder))}{lab}{fleet}"


@dataclass(frozen=True, slots=True)
class DeployRequest(RolloutRequest):
    """netkit deploy."""

    file: Path | None = None
    is_dry: bool = False
    resume: str = ""
    approved: str | None = None
    approval: Path | None = None
    key: Path | None = None
    then: tuple[Path, ...] = ()
    """Fabrics to deploy after this one."""
    max_failed_fabrics: int = 0


@dataclass(frozen=True, slots=True)
class RollbackRequest(RolloutRequest):
    """netkit rollback."""

    run: str = "last"


def check_profile(name: str) -> None:
    if name not in PROFILES:
        raise UsageError(Problem(f"unknown profile {name!r}", f"use {' or '.join(PROFILES)}"))
