"""Growth: designs for a number of GPUs, and what to order in each phase up to them."""

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path

from netkit.design import capacity
from netkit.design.build import build
from netkit.design.capacity import Item, Summary
from netkit.design.fabric import Fabric
from netkit.errors import NetkitError, Problem, UsageError
from netkit.hardware import Catalog, Media
from netkit.intent import Intent, document, scaffold
from netkit.intent.model import Unit
from netkit.intent.scaffold import FabricPlan, Size
from netkit.platforms import PLATFORMS

KEYS = ("units", "hosts", "spines", "cores")
SETTING = re.compile(r"(?P<key>[a-z]+)=(?P<count>[1-9]\d{0,4})")
NOW = "now"
Order = Counter[Item]
"""How many of each item; the items themselves have no count."""
RAILS = 8
MOST_UNITS, MOST_SPINES = 4096, 1024
"""The limits of `netkit init`."""
LEAST_SPINES = 2
"""With one, its failure would end all traffic between rails and units."""


@dataclass(frozen=True, slots=True)
class GrowthPhase:
    """A phase: the size of the fabric after it, and what it adds to the phase before."""

    name: str
    units: int
    hosts: int
    gpus: int
    added: tuple[Item, ...]


def phases(intent: Intent, steps: Sequence[str], catalog: Catalog) -> Iterator[GrowthPhase]:
    """Yield what is installed now, and each step, such as `units=4,hosts=16,spines=8`, that makes the fabric grow."""
    media, before = catalog.media(), Order()
    for name in (NOW, *steps):
        if name != NOW:
            intent = _grown(intent, name)
        try:
            fabric = build(intent, catalog)
        except NetkitError as error:  # such as names that would be used twice
            error.problems = tuple(replace(one, message=f"--phase {name}: {one.message}") for one in error.problems)
            raise
        order = _order(fabric, media)
        added = Order(order)
        added.subtract(before)
        summary = capacity.summarize(fabric, media)
        items = tuple(replace(item, count=count) for item, count in added.items() if count)
        yield GrowthPhase(name, summary.units, summary.hosts, summary.gpus, items)
        before = order


def _grown(intent: Intent, step: str) -> Intent:
    """The intent after a step; installed devices are unchanged."""
    wanted, now = _settings(step), _sizes(intent)
    most = _most(intent)
    for key, count in wanted.items():
        if key not in now:
            raise _wrong(step, f"the fabric has no {key}", f"use {', '.join(now)}")
        if count > most[key]:
            raise _wrong(
                step, f"the ceiling of {key} is {most[key]}", "stay within it, or raise ceilings in fabric.yaml"
            )
        if count < now[key]:
            raise _wrong(step, f"there are {now[key]} {key} already", "give steps that grow")
    units = _units(intent, wanted)
    switches = intent.switches
    for role, key in (("spine", "spines"), ("core", "cores")):
        tier = getattr(switches, role)
        if tier and key in wanted:
            slots = _filled(tier.slots, wanted[key])
            switches = switches.model_copy(update={role: tier.model_copy(update={"slots": slots})})
    return intent.model_copy(update={"units": units, "switches": switches})


def _settings(step: str) -> Mapping[str, int]:
    found: dict[str, int] = {}
    for part in step.split(","):
        match = SETTING.fullmatch(part)
        if match is None or match["key"] not in KEYS or match["key"] in found:
            raise _wrong(step, "is not a phase", f"write it as units=4,hosts=16; known: {', '.join(KEYS)}, each once")
        found[match["key"]] = int(match["count"])
    return found


def _wrong(step: str, what: str, remedy: str) -> UsageError:
    return UsageError(Problem(f"--phase {step}: {what}", remedy))


def _sizes(intent: Intent) -> dict[str, int]:
    """The present number of each thing that may grow; hosts are those of the fullest unit."""
    units = sum(len(entry.pod) * len(entry.unit) for entry in intent.units)
    found = {"units": units, "hosts": max(len(entry.hosts) for entry in intent.units)}
    for role, key in (("spine", "spines"), ("core", "cores")):
        if tier := getattr(intent.switches, role):
            found[key] = len(tier.slots)
    return found


def _most(intent: Intent) -> Mapping[str, int]:
    ceilings = intent.ceilings
    units = 1 if intent.topology == "rail-only" else ceilings.pods * ceilings.units
    return {"units": units, "hosts": ceilings.hosts_per_unit, "spines": ceilings.spines, "cores": ceilings.cores}


def _units(intent: Intent, wanted: Mapping[str, int]) -> tuple[Unit, ...]:
    """The units after a step: those there are, more hosts in them if wanted, and new ones at free places."""
    hosts = wanted.get("hosts", _sizes(intent)["hosts"])
    kept = tuple(
        entry.model_copy(update={"hosts": _filled(entry.hosts, hosts)}) if "hosts" in wanted else entry
        for entry in intent.units
    )
    taken = {(pod, unit) for entry in kept for pod in entry.pod for unit in entry.unit}
    ceilings = intent.ceilings
    free = (
        (pod, unit)
        for pod in range(1, ceilings.pods + 1)
        for unit in range(1, ceilings.units + 1)
        if (pod, unit) not in taken
    )
    count = wanted.get("units", len(taken)) - len(taken)
    new = (Unit(pod=(pod,), unit=(unit,), hosts=_filled((), hosts)) for pod, unit in islice(free, count))
    return (*kept, *new)


