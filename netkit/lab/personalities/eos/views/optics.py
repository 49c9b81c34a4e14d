"""Transceivers and the physical layer: light, temperature, FEC."""

from collections.abc import Callable, Iterator
from typing import Any

from netkit.lab.personalities.eos.commands import Captured
from netkit.lab.personalities.eos.reply import EosReply
from netkit.lab.personalities.eos.views.lens import Lens, table
from netkit.lab.reading import LaneReading, ModuleReading, ModuleThresholds, PortReading

DARK_DBM = -30.0
"""What EOS shows for no light at all."""
FEC_WORDS = {"rs": "reedSolomon544", "fc": "fireCode", "none": "disabled", "": "disabled"}
CODEWORD_SIZE = {"rs": 544, "fc": 2112}
FEC_LANES = 16
WHOLE = "-"
"""The channel of what a module has but once."""


def transceivers(lens: Lens, captured: Captured) -> EosReply:
    """Show the first lane of each port; an empty cage shows nothing."""
    shown = {port: _summary(lens, reading) for port, reading in lens.ports(captured) if reading.module}
    rows = [
        (port, one.get("temperature", "N/A"), one.get("voltage", "N/A"), one.get("txBias", "N/A"),
         one.get("txPower", "N/A"), one.get("rxPower", "N/A"))
        for port, one in shown.items()
    ]  # fmt: skip
    return EosReply({"interfaces": shown}, table(("Port", "Temp", "Voltage", "Bias", "TxPower", "RxPower"), rows))


def _summary(lens: Lens, reading: PortReading) -> dict[str, Any]:
    module = reading.module
    if module is None or not module.lanes:
        kind = {"mediaType": module.media, "vendorSn": module.serial} if module else {}
        return {**kind, "details": {}}
    lane = module.lanes[0]
    details: dict[str, Any] = {}
    for name, limits in _limits(module):
        details[name] = {**_threshold(limits), "highAlarmOverridden": False, "lowAlarmOverridden": False}
    return {
        "slot": reading.name.removeprefix("Ethernet").partition("/")[0],
        "channel": str(module.first_lane),
        "vendorSn": module.serial,
        "mediaType": module.media,
        "narrowBand": False,
        "updateTime": lens.now_s,
        "temperature": module.temperature_c,
        "voltage": module.voltage_v,
        "txBias": lane.bias_ma,
        "txPower": _light(lane.tx_dbm),
        "rxPower": _light(lane.rx_dbm),
        "details": details,
    }


def thresholds(lens: Lens, captured: Captured) -> EosReply:
    """Show every lane beside the module's own limits."""
    shown = {port: _lanes(port, reading) for port, reading in lens.ports(captured) if reading.module}
    rows = [
        (port, name, channel, value)
        for port, one in shown.items()
        for name, parameter in one.get("parameters", {}).items()
        for channel, value in parameter["channels"].items()
    ]
    return EosReply({"interfaces": shown}, table(("Port", "Parameter", "Channel", "Value"), rows))


def _lanes(port: str, reading: PortReading) -> dict[str, Any]:
    module = reading.module
    if module is None:
        return {}
    shown: dict[str, Any] = {"displayName": port, "vendorSn": module.serial, "mediaType": module.media}
    if not module.lanes:
        return shown
    takes: dict[str, tuple[str, Callable[[LaneReading], float]]] = {
        "rxPower": ("dBm", lambda lane: _light(lane.rx_dbm)),
        "txPower": ("dBm", lambda lane: _light(lane.tx_dbm)),
        "txBias": ("mA", lambda lane: lane.bias_ma),
    }
    limits = dict(_limits(module))
    parameters: dict[str, Any] = {}
    for name, (unit, take) in takes.items():
        channels = {str(module.first_lane + index): take(lane) for index, lane in enumerate(module.lanes)}
        parameters[name] = {"unit": unit, "channels": channels, "threshold": _threshold(limits[name])}
    once = (("temperature", "C", module.temperature_c), ("voltage", "V", module.voltage_v))
    for name, unit, value in once:
        parameters[name] = {"unit": unit, "channels": {WHOLE: value}, "threshold": _threshold(limits[name])}
    return {**shown, "parameters": parameters}


def _limits(module: ModuleReading) -> Iterator[tuple[str, ModuleThresholds | None]]:
    yield "rxPower", module.rx_limits
    yield "txPower", module.tx_limits
    yield "txBias", module.bias_limits
    yield "temperature", module.temperature_limits
    yield "voltage", module.voltage_limits


