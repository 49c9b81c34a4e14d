"""What a source of truth and an intent can both say about a fabric."""

from collections.abc import Mapping
from dataclasses import dataclass

PortEnd = tuple[str, str]
"""A device and one of its ports."""


@dataclass(frozen=True, slots=True)
class DeviceRecord:
    """A device; empty values are not known."""

    name: str
    serial: str = ""
    rack: str = ""
    rack_unit: str = ""


@dataclass(frozen=True, slots=True)
class TruthRecords:
    """The devices by name, and each cabled port with the port at its other end."""

    devices: Mapping[str, DeviceRecord]
    peers: Mapping[PortEnd, PortEnd]


@dataclass(frozen=True, slots=True)
class DeviceProperties:
    """What else a source says of a device."""

    role: str
    model: str
    asn: int | None
    management_port: str
    """The first interface that is marked as one of management."""


@dataclass(frozen=True, slots=True)
class CableProperties:
    """What a source says of a cable."""

    length_m: float | None
    label: str


@dataclass(frozen=True, slots=True)
class TruthInventory:
    """Everything of a source that an intent can have."""

    records: TruthRecords
    devices: Mapping[str, DeviceProperties]
    addresses: Mapping[PortEnd, str]
    """The first IPv4 address of each interface, with its length."""
    cables: Mapping[PortEnd, CableProperties]
    """By either end."""
    prefixes: tuple[str, ...]
