"""`nv show` of ports and of the switch: links, neighbours, bit errors, and optics by the keys of their text."""

import hashlib
import json
import math
import re
import time
from collections.abc import Callable, Iterator, Mapping

from netkit.design.fabric import Switch
from netkit.lab.personalities.nvue import show_qos
from netkit.lab.personalities.nvue.rules import is_negotiating
from netkit.lab.personalities.nvue.schema import PORT
from netkit.lab.personalities.nvue.show_context import NvueShowContext, Shown
from netkit.lab.personalities.nvue.tree import Tree, child, copy, hidden
from netkit.lab.reading import LaneReading, ModuleThresholds, SwitchPortReading, TransceiverReading

COMMAND = ("lldpcli", "-f", "json0", "show", "neighbors", "details")
CAPABILITIES = {"Bridge": "is-bridge", "Router": "is-router", "Station": "is-station"}


def neighbors(look: NvueShowContext) -> Mapping[str, Mapping[str, Shown]]:
    """Return the neighbours of each interface, by system name."""
    done = look.system.node.run(*COMMAND)
    try:
        found = json.loads(done.stdout or "{}")
    except json.JSONDecodeError:
        return {}
    shown: dict[str, dict[str, Shown]] = {}
    for entry in _items(_first(found, "lldp"), "interface"):
        chassis, port = _first(entry, "chassis"), _first(entry, "port")
        name = _text(chassis, "name") or _text(chassis, "id")
        shown.setdefault(str(entry.get("name", "")), {})[name] = _neighbor(entry, chassis, port)
    return shown


def _neighbor(entry: Shown, chassis: Shown, port: Shown) -> Shown:
    able: dict[str, Shown] = {
        CAPABILITIES[str(one.get("type"))]: {}
        for one in _items(chassis, "capability")
        if one.get("enabled") and one.get("type") in CAPABILITIES
    }
    ident = _first(port, "id")
    return {
        "age": str(_seconds(str(entry.get("age", "")))),
        "bridge": {"vlan": {}},
        "chassis": {
            "capability": able,
            "chassis-id": _text(chassis, "id"),
            "management-address-ipv4": _text(chassis, "mgmt-ip"),
            "system-name": _text(chassis, "name"),
            "system-description": _text(chassis, "descr"),
        },
        "lldp-med": {},
        "port": {
            "description": _text(port, "descr"),
            "name": str(ident.get("value", "")),
            "ttl": _int(_text(port, "ttl")),
            "type": str(ident.get("type", "")),
        },
    }


def _items(found: object, key: str) -> Iterator[Shown]:
    items = found.get(key) if isinstance(found, dict) else None
    yield from (item for item in items or () if isinstance(item, dict))


def _first(found: object, key: str) -> Shown:
    return next(_items(found, key), {})


def _text(found: object, key: str) -> str:
    return str(_first(found, key).get("value", ""))


def _int(text: str) -> int:
    return int(text) if text.isdigit() else 0


def _seconds(age: str) -> int:
    parts = re.fullmatch(r"(\d+) days?, (\d+):(\d+):(\d+)", age)
    days, hours, minutes, seconds = map(int, parts.groups()) if parts else (0, 0, 0, 0)
    return ((days * 24 + hours) * 60 + minutes) * 60 + seconds


def all_ports(look: NvueShowContext) -> Shown:
    """Return the interfaces that have neighbours."""
    return {name: {"lldp": {"neighbor": found}} for name, found in neighbors(look).items()}


STATUS_SINCE = (5, 11)


def interfaces(look: NvueShowContext) -> Shown:
    """Return all interfaces, or one aspect of the ports."""
    if look.view == "lldp":
        return all_ports(look)
    if look.view in PER_PORT:
        return aspect(look.view)(look)
    return {name: interface(look.at(name)) for name in look.interfaces}


def aspect(name: str) -> Callable[[NvueShowContext], Shown]:
    """Return the view of one aspect of the ports."""
    return lambda look: {port: PER_PORT[name](look.at(port)) for port in look.ports if port in look.readings}


