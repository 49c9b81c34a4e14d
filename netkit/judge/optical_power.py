"""Optical power at both ends of a cable, its limits, and its trend over earlier runs."""

from collections.abc import Iterator, Mapping, Sequence
from statistics import median
from typing import NamedTuple

from netkit.design.fabric import CableEnd
from netkit.facts import Absent
from netkit.facts.counter import place
from netkit.facts.optic import Lane, Limits, Module, Quantity
from netkit.judge.context import CheckContext
from netkit.judge.finding import PASSED, Finding, Verdict, fail, skip, warn

DARK_DBM = -39.0
"""The level that modules report without a signal."""
RX_LIMITS: Mapping[str, Limits] = {
    "DR4": Limits(low_alarm=-7.9, low_warning=-5.9, high_warning=4.0, high_alarm=5.0),
    "DR8": Limits(low_alarm=-7.9, low_warning=-5.9, high_warning=4.0, high_alarm=5.0),
    "FR4": Limits(low_alarm=-9.3, low_warning=-7.3, high_warning=3.5, high_alarm=4.5),
}
"""For media whose modules have no limits; the standard's range warns, two dB beyond it fail."""
TX_LIMITS: Mapping[str, Limits] = {
    "DR4": Limits(low_alarm=-4.9, low_warning=-2.9, high_warning=4.0, high_alarm=6.0),
    "DR8": Limits(low_alarm=-4.9, low_warning=-2.9, high_warning=4.0, high_alarm=6.0),
    "FR4": Limits(low_alarm=-5.3, low_warning=-3.3, high_warning=3.5, high_alarm=5.5),
    "SR4": Limits(low_alarm=-6.6, low_warning=-4.6, high_warning=4.0, high_alarm=6.0),
}
"""The same for what is sent."""
NO_LIMITS = Limits()


def losses(context: CheckContext) -> Iterator[tuple[str, CableEnd, float | None]]:
    """Yield kind of cable, receiving end and mean loss of every direction; None where only one end measures.

    A device that reports no modules at all is left out: its own checks report that once.
    """
    for link in context.fabric.cables():
        lower, upper = CableEnd(link.device, link.port), CableEnd(link.peer, link.peer_port)
        lanes = [_lanes(context, end).values() for end in (lower, upper)]
        if not any(lanes):
            continue
        received = [[lane.rx_dbm for lane in of if lane.rx_dbm is not None] for of in lanes]
        sent = [[lane.tx_dbm for lane in of if lane.tx_dbm is not None] for of in lanes]
        for near, far, arrived, left in ((lower, upper, received[0], sent[1]), (upper, lower, received[1], sent[0])):
            if arrived and left and max(left) > DARK_DBM and max(arrived) > DARK_DBM:
                yield link.cable.media, near, sum(left) / len(left) - sum(arrived) / len(arrived)
            elif (arrived or left) and _reports_modules(context, near) and _reports_modules(context, far):
                yield link.cable.media, near, None


def sends_less(context: CheckContext, end: CableEnd) -> float | None:
    """How much less an end sends than in earlier runs, averaged over its lanes; None if unknown."""
    falls = []
    for number, lane in _lanes(context, end).items():
        earlier = [value for _, value in context.history.readings(end.device, place(end.port, number), "tx_dbm")]
        if lane.tx_dbm is not None and earlier:
            falls.append(median(earlier) - lane.tx_dbm)
    return sum(falls) / len(falls) if falls else None


def is_weak(context: CheckContext, end: CableEnd, designed: str) -> bool:
    """Whether an end transmits too little power or reports a fault, which explains low power at the other end."""
    device = context.devices.get(end.device)
    module = None if device is None or isinstance(device.facts.modules, Absent) else device.facts.modules.get(end.port)
    if module is None:
        return False
    limits = limits_of(module, "tx_dbm", designed)
    least = limits.low_alarm if limits.low_warning is None else limits.low_warning + context.limits.light_margin_db
    sent = [lane.tx_dbm for lane in module.lanes.values() if lane.tx_dbm is not None and lane.tx_dbm > DARK_DBM]
    is_faulty = any(lane.has_tx_fault for lane in module.lanes.values())
    return is_faulty or (least is not None and any(value < least for value in sent))


