"""What the pages and the API are about: a fabric, its records, and the schedule that makes them."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from netkit.deploy import RecentRuns
from netkit.serve.agenda import Agenda
from netkit.serve.diary import Diary
from netkit.serve.record import Records
from netkit.serve.silencing import Silencer
from netkit.store import CheckRun


@dataclass(frozen=True, slots=True)
class Site:
    """Everything there is to show."""

    fabric: str
    lab: str
    records: Records
    agenda: Agenda
    diary: Callable[[], Diary]
    next_s: Callable[[], float]
    metrics: Callable[[], str]
    """What the newest check saw, as Prometheus reads it; empty when there is none."""
    make: Callable[[CheckRun], Awaitable[None]]
    """Makes the report on a run, when it is not there any more."""
    started_s: float
    deploys: RecentRuns
    silencer: Silencer
    has_backup: bool = False
