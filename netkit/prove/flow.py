"""Who calls whom while a change is rolled: NICs that have a way to each other before and after it, of every scope."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from netkit.design.expectation import ways
from netkit.design.fabric import Fabric, Nic
from netkit.lab.proof.calling import Call
from netkit.lab.proof.reach import Trip, every_trip, sampled

SAME_LEAF, SAME_UNIT, ACROSS = "same leaf", "same unit", "across units"
SCOPES = (SAME_LEAF, SAME_UNIT, ACROSS)
MOST_PER_SCOPE = 16


@dataclass(frozen=True, slots=True)
class Flow:
    """A call, and how far it goes; what stays on its leaf needs no spine."""

    scope: str
    call: Call


def flows(running: Fabric, intended: Fabric, most_per_scope: int = MOST_PER_SCOPE) -> tuple[Flow, ...]:
    """Return flows between NICs that keep their addresses, some of every scope."""
    nics = {(host.name, nic.interface): nic for host in running.hosts for nic in host.nics}
    known = ways(running)
    trips = [
        trip for trip in _trips(running, intended) if _stays(nics, trip) and trip.to_nic.leaf in known[trip.nic.leaf]
    ]
    return tuple(
        Flow(scope, _call(trip))
        for scope in SCOPES
        for trip in sampled([trip for trip in trips if _scope(intended, trip) == scope], most_per_scope)
    )


def _trips(running: Fabric, intended: Fabric) -> Iterator[Trip]:
    yield from every_trip(intended, is_across=False)
    if running.cross_rail == intended.cross_rail == "routed":
        yield from every_trip(intended, is_across=True)


def _stays(nics: Mapping[tuple[str, str], Nic], trip: Trip) -> bool:
    ends = ((trip.host, trip.nic), (trip.to_host, trip.to_nic))
    known = [(nics.get((host, nic.interface)), nic) for host, nic in ends]
    return all(was is not None and (was.address, was.leaf) == (nic.address, nic.leaf) for was, nic in known)


def _scope(fabric: Fabric, trip: Trip) -> str:
    near, far = fabric.switch(trip.nic.leaf), fabric.switch(trip.to_nic.leaf)
    if near.name == far.name:
        return SAME_LEAF
    return SAME_UNIT if (near.pod, near.unit) == (far.pod, far.unit) else ACROSS


def _call(trip: Trip) -> Call:
    name = f"{trip.host}:{trip.nic.interface} → {trip.to_host}:{trip.to_nic.interface}"
    return Call(name, trip.host, trip.nic.interface, trip.nic.address, trip.to_nic.address)
