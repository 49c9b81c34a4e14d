"""Observed state of devices: typed, frozen, the same for every NOS, and never a guess."""

from netkit.facts.counter import COUNTERS, CounterKind, Counters, Sample
from netkit.facts.device import Absent, Facts
from netkit.facts.snapshot import Observation, Snapshot

__all__ = ["COUNTERS", "Absent", "CounterKind", "Counters", "Facts", "Observation", "Sample", "Snapshot"]
