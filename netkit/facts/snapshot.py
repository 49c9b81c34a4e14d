"""What was seen of a whole fabric at one time: what every check is run from, live or from a file."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from netkit.facts.counter import Sample
from netkit.facts.device import Facts
from netkit.facts.trial import Trial


@dataclass(frozen=True, slots=True)
class Observation:
    """What was seen of one device."""

    device: str
    platform: str
    facts: Facts = field(default_factory=Facts)
    samples: tuple[Sample, ...] = ()
    """Its counters, earliest first; the last one is also in the facts."""
    failure: str = ""
    """Why nothing was seen of it; empty when it was reached."""
    seconds: float = 0.0
    """How long it took to read."""


@dataclass(frozen=True, slots=True)
class Snapshot:
    """What was seen of a fabric."""

    fabric: str
    taken_s: float
    """When it was complete, in seconds of the epoch."""
    devices: Mapping[str, Observation]
    plan: str = ""
    """What differs between running and intended configuration, as a plan file; empty when it was not looked at."""
    trials: tuple[Trial, ...] = ()
    """What acceptance runs measured; none unless somebody gave their results."""