def _threshold(limits: ModuleThresholds | None) -> dict[str, float]:
    """Return limits as EOS shows them; 0 says that the module has none."""
    if limits is None:
        return {"lowAlarm": 0.0, "lowWarn": 0.0, "highWarn": 0.0, "highAlarm": 0.0}
    return {
        "lowAlarm": limits.alarm_low,
        "lowWarn": limits.warning_low,
        "highWarn": limits.warning_high,
        "highAlarm": limits.alarm_high,
    }


def _light(dbm: float) -> float:
    return max(dbm, DARK_DBM)


def hardware(lens: Lens, captured: Captured) -> EosReply:
    """Show what is in the cages. That a release tells the firmware here, and in these words, is unverified."""
    rows = [
        f"Name: {port}\nMedia type: {reading.module.media}\nModule presence: detected\n"
        f"Maximum slot power (W): N/A\nFirmware version: {reading.module.firmware or 'N/A'}\n"
        if reading.module
        else f"Name: {port}\nModule presence: not detected\nMaximum slot power (W): N/A\n"
        for port, reading in lens.ports(captured)
    ]
    return EosReply(None, "\n".join(rows))


def phy(lens: Lens, captured: Captured) -> EosReply:
    """Show the line side of each port's physical layer."""
    shown = {port: _phy(lens, reading) for port, reading in lens.ports(captured)}
    rows = [
        (port, one["phyStatuses"][0]["phyState"]["value"], one["phyStatuses"][0]["fec"]["encoding"])
        for port, one in shown.items()
    ]
    return EosReply({"interfacePhyStatuses": shown}, table(("Port", "PHY state", "FEC"), rows))


def _phy(lens: Lens, reading: PortReading) -> dict[str, Any]:
    changed = {"changes": reading.carrier_changes, "lastChange": lens.now_s - reading.link_up_s}
    fec: dict[str, Any] = {"encoding": FEC_WORDS.get(reading.fec.mode, reading.fec.mode)}
    if reading.fec.mode in CODEWORD_SIZE:
        fec |= {
            "codewordSize": CODEWORD_SIZE[reading.fec.mode],
            "alignmentLock": {"value": reading.is_up, **changed},
            "correctedCodewords": {"value": reading.fec.corrected_codewords, **changed},
            "uncorrectedCodewords": {"value": reading.fec.uncorrectable_codewords, **changed},
            "correctedSymbols": {str(lane): {"value": count} for lane, count in enumerate(_symbols(reading))},
        }
    line = {
        "description": {"phyChipName": "lab", "location": "line"},
        "operSpeed": f"{reading.speed_gbps}Gbps",
        "phyState": {"value": "linkUp" if reading.is_up else "linkDown", **changed},
        "pcs": {
            "linkStatus": {"value": "up" if reading.is_up else "down"},
            "blockLock": {"value": reading.is_up},
            "highBer": {"value": False},
        },
        "fec": fec,
        "preFecBer": {"value": reading.fec.pre_fec_ber},
    }
    module = reading.module
    return {
        "phyStatuses": [line],
        "interfaceState": {"value": "up" if reading.is_up else "down", **changed},
        "transceiver": {"mediaType": module.media, "vendorSn": module.serial.ljust(16)} if module else {},
        "macFaults": {"localFault": {"value": not reading.is_up}, "remoteFault": {"value": False}},
    }


def _symbols(reading: PortReading) -> list[int]:
    """Return corrected symbols by lane of the error correction; EOS shows no histogram."""
    whole, rest = divmod(sum(wrong * count for wrong, count in enumerate(reading.fec.histogram)), FEC_LANES)
    return [whole + (lane < rest) for lane in range(FEC_LANES)]


def error_correction(lens: Lens, captured: Captured) -> EosReply:
    """Show which error correction runs."""
    shown = {
        port: {"errCorrEncodingStatus": FEC_WORDS.get(reading.fec.mode, reading.fec.mode)}
        for port, reading in lens.ports(captured)
    }
    rows = [(port, one["errCorrEncodingStatus"]) for port, one in shown.items()]
    return EosReply({"interfaceErrCorrStatuses": shown}, table(("Port", "Encoding"), rows))


VIEWS = (
    ("show interfaces transceiver", transceivers),
    ("show interfaces transceiver dom thresholds", thresholds),
    ("show interfaces transceiver hardware", hardware),
    ("show interfaces phy detail", phy),
    ("show interfaces error-correction", error_correction),
)
