"""Transceivers and cables: healthy optical power, the module's own thresholds, and the effect of faults."""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import cache
from typing import Literal

from netkit.design.fabric import Cable, Fabric
from netkit.hardware import Catalog, module_for
from netkit.lab.faults.fault import InjectedFault
from netkit.lab.model.wiring import FabricWiring, LinkEnd, between, number
from netkit.lab.reading import LaneReading, ModuleThresholds, TransceiverReading


@dataclass(frozen=True, slots=True)
class Ailment:
    """How a module differs from a healthy one. Lane 0 means all lanes."""

    tx_loss_db: float = 0
    tx_lane: int = 0
    rx_loss_db: float = 0
    rx_lane: int = 0
    temperature_c: float = 0
    firmware: str = ""
    rx_ber: float = 0


HEALTHY = Ailment()


def of_module(faults: Iterable[InjectedFault]) -> Ailment:
    """Combine the faults of one end into the state of its module."""
    ailment = HEALTHY
    for fault in faults:
        match fault.name:
            case "dim-optic":
                lane = int(fault.number("lane"))
                ailment = replace(ailment, tx_loss_db=fault.number("db"), tx_lane=lane)
            case "dirty-lane":
                lane, ber = int(fault.number("lane")), fault.number("ber")
                ailment = replace(ailment, rx_loss_db=fault.number("db"), rx_lane=lane, rx_ber=ber)
            case "hot-optic":
                ailment = replace(ailment, temperature_c=fault.number("celsius"))
            case "mixed-optic-firmware":
                ailment = replace(ailment, firmware=fault.text("firmware"))
    return ailment


Kind = Literal["optic", "active", "copper"]
KINDS: dict[str, Kind] = {"optical": "optic", "aoc": "active", "dac": "copper"}
VENDOR = "NVIDIA"
FIRMWARE = "46.120.12"
REVISION = "A3"
TEMPERATURE = ModuleThresholds(-10, 0, 70, 80)
VOLTAGE = ModuleThresholds(2.97, 3.135, 3.465, 3.63)


@dataclass(frozen=True, slots=True)
class Optics:
    """Optical properties of one kind of lane."""

    tx_dbm: tuple[float, float]
    """Transmit power of a healthy lane, lowest and highest."""
    bias_ma: tuple[float, float]
    loss_db_per_km: float
    tx_limits: ModuleThresholds
    rx_limits: ModuleThresholds
    bias_limits: ModuleThresholds