def interface(look: NvueShowContext) -> Shown:
    """Return one interface: its configuration, with what the link shows and whether it routes adaptively over it."""
    name = look.name
    shown: dict[str, object] = dict(hidden(child(look.tree, "interface", name)))
    shown.setdefault("type", "swp" if PORT.fullmatch(name) else {"eth0": "eth", "lo": "loopback"}.get(name, "svi"))
    address = "ipv4" if look.is_since(5, 15) else "ip"
    shown.setdefault(address, {"address": {}})
    shown["link"] = link(look)
    if name in look.readings:
        routing = child(look.tree, "interface", name, "router")
        shown["router"] = {**routing, "adaptive-routing": adaptive_routing(look)}
    return shown


def link(look: NvueShowContext) -> Shown:
    """Return the link of one interface."""
    configured: Tree = child(look.tree, "interface", look.name, "link")
    reading = look.readings.get(look.name)
    if look.name not in look.ports or reading is None:
        return _unread(look, configured)
    shown: dict[str, object] = {
        "auto-negotiate": look.word(is_on=is_negotiating(child(look.tree, "interface", look.name))),
        "mac-address" if look.is_since(5, 15) else "mac": reading.mac,
        "mtu": reading.mtu_bytes,
        "speed": f"{reading.speed_gbps}G",
        "fec": reading.fec.mode or "auto",
        "state": {"up" if reading.is_up else "down": {}},
        "stats": stats(look),
    }
    if look.is_since(*STATUS_SINCE):
        shown["admin-status"] = "up" if reading.is_enabled else "down"
        shown["oper-status"] = "up" if reading.is_up else "down"
    return shown


def _unread(look: NvueShowContext, configured: Tree) -> Shown:
    """Return the link of what has no cable: the management port, the loopback, VLANs, free ports, split cages."""
    if PORT.fullmatch(look.name) and look.name not in look.ports:
        return dict(configured)
    is_up = look.name in {"eth0", "lo"} or ("down" not in child(configured, "state") and look.name not in look.ports)
    shown: dict[str, object] = {key: copy(value) for key, value in configured.items()}
    shown["state"] = {"up" if is_up else "down": {}}
    if look.is_since(*STATUS_SINCE):
        state = look.states.get(look.name)
        shown["admin-status"] = "up" if is_up or (state and state.is_enabled) else "down"
        shown["oper-status"] = "up" if is_up else "down"
    return shown


def stats(look: NvueShowContext) -> Shown:
    """Return the counters of a port's link."""
    reading = look.port
    traffic, changes = reading.traffic, reading.carrier_changes
    shown: dict[str, object] = {
        "carrier-transitions": changes,
        "in-bytes": traffic.rx_bytes,
        "in-drops": traffic.rx_dropped,
        "in-errors": traffic.rx_errors,
        "in-pkts": traffic.rx_packets,
        "out-bytes": traffic.tx_bytes,
        "out-drops": traffic.tx_dropped,
        "out-errors": traffic.tx_errors,
        "out-pkts": traffic.tx_packets,
    }
    if look.is_since(5, 15):
        shown |= {"carrier-up-count": (changes + 1) // 2, "carrier-down-count": changes // 2}
    return shown


def adaptive_routing(look: NvueShowContext) -> Shown:
    """Return whether a port takes part in adaptive routing."""
    configured = child(look.tree, "interface", look.name, "router", "adaptive-routing")
    key = "state" if look.is_since(5, 15) else "enable"
    return {**configured, key: look.word(is_on=look.port.adaptive_routing)}


PER_PORT: Mapping[str, Callable[[NvueShowContext], Shown]] = {
    "qos-congestion-control": show_qos.port_ecn,
    "qos-roce-counters": show_qos.roce_counters,
    "qos-roce-status": show_qos.port_roce,
}
"""The aspects of all ports that `--view` shows at once."""


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


def _identity(reading: SwitchPortReading, module: TransceiverReading) -> dict[str, object]:
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


def _lane(module: TransceiverReading, lane: LaneReading) -> Shown:
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
