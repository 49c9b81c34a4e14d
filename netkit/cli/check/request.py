"""What a user asks of `netkit check`, as given; the verb fills it in, and the check reads it."""

from dataclasses import dataclass
from pathlib import Path

from netkit.errors import Problem, UsageError

PROFILES = ("light", "full")


@dataclass(frozen=True, slots=True)
class CheckRequest:
    """The options of one run."""

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
    compared: tuple[str, str] | None = None
    """Snapshots or stored runs: before, and after."""


def check_profile(name: str) -> None:
    """Refuse a profile that does not exist."""
    if name not in PROFILES:
        raise UsageError(Problem(f"no profile {name!r}", f"use {' or '.join(PROFILES)}"))
