"""Designs for a number of GPUs, each as `netkit init` writes it."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
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
    size: Size | None
    summary: Summary | None
    reason: str

    @property
    def command(self) -> str:
        """The `netkit init` that writes this design."""
        if self.size is None:
            return ""
        one = self.size
        size = f"--leaves {one.leaves} --spines {one.spines} --hosts-per-unit {one.hosts_per_unit} --units {one.units}"
        return f"netkit init my-fabric {size} --platform {one.platform} --model {one.model}"


def candidates(gpus: int, ratio: float, models: Sequence[str], catalog: Catalog) -> Iterator[CapacityDesign]:
    """Yield a two-tier and a rail-only design for each model; `ratio` is bandwidth below ÷ above at a leaf."""
    hosts = -(-gpus // RAILS)
    for name in models:
        for topology, size_of in (("two-tier", _two_tier), ("rail-only", _rail_only)):
            found = CapacityDesign(name, topology, None, None, "runs no platform of netkit")
            for platform in _platforms(name, catalog):
                try:
                    size = size_of(hosts, ratio, platform, name, catalog)
                    summary = designed(size, catalog) if size else None
                    found = CapacityDesign(name, topology, size, summary, "" if summary else "too large for this model")
                except NetkitError as error:
                    found = CapacityDesign(name, topology, None, None, error.problems[0].message)
                if found.summary:
                    break
            yield found


def _platforms(name: str, catalog: Catalog) -> list[str]:
    """Return the platforms that a model runs, first the one whose usual model it is."""
    known = [platform for platform in PLATFORMS if platform in catalog.switch(name).platforms]
    return sorted(known, key=lambda platform: PLATFORMS[platform].starting_point[0] != name)


def designed(size: Size, catalog: Catalog) -> Summary:
    """Return the figures of the fabric that `netkit init` writes for a size."""
    text = scaffold.text(Path("fabric"), size, catalog)
    fabric = build(Intent.model_validate(document.parse(text, "fabric.yaml").value), catalog)
    return capacity.summarize(fabric, catalog.media())


def _rail_only(hosts: int, _: float, platform: str, model: str, catalog: Catalog) -> Size | None:
    ports = scaffold.ports_of(catalog.switch(model))
    return Size(RAILS, 0, hosts, 1, platform, model) if hosts <= ports else None


def _two_tier(hosts: int, ratio: float, platform: str, model: str, catalog: Catalog) -> Size | None:
    """Return the fewest spines that keep the ratio, with units as large as the ports of a leaf allow."""
    ports = scaffold.ports_of(catalog.switch(model))
    units = -(-hosts // (ports // 2))
    per_unit = -(-hosts // units)
    if units > min(MOST_UNITS, ports // RAILS):
        return None
    for spines in range(LEAST_SPINES, min(MOST_SPINES, ports - ports // 2) + 1):
        size = Size(RAILS, spines, per_unit, units, platform, model)
        try:
            plan = scaffold.plan(size, catalog)
        except UsageError:
            return None
        is_within = plan.uplinks * plan.spines <= ports - ports // 2
        if is_within and per_unit <= ratio * plan.uplinks * spines:
            return size
    return None
