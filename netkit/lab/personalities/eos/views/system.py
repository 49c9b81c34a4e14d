"""`show` of the switch as a whole and of its configuration."""

import os
from pathlib import Path
from typing import Any

from netkit.lab.personalities.eos import routing
from netkit.lab.personalities.eos.commands import Captured
from netkit.lab.personalities.eos.configuration import as_commands, body
from netkit.lab.personalities.eos.machine import HIGHEST_OPEN, HIGHEST_SAVED, ConfigSession
from netkit.lab.personalities.eos.reply import Data, EosReply
from netkit.lab.personalities.eos.switch_state import FACTORY_HOSTNAME
from netkit.lab.personalities.eos.views.lens import Lens, table

TIMER_AT_TOP = (4, 32)
"""From this release a session reads completed at once, and the timer stands beside the sessions."""


def running(lens: Lens, _: Captured) -> EosReply:
    """Show the running configuration."""
    switch = lens.machine.switch
    head = f"! Command: show running-config\n! device: {switch.name} ({switch.model.name}, EOS-{switch.version})\n!\n"
    header = [line.removeprefix("! ") for line in head.splitlines()[:2]]
    return EosReply({"cmds": as_commands(lens.config), "header": header}, head + body(lens.config))


def startup(lens: Lens, _: Captured) -> EosReply:
    """Show the startup configuration."""
    text = lens.machine.flash.startup
    data = {"cmds": as_commands(lens.machine.parse(text)), "header": ["Command: show startup-config"]}
    return EosReply(data, f"! Command: show startup-config\n{text}")


def sessions(lens: Lens, _: Captured) -> EosReply:
    """Show the sessions, and the commit that waits for its confirmation."""
    machine, timer = lens.machine, lens.machine.timer
    is_at_top = machine.release >= TIMER_AT_TOP
    data: dict[str, object] = {
        "sessions": {name: _session(lens, session, is_at_top=is_at_top) for name, session in machine.sessions.items()},
        "maxSavedSessions": HIGHEST_SAVED,
        "maxOpenSessions": HIGHEST_OPEN,
        "mergeOnCommit": False,
        "saveToStartupConfigOnCommit": False,
    }
    if timer and is_at_top:
        data |= {"commitTimerSessionName": timer.session, "commitTimerExpireTime": timer.ends_s}
    rows = [f"  {name:24} {session.state:20} {session.user}" for name, session in machine.sessions.items()]
    text = (
        f"Maximum number of completed sessions: {HIGHEST_SAVED}\nMaximum number of pending sessions: {HIGHEST_OPEN}\n"
    )
    return EosReply(data, text + "\n".join(("", "  Name                     State                User", *rows, "")))


def _session(lens: Lens, session: ConfigSession, *, is_at_top: bool) -> Data:
    timer = lens.machine.timer
    is_waiting = session.state == "pendingCommitTimer"
    return {
        "state": "completed" if is_waiting and is_at_top else session.state,
        "completedTime": session.completed_s,
        "commitBy": timer.ends_s if timer and is_waiting and not is_at_top else 0.0,
        "commitUser": session.user,
        "description": session.description,
        "instances": {},
    }


CONFIG_VIEWS = (
    ("show running-config", running),
    ("show running-config all", running),
    ("show running-config sanitized", running),
    ("show running-config all sanitized", running),
    ("show startup-config", startup),
    ("show configuration sessions", sessions),
    ("show configuration sessions detail", sessions),
)


NO_MAC = "02:00:00:00:00:00"
NOT_PRESENT = "Not Present"
KB = 1024


def version(lens: Lens, _: Captured) -> EosReply:
    """Show model and release."""
    switch, mac = lens.machine.switch, lens.machine.switch.system_mac or NO_MAC
    data = {
        "mfgName": switch.model.vendor,
        "modelName": switch.model.name,
        "hardwareRevision": "11.01",
        "serialNumber": serial(lens),
        "systemMacAddress": mac,
        "hwMacAddress": mac,
        "configMacAddress": "00:00:00:00:00:00",
        "version": switch.version,
        "architecture": "x86_64",
        "internalVersion": f"{switch.version}-lab",
        "internalBuildId": "lab",
        "imageFormatVersion": "3.0",
        "imageOptimization": "Default",
        "bootupTimestamp": lens.machine.booted_at_s,
        "uptime": lens.machine.uptime_s,
        "memTotal": 32_000_000,
        "memFree": 24_000_000,
        "isIntlVersion": False,
    }
    text = (
        f"{switch.model.vendor} {switch.model.name}\nSerial number: {serial(lens)}\nSystem MAC address: {mac}\n\n"
        f"Software image version: {switch.version}\nUptime: {lens.machine.uptime_s:.0f} seconds\n"
    )
    return EosReply(data, text)


