"""Commands and replies of the traffic process: flows, their patterns and NIC settings."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Annotated, Literal

from pydantic import Field, TypeAdapter

from netkit.design.fabric import Fabric, Host, Nic
from netkit.errors import LabError, Problem
from netkit.lab.model.wiring import NicSettings, NicTraffic
from netkit.lab.traffic.marking import line_rate_pps

MOST_FLOWS = 4096
MOST_TOTAL_PPS = 10_000
"""The limit for all flows together: about a tenth of a core where it was measured."""
ROCE_TOS = 26 << 2 | 2
"""DSCP 26 and ECT(0), what jobs set as their traffic class."""

Loss = Literal["", "sent", "received"]


@dataclass(frozen=True, slots=True)
class FlowEnd:
    """A NIC of a host."""

    host: str
    interface: str

    def __str__(self) -> str:
        return f"{self.host}:{self.interface}"


@dataclass(frozen=True, slots=True)
class NicAddress:
    """A NIC and the IPv4 address that its queue pairs use."""

    interface: str
    address: str


@dataclass(frozen=True, slots=True)
class TrafficFlow:
    """A stream of packets from one NIC to another, with a duration."""

    name: str
    source: FlowEnd
    destination: FlowEnd
    rate_pps: Annotated[float, Field(gt=0, le=1000)] = 1.0
    size_bytes: Annotated[int, Field(ge=0, le=4096)] = 256
    duration_s: Annotated[float, Field(gt=0, le=86400)] = 60.0


@dataclass(frozen=True, slots=True)
class NicConfig:
    """Settings of a NIC and of the job that uses it, and a NIC's fault."""

    settings: NicSettings = field(default_factory=NicSettings)
    data_tos: Annotated[int, Field(ge=0, le=255)] = ROCE_TOS
    cnp_interval_us: Annotated[int, Field(ge=0, le=10_000_000)] = 20_000
    """The shortest time between two CNPs to one sender. A real NIC's is some microseconds."""
    loses_cnps: Loss = ""
    """CNPs that a faulty NIC counts but does not send, or receives but ignores."""


@dataclass(frozen=True, slots=True)
class NicReport:
    """The counters of one NIC."""

    host: str
    interface: str
    traffic: NicTraffic


@dataclass(frozen=True, slots=True)
class FlowReport:
    """The state of one flow."""

    name: str
    rate_pps: float
    slowest_pps: float
    sent: int
    received: int
    failure: str
    """The kernel's last error on sending a packet."""


@dataclass(frozen=True, slots=True)
class Attach:
    """Open the NICs of a host."""

    host: str
    namespace: str
    """The file of its network namespace."""
    nics: tuple[NicAddress, ...]
    op: Literal["attach"] = "attach"


@dataclass(frozen=True, slots=True)
class Configure:
    """Configure a NIC."""

    nic: FlowEnd
    config: NicConfig
    op: Literal["configure"] = "configure"


@dataclass(frozen=True, slots=True)
class Start:
    """Start flows, all of them or none."""

    flows: tuple[TrafficFlow, ...]
    op: Literal["start"] = "start"


@dataclass(frozen=True, slots=True)
class Stop:
    """Stop flows by name; without names, all."""

    names: tuple[str, ...] = ()
    op: Literal["stop"] = "stop"


@dataclass(frozen=True, slots=True)
class Report:
    """Read the counters of the NICs of one host, or of all, and optionally the flows."""

    host: str = ""
    has_flows: bool = False
    op: Literal["report"] = "report"


@dataclass(frozen=True, slots=True)
class TrafficReply:
    """The answer to a command: the values asked for, or an error."""

    error: str = ""
    nics: tuple[NicReport, ...] = ()
    flows: tuple[FlowReport, ...] = ()


Command = Attach | Configure | Start | Stop | Report

COMMANDS: TypeAdapter[Command] = TypeAdapter(Annotated[Command, Field(discriminator="op")])
REPLIES: TypeAdapter[TrafficReply] = TypeAdapter(TrafficReply)


STEADY = "steady"
STEADY_PPS = 5.0
STEADY_SHARE = 0.2
"""The largest share of the limit for all flows that the steady exchange takes."""
DAY_S = 86400.0


def addresses(host: Host) -> tuple[NicAddress, ...]:
    """The NICs of a host to attach."""
    return tuple(NicAddress(nic.interface, nic.address) for nic in host.nics)


def steady(fabric: Fabric, duration_s: float = DAY_S) -> tuple[TrafficFlow, ...]:
    """A ring on every rail: each NIC sends to one on its rail, behind another leaf if there is one."""
    pairs = [pair for rail in fabric.rails for pair in _ring(_members(fabric, rail.number))]
    rate_pps = min(STEADY_PPS, MOST_TOTAL_PPS * STEADY_SHARE / max(len(pairs), 1))
    return tuple(
        TrafficFlow(f"{STEADY} {source} {destination}", source, destination, rate_pps, duration_s=duration_s)
        for source, destination in pairs
    )


def incast(fabric: Fabric, target: FlowEnd, senders: int, duration_s: float = 60.0) -> tuple[TrafficFlow, ...]:
    """Flows at line rate from several NICs of a rail to one; NICs behind other leaves come first."""
    own = next((nic for host in fabric.hosts for nic in host.nics if FlowEnd(host.name, nic.interface) == target), None)
    if own is None or senders < 1:
        raise LabError(Problem(f"no incast of {senders} senders to {target}", "name a NIC as HOST:NIC, and a sender"))
    others = [(end, nic) for end, nic in _members(fabric, own.rail) if end != target]
    if not others:
        raise LabError(Problem(f"{target} has no other NIC on its rail", "an incast needs a second host"))
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
