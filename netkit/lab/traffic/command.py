"""The words between the lab and its traffic process: one JSON object a line each way."""

from dataclasses import dataclass
from typing import Annotated, Literal

from pydantic import Field, TypeAdapter

from netkit.lab.traffic.flow import End, Flow, FlowReport, NicAddress, NicConfig, NicReport


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

    nic: End
    config: NicConfig
    op: Literal["configure"] = "configure"


@dataclass(frozen=True, slots=True)
class Start:
    """Start flows, all of them or none."""

    flows: tuple[Flow, ...]
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
class Reply:
    """The answer to a command: what was asked for, or why it was refused."""

    error: str = ""
    nics: tuple[NicReport, ...] = ()
    flows: tuple[FlowReport, ...] = ()


Command = Attach | Detach | Configure | Start | Stop | Report

COMMANDS: TypeAdapter[Command] = TypeAdapter(Annotated[Command, Field(discriminator="op")])
REPLIES: TypeAdapter[Reply] = TypeAdapter(Reply)
