"""Designs for a number of GPUs, each as `netkit init` writes it."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from netkit.design import capacity
from netkit.design.build import build
from netkit.design.capacity import Summary
from netkit.errors import NetkitError, UsageError
from netkit.hardware import Catalog
from netkit.intent import Intent, document, scaffold
from netkit.intent.scaffold import Size
from netkit.platforms import PLATFORMS

RAILS = 8
MOST_UNITS, MOST_SPINES = 4096, 1024
"""The limits of `netkit init`."""
LEAST_SPINES = 2
"""With one, its failure would end all traffic between rails and units."""


@dataclass(frozen=True, slots=True)
class CapacityDesign:
    """A design that holds the GPUs; or, without figures, why there is none."""

    model: str
    topology: str
    planes: int
    size: Size | None
    summary: Summary | None
    reason: str
    switches_power_w: float | None = None
    """Without modules; None if no source states it."""
    optics_power_w: float | None = None

    @property
    def power_w(self) -> float | None:
        """Switches and modules together; None if one of them is not sourced."""
        known = self.switches_power_w is not None and self.optics_power_w is not None
        return (self.switches_power_w or 0) + (self.optics_power_w or 0) if known else None

    @property
    def command(self) -> str:
        """The `netkit init` that writes this design."""
        if self.size is None:
            return ""
        one = self.size
        size = f"--leaves {one.leaves} --spines {one.spines} --hosts-per-unit {one.hosts_per_unit} --units {one.units}"
        size += f" --planes {one.planes}" if one.planes > 1 else ""
        return f"netkit init my-fabric {size} --platform {one.platform} --model {one.model}"


def candidates(gpus: int, ratio: float, models: Sequence[str], catalog: Catalog) -> Iterator[CapacityDesign]:
    """Yield designs for each model: two-tier with one plane and with one for each rail, and rail-only.

    `ratio` is bandwidth below ÷ above at a leaf.
    """
    hosts = -(-gpus // RAILS)
    for name in models:
        for topology, planes in (("two-tier", 1), ("two-tier", RAILS), ("rail-only", 0)):
            found = CapacityDesign(name, topology, planes, None, None, "runs no platform of netkit")
            for platform in _platforms(name, catalog):
                found = _found(replace(found, reason="too large for this model"), hosts, ratio, platform, catalog)
                if found.summary:
                    break
            yield found


def _found(one: CapacityDesign, hosts: int, ratio: float, platform: str, catalog: Catalog) -> CapacityDesign:
    """Return a design on a platform with its figures, or the reason why there is none."""
    try:
        if one.planes:
            size = _two_tier(hosts, ratio, platform, one.model, one.planes, catalog)
        else:
            size = _rail_only(hosts, platform, one.model, catalog)
        if size is None:
            return one
        summary = designed(size, catalog)
    except NetkitError as error:
        return replace(one, reason=error.problems[0].message)
    switches = capacity.switch_power(summary, {one.model: catalog.switch(one.model)})
    optics = capacity.optics_power(summary, catalog.media())
    return replace(one, size=size, summary=summary, reason="", switches_power_w=switches, optics_power_w=optics)


def _platforms(name: str, catalog: Catalog) -> list[str]:
    """Return the platforms that a model runs, first the one whose usual model it is."""
    known = [platform for platform in PLATFORMS if platform in catalog.switch(name).platforms]
    return sorted(known, key=lambda platform: PLATFORMS[platform].starting_point[0] != name)


def designed(size: Size, catalog: Catalog) -> Summary:
    """Return the figures of the fabric that `netkit init` writes for a size."""
    text = scaffold.text(Path("fabric"), size, catalog)
    fabric = build(Intent.model_validate(document.parse(text, "fabric.yaml").value), catalog)
    return capacity.summarize(fabric, catalog.media())


def _rail_only(hosts: int, platform: str, model: str, catalog: Catalog) -> Size | None:
    ports = scaffold.ports_of(catalog.switch(model))
    return Size(RAILS, 0, hosts, 1, platform, model) if hosts <= ports else None


def _two_tier(hosts: int, ratio: float, platform: str, model: str, planes: int, catalog: Catalog) -> Size | None:
    """Return the fewest spines that keep the ratio, with units as large as the ports of a leaf allow."""
    ports = scaffold.ports_of(catalog.switch(model))
    units = -(-hosts // (ports // 2))
    per_unit = -(-hosts // units)
    if units > min(MOST_UNITS, ports // (RAILS // planes)):
        return None
    for spines in range(LEAST_SPINES, min(MOST_SPINES, ports - ports // 2) + 1):
        size = Size(RAILS, spines, per_unit, units, platform, model, planes=planes)
        try:
            plan = scaffold.plan(size, catalog)
        except UsageError:
            return None
        is_within = plan.uplinks * plan.spines <= ports - ports // 2
        if is_within and per_unit <= ratio * plan.uplinks * spines:
            return size
    return None
