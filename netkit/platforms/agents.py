"""Specifics of a NOS's SNMP agent and gNMI server, which its package defines in its module `agents`."""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import NamedTuple

from netkit.facts import Absent, Facts
from netkit.facts.optic import Limits, Quantity
from netkit.platforms import registry
from netkit.platforms.gnmi.message import Update
from netkit.platforms.view import View

Sums = tuple[tuple[str, ...], ...]
"""Groups of leaves whose sum is a counter, the preferred group first."""
Count = tuple[tuple[str, str], int]
"""((the server's name of the counter, place), value)."""


class SensorValue(NamedTuple):
    """One reading of a transceiver module."""

    quantity: Quantity
    lane: int
    value: float | None
    limits: Limits


@dataclass(frozen=True, slots=True)
class SnmpDialect:
    """Specifics of an SNMP agent."""

    release: re.Pattern[str]
    """Finds the release in sysDescr."""
    model: re.Pattern[str] | None = None
    tables: tuple[str, ...] = ()
    """The vendor's tables with counters."""
    counters: Callable[..., Facts] | None = None
    """(ifTable, ifXTable, `tables`, wanted ports) → counters."""
    port_at: Callable[[int], str] | None = None
    """ifIndex → port, for agents that use other port names; empty if it is not a port."""
    sensor_limits: tuple[str, ...] = ()
    is_lane_a_port: bool = False
    """Whether sensors name a lane after the port that could start there."""
    own_lanes: Callable[[str, list[SensorValue], Iterable[str]], list[SensorValue]] | None = None
    """(port, readings of its module, all ports) → the readings of this port."""


@dataclass(frozen=True, slots=True)
class GnmiDatabase:
    """A server that exposes its own database instead of OpenConfig."""

    ports: str
    """The path of the table that names the ports."""
    aliases: Callable[[Iterable[Update]], Mapping[str, str]]
    """Updates → the server's port names, mapped to ours."""
    counts: Callable[[Update, Mapping[str, str]], Iterator[Count]]
    counters: Mapping[str, Sums]
    views: Callable[[tuple[str, ...]], tuple[View, ...]]


@dataclass(frozen=True, slots=True)
class GnmiDialect:
    """Specifics of a gNMI server."""

    streamed: tuple[str, ...]
    """Counter paths to subscribe to, unless access.yaml names others."""
    only_streams: Absent | None = None
    """Why it supports subscriptions only, not polling."""
    database: GnmiDatabase | None = None


@dataclass(frozen=True, slots=True)
class Agents:
    """The agents of a NOS."""

    port: re.Pattern[str]
    """Matches its port names."""
    snmp: SnmpDialect
    gnmi: GnmiDialect | None = None


def agents_of(platform: str) -> Agents | None:
    """Load the agents of a platform; None if its package defines none."""
    module = registry.optional(platform, "agents")
    return None if module is None else module.AGENTS