def _filled(slots: tuple[int, ...], count: int) -> tuple[int, ...]:
    """Slots with the first free ones added until there are as many as wanted."""
    free = (slot for slot in range(1, count + len(slots) + 1) if slot not in slots)
    return tuple(sorted((*slots, *islice(free, max(count - len(slots), 0)))))


def _order(fabric: Fabric, media: Mapping[str, Media]) -> Order:
    """Count everything that a fabric consists of: switches, hosts, modules and cables."""
    found = Order()
    for switch in fabric.switches:
        found[Item(f"{switch.role} switch", switch.model.name, "", None, 0)] += 1
    for host in fabric.hosts:
        found[Item("host", host.model.name, "", None, 0)] += 1
    for item in capacity.summarize(fabric, media).items:
        found[replace(item, count=0)] += item.count
    return found


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
        size += f" --pods {one.pods} --cores {one.cores}" if one.cores else ""
        return f"netkit init my-fabric {size} --platform {one.platform} --model {one.model}"


def candidates(gpus: int, ratio: float, models: Sequence[str], catalog: Catalog) -> Iterator[CapacityDesign]:
    """Yield designs for each model: two-tier with one plane and with one for each rail, three-tier, and rail-only.

    `ratio` is bandwidth below ÷ above at a leaf. Spines have as much above as below.
    """
    hosts = -(-gpus // RAILS)
    for name in models:
        for topology, planes in (("two-tier", 1), ("two-tier", RAILS), ("three-tier", 0), ("rail-only", 0)):
            found = CapacityDesign(name, topology, planes, None, None, "runs no platform of netkit")
            for platform in _platforms(name, catalog):
                found = _found(replace(found, reason="too large for this model"), hosts, ratio, platform, catalog)
                if found.summary:
                    break
            yield found


def _found(one: CapacityDesign, hosts: int, ratio: float, platform: str, catalog: Catalog) -> CapacityDesign:
    """A design on a platform with its figures, or the reason why there is none."""
    try:
        if one.topology == "three-tier":
            size = _three_tier(hosts, ratio, platform, one.model, catalog)
            if size and size.pods == 1:
                return replace(one, reason="one pod holds these GPUs: two tiers will do")
        elif one.planes:
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
    planes = size.planes if size.cores else one.planes
    return replace(
        one, planes=planes, size=size, summary=summary, reason="", switches_power_w=switches, optics_power_w=optics
    )


def _platforms(name: str, catalog: Catalog) -> list[str]:
    """The platforms that a model runs, first the one whose usual model it is."""
    known = [platform for platform in PLATFORMS if platform in catalog.switch(name).platforms]
    return sorted(known, key=lambda platform: PLATFORMS[platform].starting_point[0] != name)


def designed(size: Size, catalog: Catalog) -> Summary:
    """The figures of the fabric that `netkit init` writes for a size."""
    text = scaffold.text(Path("fabric"), size, catalog)
    fabric = build(Intent.model_validate(document.parse(text, "fabric.yaml").value), catalog)
    return capacity.summarize(fabric, catalog.media())


def _rail_only(hosts: int, platform: str, model: str, catalog: Catalog) -> Size | None:
    ports = scaffold.ports_of(catalog.switch(model))
    return Size(RAILS, 0, hosts, 1, platform, model) if hosts <= ports else None


def _two_tier(hosts: int, ratio: float, platform: str, model: str, planes: int, catalog: Catalog) -> Size | None:
    """The fewest spines that keep the ratio, with units as large as the ports of a leaf allow."""
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


def _three_tier(hosts: int, ratio: float, platform: str, model: str, catalog: Catalog) -> Size | None:
    """Pods as large as the ports of a spine allow, and the fewest spines and core switches that keep the ratio."""
    half = scaffold.ports_of(catalog.switch(model)) // 2
    most_units = half // RAILS
    if not most_units:
        return None
    pods = -(-hosts // (half * most_units))
    units = -(-hosts // (half * pods))
    size = Size(RAILS, 0, -(-hosts // (pods * units)), units, platform, model, pods=pods, cores=LEAST_SPINES)
    for spines in range(LEAST_SPINES, half + 1):
        size = replace(size, spines=spines, planes=spines)
        plan = scaffold.plan(size, catalog)
        if plan.uplinks * plan.spines > half or size.hosts_per_unit > ratio * plan.uplinks * spines:
            continue
        shared = [planes for planes in range(1, spines + 1) if spines % planes == 0]
        every = (replace(size, planes=one, cores=cores) for one in shared for cores in range(LEAST_SPINES, half + 1))
        fitting = [one for one in every if _is_connected(one, scaffold.plan(one, catalog), half)]
        if fitting:
            return min(fitting, key=lambda one: one.planes * one.cores)
    return None


def _is_connected(size: Size, plan: FabricPlan, half: int) -> bool:
    """Whether the ports of spines and core switches suffice, with as much bandwidth above a spine as below."""
    of_core = plan.core_uplinks * plan.pods * -(-plan.spines // size.planes)
    is_within = plan.core_uplinks * plan.cores <= half and of_core <= 2 * half
    return is_within and size.units * size.leaves * plan.uplinks <= plan.core_uplinks * size.cores
