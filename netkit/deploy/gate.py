"""The health gate: whether a device and its neighbors are as well after a change as they were before it.

A deploy is handed a gate as a function. Each answer carries a sample, text that only the gate itself reads; the sample
from before is kept in the journal and comes back with every later question about the device.
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
    """When a gate is asked."""

    BEFORE = "before"
    """Nothing has happened yet: take a sample."""
    DRAINED = "drained"
    """The device asks its neighbors to go around it: has traffic moved away?"""
    AFTER = "after"
    """The change runs and can still be taken back."""
    WATCHED = "with its traffic back after"
    """So it does, and a device that was drained has its traffic again: asked until it has been watched long enough."""

    @property
    def is_after(self) -> bool:
        """Whether the change runs, so that the device has to be as well as before it."""
        return self in {Moment.AFTER, Moment.WATCHED}


Address = str
"""Of IPv4, without a prefix length."""


class Prediction(Protocol):
    """What a model of the fabric's routing says of the present state of a deploy."""

    def reaches(self, source: Address, target: Address) -> bool:
        """Whether two addresses of hosts reach each other, there and back."""


@dataclass(frozen=True, slots=True)
class GateQuestion:
    """What is asked about one device."""

    device: str
    moment: Moment
    reader: Reader
    """An open connection to the device."""
    neighbors: tuple[str, ...]
    risk: Risk
    ending: frozenset[str] = frozenset()
    """Interfaces of the device whose BGP session the change takes away for good."""
    needs_idle: bool = False
    """Whether the lossless counters must stand still before the change: it is disruptive, and nobody said `--busy`."""
    sample: str = ""
    """What the gate answered before the change."""
    time_limit_s: float = 0.0
    """How long the gate may wait for things to settle."""
    prediction: Prediction | None = None
    """Without one, what was reachable before has to be reachable after."""


@dataclass(frozen=True, slots=True)
class GateAnswer:
    """Only `healthy` lets a deploy go on."""

    verdict: Literal["healthy", "worse", "inconclusive"]
    reasons: tuple[str, ...] = ()
    sample: str = ""
    is_blank: bool = False
    """Of a look before the change: no session, route or answer was seen that could be missing after it."""

    @property
    def is_healthy(self) -> bool:
        """Whether the deploy may go on."""
        return self.verdict == "healthy"


Gate = Callable[[GateQuestion], GateAnswer]


def asked(gate: Gate, question: GateQuestion) -> GateAnswer:
    """Return the answer of a gate; one that breaks has none, and what has no answer is not healthy.

    That the device cannot be reached is for the caller to deal with.
    """
    try:
        return gate(question)
    except AccessError:
        raise
    except Exception as error:
        return GateAnswer("inconclusive", (f"the health gate failed: {str(error) or type(error).__name__}",))


@dataclass(frozen=True, slots=True)
class ChainedAnswer:
    """What a gate goes on from that asks another one first."""

    others: GateAnswer
    kept: Mapping[str, Any]
    """What this gate itself kept of its look before the change."""
    left_s: float
    """How long it may still wait for things to settle."""

    def sample(self, **kept: Any) -> str:
        """Return the sample of both."""
        return json.dumps({"others": self.others.sample, **kept})

    def without_more(self) -> GateAnswer:
        """Return the answer of a gate that has nothing to add."""
        return replace(self.others, sample=self.sample())


def ask_first(others: Gate, question: GateQuestion, clock: DeployClock) -> ChainedAnswer:
    """Ask other gates first."""
    kept = json.loads(question.sample) if question.sample else {}
    began_s = clock.steady_s()
    answer = others(replace(question, sample=kept.get("others", "")))
    return ChainedAnswer(answer, kept, max(0.0, question.time_limit_s - (clock.steady_s() - began_s)))
