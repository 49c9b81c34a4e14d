"""What to order in each phase of growth: what is installed now, and what each further step adds."""

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice

from netkit.design import capacity
from netkit.design.build import build
from netkit.design.capacity import Item
from netkit.design.fabric import Fabric
from netkit.errors import NetkitError, Problem, UsageError
from netkit.hardware import Catalog, Media
from netkit.intent import Intent
from netkit.intent.model import Unit

KEYS = ("units", "hosts", "spines", "cores")
SETTING = re.compile(r"(?P<key>[a-z]+)=(?P<count>[1-9]\d{0,4})")
NOW = "now"
Order = Counter[Item]
"""How many of each item; the items themselves have no count."""


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
    """Return the intent after a step; what is installed stays as it is."""
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
    """Return the present number of each thing that may grow; hosts are those of the fullest unit."""
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
    """Return the units after a step: those there are, more hosts in them if wanted, and new ones at free places."""
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
    """Return slots with the first free ones added until there are as many as wanted."""
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
