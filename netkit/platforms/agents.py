"""What the SNMP agent and the gNMI server of a NOS have of their own; its package says so in its module `agents`."""

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
"""Leaves whose sum a counter is, the preferred ones first."""
Count = tuple[tuple[str, str], int]
"""The server's name of a count and the place, and the count."""


class SensorValue(NamedTuple):
    """One value of a module."""

    quantity: Quantity
    lane: int
    value: float | None
    limits: Limits


@dataclass(frozen=True, slots=True)
class SnmpDialect:
    """What an agent has of its own."""

    release: re.Pattern[str]
    """How sysDescr names the release."""
    model: re.Pattern[str] | None = None
    tables: tuple[str, ...] = ()
    """The vendor's tables that count."""
    counters: Callable[..., Facts] | None = None
    """(ifTable, ifXTable, those tables, wanted ports) → counters."""
    port_at: Callable[[int], str] | None = None
    """ifIndex → port, where an agent calls ports by other names; empty when it is none."""
    sensor_limits: tuple[str, ...] = ()
    is_lane_a_port: bool = False
    """Whether a sensor names a lane as the port that could begin there."""
    own_lanes: Callable[[str, list[SensorValue], Iterable[str]], list[SensorValue]] | None = None
    """(port, values of its module, all ports) → the values that are its own."""


@dataclass(frozen=True, slots=True)
class GnmiDatabase:
    """A server that shows a database of its own, not OpenConfig."""

    ports: str
    """The path of the table that names the ports."""
    aliases: Callable[[Iterable[Update]], Mapping[str, str]]
    """What the server calls ports → ports."""
    counts: Callable[[Update, Mapping[str, str]], Iterator[Count]]
    counters: Mapping[str, Sums]
    views: Callable[[tuple[str, ...]], tuple[View, ...]]


@dataclass(frozen=True, slots=True)
class GnmiDialect:
    """What a server has of its own."""

    streamed: tuple[str, ...]
    """What is streamed of its counters, unless access.yaml names other paths."""
    only_streams: Absent | None = None
    """Why it cannot be asked once."""
    database: GnmiDatabase | None = None


@dataclass(frozen=True, slots=True)
class Agents:
    """The agents of a NOS."""

    port: re.Pattern[str]
    """How its ports are called."""
    snmp: SnmpDialect
    gnmi: GnmiDialect | None = None


def agents_of(platform: str) -> Agents | None:
    """Return what is known of a platform's agents; None when its package says nothing of them."""
    module = registry.optional(platform, "agents")
    return None if module is None else module.AGENTS