def sends_alike(context: CheckContext, end: CableEnd) -> bool:
    """Whether all lanes of an end transmit about the same power."""
    sent = [lane.tx_dbm for lane in _lanes(context, end).values() if lane.tx_dbm is not None]
    return len(sent) > 1 and max(sent) - min(sent) <= context.limits.lane_spread_db


def _reports_modules(context: CheckContext, end: CableEnd) -> bool:
    device = context.devices.get(end.device)
    return device is not None and not isinstance(device.facts.modules, Absent)


def _lanes(context: CheckContext, end: CableEnd) -> Mapping[int, Lane]:
    device = context.devices.get(end.device)
    found = None if device is None or isinstance(device.facts.modules, Absent) else device.facts.modules.get(end.port)
    return found.lanes if found else {}


def limits_of(module: Module, name: str, designed: str) -> Limits:
    """The limits of a module's optical power: its own, else those of its medium."""
    quantity: Quantity = "rx_dbm" if name == "rx_dbm" else "tx_dbm"
    own = module.limits.get(quantity, NO_LIMITS)
    if own != NO_LIMITS:
        return own
    known = RX_LIMITS if quantity == "rx_dbm" else TX_LIMITS
    media_texts = module.identifier, designed
    return next((limits for words in media_texts for media, limits in known.items() if media in words), NO_LIMITS)


LEAST = 6
"""With fewer readings a third is a single one, which may be an outlier."""
SHARE = 0.25
"""The part of the fall that must lie in each half of the time; else it was a single step."""
Readings = Sequence[tuple[float, float]]


def steady_fall(readings: Readings) -> float | None:
    """The steady fall of a value from the first to the last reading; None if there is none.

    The line goes through the medians of the first and of the last third of the readings.
    """
    if len(readings) < LEAST:
        return None
    third = len(readings) // 3
    first, last = _middle(readings[:third]), _middle(readings[-third:])
    between = _middle(readings[third:-third])
    time_s, fall = last[0] - first[0], first[1] - last[1]
    if time_s <= 0 or fall <= 0 or not SHARE <= (first[1] - between[1]) / fall <= 1 - SHARE:
        return None
    return fall / time_s * (readings[-1][0] - readings[0][0])


def _middle(readings: Readings) -> tuple[float, float]:
    return median(at_s for at_s, _ in readings), median(value for _, value in readings)


class ModuleReading(NamedTuple):
    """One value of a module, and its limits."""

    name: str
    value: float
    limits: Limits
    unit: str


def judge_reading(port: str, reading: ModuleReading, remedy: str, margin: float, cause: str = "") -> Finding:
    """Judge a value by limits: beyond the alarm it fails, beyond the warning or near it, it warns."""
    found = _judged(port, reading, remedy, margin)
    return found._replace(cause=cause) if found is not PASSED else found


def _judged(port: str, reading: ModuleReading, remedy: str, margin: float) -> Finding:
    name, value, limits, unit = reading
    verdict, text = _beyond(value, limits, margin)
    if not text:
        return PASSED
    measured = f"{name} {value:.1f} {unit}{text}"
    if verdict is Verdict.SKIPPED:
        return skip(port, measured)
    return fail(port, measured, remedy) if verdict is Verdict.FAIL else warn(port, measured, remedy)


def is_within(value: float, limits: Limits, margin: float) -> bool:
    """Whether a value is well within its limits."""
    return not _beyond(value, limits, margin)[1]


def _beyond(value: float, limits: Limits, margin: float) -> tuple[Verdict, str]:
    """Where a value is beyond its limits or near them; an empty text if it is well within."""
    low_alarm, low_warning, high_warning, high_alarm = (
        limits.low_alarm,
        limits.low_warning,
        limits.high_warning,
        limits.high_alarm,
    )
    if low_alarm is None and high_alarm is None and limits == NO_LIMITS:
        return Verdict.SKIPPED, "; its limits are not known"
    if low_alarm is not None and value < low_alarm:
        return Verdict.FAIL, f", below its alarm limit {low_alarm:g}"
    if high_alarm is not None and value > high_alarm:
        return Verdict.FAIL, f", above its alarm limit {high_alarm:g}"
    if low_warning is not None and value < low_warning + margin:
        return Verdict.WARN, f", its warning limit is {low_warning:g}"
    if high_warning is not None and value > high_warning - margin:
        return Verdict.WARN, f", its warning limit is {high_warning:g}"
    return Verdict.PASS, ""
