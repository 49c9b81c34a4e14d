"""`show interfaces transceiver …`: modules as people read them."""

from collections.abc import Iterator

from netkit.lab.personalities.sonic import transceiver
from netkit.lab.personalities.sonic.columns import columns
from netkit.lab.personalities.sonic.command import Command, Commands, Line
from netkit.lab.personalities.sonic.show_interfaces import chosen
from netkit.lab.personalities.sonic.system import System
from netkit.lab.personalities.sonic.tables import text
from netkit.lab.personality import Call
from netkit.lab.reading import ModuleReading, PortReading

INDENT = " " * 8
EEPROM = (
    ("Active Firmware", "active_firmware"),
    ("Connector", "connector"),
    ("Identifier", "type"),
    ("Inactive Firmware", "inactive_firmware"),
    ("Length Cable Assembly(m)", "cable_length"),
    ("Media Interface Technology", "media_interface_technology"),
    ("Specification compliance", "specification_compliance"),
    ("Vendor Date Code(YYYY-MM-DD Lot)", "vendor_date"),
    ("Vendor Name", "manufacturer"),
    ("Vendor OUI", "vendor_oui"),
    ("Vendor PN", "model"),
    ("Vendor Rev", "vendor_rev"),
    ("Vendor SN", "serial"),
)
CHANNEL_LIMITS = {"rxpower": ("RxPower", "dBm"), "txbias": ("TxBias", "mA"), "txpower": ("TxPower", "dBm")}
MODULE_LIMITS = {"temp": ("Temp", "C"), "vcc": ("Vcc", "Volts")}
LIMIT_WORDS = {
    "highalarm": "HighAlarm",
    "highwarning": "HighWarning",
    "lowalarm": "LowAlarm",
    "lowwarning": "LowWarning",
}


def _eeprom(system: System, call: Call, line: Line) -> None:
    for name, module in _modules(system, line):
        if module is None:
            call.out(f"{name}: SFP EEPROM Not detected\n\n")
            continue
        found = transceiver.info(module)
        call.out(f"{name}: SFP EEPROM detected\n")
        call.out("".join(f"{INDENT}{title}: {found[key]}\n" for title, key in EEPROM))
        if line.has("-d", "--dom"):
            call.out("".join(f"{shown}\n" for shown in _dom(module)))
        call.out("\n")


def _modules(system: System, line: Line) -> Iterator[tuple[str, ModuleReading | None]]:
    found = {reading.name: module_of(system, reading) for reading in system.node.ports()}
    yield from ((name, found.get(name)) for name in chosen(system, line))


def module_of(system: System, reading: PortReading) -> ModuleReading | None:
    """Return the module of a port; the daemon finds its cage by the port's index alone."""
    return reading.module if text(system.running, "PORT", reading.name, "index") else None


def _dom(module: ModuleReading) -> Iterator[str]:
    values, limits = transceiver.sensors(module), transceiver.thresholds(module)
    yield f"{INDENT}ChannelMonitorValues:"
    for title, key, unit in _channels():
        if values[key] != transceiver.NOT_READ:
            yield f"{INDENT * 2}{title}: {values[key]}{unit}"
    yield f"{INDENT}ChannelThresholdValues:"
    yield from _limits(CHANNEL_LIMITS, limits)
    yield f"{INDENT}ModuleMonitorValues:"
    for title, key, unit in (("Temperature", "temperature", "C"), ("Vcc", "voltage", "Volts")):
        if values[key] != transceiver.NOT_READ:
            yield f"{INDENT * 2}{title}: {values[key]}{unit}"
    yield f"{INDENT}ModuleThresholdValues:"
    yield from _limits(MODULE_LIMITS, limits)


def _channels() -> Iterator[tuple[str, str, str]]:
    numbers = range(1, transceiver.LANES + 1)
    yield from ((f"RX{number}Power", f"rx{number}power", "dBm") for number in numbers)
    for number in numbers:
        yield f"TX{number}Bias", f"tx{number}bias", "mA"
        yield f"TX{number}Power", f"tx{number}power", "dBm"


def _limits(names: dict[str, tuple[str, str]], limits: transceiver.Fields) -> Iterator[str]:
    for key, (title, unit) in names.items():
        for suffix, word in LIMIT_WORDS.items():
            value = limits[f"{key}{suffix}"]
            if value != transceiver.NOT_READ:
                yield f"{INDENT * 2}{title + word:<{len(title) + 11}}: {value}{unit}"


def _presence(system: System, call: Call, line: Line) -> None:
    rows = [(name, "Present" if module else "Not present") for name, module in _modules(system, line)]
    call.out(columns(("Port", "Presence"), rows, right=False))


def _status(system: System, call: Call, line: Line) -> None:
    for name, module in _modules(system, line):
        if module is None:
            call.out(f"{name}: Transceiver status info not applicable\n\n")
            continue
        found = transceiver.status(module)
        call.out(f"{name}:\n{INDENT}CMIS State (SW): {found['cmis_state']}\n")
        for key, title in (
            ("txfault", "Tx fault flag on media lane"),
            ("rxlos", "Rx loss of signal flag on media lane"),
        ):
            numbers = [field.removeprefix(key) for field in found if field.startswith(key)]
            call.out("".join(f"{INDENT}{title} {number}: {found[key + number]}\n" for number in numbers))
        call.out("\n")


COMMANDS: Commands = {
    ("interfaces", "transceiver", "eeprom"): Command(_eeprom, 1, frozenset({"-d", "--dom"})),
    ("interfaces", "transceiver", "presence"): Command(_presence, 1),
    ("interfaces", "transceiver", "status"): Command(_status, 1),
}
