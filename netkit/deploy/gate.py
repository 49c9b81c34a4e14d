"""The contract of a health gate: whether a device and its neighbors are as healthy after a change as before.

A deploy gets its gate as a function. Each answer carries a sample, an opaque text of the gate; the sample from before
the change is kept in the journal and returned with every later question about the device.
"""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any, Literal, Protocol

from netkit.deploy.clock import DeployClock
from netkit.errors import AccessError
from netkit.platforms.change import Risk
from netkit.platforms.driver import Reader


class Moment(StrEnum):
    """The moments at which a gate is asked."""

    BEFORE = "before"
    """Nothing has happened yet: take a sample."""
    DRAINED = "drained"
    """The device is drained: has traffic moved away?"""
    AFTER = "after"
    """The change runs and can still be reverted."""
    WATCHED = "with its traffic back after"
    """A drained device has its traffic back: asked repeatedly for the watch time."""

    @property
    def is_after(self) -> bool:
        """Whether the change is running, so that health is compared with before."""
        return self in {Moment.AFTER, Moment.WATCHED}


Address = str
"""IPv4, without a prefix length."""


class Prediction(Protocol):
    """What the routing model predicts for the present state of a deploy."""

    def reaches(self, source: Address, target: Address) -> bool:
        """Whether two host addresses reach each other in both directions."""


@dataclass(frozen=True, slots=True)
class GateQuestion:
    """What a gate is asked about one device."""

    device: str
    moment: Moment
    reader: Reader
    """An open connection to the device."""
    neighbors: tuple[str, ...]
    risk: Risk
    ending: frozenset[str] = frozenset()
    """Interfaces whose BGP session the change removes for good."""
    needs_idle: bool = False
    """Whether lossless traffic must be idle before the change: it is disruptive, and `--busy` was not given."""
    may_cut_off: bool = False
    """Whether hosts may be cut off that have no other link while this device changes: `--busy` was given."""
    sample: str = ""
    """What the gate answered before the change."""
    time_limit_s: float = 0.0
    """How long the gate may wait for things to settle."""
    prediction: Prediction | None = None
    """Without one, what was reachable before has to be reachable after."""


@dataclass(frozen=True, slots=True)
class GateAnswer:
    """A gate's verdict; only `healthy` lets a deploy go on."""

    verdict: Literal["healthy", "worse", "inconclusive"]
    reasons: tuple[str, ...] = ()
    sample: str = ""
    is_blank: bool = False
    """Before the change: no session, route or answer was seen that could be missing after it."""

    @property
    def is_healthy(self) -> bool:
        return self.verdict == "healthy"


Gate = Callable[[GateQuestion], GateAnswer]


def ask_gate(gate: Gate, question: GateQuestion) -> GateAnswer:
    """Ask a gate; a gate that fails is inconclusive, which is not healthy.

    AccessError is passed on: the caller handles a device that cannot be reached.
    """
    try:
        return gate(question)
    except AccessError:
        raise
    except Exception as error:
        return GateAnswer("inconclusive", (f"the health gate failed: {str(error) or type(error).__name__}",))


@dataclass(frozen=True, slots=True)
class ChainedAnswer:
    """The answer of the gate asked first, for a gate that adds to it."""

    others: GateAnswer
    kept: Mapping[str, Any]
    """This gate's own part of the sample from before the change."""
    left_s: float
    """The time left to wait for convergence."""

    def sample(self, **kept: Any) -> str:
        """Return the samples of both gates in one text."""
        return json.dumps({"others": self.others.sample, **kept})

    def without_more(self) -> GateAnswer:
        """Return the first gate's answer unchanged."""
        return replace(self.others, sample=self.sample())


def ask_first(others: Gate, question: GateQuestion, clock: DeployClock) -> ChainedAnswer:
    """Ask the other gate first, with its own part of the sample."""
    kept = json.loads(question.sample) if question.sample else {}
    began_s = clock.steady_s()
    answer = others(replace(question, sample=kept.get("others", "")))
    return ChainedAnswer(answer, kept, max(0.0, question.time_limit_s - (clock.steady_s() - began_s)))
