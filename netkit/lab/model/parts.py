"""Transceivers and cables by what they are made for: healthy light, the module's own limits, and what is printed on it.

Transmit and receive ranges follow the standards where those are public; the rest is this lab's choice.
"""

from dataclasses import dataclass
from functools import cache
from typing import Literal

from netkit.design.fabric import Cable
from netkit.hardware import Catalog, module_for
from netkit.lab.reading import Limits

Kind = Literal["optic", "active", "copper"]
KINDS: dict[str, Kind] = {"optical": "optic", "aoc": "active", "dac": "copper"}
VENDOR = "NVIDIA"
FIRMWARE = "46.120.12"
REVISION = "A3"
TEMPERATURE = Limits(-10, 0, 70, 80)
VOLTAGE = Limits(2.97, 3.135, 3.465, 3.63)


@dataclass(frozen=True, slots=True)
class Optics:
    """The light of one kind of lane."""

    tx_dbm: tuple[float, float]
    """What a healthy lane sends."""
    bias_ma: tuple[float, float]
    loss_db_per_km: float
    tx_limits: Limits
    rx_limits: Limits
    bias_limits: Limits


DR = Optics(
    (0.8, 2.0), (74, 92), 0.4, Limits(-5.9, -2.9, 4.0, 5.0), Limits(-8.9, -5.9, 4.0, 5.0), Limits(10, 15, 125, 130)
)
FR = Optics(
    (0.6, 1.8), (74, 92), 0.4, Limits(-6.3, -3.3, 3.5, 4.5), Limits(-10.3, -7.3, 3.5, 4.5), Limits(10, 15, 125, 130)
)
SR = Optics(
    (0.6, 1.8), (7.2, 8.8), 3.0, Limits(-7.6, -4.6, 4.0, 5.0), Limits(-10.4, -8.4, 4.0, 5.0), Limits(2, 3, 12, 15)
)
LR = Optics(
    (1.0, 2.2), (74, 92), 0.4, Limits(-5.7, -2.7, 5.1, 6.1), Limits(-13.0, -11.0, 5.1, 6.1), Limits(10, 15, 125, 130)
)
STANDARDS = {"DR": DR, "FR": FR, "SR": SR, "VR": SR, "LR": LR}
NUMBERS = {
    "800G-2xDR4": "MMS4X00-NS",
    "400G-DR4": "MMS4X00-NS400",
    "800G-2xSR4": "MMA4Z00-NS",
    "400G-SR4": "MMA4Z00-NS400",
    "800G-2xFR4": "MMS4X50-NM",
    "800G-DAC-2x400": "MCP7Y00-N003",
}


@dataclass(frozen=True, slots=True)
class Part:
    """What is plugged into a cage."""

    kind: Kind
    media: str
    vendor: str
    number: str
    ports: int
    """How many ports one module serves."""
    lanes: int
    """Lanes in use per port."""
    optics: Optics | None


@cache
def part(cable: Cable, ports_per_cage: int, lanes_per_port: int) -> Part:
    """Return what a cable has at an end with a cage for so many ports."""
    known = Catalog().media()
    entry = known.get(cable.media)
    entry = (module_for(known, cable.media, ports_per_cage) if cable.kind == "optical" else None) or entry
    media = entry.name if entry else cable.media
    kind = KINDS.get(cable.kind, "copper")
    lanes = entry.lanes if entry and entry.lanes else lanes_per_port
    ports = entry.ports_per_module if entry else ports_per_cage
    has_name = media in NUMBERS
    return Part(
        kind=kind,
        media=media,
        vendor=VENDOR if has_name else "Lab",
        number=NUMBERS.get(media, media),
        ports=min(ports, ports_per_cage),
        lanes=lanes,
        optics=_optics(media) if kind == "optic" else None,
    )


def _optics(media: str) -> Optics:
    return next((optics for name, optics in STANDARDS.items() if name in media), DR)
