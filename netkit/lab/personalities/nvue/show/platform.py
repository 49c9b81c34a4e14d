"""The switch itself: model, release, uptime."""

import hashlib
import os
import time

from netkit.design.fabric import Switch
from netkit.lab.personalities.nvue.secret import hidden
from netkit.lab.personalities.nvue.show.look import Look, Shown
from netkit.lab.personalities.nvue.tree import child


def serial_number(name: str) -> str:
    """Return a serial number: invented, but always the same for a name."""
    return "MT" + hashlib.sha256(name.encode()).hexdigest()[:10].upper()


def platform(look: Look) -> Shown:
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


def inventory(look: Look) -> Shown:
    """Return the parts of the switch."""
    model = look.system.chassis.model
    part = {"hardware-version": "A1", "model": model.name, "serial": serial_number(look.system.node.name)}
    return {"SWITCH": {**part, "state": "ok", "type": "switch"}}


def firmware(look: Look) -> Shown:
    """Return the firmware of the optics, by port."""
    readings = look.readings.values()
    modules = {port.name: port.module for port in readings if port.module}
    return {
        f"transceiver-{name}": {"actual-firmware": module.firmware, "part-number": module.part}
        for name, module in modules.items()
    }


def system(look: Look) -> Shown:
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


def uptime_s(look: Look) -> int:
    """Return the seconds since the switch booted."""
    return int(time.monotonic() - look.system.applier.booted_s)


def version(look: Look) -> Shown:
    """Return the release."""
    release = look.system.chassis.release
    return {
        "image": f"Cumulus Linux {release}",
        "product-release": release,
        "kernel": os.uname().release,
    }


def health(_look: Look) -> Shown:
    """Return the health: the lab models no fans, supplies or disks that could fail."""
    return {"status": "OK", "issues": {}}
