"""The difference between two intents: what a change of the repository would change, without reading a device."""

from dataclasses import dataclass

from netkit.design.numbering import RenumberedValue
from netkit.errors import Problem
from netkit.plan.cluster_diff import ClusterDiff
from netkit.plan.model import Plan


@dataclass(frozen=True, slots=True)
class UnmatchedDevice:
    """A device that only one of the two intents has."""

    name: str
    role: str
    platform: str
    was: str = ""
    """What it runs in the other intent: another NOS is another device, whose files cannot be compared."""


@dataclass(frozen=True, slots=True)
class IntentDiff:
    """A plan between two intents, and what a plan of devices does not report."""

    base: str
    """What the running side is: a revision, or `running`."""
    plan: Plan
    """Devices in both intents whose files differ."""
    same: int
    """Devices in both that stay as they are."""
    added: tuple[UnmatchedDevice, ...] = ()
    """Devices that are new, or run another NOS."""
    removed: tuple[UnmatchedDevice, ...] = ()
    moved: tuple[RenumberedValue, ...] = ()
    warnings: tuple[Problem, ...] = ()
    """What the design warns about now and did not before."""
    clusters: tuple[ClusterDiff, ...] = ()

    @property
    def is_nothing(self) -> bool:
        """Whether no device and no cluster changes."""
        return not (self.plan.changed or self.added or self.removed or self.clusters)
