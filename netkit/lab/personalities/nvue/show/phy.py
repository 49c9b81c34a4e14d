"""The switch itself, bit errors and optics. The JSON of the latter is not documented: keys are those of the text."""

import hashlib
import math
import time
from collections.abc import Callable

from netkit.design.fabric import Switch
from netkit.lab.personalities.nvue.show.look import NvueShowContext, Shown
from netkit.lab.personalities.nvue.tree import child, hidden
from netkit.lab.reading import LaneReading, ModuleReading, ModuleThresholds, PortReading


def serial_number(name: str) -> str:
    """Return a serial number: invented, but always the same for a name."""
    return "MT" + hashlib.sha256(name.encode()).hexdigest()[:10].upper()


def platform(look: NvueShowContext) -> Shown:
    """Return what the switch is made of."""
    model, device = look.system.chassis.model, look.system.node.device
    return {
        "asic-model": model.asic,
        "manufacturer": model.vendor,
        "product-name": model.name,
        "serial-number": serial_number(look.system.node.name),
        "system-mac": device.system_mac if isinstance(device, Switch) else "",
        "system-type": f"{model.cages} x {model.cage_form}",
    }


def system(look: NvueShowContext) -> Shown:
    """Return the system: its configuration, release and uptime."""
    release = look.system.chassis.release
    shown: dict[str, object] = dict(hidden(child(look.tree, "system")))
    shown |= {
        "build": f"Cumulus Linux {release}",
        "product-name": "Cumulus Linux",
        "platform": look.system.chassis.model.name,
        "uptime": uptime_s(look),
        "hostname": look.state.hostname,
    }
    return shown | ({"version": {"product-release": release}} if look.is_since(5, 14) else {"product-release": release})


def uptime_s(look: NvueShowContext) -> int:
    """Return the seconds since the switch booted."""
    return int(time.monotonic() - look.system.applier.booted_s)


NO_ERRORS = "15E-255"
CODEWORD_BITS = 5440
Form = Callable[[float], str]


def ber(rate: float) -> str:
    """Return a bit error rate as the switch writes it; 15E-255 means none."""
    if rate <= 0:
        return NO_ERRORS
    magnitude = 1 - math.floor(math.log10(rate))
    return f"{round(rate * 10**magnitude)}E-{magnitude}"


def health(look: NvueShowContext) -> Shown:
    """Return the bit errors of a port, and how many symbols were wrong in its codewords; lanes are not modelled."""
    fec = look.port.fec
    codewords = sum(fec.histogram) + fec.uncorrectable_codewords
    return {
        "phy-received-bits": codewords * CODEWORD_BITS,
        "symbol-errors": fec.uncorrectable_codewords,
        "raw-ber": ber(fec.pre_fec_ber),
        "symbol-ber": ber(fec.effective_ber),
        "effective-ber": ber(fec.effective_ber),
        "effective-errors": fec.uncorrectable_codewords,
        **{f"rs-num-corr-err-bin{number}": count for number, count in enumerate(fec.histogram)},
    }


def _identity(reading: PortReading, module: ModuleReading) -> dict[str, object]:
    has_diagnostics = module.kind != "copper"
    return {
        "cable-type": {"copper": "Passive copper cable", "active": "Active cable", "optic": "Optical module"}[
            module.kind
        ],
        "cable-length": f"{module.length_m:g}m",
        "diagnostics-status": "Diagnostic Data Available" if has_diagnostics else "No Diagnostic Data",
        "status": "plugged_enabled" if reading.is_enabled else "plugged_disabled",
        "error-status": "N/A",
        "revision-compliance": module.revision,
        "identifier": module.identifier,
        "vendor-name": module.vendor,
        "vendor-pn": module.part,
        "vendor-sn": module.serial,
        "firmware-version": module.firmware,
    }


def all_modules(look: NvueShowContext) -> Shown:
    """Return every module with its limits."""
    return {name: with_limits(look.at(name)) for name in look.ports if name in look.readings}


def with_limits(look: NvueShowContext) -> Shown:
    """Return a module with its own limits, and which of them are passed."""
    reading = look.port
    module = reading.module
    if module is None:
        return {"status": "unplugged"}
    shown = _identity(reading, module)
    if module.temperature_limits:
        shown["temperature"] = _judged("temperature", module.temperature_c, module.temperature_limits, celsius)
    if module.voltage_limits:
        shown["voltage"] = _judged("voltage", module.voltage_v, module.voltage_limits, volts)
    lanes = {f"channel-{at}": _lane(module, lane) for at, lane in enumerate(module.lanes, module.first_lane)}
    if lanes:
        shown["channel"] = lanes
    return shown


def _lane(module: ModuleReading, lane: LaneReading) -> Shown:
    return {
        "rx-power": _judged("power", lane.rx_dbm, module.rx_limits, power),
        "tx-power": _judged("power", lane.tx_dbm, module.tx_limits, power),
        "tx-bias-current": _judged("current", lane.bias_ma, module.bias_limits, current),
    }


def _named(limits: ModuleThresholds) -> tuple[tuple[str, float], ...]:
    return (
        ("high-alarm", limits.alarm_high),
        ("high-warning", limits.warning_high),
        ("low-warning", limits.warning_low),
        ("low-alarm", limits.alarm_low),
    )


def _judged(name: str, value: float, limits: ModuleThresholds | None, form: Form) -> Shown:
    shown: dict[str, object] = {name: form(value)}
    if limits:
        shown |= {f"{label}-threshold": form(limit) for label, limit in _named(limits)}
        shown["alarm"] = _alarm(value, limits)
    return shown


def _alarm(value: float, limits: ModuleThresholds) -> str:
    checks = (
        ("High Alarm", value > limits.alarm_high),
        ("Low Alarm", value < limits.alarm_low),
        ("High Warning", value > limits.warning_high),
        ("Low Warning", value < limits.warning_low),
    )
    return next((name for name, is_passed in checks if is_passed), "Off")


def power(dbm: float) -> str:
    """Return light in both units."""
    return f"{10 ** (dbm / 10):.4f} mW / {dbm:.2f} dBm"


def current(milliampere: float) -> str:
    """Return a bias current."""
    return f"{milliampere:.3f} mA"


def celsius(degrees: float) -> str:
    """Return a temperature in both units."""
    return f"{degrees:.2f} degrees C / {degrees * 9 / 5 + 32:.2f} degrees F"


def volts(value: float) -> str:
    """Return a voltage."""
    return f"{value:.4f} V"
