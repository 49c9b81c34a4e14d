"""Transceivers: as STATE_DB holds them, and as `show interfaces transceiver` prints them."""

from collections.abc import Iterator, Mapping

from netkit.lab.personalities.sonic.system import SonicSystem
from netkit.lab.personalities.sonic.tables import text
from netkit.lab.reading import ModuleReading, ModuleThresholds, PortReading

LANES = 8
NOT_READ = "N/A"
TYPES = {"OSFP": "OSFP 8X Pluggable Transceiver", "QSFP-DD": "QSFP-DD Double Density 8X Pluggable Transceiver"}
MEDIA = {
    "optic": "sm_media_interface",
    "active": "active_cable_media_interface",
    "copper": "passive_copper_media_interface",
}
LIMIT_NAMES = (
    ("highalarm", "alarm_high"),
    ("highwarning", "warning_high"),
    ("lowalarm", "alarm_low"),
    ("lowwarning", "warning_low"),
)
Fields = Mapping[str, str]


def info(module: ModuleReading) -> Fields:
    """Return TRANSCEIVER_INFO."""
    return {
        "type": TYPES.get(module.identifier, module.identifier),
        "manufacturer": module.vendor,
        "model": module.part,
        "serial": module.serial,
        "vendor_rev": module.revision,
        "vendor_oui": NOT_READ,
        "vendor_date": NOT_READ,
        "active_firmware": module.firmware or NOT_READ,
        "inactive_firmware": NOT_READ,
        "cable_length": f"{module.length_m:g}",
        "cable_type": "Length Cable Assembly(m)",
        "connector": "No separable connector" if module.kind != "optic" else "MPO 1x12",
        "specification_compliance": MEDIA[module.kind],
        "media_interface_technology": "Copper cable unequalized" if module.kind == "copper" else NOT_READ,
        "is_replaceable": "True",
        "dom_capability": NOT_READ,
    }


def sensors(module: ModuleReading) -> Fields:
    """Return TRANSCEIVER_DOM_SENSOR; a module without light or supply answers nothing there."""
    is_powered = module.temperature_limits is not None
    found = {
        "temperature": str(module.temperature_c) if is_powered else NOT_READ,
        "voltage": str(module.voltage_v) if is_powered else NOT_READ,
    }
    lanes = dict(enumerate(module.lanes, module.first_lane))
    for number in range(1, LANES + 1):
        lane = lanes.get(number)
        found |= {
            f"rx{number}power": str(lane.rx_dbm) if lane else NOT_READ,
            f"tx{number}power": str(lane.tx_dbm) if lane else NOT_READ,
            f"tx{number}bias": str(lane.bias_ma) if lane else NOT_READ,
        }
    return found


def thresholds(module: ModuleReading) -> Fields:
    """Return TRANSCEIVER_DOM_THRESHOLD."""
    return dict(_thresholds(module))


def _thresholds(module: ModuleReading) -> Iterator[tuple[str, str]]:
    for name, limits in limits_of(module).items():
        for suffix, attribute in LIMIT_NAMES:
            yield f"{name}{suffix}", NOT_READ if limits is None else str(getattr(limits, attribute))


def limits_of(module: ModuleReading) -> Mapping[str, ModuleThresholds | None]:
    """Return a module's own limits by what they are on."""
    return {
        "rxpower": module.rx_limits,
        "txbias": module.bias_limits,
        "txpower": module.tx_limits,
        "temp": module.temperature_limits,
        "vcc": module.voltage_limits,
    }


def status(module: ModuleReading) -> Fields:
    """Return TRANSCEIVER_STATUS: the module's state, and which lanes see no light."""
    lanes = dict(enumerate(module.lanes, module.first_lane))
    dark = {
        f"rxlos{number}": str(lane.rx_dbm <= module.rx_limits.alarm_low) if module.rx_limits else NOT_READ
        for number, lane in lanes.items()
    }
    faults = {f"txfault{number}": "False" for number in lanes}
    return {"cmis_state": "READY", "module_state": "ModuleReady", **dark, **faults}


def split_status(module: ModuleReading) -> Mapping[str, Fields]:
    """Return the same by table, as later branches have it: what the daemon knows, what the module is, its flags."""
    found = status(module)
    flags = {name: value for name, value in found.items() if name.startswith(("rxlos", "txfault"))}
    return {
        "STATUS_SW": {"status": "1", "cmis_state": found["cmis_state"]},
        "STATUS": {"module_state": found["module_state"]},
        "STATUS_FLAG": flags,
    }


def module_of(system: SonicSystem, reading: PortReading) -> ModuleReading | None:
    """Return the module of a port; the daemon finds its cage by the port's index alone."""
    return reading.module if text(system.running, "PORT", reading.name, "index") else None
