"""`nv show` of ports and of the switch: links, LLDP, bit errors and transceivers."""

import hashlib
import json
import math
import re
import time
from collections.abc import Callable, Iterable, Mapping

from netkit.design.fabric import Switch
from netkit.lab.agents.lldp_daemon import Json, lldp_dicts, lldp_parsed, lldp_value
from netkit.lab.netlink import PEER_INTERFACE
from netkit.lab.personalities.nvue import show_qos
from netkit.lab.personalities.nvue.rules import is_negotiating
from netkit.lab.personalities.nvue.schema import PEERLINK, PORT, interface_type
from netkit.lab.personalities.nvue.system import NvueShowContext, Shown
from netkit.lab.personalities.nvue.tree import Tree, child, copy, hidden
from netkit.lab.reading import ModuleThresholds, SwitchPortReading, TransceiverReading
from netkit.lab.state import STP_PRIORITIES

COMMAND = ("lldpcli", "-f", "json0", "show", "neighbors", "details")
CAPABILITIES = {"Bridge": "is-bridge", "Router": "is-router", "Station": "is-station"}


def neighbors(context: NvueShowContext) -> Mapping[str, Mapping[str, Shown]]:
    """The LLDP neighbours of each interface, by system name."""
    shown: dict[str, dict[str, Shown]] = {}
    for top in lldp_dicts(lldp_parsed(context.system.node.run(*COMMAND).stdout).get("lldp")):
        for entry in lldp_dicts(top.get("interface")):
            chassis, port = (next(lldp_dicts(entry.get(key)), {}) for key in ("chassis", "port"))
            name = lldp_value(chassis, "name") or lldp_value(chassis, "id")
            shown.setdefault(str(entry.get("name", "")), {})[name] = _neighbor(entry, chassis, port)
    return shown


def _neighbor(entry: Mapping[str, Json], chassis: Mapping[str, Json], port: Mapping[str, Json]) -> Shown:
    capabilities: dict[str, Shown] = {
        CAPABILITIES[str(one.get("type"))]: {}
        for one in lldp_dicts(chassis.get("capability"))
        if one.get("enabled") and one.get("type") in CAPABILITIES
    }
    port_id, ttl = next(lldp_dicts(port.get("id")), {}), lldp_value(port, "ttl")
    age = re.fullmatch(r"(\d+) days?, (\d+):(\d+):(\d+)", str(entry.get("age", "")))
    days, hours, minutes, seconds = map(int, age.groups()) if age else (0, 0, 0, 0)
    return {
        "age": str(((days * 24 + hours) * 60 + minutes) * 60 + seconds),
        "bridge": {"vlan": {}},
        "chassis": {
            "capability": capabilities,
            "chassis-id": lldp_value(chassis, "id"),
            "management-address-ipv4": lldp_value(chassis, "mgmt-ip"),
            "system-name": lldp_value(chassis, "name"),
            "system-description": lldp_value(chassis, "descr"),
        },
        "lldp-med": {},
        "port": {
            "description": lldp_value(port, "descr"),
            "name": str(port_id.get("value", "")),
            "ttl": int(ttl) if ttl.isdigit() else 0,
            "type": str(port_id.get("type", "")),
        },
    }


def all_ports(context: NvueShowContext) -> Shown:
    """The LLDP neighbours of all interfaces."""
    return {name: {"lldp": {"neighbor": found}} for name, found in neighbors(context).items()}


STATUS_SINCE = (5, 11)


def interfaces(context: NvueShowContext) -> Shown:
    """All interfaces, or one aspect of all ports."""
    if context.view == "lldp":
        return all_ports(context)
    if context.view in PER_PORT:
        return aspect(context.view)(context)
    return {name: interface(context.at(name)) for name in context.interfaces}


def aspect(name: str) -> Callable[[NvueShowContext], Shown]:
    def view(context: NvueShowContext) -> Shown:
        return {port: PER_PORT[name](context.at(port)) for port in context.ports if port in context.readings}

    return view


def interface(context: NvueShowContext) -> Shown:
    """One interface: configuration, link and adaptive routing."""
    name = context.name
    shown: dict[str, object] = dict(hidden(child(context.tree, "interface", name)))
    shown.setdefault("type", interface_type(name))
    address = "ipv4" if context.is_since(5, 15) else "ip"
    shown.setdefault(address, {"address": {}})
    shown["link"] = link(context)
    if name in context.readings:
        routing = child(context.tree, "interface", name, "router")
        shown["router"] = {**routing, "adaptive-routing": adaptive_routing(context)}
    return shown


