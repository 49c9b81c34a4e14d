"""Which flows to start: the steady exchange of a whole fabric, and congestion on demand."""

from collections.abc import Iterator

from netkit.design.fabric import Fabric, Host, Nic
from netkit.errors import LabError, Problem
from netkit.lab.traffic.flow import MOST_TOTAL_PPS, FlowEnd, NicAddress, TrafficFlow
from netkit.lab.traffic.marking import line_rate_pps

STEADY = "steady"
STEADY_PPS = 5.0
STEADY_SHARE = 0.2
"""The most of the allowance for all flows that the steady exchange takes."""
DAY_S = 86400.0


def addresses(host: Host) -> tuple[NicAddress, ...]:
    """Return what to attach of a host."""
    return tuple(NicAddress(nic.interface, nic.address) for nic in host.nics)


def steady(fabric: Fabric, duration_s: float = DAY_S) -> tuple[TrafficFlow, ...]:
    """Return a ring on every rail: each NIC sends to one of its rail, behind another leaf where there is one."""
    pairs = [pair for rail in fabric.rails for pair in _ring(_members(fabric, rail.number))]
    rate_pps = min(STEADY_PPS, MOST_TOTAL_PPS * STEADY_SHARE / max(len(pairs), 1))
    return tuple(
        TrafficFlow(f"{STEADY} {source} {destination}", source, destination, rate_pps, duration_s=duration_s)
        for source, destination in pairs
    )


def incast(fabric: Fabric, target: FlowEnd, senders: int, duration_s: float = 60.0) -> tuple[TrafficFlow, ...]:
    """Return flows at line rate from several NICs of a rail to one; NICs behind other leaves send first."""
    own = next((nic for host in fabric.hosts for nic in host.nics if FlowEnd(host.name, nic.interface) == target), None)
    if own is None or senders < 1:
        raise LabError(Problem(f"no incast of {senders} senders to {target}", "name a NIC as HOST:NIC, and a sender"))
    others = [(end, nic) for end, nic in _members(fabric, own.rail) if end != target]
    if not others:
        raise LabError(Problem(f"{target} has nobody to receive from", "its rail needs a second host"))
    chosen = sorted(others, key=lambda member: member[1].leaf == own.leaf)[:senders]
    rate_pps = min(_line_rate_pps(fabric, own), MOST_TOTAL_PPS * (1 - STEADY_SHARE) / max(len(chosen), 1))
    return tuple(
        TrafficFlow(f"incast {source} {target}", source, target, rate_pps, duration_s=duration_s)
        for source, _ in chosen
    )


def _members(fabric: Fabric, rail: int) -> list[tuple[FlowEnd, Nic]]:
    return [(FlowEnd(host.name, nic.interface), nic) for host in fabric.hosts for nic in host.nics if nic.rail == rail]


def _ring(members: list[tuple[FlowEnd, Nic]]) -> Iterator[tuple[FlowEnd, FlowEnd]]:
    leaves = [nic.leaf for _, nic in members]
    nth_of_leaf = [leaves[:index].count(leaf) for index, leaf in enumerate(leaves)]
    ordered = sorted(zip(nth_of_leaf, leaves, members, strict=True), key=lambda entry: entry[:2])
    ends = [end for _, _, (end, _) in ordered]
    if len(ends) > 1:
        yield from zip(ends, [*ends[1:], ends[0]], strict=True)


def _line_rate_pps(fabric: Fabric, nic: Nic) -> float:
    speeds = {
        port.speed_gbps
        for switch in fabric.switches
        if switch.name == nic.leaf
        for port in switch.ports
        if port.name == nic.leaf_port
    }
    return float(min(line_rate_pps(max(speeds, default=0)), 1000))