def serial(lens: Lens) -> str:
    """Return the serial number of a switch: one that cannot be mistaken for a real one."""
    return f"LAB-{lens.machine.node.name}"


def hostname(lens: Lens, _: Captured) -> EosReply:
    """Show the name."""
    name = lens.config.word("hostname") or FACTORY_HOSTNAME
    domain = lens.config.word("dns", "domain")
    fqdn = f"{name}.{domain}" if domain else name
    return EosReply({"hostname": name, "fqdn": fqdn}, f"Hostname: {name}\nFQDN:     {fqdn}\n")


def file_systems(lens: Lens, _: Captured) -> EosReply:
    """Show what there is to write to: what outlives a boot, and what EOS has in memory."""
    node = lens.machine.node
    found = [
        _file_system("file:", node.file("/tmp"), "tmpfs", is_current=False),  # noqa: S108
        _file_system("flash:", node.saved, "ext4", is_current=True),
    ]
    rows = [(one["size"], one["free"], one["fsType"], one["permission"], one["prefix"]) for one in found]
    text = "File Systems:\n\n" + table(("Size (kb)", "Free (kb)", "Type", "Flags", "Prefixes"), rows)
    return EosReply({"fileSystems": found}, text)


def _file_system(prefix: str, folder: Path, kind: str, *, is_current: bool) -> dict[str, Any]:
    held = os.statvfs(folder)
    return {
        "prefix": prefix,
        "currentFs": is_current,
        "size": held.f_blocks * held.f_frsize // KB,
        "free": held.f_bavail * held.f_frsize // KB,
        "fsType": "flash",
        "linuxFs": kind,
        "permission": "ro" if held.f_flag & os.ST_RDONLY else "rw",
    }


def inventory(lens: Lens, captured: Captured) -> EosReply:
    """Show the switch and what is in its cages; ports of one cage share the module."""
    switch = lens.machine.switch
    empty = {"mfgName": NOT_PRESENT, "modelName": "", "serialNum": "", "hardwareRev": ""}
    slots: dict[str, dict[str, str]] = {str(number): dict(empty) for number in range(1, switch.model.cages + 1)}
    for port, reading in lens.ports(captured):
        module = reading.module
        if module:
            slots[port.removeprefix("Ethernet").partition("/")[0]] = {
                "mfgName": module.vendor,
                "modelName": module.part,
                "serialNum": module.serial,
                "hardwareRev": module.revision,
            }
    data: dict[str, Any] = {
        "systemInformation": {
            "name": switch.model.name,
            "description": switch.model.name,
            "mfgDate": "",
            "hardwareRev": "11.01",
            "serialNum": serial(lens),
        },
        "xcvrSlots": slots,
        "powerSupplySlots": {},
        "fanTraySlots": {},
        "cardSlots": {},
        "portCount": len(lens.machine.ports),
    }
    rows = [(number, one["mfgName"], one["modelName"], one["serialNum"]) for number, one in slots.items()]
    return EosReply(data, table(("Port", "Manufacturer", "Model", "Serial Number"), rows))


def maintenance(lens: Lens, _: Captured) -> EosReply:
    """Show what is out of traffic. The lab takes a unit out at once."""
    units = {}
    rows = []
    for name, is_quiesced, groups in routing.units(lens.config):
        state = "underMaintenance" if is_quiesced else "active"
        units[name] = {
            "state": state,
            "adminState": state,
            "stateChangeTime": 0.0,
            "onBootMaintenance": False,
            "intfsViolatingTrafficThreshold": False,
            "aggInBpsRate": 0,
            "aggOutBpsRate": 0,
        }
        rows.append((name, state, " ".join(groups)))
    drained = routing.drained_ports(lens.config, lens.machine.ports)
    interfaces = {port: {"status": "underMaintenance", "adminState": "underMaintenance"} for port in drained}
    data: dict[str, Any] = {"units": units, "interfaces": interfaces, "vrfs": {}}
    if not any(section.entries for _, section in lens.config.sections("maintenance")):
        data["warnings"] = ["Maintenance Mode is disabled."]
    profiles = sorted({f"{drain.profile} {drain.route_map}".strip() for drain in drained.values()})
    text = table(("Unit", "State", "Groups"), rows) + "".join(f"BGP profile in use: {name}\n" for name in profiles)
    return EosReply(data, text)


SYSTEM_VIEWS = (
    ("show version", version),
    ("show hostname", hostname),
    ("show file systems", file_systems),
    ("show inventory", inventory),
    ("show maintenance", maintenance),
)
