"""The context of a deploy, shared by all its parts."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Protocol

from nornir.core.plugins.runners import RunnerPlugin

from netkit.deploy.clock import DeployClock
from netkit.deploy.gate import Gate, Prediction, RunMemory
from netkit.deploy.journal import Journal
from netkit.deploy.model import DeployEvent, DeviceOutcome, EventHandler, Options, Phase
from netkit.deploy.preflight import Task
from netkit.deploy.wave import Wave
from netkit.design.fabric import Fabric, Switch
from netkit.errors import AccessError, NetkitError
from netkit.plan import Plan
from netkit.plan.model import ReachabilityLoss
from netkit.plan.order import is_drained_first
from netkit.platforms.change import Risk
from netkit.platforms.driver import Driver

Connect = Callable[[str], Driver]


class Predict(Protocol):
    """Predicts reachability."""

    def __call__(
        self, device: str, done: frozenset[str], is_finishing: bool, *, is_changing: bool = False
    ) -> Prediction | None:
        """The device that changed last, or changes, those done in this stage, and whether it is the second stage."""


FAILED = 1


class PlannedReachability:
    """The plan's own prediction: which hosts lose each other at some step, as coarse as the plan names them."""

    def __init__(self, plan: Plan, fabric: Fabric, *, is_back: bool = False) -> None:
        self._plan, self._is_back = plan, is_back
        self._nic = {
            address: (host.name, nic.interface)
            for host in fabric.hosts
            for nic in host.nics
            for address in nic.addresses
        }

    def __call__(
        self, device: str, done: frozenset[str], is_finishing: bool, *, is_changing: bool = False
    ) -> Prediction | None:
        """The prediction for the state after a device's change, or during it; None if nothing is lost.

        While others of its step still have to change, what the step before lost may be lost as well.
        """
        steps = self._plan.steps
        gone = [self._plan.gone, self._plan.partial.loss] if self._plan.partial else [self._plan.gone]
        lost: list[ReachabilityLoss] = []
        for place, step in enumerate(steps):
            if device in step.devices and (step.stage == "finish") is is_finishing:
                is_whole = done.issuperset(name for name in step.devices if name != device)
                lost += [step.after] if is_whole or not place else [step.after, steps[place - 1].after]
                lost += [step.during, *(one.after for one in steps[:place][-1:])] if is_changing else []
        for_now, for_good = (tuple(filter(None, losses)) for losses in (lost, gone))
        return LostPairs(self._nic, for_now, for_good, is_back=self._is_back) if for_now or for_good else None


@dataclass(frozen=True, slots=True)
class LostPairs:
    """Pairs of NICs that lose each other. An address that the fabric no longer knows reaches nothing."""

    nic: Mapping[str, tuple[str, str]]
    for_now: tuple[ReachabilityLoss, ...]
    for_good: tuple[ReachabilityLoss, ...]
    is_back: bool = False
    """Whether a rollback leads there. What it restores has run before; an intent may break a rail by mistake."""

    def reaches(self, source: str, target: str) -> bool:
        is_known = {source, target} <= self.nic.keys()
        return is_known and not self._is_among((*self.for_now, *self.for_good), source, target)

    def may_stay_lost(self, source: str, target: str) -> bool:
        if self._is_among(self.for_good, source, target):
            return self.is_back
        return self._is_among(self.for_now, source, target)

    def _is_among(self, losses: Iterable[ReachabilityLoss], source: str, target: str) -> bool:
        ends = [self.nic[address] for address in (source, target) if address in self.nic]
        hosts, interfaces = {host for host, _ in ends}, [interface for _, interface in ends]
        return any(loss.may_have_lost(hosts, interfaces, is_ipv6=":" in source) for loss in losses)


@dataclass(frozen=True)
class Job:
    """One run of a deploy."""

    plan: Plan
    fabric: Fabric
    tasks: Mapping[str, Task]
    connect: Connect
    gate: Gate
    options: Options
    journal: Journal
    on_event: EventHandler
    clock: DeployClock
    runner: RunnerPlugin
    is_stopping: Callable[[], bool]
    began_s: float
    waves: list[Wave] = field(default_factory=list)
    model: Predict | None = None
    is_finishing: bool = False
    """Whether this is the second stage of a change in two."""
    done: set[str] = field(default_factory=set)
    """Devices whose change in this stage is done."""
    memory: RunMemory = field(default_factory=RunMemory)
    undoes: str = ""
    """The run that this one rolls back."""

    def waiting(self, device: str) -> frozenset[str]:
        """The ports of a device whose session stays down until the other end changes."""
        steps = (one for one in self.plan.steps if (one.stage == "finish") is self.is_finishing)
        named = (end.partition(":") for step in steps if device in step.devices for end in step.waiting)
        return frozenset(port for name, _, port in named if name == device)

    def narrowed(self, device: str) -> Mapping[str, int]:
        """The leaves that a device is predicted to reach over fewer ports after its change, and how many."""
        steps = (one for one in self.plan.steps if (one.stage == "finish") is self.is_finishing)
        return {one.leaf: one.ports for step in steps for one in step.narrowed if one.device == device}

    def predict(self, device: str, *, is_changing: bool = False) -> Prediction | None:
        """The predicted reachability after the change of a device, or during it; None without a model."""
        done = frozenset(self.done)
        return None if self.model is None else self.model(device, done, self.is_finishing, is_changing=is_changing)

    def show(self, phase: Phase, device: str, wave: int, outcome: DeviceOutcome | None = None) -> None:
        """Report progress."""
        at_s = self.clock.steady_s() - self.began_s
        self.on_event(DeployEvent(phase, device, wave, len(self.waves), at_s, outcome, bool(self.undoes)))

    def neighbors(self, name: str) -> tuple[str, ...]:
        """The devices that have BGP sessions with this one."""
        found = self.fabric.device(name)
        ports = found.fabric_ports if isinstance(found, Switch) else ()
        return tuple(dict.fromkeys(port.peer for port in ports))

    def is_drained_first(self, name: str) -> bool:
        """Whether to drain the device first: it takes down sessions, and all it serves have another path."""
        return self.options.has_drain and is_drained_first(self.tasks[name].plan, self.fabric)


def is_disruptive(task: Task) -> bool:
    """Whether hosts may lose traffic that no other path takes over; a leaf is the only path to its hosts."""
    planned, blast = task.plan, task.plan.blast
    is_used_leaf = planned.role == "leaf" and bool(blast.sessions or blast.links or blast.hosts)
    return blast.is_disruptive or (is_used_leaf and planned.risk >= Risk.SESSION)


def code_of(error: BaseException) -> int:
    """The exit code for an error; an internal error is a failure like any other."""
    return error.exit_code if isinstance(error, NetkitError) else FAILED


def text_of(error: BaseException) -> str:
    """An error's message in one line."""
    if isinstance(error, NetkitError):
        return "; ".join(map(str, error.problems))
    return f"unexpected {type(error).__name__}: {error}"


def is_access(error: BaseException) -> bool:
    """Whether the device could not be reached, or not be understood."""
    return isinstance(error, AccessError)
