"""What came of proving a change in the lab, and what speaks against it."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from netkit.deploy import DeviceOutcome, Outcome
from netkit.design.fabric import Fabric
from netkit.lab.proof.calling import Call, Heard
from netkit.plan import Plan
from netkit.plan.shift import Shift
from netkit.platforms.change import Risk
from netkit.prove.flow import Flow
from netkit.prove.part import Part
from netkit.prove.seen import ScopeSeen, WaveSeen

FAILED = 1


@dataclass(frozen=True, slots=True)
class Booted:
    """Which devices the lab had, and which it had not, counted by role."""

    roles: dict[str, int]
    left_out: dict[str, int]
    unseen: tuple[tuple[str, ...], ...] = ()
    witnesses: tuple[str, ...] = ()
    added: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Examined:
    """How the lab was examined in the end, and how much was found lacking."""

    sessions: int
    widest: int
    """Next hops to the leaf that is reached over the most."""
    pairs: int
    of_pairs: int
    packet_bytes: int
    lacking: int = 0
    unsettled: int = 0
    """Devices that a second plan would change again."""
    blocked: int = 0
    """Pairs across rails that were tried, and do not reach each other, as designed."""


@dataclass(frozen=True, slots=True)
class Proof:
    """Everything that is told of a proof. Nothing speaks against what needs none."""

    failures: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    exit_code: int = 0
    booted: Booted | None = None
    obstacle: str = ""
    """Why the change was not rolled from before to after."""
    devices: tuple[DeviceOutcome, ...] = ()
    waves: tuple[WaveSeen, ...] = ()
    scopes: tuple[ScopeSeen, ...] = ()
    untried: tuple[str, ...] = ()
    """Booted devices on which the lab had less to change than the fabric has."""
    examined: Examined | None = None
    took_s: float = 0.0

    @property
    def sent(self) -> int:
        """Return how many packets were sent while the change was rolled."""
        return sum(one.sent for one in self.scopes)

    @property
    def lost(self) -> int:
        """Return how many of them got no answer."""
        return sum(one.lost for one in self.scopes)

    @property
    def longest_s(self) -> float:
        """Return the longest time a flow got no answer."""
        return max((one.longest_s for one in self.scopes), default=0.0)


def booted(part: Part, fabric: Fabric, shift: Shift) -> Booted:
    """Return what is said of the part of a fabric that a change was tried on."""
    roles = _roles(part.fabric)
    whole = _roles(fabric)
    left_out = {role: count - roles.get(role, 0) for role, count in whole.items() if count > roles.get(role, 0)}
    added = tuple(one.name for one in shift.added if part.fabric.device(one.name) is not None)
    return Booted(roles, left_out, part.unseen, part.witnesses, added, tuple(one.name for one in shift.removed))


def of_outcome(outcome: Outcome) -> Iterator[str]:
    """Yield what speaks against a change in how its deploy came out."""
    for one in outcome.failures:
        yield f"{one.device} {one.result.value}: {'; '.join(one.reasons) or 'it says nothing'}"
    if outcome.stopped:
        yield f"the deploy stopped: {outcome.stopped}"
    elif outcome.exit_code and not outcome.failures:
        yield f"the deploy ended with {outcome.exit_code}"


def of_loss(plan: Plan, flows: Sequence[Flow], heard: Sequence[Heard]) -> Iterator[str]:
    """Yield what was lost although the model of the routing predicted that it is not.

    Of changes that lay out buffers again or take down links the model predicts routes, not frames: nothing is held
    against those.
    """
    if plan.risk > Risk.SESSION:
        return
    losses = [plan.gone, *(loss for step in plan.steps for loss in (step.during, step.after))]
    predicted = [frozenset(loss.hosts) for loss in losses if loss]
    disrupted = frozenset(gpu for one in plan.devices if one.blast.is_disruptive for gpu in one.blast.gpus)
    calls = {flow.call.name: flow.call for flow in flows}
    for one in heard:
        lost = sum(gap.lost for gap in one.gaps)
        call = calls[one.name]
        is_disrupted = not disrupted.isdisjoint(call.name.split(" → "))
        if lost and not is_disrupted and not any(_ends(call) <= hosts for hosts in predicted):
            yield f"{one.name}: {lost} of {one.sent} packets lost; netkit predicted that none is: a defect of netkit"


def _ends(call: Call) -> frozenset[str]:
    """Return the hosts of a call."""
    return frozenset(end.partition(":")[0] for end in call.name.split(" → "))


def _roles(fabric: Fabric) -> dict[str, int]:
    found = {role: len(fabric.tier(role)) for role in ("leaf", "spine", "core")}
    return {role: count for role, count in {**found, "host": len(fabric.hosts)}.items() if count}
