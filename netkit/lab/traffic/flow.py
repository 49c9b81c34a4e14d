"""The traffic of a lab as it can be asked for: flows, their patterns, how NICs behave. All of it is bounded."""

from dataclasses import dataclass, field
from typing import Annotated, Literal

from pydantic import Field, TypeAdapter

from netkit.lab.model.inputs import NicSettings, NicTraffic

MOST_FLOWS = 4096
MOST_TOTAL_PPS = 10_000
"""All flows together: about a tenth of a core where it was measured."""
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
    """A stream of packets from one NIC to another, which ends by itself."""

    name: str
    source: FlowEnd
    destination: FlowEnd
    rate_pps: Annotated[float, Field(gt=0, le=1000)] = 1.0
    size_bytes: Annotated[int, Field(ge=0, le=4096)] = 256
    duration_s: Annotated[float, Field(gt=0, le=86400)] = 60.0


@dataclass(frozen=True, slots=True)
class NicConfig:
    """How a NIC and the job that uses it are set, and what is wrong with the NIC."""

    settings: NicSettings = field(default_factory=NicSettings)
    data_tos: Annotated[int, Field(ge=0, le=255)] = ROCE_TOS
    cnp_interval_us: Annotated[int, Field(ge=0, le=10_000_000)] = 20_000
    """The least time between two CNPs to one sender. A NIC's is some microseconds."""
    loses_cnps: Loss = ""
    """CNPs that a faulty NIC counts and never sends, or receives and never sees."""


@dataclass(frozen=True, slots=True)
class NicReport:
    """What one NIC counted."""

    host: str
    interface: str
    traffic: NicTraffic


@dataclass(frozen=True, slots=True)
class FlowReport:
    """How one flow is doing."""

    name: str
    rate_pps: float
    slowest_pps: float
    sent: int
    received: int
    failure: str
    """What the kernel answered the last time it did not take a packet."""


@dataclass(frozen=True, slots=True)
class Attach:
    """Open the NICs of a host."""

    host: str
    namespace: str
    """The file of its network namespace."""
    nics: tuple[NicAddress, ...]
    op: Literal["attach"] = "attach"


@dataclass(frozen=True, slots=True)
class Detach:
    """Forget a host."""

    host: str
    op: Literal["detach"] = "detach"


@dataclass(frozen=True, slots=True)
class Configure:
    """Set how a NIC behaves."""

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
    """Ask for what the NICs of one host, or of all, counted, and for the flows."""

    host: str = ""
    has_flows: bool = False
    op: Literal["report"] = "report"


@dataclass(frozen=True, slots=True)
class TrafficReply:
    """The answer to a command: what was asked for, or why it was refused."""

    error: str = ""
    nics: tuple[NicReport, ...] = ()
    flows: tuple[FlowReport, ...] = ()


Command = Attach | Detach | Configure | Start | Stop | Report

COMMANDS: TypeAdapter[Command] = TypeAdapter(Annotated[Command, Field(discriminator="op")])
REPLIES: TypeAdapter[TrafficReply] = TypeAdapter(TrafficReply)
