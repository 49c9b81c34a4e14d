"""The parts of a plan: frozen, free of secrets, and the same after a round trip through a file."""

import hashlib
import json
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Literal

from netkit.platforms.change import Change, Risk, Strategy
from netkit.platforms.config import Path
from netkit.platforms.routing import HostRoutes, RetainedRouting, Router

SCHEMA = 2
"""Incremented when a field changes meaning; a plan of a newer netkit is refused."""


@dataclass(frozen=True, slots=True)
class Running:
    """What a device runs: its files as netkit names them. None: not on the device. Left out: not read."""

    files: Mapping[str, str | None]
    version: str = ""


@dataclass(frozen=True, slots=True)
class Unreachable:
    """A device whose configuration could not be read, and why."""

    reason: str


@dataclass(frozen=True, slots=True)
class Blast:
    """What the changes of a device touch. A GPU is named by its NIC, one each."""

    sessions: tuple[str, ...] = ()
    links: tuple[str, ...] = ()
    rails: tuple[int, ...] = ()
    hosts: tuple[str, ...] = ()
    gpus: tuple[str, ...] = ()
    is_disruptive: bool = False
    """Hosts lose traffic that no other path can take over."""
    ports: tuple[str, ...] = ()
    """Of one device: its ports towards switches whose session is interrupted."""
    moved: tuple[str, ...] = ()
    """Hosts whose VLAN, gateway or address in a network beside the rails is another one until all of it has changed."""


Stage = Literal["", "both", "finish"]
DetourKind = Literal["sessions stay", "sessions come", "any AS"]
"""What comes first: all but the end of sessions, new sessions only, or sessions with any AS number."""


@dataclass(frozen=True, slots=True)
class RoutingChange:
    """A device's routing before and after a change."""

    running: Router | HostRoutes
    intended: Router | HostRoutes
    detours: tuple["Detour", ...] = ()


@dataclass(frozen=True, slots=True)
class Detour:
    """A configuration between running and intended that keeps sessions which the change would end."""

    kind: "DetourKind"
    entries: tuple[tuple[Path, str | None], ...]
    """How it differs from the intended configuration."""
    router: Router


@dataclass(frozen=True, slots=True)
class ReachabilityLoss:
    """Pairs of NICs that temporarily cannot reach each other at any of their addresses of one family.

    A pair that had IPv4 and IPv6 is lost without either.
    """

    pairs: int = 0
    hosts: tuple[str, ...] = ()
    rails: tuple[str, ...] = ()
    seconds: int = 0
    """About how long; 0: until a later step."""
    rail_pairs: tuple[tuple[str, str], ...] = ()
    """The interfaces of such pairs, in alphabetical order; without them, as in earlier plans, any two of the rails."""
    is_only_ipv6: bool = False
    """Whether they all still reach each other over IPv4."""

    @property
    def family(self) -> str:
        """What a text adds where only one family is lost."""
        return " over IPv6" if self.is_only_ipv6 else ""

    def may_have_lost(self, hosts: Collection[str], interfaces: Iterable[str], *, is_ipv6: bool = False) -> bool:
        """Whether a pair of NICs, given by both hosts and both interfaces, may be among these in a family."""
        if self.is_only_ipv6 and not is_ipv6:
            return False
        ends = tuple(sorted(interfaces))
        is_between = ends in self.rail_pairs if self.rail_pairs else {*ends} <= {*self.rails}
        return is_between and {*hosts} <= {*self.hosts}

    def __bool__(self) -> bool:
        return self.pairs > 0


@dataclass(frozen=True, slots=True)
class NarrowedRoute:
    """A leaf that a switch reaches over fewer ports after a step, as the routing model predicts."""

    device: str
    leaf: str
    ports: int


@dataclass(frozen=True, slots=True)
class Step:
    """Devices that may change at the same time, and the cost predicted by the routing model."""

    number: int
    devices: tuple[str, ...]
    stage: Stage = ""
    """`both`: old routes stay accepted and announced beside the intended ones; `finish`: they go."""
    paths: int = 0
    """The least number of equal paths any leaf has left, during the change and after it; 0 if none."""
    paths_before: int = 0
    during: ReachabilityLoss = ReachabilityLoss()
    after: ReachabilityLoss = ReachabilityLoss()
    waiting: tuple[str, ...] = ()
    """Ends of its devices' sessions, as `device:port`, that stay down or bring no routes until a later step."""
    narrowed: tuple[NarrowedRoute, ...] = ()
    """What its devices reach over fewer ports after it, or not any more."""


@dataclass(frozen=True, slots=True)
class Partial:
    """What is worse for good when only a part of the devices changes, and what else has to change with it."""

    loss: ReachabilityLoss
    missing: tuple[str, ...]
    narrowed: tuple[str, ...] = ()
    """The switches with fewer equal paths, if no pair is lost."""
    moved: tuple[str, ...] = ()
    """The hosts that are left out of a network beside the rails."""
    is_unread: bool = False
    """Whether all that is missing could not be read, so a larger limit does not help."""


