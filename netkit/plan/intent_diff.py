"""The difference between two intents: what a change of the repository would change, without reading a device."""

import hashlib
import json
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


def approval(plan: Plan) -> str:
    """A digest of what changes where, from what to what: equal for a predicted and for the actual plan.

    A device that was edited by hand in between, or differs in anything else, makes it differ. So does what a plan takes
    over: it has to be approved too.
    """
    changed = sorted((device.name, device.running_digest, device.intended_digest) for device in plan.changed)
    taken = sorted((one.name, one.unexplained) for one in plan.unexplained) if plan.is_taking_over else []
    approved = [plan.fabric, changed, taken] if taken else [plan.fabric, changed]
    return hashlib.sha256(json.dumps(approved).encode()).hexdigest()[:32]
