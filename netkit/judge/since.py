"""Counters judged since an earlier run instead of over a window of this one. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass, replace

from netkit.facts import Absent, Observation, Sample, Snapshot

SLACK_S = 60.0
"""Clocks of devices count a little otherwise than ours, and counters are read a little before or after the clock."""


@dataclass(frozen=True, slots=True)
class Earlier:
    """The counters of a device in an earlier run."""

    sample: Sample
    boot: str = ""
    uptime_s: float | None = None


def since(snapshot: Snapshot, earlier: Mapping[str, Earlier]) -> Snapshot:
    """Return a snapshot whose windows begin at an earlier run; devices without one keep the window they have."""
    devices = {name: _since(one, earlier[name]) if name in earlier else one for name, one in snapshot.devices.items()}
    return replace(snapshot, devices=devices)


def _since(one: Observation, earlier: Earlier) -> Observation:
    first = earlier.sample
    if not one.samples or first.at_s >= one.samples[-1].at_s:
        return one
    boots = ("before", "after") if _is_restarted(one, earlier) else ("", "")
    samples = (replace(first, boot=boots[0]), *(replace(sample, boot=boots[1]) for sample in one.samples))
    return replace(one, samples=samples)


def _is_restarted(one: Observation, earlier: Earlier) -> bool:
    """Whether a device began anew in between: by what changes with each boot, or else by how long it is up."""
    system = one.facts.system
    if isinstance(system, Absent):
        return False
    if system.boot and earlier.boot:
        return system.boot != earlier.boot
    if system.uptime_s is None:
        return False
    return system.uptime_s + SLACK_S < one.samples[-1].at_s - earlier.sample.at_s
