"""Modules and what their light and their bits are like."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal


@dataclass(frozen=True, slots=True)
class Limits:
    """Between which values a reading is well, by the module's own data; None where it has no such limit."""

    low_alarm: float | None = None
    low_warning: float | None = None
    high_warning: float | None = None
    high_alarm: float | None = None

    @property
    def is_range(self) -> bool:
        """Whether they leave anything between them: a module that was never given any has zeros at all ends."""
        ends = (self.low_alarm, self.low_warning, self.high_warning, self.high_alarm)
        told = [end for end in ends if end is not None]
        return len(told) == 1 or len(set(told)) > 1


@dataclass(frozen=True, slots=True)
class Lane:
    """One lane of light; None where the module does not measure. No light is -40 dBm."""

    rx_dbm: float | None = None
    tx_dbm: float | None = None
    bias_ma: float | None = None
    has_rx_loss: bool | None = None
    has_tx_fault: bool | None = None


Quantity = Literal["rx_dbm", "tx_dbm", "bias_ma", "temperature_c", "voltage_v"]


@dataclass(frozen=True, slots=True)
class Module:
    """What is plugged into a port."""

    is_present: bool = True
    kind: Literal["optic", "aoc", "copper", "unknown"] = "unknown"
    identifier: str = ""
    """Form factor or compliance, as the device names it, such as `OSFP 400GBASE-DR4`."""
    vendor: str = ""
    part: str = ""
    serial: str = ""
    firmware: str = ""
    temperature_c: float | None = None
    voltage_v: float | None = None
    lanes: Mapping[int, Lane] = field(default_factory=dict)
    """Number from 1 → the lane, those in use."""
    limits: Mapping[Quantity, Limits] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Line:
    """The bits that arrive at a port; the counts of FEC are counters."""

    fec: str = ""
    ber: float | None = None
    """Bit error rate before FEC."""
    effective_ber: float | None = None
    """Bit error rate after FEC."""
    lane_ber: Mapping[int, float] = field(default_factory=dict)
