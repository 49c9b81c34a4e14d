"""Whether the plan of the lab has every kind of change that the plan of the fabric has."""

from dataclasses import replace

import pytest

from netkit.design import Fabric
from netkit.design.select import Device
from netkit.plan import Plan, Running, make
from netkit.prove.proof import cut, untried
from netkit.render import Engine, render
from tests import intents

FABRIC = intents.fabric(intents.BASE)
ECN = {"lossless": {"ecn": {400: {"min_bytes": 300_000, "max_bytes": 1_500_000}}}}

MTU = {"hosts": {"mtu_bytes": 4200}}


def planned(running: Fabric, intended: Fabric) -> Plan:
    def files(fabric: Fabric) -> dict[str, dict[str, str]]:
        devices: list[Device] = [*fabric.switches, *fabric.hosts]
        return {one.device: dict(one.files) for one in render(fabric, devices, Engine())}

    there = {name: Running(found) for name, found in files(running).items() if intended.device(name) is not None}
    wanted = {name: found for name, found in files(intended).items() if name in there}
    return make(intended, there, wanted)


def tried(running: Fabric, intended: Fabric, *left_out: str) -> tuple[bool, tuple[str, ...]]:
    """Whether anything changes in a lab without some devices, and what it does not test."""
    names = {*running.names} & {*intended.names} - {*left_out}
    plan = planned(cut(running, names), cut(intended, names))
    return bool(plan.changed), untried(planned(running, intended), plan, names)


def test_a_change_of_booted_devices_is_tested() -> None:
    assert tried(FABRIC, intents.fabric(intents.values(ECN))) == (True, ())


@pytest.mark.parametrize(
    ("platform", "version"), [("nvue", "5.16.1"), ("sonic", "202505"), ("eos", "4.35.1F"), ("frr", "10.2")]
)
def test_a_slice_of_a_change_of_every_port_is_tested(platform: str, version: str) -> None:
    before, after = (intents.fabric(intents.on_platform(platform, version, changes)) for changes in ({}, MTU))
    assert tried(before, after, "leaf02", "leaf03", "leaf04", "gpu02", "gpu05", "gpu06") == (True, ())


def test_removed_hosts_are_not_tested() -> None:
    fewer = intents.fabric(intents.values({"units": [{"unit": 1, "hosts": 2}, {"unit": 2, "hosts": 1}]}))
    assert tried(FABRIC, fewer) == (False, ("leaf03", "leaf04"))


def test_removals_beside_another_change_are_not_tested() -> None:
    units = {"units": [{"unit": 1, "hosts": 2}, {"unit": 2, "hosts": 1}]}
    assert tried(FABRIC, intents.fabric(intents.values({**ECN, **units}))) == (True, ("leaf03", "leaf04"))


def test_a_drain_towards_a_device_outside_the_lab_is_not_tested() -> None:
    spines = [replace(one, drain_neighbors=("leaf03",)) if one.name == "spine01" else one for one in FABRIC.switches]
    drained = replace(FABRIC, switches=tuple(spines))
    assert tried(FABRIC, drained) == (True, ())
    assert tried(FABRIC, drained, "leaf03", "leaf04") == (False, ("spine01",))
