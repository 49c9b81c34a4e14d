"""Snapshots of a small fabric with hand-written facts."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from netkit import design
from netkit.design import Fabric
from netkit.facts import Facts, Observation, Sample, Snapshot
from netkit.hardware import Catalog
from netkit.intent import Intent
from netkit.judge import CheckContext
from tests import intents

WINDOW_S = 10.0


def fabric(platform: str = "nvue", version: str = "5.13.0", **changes: Any) -> Fabric:
    """A fabric of 2 leaves, 2 spines and 2 hosts."""
    values = intents.on_platform(platform, version, {"units": [{"unit": 1, "hosts": 2}], **changes})
    return design.build(Intent.model_validate(values), Catalog())


def observation(device: str, facts: Facts | None = None, **counters: Mapping[str, tuple[int, int]]) -> Observation:
    """Facts of a device; each counter has its count at both ends of the window, by place."""
    samples = tuple(
        Sample(at_s, {name: {place: pair[end] for place, pair in places.items()} for name, places in counters.items()})
        for end, at_s in ((0, 100.0), (1, 100.0 + WINDOW_S))
    )
    if not counters:
        return Observation(device, "nvue", facts or Facts())
    return Observation(device, "nvue", replace(facts or Facts(), counters=samples[1].counters), samples)


def scene(built: Fabric, *observations: Observation, **more: Any) -> CheckContext:
    """A snapshot; devices without an observation were not reached."""
    seen = {one.device: one for one in observations}
    missed = {name: Observation(name, "nvue", failure="connection refused") for name in built.names if name not in seen}
    return CheckContext(built, Snapshot(built.name, 110.0, {**missed, **seen}), **more)


def moved(seen: Observation, begin_s: float, end_s: float) -> Observation:
    """An observation whose samples were taken this much later."""
    first, last = seen.samples
    samples = replace(first, at_s=first.at_s + begin_s), replace(last, at_s=last.at_s + end_s)
    return replace(seen, samples=samples)