DR = Optics(
    (0.8, 2.0),
    (74, 92),
    0.4,
    ModuleThresholds(-5.9, -2.9, 4.0, 5.0),
    ModuleThresholds(-8.9, -5.9, 4.0, 5.0),
    ModuleThresholds(10, 15, 125, 130),
)
FR = Optics(
    (0.6, 1.8),
    (74, 92),
    0.4,
    ModuleThresholds(-6.3, -3.3, 3.5, 4.5),
    ModuleThresholds(-10.3, -7.3, 3.5, 4.5),
    ModuleThresholds(10, 15, 125, 130),
)
SR = Optics(
    (0.6, 1.8),
    (7.2, 8.8),
    3.0,
    ModuleThresholds(-7.6, -4.6, 4.0, 5.0),
    ModuleThresholds(-10.4, -8.4, 4.0, 5.0),
    ModuleThresholds(2, 3, 12, 15),
)
LR = Optics(
    (1.0, 2.2),
    (74, 92),
    0.4,
    ModuleThresholds(-5.7, -2.7, 5.1, 6.1),
    ModuleThresholds(-13.0, -11.0, 5.1, 6.1),
    ModuleThresholds(10, 15, 125, 130),
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
class PluggedPart:
    """The module or cable in a cage."""

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
def part(cable: Cable, ports_per_cage: int, lanes_per_port: int) -> PluggedPart:
    """What a cable has at an end, in a cage with this many ports."""
    known = Catalog().media()
    entry = known.get(cable.media)
    entry = (module_for(known, cable.media, ports_per_cage) if cable.kind == "optical" else None) or entry
    media = entry.name if entry else cable.media
    kind = KINDS.get(cable.kind, "copper")
    lanes = entry.lanes if entry and entry.lanes else lanes_per_port
    ports = entry.ports_per_module if entry else ports_per_cage
    has_name = media in NUMBERS
    return PluggedPart(
        kind=kind,
        media=media,
        vendor=VENDOR if has_name else "Lab",
        number=NUMBERS.get(media, media),
        ports=min(ports, ports_per_cage),
        lanes=lanes,
        optics=next((optics for name, optics in STANDARDS.items() if name in media), DR) if kind == "optic" else None,
    )


LANES_PER_CAGE = 8


@dataclass(frozen=True, slots=True)
class CagePosition:
    """The cage and lanes of one end."""

    device: str
    cage: str
    form: str
    first_lane: int
    lanes_shown: int
    """Lanes a module reports for this port; those beyond its own are dark."""
    part: PluggedPart
    cable: Cable


def places(fabric: Fabric, wiring: FabricWiring) -> dict[LinkEnd, CagePosition]:
    found: dict[LinkEnd, CagePosition] = {}
    for switch in fabric.switches:
        widths = {cage.number: len(cage.ports) for cage in switch.cages}
        for port in switch.cabled:
            if port.cable is None:
                continue
            width = widths.get(port.cage, 1)
            plugged = part(port.cable, width, port.split.lanes_per_port)
            form = switch.model.cage_form
            found[LinkEnd(switch.name, port.name)] = _place(
                switch.name, str(port.cage), form, port.lane_port, plugged, port.cable, switch.model.lanes_per_cage
            )
    for host in fabric.hosts:
        slots = {nic.interface: nic.pci for nic in host.nics}
        for name in host.cabled:
            end = LinkEnd(host.name, name)
            if end not in wiring.outgoing:
                continue
            cable = wiring.outgoing[end].cable
            rail = next((rail for rail in host.model.rails if rail.pci == slots.get(name)), None)
            plugged = part(cable, (host.model.ports_per_cage or 1) if rail else 1, 4)
            cage = rail.cage if rail and rail.cage else name
            position = (rail.cage_port or 1) - 1 if rail else 0
            found[end] = _place(host.name, cage, host.model.cage_form, position, plugged, cable)
    return found


def _place(
    device: str,
    cage: str,
    form: str,
    position: int,
    plugged: PluggedPart,
    cable: Cable,
    lanes_per_cage: int = LANES_PER_CAGE,
) -> CagePosition:
    is_shared = plugged.ports > 1
    lanes_shown = plugged.lanes if is_shared else max(plugged.lanes, lanes_per_cage)
    first_lane = position * plugged.lanes + 1 if is_shared else 1
    return CagePosition(device, cage, form, first_lane, lanes_shown, plugged, cable)


DARK_DBM = -40.0
DARK = LaneReading(DARK_DBM, DARK_DBM, 0.0)
DIGITS = "0123456789ABCDEFGHJKLMNPQRSTUVWXYZ"
HEALTHY_BER = {"optic": (-9.6, -8.2), "active": (-9.6, -8.2), "copper": (-10.5, -9.0)}
AGEING_MA_PER_DB = 2.5
"""A module raises the bias current of a weak laser."""
DIM_BER_PER_DB = 0.12
"""Decades of bit error rate per dB of missing optical power."""


def module(
    end: LinkEnd,
    place: CagePosition,
    peer: LinkEnd,
    ailments: tuple[Ailment, Ailment],
    *,
    is_sending: bool,
    is_receiving: bool,
) -> TransceiverReading:
    """A module's reading, given the faults at its own end and at the far end."""
    own, far = ailments
    optics = place.part.optics
    is_powered = place.part.kind != "copper"
    return TransceiverReading(
        kind=place.part.kind,
        identifier=place.form.removesuffix("-RHS"),  # a flat top is not a different kind of module
        vendor=place.part.vendor,
        part=place.part.number,
        serial=_serial(place),
        firmware=(own.firmware or FIRMWARE) if is_powered else "",
        revision=REVISION,
        media=place.part.media,
        length_m=place.cable.length_m,
        temperature_c=round(own.temperature_c or between(44, 56, "temperature", place.device, place.cage), 2)
        if is_powered
        else 0.0,
        voltage_v=round(between(3.27, 3.33, "voltage", place.device, place.cage), 4) if is_powered else 0.0,
        lanes=_lanes(optics, end, place, peer, own, far, (is_sending, is_receiving)) if optics else (),
        temperature_limits=TEMPERATURE if is_powered else None,
        voltage_limits=VOLTAGE if is_powered else None,
        rx_limits=optics.rx_limits if optics else None,
        tx_limits=optics.tx_limits if optics else None,
        bias_limits=optics.bias_limits if optics else None,
        first_lane=place.first_lane,
    )


def _lanes(
    optics: Optics,
    end: LinkEnd,
    place: CagePosition,
    peer: LinkEnd,
    own: Ailment,
    far: Ailment,
    lit: tuple[bool, bool],
) -> tuple[LaneReading, ...]:
    is_sending, is_receiving = lit
    lanes = []
    for lane in range(1, place.part.lanes + 1):
        tx_loss, far_tx_loss = _loss(own.tx_loss_db, own.tx_lane, lane), _loss(far.tx_loss_db, far.tx_lane, lane)
        fibre_loss = place.cable.length_m / 1000 * optics.loss_db_per_km
        connector_loss = between(0.5, 1.1, "connectors", str(end), str(peer), lane)
        rx = _tx_dbm(optics, peer, lane) - far_tx_loss - (fibre_loss + connector_loss)
        rx -= _loss(own.rx_loss_db, own.rx_lane, lane)
        tx = _tx_dbm(optics, end, lane) - tx_loss
        bias = between(*optics.bias_ma, "bias", str(end), lane) + tx_loss * AGEING_MA_PER_DB * optics.bias_ma[1] / 92
        lanes.append(
            LaneReading(
                rx_dbm=round(max(rx + _error("rx", end, lane), DARK_DBM), 2) if is_receiving else DARK_DBM,
                tx_dbm=round(tx + _error("tx", end, lane), 2) if is_sending else DARK_DBM,
                bias_ma=round(bias, 2) if is_sending else 0.0,
            )
        )
    return (*lanes, *(DARK for _ in range(place.lanes_shown - place.part.lanes)))


def _tx_dbm(optics: Optics, end: LinkEnd, lane: int) -> float:
    return between(*optics.tx_dbm, "tx", str(end), lane)


def _error(what: str, end: LinkEnd, lane: int) -> float:
    """The measurement error of the module."""
    return between(-0.25, 0.25, "error", what, str(end), lane)


def _loss(db: float, faulty_lane: int, lane: int) -> float:
    return db if faulty_lane in {0, lane} else 0.0


def _serial(place: CagePosition) -> str:
    rest = number("serial", place.device, place.cage)
    week = rest % 52 + 1
    letters = ""
    for _ in range(8):
        rest, digit = divmod(rest, len(DIGITS))
        letters += DIGITS[digit]
    return f"MT24{week:02}{letters}"


def error_rate(end: LinkEnd, kind: Kind, own: Ailment, far: Ailment) -> float:
    """The pre-FEC bit error rate at an end."""
    low, high = HEALTHY_BER[kind]
    healthy = between(low, high, "ber", str(end)) + far.tx_loss_db * DIM_BER_PER_DB
    return float(f"{10**healthy:.2e}") if own is HEALTHY or not own.rx_ber else own.rx_ber