def link(context: NvueShowContext) -> Shown:
    configured: Tree = child(context.tree, "interface", context.name, "link")
    reading = context.readings.get(context.name)
    if context.name not in context.ports or reading is None:
        return _link_without_cable(context, configured)
    shown: dict[str, object] = {
        "auto-negotiate": context.word(is_on=is_negotiating(child(context.tree, "interface", context.name))),
        "mac-address" if context.is_since(5, 15) else "mac": reading.mac,
        "mtu": reading.mtu_bytes,
        "speed": f"{reading.speed_gbps}G",
        "fec": reading.fec.mode or "auto",
        "state": {"up" if reading.is_up else "down": {}},
        "stats": stats(context),
    }
    if context.is_since(*STATUS_SINCE):
        shown["admin-status"] = "up" if reading.is_enabled else "down"
        shown["oper-status"] = "up" if reading.is_up else "down"
    return shown


def _link_without_cable(context: NvueShowContext, configured: Tree) -> Shown:
    """The link of an interface without a cable: management, loopback, VLANs, free ports and split cages."""
    name = context.name
    if PORT.fullmatch(name) and name not in context.ports:
        return dict(configured)
    is_up = name in {"eth0", "lo"} or ("down" not in child(configured, "state") and name not in context.ports)
    if members := child(context.tree, "interface", name, "bond", "member"):
        is_up = is_up and _has_carrier(context, members)
    shown: dict[str, object] = {key: copy(value) for key, value in configured.items()}
    shown["state"] = {"up" if is_up else "down": {}}
    if context.is_since(*STATUS_SINCE):
        state = context.states.get(name)
        shown["admin-status"] = "up" if is_up or (state and state.is_enabled) else "down"
        shown["oper-status"] = "up" if is_up else "down"
    return shown


def _has_carrier(context: NvueShowContext, names: Iterable[str]) -> bool:
    found = json.loads(context.system.node.run("ip", "-j", "link", "show").stdout or "[]")
    return any(one["ifname"] in names and "LOWER_UP" in one["flags"] for one in found)


def mlag(context: NvueShowContext) -> Shown:
    """The state of the pair. The peer lives if both switches have MLAG, and a link between them is up."""
    configured = dict(hidden(child(context.tree, "mlag")))
    if not configured:
        return {}
    links = child(context.tree, "interface", PEERLINK, "bond", "member")
    is_alive = _has_carrier(context, (PEER_INTERFACE,)) and _has_carrier(context, links)
    is_first = any(vlan.stp_priority == min(STP_PRIORITIES) for vlan in context.state.vlans)
    roles = ("primary", "secondary") if is_first else ("secondary", "primary")
    return {
        **configured,
        "backup-active": True,
        "local-role": roles[0],
        "peer-role": roles[1] if is_alive else "",
        "peer-alive": is_alive,
    }


