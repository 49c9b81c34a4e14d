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
