"""Optics: power, temperature, bit errors and parts of every module, against its own limits and against its kind."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from statistics import median
from typing import NamedTuple

from netkit.design import Switch
from netkit.design.fabric import CableEnd
from netkit.facts import Absent
from netkit.facts.counter import place
from netkit.facts.optic import Lane, Limits, Module
from netkit.judge import (
    PASSED,
    CheckContext,
    DeviceContext,
    Finding,
    Verdict,
    device_check,
    fabric_check,
    fail,
    skip,
    warn,
)
from netkit.judge.context import NoHistory
from netkit.judge.firmware import FirmwarePart, approved_of, unapproved
from netkit.judge.optical_power import (
    DARK_DBM,
    ModuleReading,
    Readings,
    is_weak,
    is_within,
    judge_reading,
    limits_of,
    losses,
    sends_alike,
    sends_less,
    steady_fall,
)

CLEAN = "clean the connectors at both ends, then swap module and fibre one by one"
CURRENT = "a high bias current confirms this"
WEAK = f"swap the module: its laser is weak, {CURRENT}"
COOL = "check its cooling, then swap it"
UPDATE = "update it to approved firmware with its link drained, or approve this one under firmware in the intent"
AGED = "swap the module: its laser is ageing"
ARTICLES = {"optic": "an optic", "aoc": "an aoc", "copper": "a copper"}
FEWEST_READINGS = 3
NO_EARLIER = "no earlier runs to compare with"
DAY_S = 86_400.0
FEW = 4
"""The fewest cables of a kind among which one can be an outlier."""
MANY, USUAL_SHARE = 8, 0.8
"""A part number is the usual one if this share of at least this many modules have it."""


@device_check(layer="physical", needs=["modules"], follows=["optics.flags"], reads=[])
def light(context: CheckContext, device: DeviceContext) -> Iterator[Finding]:
    """The optical power that every lane receives and transmits is within the limits of its module.

    Beyond the alarm limit, errors are certain; near the warning limit, they start on the next warm day. If the received
    power is low and the far end transmits enough, the fibre is dirty or bent: clean the connectors. Low transmitted
    power means an ageing laser: swap the module.
    """
    for port, module in _modules(device):
        if not module.lanes or all(lane.rx_dbm is None and lane.tx_dbm is None for lane in module.lanes.values()):
            yield skip(port, f"{_kind(module)} does not measure optical power")
            continue
        media = _media(device, port)
        rx_limits, tx_limits = limits_of(module, "rx_dbm", media), limits_of(module, "tx_dbm", media)
        for number, lane in sorted(module.lanes.items()):
            for way, value, limits in (("received", lane.rx_dbm, rx_limits), ("transmitted", lane.tx_dbm, tx_limits)):
                if value is None:
                    continue
                if is_within(value, limits, context.limits.light_margin_db):  # as almost all
                    yield PASSED
                else:
                    dim = _dim_lane(context, module)
                    reading = ModuleReading(f"lane {number}, {way} power", value, limits, "dBm")
                    yield _light(context, device, port, reading, is_dim=dim is not None and dim.lane == number)


def _light(context: CheckContext, device: DeviceContext, port: str, reading: ModuleReading, *, is_dim: bool) -> Finding:
    """Judge the optical power of a lane. If the far end transmits too little, cleaning does not help."""
    is_sent = reading.name.endswith("transmitted power")
    found = judge_reading(port, reading, WEAK if is_sent else CLEAN, context.limits.light_margin_db)
    if found is PASSED:  # names of causes are only made for what has one
        return found
    if is_sent:
        way = context.way(device.name, port)
        return found._replace(cause=way, explains=(way,) if found.verdict > Verdict.SKIPPED else ())
    way, far = context.way_in(device.name, port), context.far(device.name, port)
    cause = _lane_cause(context, device, port) if is_dim else way
    found = found._replace(cause=cause)
    if cause == way and found.verdict > Verdict.SKIPPED and far and is_weak(context, far, _media(device, port)):
        return found._replace(remedy=f"swap the module in {far}: it transmits too little power")
    return found


@device_check(layer="physical", needs=["modules"], follows=["optics.flags", "optics.light"], reads=[])
def lanes(context: CheckContext, device: DeviceContext) -> Iterator[Finding]:
    """The lanes of a module receive about the same optical power.

    If one lane receives much less than the others, its fibre is dirty or the connector is not seated well: clean and
    reseat it.
    """
    for port, module in _modules(device):
        if sum(lane.rx_dbm is not None for lane in module.lanes.values()) < 2:
            yield skip(port, f"{_kind(module)} does not measure optical power by lane")
        elif (dim := _dim_lane(context, module)) is None:
            yield PASSED
        else:
            cause, way = _lane_cause(context, device, port), context.way_in(device.name, port)
            text = f"lane {dim.lane} receives {dim.others_dbm - dim.rx_dbm:.1f} dB less than the other lanes"
            own = [] if cause == way else [cause]
            yield warn(port, text, CLEAN, cause=cause, explains=own, rx_dbm=dim.rx_dbm, others_dbm=dim.others_dbm)


class DimLane(NamedTuple):
    """The lane of a module that receives much less than the others, which receive `others_dbm`."""

    lane: int
    rx_dbm: float
    others_dbm: float


def _dim_lane(context: CheckContext, module: Module) -> DimLane | None:
    values = {number: lane.rx_dbm for number, lane in module.lanes.items() if lane.rx_dbm is not None}
    if len(values) < 2:
        return None
    weakest = min(values, key=lambda number: values[number])
    others = median(value for number, value in values.items() if number != weakest)
    return (
        DimLane(weakest, values[weakest], others) if others - values[weakest] > context.limits.lane_spread_db else None
    )


def _lane_cause(context: CheckContext, device: DeviceContext, port: str) -> str:
    """The cause of one dim lane; lasers that are equally weak on all lanes do not explain it."""
    way, far = context.way_in(device.name, port), context.far(device.name, port)
    is_apart = far is not None and is_weak(context, far, _media(device, port)) and sends_alike(context, far)
    return f"{way}: one lane" if is_apart else way


@device_check(layer="physical", needs=["modules"], follows=["optics.light"])
def flags(context: CheckContext, device: DeviceContext) -> Iterator[Finding]:
    """No module reports a lane that cannot transmit or receives no signal.

    A module that reports a transmitter fault is broken or about to fail: swap it. If it measures received power,
    reception is judged by that; a cable without power meters, such as an active one, has only its flag.
    """
    found = list(_modules(device))
    if found and not any(_flagged(lane) for _, module in found for lane in module.lanes.values()):
        yield skip("", "it does not report the flags of its modules")
        return
    for port, module in found:
        flagged = {number: lane for number, lane in sorted(module.lanes.items()) if _flagged(lane)}
        if not flagged:
            yield skip(port, f"{_kind(module)} does not report its flags")
        for number, lane in flagged.items():
            if lane.has_tx_fault:
                text = f"lane {number} cannot transmit: its transmitter reports a fault"
                way = context.way(device.name, port)
                yield fail(port, text, "swap the module", cause=way, explains=[way])
            elif lane.has_rx_loss and lane.rx_dbm is None:
                yield fail(port, f"lane {number} receives no signal", CLEAN, cause=context.way_in(device.name, port))
            else:
                yield PASSED


def _flagged(lane: Lane) -> bool:
    return lane.has_tx_fault is not None or lane.has_rx_loss is not None


@device_check(layer="physical", needs=["modules"], follows=[])
def heat(context: CheckContext, device: DeviceContext) -> Iterator[Finding]:
    """Every module's temperature, voltage and laser current are within its limits.

    A hot module causes errors and ages faster: check the fans, blanking plates and air ducts around it. A high bias
    current is the sign of an ageing laser.
    """
    own = Limits(high_warning=context.limits.temperature_warn_c, high_alarm=context.limits.temperature_fail_c)
    for port, module in _modules(device):
        readings = list(_readings(module, own))
        if not readings:
            yield skip(port, f"{_kind(module)} measures nothing")
        for reading in readings:
            is_current = "current" in reading.name
            found = judge_reading(port, reading, AGED if is_current else COOL, 0.0)
            if found is not PASSED:
                cause = context.way(device.name, port) if is_current else _module_of(device, port, module)
                found = found._replace(cause=cause)
            yield found


def _module_of(device: DeviceContext, port: str, module: Module) -> str:
    """One name for a module, which several ports of a switch may share."""
    cage = _cage(device, port)
    name = module.serial or (f"in cage {cage}" if cage else f"in {port}")
    return f"module {name} of {device.name}"


def _readings(module: Module, own: Limits) -> Iterator[ModuleReading]:
    if module.temperature_c is not None:
        yield ModuleReading("temperature", module.temperature_c, module.limits.get("temperature_c", own), "°C")
    if module.voltage_v is not None and "voltage_v" in module.limits:
        yield ModuleReading("voltage", module.voltage_v, module.limits["voltage_v"], "V")
    if "bias_ma" in module.limits:
        for number, lane in sorted(module.lanes.items()):
            if lane.bias_ma is not None:
                yield ModuleReading(f"lane {number}, laser current", lane.bias_ma, module.limits["bias_ma"], "mA")


@fabric_check(layer="physical", needs=["modules"], follows=["optics.flags", "optics.light", "optics.lanes"], reads=[])
def loss(context: CheckContext) -> Iterator[Finding]:
    """Cables of one kind have about the same loss between transmitted and received power.

    Modules measure optical power with an error of about 3 dB, so a single cable proves little. One that loses much more
    than all others of its kind is dirty or bent: clean it, then swap it.
    """
    found = list(losses(context))
    yield from (
        skip(end.port, "not both ends measure optical power", device=end.device)
        for _, end, value in found
        if value is None
    )
    known = [(kind, end, value) for kind, end, value in found if value is not None]
    usual: dict[str, list[float]] = {}
    for kind, _, value in known:
        usual.setdefault(kind, []).append(value)
    typicals = {kind: median(values) for kind, values in usual.items()}
    for kind, end, value in known:
        typical = typicals[kind]
        if len(usual[kind]) < FEW:
            yield skip(end.port, f"too few cables of {kind} to compare", device=end.device)
        elif value - typical > context.limits.loss_outlier_db:
            text = f"the path loses {value:.1f} dB, cables of {kind} usually {typical:.1f} dB"
            yield warn(end.port, text, CLEAN, device=end.device, cause=context.way_in(end.device, end.port))
        else:
            yield PASSED


@device_check(
    layer="physical",
    needs=["modules"],
    follows=["optics.flags", "optics.light", "optics.lanes", "optics.loss"],
    reads=[],
)
def trend(context: CheckContext, device: DeviceContext) -> Iterator[Finding]:
    """No lane receives much less power than in earlier runs, or steadily less from run to run.

    Falling power ends in an outage, which can still be planned. If it is lost on the path, clean the connectors; if the
    far end transmits less, have a module ready. Needs a store of earlier runs, at least six to detect a slow fall.
    """
    for port, module in _modules(device):
        for number, lane in sorted(module.lanes.items()):
            if lane.rx_dbm is None or lane.rx_dbm <= DARK_DBM:
                continue
            if isinstance(context.history, NoHistory):
                yield skip("", NO_EARLIER)
                return
            readings = context.history.readings(device.name, place(port, number), "rx_dbm")
            earlier = [(at_s, value) for at_s, value in readings if value > DARK_DBM]
            yield _trend(
                CableEnd(device.name, port), number, (*earlier, (context.snapshot.taken_s, lane.rx_dbm)), context
            )


def _trend(end: CableEnd, number: int, readings: Readings, context: CheckContext) -> Finding:
    """Judge the readings of a lane, the last of which is what it receives now."""
    port, now_dbm = end.port, readings[-1][1]
    limit_db = context.limits.light_trend_db
    if len(readings) < FEWEST_READINGS:
        return skip(port, NO_EARLIER)
    usual_dbm = median(value for _, value in readings[:-1])
    if usual_dbm - now_dbm > limit_db:
        text = f"lane {number} receives {usual_dbm - now_dbm:.1f} dB less than in earlier runs"
        where, remedy = _where_lost(context, end)
        cause = context.way_in(end.device, end.port)
        return warn(port, f"{text}{where}", remedy, cause=cause, rx_dbm=now_dbm, earlier_dbm=usual_dbm)
    is_wide = max(value for _, value in readings) - now_dbm > limit_db / 2  # else a line fit is pointless
    fall_db = steady_fall(readings) if is_wide else None
    if fall_db is not None and fall_db > limit_db:
        days = (readings[-1][0] - readings[0][0]) / DAY_S
        text = f"lane {number} degrades: it receives {fall_db:.1f} dB less than {days:.0f} days ago, falling steadily"
        where, remedy = _where_lost(context, end)
        return warn(port, f"{text}{where}", remedy, cause=context.way_in(end.device, end.port), rx_dbm=now_dbm)
    return PASSED


def _where_lost(context: CheckContext, end: CableEnd) -> tuple[str, str]:
    """Whether the far end transmits less or the path loses more, if known, and the remedy."""
    far = context.far(end.device, end.port)
    fall_db = None if far is None else sends_less(context, far)
    if fall_db is None:
        return "", CLEAN
    if fall_db > context.limits.light_trend_db / 2:
        return f"; {far} transmits {fall_db:.1f} dB less", f"have a module ready for {far}"
    return f"; {far} transmits as before, so the path loses it", CLEAN


@fabric_check(layer="physical", needs=["modules"], follows=[], reads=[])
def parts(context: CheckContext) -> Iterator[Finding]:
    """Modules of one part number run one firmware, and serial numbers are unique.

    Modules with other firmware come up and fail differently, and are the first suspects when links flap. Bring them to
    one release; a duplicate serial number is a copy. Firmware of part numbers that the intent lists is compared with
    that list alone.
    """
    found = [
        (device, port, module)
        for device in context.devices.values()
        for port, module in _modules(device)
        if module.part and module.kind != "copper"
    ]
    counted: dict[str, Counter[str]] = {}
    for _, _, module in found:
        if module.firmware:
            counted.setdefault(module.part, Counter())[module.firmware] += 1
    usual = {part: firmwares.most_common(1)[0][0] for part, firmwares in counted.items()}
    places = _places(found)
    for device, port, module in found:
        others = _copies(context, CableEnd(device.name, port), places.get((module.part, module.serial), {}))
        if others:
            text = f"serial number {module.serial} is not unique: also in {', '.join(map(str, others[:3]))}"
            remedy = "find out which of them is a copy or reports old data: reseat both"
            yield warn(port, text, remedy, device=device.name, cause=f"module {module.serial}", part=module.part)
        if approved_of((module.part,), context.fabric.module_firmware):
            continue
        if not module.firmware:
            yield skip(port, f"{_kind(module)} does not report its firmware", device=device.name)
        elif module.firmware != usual[module.part]:
            text = f"firmware {module.firmware}, most {module.part} have {usual[module.part]}"
            cause = f"firmware of {_module_of(device, port, module)}"
            yield warn(port, text, "update it like the others", device=device.name, cause=cause, serial=module.serial)
        else:
            yield PASSED


@fabric_check(layer="physical", needs=["modules"], follows=[], reads=[])
def firmware(context: CheckContext) -> Iterator[Finding]:
    """Every module and cable runs firmware that the intent approves for its part number.

    The list is `firmware.modules` of the intent. Links may come up late or have more errors with unqualified firmware.
    Update the module while its link is drained, or add the version to the list. Passive copper has no firmware and is
    skipped.
    """
    if context.fabric.module_firmware:
        parts = (
            FirmwarePart(device.name, port, (module.part,) if module.part else (), module.firmware)
            for device in context.devices.values()
            for port, module in _modules(device)
            if module.kind != "copper"
        )
        yield from unapproved("module", parts, context.fabric.module_firmware, UPDATE)


@fabric_check(layer="physical", needs=["modules"], follows=[], reads=[])
def kinds(context: CheckContext) -> Iterator[Finding]:
    """Cables of one kind end in modules of one part number.

    A few of another part number among many are spares: they start, fail and age differently, which is hard to notice
    during an outage. Swap them, or change them all. Two part numbers that are both common are not a finding.
    """
    media = {
        end: link.cable.media
        for link in context.fabric.cables()
        for end in (CableEnd(link.device, link.port), CableEnd(link.peer, link.peer_port))
    }
    groups: dict[tuple[bool, str], list[tuple[DeviceContext, str, str]]] = {}
    for device in context.devices.values():
        for port, module in _modules(device):
            if module.part and module.kind != "copper":
                key = isinstance(device.device, Switch), media.get(CableEnd(device.name, port), "")
                groups.setdefault(key, []).append((device, port, module.part))
    for (_, kind), group in groups.items():
        usual, count = Counter(part for *_, part in group).most_common(1)[0]
        has_odd_ones = len(group) >= MANY and count >= USUAL_SHARE * len(group)
        for device, port, part in group:
            if has_odd_ones and part != usual:
                text = f"a module {part}, {count} of {len(group)} ends of {kind} have {usual}"
                yield warn(port, text, f"swap it for a {usual}", device=device.name, part=part)
            else:
                yield PASSED


def _places(
    found: Sequence[tuple[DeviceContext, str, Module]],
) -> Mapping[tuple[str, str], Mapping[CableEnd, tuple[str, str]]]:
    """Where each serial number is: the ports, and the cage of each; all NICs of a host count as one cage."""
    places: dict[tuple[str, str], dict[CableEnd, tuple[str, str]]] = {}
    for device, port, module in found:
        if module.serial:
            places.setdefault((module.part, module.serial), {})[CableEnd(device.name, port)] = (
                device.name,
                _cage(device, port),
            )
    return places


def _copies(context: CheckContext, end: CableEnd, places: Mapping[CableEnd, tuple[str, str]]) -> Sequence[CableEnd]:
    """Where else a serial number is; ports of one cage share a module, and all ends of a cable may be one."""
    if len({*places.values()}) < 2:
        return ()
    cages = {places[end]} if end in places else set()
    for _ in range(2):  # a cable that is split has more than one far end
        far = [context.far(one.device, one.port) for one, cage in places.items() if cage in cages]
        cages |= {places[one] for one in far if one is not None and one in places}
    return [one for one, cage in places.items() if cage not in cages]


@device_check(
    layer="physical",
    needs=["lines"],
    follows=["optics.flags", "optics.light", "optics.lanes", "optics.loss", "optics.trend"],
)
def bits(context: CheckContext, device: DeviceContext) -> Iterator[Finding]:
    """The bit error rate before FEC is low enough for FEC to correct.

    FEC corrects up to 2.4e-4; a link near this limit loses packets in bursts, and RDMA retransmits for each. Effective
    errors are packets already lost. If the device counts bit errors, the rate is that of the window, else the rate that
    the device reports, usually since its counters were cleared.
    """
    found = device.facts.lines
    if isinstance(found, Absent):
        return
    limits = context.limits
    for name in device.cabled:
        line, wrong, received = (
            found.get(name),
            device.delta("corrected_bits", name),
            device.delta("received_bits", name),
        )
        is_counted = wrong.is_known and received.is_known and received.value
        now = wrong.value / received.value if is_counted else None
        ever = () if line is None else (line.ber, *line.lane_ber.values())
        rates = [rate for rate in ever if rate is not None] if now is None else [now]
        if not rates:
            yield skip(name, "the device does not report its bit error rate")
        elif max(rates) >= limits.ber_fail:
            way, text = context.way_in(device.name, name), f"bit error rate {max(rates):.1e} before FEC"
            yield fail(name, text, CLEAN, cause=way, limit=limits.ber_fail)
        elif max(rates) >= limits.ber_warn:
            way, text = context.way_in(device.name, name), f"bit error rate {max(rates):.1e} before FEC"
            yield warn(name, text, CLEAN, cause=way, limit=limits.ber_warn)
        else:
            yield PASSED


@device_check(
    layer="physical",
    needs=["counters"],
    window=True,
    follows=["optics.flags", "optics.light", "optics.lanes", "optics.loss", "optics.trend", "optics.bits"],
)
def fec(context: CheckContext, device: DeviceContext) -> Iterator[Finding]:
    """FEC corrects all errors, with a margin.

    A codeword of RS(544,514) survives 15 wrong symbols. An uncorrectable codeword is a lost packet; many wrong symbols
    in one codeword mean that the limit is near. Clean the connectors at both ends, then swap module and fibre one by
    one.
    """
    for name in device.cabled:
        lost = device.delta("fec_uncorrectable", name)
        numbers = range(16) if device.deltas("fec_bin") else ()
        bins = {number: delta for number in numbers if (delta := device.delta("fec_bin", place(name, number))).is_known}
        most = max((number for number, delta in bins.items() if delta.value), default=0)
        if not lost.is_known and not bins:
            yield skip(name, f"the number of FEC corrections is unknown: {lost.state}")
        elif lost.is_known and lost.value:
            text = f"{lost.value} uncorrectable codewords in {lost.seconds:.0f} s"
            yield fail(name, text, CLEAN, cause=context.way_in(device.name, name))
        elif most >= context.limits.fec_symbols_warn:
            say = fail if most >= context.limits.fec_symbols_fail else warn
            text = f"codewords with {most} wrong symbols, 15 can be corrected"
            yield say(name, text, CLEAN, cause=context.way_in(device.name, name))
        else:
            yield PASSED


def _modules(device: DeviceContext) -> Iterator[tuple[str, Module]]:
    """Yield the modules in ports and NICs that are in use."""
    found = device.facts.modules
    if isinstance(found, Absent):
        return
    for name in device.cabled:
        module = found.get(name)
        if module is not None and module.is_present:
            yield name, module


def _kind(module: Module) -> str:
    return f"{ARTICLES[module.kind]} module" if module.kind in ARTICLES else "the module"


def _media(device: DeviceContext, port: str) -> str:
    """The designed media: some sources of facts report optical power without the type of optics."""
    designed = device.cabled_ports.get(port)
    return designed.cable.media if designed and designed.cable else ""


def _cage(device: DeviceContext, port: str) -> str:
    designed = device.cabled_ports.get(port)
    return str(designed.cage) if designed else ""