def stats(context: NvueShowContext) -> Shown:
    reading = context.port
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
    if context.is_since(5, 15):
        shown |= {"carrier-up-count": (changes + 1) // 2, "carrier-down-count": changes // 2}
    return shown


def adaptive_routing(context: NvueShowContext) -> Shown:
    configured = child(context.tree, "interface", context.name, "router", "adaptive-routing")
    key = "state" if context.is_since(5, 15) else "enable"
    return {**configured, key: context.word(is_on=context.port.adaptive_routing)}


PER_PORT: Mapping[str, Callable[[NvueShowContext], Shown]] = {
    "qos-congestion-control": show_qos.port_ecn,
    "qos-roce-counters": show_qos.roce_counters,
    "qos-roce-status": show_qos.port_roce,
}
"""Views of all ports for `--view`."""


def serial_number(name: str) -> str:
    """An invented serial number that is stable for a name."""
    return "MT" + hashlib.sha256(name.encode()).hexdigest()[:10].upper()


def platform(context: NvueShowContext) -> Shown:
    model, device = context.system.chassis.model, context.system.node.device
    return {
        "asic-model": model.asic,
        "manufacturer": model.vendor,
        "product-name": model.name,
        "serial-number": serial_number(context.system.node.name),
        "system-mac": device.system_mac if isinstance(device, Switch) else "",
        "system-type": f"{model.cages} x {model.cage_form}",
    }


def system(context: NvueShowContext) -> Shown:
    """The system: configuration, release and uptime."""
    release = context.system.chassis.release
    shown: dict[str, object] = dict(hidden(child(context.tree, "system")))
    shown |= {
        "build": f"Cumulus Linux {release}",
        "product-name": "Cumulus Linux",
        "platform": context.system.chassis.model.name,
        "uptime": int(time.monotonic() - context.system.applier.booted_s),
        "hostname": context.state.hostname,
    }
    product: dict[str, object] = {"product-release": release}
    return shown | ({"version": product} if context.is_since(5, 14) else product)


NO_ERRORS = "15E-255"
CODEWORD_BITS = 5440
CABLE_TYPES = {"copper": "Passive copper cable", "active": "Active cable", "optic": "Optical module"}
Form = Callable[[float], str]


def ber(rate: float) -> str:
    """Format a bit error rate as the switch does; 15E-255 means no errors."""
    if rate <= 0:
        return NO_ERRORS
    magnitude = 1 - math.floor(math.log10(rate))
    return f"{round(rate * 10**magnitude)}E-{magnitude}"


def health(context: NvueShowContext) -> Shown:
    """The bit errors and FEC histogram of a port; lanes are not modelled."""
    fec = context.port.fec
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
    return {
        "cable-type": CABLE_TYPES[module.kind],
        "cable-length": f"{module.length_m:g}m",
        "diagnostics-status": "No Diagnostic Data" if module.kind == "copper" else "Diagnostic Data Available",
        "status": "plugged_enabled" if reading.is_enabled else "plugged_disabled",
        "error-status": "N/A",
        "revision-compliance": module.revision,
        "identifier": module.identifier,
        "vendor-name": module.vendor,
        "vendor-pn": module.part,
        "vendor-sn": module.serial,
        "firmware-version": module.firmware,
    }


def all_modules(context: NvueShowContext) -> Shown:
    return {name: with_limits(context.at(name)) for name in context.ports if name in context.readings}


def with_limits(context: NvueShowContext) -> Shown:
    """A module with its thresholds and alarms."""
    reading = context.port
    module = reading.module
    if module is None:
        return {"status": "unplugged"}
    shown = _identity(reading, module)
    if module.temperature_limits:
        shown["temperature"] = _measured("temperature", module.temperature_c, module.temperature_limits, celsius)
    if module.voltage_limits:
        shown["voltage"] = _measured("voltage", module.voltage_v, module.voltage_limits, volts)
    lanes = {
        f"channel-{at}": {
            "rx-power": _measured("power", lane.rx_dbm, module.rx_limits, power),
            "tx-power": _measured("power", lane.tx_dbm, module.tx_limits, power),
            "tx-bias-current": _measured("current", lane.bias_ma, module.bias_limits, current),
        }
        for at, lane in enumerate(module.lanes, module.first_lane)
    }
    if lanes:
        shown["channel"] = lanes
    return shown


def _measured(name: str, value: float, limits: ModuleThresholds | None, form: Form) -> Shown:
    if limits is None:
        return {name: form(value)}
    return {
        name: form(value),
        "high-alarm-threshold": form(limits.alarm_high),
        "high-warning-threshold": form(limits.warning_high),
        "low-warning-threshold": form(limits.warning_low),
        "low-alarm-threshold": form(limits.alarm_low),
        "alarm": _alarm(value, limits),
    }


def _alarm(value: float, limits: ModuleThresholds) -> str:
    checks = (
        ("High Alarm", value > limits.alarm_high),
        ("Low Alarm", value < limits.alarm_low),
        ("High Warning", value > limits.warning_high),
        ("Low Warning", value < limits.warning_low),
    )
    return next((name for name, is_passed in checks if is_passed), "Off")


def power(dbm: float) -> str:
    return f"{10 ** (dbm / 10):.4f} mW / {dbm:.2f} dBm"


def current(milliampere: float) -> str:
    return f"{milliampere:.3f} mA"


def celsius(degrees: float) -> str:
    return f"{degrees:.2f} degrees C / {degrees * 9 / 5 + 32:.2f} degrees F"


def volts(value: float) -> str:
    return f"{value:.4f} V"
