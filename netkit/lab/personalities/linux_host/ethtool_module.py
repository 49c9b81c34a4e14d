"""What `ethtool -m` prints of a module with a CMIS memory: who made it, what it measures, and its own limits."""

from collections.abc import Iterator

from netkit.lab.reading import LaneReading, Limits, ModuleReading

DARK_DBM = -40.0
IDENTIFIERS = {
    "OSFP": "0x19 (OSFP 8X Pluggable Transceiver)",
    "QSFP-DD": "0x18 (QSFP-DD Double Density 8X Pluggable Transceiver (INF-8628))",
    "QSFP112": "0x1e (QSFP+ or later with CMIS)",
    "QSFP56": "0x1e (QSFP+ or later with CMIS)",
}
TECHNOLOGIES = {
    "optic": "0x06 (1310 nm EML)",
    "active": "0x00 (850 nm VCSEL)",
    "copper": "0x0a (Copper cable unequalized)",
}
LEVELS = ("high alarm", "low alarm", "high warning", "low warning")


def module_page(module: ModuleReading) -> str:
    """Return the whole page."""
    return "".join(f"\t{name:<41} : {value}\n" for name, value in _rows(module))


def _rows(module: ModuleReading) -> Iterator[tuple[str, str]]:
    yield "Identifier", IDENTIFIERS.get(module.identifier, IDENTIFIERS["OSFP"])
    yield "Power class", "1" if module.kind == "copper" else "8"
    yield "Max power", "1.50W" if module.kind == "copper" else "17.00W"
    yield "Connector", "0x0c (MPO)" if module.kind == "optic" else "0x23 (No separable connector)"
    yield "Cable assembly length", f"{0 if module.kind == 'optic' else module.length_m:.2f}m"
    yield "Transmitter technology", TECHNOLOGIES[module.kind]
    yield "Vendor name", module.vendor
    yield "Vendor OUI", "48:b0:2d"
    yield "Vendor PN", module.part
    yield "Vendor rev", module.revision
    yield "Vendor SN", module.serial
    yield "Date code", "240311"
    yield "Revision compliance", "Rev. 5.0"
    if module.firmware:
        yield "Active firmware version", module.firmware
    yield "Module State", "0x03 (ModuleReady)"
    yield "LowPwrAllowRequestHW", "Off"
    yield "LowPwrRequestSW", "Off"
    if module.kind == "copper":
        return
    yield "Module temperature", _celsius(module.temperature_c)
    yield "Module voltage", f"{module.voltage_v:.4f} V"
    yield from _lanes(module.lanes)
    yield from _flags(module)
    yield from _limits(module)


def _lanes(lanes: tuple[LaneReading, ...]) -> Iterator[tuple[str, str]]:
    for number, lane in enumerate(lanes, 1):
        yield f"Laser tx bias current (Channel {number})", f"{lane.bias_ma:.3f} mA"
    for number, lane in enumerate(lanes, 1):
        yield f"Transmit avg optical power (Channel {number})", _light(lane.tx_dbm)
    for number, lane in enumerate(lanes, 1):
        yield f"Rcvr signal avg optical power (Channel {number})", _light(lane.rx_dbm)
    dark = ["Yes" if lane.rx_dbm <= DARK_DBM else "No" for lane in lanes]
    yield "Rx loss of signal", f"[ {', '.join(dark)} ]" if "Yes" in dark else "None"
    yield "Tx fault", "None"


def _flags(module: ModuleReading) -> Iterator[tuple[str, str]]:
    for level in LEVELS:
        for name, value, limits in (
            ("Module temperature", module.temperature_c, module.temperature_limits),
            ("Module voltage", module.voltage_v, module.voltage_limits),
        ):
            yield f"{name} {level}", _flag(level, value, limits)
    for level in LEVELS:
        for number, lane in enumerate(module.lanes, 1):
            yield f"Laser rx power {level} (Channel {number})", _flag(level, lane.rx_dbm, module.rx_limits)
        for number, lane in enumerate(module.lanes, 1):
            yield f"Laser tx power {level} (Channel {number})", _flag(level, lane.tx_dbm, module.tx_limits)
        for number, lane in enumerate(module.lanes, 1):
            yield f"Laser bias current {level} (Channel {number})", _flag(level, lane.bias_ma, module.bias_limits)


def _limits(module: ModuleReading) -> Iterator[tuple[str, str]]:
    for name, limits, show in (
        ("Laser bias current", module.bias_limits, lambda value: f"{value:.3f} mA"),
        ("Laser output power", module.tx_limits, _light),
        ("Module temperature", module.temperature_limits, _celsius),
        ("Module voltage", module.voltage_limits, lambda value: f"{value:.4f} V"),
        ("Laser rx power", module.rx_limits, _light),
    ):
        if limits is not None:
            for level in LEVELS:
                yield f"{name} {level} threshold", show(_limit(level, limits))


def _limit(level: str, limits: Limits) -> float:
    """Return one of the four limits by the words ethtool has for it."""
    high, alarm = level.startswith("high"), level.endswith("alarm")
    if alarm:
        return limits.alarm_high if high else limits.alarm_low
    return limits.warning_high if high else limits.warning_low


def _flag(level: str, value: float, limits: Limits | None) -> str:
    if limits is None:
        return "Off"
    limit = _limit(level, limits)
    return "On" if (value > limit if level.startswith("high") else value < limit) else "Off"


def _light(dbm: float) -> str:
    if dbm <= DARK_DBM:
        return "0.0000 mW / -inf dBm"
    return f"{10 ** (dbm / 10):.4f} mW / {dbm:.2f} dBm"


def _celsius(value: float) -> str:
    return f"{value:.2f} degrees C / {value * 9 / 5 + 32:.2f} degrees F"
