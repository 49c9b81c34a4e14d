"""Transceivers: optical power, limits and bit error rates."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal


@dataclass(frozen=True, slots=True)
class Limits:
    """A module's own limits of a reading; None where it has none."""

    low_alarm: float | None = None
    low_warning: float | None = None
    high_warning: float | None = None
    high_alarm: float | None = None

    @property
    def is_range(self) -> bool:
        """Whether the limits form a range: a module without limits has zeros everywhere."""
        ends = (self.low_alarm, self.low_warning, self.high_warning, self.high_alarm)
        known = [end for end in ends if end is not None]
        return len(known) == 1 or len(set(known)) > 1


@dataclass(frozen=True, slots=True)
class Lane:
    """One lane; None where the module does not measure. No optical power is -40 dBm."""

    rx_dbm: float | None = None
    tx_dbm: float | None = None
    bias_ma: float | None = None
    has_rx_loss: bool | None = None
    has_tx_fault: bool | None = None


Quantity = Literal["rx_dbm", "tx_dbm", "bias_ma", "temperature_c", "voltage_v"]


@dataclass(frozen=True, slots=True)
class Module:
    """The transceiver or cable in a port."""

    is_present: bool = True
    kind: Literal["optic", "aoc", "copper", "unknown"] = "unknown"
    identifier: str = ""
    """Form factor or compliance in the device's words, such as `OSFP 400GBASE-DR4`."""
    vendor: str = ""
    part: str = ""
    serial: str = ""
    firmware: str = ""
    temperature_c: float | None = None
    voltage_v: float | None = None
    lanes: Mapping[int, Lane] = field(default_factory=dict)
    """Lanes in use, numbered from 1."""
    limits: Mapping[Quantity, Limits] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Line:
    """The received signal of a port; FEC counts are counters."""

    fec: str = ""
    ber: float | None = None
    """Bit error rate before FEC."""
    effective_ber: float | None = None
    """Bit error rate after FEC."""
    lane_ber: Mapping[int, float] = field(default_factory=dict)
