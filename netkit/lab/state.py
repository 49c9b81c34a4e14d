"""The configuration of a switch of the lab in one form, independent of its NOS.

A personality translates its own configuration into it; `realise` applies it to kernel and FRR, and the hardware model
uses the parts that namespaces lack.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from ipaddress import IPv4Address, IPv4Network
from typing import Literal

PRIORITIES = 8
CODE_POINTS = 64
STP_PRIORITIES = (4096, 8192)
"""The bridge priorities of the first and the second switch of a pair."""


@dataclass(frozen=True, slots=True)
class EcnState:
    """The ECN marking profile of a traffic class."""

    min_bytes: int
    max_bytes: int
    probability_percent: int


@dataclass(frozen=True, slots=True)
class SchedulerState:
    """How a traffic class is scheduled: strict priority, or by weight."""

    mode: Literal["strict", "weighted"]
    weight_percent: int = 0


@dataclass(frozen=True, slots=True)
class WatchdogState:
    """The PFC watchdog of a port; 0 means the switch's default."""

    detection_ms: int = 0
    restoration_ms: int = 0


@dataclass(frozen=True, slots=True)
class QosState:
    """QoS of a port. The map has 64 entries, or none if the port does not trust the DSCP."""

    priority_of_dscp: tuple[int, ...] = ()
    class_of_priority: tuple[int, ...] = tuple(range(PRIORITIES))
    pfc_priorities: frozenset[int] = frozenset()
    ecn: Mapping[int, EcnState] = field(default_factory=dict)
    schedulers: Mapping[int, SchedulerState] = field(default_factory=dict)
    watchdog: WatchdogState | None = None
    cable_length_m: float = 0


@dataclass(frozen=True, slots=True)
class FilterRule:
    """A rule of an ingress filter: the first match applies; an empty network matches everything."""

    is_permit: bool
    source: str = ""
    destination: str = ""


@dataclass(frozen=True, slots=True)
class PortState:
    """A port by its NOS name. With a VLAN it is an access port, without one it is routed."""

    name: str
    is_enabled: bool = True
    mtu_bytes: int = 1500
    addresses: tuple[str, ...] = ()
    access_vlan: int = 0
    tagged_vlans: tuple[int, ...] = ()
    description: str = ""
    speed_gbps: int = 0
    fec: str = ""
    adaptive_routing: bool = False
    qos: QosState = QosState()
    rules: tuple[FilterRule, ...] = ()
    """The ingress access list; packets that no rule matches pass."""
    alias: str = ""
    """The port's name in SNMP and LLDP, if it differs."""


@dataclass(frozen=True, slots=True)
class VlanState:
    """A VLAN and its gateway, by the NOS name of the interface."""

    number: int
    interface: str
    addresses: tuple[str, ...] = ()
    mtu_bytes: int = 1500
    is_enabled: bool = True
    stp_priority: int = 0
    """The bridge priority of the spanning tree that emulates MLAG in the lab; 0: none."""


@dataclass(frozen=True, slots=True)
class SnmpV3User:
    """A version 3 user with its secrets in the clear: they never leave the node."""

    name: str
    auth_secret: str
    priv_secret: str


@dataclass(frozen=True, slots=True)
class SnmpState:
    """The configuration of the SNMP agent."""

    users: tuple[SnmpV3User, ...] = ()
    communities: tuple[str, ...] = ()
    location: str = ""
    contact: str = ""


@dataclass(frozen=True, slots=True)
class GnmiState:
    """The configuration of the gNMI server."""

    port: int
    has_tls: bool = True
    has_authentication: bool = True
    """Whether it asks for user and password."""
    is_cumulus: bool = False
    """Behave like Cumulus Linux: streams only, and HTTP basic authentication."""


@dataclass(frozen=True, slots=True)
class SwitchState:
    """A whole switch. `frr` is its routing configuration in FRR's syntax, with kernel port names."""

    hostname: str
    ports: tuple[PortState, ...] = ()
    vlans: tuple[VlanState, ...] = ()
    loopback_addresses: tuple[str, ...] = ()
    frr: str = ""
    snmp: SnmpState | None = None
    gnmi: GnmiState | None = None
    has_lldp: bool = True
    has_peer: bool = False
    """Whether it is one of a pair with a dedicated link."""
    peer_addresses: tuple[str, ...] = ()
    """Addresses of the switch on that link."""
    adaptive_routing: bool = False
    access: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Service (ssh, https, snmp or gnmi) → networks that may reach it; any network where it is missing."""

    def refused(self, address: str) -> frozenset[str]:
        """The services that an address may not reach."""
        return frozenset(
            service
            for service, networks in self.access.items()
            if address and not any(IPv4Address(address) in IPv4Network(network) for network in networks)
        )
