"""The module at one end of a cable: light per lane, temperature, voltage, and what is printed on it."""

from netkit.lab.model.ailment import HEALTHY, Ailment
from netkit.lab.model.parts import FIRMWARE, REVISION, TEMPERATURE, VOLTAGE, Kind, Optics
from netkit.lab.model.place import Place
from netkit.lab.model.seed import between, number
from netkit.lab.model.wiring import End
from netkit.lab.reading import LaneReading, ModuleReading

DARK_DBM = -40.0
DARK = LaneReading(DARK_DBM, DARK_DBM, 0.0)
DIGITS = "0123456789ABCDEFGHJKLMNPQRSTUVWXYZ"
HEALTHY_BER = {"optic": (-9.6, -8.2), "active": (-9.6, -8.2), "copper": (-10.5, -9.0)}
AGEING_MA_PER_DB = 2.5
"""A laser that grows weak is driven harder by its module."""
DIM_BER_PER_DB = 0.12
"""How many decades the bit error rate rises by a dB of light that is missing."""


def module(
    end: End, place: Place, peer: End, ailments: tuple[Ailment, Ailment], *, is_sending: bool, is_receiving: bool
) -> ModuleReading:
    """Return what a module shows, given what ails it and the one at the other end."""
    own, far = ailments
    optics = place.part.optics
    is_powered = place.part.kind != "copper"
    return ModuleReading(
        kind=place.part.kind,
        identifier=place.form.removesuffix("-RHS"),  # a flat top is no other kind of module
        vendor=place.part.vendor,
        part=place.part.number,
        serial=_serial(place),
        firmware=(own.firmware or FIRMWARE) if is_powered else "",
        revision=REVISION,
        media=place.part.media,
        length_m=place.cable.length_m,
        temperature_c=_temperature(place, own) if is_powered else 0.0,
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
    optics: Optics, end: End, place: Place, peer: End, own: Ailment, far: Ailment, lit: tuple[bool, bool]
) -> tuple[LaneReading, ...]:
    is_sending, is_receiving = lit
    lanes = []
    for lane in range(1, place.part.lanes + 1):
        weak, far_weak = _loss(own.tx_loss_db, own.tx_lane, lane), _loss(far.tx_loss_db, far.tx_lane, lane)
        light = _sent(optics, peer, lane) - far_weak - _lost(optics, place, end, peer, lane)
        light -= _loss(own.rx_loss_db, own.rx_lane, lane)
        bias = between(*optics.bias_ma, "bias", str(end), lane) + weak * AGEING_MA_PER_DB * optics.bias_ma[1] / 92
        lanes.append(
            LaneReading(
                rx_dbm=round(max(light + _error("rx", end, lane), DARK_DBM), 2) if is_receiving else DARK_DBM,
                tx_dbm=round(_sent(optics, end, lane) - weak + _error("tx", end, lane), 2) if is_sending else DARK_DBM,
                bias_ma=round(bias, 2) if is_sending else 0.0,
            )
        )
    return (*lanes, *(DARK for _ in range(place.lanes_shown - place.part.lanes)))


def _sent(optics: Optics, end: End, lane: int) -> float:
    return between(*optics.tx_dbm, "tx", str(end), lane)


def _lost(optics: Optics, place: Place, end: End, peer: End, lane: int) -> float:
    fibre = place.cable.length_m / 1000 * optics.loss_db_per_km
    return fibre + between(0.5, 1.1, "connectors", str(end), str(peer), lane)


def _error(what: str, end: End, lane: int) -> float:
    """Return how far a module's own measurement is off."""
    return between(-0.25, 0.25, "error", what, str(end), lane)


def _loss(db: float, ailing: int, lane: int) -> float:
    return db if ailing in {0, lane} else 0.0


def _temperature(place: Place, own: Ailment) -> float:
    return round(own.temperature_c or between(44, 56, "temperature", place.device, place.cage), 2)


def _serial(place: Place) -> str:
    rest = number("serial", place.device, place.cage)
    week = rest % 52 + 1
    letters = ""
    for _ in range(8):
        rest, digit = divmod(rest, len(DIGITS))
        letters += DIGITS[digit]
    return f"MT24{week:02}{letters}"


def error_rate(end: End, kind: Kind, own: Ailment, far: Ailment) -> float:
    """Return the bit error rate an end sees before correction."""
    low, high = HEALTHY_BER[kind]
    healthy = between(low, high, "ber", str(end)) + far.tx_loss_db * DIM_BER_PER_DB
    return float(f"{10**healthy:.2e}") if own is HEALTHY or not own.rx_ber else own.rx_ber