@dataclass(frozen=True, slots=True)
class Bridge:
    """A device that is changed in two stages: first to both, then to the intended configuration alone."""

    device: str
    kept: RetainedRouting
    first: "DevicePlan"
    then: "DevicePlan"


@dataclass(frozen=True, slots=True)
class DevicePlan:
    """What happens to one device, and the configuration this was decided on."""

    name: str
    role: str
    platform: str
    version: str
    changes: tuple[Change, ...]
    risk: Risk
    way: Strategy
    blast: Blast
    running_digest: str
    intended_digest: str
    not_read: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()
    left: tuple[Path, ...] = ()
    """What runs on the device and `leave` of the intent keeps, without secrets."""
    unexplained: tuple[Path, ...] = ()
    """What would be removed on the first contact with the device, and the intent does not explain."""
    unmatched: tuple[str, ...] = ()
    """Paths of `leave` and `own` that match nothing on the device."""
    unowned: int = 0
    """How many entries run on the device that netkit neither owns, nor renders, nor leaves by request."""
    routing: RoutingChange | None = field(default=None, compare=False, repr=False)
    """Set only where routing changes, and only until the order is known; it is not in the plan's file."""

    @property
    def is_unchanged(self) -> bool:
        """Whether there is nothing to do, as far as the device was read."""
        return not self.changes


@dataclass(frozen=True, slots=True)
class UnreadDevice:
    """A device that could not be read, so the plan does not cover it."""

    name: str
    reason: str


@dataclass(frozen=True, slots=True)
class Plan:
    """Everything a deploy would do."""

    fabric: str
    devices: tuple[DevicePlan, ...]
    unreachable: tuple[UnreadDevice, ...]
    groups: tuple[tuple[str, ...], ...]
    """Devices with the same changes, apart from names and addresses."""
    netkit: str
    schema: int = SCHEMA
    steps: tuple[Step, ...] = ()
    """The order of the devices."""
    bridges: tuple[Bridge, ...] = ()
    gone: ReachabilityLoss = ReachabilityLoss()
    """What the intended fabric no longer connects."""
    has_routing: bool = False
    """Whether any device's routing changes, so that a part of the plan has its own order."""
    partial: Partial | None = None
    """Only for a plan that leaves the fabric worse than before: with a limit, or with devices that were not read."""
    warnings: tuple[str, ...] = ()
    """About the intent, with file and line."""
    is_taking_over: bool = False
    """Whether what is unexplained may be removed."""
    unknown: tuple[str, ...] = ()
    """Switches that were not read and of which no run is known, while the routing of others changes."""

    @property
    def changed(self) -> tuple[DevicePlan, ...]:
        """The devices to change."""
        return tuple(device for device in self.devices if device.changes)

    @property
    def unexplained(self) -> tuple[DevicePlan, ...]:
        """The devices that would lose what the intent does not explain."""
        return tuple(device for device in self.devices if device.unexplained)

    @property
    def is_complete(self) -> bool:
        """Whether every file of every device was compared."""
        return not self.unreachable and not any(device.not_read for device in self.devices)

    @property
    def risk(self) -> Risk:
        """The highest risk of all devices."""
        return max((device.risk for device in self.devices), default=Risk.NONE)

    @property
    def blast(self) -> Blast:
        """What all devices touch together; a link has two ends, and counts once."""
        blasts = [device.blast for device in self.devices]
        return Blast(
            sessions=_together(*(blast.sessions for blast in blasts)),
            links=_together(*(blast.links for blast in blasts)),
            rails=tuple(sorted({rail for blast in blasts for rail in blast.rails})),
            hosts=_together(*(blast.hosts for blast in blasts)),
            gpus=_together(*(blast.gpus for blast in blasts)),
            is_disruptive=any(blast.is_disruptive for blast in blasts),
            moved=_together(*(blast.moved for blast in blasts)),
        )

    @property
    def worst(self) -> ReachabilityLoss:
        """The greatest loss of any intermediate state, or of the last one."""
        losses = [loss for step in self.steps for loss in (step.during, step.after)]
        losses += [self.partial.loss] if self.partial else []
        return max(losses, key=lambda loss: (not loss.seconds and bool(loss), loss.pairs), default=ReachabilityLoss())

    def device(self, name: str) -> DevicePlan | None:
        return next((device for device in self.devices if device.name == name), None)


def _together(*lists: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(item for items in lists for item in items))


def approval(plan: Plan) -> str:
    """A digest of what changes where, from what to what: equal for a predicted and for the actual plan.

    A device that was edited by hand in between, or differs in anything else, makes it differ. So does what a plan takes
    over: it has to be approved too.
    """
    changed = sorted((device.name, device.running_digest, device.intended_digest) for device in plan.changed)
    taken = sorted((one.name, one.unexplained) for one in plan.unexplained) if plan.is_taking_over else []
    approved = [plan.fabric, changed, taken] if taken else [plan.fabric, changed]
    return hashlib.sha256(json.dumps(approved).encode()).hexdigest()[:32]
