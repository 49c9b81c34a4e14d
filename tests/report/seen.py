"""Judged fabrics: healthy ones, failing ones, and ones whose devices have hostile names."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from random import Random
from typing import Any

from bench import healthy
from netkit import design
from netkit.design import Fabric
from netkit.facts import Facts, Observation, Sample, Snapshot
from netkit.facts.counter import place
from netkit.facts.device import Neighbor
from netkit.facts.optic import Module
from netkit.facts.qos import Buffer
from netkit.hardware import Catalog
from netkit.intent import Intent
from netkit.judge import CheckContext, catalog
from netkit.project.judging import judged_of
from netkit.report.page import NO_TRENDS, Reported, Trends
from tests import intents

HOSTILE = "<script>document.title='owned'</script><img src=x onerror=alert(1)>\u2028\u202e\x1b[2J</script>&amp;"
LONG = "very-long-name-" * 700
WIDE = {"units": [{"unit": 1, "hosts": 12}], "ceilings": {"hosts_per_unit": 12}}
Sick = Callable[[Observation], Observation]


def built(values: Mapping[str, Any]) -> Fabric:
    return design.build(Intent.model_validate(values), Catalog())


SMALL = built(intents.on_platform("nvue", "5.13.0", {"units": [{"unit": 1, "hosts": 2}]}))


def worn_out(fabric: Fabric) -> Reported:
    """A fabric in which every port has different readings, as judged by the checks of optics."""
    snapshot = healthy.snapshot(fabric)
    return judged(
        fabric,
        replace(snapshot, devices={name: worn(one) for name, one in snapshot.devices.items()}),
        names=("optics",),
    )


def reported(fabric: Fabric = SMALL, trends: Trends = NO_TRENDS, **sick: Sick) -> Reported:
    """A judged run of a fabric that is healthy except for some devices."""
    snapshot = healthy.snapshot(fabric)
    devices = {name: sick[name](one) if name in sick else one for name, one in snapshot.devices.items()}
    return judged(fabric, replace(snapshot, devices=devices), trends)


def judged(fabric: Fabric, snapshot: Snapshot, trends: Trends = NO_TRENDS, names: Sequence[str] = ()) -> Reported:
    """A snapshot of all switches judged by some checks, or all."""
    scene = CheckContext(fabric, snapshot, names=frozenset(switch.name for switch in fabric.switches))
    return Reported(judged_of(scene, catalog.select(catalog.load(), names)), fabric, scene, trends=trends)


def unreached(one: Observation) -> Observation:
    """A device that did not answer."""
    return Observation(one.device, one.platform, failure=f"connection refused: {HOSTILE}")


def paused(one: Observation) -> Observation:
    """A device that is paused on its first lossless place and marks a lot."""
    return counted(one, rx_pause=900_000, queue_ecn_marked=50_000)


def counted(one: Observation, **added: int) -> Observation:
    """A device whose counters increased at their first place."""
    first, last = one.samples
    counters = {name: dict(places) for name, places in last.counters.items()}
    for name, value in added.items():
        counters[name][next(iter(counters[name]))] += value
    last = Sample(last.at_s, counters)
    return replace(one, facts=replace(one.facts, counters=counters), samples=(first, last))


def burst(one: Observation) -> Observation:
    """A device with watermarks at two ports: those of the first rose within the window, the others are old."""
    first, last = one.samples
    ports = list(mapped(one.facts, "interfaces"))[:2]
    before = {place(port, 3): Buffer(0, 700_000, 30_000) for port in ports}
    after = {**before, place(ports[0], 3): Buffer(0, 900_000, 40_000)}
    return replace(one, samples=(replace(first, buffers=before), replace(last, buffers=after)))


def dim(one: Observation) -> Observation:
    """A device with one module that receives hardly any light."""
    modules = mapped(one.facts, "modules")
    port, module = next(iter(modules.items()))
    lanes = {number: replace(lane, rx_dbm=-9.5) for number, lane in module.lanes.items()}
    return replace(one, facts=replace(one.facts, modules={**modules, port: replace(module, lanes=lanes)}))


def all_dim(one: Observation) -> Observation:
    """A device whose modules all receive hardly any light on their first lane."""
    modules = mapped(one.facts, "modules")
    dark = {
        port: replace(module, lanes={**module.lanes, 1: replace(module.lanes[1], rx_dbm=-9.5)})
        for port, module in modules.items()
    }
    return replace(one, facts=replace(one.facts, modules=dark))


def misnamed(name: str) -> Sick:
    """A device whose first neighbor and first module report this name."""

    def make(one: Observation) -> Observation:
        modules, neighbors = mapped(one.facts, "modules"), mapped(one.facts, "neighbors")
        port = next(iter(neighbors))
        module = replace(modules[port], vendor=name, serial=name)
        output = {**neighbors, port: (Neighbor(name, name),)}
        return replace(one, facts=replace(one.facts, modules={**modules, port: module}, neighbors=output))

    return make


def mapped(facts: Facts, kind: str) -> dict[str, Any]:
    """A kind of facts, which must be present."""
    found = getattr(facts, kind)
    assert isinstance(found, Mapping)
    return dict(found)


def worn(one: Observation) -> Observation:
    """A device whose ports all have different readings: the largest input of a report."""
    chance = Random(one.device)  # noqa: S311 (only so that it differs)
    ports = list(mapped(one.facts, "interfaces"))
    modules = {port: _aged(module, chance) for port, module in mapped(one.facts, "modules").items()}
    lines = {
        port: replace(line, ber=10 ** chance.uniform(-12, -7)) for port, line in mapped(one.facts, "lines").items()
    }
    counters = {name: dict(places) for name, places in one.samples[-1].counters.items()}
    for port in ports:
        counters["fec_corrected"][port] += chance.randrange(10**6, 10**9)
        counters["queue_ecn_marked"][place(port, 3)] += chance.randrange(10**7)
        counters["rx_bytes"][port] = chance.randrange(10**12)
        if chance.random() < 0.3:
            counters["rx_pause"][place(port, 3)] += chance.randrange(10**6)
            counters["tx_pause"][place(port, 3)] += chance.randrange(10**6)
    last = replace(one.samples[-1], counters=counters)
    facts = replace(one.facts, modules=modules, lines=lines, counters=counters)
    return replace(one, facts=facts, samples=(one.samples[0], last))


def _aged(module: Module, chance: Random) -> Module:
    lanes = {
        number: replace(lane, rx_dbm=chance.uniform(-6, 2), tx_dbm=chance.uniform(0, 2), bias_ma=chance.uniform(50, 70))
        for number, lane in module.lanes.items()
    }
    serial = f"MT{chance.randrange(10**10):010}"
    return replace(module, lanes=lanes, serial=serial, temperature_c=chance.uniform(35, 65))
